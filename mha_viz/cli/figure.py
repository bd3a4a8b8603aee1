"""``mha-viz figure``."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

from mha_viz import exports
from mha_viz.attention import Attention
from mha_viz.attention.shown import named_in
from mha_viz.cli import quantities
from mha_viz.cli.models import check_heads, choose_model, read_all
from mha_viz.cli.options import (
    Parser,
    columns,
    device_option,
    dpi,
    dtype_option,
    folder_name,
    number,
    output_options,
    text_options,
)
from mha_viz.cli.output import Destination, destination, format_suffix
from mha_viz.cli.terminal import bar, one_line, text_of, warnings_as_lines
from mha_viz.cli.usage import in_options
from mha_viz.errors import ExportError, FigureWarning, SettingError
from mha_viz.files import make_folder
from mha_viz.quotes import did_you_mean, quoted

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
SCALES = ("fixed", "head", "row", "log")
# The settings of a view: the default, the possible values if there are only a few, and the kinds that take the setting.
VIEW: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "unit": ("words", ("words", "pieces"), tuple(KINDS)),
    "special": ("keep", ("keep", "hide", "rescale"), tuple(KINDS)),
    "side": ("all", ("all", "aa", "ab", "ba", "bb"), ("heatmap", "links", "grid")),
    "links": ("all", (), ("links", *WHOLE_PAGE)),
    "scale": ("fixed", SCALES, tuple(KINDS)),
    "pin": ("", (), tuple(KINDS)),
}
# Settings that the static drawing of a kind does not show, only its interactive page.
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
        device_option(one)
        dtype_option(one)
        quantities.options(one)
        quantities.continue_option(one)
        _head_options(one, kind)
        _view_options(one, kind)
        _size_options(one, kind)
        output_options(one, exports.figure_suffixes(), required=False)
        one.add_argument("--caption", action="store_true", help="print the caption of the figure")


def _head_options(one: Parser, kind: str) -> None:
    how_many = {
        "heatmap": "",
        "links": "; may be repeated, for heads of one layer",
        "compare": "; may be repeated",
        "difference": "; twice, or once with --and",
    }
    if kind in how_many:
        quantities.head_option(one, how_many[kind])
    if kind in ("compare", "difference"):
        words = "another text; may be repeated" if kind == "compare" else "the second text, for one head in two texts"
        one.add_argument("--and", action="append", dest="others", metavar="TEXT", help=words)
    if kind == "compare":
        words = "what heads are drawn as: heatmap or links (default: heatmap)"
        one.add_argument("--as", dest="as_", choices=LONE_HEADS, metavar="KIND", help=words)
        words = "panels per row, from 1 to 16 (default: as many as fit)"
        one.add_argument("--columns", type=columns, metavar="N", help=words)
    if kind in LONE_HEADS:
        words = "in place of --head and --out: write each head, L0H0, or layer of rollout, L0, to this folder, .svg or "
        one.add_argument("--all-heads", type=folder_name, metavar="DIR", help=f"{words}the --format given")


def _view_options(one: Parser, kind: str) -> None:
    for name, (default, values, takers) in VIEW.items():
        if kind in takers:
            choices = tuple(value for value in values if (kind, value) != ("compare", "row")) or None
            words = f"{_view_words(name, kind)} (default: {default or 'none'}){_only_on_pages(name, kind)}"
            given = None if name == "scale" else default  # None: the quantity decides
            one.add_argument(f"--{name}", default=given, choices=choices, metavar=name.upper(), help=words)


def _view_words(name: str, kind: str) -> str:
    """The help text for a setting of the view in a kind of figure."""
    scales = "head, to the head's largest weight; row, to each row's"
    if kind == "links":
        scales = "head or row, to the largest weight of all heads"
    if kind == "compare":
        scales = "head, to the largest weight of all panels"
    return {
        "unit": "words or pieces, as rows and columns",
        "special": "keep or hide special tokens such as [CLS]; rescale hides them and makes rows sum to 1 again",
        "side": "the part of a --pair to show: all, aa, ab, ba or bb; ab is from the first text to the second",
        "links": "which links: all; topN, the N heaviest keys of each query, as top3; min0.N, weights from this one "
        "on, as min0.10; mass0.N, the fewest keys of each query that hold this share of its row, as mass0.70",
        "scale": "the range of colours, or of the width and darkness of links: fixed, from 0 to 1; "
        f"{scales}; log, from 0.001 to 1",
        "pin": "a token or a link to hold: q10 is query token 10, k1 key token 1, q10k1 the link between them; tokens "
        "are pieces, counted from 0",
    }[name]


def _only_on_pages(name: str, kind: str) -> str:
    """Where a setting is shown, if not in every file."""
    if kind not in ONLY_ON_PAGES.get(name, ()):
        return ""
    return "; with --as links, or in .html files" if (name, kind) == ("links", "compare") else "; only in .html files"


def _size_options(one: Parser, kind: str) -> None:
    width = one.add_mutually_exclusive_group()
    words = "width: 85 fits one column of a page, 178 two (default: 178)"
    width.add_argument("--width-mm", type=number, metavar="MM", help=words)
    width.add_argument("--width-in", type=number, metavar="IN", help="width in inches")
    words = "maximum height of the figure (default: 220, which leaves room for a caption on A4)"
    words += "; longer links are set in columns, or show the part around --pin" * (kind == "links")
    one.add_argument("--max-height-mm", type=number, metavar="MM", help=words)
    one.add_argument("--font-pt", default=8.0, type=number, metavar="PT", help="font size of the labels (default: 8)")
    one.add_argument(
        "--look",
        choices=("light", "dark", "grey"),
        metavar="LOOK",
        help="light, dark, or grey for print without colour (default: light; .html files follow the reader's browser)",
    )
    one.add_argument("--transparent", action="store_true", help="no background")
    one.add_argument(
        "--dpi", default=300, type=dpi, metavar="N", help="resolution of .png files in dots per inch (default: 300)"
    )


def run(args: argparse.Namespace) -> None:
    """Draw heads to a file or to stdout, or every head to a folder."""
    try:
        _draw(args)
    except SettingError as error:
        raise SettingError(in_options(error.problem), in_options(error.remedy)) from error


def _draw(args: argparse.Namespace) -> None:
    to = _checked(args)
    requests = [quantities.request_of(args, args.model, text) for text in (text_of(args.text), *args.others)]
    takes_scale = args.kind not in ONLY_ON_PAGES["scale"]
    args.scale = args.scale or (quantities.default_scale(args.quantity) if takes_scale else VIEW["scale"][0])
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
    """The file for the figure, or the folder. Raises every error that can be found before a model is loaded."""
    if (args.all_heads is None) == (args.out is None):
        folder = ", or --all-heads DIR" if args.kind in LONE_HEADS else ""
        raise SettingError("A figure needs exactly one output.", f"Give --out FILE{folder}.")
    args.head = quantities.heads_of(args)
    _check_heads(args)
    if args.all_heads is None:
        return destination(args.out, args.format, exports.figure_suffixes(), "a figure format")
    for option, given in (("--head", args.head), ("--caption", args.caption)):
        if given:
            raise SettingError(f"{option} does not go with --all-heads.", f"Leave {option} out.")
    suffix = format_suffix(args.format or "svg")
    if suffix not in (formats := exports.figure_suffixes()):
        remedy = f"{did_you_mean(suffix, formats)} Use one of {', '.join(formats)}.".strip()
        raise ExportError(f"{quoted(suffix)} is not a figure format.", remedy)
    return Destination(args.all_heads, suffix)


def _check_heads(args: argparse.Namespace) -> None:
    """Raise SettingError for a number of heads that this figure does not accept."""
    heads, panels = len(args.head), len(args.head) * (1 + len(args.others))
    if args.kind == "grid" or args.all_heads:
        return
    if not heads:
        raise SettingError("No head was named.", "Give --head L3H1.")
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
    """The options of the figure. Raises SettingError for an invalid value, or for an option that this figure does not
    show."""
    from mha_viz.figures.layout import Size
    from mha_viz.figures.view import View

    if getattr(args, "side", "all") != "all" and not args.pair:
        raise SettingError(
            "--side shows a part of a pair, but there is no second text.", "Give --pair TEXT, or leave --side out."
        )
    from mha_viz.figures.layout import LIMITS

    low, high = (bound / 25.4 for bound in LIMITS["width_mm"])
    if args.width_in is not None and not low <= args.width_in <= high:
        raise SettingError(f"--width-in is {args.width_in:g}.", f"Expected a number from {low:.2g} to {high:.3g}.")
    view = {name: getattr(args, name) for name in VIEW if hasattr(args, name)}
    sizes = {name: getattr(args, name) for name in ("width_mm", "max_height_mm", "font_pt", "look", "transparent")}
    sizes["width_mm"] = args.width_mm if args.width_in is None else 25.4 * args.width_in
    sizes = {name: value for name, value in sizes.items() if value is not None}
    View(**view)
    Size(**sizes)
    if suffix == ".html" and args.columns:
        raise SettingError("--columns does not go with .html, whose panels fill the window.", "Leave it out.")
    if suffix != ".html" or args.kind not in WHOLE_PAGE:
        _check_shown(args)
    return view | sizes


def _check_shown(args: argparse.Namespace) -> None:
    for name, kinds in ONLY_ON_PAGES.items():
        shown = args.as_ == "links" and name == "links"
        if getattr(args, name, VIEW[name][0]) != VIEW[name][0] and args.kind in kinds and not shown:
            others = [kind for kind in VIEW[name][2] if kind not in kinds]
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
    every = {named_in(attention.quantity, head): head for head in attention.every_head()}
    warned: dict[str, list[str]] = {}  # the files that each warning is about
    with warnings_as_lines(), bar("files") as show, warnings.catch_warnings():
        warnings.simplefilter("ignore", FigureWarning)  # reported once, below
        for done, (name, head) in enumerate(every.items(), 1):
            figure = getattr(figure_api, args.kind)(attention, heads=[head], **settings)
            path = figure.save(folder / f"{name}{suffix}", args.dpi)
            for line in _warnings(figure, suffix):
                warned.setdefault(line, []).append(path.name)
            show(done, len(every))
    print(f"{folder}: {len(every)} files, {next(iter(every))}{suffix} to {name}{suffix}")
    for line, names in warned.items():
        which = "" if len(names) == len(every) else f"{names[0]}, one of {len(names)} such files: "
        print(f"mha-viz: {which}{line}", file=sys.stderr)


def _warnings(figure: Any, suffix: str) -> list[str]:
    """The warnings about a picture; formats other than pictures are drawn with the reader's fonts and settings."""
    return [in_options(line) for line in figure.warnings] if suffix in exports.drawing_suffixes() else []
