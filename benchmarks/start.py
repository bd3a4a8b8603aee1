"""A command or a script in a new Python, compared with one that only imports the libraries that compute it.

Both take turns, on a sentence whose attention is not stored.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from benchmarks.results import Row, Sample, Target, write

SENTENCE = "The small animal slept because it was tired."
LIBRARIES = ("torch", "tokenizers", "safetensors")
MOST = Target("share", 1.7)
_COMMAND = "from mha_viz.cli import run; run()"
DONE = {
    "mha-viz figure, SVG": (_COMMAND, "figure", "heatmap", SENTENCE, "--head", "L3H1", "--out", "made.svg"),
    "mha-viz figure of repeater, SVG": (
        *(_COMMAND, "figure", "heatmap", SENTENCE, "--model", "repeater", "--head", "L1H1", "--out", "made.svg"),
    ),
    "mha-viz attention": (_COMMAND, "attention", SENTENCE, "--out", "made.npz"),
    'mv.load("minilm").encode(…)': (f"import mha_viz as mv; mv.load('minilm').encode({SENTENCE!r})",),
}


class Cost(NamedTuple):
    """The time of one process, in seconds."""

    elapsed: float
    processor: float


def main(results: Path, quick: bool = False) -> None:
    """Measure, print, write ``results/start.json``. ``quick``: fewer repetitions."""
    bare = f"import {', '.join(LIBRARIES)}"
    codes = {"": (bare,), **DONE}
    costs: dict[str, list[Cost]] = {what: [] for what in codes}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2 if quick else 5):
            for what, code in codes.items():
                costs[what].append(_run(code, Path(folder)))
    theirs = costs.pop("")
    rows = [row for what, ours in costs.items() for row in _make_rows(what, ours, theirs)]
    engine = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    write(results, "start", "A first picture in a new Python", bare, rows, engine)


def _make_rows(what: str, ours: list[Cost], theirs: list[Cost]) -> list[Row]:
    """Make the rows of the time that passes, and of that of the processor, which depends less on other programs."""
    elapsed, processor = (
        [Sample(tuple(getattr(cost, name) for cost in costs)) for costs in (ours, theirs)] for name in Cost._fields
    )
    return [
        Row(what, elapsed[0], "s", elapsed[1], MOST),
        Row(f"{what}: processor", processor[0], "s", processor[1], MOST),
    ]


def _run(code: tuple[str, ...], folder: Path) -> Cost:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-c", *code], cwd=folder, check=True, capture_output=True)
    elapsed, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(elapsed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
