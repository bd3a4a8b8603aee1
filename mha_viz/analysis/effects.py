"""Effects of ablating heads on one text, and generators that measure them step by step.

The callables that run the model are arguments, so the model may run in another process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.attention import Head
from mha_viz.attention.answers import make_head_table
from mha_viz.errors import MeansMissing
from mha_viz.process.steps import Steps, map_in_steps, split_range

if TYPE_CHECKING:
    import pandas as pd

DRAWS = 20  # random directions per head, for comparison
PIECES = 512  # maximum number of tokens in a batch, over all variants of a text
STEP_SENTENCES = 50  # sentences read per step to compute mean head outputs

Numbers = npt.NDArray[np.float64]


class Changes(NamedTuple):
    """Changes to one text in variants of a model, each compared with the unchanged model.

    Attributes:
        sentence: [variant], 1 − cos(e, e′) of the sentence vectors.
        tokens: [variant, n], 1 − cos of each token's last state.
        answer: [variant], KL of the probabilities of all words in nats, or the size of the change of a cosine.
        score: [variant], by how much the score has risen.
        changed: [variant], 1 where another word has become the most probable, else 0.

    ``answer``, ``score`` and ``changed`` are NaN if there is no question.
    """

    sentence: Numbers
    tokens: Numbers
    answer: Numbers
    score: Numbers
    changed: Numbers


class Effects(NamedTuple):
    """The effect of ablating each head of a model alone on one text.

    Attributes:
        sentence: [layer, head], 1 − cos(e, e′) of the sentence vectors before and after, each the mean of the last
            states.
        tokens: [layer, head, n], 1 − cos of each token's last state.
        answer, score, changed: [layer, head], as in :class:`Changes`.
        attention: [layer, head, layer, head], the Jensen–Shannon divergence in nats between every later head's
            attention before and after, averaged over rows; 0 for heads that are not later.
    """

    sentence: Numbers
    tokens: Numbers
    answer: Numbers
    score: Numbers
    changed: Numbers
    attention: Numbers

    def on(self, what: str) -> Numbers:
        """Return [layer, head], the effect on the "sentence" or on the "answer"."""
        return self.answer if what == "answer" else self.sentence

    def ranked(self, what: str = "sentence") -> tuple[Head, ...]:
        """Return all heads, largest effect on ``what`` first; of equal effects, the earlier head first."""
        return rank_heads(self.on(what))

    def table(self) -> pd.DataFrame:
        """Return a table with one row per head, ``L0H0`` first.

        The columns are ``sentence``; ``answer``, ``score`` and ``changed`` if there is a question; and ``rank`` from 1,
        by the effect on the answer or else on the sentence.
        """
        is_answered = not np.isnan(self.answer).any()
        names = ("sentence", "answer", "score", "changed") if is_answered else ("sentence",)
        ranks = np.empty(self.sentence.shape)
        for rank, head in enumerate(self.ranked("answer" if is_answered else "sentence"), 1):
            ranks[head] = rank
        columns: dict[str, Numbers] = {name: getattr(self, name) for name in names}
        return make_head_table(columns | {"rank": ranks}).astype({"rank": int})


class JointEffect(NamedTuple):
    """The effect of ablating several heads at once on one text.

    ``sentence``, ``tokens`` [n], ``answer``, ``score`` and ``changed`` are as in :class:`Effects`. ``random`` and
    ``random_answer`` [draw] are ``sentence`` and ``answer`` for an equal loss in random directions instead.
    """

    sentence: float
    tokens: Numbers
    answer: float
    score: float
    changed: float
    random: Numbers
    random_answer: Numbers


def measure_mean_outputs(sentences: int, measure: Callable[[range], object]) -> Steps[None]:
    """Measure the mean outputs of heads over this many sentences, a few per step.

    Start again if earlier means are missing, because the process that computed them was replaced.
    """
    parts = split_range(0, sentences, STEP_SENTENCES)
    try:
        yield from map_in_steps(parts, measure)
    except MeansMissing:
        yield from map_in_steps(parts, measure)


def measure_jointly(
    n: int, measure_changes: Callable[[], Changes], measure_random: Callable[[range], Numbers]
) -> Steps[JointEffect]:
    """Measure the effect of several heads at once on a text of ``n`` tokens, a few random draws per step.

    Args:
        n: the number of tokens.
        measure_changes: returns the changes without these heads, as one variant.
        measure_random: returns the effects [2, draw] of some draws on the sentence and the answer.
    """
    sentence, tokens, answer, score, changed = (field[0] for field in measure_changes())
    parts = yield from map_in_steps(split_range(0, DRAWS, count_variants_per_batch(n)), measure_random)
    random = np.concatenate(parts, axis=1)
    return JointEffect(float(sentence), tokens, float(answer), float(score), float(changed), *random)


def rank_heads(values: Numbers) -> tuple[Head, ...]:
    """Return all heads by ``values`` [layer, head], largest first; of equal values, the earlier head first."""
    order = np.argsort(-values, axis=None, kind="stable")
    return tuple(Head(*divmod(int(index), values.shape[1])) for index in order)


def count_variants_per_batch(n: int) -> int:
    """Compute the number of variants of a text of ``n`` tokens that fit into one batch."""
    return max(1, PIECES // n)


def measure_all_effects(layers: int, heads: int, n: int, measure: Callable[[int, range], Effects]) -> Steps[Effects]:
    """Measure the effect of each head of a model on a text of ``n`` tokens.

    ``measure`` returns the effects of some heads of one layer, as many as fit into one batch.
    """
    head_ranges = split_range(0, heads, count_variants_per_batch(n))
    parts = yield from map_in_steps(
        [(layer, head_range) for layer in range(layers) for head_range in head_ranges], lambda step: measure(*step)
    )
    rows = [parts[first : first + len(head_ranges)] for first in range(0, len(parts), len(head_ranges))]
    layer_effects = [Effects(*(np.concatenate(field, axis=1) for field in zip(*row, strict=True))) for row in rows]
    return Effects(*(np.concatenate(field) for field in zip(*layer_effects, strict=True)))
