"""``mha-viz profile``."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from mha_viz.analysis.established import check, establish
from mha_viz.analysis.profile import Profile, read_profile
from mha_viz.cli.models import choose_model, load_model
from mha_viz.cli.options import Parser, batch, folder_name, model_option
from mha_viz.cli.terminal import bar, one_line
from mha_viz.corpus import BUILT_IN
from mha_viz.errors import CorpusMissing, ExportError
from mha_viz.files import make_folder
from mha_viz.quotes import did_you_mean


def options(profile: Parser) -> None:
    """Add the options of the command."""
    corpus_option(profile)
    model_option(profile)
    name_option(profile)
    profile.add_argument(
        "--and",
        dest="other",
        type=folder_name,
        metavar="DIR",
        help="folder with the profile of the same model on a corpus of another origin: roles that both corpora show "
        "are established, and are written to roles.csv in both folders",
    )
    profile.add_argument(
        "--out",
        required=True,
        type=folder_name,
        metavar="DIR",
        help="folder to write the tables to, with sentences for and against each role; those of an earlier profile are "
        "replaced",
    )
    measuring_options(profile)


def corpus_option(command: Parser) -> None:
    """Add the option for a corpus."""
    command.add_argument(
        "corpus",
        metavar="CORPUS",
        help=f'a file (CoNLL-U, a GAP table, or text with one sentence per line), or "{BUILT_IN}", the built-in corpus',
    )


def name_option(command: Parser) -> None:
    """Add the option for the name of a corpus."""
    command.add_argument("--name", metavar="NAME", help="name of the corpus (default: its file name)")


def measuring_options(command: Parser) -> None:
    """Add the options that change no result."""
    command.add_argument(
        "--batch",
        type=batch,
        metavar="N",
        help="number of pieces that the model reads at once, at most; changes memory and speed, not results",
    )
    words = "where the model runs: cpu, or cuda for an NVIDIA GPU (default: cpu)"
    command.add_argument("--device", default="cpu", choices=("cpu", "cuda"), metavar="DEVICE", help=words)


def run(args: argparse.Namespace) -> None:
    """Measure a model over a corpus and write the tables to a folder."""
    corpus = read_corpus(args.corpus, args.name)
    other = read_profile(args.other) if args.other else None
    model = choose_model(args.model)
    make_folder(args.out)
    profile = measure(load_model(model, args.device), corpus, args.out, args.batch, other)
    if other is not None:
        other, profile = establish(other, profile)
        other.write(args.other)
    profile.write(args.out)
    counts = profile.facts["counts"].items()
    counted = ", ".join(f"{count:,} {name if count > 1 else name.removesuffix('s')}" for name, count in counts if count)
    print(f"{args.out}: {profile.model} on {profile.corpus} ({counted}), {len(profile.tables)} tables")
    for line in profile.facts["left_out_first"][:5]:
        print(f"mha-viz: left out: {one_line(line)}", file=sys.stderr)
    if profile.facts["left_out"] > 5:
        print(f"mha-viz: {profile.facts['left_out']} left out in all; see profile.json.", file=sys.stderr)


def measure(
    encoder: Any,
    corpus: Any,
    sums: Path | None,
    most_pieces: int | None,
    other: Profile | None = None,
    control: bool = True,
) -> Profile:
    """The profile of a model over a corpus, with a progress bar; as :func:`mha_viz.study.run.study`.

    ``sums``: the folder from which a stopped study continues, None for none; ``other``: a profile that it will be
    compared with. Raises CorpusError and ExportError.
    """
    from mha_viz.study.plan import BATCH
    from mha_viz.study.run import Progress, study

    if other is not None:
        check({"model": encoder.name, "revision": encoder.revision, "sha256": corpus.digest}, other.facts)
    with bar("of the text") as show:

        def progress(so_far: Progress) -> None:
            show(so_far.done, so_far.total)

        try:
            return study(encoder, corpus, resume=sums, batch=most_pieces or BATCH, control=control, progress=progress)
        except KeyboardInterrupt:
            print(f"\nmha-viz: Stopped. {one_line(_saved(sums))}", file=sys.stderr)
            raise
        except OSError as error:
            raise ExportError(f"{sums} cannot be written: {error.strerror or error}.", "Choose another.") from error


def _saved(sums: Path | None) -> str:
    if sums is None:
        return "Nothing is saved without --out FILE."
    if not any(sums.glob(".*.npz")):
        return "Nothing was done yet."
    return f"The work so far is saved in {sums}; run the same command again to continue."


def read_corpus(source: str, name: str | None = None) -> Any:
    """The corpus in a file, or the built-in one. Raises CorpusError."""
    from mha_viz.corpus.sources import open_corpus

    try:
        return open_corpus(source, name)
    except CorpusMissing as error:
        question = did_you_mean(source, [BUILT_IN, *_names_beside(Path(source))])
        raise CorpusMissing(error.problem, f"{question} {error.remedy}".strip()) from error


def _names_beside(path: Path) -> list[str]:
    """The files in the folder in which a file was looked for, written as it was."""
    with suppress(OSError):
        return [str(path.with_name(one.name)) for one in islice(path.parent.iterdir(), 1000) if one.is_file()]
    return []
