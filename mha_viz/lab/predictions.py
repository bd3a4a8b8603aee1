"""Decide which prediction a result fulfils, among those that a visitor can choose.

Every outcome is computed from the numbers of the result; none is fixed in advance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from mha_viz.analysis.distance import LN2
from mha_viz.lab.jobs import find_jobs, has_shared_job
from mha_viz.lab.record import Result
from mha_viz.lab.statements import LEARNED_ACCURACY, NOTICED_LOSS, count_removable, select_pairs
from mha_viz.numerals import counted, decimal, format_divergence, format_small, percent

LARGE_LOSS = 0.1  # loss of accuracy that counts as large


class Outcome(NamedTuple):
    """The option that a result fulfils, with the numbers behind it as a clause, which may be empty."""

    option: str
    evidence: str = ""


def write_verdict(options: Mapping[str, str], outcome: Outcome, guess: str | None, jobs: str = "") -> str:
    """Describe the outcome, whether the visitor's guess was right, and the jobs of the heads.

    ``options`` holds a clause for each option. ``jobs`` is a separate sentence, see :mod:`mha_viz.lab.jobs`.
    """
    lead = "" if guess is None else "You were right: " if guess == outcome.option else "Not quite: "
    sentence = "; ".join(filter(None, (f"{lead}{options[outcome.option]}", outcome.evidence)))
    return f"{sentence[:1].upper()}{sentence[1:]}. {jobs}".strip()


def decide_identical(result: Result) -> Outcome:
    """Decide whether equal heads stay equal."""
    run = result.runs[0]
    largest_difference = float(max(run.difference[-1].max(), run.output_difference[-1].max()))
    steps = counted(int(run.steps[-1]), "step")
    if run.same[-1].all():
        return Outcome("equal", f"after {steps} not one weight differs")
    return Outcome("apart", f"after {steps} two of their weights differ by {_format_size(largest_difference)}")


def decide_output(result: Result) -> Outcome:
    """Decide when heads that start with different W_O only begin to differ."""
    run = result.runs[0]
    different_indices = np.flatnonzero(select_pairs(run.difference).min(axis=1) > 0)
    if not len(different_indices):
        return Outcome("never", f"no weight of W_Q, W_K or W_V differs after {counted(int(run.steps[-1]), 'step')}")
    first_index = int(different_indices[0])
    smallest = _format_size(float(select_pairs(run.difference[first_index]).min()))
    return Outcome(
        "first" if run.steps[first_index] <= 1 else "later",
        f"at step {int(run.steps[first_index]):,} any two differ by {smallest} or more",
    )


def decide_random(result: Result) -> Outcome:
    """Decide whether two heads that start at random do the same job on the maps."""
    return Outcome("alike" if has_shared_job(find_jobs(result.runs[0].maps[-1], result.places)) else "different")


def decide_penalty(result: Result) -> Outcome:
    """Decide whether the penalty makes the maps differ more; the evidence includes the accuracies."""
    divergence, penalised_divergence = (float(select_pairs(run.divergence[-1]).mean()) for run in result.runs)
    gain = (penalised_divergence - divergence) / LN2
    option = "more" if gain > NOTICED_LOSS else "less" if gain < -NOTICED_LOSS else "same"
    accuracies = " and ".join(percent(run.final_accuracy) for run in result.runs)
    return Outcome(
        option,
        f"maps differ by {format_divergence(divergence)} without the penalty, by "
        f"{format_divergence(penalised_divergence)} with it; right answers: {accuracies}",
    )


def decide_count(result: Result) -> Outcome:
    """Decide which number of heads answers best."""
    single, last = result.runs[0], result.runs[-1]
    best = max(result.runs, key=lambda run: (run.final_accuracy, -run.heads))
    option = "one" if best is single else "most" if best is last else "between"
    numbers = [(counted(run.heads, "head"), percent(run.final_accuracy)) for run in dict.fromkeys((single, best, last))]
    return Outcome(option, ", ".join(f"{heads} {accuracy}" for heads, accuracy in numbers))


def decide_cut(result: Result) -> Outcome:
    """Decide by how much accuracy falls when each head gets one chunk of the vector."""
    full, chunks = result.runs[:2]
    lost_accuracy = full.final_accuracy - chunks.final_accuracy
    option = "many" if lost_accuracy > LARGE_LOSS else "few" if lost_accuracy > NOTICED_LOSS else "none"
    full_accuracy, chunk_accuracy = percent(full.final_accuracy), percent(chunks.final_accuracy)
    return Outcome(option, f"{full_accuracy} right with the whole vector, {chunk_accuracy} with chunks")


def decide_removal(result: Result) -> Outcome:
    """Decide how many heads can be removed without harm."""
    removal, heads = result.removal, result.runs[0].heads
    assert removal is not None
    removable_count = count_removable(removal.least)
    option = "none" if not removable_count else "half" if removable_count <= heads / 2 else "most"
    return Outcome(option, f"{removable_count} of {heads} can be removed before accuracy falls by more than one point")


def decide_pair(result: Result) -> Outcome:
    """Decide whether two of four heads that start equal are still equal, and compare with three heads."""
    three, four = result.runs
    evidence = f"{percent(four.final_accuracy)} right, as against {percent(three.final_accuracy)} with three heads"
    return Outcome("three" if four.same[-1, -2, -1] else "four", evidence)


def decide_current(result: Result) -> Outcome:
    """Decide how many right answers are lost without heads that the task does not need."""
    removal, heads = result.removal, result.runs[0].heads
    assert removal is not None
    initial, final = float(removal.least[0]), float(removal.least[-1])
    option = "none" if initial - final <= NOTICED_LOSS else "some" if final > LEARNED_ACCURACY else "all"
    return Outcome(option, f"{percent(initial)} right with {counted(heads, 'head')}, {percent(final)} with none")


def _format_size(value: float) -> str:
    return "0" if value == 0 else decimal(value, 3) if value >= 0.001 else format_small(value)
