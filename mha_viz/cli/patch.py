"""``mha-viz patch``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mha_viz.attention import Head
from mha_viz.cli.models import choose_model, load_model
from mha_viz.cli.options import Parser, device_option, dtype_option, model_option, output_options
from mha_viz.cli.output import TABLES, table_destination
from mha_viz.cli.terminal import one_line, text_of, warnings_as_lines
from mha_viz.figures.caption import both
from mha_viz.numerals import decimal, percent

if TYPE_CHECKING:
    from mha_viz.attention.patched import Patched

LISTED = 12  # heads that are printed


def options(patch: Parser) -> None:
    """Add the options of the command."""
    patch.add_argument("text", metavar="TEXT", help='the sentence that the model reads; "-" reads it from stdin')
    patch.add_argument("other", metavar="OTHER", help="the sentence from which the output of each head is taken")
    words = "the word whose log-probability counts, at the masked token or next (default: the most probable for TEXT)"
    patch.add_argument("--word", default="", help=words)
    words = "the word whose log-probability is subtracted (default: the most probable for OTHER)"
    patch.add_argument("--foil", default="", metavar="WORD", help=words)
    model_option(patch)
    output_options(patch, TABLES, required=False)
    device_option(patch)
    dtype_option(patch)


def run(args: argparse.Namespace) -> None:
    """Take each head's output from another text, and print the heads that bring most of its answer back."""
    to, text = table_destination(args.out, args.format), text_of(args.text)
    model = choose_model(args.model)
    from mha_viz.models.patching import patch  # imports torch

    with warnings_as_lines():
        patched = patch(load_model(model, args.device, args.dtype), text, args.other, word=args.word, foil=args.foil)
    if to is not None:
        to.write_table(patched.table().reset_index())
    if to is None or to.path is not None:
        print("\n".join(map(one_line, _lines(patched))))


def _lines(patched: Patched) -> Iterator[str]:
    yield f"{patched.model}: {patched.score} is {decimal(patched.before)}, on the other text {decimal(patched.after)}"
    yield "how much of that comes back when one head alone is taken from the other text:"
    for name, row in patched.table().nlargest(LISTED, "share").iterrows():
        yield f"{both(Head.of(name))}  {percent(row['share'])}, to first order {percent(row['estimated'])}"
    if patched.shares.size > LISTED:
        yield f"and {patched.shares.size - LISTED} more; correlation of both numbers {decimal(patched.correlation)}"
