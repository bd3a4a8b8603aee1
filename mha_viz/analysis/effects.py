"""The effects of switching heads off on one text, as numbers, and the steps in which they are measured, wherever the
model runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.attention import Head
from mha_viz.attention.answers import by_head
from mha_viz.errors import MeansMissing
from mha_viz.process.steps import Steps, each, ranges

if TYPE_CHECKING:
    import pandas as pd

DRAWS = 20  # draws of random directions beside the heads
PIECES = 512  # tokens of all variants of a text in one batch
SENTENCES = 50  # that are read in one step for the mean outputs of heads

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

    def table(self) -> pd.DataFrame:
        """A row for each head, ``L0H0`` first: ``sentence``; where there is a question ``answer``, ``score`` and
        ``changed``; ``rank`` by the effect on the answer, or else on the sentence, from 1."""
        is_answered = not np.isnan(self.answer).any()
        names = ("sentence", "answer", "score", "changed") if is_answered else ("sentence",)
        ranks = np.empty(self.sentence.shape)
        for rank, head in enumerate(self.ranked("answer" if is_answered else "sentence"), 1):
            ranks[head] = rank
        columns: dict[str, Numbers] = {name: getattr(self, name) for name in names}
        return by_head(columns | {"rank": ranks}).astype({"rank": int})


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


def mean_outputs(sentences: int, measure: Callable[[range], object]) -> Steps[None]:
    """Have the mean outputs of heads measured over so many sentences, some of them a step; once more from the first if
    those before are missing, because the process that had read them was replaced."""
    parts = ranges(0, sentences, SENTENCES)
    try:
        yield from each(parts, measure)
    except MeansMissing:
        yield from each(parts, measure)


def together(n: int, changes: Callable[[], Changes], at_random: Callable[[range], Numbers]) -> Steps[Together]:
    """Measure several heads at once on a text of ``n`` tokens, some random draws a step. ``changes``: those in the one
    variant without these heads; ``at_random``: the effects [2, draw] of some draws on the sentence and the answer."""
    sentence, tokens, answer, score, changed = (field[0] for field in changes())
    parts = yield from each(ranges(0, DRAWS, at_once(n)), at_random)
    random = np.concatenate(parts, axis=1)
    return Together(float(sentence), tokens, float(answer), float(score), float(changed), *random)


def each_at_random(heads: Sequence[Head], n: int, at_random: Callable[[Head, range], Numbers]) -> Steps[Numbers]:
    """[2, head, draw]: what random directions in place of each head change on a text of ``n`` tokens. ``at_random``: as
    for :func:`together`, of one head."""
    draws = ranges(0, DRAWS, at_once(n))
    parts = yield from each([(head, some) for head in heads for some in draws], lambda one: at_random(*one))
    return np.concatenate(parts, axis=1).reshape(2, len(heads), DRAWS)


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


def at_once(n: int) -> int:
    """How many variants of a text of ``n`` tokens fit into one batch."""
    return max(1, PIECES // n)


def every_effect(layers: int, heads: int, n: int, part: Callable[[int, range], Effects]) -> Steps[Effects]:
    """Measure all heads of a model on a text of ``n`` tokens. ``part``: the effects of some heads of one layer, as many
    as fit into one batch."""
    some = ranges(0, heads, at_once(n))
    parts = yield from each([(layer, of_layer) for layer in range(layers) for of_layer in some], lambda at: part(*at))
    rows = [parts[first : first + len(some)] for first in range(0, len(parts), len(some))]
    whole = [Effects(*(np.concatenate(field, axis=1) for field in zip(*row, strict=True))) for row in rows]
    return Effects(*(np.concatenate(field) for field in zip(*whole, strict=True)))
