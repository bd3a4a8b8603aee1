"""``mha-viz replicate``."""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Sequence

from mha_viz.analysis.profile import read_profile
from mha_viz.analysis.replication import Replication, replicate, replication_table
from mha_viz.cli.models import choose_model, load_model
from mha_viz.cli.options import Parser, folder_name, output_options
from mha_viz.cli.outcomes import lines
from mha_viz.cli.output import STDOUT, Destination, destination
from mha_viz.cli.profile import corpus_option, measure, measuring_options, name_option, read_corpus
from mha_viz.errors import CorpusError
from mha_viz.files import make_folder

FORMATS = (".csv", ".json")


def options(replicate: Parser) -> None:
    """Add the options of the command."""
    replicate.add_argument(
        "profile", type=folder_name, metavar="PROFILE", help="folder that `mha-viz profile` has written"
    )
    corpus_option(replicate)
    name_option(replicate)
    output_options(replicate, FORMATS, required=False)
    measuring_options(replicate)


def run(args: argparse.Namespace) -> None:
    """Measure the heads of a profile's roles on another corpus, and print whether each role holds there."""
    to = _destination(args)
    there = read_profile(args.profile)
    findings = there.findings()
    if not findings:
        raise CorpusError(f"The profile in {args.profile} has no role.", "Name the profile of a treebank or of text.")
    corpus = read_corpus(args.corpus, args.name)
    encoder = load_model(choose_model(there.model), args.device)
    sums = to.path.with_name(f".{to.path.name}.sums") if to and to.path else None
    if sums is not None:
        make_folder(sums)
    here = measure(encoder, corpus, sums, args.batch, there, control=False)
    replications = replicate(findings, here)
    if to is not None:
        to.write(lambda: _table(replications, to.suffix))
    if sums is not None:
        shutil.rmtree(sums, ignore_errors=True)
    if to is None or to.path is not None:
        print("\n".join(lines(replications, there, here)))


def _destination(args: argparse.Namespace) -> Destination | None:
    """Where the table goes besides the terminal; a format without a file is for stdout."""
    out = args.out if args.out is not None else STDOUT if args.format else None
    return None if out is None else destination(out, args.format, FORMATS, "a format of tables")


def _table(replications: Sequence[Replication], suffix: str) -> bytes:
    rows = replication_table(replications)
    if suffix == ".csv":
        return rows.to_csv(index=False, float_format="%.9g", lineterminator="\n").encode()
    return f"{json.dumps(json.loads(rows.to_json(orient='records', double_precision=9)), indent=1)}\n".encode()
