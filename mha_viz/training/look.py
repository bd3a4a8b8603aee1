"""What to look at in a result: one or two sentences with the numbers of the result that is shown."""

from __future__ import annotations

import numpy as np

from mha_viz.numerals import counted, decimal, percent
from mha_viz.training.record import Array, Result
from mha_viz.training.statements import ALIKE, pairs, removable


def of_identical(result: Result) -> str:
    """What to look at in a training whose heads start equal."""
    run = result.runs[0]
    largest = float(pairs(run.divergence).max())
    if largest == 0:
        return "All maps are the same picture at every step: the heads share one pattern and must do two jobs with it."
    return f"The maps are not all the same: two of them differ by up to {largest:.4f} nats."


def of_output(result: Result) -> str:
    """What to look at in a training whose heads differ in W_O alone."""
    run = result.runs[0]
    differ = pairs(run.divergence).mean(axis=1) > ALIKE
    maps = (
        f"the maps are clearly different (more than {ALIKE:.3f} nats) from step {_step(run.steps, differ)} on"
        if differ.any()
        else f"the maps are still alike at step {int(run.steps[-1]):,}"
    )
    return (
        f"At step 0 the gradients already differ (cosines {_range(pairs(run.gradient_cosines[0]))}), the weights "
        f"differ from step {_step(run.steps, pairs(run.difference).min(axis=1) > 0)} on, and {maps}."
    )


def of_random(result: Result) -> str:
    """What to look at in a training whose heads start at random."""
    run = result.runs[0]
    apart = pairs(run.divergence).mean(axis=1)
    return (
        f"The mean divergence of the maps of two heads goes from {apart[0]:.3f} nats at step 0 to {apart[-1]:.3f} at "
        f"step {int(run.steps[-1]):,}. Over all steps the cosines of their weights stay "
        f"{_range(pairs(run.weight_cosines))}."
    )


def of_penalty(result: Result) -> str:
    """What to look at in a training with the penalty."""
    without, with_it = result.runs
    shared = pairs(without.overlap[-1]).mean(), pairs(with_it.overlap[-1]).mean()
    return (
        f"Compare the two trainings: rows of two heads overlap by {shared[0]:.3f} without the penalty and by "
        f"{shared[1]:.3f} with it, while the loss of the answers goes from {without.loss[-1]:.4f} to "
        f"{with_it.loss[-1]:.4f}."
    )


def of_count(result: Result) -> str:
    """What to look at where numbers of heads are compared."""
    best = max(result.runs, key=lambda run: (run.right, -run.heads))
    one, last = result.runs[0], result.runs[-1]
    return (
        f"Right answers by number of heads: {percent(one.right)} with one, {percent(best.right)} with "
        f"{best.heads} and {percent(last.right)} with {last.heads}, each with {one.parameters:,} parameters."
    )


def of_cut(result: Result) -> str:
    """What to look at where ways to cut the vector are compared."""
    each = [f"{run.label} {percent(run.right)} with {run.parameters:,}" for run in result.runs]
    return f"Right answers and parameters of each cut: {'; '.join(each)}."


def of_removal(result: Result) -> str:
    """What to look at where heads are removed."""
    removal = result.removal
    assert removal is not None
    spare = removable(removal.least)
    if spare == len(removal.order):
        return "The blue curve never falls by more than a point: this layer has learned nothing that could be lost."
    return (
        f"In the chart of heads removed, the blue curve stays up while {counted(spare, 'head')} "
        f"{'is' if spare == 1 else 'are'} removed; without "
        f"H{int(removal.order[spare])}, the next, it falls to {percent(float(removal.least[spare + 1]))}."
    )


def _step(steps: Array, holds: Array) -> str:
    """The first recorded step from which something holds at every later one too."""
    fails = np.flatnonzero(~holds)
    after = int(fails[-1]) + 1 if len(fails) else 0
    return f"{int(steps[min(after, len(steps) - 1)]):,}"


def _range(values: Array) -> str:
    low, high = decimal(float(values.min())), decimal(float(values.max()))
    return f"at {low}" if low == high else f"between {low} and {high}"
