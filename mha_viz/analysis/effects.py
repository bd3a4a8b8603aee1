"""The effects of switching heads off on one text, as numbers, and how the work is divided and put together again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.attention import Head

DRAWS = 20  # draws of random directions beside the heads
PIECES = 512  # tokens of all variants of a text in one batch

Numbers = npt.NDArray[np.float64]


class Changes(NamedTuple):
    """The changes to one text in variants of a model, each compared with the whole model.

    ``sentence`` [variant]: 1 − cos(e, e′) of the sentence vectors. ``tokens`` [variant, n]: 1 − cos of each token's
    last state. ``answer`` [variant]: KL of the probabilities of all words in nats, or the size of the change of a
    cosine; ``score`` [variant]: how much the score has risen; ``changed`` [variant]: 1 where another word is the most
    probable one, else 0. These three are NaN if there is no question.
    """

    sentence: Numbers
    tokens: Numbers
    answer: Numbers
    score: Numbers
    changed: Numbers


class Effects(NamedTuple):
    """The effect of switching off each head of a model alone on one text.

    ``sentence`` [layer, head]: 1 − cos(e, e′) of the sentence vectors before and after, each the mean of the last
    states. ``tokens`` [layer, head, n]: 1 − cos of each token's last state. ``answer``, ``score`` and ``changed``
    [layer, head]: as in :class:`Changes`. ``attention`` [layer, head, layer, head]: the Jensen–Shannon divergence in
    nats, mean over rows, between every later head's attention before and after; 0 for heads that are not later.
    """

    sentence: Numbers
    tokens: Numbers
    answer: Numbers
    score: Numbers
    changed: Numbers
    attention: Numbers

    def on(self, what: str) -> Numbers:
        """[layer, head]: the effect on the "sentence" or on the "answer"."""
        return self.answer if what == "answer" else self.sentence

    def ranked(self, what: str = "sentence") -> tuple[Head, ...]:
        """All heads, beginning with the one whose removal changes ``what`` most; among equal ones the earlier."""
        return ranked(self.on(what))


class Together(NamedTuple):
    """The effect of switching off several heads at once on one text: ``sentence``, ``tokens`` [n], ``answer``,
    ``score`` and ``changed`` as in :class:`Effects`; ``random`` and ``random_answer`` [draw]: ``sentence`` and
    ``answer`` if as much is removed in random directions instead."""

    sentence: float
    tokens: Numbers
    answer: float
    score: float
    changed: float
    random: Numbers
    random_answer: Numbers


def together(changes: Changes, parts: Sequence[Numbers]) -> Together:
    """The result from the changes in one variant and the [2, draw] of :func:`draws` in order."""
    sentence, tokens, answer, score, changed = (field[0] for field in changes)
    return Together(
        float(sentence), tokens, float(answer), float(score), float(changed), *np.concatenate(parts, axis=1)
    )


def agreement(first: Numbers, second: Numbers) -> float:
    """Spearman's rank correlation of two numbers per head; equal numbers share the mean of their ranks. NaN if all
    numbers of one kind are equal."""
    one, other = _ranks(first.ravel()), _ranks(second.ravel())
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return float("nan")
    return float(np.corrcoef(one, other)[0, 1])


def _ranks(values: Numbers) -> Numbers:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = counts.cumsum()
    ranks: Numbers = (ends - (counts - 1) / 2)[places]
    return ranks


def ranked(values: Numbers) -> tuple[Head, ...]:
    """All heads by a number per head, [layer, head], largest first; among equal ones the earlier."""
    order = np.argsort(-values, axis=None, kind="stable")
    return tuple(Head(*divmod(int(at), values.shape[1])) for at in order)


def batches(layers: int, heads: int, n: int) -> Iterator[tuple[int, range]]:
    """One layer and some of its heads at a time, as many as have variants of ``n`` tokens that fit into one batch."""
    at_once = max(1, PIECES // n)
    for layer in range(layers):
        for first in range(0, heads, at_once):
            yield layer, range(first, min(heads, first + at_once))


def draws(n: int) -> list[range]:
    """The numbers of the random draws, as many at a time as fit into one batch of a text of ``n`` tokens."""
    at_once = max(1, PIECES // n)
    return [range(first, min(DRAWS, first + at_once)) for first in range(0, DRAWS, at_once)]


def all_effects(parts: Iterable[tuple[int, Effects]]) -> Effects:
    """The effects of all heads of a model, from those of the :func:`batches` in order, each with its layer."""
    layers: dict[int, list[Effects]] = {}
    for layer, of_heads in parts:
        layers.setdefault(layer, []).append(of_heads)
    rows = [Effects(*(np.concatenate(field, axis=1) for field in zip(*row, strict=True))) for row in layers.values()]
    return Effects(*(np.concatenate(field) for field in zip(*rows, strict=True)))
