"""The command ``mha-viz patch``: find heads that matter by patching outputs from another text."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from mha_viz.attention import Head
from mha_viz.attention.answers import SIDES
from mha_viz.cli.models import check_heads, choose_model, load_model
from mha_viz.cli.options import (
    Parser,
    add_device_option,
    add_dtype_option,
    add_model_option,
    add_output_options,
    parse_head,
)
from mha_viz.cli.output import TABLE_FORMATS, parse_table_destination, write_and_print
from mha_viz.cli.terminal import one_line, print_warnings, read_text
from mha_viz.errors import SettingError
from mha_viz.figures.layout.caption import format_head
from mha_viz.numerals import decimal, percent

if TYPE_CHECKING:
    from mha_viz.attention.answers import PatchResult

MAX_LISTED = 12  # heads that are printed


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    parser.add_argument("text", metavar="TEXT", help='the sentence that the model reads; "-" reads it from stdin')
    parser.add_argument("other", metavar="OTHER", help="the sentence from which the output of each head is taken")
    help_text = (
        "the word whose log-probability counts, at the masked token or next (default: the most probable for TEXT)"
    )
    parser.add_argument("--word", default="", help=help_text)
    help_text = "the word whose log-probability is subtracted (default: the most probable for OTHER)"
    parser.add_argument("--foil", default="", metavar="WORD", help=help_text)
    help_text = "a third sentence: the answer is then the cosine of its sentence vector and that of TEXT"
    parser.add_argument("--similar-to", default="", metavar="TEXT", help=help_text)
    help_text = (
        "a later head, such as L1H2: each earlier head’s output from OTHER reaches only one side of it (path patching)"
    )
    parser.add_argument("--to", type=parse_head, metavar="HEAD", help=help_text)
    help_text = f"the side of the head of --to: {', '.join(SIDES)} (default: {SIDES[1]})"
    parser.add_argument("--side", choices=SIDES, metavar="SIDE", help=help_text)
    help_text = "one forward and one backward pass for all heads (attribution patching): the first-order estimate "
    help_text += "alone, with the exact share of the largest to say how far to trust it"
    parser.add_argument("--estimate", action="store_true", help=help_text)
    add_model_option(parser)
    add_output_options(parser, TABLE_FORMATS, required=False)
    add_device_option(parser)
    add_dtype_option(parser)


def run(args: argparse.Namespace) -> None:
    """Patch each head's output from another text, and print the heads that restore most of the answer."""
    destination, text = parse_table_destination(args.out, args.format), read_text(args.text)
    model = choose_model(args.model)
    if args.side and args.to is None:
        raise SettingError("--side needs --to, the head where paths end.", "Add --to.")
    check_heads(model, [args.to] if args.to else [])
    answer_options = {"word": args.word, "foil": args.foil, "similar_to": args.similar_to}
    path_options = {"to": args.to, "side": args.side or SIDES[1]} if args.to else {}
    from mha_viz.models.intervening.patching import activation_patching  # imports torch

    with print_warnings():
        encoder = load_model(model, args.device, args.dtype)
        result = activation_patching(
            encoder, text, args.other, **answer_options, **path_options, exact=not args.estimate
        )
    write_and_print(destination, lambda: result.table().reset_index(), map(one_line, _format_lines(result)))


def _format_lines(result: PatchResult) -> Iterator[str]:
    yield f"{result.model}: {result.score} is {decimal(result.before)}, on the other text {decimal(result.after)}"
    path_note = "" if result.to is None else f", if it reaches only the {result.side} of {format_head(result.to)}"
    yield f"how much of the difference one head’s output from the other text restores{path_note}:"
    table = result.table()
    is_estimated = result.to is None and bool(np.isnan(result.shares).any())
    for name, row in table.nlargest(MAX_LISTED, "estimated" if is_estimated else "share").iterrows():
        exact = "" if np.isnan(row["share"]) else f"{percent(row['share'])}, "
        estimate = f"to first order {percent(row['estimated'])}" if "estimated" in row else ""
        yield f"{format_head(Head.of(name))}  {f'{exact}{estimate}'.removesuffix(', ')}"
    footer = f"and {len(table) - MAX_LISTED} more" if len(table) > MAX_LISTED else ""
    if np.isfinite(result.correlation):
        footer += f"{'; ' if footer else ''}correlation of exact and first-order shares {decimal(result.correlation)}"
    if footer:
        yield footer
    if is_estimated and result.checked is not None:
        estimated, exact = map(percent, result.checked_shares)
        warning = ": the estimates are unreliable here; leave out --estimate" * result.is_far_off
        yield (
            f"The largest estimate, of {format_head(result.checked)}, is {estimated}; computed exactly, "
            f"{exact}{warning}."
        )
        yield "The other heads were only estimated: an important one may have a small estimate."
    if result.hardly_differs:
        yield "The two answers hardly differ, so these shares mean little."
