"""The command ``mha-viz example``: write a small treebank."""

from __future__ import annotations

import argparse

from mha_viz.analysis.profile import SENTENCES_FILE
from mha_viz.cli.options import Parser, make_int_parser
from mha_viz.cli.output import parse_destination
from mha_viz.corpus import grammar
from mha_viz.corpus.conllu import format_conllu
from mha_viz.files.assets import asset_path

SENTENCE_COUNT = 200
SOURCE = (
    "UD English EWT (Silveira and others, 2014, A Gold Standard Dependency Corpus for English), test part; "
    "a selection, without lemmas; CC BY-SA 4.0"
)


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "out",
        metavar="FILE",
        help="the file to write or replace, such as treebank.conllu; - for stdout",
    )
    help_text = f"write {SENTENCE_COUNT} sentences of the built-in grammar, with coreference, drawn with this seed"
    parser.add_argument("--grammar", type=make_int_parser(0, 1_000_000, "a seed"), metavar="SEED", help=help_text)


def run(args: argparse.Namespace) -> None:
    """Write an example treebank on which to try the commands."""
    destination = parse_destination(args.out, ".conllu" if args.out == "-" else None, [".conllu"])
    if args.grammar is None:
        source, text = SOURCE, asset_path(f"profiles/minilm/ewt/{SENTENCES_FILE}").read_text("utf-8")
        text = "".join(f"{sentence}\n\n" for sentence in text.split("\n\n")[:SENTENCE_COUNT])
    else:
        source = f"the built-in grammar, seed {args.grammar}"
        text = format_conllu(grammar.corpus(SENTENCE_COUNT, args.grammar).sentences)
    destination.write(lambda: f"# source = {source}\n{text}".encode())
    destination.report(f"{args.out}: {SENTENCE_COUNT} sentences of {source}.")
