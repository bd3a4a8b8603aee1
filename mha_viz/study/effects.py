"""What changes in a model's answer, and in its other heads, when heads are switched off, for one text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mha_viz.analysis import effects as analysis
from mha_viz.analysis.distance import entropy, jensen_shannon
from mha_viz.analysis.effects import Effects, Numbers, Together, batches, joined
from mha_viz.attention import Head, Weights
from mha_viz.models import ablation
from mha_viz.models.encoder import Encoder

SEED = 0  # of random directions


@dataclass(frozen=True)
class Case:
    """A text, perhaps with a second one, and how heads are switched off on it: ``method`` and ``means`` as in
    :func:`mha_viz.models.ablation.substitute`."""

    text: str
    pair: str = ""
    method: str = "zero"
    means: Weights | None = None

    @property
    def texts(self) -> tuple[str, str]:
        """Both texts, the second empty where there is one only."""
        return self.text, self.pair

    def substitute(self, encoder: Encoder) -> ablation.Substitute:
        """What the heads put out while they are off."""
        return ablation.substitute(encoder, self.method, self.means)


def part(
    encoder: Encoder,
    layer: int,
    heads: Sequence[int],
    case: Case,
) -> Effects:
    """The effects of some heads of one layer: ``sentence`` [1, head], ``tokens`` [1, head, n] and ``attention`` [1,
    head, layer, head]. One pass; raises as :func:`mha_viz.models.ablation.forked`."""
    by = case.substitute(encoder)
    forked = ablation.forked(encoder, layer, ablation.each_alone(heads), by, *case.texts)
    states = forked.states.astype(np.float64)  # first as it is, then each head off
    attention = np.zeros((len(heads), encoder.layers, encoder.heads))
    for later, weights in enumerate(forked.weights, layer + 1):
        rows = weights.swapaxes(0, 1).reshape(len(states), encoder.heads, -1)  # [variant, head, query · key]
        for off, changed in enumerate(rows[1:]):
            attention[off, later] = _divergences(rows[0], changed) / states.shape[1]
    vectors = states.mean(1)
    return Effects(_apart(vectors[0], vectors[1:])[None], _apart(states[0], states[1:])[None], attention[None])


def effects(
    encoder: Encoder,
    case: Case,
    progress: Callable[[float], None] = lambda _: None,
) -> Effects:
    """The effects of all heads on one text. ``progress`` is called with the share that is done; what it raises ends
    the work. Raises as :func:`part`."""
    work = list(batches(encoder.layers, encoder.heads, len(encoder.tokenize(*case.texts))))
    parts = []
    for done, (layer, heads) in enumerate(work, 1):
        parts.append((layer, part(encoder, layer, heads, case)))
        progress(done / len(work))
    return joined(parts)


def together(
    encoder: Encoder,
    heads: Sequence[Head],
    case: Case,
) -> Together:
    """The effect of heads that are off at once, beside as much in random directions (DRAWS draws). Raises as
    :func:`mha_viz.models.ablation.without`."""
    parts = [lost_at_random(encoder, heads, draws, case) for draws in draw_batches(encoder, case)]
    sentence, tokens = lost(encoder, heads, case)
    return Together(sentence, tokens, np.concatenate(parts))


def draw_batches(encoder: Encoder, case: Case) -> list[range]:
    """The numbers of the random draws, so many at a time as fit into one batch."""
    return analysis.draws(len(encoder.tokenize(*case.texts)))


def lost(
    encoder: Encoder,
    heads: Sequence[Head],
    case: Case,
) -> tuple[float, Numbers]:
    """``sentence`` and ``tokens`` of :func:`together`."""
    by, off = case.substitute(encoder), ablation.existing(encoder, heads)
    before = encoder.states(*case.texts)[0].astype(np.float64)
    after = ablation.states_without(encoder, off, by, *case.texts)[0].astype(np.float64)
    return float(_apart(before.mean(0), after.mean(0))), _apart(before, after)


def lost_at_random(
    encoder: Encoder,
    heads: Sequence[Head],
    draws: range,
    case: Case,
) -> Numbers:
    """``random`` of :func:`together`, for some of the draws."""
    by, off = case.substitute(encoder), ablation.existing(encoder, heads)
    before = encoder.states(*case.texts)[0].astype(np.float64)
    states = ablation.states_at_random(encoder, off, by, draws, *case.texts, SEED).astype(np.float64)
    return _apart(before.mean(0), states.mean(1))


def _apart(first: Numbers, second: Numbers) -> Numbers:
    """1 − cos over the last axis; 0 where both vectors are equal, 1 where one of them is zero."""
    lengths = np.linalg.norm(first, axis=-1) * np.linalg.norm(second, axis=-1)
    cosines = np.vecdot(first, second) / np.where(lengths == 0, 1.0, lengths)
    apart: Numbers = np.where((first == second).all(-1), 0.0, np.clip(1 - cosines, 0.0, 2.0))
    return apart


def _divergences(first: npt.NDArray[np.float32], second: npt.NDArray[np.float32]) -> Numbers:
    """[head]: the divergence of two matrices, summed over rows; [head, query · key] each."""
    return jensen_shannon(entropy((first + second) / 2), entropy(first), entropy(second))
