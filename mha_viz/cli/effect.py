"""The command ``mha-viz effect``: measure what switching heads off does over a corpus."""

from __future__ import annotations

import argparse
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from mha_viz.analysis.corpus_effects import CorpusEffect, EffectRow
from mha_viz.analysis.intervals import FEW
from mha_viz.analysis.syntax import DIRECTIONS
from mha_viz.cli.cluster import (
    add_cluster_options,
    explain_continuing,
    get_partial_folder,
    open_cluster,
    remove_if_empty,
    show_cluster_progress,
)
from mha_viz.cli.models import check_heads, choose_model, load_model
from mha_viz.cli.options import (
    Parser,
    add_device_option,
    add_dtype_option,
    add_model_option,
    add_most_option,
    add_output_options,
)
from mha_viz.cli.output import TABLE_FORMATS, parse_table_destination, write_and_print
from mha_viz.cli.profile import add_corpus_option, open_source
from mha_viz.cli.quantities import add_off_options, open_recipes, parse_heads
from mha_viz.cli.terminal import one_line, print_warnings, progress_bar
from mha_viz.corpus.limits import name_sample
from mha_viz.errors import CorpusError, SettingError
from mha_viz.figures.layout.caption import format_head
from mha_viz.figures.words.use_words import describe_most, describe_unused
from mha_viz.files import make_folder
from mha_viz.models.getting.catalog import Model
from mha_viz.numerals import counted, with_interval
from mha_viz.request import METHODS, RESAMPLE, Request

MAX_LISTED = 12  # heads that are listed
SENTENCE_LIMITS = (1, 1_000_000, 400)  # minimum, maximum and default number of sentences


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    add_corpus_option(parser)
    add_model_option(parser)
    add_off_options(parser, "--heads", "heads to switch off, together and each alone, such as L3H1,L2H4", required=True)
    add_means_option(parser)
    help_text = (
        "measure only the words that a head with this role attends from, such as nsubj (default: whole sentences)"
    )
    parser.add_argument("--relation", default="", metavar="NAME", help=help_text)
    help_text = f"the direction of the role: {', '.join(DIRECTIONS)} (default: {DIRECTIONS[0]})"
    parser.add_argument("--direction", default=DIRECTIONS[0], choices=DIRECTIONS, metavar="NAME", help=help_text)
    help_text = "other heads with the role; the measured heads are not compared with them"
    parser.add_argument("--same-role", type=parse_heads, default=(), metavar="HEADS", help=help_text)
    add_most_option(parser, *SENTENCE_LIMITS)
    add_output_options(parser, TABLE_FORMATS, required=False)
    add_device_option(parser)
    add_dtype_option(parser)
    add_cluster_options(parser)


def add_means_option(command: Parser) -> None:
    """Add the option for the corpus of mean outputs."""
    help_text = "with --method mean or resample: corpus of mean outputs or random sentences (default: measured corpus)"
    command.add_argument("--means", metavar="CORPUS", help=help_text)


def open_means_corpus(args: argparse.Namespace, cluster: Any = None) -> Any:
    """Return the corpus of the mean outputs; None stands for the corpus that is measured.

    Raises CorpusError, and SettingError if the method needs no means.
    """
    if args.means is None:
        return None
    if args.method not in ("mean", RESAMPLE):
        raise SettingError(
            f"--means names a corpus for mean outputs, but the method is {args.method or METHODS[0]}.",
            "Add --method mean or resample, or leave --means out.",
        )
    return open_source(args.means, cluster=cluster)


def run(args: argparse.Namespace) -> None:
    """Measure what switching heads off does over a corpus, and print a table."""
    destination = parse_table_destination(args.out, args.format)
    model = choose_model(args.model)
    check_heads(model, [*args.heads, *args.same_role])
    folder = get_partial_folder(destination, "parts")
    with open_cluster(args) as cluster, print_warnings(), remove_if_empty(folder):
        measurement = _prepare_measurement(args, model, cluster, folder)
        bar = show_cluster_progress() if cluster else progress_bar("sentences")
        try:
            with bar as progress, closing(measurement.iter_progress()) as reports:
                for report in reports:
                    progress(report)
        except KeyboardInterrupt:
            with suppress(CorpusError):  # nothing was measured
                result = measurement.result()
                write_and_print(destination, result.table, map(one_line, _format_lines(result)))
                message = f"These are the results for the sentences read so far; {explain_continuing(folder)}."
                raise KeyboardInterrupt(message) from None
            raise
        result = measurement.result()
        write_and_print(destination, result.table, map(one_line, _format_lines(result)))
        measurement.discard_partial_results()


def _prepare_measurement(args: argparse.Namespace, model: Model, cluster: Any, folder: Path | None) -> Any:
    """Prepare the measurement, which saves partial results in ``folder``.

    Raises CorpusError, ExportError, and ModelError or a subclass of it.
    """
    corpus = open_source(args.corpus, cluster=cluster)
    from mha_viz.study.corpus_effects import EffectSettings, Measurement
    from mha_viz.study.readers import open_measurable  # imports torch

    request = Request(off=args.heads, method=args.method or METHODS[0])
    means = open_means_corpus(args, cluster)
    settings = EffectSettings(
        request, args.relation, args.direction, args.same_role, args.most, means, open_recipes(args)
    )
    encoder = load_model(model, args.device, args.dtype)
    if folder is not None:
        make_folder(folder)
    return Measurement(encoder, open_measurable(corpus, cluster and cluster.client), settings, folder=folder)


def format_few_documents(count: int) -> str:
    """Return a note that intervals over only a few documents hold for these alone."""
    if count > 1:
        return f"Few documents ({count}): the intervals apply to these alone."
    return "Few documents: only one, or none named, so the intervals apply to these sentences alone."


def _format_lines(result: CorpusEffect) -> list[str]:
    condition = f", {result.relation} ({result.direction})" if result.relation else ""
    units = counted(result.documents, "document") if result.documents > 1 else counted(result.sentences, "sentence")
    lines = [
        f"{result.model} on {name_sample(result.corpus, result.every)}{condition}: {result.measure}, {result.method}, "
        f"n = {result.cases:,} in {units}, {result.left_out:,} left out"
    ]
    if result.documents < FEW:
        lines.append(format_few_documents(result.documents))
    head_rows = [row for row in result.rows if row.variant.kind != "control"]
    controls = sorted((row for row in result.rows if row.variant.kind == "control"), key=lambda row: -row.effect)
    for row in (*head_rows, *controls[:MAX_LISTED]):
        name = ", ".join(map(format_head, row.variant.heads))
        kind = {"together": "together", "head": "", "control": "same layer"}[row.variant.kind]
        lines.append(f"{with_interval(row.effect, row.low, row.high, 4)}  {name}  {kind}".rstrip())
    if len(controls) > MAX_LISTED:
        lines.append(f"and {len(controls) - MAX_LISTED} more")
    return lines + [_format_use(row, result) for row in head_rows if row.used is not None]


def _format_use(row: EffectRow, result: CorpusEffect) -> str:
    name, relation = format_head(row.variant.heads[0]), result.relation
    interval = with_interval(row.more, row.more_low, row.more_high, 4)
    if row.used:
        verdict = f"For {relation} it {describe_most(result.measure)} of all heads of its layer."
    else:
        verdict = describe_unused(relation, result.measure)
    return f"{name}: {verdict} Its effect minus that of the strongest other head: {interval}."
