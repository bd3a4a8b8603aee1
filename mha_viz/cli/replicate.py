"""``mha-viz replicate``."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from mha_viz.analysis.established import check
from mha_viz.analysis.profile import FACTS, Profile, profile_folder, read_profile
from mha_viz.analysis.replication import replicate
from mha_viz.cli.cluster import cluster_for, cluster_options, folder_beside
from mha_viz.cli.models import choose_model, load_model
from mha_viz.cli.options import Parser, folder_name, output_options
from mha_viz.cli.outcomes import lines
from mha_viz.cli.output import TABLES, table_destination
from mha_viz.cli.profile import corpus_option, measure, measuring_options, name_option, read_corpus
from mha_viz.cli.terminal import warnings_as_lines
from mha_viz.errors import CorpusError
from mha_viz.files import make_folder
from mha_viz.request import dtype_of


def options(replicate: Parser) -> None:
    """Add the options of the command."""
    profile_argument(replicate)
    corpus_option(replicate)
    name_option(replicate)
    output_options(replicate, TABLES, required=False)
    measuring_options(replicate)
    cluster_options(replicate)


def profile_argument(command: Parser) -> None:
    """Add PROFILE."""
    command.add_argument(
        "profile",
        type=profile_name,
        metavar="PROFILE",
        help='folder that `mha-viz profile` has written; or "minilm" or "toy", whose profiles come with the app',
    )


def profile_name(value: str) -> Path:
    """Parse the folder of a profile, or the name of one that comes with the app."""
    return profile_folder(folder_name(value))


def _measured(args: argparse.Namespace, there: Profile, sums: Path | None) -> Profile:
    """The profile of the corpus, measured with the model of the other profile."""
    with cluster_for(args) as cluster, warnings_as_lines():
        corpus = read_corpus(args.corpus, args.name, cluster)
        dtype = dtype_of(str(there.facts.get("revision", "")))
        encoder = load_model(choose_model(there.model), args.device, dtype)
        if sums is not None:
            make_folder(sums)
        return measure(encoder, corpus, sums, args.batch, there, control=False, cluster=cluster)


def run(args: argparse.Namespace) -> None:
    """Measure the heads of a profile's roles on another corpus, and print whether each role holds there."""
    to = table_destination(args.out, args.format)
    there = read_profile(args.profile)
    findings = there.findings()
    if not findings:
        raise CorpusError(f"The profile in {args.profile} has no roles.", "Name the profile of a treebank or of text.")
    sums = folder_beside(to, "sums")
    if (Path(args.corpus) / FACTS).is_file():
        here = read_profile(Path(args.corpus))
        check(here.facts, there.facts)
    else:
        here = _measured(args, there, sums)
    replications = replicate(findings, here)
    if to is not None:
        to.write_table(replications.table)
    if sums is not None:
        shutil.rmtree(sums, ignore_errors=True)
    if to is None or to.path is not None:
        print("\n".join(lines(replications, there, here)))
