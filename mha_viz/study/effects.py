"""What changes in a model's answer, and in its other heads, when each head is switched off, for one text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.distance import entropy, jensen_shannon
from mha_viz.attention import Head, Weights
from mha_viz.models import ablation
from mha_viz.models.ablation import Substitute
from mha_viz.models.encoder import Encoder
from mha_viz.text import TokenizedText

DRAWS = 20  # random directions beside a head
SEED = 0

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Effects:
    """What switching off each head of a model alone does to one text.

    ``sentence`` [layer, head]: 1 − cos(e, e′) of the sentence vectors before and after, each the mean of the last
    states. ``tokens`` [layer, head, n]: 1 − cos of each token's last state. ``attention`` [layer, head, layer, head]:
    the Jensen–Shannon divergence in nats, mean over rows, of every later head's attention from what it was; 0 for heads
    that are not later. ``method``: "zero", "mean" or "uniform".
    """

    model: str
    text: TokenizedText
    method: str
    sentence: Numbers
    tokens: Numbers
    attention: Numbers

    def ranked(self) -> tuple[Head, ...]:
        """All heads, the one whose removal changes the sentence vector most first; of equal ones the earlier."""
        order = np.argsort(-self.sentence, axis=None, kind="stable")
        return tuple(Head(*divmod(int(at), self.sentence.shape[1])) for at in order)


def effects(
    encoder: Encoder,
    text: str,
    pair: str = "",
    method: str = "zero",
    means: Weights | None = None,
    progress: Callable[[float], None] | None = None,
) -> Effects:
    """The effects of all heads on one text: one pass a layer, in which its heads are variants of one batch.

    ``progress`` is called with the share that is done; what it raises ends the work. Raises as
    :func:`mha_viz.models.ablation.forked`.
    """
    by = ablation.substitute(encoder, method, means)
    reading = encoder.encode(text, pair)
    states = encoder.states(text, pair).astype(np.float64)[0]
    layers, heads, n = encoder.layers, encoder.heads, len(states)
    tokens, sentence = np.zeros((layers, heads, n)), np.zeros((layers, heads))
    attention = np.zeros((layers, heads, layers, heads))
    before = reading.weights.reshape(layers, heads, -1)  # [layer, head, query · key]
    for layer in range(layers):
        after = ablation.forked(encoder, layer, ablation.each_alone, by, text, pair)
        changed = after.states.astype(np.float64)
        tokens[layer] = _apart(states, changed)
        sentence[layer] = _apart(states.mean(0), changed.mean(1))
        for later, weights in enumerate(after.weights, layer + 1):
            rows = weights.swapaxes(0, 1).reshape(heads, heads, -1)  # [off, head, query · key]
            for off in range(heads):
                attention[layer, off, later] = _divergences(before[later], rows[off]) / n
        if progress is not None:
            progress((layer + 1) / layers)
    return Effects(encoder.name, reading.queries, method, sentence, tokens, attention)


def at_random(
    encoder: Encoder,
    head: Head,
    text: str,
    pair: str = "",
    by: Substitute | None = None,
    draws: int = DRAWS,
    seed: int = SEED,
) -> Numbers:
    """1 − cos of the sentence vectors, [draw], when random directions are taken away in place of ``head``: as many as
    it has columns, and for each token as much as is lost with it."""
    by = by or ablation.substitute(encoder, "zero")
    variants = ablation.random_directions(head.head, draws, seed)
    changed = ablation.forked(encoder, head.layer, variants, by, text, pair).states.astype(np.float64)
    return _apart(encoder.states(text, pair).astype(np.float64)[0].mean(0), changed.mean(1))


def _apart(first: Numbers, second: Numbers) -> Numbers:
    """1 − cos over the last axis; 0 where both vectors are equal, 1 where one of them is zero."""
    lengths = np.linalg.norm(first, axis=-1) * np.linalg.norm(second, axis=-1)
    cosines = np.vecdot(first, second) / np.where(lengths == 0, 1.0, lengths)
    apart: Numbers = np.where((first == second).all(-1), 0.0, np.clip(1 - cosines, 0.0, 2.0))
    return apart


def _divergences(first: npt.NDArray[np.float32], second: npt.NDArray[np.float32]) -> Numbers:
    """[head]: the divergence of two matrices, summed over rows; [head, query · key] each."""
    return jensen_shannon(entropy((first + second) / 2), entropy(first), entropy(second))
