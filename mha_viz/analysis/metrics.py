"""Numbers per head for one text. Each metric is one decorated function that returns [layer, head], float64.

Definitions follow Clark et al. 2019, section 3, and are the same as for a corpus (:mod:`mha_viz.analysis.patterns`).
They are computed on pieces, never on words, so that a number means the same in every view. The docstring of a metric is
its help text in the app.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.analysis import patterns
from mha_viz.analysis.distance import entropy as nats_of
from mha_viz.analysis.reduce import Ordinary, Running, Sums, largest_ordinary
from mha_viz.analysis.roles import share
from mha_viz.attention import Attention, Weights
from mha_viz.attention.tensors import each_layer
from mha_viz.browser.quantities import QUANTITIES
from mha_viz.text import is_punctuation

MEASURES = "measures"  # the table of those that a profile has no other table for
PerHead = npt.NDArray[np.float64]  # [layer, head]
Measure = Callable[[Attention], PerHead]


class Metric(NamedTuple):
    """A number per head: its stable name, its label on screen, its unit ("share" or "nats"), its function, the detail
    of the role that heads get if they have a high value over a corpus, and the table of a profile that it is in."""

    name: str
    label: str
    unit: str
    measure: Measure
    detail: str
    table: str

    @property
    def help(self) -> str:
        """One sentence on what is measured."""
        return (self.measure.__doc__ or "").strip()


_metrics: dict[str, Metric] = {}
METRICS: Mapping[str, Metric] = MappingProxyType(_metrics)


def metric(
    label: str, unit: str = "share", detail: str = "", table: str = MEASURES
) -> Callable[[Callable[[Attention], PerHead]], Callable[[Attention], PerHead]]:
    """Register a per-head metric under the name of its function; ``detail`` is given if the role has another name,
    ``table`` if a profile has its own sums for it. Of any other, a profile has the mean over the sentences."""

    def register(measure: Measure) -> Measure:
        _metrics[measure.__name__] = Metric(measure.__name__, label, unit, measure, detail or measure.__name__, table)
        return measure

    return register


def mass_at(attention: Attention, offset: int) -> PerHead:
    """Mean of A[i, i + offset] over the rows i of ordinary tokens for which i + offset exists; NaN if there are none,
    or if keys and queries are of different texts, between which no offset is defined."""
    if attention.is_cross:
        return _undefined(attention)
    return _shared(attention, *patterns.summed_mass_at(_batch(attention), _ordinary(attention), offset))


def maxima_at(attention: Attention, offset: int) -> PerHead:
    """The share of rows of ordinary tokens whose largest weight, ignoring special columns, is at ``offset``, among the
    rows that have an ordinary token there; NaN if there are none."""
    if attention.is_cross:
        return _undefined(attention)
    ordinary = _ordinary(attention)
    maxima, rows = patterns.counted_maxima_at(largest_ordinary(_batch(attention), ordinary), ordinary, (offset,))
    return _shared(attention, maxima[:, 0], rows[0])


def _batch(attention: Attention) -> Weights:
    """[head, 1, query, key]: one sentence, with the heads in the order L0H0, L0H1, …"""
    return attention.weights.reshape(-1, 1, *attention.weights.shape[2:])


def _ordinary(attention: Attention) -> Ordinary:
    return np.logical_not(attention.keys.special)


def _undefined(attention: Attention) -> PerHead:
    return np.full(attention.weights.shape[:2], np.nan)


def _shared(attention: Attention, total: npt.ArrayLike, rows: int | None = None) -> PerHead:
    """[layer, head] from [head]: the total divided by the number of rows, by default all of them."""
    count = attention.weights.shape[2] if rows is None else rows
    return share(total, count).reshape(attention.layers, attention.heads)


@metric("previous token", table="position")
def previous(attention: Attention) -> PerHead:
    """Mean weight from a token to the token before it."""
    return mass_at(attention, -1)


@metric("next token", detail="next", table="position")
def following(attention: Attention) -> PerHead:
    """Mean weight from a token to the token after it."""
    return mass_at(attention, 1)


@metric("same token", table="position")
def same(attention: Attention) -> PerHead:
    """Mean weight from a token to itself."""
    return mass_at(attention, 0)


@metric("on [CLS]", table="delimiter")
def cls(attention: Attention) -> PerHead:
    """Mean weight that a row gives to the special token at the start ([CLS], <s>)."""
    return _shared(attention, patterns.mass_on_start(_batch(attention), _ordinary(attention)))


@metric("on [SEP]", table="delimiter")
def sep(attention: Attention) -> PerHead:
    """Mean weight that a row gives to the other special tokens ([SEP], </s>)."""
    return _shared(attention, patterns.mass_on_end(_batch(attention), _ordinary(attention)))


@metric("on punctuation", table="delimiter")
def punctuation(attention: Attention) -> PerHead:
    """Mean weight that a row gives to pieces made of punctuation only."""
    text = attention.keys
    marks = [[not t.special and is_punctuation(text.typed(t).strip()) for t in text.tokens]]
    return _shared(attention, patterns.mass_on(_batch(attention), np.array(marks)))


@metric("entropy", unit="nats", table="entropy")
def entropy(attention: Attention) -> PerHead:
    """Mean entropy of a row: 0 when all weight is on one token, ln(n) when it is spread evenly."""
    if not QUANTITIES[attention.quantity].is_share:  # rows that do not sum to 1 have no entropy
        return _undefined(attention)
    flat = attention.weights.reshape(attention.layers, attention.heads, -1)
    return _shared(attention, np.stack(each_layer(nats_of, flat)))


def measure_all(attention: Attention) -> dict[str, PerHead]:
    """Every registered metric of one reading, by name."""
    return {name: m.measure(attention) for name, m in METRICS.items()}


def over_corpus() -> list[Metric]:
    """The metrics whose mean over the sentences of a corpus is in a profile's table MEASURES."""
    return [metric for metric in METRICS.values() if metric.table == MEASURES]


def summed(readings: Sequence[Attention]) -> Running:
    """For each metric of :func:`over_corpus`, by name: [2, head], its sum over the readings for which it is defined,
    and their number. Heads are in the order L0H0, L0H1, …"""
    return {metric.name: _summed([metric.measure(reading) for reading in readings]) for metric in over_corpus()}


def _summed(values: Sequence[PerHead]) -> Sums:
    of_heads = np.reshape(values, (len(values), -1))
    return np.stack((np.nansum(of_heads, axis=0), np.isfinite(of_heads).sum(axis=0)))
