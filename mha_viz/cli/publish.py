"""``mha-viz publish``."""

from __future__ import annotations

import argparse

from mha_viz.cli import quantities
from mha_viz.cli.models import check_heads, choose_model, read_all
from mha_viz.cli.options import Parser, head_name, output_options, text_options
from mha_viz.cli.output import destination
from mha_viz.cli.terminal import text_of
from mha_viz.errors import SettingError

FORMATS = (".html",)


def options(publish: Parser) -> None:
    """Add the options of the command."""
    text_options(publish)
    words = "a head: layer 3, head 1, counted from 0; may be repeated"
    publish.add_argument(
        "--head", action="append", default=[], type=head_name, metavar="L3H1", required=True, help=words
    )
    words = "another text; may be repeated"
    publish.add_argument("--and", action="append", default=[], dest="others", metavar="TEXT", help=words)
    publish.add_argument("--title", default="", metavar="TEXT", help="the title of the page")
    publish.add_argument("--introduction", default="", metavar="TEXT", help="a text below the title")
    words = "a remark on a head, in the order of the heads; may be repeated"
    publish.add_argument("--remark", action="append", default=[], metavar="TEXT", help=words)
    quantities.options(publish)
    output_options(publish, FORMATS)


def run(args: argparse.Namespace) -> None:
    """Write one interactive web page with heads and remarks on them to a file or to stdout."""
    from mha_viz.figure.publication import check_texts, publication

    requests = [quantities.request_of(args, args.model, text) for text in (text_of(args.text), *args.others)]
    to = destination(args.out, args.format, FORMATS, "a web page format")
    panels = len(args.head) * (1 + len(args.others))
    if len(args.remark) > panels:
        raise SettingError(f"There are {len(args.remark)} remarks for {panels} heads.", "Give one for each head.")
    check_texts(args.title, args.introduction, args.remark)
    model = choose_model(args.model)
    check_heads(model, args.head)
    readings = read_all(model, requests)
    given = [(reading, head) for reading in readings for head in args.head]
    texts = {"title": args.title, "introduction": args.introduction, "remarks": args.remark}
    to.write(lambda: publication(given, **texts))
    to.report(f"{to.path}: {panels} {'head' if panels == 1 else 'heads'} on one page")
