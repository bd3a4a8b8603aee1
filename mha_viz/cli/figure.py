"""``mha-viz figure``."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

from mha_viz import exports
from mha_viz.attention import Attention, Head
from mha_viz.cli.models import choose_model, make_folder, read
from mha_viz.cli.options import Parser, dpi, folder_name, number, text_options
from mha_viz.cli.terminal import bar, one_line, stdin
from mha_viz.errors import ExportError, FigureWarning, SettingError

FIGURES = ("heatmap", "links", "grid", "compare", "difference")
# The options that only some figures have, and those figures; --all-heads draws every head separately.
OPTIONS_OF_FIGURES = {
    "--head": ("head", ("heatmap", "links", "compare", "difference")),
    "--and": ("others", ("compare", "difference")),
    "--as": ("as_", ("compare",)),
    "--format": ("format", ("--all-heads",)),
    "--caption": ("caption", FIGURES),
}
# The settings of a view that only some figures show; .html pages of grid, compare and difference show them all.
SETTINGS_OF_FIGURES = {
    "--links": ("links", "compare --as links"),
    "--scale": ("heatmap", "links", "grid", "compare", "compare --as links"),
    "--pin": ("heatmap", "links", "compare", "compare --as links", "difference"),
}
WHOLE_PAGE = ("grid", "compare", "difference")
VIEW = {
    "--unit": ("words", "rows and columns: words or pieces"),
    "--special": ("keep", "special tokens: keep, hide, rescale"),
    "--links": ("all", "which links: all, top3, min0.10, mass0.70"),
    "--scale": ("fixed", "colours from 0 to: fixed (1), head (its largest weight), row (the row's largest); or log"),
    "--side": ("all", "part of a pair: all, aa, ab, ba, bb"),
    "--pin": ("", "held token or link: q10 (query token 10), k1 (key token 1), q10k1 (one link)"),
}


def options(figure: Parser) -> None:
    """Add the options of the command."""
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
    figure.add_argument(
        "--font-pt", default=8.0, type=number, metavar="PT", help="font size of the labels (default: 8)"
    )
    figure.add_argument("--look", metavar="LOOK", help="light or dark (default: light; .html follows the browser)")
    figure.add_argument("--transparent", action="store_true", help="no background")
    figure.add_argument(
        "--dpi", default=300, type=dpi, metavar="N", help="resolution of a .png in dots per inch (default: 300)"
    )
    figure.add_argument(
        "--out", type=Path, metavar="FILE", help=f"the suffix sets the format: {', '.join(_suffixes())}"
    )
    figure.add_argument(
        "--all-heads", type=folder_name, metavar="DIR", help="write one file per head, L0H0 and so on, to this folder"
    )
    figure.add_argument("--format", metavar="SUFFIX", help="file format for --all-heads (default: svg)")
    figure.add_argument("--caption", action="store_true", help="print the caption")


def _suffixes() -> tuple[str, ...]:
    return (*exports.drawing_suffixes(), ".html", *exports.shown_suffixes())


def run(args: argparse.Namespace) -> None:
    """Draw heads to a file, or every head to a folder."""
    warnings.simplefilter("ignore", FigureWarning)  # _warn says the same, on lines of its own
    if (args.all_heads is None) == (args.out is None):
        raise SettingError("A figure needs exactly one output.", "Give --out FILE, or --all-heads DIR.")
    _check_options(args)
    suffix = f".{(args.format or 'svg').lstrip('.')}" if args.all_heads else args.out.suffix
    if suffix.lower() not in _suffixes():  # refused before a model is loaded
        raise ExportError(f"“{suffix[:40]}” is not a format of figures.", f"Use one of {', '.join(_suffixes())}.")
    _check_settings(args, suffix)
    options = {name[2:]: getattr(args, name[2:]) for name in VIEW}
    sizes = {name: getattr(args, name) for name in ("width_mm", "width_in", "font_pt", "look", "transparent")}
    options |= {name: value for name, value in sizes.items() if value is not None}
    heads = [Head.parse(name) for name in args.head]
    text = stdin() if args.text == "-" else args.text
    model = choose_model(args.model)
    readings = [read(model, one, args.pair) for one in (text, *args.others)]
    if args.all_heads:
        _every_head(args, readings[0], suffix, options)
        return
    figure = _figure(args, readings, heads, options)
    path = figure.save(args.out, args.dpi)
    print(one_line(figure.caption if args.caption else f"{path}: {figure.drawing.alt}"))
    _warn(figure, suffix)


def _check_options(args: argparse.Namespace) -> None:
    """Raise SettingError for an option that would have no effect, before a model is loaded."""
    what = "--all-heads" if args.all_heads else args.kind
    if args.all_heads and args.kind not in ("heatmap", "links"):
        raise SettingError(f"--all-heads does not go with {args.kind}.", "Use heatmap or links.")
    if not args.head and what in OPTIONS_OF_FIGURES["--head"][1]:
        raise SettingError("No head was named.", "Give --head L3H1.")
    for option, (name, figures) in OPTIONS_OF_FIGURES.items():
        if getattr(args, name) and what not in figures:
            raise SettingError(f"{option} does not go with {what}.", f"It goes with {', '.join(figures)}.")


def _check_settings(args: argparse.Namespace, suffix: str) -> None:
    """Raise SettingError for a setting of the view that this figure does not show."""
    if suffix.lower() == ".html" and args.kind in WHOLE_PAGE:
        return
    drawn = f"{args.kind} --as links" if args.as_ == "links" else args.kind
    for option, figures in SETTINGS_OF_FIGURES.items():
        if getattr(args, option[2:]) != VIEW[option][0] and drawn not in figures:
            raise SettingError(f"{option} does not go with {drawn}.", f"It goes with {', '.join(figures)}.")


def _figure(args: argparse.Namespace, readings: list[Attention], heads: list[Head], options: dict[str, Any]) -> Any:
    from mha_viz import figure as figure_api

    if args.kind == "grid":
        return figure_api.grid(readings[0], **options)
    if args.kind in ("heatmap", "links"):
        return getattr(figure_api, args.kind)(readings[0], heads=heads, **options)
    panels = [(reading, head) for reading in readings for head in heads]
    if args.kind == "compare":
        return figure_api.compare(panels, kind=args.as_ or "heatmap", **options)
    if len(panels) != 2:
        raise SettingError(
            f"A difference takes two heads; {len(panels)} were given.", "Give --head twice, or --head and --and once."
        )
    return figure_api.difference(*panels, **options)


def _every_head(args: argparse.Namespace, attention: Attention, suffix: str, options: dict[str, Any]) -> None:
    from mha_viz import figure as figure_api

    make_folder(args.all_heads)
    every = attention.every_head()
    figure = None
    with bar("files") as show:
        for done, head in enumerate(every, 1):
            figure = getattr(figure_api, args.kind)(attention, heads=[head], **options)
            figure.save(args.all_heads / f"{head}{suffix}", args.dpi)
            show(done, len(every))
    print(f"{args.all_heads}: {len(every)} files, {every[0]}{suffix} to {every[-1]}{suffix}")
    if figure is not None:
        _warn(figure, suffix)


def _warn(figure: Any, suffix: str) -> None:
    drawn = suffix.lower() in exports.drawing_suffixes()  # other formats are rendered with the reader's fonts
    for line in figure.warnings if drawn else ():
        print(f"mha-viz: {line}", file=sys.stderr)
