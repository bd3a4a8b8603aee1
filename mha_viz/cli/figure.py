"""``mha-viz figure``."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

from mha_viz import exports
from mha_viz.attention import Attention
from mha_viz.cli.models import check_heads, choose_model, read_all
from mha_viz.cli.options import Parser, columns, dpi, folder_name, head_name, number, output_options, text_options
from mha_viz.cli.output import Destination, destination, format_suffix
from mha_viz.cli.suggestions import did_you_mean
from mha_viz.cli.terminal import bar, glyph_warnings, one_line, text_of
from mha_viz.errors import ExportError, FigureWarning, SettingError
from mha_viz.files import make_folder

KINDS = {
    "heatmap": "One head's matrix, or that of every head.",
    "links": "Token links of one head, of several of one layer, or of every head.",
    "grid": "All heads at a glance.",
    "compare": "Heads of one or more texts side by side, on one colour scale.",
    "difference": "What the second of two heads gives more or less than the first.",
}
WHOLE_PAGE = ("grid", "compare", "difference")  # kinds whose .html pages show every setting of the view
LONE_HEADS = ("heatmap", "links")  # kinds that --all-heads draws
PANELS = 16
# The settings of a view: default, values where they are a few, explanation, and the kinds that take the setting.
VIEW: dict[str, tuple[str, tuple[str, ...], str, tuple[str, ...]]] = {
    "unit": ("words", ("words", "pieces"), "rows and columns", tuple(KINDS)),
    "special": ("keep", ("keep", "hide", "rescale"), "special tokens", tuple(KINDS)),
    "side": ("all", ("all", "aa", "ab", "ba", "bb"), "part of a pair", ("heatmap", "links", "grid")),
    "links": ("all", (), "which links: all, top3, min0.10, mass0.70", ("links", *WHOLE_PAGE)),
    "scale": (
        "fixed",
        ("fixed", "head", "row", "log"),
        "colours from 0 to 1, to the head's largest weight, to the row's, or logarithmic",
        tuple(KINDS),
    ),
    "pin": ("", (), "held token or link: q10 (query token 10), k1 (key token 1), q10k1 (one link)", tuple(KINDS)),
}
# Static drawings that do not show a setting, which only the interactive page of that kind does.
ONLY_ON_PAGES = {
    "links": ("grid", "compare", "difference"),
    "scale": ("difference",),
    "pin": ("grid",),
}


def options(figure: Parser, epilog: dict[str, str]) -> None:
    """Add the kinds of figures, each with its options and examples."""
    kinds = figure.add_subparsers(title="kinds", metavar="KIND", required=True)
    for kind, summary in KINDS.items():
        one = figure.command(kinds, kind, None, summary, epilog.get(kind, ""))
        one.set_defaults(kind=kind, head=[], others=[], as_=None, columns=None, all_heads=None)
        text_options(one)
        _head_options(one, kind)
        for name, (default, choices, words, takers) in VIEW.items():
            if kind in takers:
                shown = f"{', '.join(choices)}: {words}" if choices else words
                help_text = f"{shown} (default: {default or 'no'})"
                one.add_argument(
                    f"--{name}", default=default, choices=choices or None, metavar=name.upper(), help=help_text
                )
        _size_options(one)
        output_options(one, _suffixes(), required=False)
        one.add_argument("--caption", action="store_true", help="print the caption")


def _head_options(one: Parser, kind: str) -> None:
    if kind != "grid":
        one.add_argument("--head", action="append", type=head_name, metavar="L3H1", help="a head; may be repeated")
    if kind in ("compare", "difference"):
        one.add_argument("--and", action="append", dest="others", metavar="TEXT", help="another text; may be repeated")
    if kind == "compare":
        one.add_argument(
            "--as", dest="as_", choices=LONE_HEADS, metavar="KIND", help="heatmap or links (default: heatmap)"
        )
        one.add_argument(
            "--columns", type=columns, metavar="N", help="panels per row, from 1 to 16 (default: as many as fit)"
        )
    if kind in LONE_HEADS:
        words = "write one file per head, L0H0 and so on, to this folder (default format: svg)"
        one.add_argument("--all-heads", type=folder_name, metavar="DIR", help=words)


def _size_options(one: Parser) -> None:
    width = one.add_mutually_exclusive_group()
    width.add_argument("--width-mm", type=number, metavar="MM", help="85 fits one column, 178 two (default: 178)")
    width.add_argument("--width-in", type=number, metavar="IN", help="the same in inches")
    one.add_argument(
        "--max-height-mm",
        type=number,
        metavar="MM",
        help="longer links stand in columns, or show what is around --pin (default: 220, A4 with a caption)",
    )
    one.add_argument("--font-pt", default=8.0, type=number, metavar="PT", help="font size of the labels (default: 8)")
    one.add_argument(
        "--look",
        choices=("light", "dark"),
        metavar="LOOK",
        help="light or dark (default: light; .html follows the browser)",
    )
    one.add_argument("--transparent", action="store_true", help="no background")
    one.add_argument(
        "--dpi", default=300, type=dpi, metavar="N", help="resolution of a .png in dots per inch (default: 300)"
    )


def _suffixes() -> tuple[str, ...]:
    return (*exports.drawing_suffixes(), ".html", *exports.shown_suffixes())


def run(args: argparse.Namespace) -> None:
    """Draw heads to a file or to stdout, or every head to a folder."""
    to = _checked(args)
    settings = _settings(args, to.suffix)
    texts = [text_of(args.text), *args.others]
    model = choose_model(args.model)
    check_heads(model, args.head)
    readings = read_all(model, texts, args.pair)
    if args.all_heads:
        _every_head(args, readings[0], to.suffix, settings)
        return
    figure = _figure(args, readings, settings)
    with glyph_warnings():
        to.write(lambda: figure.to_bytes(to.suffix, args.dpi))
    if args.caption:
        print(one_line(figure.caption), file=sys.stderr if to.path is None else sys.stdout)
    else:
        to.report(one_line(f"{to.path}: {figure.drawing.alt}"))
    _warn(figure, to.suffix)


def _checked(args: argparse.Namespace) -> Destination:
    """Where the figure goes, or the folder. Raises for all that can be refused before a model is loaded."""
    if (args.all_heads is None) == (args.out is None):
        folder = ", or --all-heads DIR" if args.kind in LONE_HEADS else ""
        raise SettingError("A figure needs exactly one output.", f"Give --out FILE{folder}.")
    _check_heads(args)
    if args.all_heads is None:
        return destination(args.out, args.format, _suffixes(), "a format of figures")
    for option, given in (("--head", args.head), ("--caption", args.caption)):
        if given:
            raise SettingError(f"{option} does not go with --all-heads.", f"Leave {option} out.")
    suffix = format_suffix(args.format or "svg")
    if suffix not in _suffixes():
        remedy = f"{did_you_mean(suffix, _suffixes())} Use one of {', '.join(_suffixes())}.".strip()
        raise ExportError(f"“{suffix[:40]}” is not a format of figures.", remedy)
    return Destination(args.all_heads, suffix)


def _check_heads(args: argparse.Namespace) -> None:
    """Raise SettingError for a number of heads that this figure does not take."""
    heads, panels = len(args.head), len(args.head) * (1 + len(args.others))
    if args.kind == "grid" or args.all_heads:
        return
    if not heads:
        raise SettingError("No head was named.", "Give --head L3H1.")
    if args.kind == "heatmap" and heads > 1:
        raise SettingError(f"A heatmap shows one head, {heads} were named.", "Use compare for several.")
    if args.kind == "links" and len({head.layer for head in args.head}) > 1:
        names = ", ".join(map(str, args.head))
        raise SettingError(f"{names} are of different layers.", "Links are of one layer; use compare for several.")
    if args.kind == "compare" and panels > PANELS:
        raise SettingError(f"{panels} heads were given.", f"A comparison shows 1 to {PANELS}.")
    if args.kind == "difference" and panels != 2:
        remedy = "Give --head twice, or --head and --and once."
        raise SettingError(f"A difference takes two heads; {panels} were given.", remedy)


def _settings(args: argparse.Namespace, suffix: str) -> dict[str, Any]:
    """The options of the figure. Raises SettingError for a value that none takes, or that this figure does not show."""
    from mha_viz.figures.layout import Size
    from mha_viz.figures.view import View

    view = {name: getattr(args, name) for name in VIEW if hasattr(args, name)}
    sizes = {name: getattr(args, name) for name in ("width_mm", "max_height_mm", "font_pt", "look", "transparent")}
    sizes["width_mm"] = args.width_mm if args.width_in is None else 25.4 * args.width_in
    sizes = {name: value for name, value in sizes.items() if value is not None}
    View(**view)
    Size(**sizes)
    if args.kind == "compare" and args.scale == "row":
        raise SettingError("scale is 'row', which gives each row its own.", "A comparison takes fixed, head or log.")
    if suffix == ".html" and args.columns:
        raise SettingError("--columns does not go with .html, whose panels fill the window.", "Leave it out.")
    if suffix != ".html" or args.kind not in WHOLE_PAGE:
        _check_shown(args)
    return view | sizes


def _check_shown(args: argparse.Namespace) -> None:
    for name, kinds in ONLY_ON_PAGES.items():
        shown = args.as_ == "links" and name == "links"
        if getattr(args, name, VIEW[name][0]) != VIEW[name][0] and args.kind in kinds and not shown:
            others = [kind for kind in VIEW[name][3] if kind not in kinds]
            others += ["compare --as links"] * (name == "links")
            remedy = f"It goes with {', '.join(others)}, and with .html."
            raise SettingError(f"--{name} does not go with {args.kind}.", remedy)


def _figure(args: argparse.Namespace, readings: list[Attention], settings: dict[str, Any]) -> Any:
    from mha_viz import figure as figure_api

    if args.kind == "grid":
        return figure_api.grid(readings[0], **settings)
    if args.kind in LONE_HEADS:
        return getattr(figure_api, args.kind)(readings[0], heads=args.head, **settings)
    panels = [(reading, head) for reading in readings for head in args.head]
    if args.kind == "compare":
        return figure_api.compare(panels, kind=args.as_ or "heatmap", columns=args.columns, **settings)
    return figure_api.difference(*panels, **settings)


def _every_head(args: argparse.Namespace, attention: Attention, suffix: str, settings: dict[str, Any]) -> None:
    from mha_viz import figure as figure_api

    folder: Path = args.all_heads
    make_folder(folder)
    every = attention.every_head()
    figure = None
    with glyph_warnings(), bar("files") as show, warnings.catch_warnings():
        warnings.simplefilter("ignore", FigureWarning)  # of every head the same, which _warn says once
        for done, head in enumerate(every, 1):
            figure = getattr(figure_api, args.kind)(attention, heads=[head], **settings)
            figure.save(folder / f"{head}{suffix}", args.dpi)
            show(done, len(every))
    print(f"{folder}: {len(every)} files, {every[0]}{suffix} to {every[-1]}{suffix}")
    if figure is not None:
        _warn(figure, suffix)


def _warn(figure: Any, suffix: str) -> None:
    drawn = suffix in exports.drawing_suffixes()  # other formats are rendered with the reader's fonts
    for line in figure.warnings if drawn else ():
        print(f"mha-viz: {line}", file=sys.stderr)
