"""Numbers per head for one text. Each metric is one decorated function: [layer, head], float64.

Definitions follow Clark et al. 2019, section 3. They are computed on pieces, never on words, so that a
number means the same whatever is on screen. The docstring of a metric is its help text in the app.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.attention import QUANTITIES, Attention
from mha_viz.text import is_punctuation

PerHead = npt.NDArray[np.float64]  # [layer, head]
Measure = Callable[[Attention], PerHead]


class Metric(NamedTuple):
    """A number per head: its stable name, its label on screen, its unit ("share" or "nats"), its function."""

    name: str
    label: str
    unit: str
    measure: Measure

    @property
    def help(self) -> str:
        """One sentence on what is measured."""
        return (self.measure.__doc__ or "").strip()


_metrics: dict[str, Metric] = {}
METRICS: Mapping[str, Metric] = MappingProxyType(_metrics)


def metric(
    label: str, unit: str = "share"
) -> Callable[[Callable[[Attention], PerHead]], Callable[[Attention], PerHead]]:
    """Register a per-head metric under the name of its function."""

    def register(measure: Measure) -> Measure:
        _metrics[measure.__name__] = Metric(measure.__name__, label, unit, measure)
        return measure

    return register


def mass_at(attention: Attention, offset: int) -> PerHead:
    """Mean of A[i, i + offset] over the rows i of ordinary tokens for which i + offset exists; NaN without any, and
    where keys are of another text than queries, which has no such offset."""
    if attention.is_cross:
        return np.full(attention.weights.shape[:2], np.nan)
    n = len(attention.text)
    ordinary = np.array([not t.special for t in attention.text.tokens])
    rows = np.arange(max(0, -offset), max(0, min(n, n - offset)))
    rows = rows[ordinary[rows]]
    if not rows.size:
        return np.full(attention.weights.shape[:2], np.nan)
    cells: PerHead = attention.weights[:, :, rows, rows + offset].mean(axis=2, dtype=np.float64)
    return cells


def _mass_on(attention: Attention, columns: list[int]) -> PerHead:
    """Mean over all rows of the mass on ``columns``."""
    if not columns:
        return np.zeros(attention.weights.shape[:2])
    mass: PerHead = attention.weights[..., columns].sum(axis=3, dtype=np.float64).mean(axis=2)
    return mass


@metric("previous token")
def previous(attention: Attention) -> PerHead:
    """Mean weight from a token to the token before it."""
    return mass_at(attention, -1)


@metric("next token")
def following(attention: Attention) -> PerHead:
    """Mean weight from a token to the token after it."""
    return mass_at(attention, 1)


@metric("same token")
def same(attention: Attention) -> PerHead:
    """Mean weight from a token to itself."""
    return mass_at(attention, 0)


@metric("on [CLS]")
def cls(attention: Attention) -> PerHead:
    """Mean weight that a row gives to the special token at the start ([CLS], <s>)."""
    return _mass_on(attention, [0] if attention.keys.tokens[0].special else [])


@metric("on [SEP]")
def sep(attention: Attention) -> PerHead:
    """Mean weight that a row gives to the other special tokens ([SEP], </s>)."""
    return _mass_on(attention, [i for i, t in enumerate(attention.keys.tokens) if t.special and i > 0])


@metric("on punctuation")
def punctuation(attention: Attention) -> PerHead:
    """Mean weight that a row gives to pieces made of punctuation only."""
    text = attention.keys
    return _mass_on(
        attention, [i for i, t in enumerate(text.tokens) if not t.special and is_punctuation(text.typed(t).strip())]
    )


@metric("entropy", unit="nats")
def entropy(attention: Attention) -> PerHead:
    """Mean entropy of a row: 0 when all weight is on one token, ln(n) when it is spread evenly."""
    if not QUANTITIES[attention.quantity].is_share:  # rows that are not shares have no entropy
        return np.full(attention.weights.shape[:2], np.nan)
    nats = np.empty(attention.weights.shape[:2])
    for layer, weights in enumerate(attention.weights):  # a layer at a time: the logarithms are as large as the weights
        logs = np.log(np.maximum(weights, np.float32(1e-38)))  # 0 · log 0 = 0
        nats[layer] = np.einsum("hqk,hqk->h", weights, logs, dtype=np.float64) / weights.shape[1]
    return np.abs(nats)  # the sign turned, without -0.0


def measure_all(attention: Attention) -> dict[str, PerHead]:
    """Every registered metric of one reading, by name."""
    return {name: m.measure(attention) for name, m in METRICS.items()}
