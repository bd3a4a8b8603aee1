"""The command ``mha-viz why``: measure what the attention of each head depends on."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from mha_viz.analysis.corpus_why import CorpusWhy
from mha_viz.analysis.intervals import FEW
from mha_viz.analysis.profile import check_same_model
from mha_viz.attention import Head
from mha_viz.cli.cluster import (
    add_cluster_options,
    get_partial_folder,
    open_cluster,
    remove_if_empty,
    show_cluster_progress,
)
from mha_viz.cli.effect import format_few_documents
from mha_viz.cli.models import choose_model, load_model
from mha_viz.cli.options import (
    Parser,
    add_device_option,
    add_model_option,
    add_most_option,
    add_output_options,
    parse_folder,
)
from mha_viz.cli.output import TABLE_FORMATS, parse_table_destination, write_and_print
from mha_viz.cli.profile import add_corpus_option, add_name_option, open_source, read_own_profile
from mha_viz.cli.terminal import one_line, print_warnings, progress_bar
from mha_viz.corpus.limits import name_sample
from mha_viz.figures.layout.caption import format_head
from mha_viz.files import make_folder
from mha_viz.numerals import counted, percent, with_interval

MAX_LISTED = 12  # arrows that are printed


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    add_corpus_option(parser)
    add_model_option(parser)
    add_most_option(parser, 2, 100_000, 100)
    help_text = "write which earlier heads contribute to the scores of each head, instead of the shares of the groups"
    parser.add_argument("--arrows", action="store_true", help=help_text)
    add_output_options(parser, TABLE_FORMATS, required=False)
    help_text = "also store the shares as why.csv in this folder, a profile of the same model, for the Roles page"
    parser.add_argument("--profile", type=parse_folder, metavar="DIR", help=help_text)
    add_name_option(parser)
    add_device_option(parser)
    add_cluster_options(parser)


def run(args: argparse.Namespace) -> None:
    """Measure what each head's attention depends on over a corpus; print a line per head, and the largest arrows."""
    destination = parse_table_destination(args.out, args.format)
    model, folder = choose_model(args.model), get_partial_folder(destination, "parts")
    profile = None if args.profile is None else read_own_profile(args.profile)
    with open_cluster(args) as cluster, print_warnings():
        corpus = open_source(args.corpus, args.name, cluster)
        from mha_viz.study.why import explain_corpus_scores, explain_on_cluster  # imports torch

        encoder = load_model(model, args.device)
        if profile is not None:
            check_same_model(profile, encoder.name, encoder.revision)
        if folder is not None:
            make_folder(folder)
        with show_cluster_progress() if cluster else progress_bar("of the text") as progress, remove_if_empty(folder):
            if cluster:
                result = explain_on_cluster(cluster, corpus, encoder, args.most, folder, progress)
            else:
                result = explain_corpus_scores(corpus, encoder, most=args.most, resume=folder, progress=progress)
    write_and_print(destination, result.arrows if args.arrows else result.table, map(one_line, _format_lines(result)))
    if profile is not None:
        result.stored_in(profile).write(args.profile)


def _format_lines(result: CorpusWhy) -> Iterator[str]:
    documents = f" of {counted(result.documents, 'document')}" if result.documents > 1 else ""
    coverage = f"{counted(result.sentences, 'sentence')}{documents}, {result.left_out:,} left out"
    corpus = name_sample(result.corpus, result.every)
    yield f"{result.model} on {corpus}: what attention depends on, {coverage}; 95% intervals"
    if result.documents < FEW:
        yield format_few_documents(result.documents)
    for head, rows in result.by_head():
        largest = rows[rows["share"] >= 0.05].sort_values("share", ascending=False, kind="stable")
        shares = " · ".join(f"{row['group']} {_format_interval(row)}" for row in largest.to_dict("records"))
        yield f"{format_head(head)}  {shares or 'its scores do not vary'}"
    arrows = result.arrows()
    if len(arrows):
        yield "earlier heads in the scores of a head, on the side of its query or its key:"
    for row in arrows.head(MAX_LISTED).to_dict("records"):
        yield (
            f"{format_head(Head.of(row['from']))} → {format_head(Head.of(row['to']))}  "
            f"{row['side']} {_format_interval(row)}"
        )
    if len(arrows) > MAX_LISTED:
        yield f"and {len(arrows) - MAX_LISTED} more"


def _format_interval(row: Mapping[Any, Any]) -> str:
    return with_interval(row["share"], row["low"], row["high"], 1, percent)
