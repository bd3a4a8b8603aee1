"""The command ``mha-viz replicate``: measure whether roles of a profile hold on another corpus."""

from __future__ import annotations

import argparse
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from mha_viz.analysis.bundled_data import check_profiles
from mha_viz.analysis.matching import count_in_runs
from mha_viz.analysis.profile import Profile, find_profile_folder, read_profile
from mha_viz.analysis.replication import replicate
from mha_viz.attention import Head
from mha_viz.cli.cluster import (
    add_cluster_options,
    get_partial_folder,
    offer_to_continue,
    open_cluster,
    show_cluster_progress,
)
from mha_viz.cli.models import check_heads, choose_model, load_model
from mha_viz.cli.options import Parser, add_output_options, parse_folder
from mha_viz.cli.outcomes import format_pairs, format_replications, format_runs
from mha_viz.cli.output import TABLE_FORMATS, Destination, parse_table_destination, write_and_print
from mha_viz.cli.profile import (
    add_corpus_option,
    add_measuring_options,
    add_name_option,
    is_profile,
    measure,
    open_source,
)
from mha_viz.cli.search import parse_model_and_head
from mha_viz.cli.terminal import print_warnings, progress_bar
from mha_viz.errors import CorpusError, SettingError
from mha_viz.files import make_folder
from mha_viz.models.getting.catalog import Model
from mha_viz.request import get_dtype


def add_options(parser: Parser) -> None:
    """Add the options of the command."""
    add_profile_argument(parser)
    add_corpus_option(parser)
    add_name_option(parser)
    help_text = (
        "compare each head with a role of syntax with the same head of another model, such as another step of the "
    )
    help_text += (
        "training, on the same cases of CORPUS, which may be the profile's own: a model, the folder of its profile, "
    )
    help_text += "or a model and the head to compare with, as in minilm/L5H4"
    parser.add_argument("--beside", type=parse_model_or_head, metavar="OTHER", help=help_text)
    help_text = (
        "count in how many training runs, such as seeds or steps, a role is found on any head: CORPUS is then the "
    )
    help_text += "profile of a second run, and --runs names those of further runs"
    parser.add_argument("--runs", type=parse_profile, nargs="*", metavar="PROFILE", help=help_text)
    add_output_options(parser, TABLE_FORMATS, required=False)
    add_measuring_options(parser)
    add_cluster_options(parser)


def parse_model_or_head(value: str) -> tuple[str, Head | None]:
    """Parse "minilm/L3H1"; or a model, or the folder of its profile, without a head."""
    with suppress(argparse.ArgumentTypeError):
        return parse_model_and_head(value)
    folder = parse_profile(value)
    return (read_profile(folder).model if is_profile(folder) else value), None


def add_profile_argument(command: Parser) -> None:
    """Add the argument PROFILE."""
    command.add_argument(
        "profile",
        type=parse_profile,
        metavar="PROFILE",
        help="folder that `mha-viz profile` has written; or minilm, toy or repeater, whose profiles come with the app",
    )


def parse_profile(value: str) -> Path:
    """Parse the folder of a profile, or the name of one that comes with the app."""
    return find_profile_folder(parse_folder(value))


def load_measured_model(profile: Profile, device: str, other_model: Model | None = None) -> Any:
    """Load the model of a profile, or another model to compare it with, in the precision of the profile."""
    dtype = get_dtype(str(profile.facts.get("revision", "")))
    return load_model(other_model or choose_model(profile.model), device, dtype)


def _measure(args: argparse.Namespace, other_profile: Profile, sums_folder: Path | None) -> Profile:
    """Measure the profile of the corpus, with the model of the other profile."""
    with open_cluster(args) as cluster, print_warnings():
        corpus = open_source(args.corpus, args.name, cluster)
        encoder = load_measured_model(other_profile, args.device)
        if sums_folder is not None:
            make_folder(sums_folder)
        return measure(encoder, corpus, sums_folder, args.batch, other_profile, control=False, cluster=cluster)


def run(args: argparse.Namespace) -> None:
    """Measure the heads of a profile's roles on another corpus or in another model, and print each outcome."""
    destination = parse_table_destination(args.out, args.format)
    profile = read_profile(args.profile)
    findings = profile.findings()
    if not findings:
        raise CorpusError(f"The profile in {args.profile} has no roles.", "Name the profile of a treebank or of text.")
    if args.runs is not None:
        if args.beside:
            raise SettingError("--beside and --runs are both given.", "Leave one of them out.")
        runs = [profile, *map(read_profile, (parse_profile(args.corpus), *args.runs))]
        table = count_in_runs(runs)
        return write_and_print(destination, lambda: table, format_runs(table))
    if args.beside:
        return _compare_models(args, profile, destination)
    sums_folder = get_partial_folder(destination, "sums")
    corpus_folder = find_profile_folder(args.corpus)
    if is_profile(corpus_folder):
        new_profile = read_profile(corpus_folder)
        check_profiles(new_profile.facts, profile.facts)
    else:
        new_profile = _measure(args, profile, sums_folder)
    replications = replicate(findings, new_profile)
    write_and_print(destination, lambda: replications.table, format_replications(replications, profile, new_profile))
    if sums_folder is not None:
        shutil.rmtree(sums_folder, ignore_errors=True)


def _compare_models(args: argparse.Namespace, profile: Profile, destination: Destination | None) -> None:
    """Print how much more often the heads of the roles are right than the heads of the other model."""
    name, head = args.beside
    model, other_model = choose_model(profile.model), choose_model(name)
    check_heads(other_model, [head] if head else [])
    folder = get_partial_folder(destination, "parts")
    with offer_to_continue(folder), open_cluster(args) as cluster, print_warnings():
        corpus = open_source(args.corpus, args.name, cluster)
        from mha_viz.study.paired_heads import compare_roles  # imports torch

        encoder = load_measured_model(profile, args.device)
        is_other = other_model.name != model.name
        other_encoder = load_measured_model(profile, args.device, other_model) if is_other else encoder
        with show_cluster_progress() if cluster else progress_bar("of the sentences") as progress:
            client = cluster and cluster.client
            pairs = compare_roles(
                profile, corpus, other_encoder, head, model=encoder, resume=folder, progress=progress, client=client
            )
    write_and_print(destination, pairs.table, format_pairs(pairs, corpus.name))
