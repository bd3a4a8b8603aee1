"""Numbers per head for one text, and their sums over a corpus.

Each metric is one decorated function that returns [layer, head], float64. Definitions follow Clark et al. 2019, section
3. They are computed on pieces, never on words, so that a number means the same in every view. The docstring of a metric
is its help text in the app.

Sums over a corpus (:class:`Patterns`) are float64 and counts int64; those of different sentences can be added up.
Within a sentence, the cells of one diagonal, and those of one row that are punctuation, are added in float32, which is
exact to 1e-7.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.distance import entropy as nats_of
from mha_viz.analysis.reduce import Batch, Counts, FloatSums, Ordinary, Running, largest_ordinary
from mha_viz.attention import Attention, Weights
from mha_viz.attention.shown import named_in
from mha_viz.attention.tensors import each_layer
from mha_viz.text import TokenizedText, is_punctuation
from mha_viz.view.quantities import QUANTITIES

if TYPE_CHECKING:
    import pandas as pd

MEASURES = "measures"  # the table of those that a profile has no other table for
PerHead = npt.NDArray[np.float64]  # [layer, head]
MetricFunction = Callable[[Attention], PerHead]


class Metric(NamedTuple):
    """A number per head: its stable name, its label on screen, its unit ("share" or "nats"), its function, the detail
    of the role that heads get if they have a high value over a corpus, and the table of a profile that it is in."""

    name: str
    label: str
    unit: str
    measure: MetricFunction
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

    def register(measure: MetricFunction) -> MetricFunction:
        _metrics[measure.__name__] = Metric(measure.__name__, label, unit, measure, detail or measure.__name__, table)
        return measure

    return register


def mass_at(attention: Attention, offset: int) -> PerHead:
    """Mean of A[i, i + offset] over the rows i of ordinary tokens for which i + offset exists; NaN if there are none,
    or if keys and queries are of different texts, between which no offset is defined."""
    if attention.is_cross and not attention.has_sink:
        return _undefined(attention)
    return _shared(attention, *summed_mass_at(_batch(attention), _ordinary(attention), offset))


def maxima_at(attention: Attention, offset: int) -> PerHead:
    """The share of rows of ordinary tokens whose largest weight, ignoring special columns, is at ``offset``, among the
    rows that have an ordinary token there; NaN if there are none."""
    if attention.is_cross and not attention.has_sink:
        return _undefined(attention)
    ordinary = _ordinary(attention)
    maxima, rows = counted_maxima_at(largest_ordinary(_batch(attention), ordinary), ordinary, (offset,))
    return _shared(attention, maxima[:, 0], rows[0])


def share(correct: npt.ArrayLike, n: npt.ArrayLike) -> FloatSums:
    """``correct / n``, NaN if there is no case."""
    whole = np.asarray(n, np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares: FloatSums = np.asarray(correct, np.float64) / np.where(whole == 0, np.nan, whole)
    return shares


def _text_of_columns(attention: Attention) -> TokenizedText:
    """Return the text of the columns, without a sink."""
    return attention.queries if attention.has_sink else attention.keys


def _batch(attention: Attention) -> Weights:
    """[head, 1, query, key]: one sentence, with the heads in the order L0H0, L0H1, …, and without a sink."""
    whole = attention.weights[..., : len(_text_of_columns(attention))]
    return whole.reshape(-1, 1, *whole.shape[2:])


def _ordinary(attention: Attention) -> Ordinary:
    return np.logical_not(_text_of_columns(attention).special)


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
    return _shared(attention, mass_on_start(_batch(attention), _ordinary(attention)))


@metric("on [SEP]", table="delimiter")
def sep(attention: Attention) -> PerHead:
    """Mean weight that a row gives to the other special tokens ([SEP], </s>)."""
    return _shared(attention, mass_on_end(_batch(attention), _ordinary(attention)))


@metric("on punctuation", table="delimiter")
def punctuation(attention: Attention) -> PerHead:
    """Mean weight that a row gives to pieces made of punctuation only."""
    text = _text_of_columns(attention)
    marks = [[not t.special and is_punctuation(text.typed(t).strip()) for t in text.tokens]]
    return _shared(attention, mass_on(_batch(attention), np.array(marks)))


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
    sums: dict[str, FloatSums] = {}
    for metric in over_corpus():
        of_heads = np.reshape([metric.measure(reading) for reading in readings], (len(readings), -1))
        sums[metric.name] = np.stack((np.nansum(of_heads, axis=0), np.isfinite(of_heads).sum(axis=0)))
    return sums


# ---- Position, delimiters and entropy over a corpus -----------------------------------------------------------------

OFFSETS = tuple(range(-5, 6))
DELIMITERS = ("cls", "sep", "punctuation")
BOTH = "both"  # special tokens together
ON_DELIMITERS = (*DELIMITERS, BOTH)
POSITIONS = {-1: "previous", 0: "same", 1: "next"}


class Patterns:
    """Running sums of position, delimiter and entropy over batches of sentences.

    ``sums``: mass, maxima [head, offset] with mass_rows, maxima_rows [offset], and the parts of mass and mass_rows that
    stay within a word, mass_in_word [head, offset] and rows_in_word [offset]; delimiter [head, 3] and nats [head] with
    rows; normalised [head] with sentences. ``even_mass`` [offset] and ``even_delimiter`` [3] are the values of a head
    that spreads its attention evenly: 1/T to each of T tokens.
    """

    def __init__(self, heads: int) -> None:
        self.sums: Running = {
            "mass": np.zeros((heads, len(OFFSETS))),
            "mass_rows": np.zeros(len(OFFSETS), np.int64),
            "mass_in_word": np.zeros((heads, len(OFFSETS))),
            "rows_in_word": np.zeros(len(OFFSETS), np.int64),
            "even_mass": np.zeros(len(OFFSETS)),
            "maxima": np.zeros((heads, len(OFFSETS)), np.int64),
            "maxima_rows": np.zeros(len(OFFSETS), np.int64),
            "delimiter": np.zeros((heads, len(DELIMITERS))),
            "even_delimiter": np.zeros(len(DELIMITERS)),
            "nats": np.zeros(heads),
            "rows": np.zeros((), np.int64),
            "normalised": np.zeros(heads),
            "sentences": np.zeros((), np.int64),
        }

    def add(self, batch: Batch, nats: FloatSums) -> None:
        """Add a batch. ``nats`` [head]: the sum of the entropies of all its rows, from :meth:`Distances.add`."""
        ordinary = batch.ordinary
        sentences, n = batch.weights.shape[1], len(ordinary)
        words = np.array([[-1 if word is None else word for word in pieces.words] for pieces in batch.pieces], np.intp)
        for at, offset in enumerate(OFFSETS):
            mass, rows = summed_mass_at(batch.weights, ordinary, offset)
            self.sums["mass"][:, at] += mass
            self.sums["mass_rows"][at] += rows
            self.sums["even_mass"][at] += rows / n
            mass_in_word, rows_in_word = mass_in_word_at(batch.weights, words, offset)
            self.sums["mass_in_word"][:, at] += mass_in_word
            self.sums["rows_in_word"][at] += rows_in_word
        counts, rows_with = counted_maxima_at(batch.largest, ordinary, OFFSETS)
        self.sums["maxima"] += counts
        self.sums["maxima_rows"] += rows_with
        marks = np.array([pieces.punctuation for pieces in batch.pieces])  # [sentence, key]
        masses = mass_on_start(batch.weights, ordinary), mass_on_end(batch.weights, ordinary)
        self.sums["delimiter"] += np.stack((*masses, mass_on(batch.weights, marks)), axis=1)
        begins, ends = (len(columns) for columns in _special(ordinary))
        self.sums["even_delimiter"] += (sentences * begins, sentences * ends, marks.sum())
        self.sums["rows"] += sentences * n
        self.sums["nats"] += nats
        if n > 1:
            self.sums["normalised"] += nats / (n * math.log(n))
            self.sums["sentences"] += sentences


def on_delimiters(sums: Running) -> tuple[FloatSums, FloatSums]:
    """[head, detail] and, of uniform attention, [detail]: the mean weight on each of ON_DELIMITERS, from the sums of
    :class:`Patterns`; on BOTH it is the sum of those on the special tokens."""
    mass, even = (share(sums[name], sums["rows"]) for name in ("delimiter", "even_delimiter"))
    together, even_together = (values[..., :2].sum(axis=-1, keepdims=True) for values in (mass, even))
    return np.append(mass, together, axis=1), np.append(even, even_together)


# ---- Each measure, for sentences whose special tokens are at the same positions -------------------------------------
# ``weights`` is [head, sentence, query, key]; ``ordinary`` [token] is False for special tokens. Results are sums over
# the rows of all these sentences, [head] float64.


def summed_mass_at(weights: Weights, ordinary: Ordinary, offset: int) -> tuple[FloatSums, int]:
    """The sum of the weights A[i, i + offset] over the rows i of ordinary tokens that have such a key, and the number
    of these rows."""
    n = len(ordinary)
    rows = ordinary[max(0, -offset) : max(0, min(n, n - offset))]  # the rows that have this offset
    mass = np.vecdot(np.diagonal(weights, offset, 2, 3), rows.astype(np.float32))  # [head, sentence]
    return mass.sum(axis=1, dtype=np.float64), int(weights.shape[1] * rows.sum())


def mass_in_word_at(weights: Weights, words: npt.NDArray[np.intp], offset: int) -> tuple[FloatSums, int]:
    """As :func:`summed_mass_at`, for the rows whose key is a piece of the same word; ``words`` [sentence, token], −1
    for special tokens."""
    n = words.shape[1]
    first = max(0, -offset)  # the rows that have this offset
    last = max(first, min(n, n - offset))
    queries, keys = words[:, first:last], words[:, first + offset : last + offset]
    same = (queries == keys) & (queries >= 0)  # [sentence, row]
    mass = np.vecdot(np.diagonal(weights, offset, 2, 3), same.astype(np.float32))  # [head, sentence]
    return mass.sum(axis=1, dtype=np.float64), int(same.sum())


def counted_maxima_at(
    largest: npt.NDArray[np.intp], ordinary: Ordinary, offsets: Sequence[int]
) -> tuple[Counts, Counts]:
    """[head, offset]: the number of rows of ordinary tokens whose largest weight, ignoring special columns, is at the
    offset; and [offset]: the number of rows that have an ordinary token there. ``largest``: of
    :func:`~mha_viz.analysis.reduce.largest_ordinary`."""
    at = np.flatnonzero(ordinary)
    far = largest - at  # the offset of each maximum
    counts = np.stack([np.count_nonzero(far == offset, axis=(1, 2)) for offset in offsets], axis=1)
    return counts, np.array([largest.shape[1] * np.isin(at + offset, at).sum() for offset in offsets])


def no_maxima(heads: int, documents: int) -> Running:
    """The sums of :func:`maxima_of_documents` of no sentence."""
    shape = (documents, heads, len(POSITIONS))
    return {"maxima": np.zeros(shape, np.int64), "rows": np.zeros(shape[::2], np.int64)}


def maxima_of_documents(batch: Batch, documents: Sequence[int], count: int) -> Running:
    """The same of each of ``count`` documents, for the offsets of POSITIONS: ``maxima`` [document, head, offset] and
    ``rows`` [document, offset]. ``documents``: the number of each sentence's."""
    at = np.flatnonzero(batch.ordinary)
    far = batch.largest - at
    counts = np.stack([np.count_nonzero(far == offset, axis=2) for offset in POSITIONS], axis=2)  # [head, sentence, …]
    sums = no_maxima(len(far), count)
    np.add.at(sums["maxima"], list(documents), counts.swapaxes(0, 1))
    np.add.at(sums["rows"], list(documents), [np.isin(at + offset, at).sum() for offset in POSITIONS])
    return sums


def mass_on_start(weights: Weights, ordinary: Ordinary) -> FloatSums:
    """The sum of the weights that all rows give to the special token at the start ([CLS], <s>)."""
    return _columns(weights, _special(ordinary)[0])


def mass_on_end(weights: Weights, ordinary: Ordinary) -> FloatSums:
    """The sum of the weights that all rows give to the other special tokens ([SEP], </s>)."""
    return _columns(weights, _special(ordinary)[1])


def mass_on(weights: Weights, marked: npt.NDArray[np.bool_]) -> FloatSums:
    """The sum of the weights that all rows give to the marked keys, [sentence, key]."""
    mass = np.vecdot(weights, marked[:, None].astype(np.float32))  # [head, sentence, query]
    return _added(mass[..., None])


def _special(ordinary: Ordinary) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    special = np.flatnonzero(~ordinary)
    return special[special == 0], special[special > 0]


def _columns(weights: Weights, keys: npt.NDArray[np.intp]) -> FloatSums:
    return _added(weights[..., keys])


def _added(mass: Weights) -> FloatSums:
    """The sums [head] of [head, sentence, query, key]."""
    added: FloatSums = mass.sum(axis=(1, 2, 3), dtype=np.float64)
    return added


def table_of(attention: Attention) -> pd.DataFrame:
    """One row per head, named "L0H0" and so on, or per layer of rollout, "L0": its layer, its head, every metric and
    ``normalised_entropy``."""
    import pandas as pd

    heads = attention.every_head()
    measured = measure_all(attention) | {"normalised_entropy": normalised_entropy(attention)}
    columns = {"layer": [head.layer for head in heads], "head": [head.head for head in heads]}
    return pd.DataFrame(
        columns | {name: values.ravel() for name, values in measured.items()},
        index=pd.Index([named_in(attention.quantity, head) for head in heads], name="name"),
        columns=("layer", "head", *METRICS, "normalised_entropy"),
    )


def averages(measured: Sequence[Mapping[str, PerHead]]) -> dict[str, PerHead]:
    """Means over several readings, [layer, head] for each measure. Each reading counts once, whatever its length; a
    reading in which a measure is not defined does not count for that measure. ``measured``: the results of
    ``measure_all``."""
    means: dict[str, PerHead] = {}
    for name in measured[0] if measured else ():
        values = np.stack([one[name] for one in measured])  # [reading, layer, head]
        counted = (~np.isnan(values)).sum(axis=0)
        means[name] = np.where(counted > 0, np.nansum(values, axis=0) / np.maximum(counted, 1), np.nan)
    return means


def normalised_entropy(attention: Attention) -> PerHead:
    """The entropy divided by that of uniform attention, ln(keys): 0 if all weight is on one token, 1 if it is spread
    evenly; NaN with a single key."""
    keys = len(attention.keys)
    return METRICS["entropy"].measure(attention) / (math.log(keys) if keys > 1 else math.nan)
