"""What a run of the lab says, worked out from the run itself: questions with yes or no and the numbers behind it.

Nothing here is written beforehand: a run in which something does not hold says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import log
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from mha_viz.training.record import (
    COUNT,
    CUT,
    IDENTICAL,
    OUTPUT,
    PENALTY,
    RANDOM,
    REMOVAL,
    Arm,
    Array,
    Result,
)
from mha_viz.training.tasks import CHANCE, RELATIONS, WORDS

LN2 = log(2)
ALIKE = 0.1 * LN2  # divergence below which two heads do nearly the same
NOTICED = 0.01  # a loss of accuracy that counts: one point
RELIES = 0.75  # mean weight on one word at which a head has settled on a relation
LOOKS = 2 / WORDS  # twice what even attention gives to a word: below it a head does not look there
SAME = 0.95  # cosine of weights above which two heads are nearly one
LEARNED = CHANCE + 0.1  # right answers below which a layer has learned next to nothing


class Statement(NamedTuple):
    """A question that the run answers. ``usual``: the answer that is expected, None where there is none."""

    question: str
    yes: bool
    evidence: str
    usual: bool | None = True

    @property
    def surprising(self) -> bool:
        """True when the run does not show what is expected."""
        return self.usual is not None and self.yes != self.usual


def statements(result: Result) -> tuple[Statement, ...]:
    """What this run says."""
    return tuple(_OF[result.settings.experiment](result))


def pairs(matrix: Array) -> Array:
    """The values of every two different heads, from [..., head, head]."""
    first, second = np.triu_indices(matrix.shape[-1], 1)
    found: Array = matrix[..., first, second]
    return found


def pair_names(heads: int) -> tuple[tuple[int, int], ...]:
    """The two heads of each value that :func:`pairs` gives."""
    return tuple((int(a), int(b)) for a, b in zip(*np.triu_indices(heads, 1), strict=True))


def _identical(result: Result) -> list[Statement]:
    arm = result.arms[0]
    last = int(arm.steps[-1])
    return [
        Statement(
            f"Are the {arm.heads} heads bit-identical after {_steps(last)}?",
            bool(arm.same[-1].all()),
            f"The largest difference between two of their weights is {_small(_apart(arm))}.",
        ),
        Statement(
            "Did they receive the same gradient all the time?",
            bool(pairs(arm.pulls).min() > 1 - 1e-4 and np.ptp(arm.gradients, axis=1).max() == 0),
            f"The smallest cosine between two heads' gradients at a recorded step is {pairs(arm.pulls).min():.4f}; "
            f"their norms differ by {_small(np.ptp(arm.gradients, axis=1).max())} at most.",
        ),
        Statement(
            "Do they share the work, one relation each?",
            bool(arm.both[-1] > 0.9),
            f"Every head gives {_looks(arm, 0)}. Right answers: {_accuracy(arm)}.",
            usual=False,
        ),
    ]


def _output(result: Result) -> list[Statement]:
    arm = result.arms[0]
    first = int(np.flatnonzero(arm.steps >= 1)[0])
    begin, handed = pairs(arm.pulls[0]), pairs(arm.output_pulls[0])
    apart = begin.max() < 1 - 1e-4
    together = handed.min() > 1 - 1e-4
    return [
        Statement(
            "Have the heads parted after the first step?",
            bool(pairs(arm.difference[0]).max() == 0 and pairs(arm.difference[first]).min() > 0),
            f"The largest difference in W_Q, W_K, W_V between two heads is {_small(pairs(arm.difference[0]).max())} at "
            f"step 0; after step {int(arm.steps[first])} the two that differ least differ by "
            f"{_small(pairs(arm.difference[first]).min())}.",
        ),
        Statement(
            "Were the gradients of W_Q, W_K, W_V different before that step?",
            bool(apart),
            f"Their cosines between heads lie between {begin.min():.3f} and {begin.max():.3f} at step 0"
            + (", although the weights are the same: the slices of W_O are all that differs." if apart else "."),
        ),
        Statement(
            "Was the gradient of W_O's slices the same?",
            bool(together),
            f"Smallest cosine {handed.min():.4f} at step 0"
            + (": all heads hand W_O the same vectors." if together else "."),
        ),
        Statement(
            f"Do they look at different words after {_steps(int(arm.steps[-1]))}?",
            bool(pairs(arm.divergence[-1]).mean() > ALIKE),
            f"The mean divergence of two heads goes from {pairs(arm.divergence[first]).mean():.4f} nats at step "
            f"{int(arm.steps[first])} to {pairs(arm.divergence[-1]).mean():.3f} (at most {LN2:.3f}).",
        ),
        _solved(arm),
    ]


def _random(result: Result) -> list[Statement]:
    arm = result.arms[0]
    begin, end = pairs(arm.weights[0]), pairs(arm.weights[-1])
    close = pairs(arm.divergence[-1])
    alike = [pair for pair, value in zip(pair_names(arm.heads), close, strict=True) if value < ALIKE]
    named = f": {', '.join(f'H{a} and H{b}' for a, b in alike[:6])}" if alike else ""
    return [
        Statement(
            "Are the heads different before training?",
            bool(begin.max() < SAME),
            f"The cosines of their weights lie between {_cosine(begin.min())} and {_cosine(begin.max())} at step 0.",
        ),
        Statement(
            f"Are they still different after {_steps(int(arm.steps[-1]))}?",
            bool(end.max() < SAME),
            f"The cosines of their weights lie between {_cosine(end.min())} and {_cosine(end.max())}; the loss has no "
            "term that would keep them apart.",
        ),
        Statement(
            "Do some heads look at nearly the same words in the end?",
            bool(alike),
            f"{len(alike)} of {len(close)} pairs have a divergence below {ALIKE:.3f} nats{named}. Different weights do "
            "not forbid the same habit.",
            usual=None,
        ),
        _solved(arm),
    ]


def _penalty(result: Result) -> list[Statement]:
    without, with_it = result.arms
    weight = result.settings.weight
    less = pairs(without.divergence[-1]).mean(), pairs(with_it.divergence[-1]).mean()
    shared = pairs(without.overlap[-1]).mean(), pairs(with_it.overlap[-1]).mean()
    lost = without.right - with_it.right
    return [
        Statement(
            "Does the penalty make the heads less alike?",
            bool(less[1] > less[0] and shared[1] < shared[0]),
            f"The mean divergence of two heads goes from {less[0]:.3f} to {less[1]:.3f} nats (at most {LN2:.3f}), the "
            f"overlap of their rows from {shared[0]:.3f} to {shared[1]:.3f}, ‖A Aᵀ − I‖² from "
            f"{without.penalty[-1]:.2f} to {with_it.penalty[-1]:.2f}.",
            usual=True if weight else None,
        ),
        Statement(
            "Does it cost loss?",
            bool(with_it.loss[-1] > without.loss[-1]),
            f"The loss of the answers ends at {_loss(without)} without it and at {_loss(with_it)} with λ = {weight:g}.",
            usual=True if weight else None,
        ),
        Statement(
            "Does it cost right answers?",
            bool(lost > NOTICED),
            f"{without.right:.1%} right without it, {with_it.right:.1%} with it.",
            usual=None,
        ),
    ]


def _count(result: Result) -> list[Statement]:
    one, *others = result.arms
    best, last = max(others, key=lambda arm: (arm.right, -arm.heads)), others[-1]
    costs = {(arm.parameters, arm.multiply_adds) for arm in result.arms}
    spread = bool(one.looks[-1].max() <= RELIES and one.looks[-1].min() > LOOKS)
    return [
        Statement(
            "Do several heads answer better than one?",
            bool(best.right > one.right + NOTICED),
            f"One head gives {one.right:.1%} right answers, {best.heads} heads {best.right:.1%}.",
        ),
        Statement(
            "Does one head spread its attention over both words?",
            spread,
            f"It gives {_looks(one, 0)}. Right: {_accuracy(one)}; guessing gives {CHANCE:.1%}.",
        ),
        Statement(
            "Do all cost the same?",
            len(costs) == 1,
            f"{one.parameters:,} parameters and {one.multiply_adds:,} multiply-adds for one head; "
            f"{last.parameters:,} and {last.multiply_adds:,} for {last.heads}.",
        ),
        Statement(
            "Can there be too many heads for the width?",
            bool(last.right < best.right - NOTICED),
            f"With {last.heads} heads a query has {result.settings.d_model // last.heads} "
            f"number{'s' if result.settings.d_model > last.heads else ''} to find a word by, and {last.right:.1%} are "
            f"right after {_steps(int(last.steps[-1]))}.",
            usual=None,
        ),
    ]


def _cut(result: Result) -> list[Statement]:
    full, chunks, shared, mixed = result.arms
    return [
        Statement(
            "Do chunks with their own small matrices save parameters?",
            chunks.parameters < full.parameters,
            f"{chunks.parameters:,} instead of {full.parameters:,}, and {chunks.multiply_adds:,} multiply-adds instead "
            f"of {full.multiply_adds:,}. W_O is {full.parameters // 4:,} of them in each.",
        ),
        Statement(
            "Does that cost right answers?",
            bool(full.right - chunks.right > NOTICED),
            f"{full.right:.1%} right when projected in full, {chunks.right:.1%} with chunks.",
            usual=None,
        ),
        Statement(
            "Does one matrix for all chunks cost more?",
            bool(chunks.right - shared.right > NOTICED),
            f"{shared.right:.1%} right with {shared.parameters:,} parameters. Each head sees another chunk; two of "
            f"them differ by {pairs(shared.divergence[-1]).mean():.3f} nats on average.",
            usual=None,
        ),
        Statement(
            "Do random chunks that overlap do as well as the whole vector?",
            bool(full.right - mixed.right <= NOTICED),
            f"{mixed.right:.1%} right with {mixed.parameters:,} parameters; each head sees "
            f"{_seen(result)} numbers of {result.settings.d_model}.",
            usual=None,
        ),
    ]


def _removal(result: Result) -> list[Statement]:
    removal, arm = result.removal, result.arms[0]
    assert removal is not None
    gone, learned = spared(removal.least), bool(removal.least[0] > LEARNED)
    by_chance = float(np.mean([spared(curve) for curve in removal.chance]))
    strongest = int(removal.order[-1])
    return [
        Statement(
            "Can heads be removed without harm?",
            gone > 0 and learned,
            ("" if learned else f"This layer has learned next to nothing: guessing gives {CHANCE:.1%}. ")
            + f"{gone} of {arm.heads} heads can go, least important first, before accuracy falls by more than a point "
            f"({removal.least[0]:.1%} → {removal.least[gone]:.1%}).",
        ),
        Statement(
            "Does importance find them better than chance?",
            bool(gone > by_chance and removal.least.mean() > removal.chance.mean()),
            f"In {len(removal.chance)} random orders {by_chance:.1f} heads can go on average. Half the heads removed: "
            f"{removal.least[arm.heads // 2]:.1%} right, at random {removal.chance[:, arm.heads // 2].mean():.1%}.",
        ),
        Statement(
            "Does the most important head matter?",
            bool(removal.most[0] - removal.most[1] > NOTICED),
            f"Without H{strongest} alone {removal.most[1]:.1%} are right; it gives {_looks(arm, strongest)}.",
        ),
    ]


def spared(curve: Array) -> int:
    """How many heads can go in this order before accuracy is more than a point below that of all heads."""
    below = np.flatnonzero(curve < curve[0] - NOTICED)
    return int(below[0]) - 1 if len(below) else len(curve) - 1


def _solved(arm: Arm) -> Statement:
    specialist = [int(arm.looks[-1, :, relation].argmax()) for relation in range(len(RELATIONS))]
    return Statement(
        "Do different heads take the two relations?",
        specialist[0] != specialist[1] and bool(arm.both[-1] > 0.9),
        f"{RELATIONS[0].capitalize()}: H{specialist[0]} ({arm.looks[-1, specialist[0], 0]:.2f} of its weight); "
        f"{RELATIONS[1]}: H{specialist[1]} ({arm.looks[-1, specialist[1], 1]:.2f}). Right answers: {_accuracy(arm)}.",
    )


def _apart(arm: Arm) -> float:
    """The largest difference between two heads' weights after the last step, W_O included."""
    return float(max(arm.difference[-1].max(), arm.output_difference[-1].max()))


def _seen(result: Result) -> int:
    return min(result.settings.d_model, 2 * result.settings.d_model // result.settings.heads)


def _looks(arm: Arm, head: int) -> str:
    weights = zip(arm.looks[-1, head], RELATIONS, strict=True)
    return " and ".join(f"{weight:.2f} of its weight to {relation}" for weight, relation in weights)


def _accuracy(arm: Arm) -> str:
    return ", ".join(f"{r} {share:.1%}" for share, r in zip(arm.accuracy[-1], RELATIONS, strict=True))


def _loss(arm: Arm) -> str:
    return f"{arm.loss[-1]:.5f}"


def _cosine(value: float) -> str:
    return f"{round(float(value), 2) + 0.0:.2f}"  # never -0.00


def _small(value: float) -> str:
    return "0" if value == 0 else f"{value:.2g}"


def _steps(count: int) -> str:
    return f"{count:,} step{'s' if count != 1 else ''}"


_OF: Mapping[str, Callable[[Result], list[Statement]]] = MappingProxyType(
    {
        IDENTICAL: _identical,
        OUTPUT: _output,
        RANDOM: _random,
        PENALTY: _penalty,
        COUNT: _count,
        CUT: _cut,
        REMOVAL: _removal,
    }
)
