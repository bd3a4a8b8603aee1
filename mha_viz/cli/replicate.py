"""``mha-viz replicate``."""

from __future__ import annotations

import argparse
import json
import shutil
from collections import Counter
from pathlib import Path

from mha_viz.analysis.profile import read_profile
from mha_viz.analysis.replication import OUTCOMES, Replication, replicate, replication_table
from mha_viz.cli.models import choose_model, load_model
from mha_viz.cli.options import Parser, folder_name
from mha_viz.cli.profile import corpus_option, measure, measuring_options, read_corpus
from mha_viz.cli.terminal import one_line
from mha_viz.errors import CorpusError, ExportError
from mha_viz.figures.caption import both
from mha_viz.files import make_folder, whole_file

FORMATS = (".csv", ".json")
HEADINGS = ("head", "role", "there", "baseline", "n", "here", "baseline", "n", "outcome")


def options(replicate: Parser) -> None:
    """Add the options of the command."""
    replicate.add_argument(
        "profile", type=folder_name, metavar="PROFILE", help="folder that `mha-viz profile` has written"
    )
    corpus_option(replicate)
    replicate.add_argument("--name", metavar="NAME", help="name of the corpus (default: its file name)")
    replicate.add_argument(
        "--out", type=Path, metavar="FILE", help=f"file for the table as well: {' or '.join(FORMATS)}"
    )
    measuring_options(replicate)


def run(args: argparse.Namespace) -> None:
    """Measure the heads of a profile's roles on another corpus, and print whether each role holds there."""
    _check_suffix(args.out)
    there = read_profile(args.profile)
    findings = there.findings()
    if not findings:
        raise CorpusError(f"The profile in {args.profile} has no role.", "Name the profile of a treebank or of text.")
    corpus = read_corpus(args.corpus, args.name)
    encoder = load_model(choose_model(there.model), args.device)
    sums = args.out.with_name(f".{args.out.name}.sums") if args.out else None
    if sums is not None:
        make_folder(sums)
    here = measure(encoder, corpus, sums, args.batch, there, control=False)
    replications = replicate(findings, here)
    if args.out:
        _write(replications, args.out)
        shutil.rmtree(sums or args.out, ignore_errors=True)
    print(f"{there.model}: roles of {there.corpus} (there), on {here.corpus} (here)")
    print("\n".join(_lines(replications)))
    counted = Counter(replication.outcome for replication in replications)
    print("; ".join(f"{counted[outcome]} {outcome}" for outcome in OUTCOMES if counted[outcome]))


def _check_suffix(path: Path | None) -> None:
    if path is not None and path.suffix not in FORMATS:
        raise ExportError(f"{path} is neither CSV nor JSON.", f"End its name with {' or '.join(FORMATS)}.")


def _write(replications: tuple[Replication, ...], path: Path) -> None:
    lines = replication_table(replications)
    if path.suffix == ".csv":
        text = lines.to_csv(index=False, float_format="%.9g", lineterminator="\n")
    else:
        text = json.dumps(json.loads(lines.to_json(orient="records", double_precision=9)), indent=1) + "\n"
    try:
        with whole_file(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise ExportError(f"{path} cannot be written: {error.strerror or error}.", "Name another file.") from error


def _lines(replications: tuple[Replication, ...]) -> list[str]:
    """The table for a terminal."""
    rows = [HEADINGS, *(_cells(replication) for replication in replications)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(HEADINGS) - 1)]
    return ["  ".join([*(c.ljust(w) for c, w in zip(row, widths, strict=False)), row[-1]]) for row in rows]


def _cells(replication: Replication) -> tuple[str, ...]:
    finding, here, outcome = replication
    scores = (finding.score, finding.baseline, finding.n)
    measured = here[:3] if here else (None, None, 0)
    numbers = (_number(value) for value in (*scores, *measured))
    return (both(finding.head), one_line(f"{finding.role}: {finding.detail}"), *numbers, outcome)


def _number(value: float | int | None) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return "–" if value is None or value != value else f"{value:.3f}"
