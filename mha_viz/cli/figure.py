"""``mha-viz figure``."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

from mha_viz.attention import Attention
from mha_viz.cli import quantities
from mha_viz.cli.models import check_heads, choose_model, read_all
from mha_viz.cli.options import (
    Parser,
    columns,
    device_option,
    dtype_option,
    folder_name,
    number,
    output_options,
    text_options,
    whole,
)
from mha_viz.cli.output import Destination, destination, format_suffix
from mha_viz.cli.terminal import bar, one_line, text_of, warnings_as_lines
from mha_viz.cli.usage import in_options
from mha_viz.errors import ExportError, FigureWarning, SettingError
from mha_viz.figures import files
from mha_viz.figures.drawing.marks import DPI
from mha_viz.files import make_folder
from mha_viz.models.getting import catalog
from mha_viz.quotes import did_you_mean, quoted
from mha_viz.view.settings import OPTIONS, ViewSetting, default_scale, only_on_page, refusal_in_files

KINDS = {
    "heatmap": "One head's matrix, or that of every head.",
    "links": "Token links of one head, of several of one layer, or of every head.",
    "grid": "All heads at a glance.",
    "compare": "Heads of one or more texts side by side, on one colour scale.",
    "difference": "The second of two heads minus the first.",
}
WHOLE_PAGE = ("grid", "compare", "difference")  # kinds whose .html files show every setting of the view
LONE_HEADS = ("heatmap", "links")  # kinds that --all-heads can draw
PANELS = 16


def options(figure: Parser, epilog: dict[str, str]) -> None:
    """Add the kinds of figures, each with its options and examples."""
    kinds = figure.add_subparsers(title="kinds", metavar="KIND", required=True)
    for kind, summary in KINDS.items():
        parser = figure.command(kinds, kind, None, summary, epilog.get(kind, ""))
        parser.set_defaults(kind=kind, head=[], others=[], as_=None, columns=None, all_heads=None)
        text_options(parser)
        device_option(parser)
        dtype_option(parser)
        quantities.options(parser)
        quantities.continue_option(parser)
        _head_options(parser, kind)
        _view_options(parser, kind)
        _size_options(parser, kind)
        output_options(parser, files.figure_suffixes(), required=False)
        parser.add_argument("--caption", action="store_true", help="print the caption of the figure")


def _head_options(parser: Parser, kind: str) -> None:
    how_many = {
        "heatmap": "",
        "links": "; may be repeated, for heads of one layer",
        "compare": "; may be repeated",
        "difference": "; twice, or once with --and",
    }
    if kind in how_many:
        quantities.head_option(parser, how_many[kind])
    if kind in ("compare", "difference"):
        words = "another text; may be repeated" if kind == "compare" else "the second text, for one head in two texts"
        parser.add_argument("--and", action="append", dest="others", metavar="TEXT", help=words)
    if kind == "compare":
        words = "how to draw the heads: heatmap or links (default: heatmap)"
        parser.add_argument("--as", dest="as_", choices=LONE_HEADS, metavar="KIND", help=words)
        words = "panels per row, from 1 to 16 (default: as many as fit)"
        parser.add_argument("--columns", type=columns, metavar="N", help=words)
    if kind in LONE_HEADS:
        words = "instead of --head and --out: write each head, or layer of rollout, to this folder, .svg or "
        parser.add_argument("--all-heads", type=folder_name, metavar="DIR", help=f"{words}the --format given")


def _view_options(parser: Parser, kind: str) -> None:
    for name, setting in OPTIONS.items():
        if kind in setting.kinds:
            default = setting.default or "none"
            words = f"{setting.help_for(kind)} (default: {default}){_only_on_pages(setting, kind)}"
            default_value = None if setting.not_shares else setting.default  # None: the quantity decides
            choices = setting.listed(kind) or None
            parser.add_argument(f"--{name}", default=default_value, choices=choices, metavar=name.upper(), help=words)


def _only_on_pages(setting: ViewSetting, kind: str) -> str:
    """Return a note on where a setting has an effect; empty if it has one in every file."""
    if kind not in setting.only_on_page:
        return ""
    is_in_links = kind == "compare" and not setting.is_only_on_page(kind, "links")
    return "; with --as links, or in .html files" if is_in_links else "; only in .html files"


def _size_options(parser: Parser, kind: str) -> None:
    width = parser.add_mutually_exclusive_group()
    default_width = "178" if kind in ("grid", "compare") else "77, or 178 where 77 has no room for the text"
    words = f"width: 77 or 85 fits one column of a page, 178 two (default: {default_width})"
    width.add_argument("--width-mm", type=number, metavar="MM", help=words)
    width.add_argument("--width-in", type=number, metavar="IN", help="width in inches")
    words = "maximum height of the figure (default: 220, leaving room for a caption on A4)"
    words += "; longer links are split into columns, or show the part around --pin" * (kind == "links")
    parser.add_argument("--max-height-mm", type=number, metavar="MM", help=words)
    parser.add_argument(
        "--font-pt", default=8.0, type=number, metavar="PT", help="font size of the labels (default: 8)"
    )
    parser.add_argument(
        "--look",
        choices=("light", "dark", "grey"),
        metavar="LOOK",
        help="light, dark, or grey for print without colour (default: light; .html files follow the reader's browser)",
    )
    parser.add_argument("--transparent", action="store_true", help="no background")
    words = f"resolution of .png files in dots per inch, from {DPI[0]} to {DPI[1]} (default: 300)"
    parser.add_argument("--dpi", default=300, type=whole(*DPI, "a resolution"), metavar="N", help=words)


def run(args: argparse.Namespace) -> None:
    """Draw heads to a file or to stdout, or every head to a folder."""
    try:
        _draw(args)
    except SettingError as error:
        raise SettingError(in_options(error.problem), in_options(error.remedy)) from error


def _draw(args: argparse.Namespace) -> None:
    to = _checked(args)
    requests = [quantities.request_of(args, args.model, text) for text in (text_of(args.text), *args.others)]
    scale = OPTIONS["scale"]
    default_of_scale = scale.default if args.kind in scale.only_on_page else default_scale(args.quantity)
    args.scale = args.scale or default_of_scale
    settings = _settings(args, to.suffix)
    model = choose_model(args.model)
    check_heads(model, args.head, args.quantity)
    check_heads(model, args.without)
    recipes = quantities.recipes_of(args)
    readings = read_all(model, requests, args.device, args.dtype, args.model_name, recipes, args.words_to_write)
    if args.all_heads:
        _every_head(args, readings[0], to.suffix, settings)
        return
    figure = _figure(args, readings, settings)
    with warnings_as_lines():
        to.write(lambda: figure.to_bytes(to.suffix, args.dpi))
    if args.caption:
        print(one_line(figure.caption), file=sys.stderr if to.path is None else sys.stdout)
    else:
        to.report(one_line(f"{to.path}: {figure.drawing.alt}"))
    for line in _warnings(figure, to.suffix):
        print(f"mha-viz: {line}", file=sys.stderr)


def _checked(args: argparse.Namespace) -> Destination:
    """Return the output file or folder. Raises every error that can be found before a model is loaded."""
    if (args.all_heads is None) == (args.out is None):
        folder = ", or --all-heads DIR" if args.kind in LONE_HEADS else ""
        raise SettingError("A figure needs exactly one output.", f"Give --out FILE{folder}.")
    args.head = quantities.heads_of(args)
    _check_heads(args)
    if args.all_heads is None:
        return destination(args.out, args.format, files.figure_suffixes(), "a figure format")
    for option, value in (("--head", args.head), ("--caption", args.caption)):
        if value:
            raise SettingError(f"{option} does not go with --all-heads.", f"Leave {option} out.")
    suffix = format_suffix(args.format or "svg")
    if suffix not in (formats := files.figure_suffixes()):
        remedy = f"{did_you_mean(suffix, formats)} Use one of {', '.join(formats)}.".strip()
        raise ExportError(f"{quoted(suffix)} is not a figure format.", remedy)
    return Destination(args.all_heads, suffix)


def _check_heads(args: argparse.Namespace) -> None:
    """Raise SettingError if this figure does not accept that number of heads."""
    heads, panels = len(args.head), len(args.head) * (1 + len(args.others))
    if args.kind == "grid" or args.all_heads:
        return
    if not heads:
        known_model = catalog.CATALOG.get(args.model.partition("@")[0])  # sizes of other models are unknown
        layer, head = (min(3, known_model.layers - 1), min(1, known_model.heads - 1)) if known_model else (0, 0)
        raise SettingError("No head was named.", f"Give --head L{layer}H{head}.")
    if args.kind == "heatmap" and heads > 1:
        raise SettingError(f"A heatmap shows one head; {heads} were given.", "Use compare for several.")
    if args.kind == "links" and len({head.layer for head in args.head}) > 1:
        names = ", ".join(map(str, args.head))
        raise SettingError(
            f"{names} are in different layers.", "Links show heads of one layer; use compare for several."
        )
    if args.kind == "compare" and panels > PANELS:
        raise SettingError(f"{panels} heads were given.", f"A comparison shows 1 to {PANELS}.")
    if args.kind == "difference" and panels != 2:
        remedy = "Give --head twice, or --head and --and once."
        raise SettingError(f"A difference takes two heads; {panels} were given.", remedy)


def _settings(args: argparse.Namespace, suffix: str) -> dict[str, Any]:
    """Return the options of the figure.

    Raises SettingError for an invalid value, or for an option that this figure does not show.
    """
    from mha_viz.figures.layout import Size
    from mha_viz.figures.layout.view import View

    if getattr(args, "side", "all") != "all" and not args.pair:
        raise SettingError(
            "--side shows a part of a pair, but there is no second text.", "Give --pair TEXT, or leave --side out."
        )
    from mha_viz.figures.layout import LIMITS

    low, high = (bound / 25.4 for bound in LIMITS["width_mm"])
    if args.width_in is not None and not low <= args.width_in <= high:
        raise SettingError(f"--width-in is {args.width_in:g}.", f"Expected a number from {low:.2g} to {high:.3g}.")
    view = {name: getattr(args, name) for name in OPTIONS if hasattr(args, name)}
    sizes = {name: getattr(args, name) for name in ("width_mm", "max_height_mm", "font_pt", "look", "transparent")}
    sizes["width_mm"] = args.width_mm if args.width_in is None else 25.4 * args.width_in
    sizes = {name: value for name, value in sizes.items() if value is not None}
    View(**view)
    Size(**sizes)
    if suffix == ".html" and args.columns:
        raise SettingError("--columns does not go with .html, whose panels fill the window.", "Leave it out.")
    if suffix != ".html" or args.kind not in WHOLE_PAGE:
        for name in only_on_page(args.kind, view, args.as_ or ""):
            raise refusal_in_files(name, args.kind, "--")
    return view | sizes


def _figure(args: argparse.Namespace, readings: list[Attention], settings: dict[str, Any]) -> Any:
    from mha_viz import figures as figure_api

    if args.kind == "grid":
        return figure_api.grid(readings[0], **settings)
    if args.kind in LONE_HEADS:
        return getattr(figure_api, args.kind)(readings[0], heads=args.head, **settings)
    panels = [(reading, head) for reading in readings for head in args.head]
    if args.kind == "compare":
        return figure_api.compare(panels, kind=args.as_ or "heatmap", columns=args.columns, **settings)
    return figure_api.difference(*panels, **settings)


def _every_head(args: argparse.Namespace, attention: Attention, suffix: str, settings: dict[str, Any]) -> None:
    from mha_viz import figures as figure_api

    folder: Path = args.all_heads
    make_folder(folder)
    heads, written = attention.every_head(), list[str]()
    files_by_warning: dict[str, list[str]] = {}  # the files that each warning is about
    with warnings_as_lines(), bar("files") as show, warnings.catch_warnings():
        warnings.simplefilter("ignore", FigureWarning)  # reported once, below
        for done, head in enumerate(heads, 1):
            figure = getattr(figure_api, args.kind)(attention, heads=[head], **settings)
            path = figure.save(folder / f"{figure.name}{suffix}", args.dpi)
            written.append(path.name)
            for line in _warnings(figure, suffix):
                files_by_warning.setdefault(line, []).append(path.name)
            show(done, len(heads))
    print(f"{folder}: {len(heads)} files, {written[0]} to {written[-1]}")
    for line, names in files_by_warning.items():
        prefix = "" if len(names) == len(heads) else f"{names[0]}, one of {len(names)} such files: "
        print(f"mha-viz: {prefix}{line}", file=sys.stderr)


def _warnings(figure: Any, suffix: str) -> list[str]:
    """Return the warnings about a picture; other formats are drawn with the reader's fonts and settings."""
    return [in_options(line) for line in figure.warnings] if suffix in files.drawing_suffixes() else []
