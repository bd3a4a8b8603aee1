"""``mha-viz attention``."""

from __future__ import annotations

import argparse
from pathlib import Path

from mha_viz import exports
from mha_viz.cli.models import choose_model, read
from mha_viz.cli.options import Parser, text_options
from mha_viz.cli.terminal import stdin


def options(attention: Parser) -> None:
    """Add the options of the command."""
    writable = ", ".join(exports.suffixes())
    text_options(attention)
    attention.add_argument("--words", action="store_true", help="one row and column per word instead of per piece")
    attention.add_argument(
        "--without-special",
        action="store_true",
        help="leave out [CLS], [SEP] and other special tokens, and rescale rows to sum to 1",
    )
    attention.add_argument(
        "--out", required=True, type=Path, metavar="FILE", help=f"the suffix sets the format: {writable}"
    )


def run(args: argparse.Namespace) -> None:
    """Write the attention of every head on a text to a file."""
    exports.describe(args.out.suffix)  # refuses an unknown format before a model is loaded
    text = stdin() if args.text == "-" else args.text
    attention = read(choose_model(args.model), text, args.pair)
    attention = attention.by_words() if args.words else attention
    attention = attention.without_special() if args.without_special else attention
    path = exports.write(attention, args.out)
    print(
        f"{path}: {attention.model}, {attention.layers} layers × {attention.heads} heads, {len(attention.text)} tokens"
    )
