"""Which of the expectations that a visitor may have of an experiment its result fulfils. Every outcome is computed from
the numbers of the result; none is fixed in advance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from mha_viz.numerals import apart, counted, decimal, percent, small
from mha_viz.training.record import Result
from mha_viz.training.statements import ALIKE, LEARNED, NOTICED, pairs, removable

MANY_POINTS = 0.1  # loss of accuracy that counts as large


class Outcome(NamedTuple):
    """What a result shows: one of the options, and the numbers behind it as a clause."""

    option: str
    evidence: str


def in_one_sentence(options: Mapping[str, str], outcome: Outcome, guess: str | None) -> str:
    """One sentence on what happened, beside the option that a visitor expected, if any. ``options``: a clause each."""
    lead = "" if guess is None else "As you expected, " if guess == outcome.option else "Not as you expected: "
    sentence = f"{lead}{options[outcome.option]}; {outcome.evidence}."
    return sentence[:1].upper() + sentence[1:]


def of_identical(result: Result) -> Outcome:
    """What a result shows of equal heads."""
    run = result.runs[0]
    largest = float(max(run.difference[-1].max(), run.output_difference[-1].max()))
    after = counted(int(run.steps[-1]), "step")
    if run.same[-1].all():
        return Outcome("equal", f"after {after} not one weight differs")
    return Outcome("apart", f"after {after} two of their weights differ by {_size(largest)}")


def of_output(result: Result) -> Outcome:
    """What a result shows of heads that differ in W_O alone."""
    run = result.runs[0]
    apart = np.flatnonzero(pairs(run.difference).min(axis=1) > 0)
    if not len(apart):
        return Outcome("never", f"no weight of W_Q, W_K or W_V differs after {counted(int(run.steps[-1]), 'step')}")
    first = int(apart[0])
    smallest = _size(float(pairs(run.difference[first]).min()))
    return Outcome(
        "first" if run.steps[first] <= 1 else "later",
        f"at step {int(run.steps[first]):,} any two differ by {smallest} or more",
    )


def of_random(result: Result) -> Outcome:
    """What a result shows of heads that start at random."""
    values = pairs(result.runs[0].divergence[-1])
    near = int((values < ALIKE).sum())
    return Outcome(
        "alike" if near else "different",
        f"the two most alike differ by {apart(float(values.min()))} in the end (100%: nothing in common)",
    )


def of_penalty(result: Result) -> Outcome:
    """What a result shows of the penalty."""
    without, with_it = result.runs
    lost = without.right - with_it.right
    option = "fewer" if lost > NOTICED else "more" if lost < -NOTICED else "same"
    return Outcome(option, f"{percent(without.right)} without the penalty, {percent(with_it.right)} with it")


def of_count(result: Result) -> Outcome:
    """What a result shows of the number of heads."""
    one, last = result.runs[0], result.runs[-1]
    best = max(result.runs, key=lambda run: (run.right, -run.heads))
    option = "one" if best is one else "most" if best is last else "between"
    numbers = [(counted(run.heads, "head"), percent(run.right)) for run in dict.fromkeys((one, best, last))]
    return Outcome(option, ", ".join(f"{heads} {right}" for heads, right in numbers))


def of_cut(result: Result) -> Outcome:
    """What a result shows of the ways to cut the vector."""
    full, chunks = result.runs[:2]
    lost = full.right - chunks.right
    option = "many" if lost > MANY_POINTS else "few" if lost > NOTICED else "none"
    return Outcome(option, f"{percent(full.right)} right with the whole vector, {percent(chunks.right)} with chunks")


def of_removal(result: Result) -> Outcome:
    """What a result shows of removed heads."""
    removal, heads = result.removal, result.runs[0].heads
    assert removal is not None
    spare = removable(removal.least)
    option = "none" if not spare else "half" if spare <= heads / 2 else "most"
    return Outcome(option, f"{spare} of {heads} can go before right answers fall by more than one point")


def of_pair(result: Result) -> Outcome:
    """What a result shows of four heads of which two start equal, beside three."""
    three, four = result.runs
    numbers = f"{percent(four.right)} right, as against {percent(three.right)} with three heads"
    return Outcome("three" if four.same[-1, -2, -1] else "four", numbers)


def of_current(result: Result) -> Outcome:
    """What a result shows of heads that a task does not need."""
    removal, heads = result.removal, result.runs[0].heads
    assert removal is not None
    first, last = float(removal.least[0]), float(removal.least[-1])
    option = "none" if first - last <= NOTICED else "some" if last > LEARNED else "all"
    return Outcome(option, f"{percent(first)} right with {counted(heads, 'head')}, {percent(last)} with none")


def _size(value: float) -> str:
    return "0" if value == 0 else decimal(value, 3) if value >= 0.001 else small(value)
