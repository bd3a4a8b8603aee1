"""The command ``mha-viz figure``: draw heads, alone or side by side."""

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
    add_device_option,
    add_dtype_option,
    add_output_options,
    add_text_options,
    make_int_parser,
    parse_columns,
    parse_float,
    parse_folder,
)
from mha_viz.cli.output import Destination, format_suffix, parse_destination
from mha_viz.cli.terminal import bar, one_line, print_warnings, read_text
from mha_viz.cli.usage import reword_as_options
from mha_viz.errors import ExportError, FigureWarning, SettingError
from mha_viz.figures import files
from mha_viz.figures.drawing.marks import DPI_RANGE
from mha_viz.files import make_folder
from mha_viz.models.getting import catalog
from mha_viz.quotes import did_you_mean, quote
from mha_viz.view.settings import OPTIONS, ViewSetting, build_file_error, choose_default_scale, iter_page_only_settings

KINDS = {
    "heatmap": "One head's matrix, or that of every head.",
    "links": "Token links of one head, of several of one layer, or of every head.",
    "grid": "All heads at a glance.",
    "compare": "Heads of one or more texts side by side, on one colour scale.",
    "difference": "The second of two heads minus the first.",
}
FULL_PAGE_KINDS = ("grid", "compare", "difference")  # kinds whose .html files show every setting of the view
SINGLE_HEAD_KINDS = ("heatmap", "links")  # kinds that --all-heads can draw
MAX_PANELS = 16


def add_options(figure_parser: Parser, examples: dict[str, str]) -> None:
    """Add the kinds of figures, each with its options and examples."""
    kinds = figure_parser.add_subparsers(title="kinds", metavar="KIND", required=True)
    for kind, summary in KINDS.items():
        parser = figure_parser.add_command(kinds, kind, None, summary, examples.get(kind, ""))
        parser.set_defaults(kind=kind, head=[], others=[], as_=None, columns=None, all_heads=None)
        add_text_options(parser)
        add_device_option(parser)
        add_dtype_option(parser)
        quantities.add_options(parser)
        quantities.add_continue_option(parser)
        _add_head_options(parser, kind)
        _add_view_options(parser, kind)
        _add_size_options(parser, kind)
        add_output_options(parser, files.figure_suffixes(), required=False)
        parser.add_argument("--caption", action="store_true", help="print the caption of the figure")


def _add_head_options(parser: Parser, kind: str) -> None:
    notes = {
        "heatmap": "",
        "links": "; may be repeated, for heads of one layer",
        "compare": "; may be repeated",
        "difference": "; twice, or once with --and",
    }
    if kind in notes:
        quantities.add_head_option(parser, notes[kind])
    if kind in ("compare", "difference"):
        help_text = (
            "another text; may be repeated" if kind == "compare" else "the second text, for one head in two texts"
        )
        parser.add_argument("--and", action="append", dest="others", metavar="TEXT", help=help_text)
    if kind == "compare":
        help_text = "how to draw the heads: heatmap or links (default: heatmap)"
        parser.add_argument("--as", dest="as_", choices=SINGLE_HEAD_KINDS, metavar="KIND", help=help_text)
        help_text = "panels per row, from 1 to 16 (default: as many as fit)"
        parser.add_argument("--columns", type=parse_columns, metavar="N", help=help_text)
    if kind in SINGLE_HEAD_KINDS:
        help_text = "instead of --head and --out: write each head, or layer of rollout, to this folder, .svg or "
        parser.add_argument("--all-heads", type=parse_folder, metavar="DIR", help=f"{help_text}the --format given")


def _add_view_options(parser: Parser, kind: str) -> None:
    for name, setting in OPTIONS.items():
        if kind in setting.kinds:
            default = setting.default or "none"
            help_text = f"{setting.get_help(kind)} (default: {default}){_describe_page_note(setting, kind)}"
            default_value = None if setting.not_shares else setting.default  # None: the quantity decides
            choices = setting.list_values(kind) or None
            parser.add_argument(
                f"--{name}", default=default_value, choices=choices, metavar=name.upper(), help=help_text
            )


def _describe_page_note(setting: ViewSetting, kind: str) -> str:
    """Return a note on where a setting has an effect; empty if it has one in every file."""
    if kind not in setting.only_on_page:
        return ""
    is_in_links = kind == "compare" and not setting.is_only_on_page(kind, "links")
    return "; with --as links, or in .html files" if is_in_links else "; only in .html files"


def _add_size_options(parser: Parser, kind: str) -> None:
    width = parser.add_mutually_exclusive_group()
    default_width = "178" if kind in ("grid", "compare") else "77, or 178 where 77 has no room for the text"
    help_text = f"width: 77 or 85 fits one column of a page, 178 two (default: {default_width})"
    width.add_argument("--width-mm", type=parse_float, metavar="MM", help=help_text)
    width.add_argument("--width-in", type=parse_float, metavar="IN", help="width in inches")
    help_text = "maximum height of the figure (default: 220, leaving room for a caption on A4)"
    help_text += "; longer links are split into columns, or show the part around --pin" * (kind == "links")
    parser.add_argument("--max-height-mm", type=parse_float, metavar="MM", help=help_text)
    parser.add_argument(
        "--font-pt", default=8.0, type=parse_float, metavar="PT", help="font size of the labels (default: 8)"
    )
    parser.add_argument(
        "--look",
        choices=("light", "dark", "grey"),
        metavar="LOOK",
        help="light, dark, or grey for print without colour (default: light; .html files follow the reader's browser)",
    )
    parser.add_argument("--transparent", action="store_true", help="no background")
    help_text = f"resolution of .png files in dots per inch, from {DPI_RANGE[0]} to {DPI_RANGE[1]} (default: 300)"
    parser.add_argument(
        "--dpi", default=300, type=make_int_parser(*DPI_RANGE, "a resolution"), metavar="N", help=help_text
    )


def run(args: argparse.Namespace) -> None:
    """Draw heads to a file or to stdout, or every head to a folder."""
    try:
        _draw(args)
    except SettingError as error:
        raise SettingError(reword_as_options(error.problem), reword_as_options(error.remedy)) from error


def _draw(args: argparse.Namespace) -> None:
    destination = _check_options(args)
    requests = [quantities.build_request(args, args.model, text) for text in (read_text(args.text), *args.others)]
    scale = OPTIONS["scale"]
    default_scale_name = scale.default if args.kind in scale.only_on_page else choose_default_scale(args.quantity)
    args.scale = args.scale or default_scale_name
    settings = _read_settings(args, destination.suffix)
    model = choose_model(args.model)
    check_heads(model, args.head, args.quantity)
    check_heads(model, args.without)
    recipes = quantities.open_recipes(args)
    readings = read_all(model, requests, args.device, args.dtype, args.model_name, recipes, args.words_to_write)
    if args.all_heads:
        _draw_all_heads(args, readings[0], destination.suffix, settings)
        return
    figure = _draw_figure(args, readings, settings)
    with print_warnings():
        destination.write(lambda: figure.to_bytes(destination.suffix, args.dpi))
    if args.caption:
        print(one_line(figure.caption), file=sys.stderr if destination.path is None else sys.stdout)
    else:
        destination.report(one_line(f"{destination.path}: {figure.drawing.alt}"))
    for line in _format_warnings(figure, destination.suffix):
        print(f"mha-viz: {line}", file=sys.stderr)


def _check_options(args: argparse.Namespace) -> Destination:
    """Check the options and return the output file or folder.

    Raises every error that can be found before a model is loaded.
    """
    if (args.all_heads is None) == (args.out is None):
        folder = ", or --all-heads DIR" if args.kind in SINGLE_HEAD_KINDS else ""
        raise SettingError("A figure needs exactly one output.", f"Give --out FILE{folder}.")
    args.head = quantities.list_heads(args)
    _check_heads(args)
    if args.all_heads is None:
        return parse_destination(args.out, args.format, files.figure_suffixes(), "a figure format")
    for option, value in (("--head", args.head), ("--caption", args.caption)):
        if value:
            raise SettingError(f"{option} does not go with --all-heads.", f"Leave {option} out.")
    suffix = format_suffix(args.format or "svg")
    if suffix not in (formats := files.figure_suffixes()):
        remedy = f"{did_you_mean(suffix, formats)} Use one of {', '.join(formats)}.".strip()
        raise ExportError(f"{quote(suffix)} is not a figure format.", remedy)
    return Destination(args.all_heads, suffix)


def _check_heads(args: argparse.Namespace) -> None:
    """Raise SettingError if this figure does not accept that number of heads."""
    head_count, panel_count = len(args.head), len(args.head) * (1 + len(args.others))
    if args.kind == "grid" or args.all_heads:
        return
    if not head_count:
        known_model = catalog.CATALOG.get(args.model.partition("@")[0])  # sizes of other models are unknown
        layer, head = (min(3, known_model.layers - 1), min(1, known_model.heads - 1)) if known_model else (0, 0)
        raise SettingError("No head was named.", f"Give --head L{layer}H{head}.")
    if args.kind == "heatmap" and head_count > 1:
        raise SettingError(f"A heatmap shows one head; {head_count} were given.", "Use compare for several.")
    if args.kind == "links" and len({head.layer for head in args.head}) > 1:
        names = ", ".join(map(str, args.head))
        raise SettingError(
            f"{names} are in different layers.", "Links show heads of one layer; use compare for several."
        )
    if args.kind == "compare" and panel_count > MAX_PANELS:
        raise SettingError(f"{panel_count} heads were given.", f"A comparison shows 1 to {MAX_PANELS}.")
    if args.kind == "difference" and panel_count != 2:
        remedy = "Give --head twice, or --head and --and once."
        raise SettingError(f"A difference takes two heads; {panel_count} were given.", remedy)


def _read_settings(args: argparse.Namespace, suffix: str) -> dict[str, Any]:
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
    if suffix != ".html" or args.kind not in FULL_PAGE_KINDS:
        for name in iter_page_only_settings(args.kind, view, args.as_ or ""):
            raise build_file_error(name, args.kind, "--")
    return view | sizes


def _draw_figure(args: argparse.Namespace, readings: list[Attention], settings: dict[str, Any]) -> Any:
    from mha_viz import figures as figure_api

    if args.kind == "grid":
        return figure_api.grid(readings[0], **settings)
    if args.kind in SINGLE_HEAD_KINDS:
        return getattr(figure_api, args.kind)(readings[0], heads=args.head, **settings)
    panels = [(reading, head) for reading in readings for head in args.head]
    if args.kind == "compare":
        return figure_api.compare(panels, kind=args.as_ or "heatmap", columns=args.columns, **settings)
    return figure_api.difference(*panels, **settings)


def _draw_all_heads(args: argparse.Namespace, attention: Attention, suffix: str, settings: dict[str, Any]) -> None:
    from mha_viz import figures as figure_api

    folder: Path = args.all_heads
    make_folder(folder)
    heads, file_names = attention.every_head(), list[str]()
    files_by_warning: dict[str, list[str]] = {}  # the files that each warning is about
    with print_warnings(), bar("files") as show, warnings.catch_warnings():
        warnings.simplefilter("ignore", FigureWarning)  # reported once, below
        for number, head in enumerate(heads, 1):
            figure = getattr(figure_api, args.kind)(attention, heads=[head], **settings)
            path = figure.save(folder / f"{figure.name}{suffix}", args.dpi)
            file_names.append(path.name)
            for line in _format_warnings(figure, suffix):
                files_by_warning.setdefault(line, []).append(path.name)
            show(number, len(heads))
    print(f"{folder}: {len(heads)} files, {file_names[0]} to {file_names[-1]}")
    for line, names in files_by_warning.items():
        prefix = "" if len(names) == len(heads) else f"{names[0]}, one of {len(names)} such files: "
        print(f"mha-viz: {prefix}{line}", file=sys.stderr)


def _format_warnings(figure: Any, suffix: str) -> list[str]:
    """Return the warnings about a picture; none for other formats, which use the reader's fonts and settings."""
    return [reword_as_options(line) for line in figure.warnings] if suffix in files.drawing_suffixes() else []
