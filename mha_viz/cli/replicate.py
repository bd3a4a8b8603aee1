"""``mha-viz replicate``."""

from __future__ import annotations

import argparse
import shutil
from contextlib import suppress
from pathlib import Path

from mha_viz.analysis.matching import in_runs
from mha_viz.analysis.profile import FACTS, Profile, profile_folder, read_profile
from mha_viz.analysis.replication import replicate
from mha_viz.analysis.shipped import check
from mha_viz.attention import Head
from mha_viz.cli.cluster import cluster_for, cluster_options, continued, folder_beside, progress_line
from mha_viz.cli.models import check_heads, choose_model, load_model
from mha_viz.cli.options import Parser, folder_name, output_options
from mha_viz.cli.outcomes import lines, paired_lines, run_lines
from mha_viz.cli.output import TABLES, Destination, put_out, table_destination
from mha_viz.cli.profile import corpus_option, is_profile, measure, measuring_options, name_option, open_source
from mha_viz.cli.search import model_and_head
from mha_viz.cli.terminal import bar_of, warnings_as_lines
from mha_viz.errors import CorpusError
from mha_viz.files import make_folder
from mha_viz.request import dtype_of


def options(replicate: Parser) -> None:
    """Add the options of the command."""
    profile_argument(replicate)
    corpus_option(replicate)
    name_option(replicate)
    words = "compare each head with a role of syntax with the same head of another model, such as another step of the "
    words += (
        "training, on the same cases of CORPUS, which may be the profile's own: a model, the folder of its profile, "
    )
    words += "or a model and the head to compare with, as in minilm/L5H4"
    replicate.add_argument("--beside", type=model_or_head, metavar="OTHER", help=words)
    words = "count in how many training runs, such as seeds or steps, a role is found on any head: CORPUS is then the "
    words += "profile of a second run, and RUN those of further ones"
    replicate.add_argument("--runs", type=profile_name, nargs="*", metavar="PROFILE", help=words)
    output_options(replicate, TABLES, required=False)
    measuring_options(replicate)
    cluster_options(replicate)


def model_or_head(value: str) -> tuple[str, Head | None]:
    """Parse "minilm/L3H1"; or a model, or the folder of its profile, without a head."""
    with suppress(argparse.ArgumentTypeError):
        return model_and_head(value)
    place = profile_name(value)
    return (read_profile(place).model if is_profile(place) else value), None


def profile_argument(command: Parser) -> None:
    """Add PROFILE."""
    command.add_argument(
        "profile",
        type=profile_name,
        metavar="PROFILE",
        help="folder that `mha-viz profile` has written; or minilm, toy or repeater, whose profiles come with the app",
    )


def profile_name(value: str) -> Path:
    """Parse the folder of a profile, or the name of one that comes with the app."""
    return profile_folder(folder_name(value))


def _measured(args: argparse.Namespace, other_profile: Profile, sums: Path | None) -> Profile:
    """Measure the profile of the corpus, with the model of the other profile."""
    with cluster_for(args) as cluster, warnings_as_lines():
        corpus = open_source(args.corpus, args.name, cluster)
        dtype = dtype_of(str(other_profile.facts.get("revision", "")))
        encoder = load_model(choose_model(other_profile.model), args.device, dtype)
        if sums is not None:
            make_folder(sums)
        return measure(encoder, corpus, sums, args.batch, other_profile, control=False, cluster=cluster)


def run(args: argparse.Namespace) -> None:
    """Measure the heads of a profile's roles on another corpus or in another model, and print each outcome."""
    to = table_destination(args.out, args.format)
    profile = read_profile(args.profile)
    findings = profile.findings()
    if not findings:
        raise CorpusError(f"The profile in {args.profile} has no roles.", "Name the profile of a treebank or of text.")
    if args.runs is not None:
        runs = [profile, *map(read_profile, (profile_name(args.corpus), *args.runs))]
        table = in_runs(runs)
        return put_out(to, lambda: table, run_lines(table))
    if args.beside:
        return _beside(args, profile, to)
    sums = folder_beside(to, "sums")
    if (Path(args.corpus) / FACTS).is_file():
        new_profile = read_profile(Path(args.corpus))
        check(new_profile.facts, profile.facts)
    else:
        new_profile = _measured(args, profile, sums)
    replications = replicate(findings, new_profile)
    put_out(to, lambda: replications.table, lines(replications, profile, new_profile))
    if sums is not None:
        shutil.rmtree(sums, ignore_errors=True)


def _beside(args: argparse.Namespace, profile: Profile, to: Destination | None) -> None:
    """Print how much more often the heads of the roles are right than the heads they are compared with."""
    name, head = args.beside
    model, other = choose_model(profile.model), choose_model(name)
    check_heads(other, [head] if head else [])
    folder = folder_beside(to, "parts")
    with continued(folder), cluster_for(args) as cluster, warnings_as_lines():
        corpus = open_source(args.corpus, args.name, cluster)
        from mha_viz.study.paired import compare_roles  # imports torch

        encoder = load_model(model, args.device)
        other_encoder = encoder if other.name == model.name else load_model(other, args.device)
        with progress_line() if cluster else bar_of("of the sentences") as progress:
            client = cluster and cluster.client
            pairs = compare_roles(
                profile, corpus, other_encoder, head, model=encoder, resume=folder, progress=progress, client=client
            )
    put_out(to, pairs.table, paired_lines(pairs, corpus.name))
