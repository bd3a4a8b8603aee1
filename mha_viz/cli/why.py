"""``mha-viz why``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from mha_viz.analysis.corpus_why import CorpusWhy
from mha_viz.analysis.intervals import FEW
from mha_viz.analysis.profile import profile_folder, read_profile
from mha_viz.attention import Head
from mha_viz.cli.cluster import cluster_for, cluster_options, emptied, folder_beside, progress_line
from mha_viz.cli.effect import few_documents
from mha_viz.cli.models import choose_model, load_model
from mha_viz.cli.options import Parser, device_option, folder_name, model_option, most_option, output_options
from mha_viz.cli.output import TABLES, put_out, table_destination
from mha_viz.cli.profile import corpus_option, name_option, open_source
from mha_viz.cli.terminal import bar_of, one_line, warnings_as_lines
from mha_viz.corpus.limits import name_sample
from mha_viz.figures.layout.caption import both
from mha_viz.files import make_folder
from mha_viz.numerals import counted, percent, with_interval

LISTED = 12  # arrows that are printed


def options(why: Parser) -> None:
    """Add the options of the command."""
    corpus_option(why)
    model_option(why)
    most_option(why, 2, 100_000, 100)
    words = "write which earlier heads contribute to the scores of each head, instead of the shares of the groups"
    why.add_argument("--arrows", action="store_true", help=words)
    output_options(why, TABLES, required=False)
    words = "also store the shares as why.csv in this folder, a profile of the same model, for the Roles page"
    why.add_argument("--profile", type=folder_name, metavar="DIR", help=words)
    name_option(why)
    device_option(why)
    cluster_options(why)


def run(args: argparse.Namespace) -> None:
    """Measure what each head's attention depends on over a corpus; print a line per head, and the largest arrows."""
    to = table_destination(args.out, args.format)
    model, folder = choose_model(args.model), folder_beside(to, "parts")
    profile = None if args.profile is None else read_profile(profile_folder(args.profile))
    with cluster_for(args) as cluster, warnings_as_lines():
        corpus = open_source(args.corpus, args.name, cluster)
        from mha_viz.study.why import explain_corpus_scores, on_cluster  # imports torch

        encoder = load_model(model, args.device)
        if folder is not None:
            make_folder(folder)
        with progress_line() if cluster else bar_of("of the text") as progress, emptied(folder):
            if cluster:
                measured = on_cluster(cluster, corpus, encoder, args.most, folder, progress)
            else:
                measured = explain_corpus_scores(corpus, encoder, most=args.most, resume=folder, progress=progress)
    put_out(to, measured.arrows if args.arrows else measured.table, map(one_line, _lines(measured)))
    if profile is not None:
        measured.stored_in(profile).write(profile_folder(args.profile))


def _lines(measured: CorpusWhy) -> Iterator[str]:
    in_documents = f" of {counted(measured.documents, 'document')}" if measured.documents > 1 else ""
    coverage = f"{counted(measured.sentences, 'sentence')}{in_documents}, {measured.left_out:,} left out"
    corpus = name_sample(measured.corpus, measured.every)
    yield f"{measured.model} on {corpus}: what attention depends on, {coverage}; 95% intervals"
    if measured.documents < FEW:
        yield few_documents(measured.documents)
    for head, rows in measured.by_head():
        largest = rows[rows["share"] >= 0.05].sort_values("share", ascending=False, kind="stable")
        shares = " · ".join(f"{row['group']} {_interval(row)}" for row in largest.to_dict("records"))
        yield f"{both(head)}  {shares or 'its scores do not vary'}"
    arrows = measured.arrows()
    if len(arrows):
        yield "earlier heads in the scores of a head, by the side of its query or its key:"
    for row in arrows.head(LISTED).to_dict("records"):
        yield f"{both(Head.of(row['from']))} → {both(Head.of(row['to']))}  {row['side']} {_interval(row)}"
    if len(arrows) > LISTED:
        yield f"and {len(arrows) - LISTED} more"


def _interval(row: Mapping[Any, Any]) -> str:
    return with_interval(row["share"], row["low"], row["high"], 1, percent)
