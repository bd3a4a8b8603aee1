"""``mha-viz publish``."""

from __future__ import annotations

import argparse

from mha_viz.cli import quantities
from mha_viz.cli.models import answers, check_heads, choose_model, load_model
from mha_viz.cli.options import (
    Parser,
    device_option,
    dtype_option,
    folder_name,
    output_options,
    text_options,
)
from mha_viz.cli.output import Destination, destination
from mha_viz.cli.terminal import text_of
from mha_viz.errors import SettingError
from mha_viz.numerals import counted
from mha_viz.view.quantities import QUANTITIES

FORMATS = (".html",)


def options(publish: Parser) -> None:
    """Add the options of the command."""
    text_options(publish)
    device_option(publish)
    dtype_option(publish)
    quantities.head_option(publish, "; may be repeated", required=True)
    words = "another text; may be repeated"
    publish.add_argument("--and", action="append", default=[], dest="others", metavar="TEXT", help=words)
    publish.add_argument("--title", default="", metavar="TEXT", help="the title of the page")
    publish.add_argument("--introduction", default="", metavar="TEXT", help="a text below the title")
    words = "a remark on a head, in the order of the heads; may be repeated"
    publish.add_argument("--remark", action="append", default=[], metavar="TEXT", help=words)
    quantities.options(publish)
    output_options(publish, FORMATS, required=False)
    words = "instead of --out: a folder for a page on which readers type their own sentences, read in their browser"
    publish.add_argument("--live", type=folder_name, metavar="FOLDER", help=words)
    words = "with --live: store the model in half precision; the page says by how much its numbers differ"
    publish.add_argument("--half", action="store_true", help=words)


def run(args: argparse.Namespace) -> None:
    """Write one interactive web page with heads and remarks: to a file, to stdout, or with a model to a folder."""
    from mha_viz.figures.publishing import check_texts, publication, publish

    requests = [quantities.request_of(args, args.model, text) for text in (text_of(args.text), *args.others)]
    to = _destination(args)
    panels = len(args.head) * (1 + len(args.others))
    if len(args.remark) > panels:
        raise SettingError(f"There are {len(args.remark)} remarks for {panels} heads.", "Give one for each head.")
    check_texts(args.title, args.introduction, args.remark)
    model = choose_model(args.model)
    heads, kind = quantities.heads_of(args), "layer" if QUANTITIES[args.quantity].of_layers else "head"
    check_heads(model, heads, args.quantity)
    loaded = load_model(model, args.device, args.dtype, args.model_name)
    readings = answers(loaded, requests, quantities.recipes_of(args))
    panel_heads = [(reading, head) for reading in readings for head in heads]
    texts = {"title": args.title, "introduction": args.introduction, "remarks": args.remark}
    if to is None:
        publish(panel_heads, args.live, live=loaded, half=args.half, **texts)
        print(f"{args.live}: a page with {counted(panels, kind)}, on which {model.name} reads in the browser")
        return
    to.write(lambda: publication(panel_heads, **texts))
    to.report(f"{to.path}: {counted(panels, kind)} on one page")


def _destination(args: argparse.Namespace) -> Destination | None:
    """Return the file to write; None if a folder is written. Raises SettingError."""
    if args.live and (args.out or args.format):
        raise SettingError("--live and --out were both given.", "Give a folder with --live, or a file with --out.")
    if args.live:
        return None
    if args.half:
        raise SettingError("--half is for a page with a model.", "Give --live FOLDER, or leave --half out.")
    if not args.out:
        raise SettingError("Neither a file nor a folder was named.", "Give --out FILE, or --live FOLDER.")
    return destination(args.out, args.format, FORMATS, "a web page format")
