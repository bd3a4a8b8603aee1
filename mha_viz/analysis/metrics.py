"""Measures of each head on a text, and their sums over a corpus.

Each metric is a decorated function that returns [layer, head], float64. Definitions follow Clark et al. 2019, section
3. Metrics are computed on subwords, never on words, so that a number means the same in every view. The docstring of a
metric is its help text in the app.

Sums over a corpus (:class:`Patterns`) are float64 and counts int64; those of different sentences can be added. Within a
sentence, the cells of a diagonal, and the punctuation cells of a row, are added in float32, which is exact to 1e-7.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.distance import entropy as nats_of
from mha_viz.analysis.reduce import Batch, Counts, FloatSums, OrdinaryTokens, RunningSums, find_largest_ordinary
from mha_viz.attention import Attention, Weights
from mha_viz.attention.tensors import map_layers
from mha_viz.attention.view_weights import name_map
from mha_viz.text import TokenizedText, is_punctuation
from mha_viz.view.quantities import QUANTITIES

if TYPE_CHECKING:
    import pandas as pd

MEASURES = "measures"  # the table of a profile for metrics without a table of their own
PerHead = npt.NDArray[np.float64]  # [layer, head]
MetricFunction = Callable[[Attention], PerHead]


class Metric(NamedTuple):
    """A number per head.

    Attributes:
        name: its stable name.
        label: its label on screen.
        unit: "share" or "nats".
        measure: its function.
        detail: the detail of the role that a head has if its value over a corpus is high.
        table: the table of a profile that contains it.
    """

    name: str
    label: str
    unit: str
    measure: MetricFunction
    detail: str
    table: str

    @property
    def help(self) -> str:
        """One sentence that says what is measured."""
        return (self.measure.__doc__ or "").strip()


_metrics: dict[str, Metric] = {}
METRICS: Mapping[str, Metric] = MappingProxyType(_metrics)


def metric(
    label: str, unit: str = "share", detail: str = "", table: str = MEASURES
) -> Callable[[Callable[[Attention], PerHead]], Callable[[Attention], PerHead]]:
    """Register a per-head metric under the name of its function.

    ``detail`` is needed if the role has another name, ``table`` if a profile has its own sums for the metric. For other
    metrics, a profile has the mean over the sentences.
    """

    def register(measure: MetricFunction) -> MetricFunction:
        _metrics[measure.__name__] = Metric(measure.__name__, label, unit, measure, detail or measure.__name__, table)
        return measure

    return register


def compute_mass_at(attention: Attention, offset: int) -> PerHead:
    """Return the mean of A[i, i + offset] over the rows i of ordinary tokens for which i + offset exists.

    It is NaN if there are no such rows, or if queries and keys are of different texts, which have no offsets.
    """
    if attention.is_cross and not attention.has_sink:
        return _make_undefined(attention)
    return _divide_by_rows(attention, *sum_mass_at(_make_batch(attention), _find_ordinary(attention), offset))


def compute_maxima_share(attention: Attention, offset: int) -> PerHead:
    """Return the share of rows of ordinary tokens whose largest weight, ignoring special columns, is at ``offset``.

    Only rows with an ordinary token at the offset count; NaN if there are none.
    """
    if attention.is_cross and not attention.has_sink:
        return _make_undefined(attention)
    ordinary = _find_ordinary(attention)
    maxima, rows = count_maxima_at(find_largest_ordinary(_make_batch(attention), ordinary), ordinary, (offset,))
    return _divide_by_rows(attention, maxima[:, 0], rows[0])


def compute_share(correct: npt.ArrayLike, n: npt.ArrayLike) -> FloatSums:
    """Return ``correct / n``; NaN if there is no case."""
    total = np.asarray(n, np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares: FloatSums = np.asarray(correct, np.float64) / np.where(total == 0, np.nan, total)
    return shares


def _get_column_text(attention: Attention) -> TokenizedText:
    """Return the text of the columns, without a sink."""
    return attention.queries if attention.has_sink else attention.keys


def _make_batch(attention: Attention) -> Weights:
    """Return [head, 1, query, key], one sentence without a sink; heads are in the order L0H0, L0H1, …."""
    weights = attention.weights[..., : len(_get_column_text(attention))]
    return weights.reshape(-1, 1, *weights.shape[2:])


def _find_ordinary(attention: Attention) -> OrdinaryTokens:
    """Return [token], False for special tokens."""
    return np.logical_not(_get_column_text(attention).special)


def _make_undefined(attention: Attention) -> PerHead:
    """Return [layer, head] of NaN."""
    return np.full(attention.weights.shape[:2], np.nan)


def _divide_by_rows(attention: Attention, total: npt.ArrayLike, rows: int | None = None) -> PerHead:
    """Divide totals [head] by the number of rows, by default all rows, and return [layer, head]."""
    count = attention.weights.shape[2] if rows is None else rows
    return compute_share(total, count).reshape(attention.layers, attention.heads)


@metric("previous token", table="position")
def previous(attention: Attention) -> PerHead:
    """Mean weight from a token to the token before it."""
    return compute_mass_at(attention, -1)


@metric("next token", detail="next", table="position")
def following(attention: Attention) -> PerHead:
    """Mean weight from a token to the token after it."""
    return compute_mass_at(attention, 1)


@metric("same token", table="position")
def same(attention: Attention) -> PerHead:
    """Mean weight from a token to itself."""
    return compute_mass_at(attention, 0)


@metric("on [CLS]", table="delimiter")
def cls(attention: Attention) -> PerHead:
    """Mean weight that a row gives to the special token at the start ([CLS], <s>)."""
    return _divide_by_rows(attention, sum_mass_on_start(_make_batch(attention), _find_ordinary(attention)))


@metric("on [SEP]", table="delimiter")
def sep(attention: Attention) -> PerHead:
    """Mean weight that a row gives to the other special tokens ([SEP], </s>)."""
    return _divide_by_rows(attention, sum_mass_on_end(_make_batch(attention), _find_ordinary(attention)))


@metric("on punctuation", table="delimiter")
def punctuation(attention: Attention) -> PerHead:
    """Mean weight that a row gives to pieces made of punctuation only."""
    text = _get_column_text(attention)
    marks = [[not t.special and is_punctuation(text.typed(t).strip()) for t in text.tokens]]
    return _divide_by_rows(attention, sum_mass_on(_make_batch(attention), np.array(marks)))


@metric("entropy", unit="nats", table="entropy")
def entropy(attention: Attention) -> PerHead:
    """Mean entropy of a row: 0 when all weight is on one token, ln(n) when it is spread evenly."""
    if not QUANTITIES[attention.quantity].is_share:  # rows that do not sum to 1 have no entropy
        return _make_undefined(attention)
    flat = attention.weights.reshape(attention.layers, attention.heads, -1)
    return _divide_by_rows(attention, np.stack(map_layers(nats_of, flat)))


def measure_all(attention: Attention) -> dict[str, PerHead]:
    """Return every registered metric of a reading, by name."""
    return {name: m.measure(attention) for name, m in METRICS.items()}


def list_corpus_metrics() -> list[Metric]:
    """Return the metrics whose means over the sentences of a corpus are in a profile's table MEASURES."""
    return [metric for metric in METRICS.values() if metric.table == MEASURES]


def sum_metrics(readings: Sequence[Attention]) -> RunningSums:
    """Sum each metric of :func:`list_corpus_metrics` over readings.

    Return [2, head] for each metric: its sum, and the number of readings. Readings for which it is undefined do not
    count. Heads are in the order L0H0, L0H1, ….
    """
    sums: dict[str, FloatSums] = {}
    for metric in list_corpus_metrics():
        values = np.reshape([metric.measure(reading) for reading in readings], (len(readings), -1))
        sums[metric.name] = np.stack((np.nansum(values, axis=0), np.isfinite(values).sum(axis=0)))
    return sums


# ---- Position, delimiters and entropy over a corpus -----------------------------------------------------------------

OFFSETS = tuple(range(-5, 6))
DELIMITERS = ("cls", "sep", "punctuation")
BOTH = "both"  # all special tokens together
ON_DELIMITERS = (*DELIMITERS, BOTH)
POSITIONS = {-1: "previous", 0: "same", 1: "next"}


class Patterns:
    """Running sums of position, delimiter and entropy over batches of sentences.

    ``sums`` has mass and maxima [head, offset] with mass_rows and maxima_rows [offset]; the parts of mass and mass_rows
    within a word, mass_in_word [head, offset] and rows_in_word [offset]; delimiter [head, 3] and nats [head] with rows;
    and normalised [head] with sentences. ``even_mass`` [offset] and ``even_delimiter`` [3] are the values of a head
    that spreads its attention evenly, 1/T to each of T tokens.
    """

    def __init__(self, heads: int) -> None:
        self.sums: RunningSums = {
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
        """Add a batch.

        ``nats`` [head] is the sum of the entropies of all its rows, from
        :meth:`mha_viz.analysis.distance.Distances.add`.
        """
        ordinary = batch.is_ordinary
        sentences, n = batch.weights.shape[1], len(ordinary)
        words = np.array([[-1 if word is None else word for word in pieces.words] for pieces in batch.pieces], np.intp)
        for column, offset in enumerate(OFFSETS):
            mass, rows = sum_mass_at(batch.weights, ordinary, offset)
            self.sums["mass"][:, column] += mass
            self.sums["mass_rows"][column] += rows
            self.sums["even_mass"][column] += rows / n
            mass_in_word, rows_in_word = sum_mass_in_word_at(batch.weights, words, offset)
            self.sums["mass_in_word"][:, column] += mass_in_word
            self.sums["rows_in_word"][column] += rows_in_word
        counts, row_counts = count_maxima_at(batch.largest_keys, ordinary, OFFSETS)
        self.sums["maxima"] += counts
        self.sums["maxima_rows"] += row_counts
        marks = np.array([pieces.punctuation for pieces in batch.pieces])  # [sentence, key]
        masses = sum_mass_on_start(batch.weights, ordinary), sum_mass_on_end(batch.weights, ordinary)
        self.sums["delimiter"] += np.stack((*masses, sum_mass_on(batch.weights, marks)), axis=1)
        start_count, end_count = (len(columns) for columns in _find_special(ordinary))
        self.sums["even_delimiter"] += (sentences * start_count, sentences * end_count, marks.sum())
        self.sums["rows"] += sentences * n
        self.sums["nats"] += nats
        if n > 1:
            self.sums["normalised"] += nats / (n * math.log(n))
            self.sums["sentences"] += sentences


def average_on_delimiters(sums: RunningSums) -> tuple[FloatSums, FloatSums]:
    """Return the mean weights on ON_DELIMITERS, from the sums of :class:`Patterns`.

    They are [head, detail] and, for uniform attention, [detail]. BOTH is the sum over the special tokens.
    """
    mass, uniform = (compute_share(sums[name], sums["rows"]) for name in ("delimiter", "even_delimiter"))
    both_mass, both_uniform = (values[..., :2].sum(axis=-1, keepdims=True) for values in (mass, uniform))
    return np.append(mass, both_mass, axis=1), np.append(uniform, both_uniform)


# ---- Measures of sentences whose special tokens are at the same positions -------------------------------------------
# ``weights`` is [head, sentence, query, key]; ``ordinary`` [token] is False for special tokens. Results are sums over
# the rows of all these sentences, [head] float64.


def sum_mass_at(weights: Weights, ordinary: OrdinaryTokens, offset: int) -> tuple[FloatSums, int]:
    """Return the sum of A[i, i + offset] over the rows i of ordinary tokens with such a key, and the number of rows."""
    n = len(ordinary)
    rows = ordinary[max(0, -offset) : max(0, min(n, n - offset))]  # the rows that have this offset
    mass = np.vecdot(np.diagonal(weights, offset, 2, 3), rows.astype(np.float32))  # [head, sentence]
    return mass.sum(axis=1, dtype=np.float64), int(weights.shape[1] * rows.sum())


def sum_mass_in_word_at(weights: Weights, words: npt.NDArray[np.intp], offset: int) -> tuple[FloatSums, int]:
    """Return the sums of :func:`sum_mass_at` over only those rows whose key is a subword of the same word.

    ``words`` [sentence, token] is −1 for special tokens.
    """
    n = words.shape[1]
    first = max(0, -offset)  # the rows that have this offset
    last = max(first, min(n, n - offset))
    queries, keys = words[:, first:last], words[:, first + offset : last + offset]
    is_same_word = (queries == keys) & (queries >= 0)  # [sentence, row]
    mass = np.vecdot(np.diagonal(weights, offset, 2, 3), is_same_word.astype(np.float32))  # [head, sentence]
    return mass.sum(axis=1, dtype=np.float64), int(is_same_word.sum())


def count_maxima_at(
    largest: npt.NDArray[np.intp], ordinary: OrdinaryTokens, offsets: Sequence[int]
) -> tuple[Counts, Counts]:
    """Count the rows of ordinary tokens whose largest weight, ignoring special columns, is at each offset.

    Return these counts, [head, offset], and the number of rows that have an ordinary token there, [offset]. ``largest``
    is the result of :func:`~mha_viz.analysis.reduce.find_largest_ordinary`.
    """
    tokens = np.flatnonzero(ordinary)
    distances = largest - tokens  # the offset of each maximum
    counts = np.stack([np.count_nonzero(distances == offset, axis=(1, 2)) for offset in offsets], axis=1)
    return counts, np.array([largest.shape[1] * np.isin(tokens + offset, tokens).sum() for offset in offsets])


def make_zero_maxima(heads: int, documents: int) -> RunningSums:
    """Return zeros, to which the sums of :func:`count_document_maxima` can be added."""
    shape = (documents, heads, len(POSITIONS))
    return {"maxima": np.zeros(shape, np.int64), "rows": np.zeros(shape[::2], np.int64)}


def count_document_maxima(batch: Batch, documents: Sequence[int], count: int) -> RunningSums:
    """Count maxima by document, for the offsets of POSITIONS.

    Return ``maxima`` [document, head, offset] and ``rows`` [document, offset], as in :func:`count_maxima_at`.
    ``documents`` has the number of each sentence's document, and ``count`` is the number of documents.
    """
    tokens = np.flatnonzero(batch.is_ordinary)
    distances = batch.largest_keys - tokens
    # [head, sentence, …]
    counts = np.stack([np.count_nonzero(distances == offset, axis=2) for offset in POSITIONS], axis=2)
    sums = make_zero_maxima(len(distances), count)
    np.add.at(sums["maxima"], list(documents), counts.swapaxes(0, 1))
    np.add.at(sums["rows"], list(documents), [np.isin(tokens + offset, tokens).sum() for offset in POSITIONS])
    return sums


def sum_mass_on_start(weights: Weights, ordinary: OrdinaryTokens) -> FloatSums:
    """Return the sum of the weights that all rows give to the special token at the start ([CLS], <s>)."""
    return _sum_columns(weights, _find_special(ordinary)[0])


def sum_mass_on_end(weights: Weights, ordinary: OrdinaryTokens) -> FloatSums:
    """Return the sum of the weights that all rows give to the other special tokens ([SEP], </s>)."""
    return _sum_columns(weights, _find_special(ordinary)[1])


def sum_mass_on(weights: Weights, marked: npt.NDArray[np.bool_]) -> FloatSums:
    """Return the sum of the weights that all rows give to the marked keys, [sentence, key]."""
    mass = np.vecdot(weights, marked[:, None].astype(np.float32))  # [head, sentence, query]
    return _sum_by_head(mass[..., None])


def _find_special(ordinary: OrdinaryTokens) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the positions of special tokens: those at the start, and all others."""
    special = np.flatnonzero(~ordinary)
    return special[special == 0], special[special > 0]


def _sum_columns(weights: Weights, keys: npt.NDArray[np.intp]) -> FloatSums:
    """Return [head], the sum of the weights of all rows on these keys."""
    return _sum_by_head(weights[..., keys])


def _sum_by_head(mass: Weights) -> FloatSums:
    """Return [head], the sums of [head, sentence, query, key]."""
    totals: FloatSums = mass.sum(axis=(1, 2, 3), dtype=np.float64)
    return totals


def make_metrics_table(attention: Attention) -> pd.DataFrame:
    """Return a table with one row per head: its layer, its head, every metric and ``normalised_entropy``.

    Rows are named "L0H0" and so on; for rollout there is one row per layer, "L0".
    """
    import pandas as pd

    heads = attention.every_head()
    values_by_name = measure_all(attention) | {"normalised_entropy": normalised_entropy(attention)}
    columns = {"layer": [head.layer for head in heads], "head": [head.head for head in heads]}
    return pd.DataFrame(
        columns | {name: values.ravel() for name, values in values_by_name.items()},
        index=pd.Index([name_map(attention.quantity, head) for head in heads], name="name"),
        columns=("layer", "head", *METRICS, "normalised_entropy"),
    )


def average_measures(results: Sequence[Mapping[str, PerHead]]) -> dict[str, PerHead]:
    """Return the means of measures over several readings, [layer, head] for each measure.

    Each reading counts once, whatever its length; a reading in which a measure is undefined does not count for that
    measure. ``results`` has the results of ``measure_all``.
    """
    means: dict[str, PerHead] = {}
    for name in results[0] if results else ():
        values = np.stack([reading_values[name] for reading_values in results])  # [reading, layer, head]
        counts = (~np.isnan(values)).sum(axis=0)
        means[name] = np.where(counts > 0, np.nansum(values, axis=0) / np.maximum(counts, 1), np.nan)
    return means


def normalised_entropy(attention: Attention) -> PerHead:
    """Return the entropy divided by that of uniform attention, ln(keys).

    It is 0 if all weight is on one token, 1 if it is spread evenly, and NaN with a single key.
    """
    keys = len(attention.keys)
    return METRICS["entropy"].measure(attention) / (math.log(keys) if keys > 1 else math.nan)
