"""The possible expectations of an experiment, asked before it runs, and what its result shows. Every outcome is
computed from the numbers of the result; none is fixed in advance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from mha_viz.numerals import counted, decimal, percent, small
from mha_viz.training.record import COUNT, CUT, IDENTICAL, OUTPUT, PENALTY, RANDOM, REMOVAL, Result
from mha_viz.training.statements import ALIKE, NOTICED, alike_of, pairs, removable

MANY_POINTS = 0.1  # loss of accuracy that counts as large


class Outcome(NamedTuple):
    """What a result shows: one of the options, and the numbers behind it as a clause."""

    option: str
    evidence: str


class Prediction(NamedTuple):
    """A question about a result with its options, each a clause by its name, and the function that decides between
    them."""

    question: str
    options: Mapping[str, str]
    outcome: Callable[[Result], Outcome]


def compared(expected: str, result: Result) -> str:
    """One sentence on what was expected and what happened. ``expected``: the name of an option."""
    prediction = PREDICTIONS[result.settings.experiment]
    outcome = prediction.outcome(result)
    happened = prediction.options[outcome.option]
    if outcome.option == expected:
        return f"As you expected, {happened}: {outcome.evidence}."
    return f"You expected that {prediction.options[expected]}; in this run {happened}: {outcome.evidence}."


def _identical(result: Result) -> Outcome:
    run = result.runs[0]
    largest = float(max(run.difference[-1].max(), run.output_difference[-1].max()))
    after = counted(int(run.steps[-1]), "step")
    return Outcome(
        "equal" if bool(run.same[-1].all()) else "apart",
        f"after {after} the largest difference between two of their weights is {_size(largest)}",
    )


def _output(result: Result) -> Outcome:
    run = result.runs[0]
    apart = np.flatnonzero(pairs(run.difference).min(axis=1) > 0)
    if not len(apart):
        return Outcome("never", f"no weight of W_Q, W_K or W_V differs after {counted(int(run.steps[-1]), 'step')}")
    first = int(apart[0])
    smallest = _size(float(pairs(run.difference[first]).min()))
    return Outcome(
        "first" if run.steps[first] <= 1 else "later",
        f"any two heads differ by {smallest} or more at step {int(run.steps[first]):,}",
    )


def _random(result: Result) -> Outcome:
    values = pairs(result.runs[0].divergence[-1])
    near = int((values < ALIKE).sum())
    return Outcome(
        "alike" if near else "different",
        f"{alike_of(near, values.size)} a divergence below {ALIKE:.3f} nats in the end",
    )


def _penalty(result: Result) -> Outcome:
    without, with_it = result.runs
    lost = without.right - with_it.right
    option = "fewer" if lost > NOTICED else "more" if lost < -NOTICED else "same"
    return Outcome(option, f"{percent(without.right)} are right without the penalty, {percent(with_it.right)} with it")


def _count(result: Result) -> Outcome:
    one, last = result.runs[0], result.runs[-1]
    best = max(result.runs, key=lambda run: (run.right, -run.heads))
    option = "one" if best is one else "most" if best is last else "between"
    numbers = [(counted(run.heads, "head"), percent(run.right)) for run in dict.fromkeys((one, best, last))]
    return Outcome(option, ", ".join(f"{heads} {right}" for heads, right in numbers))


def _cut(result: Result) -> Outcome:
    full, chunks = result.runs[:2]
    lost = full.right - chunks.right
    option = "many" if lost > MANY_POINTS else "few" if lost > NOTICED else "none"
    return Outcome(
        option, f"{percent(full.right)} are right with the whole vector, {percent(chunks.right)} with chunks"
    )


def _removal(result: Result) -> Outcome:
    removal, heads = result.removal, result.runs[0].heads
    assert removal is not None
    spare = removable(removal.least)
    option = "none" if not spare else "half" if spare <= heads / 2 else "most"
    return Outcome(option, f"{spare} of {heads} can go before right answers fall by more than one point")


def _size(value: float) -> str:
    return "0" if value == 0 else decimal(value, 3) if value >= 0.001 else small(value)


PREDICTIONS: Mapping[str, Prediction] = MappingProxyType(
    {
        IDENTICAL: Prediction(
            "All heads begin with the same weights, W_O included. What will training do?",
            {"equal": "the heads stay equal", "apart": "the heads become different"},
            _identical,
        ),
        OUTPUT: Prediction(
            "W_Q, W_K and W_V begin equal in all heads, and only their slices of W_O differ. What will happen to W_Q, "
            "W_K and W_V?",
            {
                "never": "W_Q, W_K and W_V stay equal",
                "first": "W_Q, W_K and W_V differ after the first update",
                "later": "W_Q, W_K and W_V differ only after many updates",
            },
            _output,
        ),
        RANDOM: Prediction(
            "Every weight is random, and nothing in the loss keeps heads apart. How will they attend in the end?",
            {"alike": "at least two heads attend nearly alike", "different": "all heads attend differently"},
            _random,
        ),
        PENALTY: Prediction(
            "The loss now punishes heads that look at the same words. What will happen to the right answers?",
            {
                "more": "there are more right answers",
                "same": "the share of right answers stays within one point",
                "fewer": "there are fewer right answers",
            },
            _penalty,
        ),
        COUNT: Prediction(
            "Layers with 1 head, with several and with very many have the same size. Which will answer best?",
            {"one": "one head answers best", "between": "a number in between answers best",
             "most": "the largest number of heads answers best"},
            _count,
        ),
        CUT: Prediction(
            "Each head is fed its own chunk of the vector in place of the whole. What will that cost?",
            {"none": "it costs at most one point of right answers", "few": "it costs one to ten points",
             "many": "it costs more than ten points"},
            _cut,
        ),
        REMOVAL: Prediction(
            "Heads are removed after training, the least important first. How many can go without harm?",
            {"none": "none can go", "half": "up to half of them can go", "most": "more than half of them can go"},
            _removal,
        ),
    }
)  # fmt: skip
