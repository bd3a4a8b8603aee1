"""``mha-viz profile``."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import Any

from mha_viz.cli.options import Parser, batch, named
from mha_viz.cli.reading import chosen, loaded, make_folder
from mha_viz.cli.terminal import bar, one_line
from mha_viz.errors import CorpusError, ExportError
from mha_viz.models import catalog

BUILT_IN = "grammar"


def options(profile: Parser) -> None:
    """What can be asked of it."""
    profile.add_argument(
        "corpus",
        metavar="CORPUS",
        help=f'a file: CoNLL-U, a GAP table, or a sentence a line; or "{BUILT_IN}", which comes with this program',
    )
    profile.add_argument("--model", default=catalog.DEFAULT, metavar="NAME", help="as of `mha-viz attention`")
    profile.add_argument("--name", metavar="NAME", help="what to call the corpus (default: its file name)")
    profile.add_argument(
        "--out", required=True, type=named, metavar="DIR", help="the tables; one that exists is replaced"
    )
    profile.add_argument(
        "--batch",
        type=batch,
        metavar="N",
        help="the most pieces of text in a pass: more take more memory; no number changes",
    )
    profile.add_argument("--device", default="cpu", choices=("cpu", "cuda"), help="where the model runs (default: cpu)")


def run(asked: argparse.Namespace) -> None:
    """Measure a model over a corpus; the tables go to a folder."""
    corpus = _corpus(asked.corpus)
    corpus = corpus if asked.name is None else dataclasses.replace(corpus, name=asked.name)
    encoder = loaded(chosen(asked.model), asked.device)
    make_folder(asked.out)
    from mha_viz.study.plan import BATCH
    from mha_viz.study.run import Progress, study

    with bar("of the text") as show:

        def progress(so_far: Progress) -> None:
            show(so_far.done, so_far.total)

        try:
            profile = study(encoder, corpus, resume=asked.out, batch=asked.batch or BATCH, progress=progress)
        except KeyboardInterrupt:
            kept = f"What is done is kept in {asked.out}; the same command goes on."
            said = f"Stopped. {kept if any(asked.out.glob('.*.npz')) else 'Nothing was done yet.'}"
            print(f"\nmha-viz: {one_line(said)}", file=sys.stderr)
            raise
        except OSError as error:
            raise ExportError(
                f"{asked.out} cannot be written: {error.strerror or error}.", "Choose another."
            ) from error
    profile.write(asked.out)
    counts = profile.facts["counts"].items()
    counted = ", ".join(f"{count:,} {name if count > 1 else name.removesuffix('s')}" for name, count in counts if count)
    print(f"{asked.out}: {profile.model} on {profile.corpus} ({counted}), {len(profile.tables)} tables")
    for line in profile.facts["left_out_first"][:5]:
        print(f"mha-viz: left out: {one_line(line)}", file=sys.stderr)
    if profile.facts["left_out"] > 5:
        print(f"mha-viz: {profile.facts['left_out']} left out in all; profile.json names them.", file=sys.stderr)


def _corpus(name: str) -> Any:
    from mha_viz.corpus import grammar, treebank

    if name == BUILT_IN:
        return grammar.corpus()
    path = Path(name)
    try:
        if path.is_file() and path.stat().st_size > treebank.MAX_BYTES:
            treebank.too_large(path.name, path.stat().st_size)
        return treebank.read(path.read_bytes(), path.name)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise CorpusError(
            f"{name[:200]} cannot be read: {said.lower()}.", f"Name a file, or {BUILT_IN} for the built-in corpus."
        ) from error
