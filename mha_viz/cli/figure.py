"""``mha-viz figure``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from mha_viz import exports, fonts
from mha_viz.attention import Attention, Head
from mha_viz.cli.options import Parser, dpi, named, number, text_options
from mha_viz.cli.reading import chosen, make_folder, read
from mha_viz.cli.terminal import bar, one_line, stdin
from mha_viz.errors import ExportError, SettingError

FIGURES = ("heatmap", "links", "grid", "compare", "difference")
# The options that not every figure has, and the figures that have them; --all-heads takes each head by itself.
OWN = {
    "--head": ("head", ("heatmap", "links", "compare", "difference")),
    "--and": ("others", ("compare", "difference")),
    "--as": ("as_", ("compare",)),
    "--format": ("format", ("--all-heads",)),
    "--caption": ("caption", FIGURES),
}
# The settings of a view that some figures do not show; the pages of grid, compare and difference can show them all.
SEEN = {
    "--links": ("links", "compare --as links"),
    "--scale": ("heatmap", "links", "grid", "compare", "compare --as links"),
    "--pin": ("heatmap", "links", "compare", "compare --as links", "difference"),
}
WHOLE_PAGE = ("grid", "compare", "difference")
VIEW = {
    "--unit": ("words", "rows and columns: words or pieces"),
    "--special": ("keep", "special tokens: keep, hide, rescale"),
    "--links": ("all", "which links: all, top3, min0.10, mass0.70"),
    "--scale": ("fixed", "colours from 0 to: fixed (1), head (the largest shown), row; or log"),
    "--side": ("all", "of a pair: all, aa, ab, ba, bb"),
    "--pin": ("", "what is held: q10 (query token 10), k1 (key token 1), q10k1 (one link)"),
}


def options(figure: Parser) -> None:
    """What can be asked of it."""
    figure.add_argument("kind", metavar="KIND", choices=FIGURES, help=", ".join(FIGURES))
    text_options(figure)
    figure.add_argument("--head", action="append", default=[], metavar="L3H1", help="a head; may be repeated")
    figure.add_argument(
        "--and", action="append", default=[], dest="others", metavar="TEXT", help="compare, difference: another text"
    )
    figure.add_argument("--as", dest="as_", metavar="KIND", help="compare: heatmap (default) or links")
    for name, (default, words) in VIEW.items():
        figure.add_argument(
            name, default=default, metavar=name[2:].upper(), help=f"{words} (default: {default or 'no'})"
        )
    width = figure.add_mutually_exclusive_group()
    width.add_argument("--width-mm", type=number, metavar="MM", help="85 fits one column, 178 two (default: 178)")
    width.add_argument("--width-in", type=number, metavar="IN", help="the same in inches")
    figure.add_argument("--font-pt", default=8.0, type=number, metavar="PT", help="size of labels (default: 8)")
    figure.add_argument("--look", metavar="LOOK", help="light or dark (default: light; .html follows its reader)")
    figure.add_argument("--transparent", action="store_true", help="no background")
    figure.add_argument("--dpi", default=300, type=dpi, metavar="N", help="of .png (default: 300)")
    figure.add_argument("--out", type=Path, metavar="FILE", help=f"the format is its suffix: {', '.join(_suffixes())}")
    figure.add_argument("--all-heads", type=named, metavar="DIR", help="one file a head, L0H0 and on, in this folder")
    figure.add_argument("--format", metavar="SUFFIX", help="of --all-heads (default: svg)")
    figure.add_argument("--caption", action="store_true", help="print the caption")


def _suffixes() -> tuple[str, ...]:
    return (*exports.drawing_suffixes(), ".html", *exports.shown_suffixes())


def run(asked: argparse.Namespace) -> None:
    """Draw heads to a file, or every head to a folder."""
    if (asked.all_heads is None) == (asked.out is None):
        raise SettingError("A figure needs one place to go.", "Give --out FILE, or --all-heads DIR.")
    _check_own(asked)
    suffix = f".{(asked.format or 'svg').lstrip('.')}" if asked.all_heads else asked.out.suffix
    if suffix.lower() not in _suffixes():  # ends here, before a model is loaded
        raise ExportError(f"“{suffix[:40]}” is not a format of figures.", f"Use one of {', '.join(_suffixes())}.")
    _check_seen(asked, suffix)
    options = {name[2:]: getattr(asked, name[2:]) for name in VIEW}
    sizes = {name: getattr(asked, name) for name in ("width_mm", "width_in", "font_pt", "look", "transparent")}
    options |= {name: value for name, value in sizes.items() if value is not None}
    heads = [Head.parse(name) for name in asked.head]
    text = stdin() if asked.text == "-" else asked.text
    model = chosen(asked.model)
    readings = [read(model, one, asked.pair) for one in (text, *asked.others)]
    if asked.all_heads:
        _every_head(asked, readings[0], suffix, options)
        return
    figure = _drawn(asked, readings, heads, options)
    path = figure.save(asked.out, asked.dpi)
    print(one_line(figure.caption if asked.caption else f"{path}: {figure.drawing.alt}"))
    _warn(figure, suffix)


def _check_own(asked: argparse.Namespace) -> None:
    """Raises SettingError for an option that would change nothing; before a model is loaded."""
    what = "--all-heads" if asked.all_heads else asked.kind
    if asked.all_heads and asked.kind not in ("heatmap", "links"):
        raise SettingError(f"--all-heads does not go with {asked.kind}.", "Use heatmap or links.")
    if not asked.head and what in OWN["--head"][1]:
        raise SettingError("No head was named.", "Give --head L3H1.")
    for option, (name, figures) in OWN.items():
        if getattr(asked, name) and what not in figures:
            raise SettingError(f"{option} does not go with {what}.", f"It goes with {', '.join(figures)}.")


def _check_seen(asked: argparse.Namespace, suffix: str) -> None:
    """Raises SettingError for a setting of the view that this figure does not show."""
    if suffix.lower() == ".html" and asked.kind in WHOLE_PAGE:
        return
    drawn = f"{asked.kind} --as links" if asked.as_ == "links" else asked.kind
    for option, figures in SEEN.items():
        if getattr(asked, option[2:]) != VIEW[option][0] and drawn not in figures:
            raise SettingError(f"{option} does not go with {drawn}.", f"It goes with {', '.join(figures)}.")


def _drawn(asked: argparse.Namespace, readings: list[Attention], heads: list[Head], options: dict[str, Any]) -> Any:
    from mha_viz import notebook

    if asked.kind == "grid":
        return notebook.grid(readings[0], **options)
    if asked.kind in ("heatmap", "links"):
        return getattr(notebook, asked.kind)(readings[0], heads=heads, **options)
    panels = [(reading, head) for reading in readings for head in heads]
    if asked.kind == "compare":
        return notebook.compare(panels, kind=asked.as_ or "heatmap", **options)
    if len(panels) != 2:
        raise SettingError(
            f"A difference takes two heads; {len(panels)} were given.", "Give --head twice, or --head and --and once."
        )
    return notebook.difference(*panels, **options)


def _every_head(asked: argparse.Namespace, attention: Attention, suffix: str, options: dict[str, Any]) -> None:
    from mha_viz import notebook

    make_folder(asked.all_heads)
    every = attention.every_head()
    figure = None
    with bar("files") as show:
        for done, head in enumerate(every, 1):
            figure = getattr(notebook, asked.kind)(attention, heads=[head], **options)
            figure.save(asked.all_heads / f"{head}{suffix}", asked.dpi)
            show(done, len(every))
    print(f"{asked.all_heads}: {len(every)} files, {every[0]}{suffix} to {every[-1]}{suffix}")
    if figure is not None:
        _warn(figure, suffix)


def _warn(figure: Any, suffix: str) -> None:
    drawn = suffix.lower() in exports.drawing_suffixes()  # other formats leave letters to whoever reads them
    for line in fonts.missing(figure.drawing.texts()) if drawn else ():
        print(f"mha-viz: {line}", file=sys.stderr)
