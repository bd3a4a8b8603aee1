"""``mha-viz profile``."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from mha_viz.cli.models import choose_model, load_model
from mha_viz.cli.options import Parser, batch, folder_name
from mha_viz.cli.suggestions import did_you_mean
from mha_viz.cli.terminal import bar, one_line
from mha_viz.corpus import BUILT_IN
from mha_viz.errors import CorpusMissing
from mha_viz.files import make_folder
from mha_viz.models import catalog


def options(profile: Parser) -> None:
    """Add the options of the command."""
    profile.add_argument(
        "corpus",
        metavar="CORPUS",
        help=f'a file (CoNLL-U, a GAP table, or text with one sentence per line), or "{BUILT_IN}", the built-in corpus',
    )
    profile.add_argument("--model", default=catalog.DEFAULT, metavar="NAME", help="as for `mha-viz attention`")
    profile.add_argument("--name", metavar="NAME", help="name of the corpus (default: its file name)")
    profile.add_argument(
        "--out",
        required=True,
        type=folder_name,
        metavar="DIR",
        help="folder for the tables; existing tables are replaced",
    )
    profile.add_argument(
        "--batch",
        type=batch,
        metavar="N",
        help="maximum number of pieces per batch: affects memory and speed, not the results",
    )
    profile.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="where the model runs (default: cpu)")


def run(args: argparse.Namespace) -> None:
    """Measure a model over a corpus and write the tables to a folder."""
    corpus = _corpus(args.corpus, args.name)
    model = choose_model(args.model)
    make_folder(args.out)
    encoder = load_model(model, args.device)
    from mha_viz.study.plan import BATCH
    from mha_viz.study.profiling import Progress, measure

    with bar("of the text") as show:

        def progress(so_far: Progress) -> None:
            show(so_far.done, so_far.total)

        try:
            profile = measure(encoder, corpus, args.out, args.batch or BATCH, progress)
        except KeyboardInterrupt:
            saved = f"The work so far is saved in {args.out}; run the same command again to continue."
            message = f"Stopped. {saved if any(args.out.glob('.*.npz')) else 'Nothing was done yet.'}"
            print(f"\nmha-viz: {one_line(message)}", file=sys.stderr)
            raise
    counts = profile.facts["counts"].items()
    counted = ", ".join(f"{count:,} {name if count > 1 else name.removesuffix('s')}" for name, count in counts if count)
    print(f"{args.out}: {profile.model} on {profile.corpus} ({counted}), {len(profile.tables)} tables")
    for line in profile.facts["left_out_first"][:5]:
        print(f"mha-viz: left out: {one_line(line)}", file=sys.stderr)
    if profile.facts["left_out"] > 5:
        print(f"mha-viz: {profile.facts['left_out']} left out in all; see profile.json.", file=sys.stderr)


def _corpus(source: str, name: str | None) -> Any:
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
