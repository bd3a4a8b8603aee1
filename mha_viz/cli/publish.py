"""The command ``mha-viz publish``: write heads with remarks as one interactive web page."""

from __future__ import annotations

import argparse

from mha_viz.cli import quantities
from mha_viz.cli.models import check_heads, choose_model, load_model, run_requests
from mha_viz.cli.options import (
    Parser,
    add_device_option,
    add_dtype_option,
    add_output_options,
    add_text_options,
    parse_folder,
)
from mha_viz.cli.output import Destination, parse_destination
from mha_viz.cli.terminal import read_text
from mha_viz.errors import SettingError
from mha_viz.numerals import counted
from mha_viz.view.quantities import QUANTITIES

FORMATS = (".html",)


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    add_text_options(parser)
    add_device_option(parser)
    add_dtype_option(parser)
    quantities.add_head_option(parser, "; may be repeated", required=True)
    help_text = "another text; may be repeated"
    parser.add_argument("--and", action="append", default=[], dest="others", metavar="TEXT", help=help_text)
    parser.add_argument("--title", default="", metavar="TEXT", help="the title of the page")
    parser.add_argument("--introduction", default="", metavar="TEXT", help="a text below the title")
    help_text = "a remark on a head, in the order of the heads; may be repeated"
    parser.add_argument("--remark", action="append", default=[], metavar="TEXT", help=help_text)
    quantities.add_options(parser)
    add_output_options(parser, FORMATS, required=False)
    help_text = "instead of --out: a folder for a page on which readers type sentences and their browser runs the model"
    parser.add_argument("--live", type=parse_folder, metavar="FOLDER", help=help_text)
    help_text = "with --live: store the model in half precision; the page says by how much its numbers differ"
    parser.add_argument("--half", action="store_true", help=help_text)


def run(args: argparse.Namespace) -> None:
    """Write one interactive web page with heads and remarks: to a file, to stdout, or with a model to a folder."""
    from mha_viz.figures.publishing import check_texts, publication, publish

    requests = [quantities.build_request(args, args.model, text) for text in (read_text(args.text), *args.others)]
    destination = _parse_destination(args)
    panel_count = len(args.head) * (1 + len(args.others))
    if len(args.remark) > panel_count:
        raise SettingError(f"There are {len(args.remark)} remarks for {panel_count} heads.", "Give one for each head.")
    check_texts(args.title, args.introduction, args.remark)
    model = choose_model(args.model)
    heads, kind = quantities.list_heads(args), "layer" if QUANTITIES[args.quantity].of_layers else "head"
    check_heads(model, heads, args.quantity)
    encoder = load_model(model, args.device, args.dtype, args.model_name)
    readings = run_requests(encoder, requests, quantities.open_recipes(args))
    panel_heads = [(reading, head) for reading in readings for head in heads]
    texts = {"title": args.title, "introduction": args.introduction, "remarks": args.remark}
    if destination is None:
        publish(panel_heads, args.live, live=encoder, half=args.half, **texts)
        print(f"{args.live}: a page with {counted(panel_count, kind)}, on which {model.name} reads in the browser")
        return
    destination.write(lambda: publication(panel_heads, **texts))
    destination.report(f"{destination.path}: {counted(panel_count, kind)} on one page")


def _parse_destination(args: argparse.Namespace) -> Destination | None:
    """Return the file to write; None if a folder is written. Raises SettingError."""
    if args.live and (args.out or args.format):
        raise SettingError("--live and --out were both given.", "Give a folder with --live, or a file with --out.")
    if args.live:
        return None
    if args.half:
        raise SettingError("--half is for a page with a model.", "Give --live FOLDER, or leave --half out.")
    if not args.out:
        raise SettingError("Neither a file nor a folder was named.", "Give --out FILE, or --live FOLDER.")
    return parse_destination(args.out, args.format, FORMATS, "a web page format")
