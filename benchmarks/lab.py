"""Compare the time that the lab estimates next to *Run* with the time until the result is ready."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.results import Row, Sample, Target, write
from mha_viz.app.lab import trainings
from mha_viz.app.service.jobs import QUEUES
from mha_viz.lab.lab import EXPERIMENTS, HEAD_COUNT, IDENTICAL, PENALTY, RANDOM, REMOVAL, SPLIT_INPUT
from mha_viz.lab.record import Settings
from mha_viz.numerals import duration

MAX_FACTOR = 2  # maximum ratio of the longer time to the shorter

RUNS = (
    replace(EXPERIMENTS[IDENTICAL].default, seed=1, steps=30),
    replace(EXPERIMENTS[IDENTICAL].default, seed=1),
    replace(EXPERIMENTS[RANDOM].default, seed=1, heads=16, d_model=64),
    replace(EXPERIMENTS[PENALTY].default, seed=1, steps=800),
    replace(EXPERIMENTS[SPLIT_INPUT].default, seed=1),
    replace(EXPERIMENTS[REMOVAL].default, seed=1, heads=16, d_model=48),
    replace(EXPERIMENTS[HEAD_COUNT].default, seed=1),
)


def main(results: Path, quick: bool = False) -> None:
    """Measure, print, write ``results/lab.json``. ``quick``: the first two runs only."""
    rows = [row for settings in RUNS[: 2 if quick else None] for row in _compare_prediction(settings)]
    write(results, "lab", "Trainings in the lab", "estimated", rows, f"NumPy {np.__version__}, one thread")


def _compare_prediction(settings: Settings) -> list[Row]:
    """Run once as on a new server, which has measured nothing yet, and once more with another seed."""
    rows = []
    QUEUES[trainings.KIND].clear()
    trainings.load_paces.clear()
    for run_name, run_settings in (("first run", settings), ("next run", replace(settings, seed=2))):
        estimate, start = trainings.estimate_seconds(run_settings), time.perf_counter()
        job = trainings.start(run_settings)
        while not job.wait(0.1):
            job.heartbeat()
        if job.error is not None:
            raise job.error
        seconds = time.perf_counter() - start
        ratio = max(seconds / estimate, estimate / seconds)
        name = f"{_name_run(settings)}, {run_name}"
        rows += [
            Row(name, Sample((seconds,)), "s", Sample((estimate,)), details={"shown": duration(estimate)}),
            Row(
                f"{name}: the longer of the two, beside the shorter",
                Sample((ratio,)),
                "×",
                target=Target("below", MAX_FACTOR),
            ),
        ]
    return rows


def _name_run(settings: Settings) -> str:
    return f"{settings.experiment}, h = {settings.heads}, d_model = {settings.d_model}, {settings.steps:,} steps"
