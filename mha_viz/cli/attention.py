"""``mha-viz attention``."""

from __future__ import annotations

import argparse
from pathlib import Path

from mha_viz import exports
from mha_viz.cli.options import Parser, text_options
from mha_viz.cli.reading import chosen, read
from mha_viz.cli.terminal import stdin


def options(attention: Parser) -> None:
    """What can be asked of it."""
    writable = ", ".join(exports.suffixes())
    text_options(attention)
    attention.add_argument("--words", action="store_true", help="one row and column a word instead of a piece")
    attention.add_argument(
        "--without-special", action="store_true", help="drop [CLS], [SEP] and their like; rows sum to 1 again"
    )
    attention.add_argument(
        "--out", required=True, type=Path, metavar="FILE", help=f"the format is its suffix: {writable}"
    )


def run(asked: argparse.Namespace) -> None:
    """Write what every head does with a text to a file."""
    exports.describe(asked.out.suffix)  # an unknown format ends here, before a model is loaded
    text = stdin() if asked.text == "-" else asked.text
    attention = read(chosen(asked.model), text, asked.pair)
    attention = attention.by_words() if asked.words else attention
    attention = attention.without_special() if asked.without_special else attention
    path = exports.write(attention, asked.out)
    print(
        f"{path}: {attention.model}, {attention.layers} layers × {attention.heads} heads, {len(attention.text)} tokens"
    )
