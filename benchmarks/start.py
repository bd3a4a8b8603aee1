"""Time a command or script in a new Python process, compared with only importing the libraries that it needs.

Both take turns, on a sentence whose attention is not cached.
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
TARGET = Target("share", 1.7)
_COMMAND = "from mha_viz.cli import run; run()"
COMMANDS = {
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
    cpu: float


def main(results: Path, quick: bool = False) -> None:
    """Measure, print, write ``results/start.json``. ``quick``: fewer repetitions."""
    imports = f"import {', '.join(LIBRARIES)}"
    code_by_name = {"": (imports,), **COMMANDS}
    costs: dict[str, list[Cost]] = {name: [] for name in code_by_name}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2 if quick else 5):
            for name, code in code_by_name.items():
                costs[name].append(_run(code, Path(folder)))
    theirs = costs.pop("")
    rows = [row for name, ours in costs.items() for row in _make_rows(name, ours, theirs)]
    engine = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    write(results, "start", "A first picture in a new Python", imports, rows, engine)


def _make_rows(name: str, ours: list[Cost], theirs: list[Cost]) -> list[Row]:
    """Return rows for the elapsed time and for the CPU time, which depends less on other programs."""
    elapsed, cpu = (
        [Sample(tuple(getattr(cost, field) for cost in costs)) for costs in (ours, theirs)] for field in Cost._fields
    )
    return [
        Row(name, elapsed[0], "s", elapsed[1], TARGET),
        Row(f"{name}: processor", cpu[0], "s", cpu[1], TARGET),
    ]


def _run(code: tuple[str, ...], folder: Path) -> Cost:
    usage_before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-c", *code], cwd=folder, check=True, capture_output=True)
    elapsed, usage_after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(elapsed, usage_after.ru_utime + usage_after.ru_stime - usage_before.ru_utime - usage_before.ru_stime)
