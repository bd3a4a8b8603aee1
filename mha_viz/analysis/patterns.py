"""Patterns that need no annotation, over a corpus: fixed positions, delimiters, broad attention.

The sums are float64 and counts int64; two of them, of different sentences, add up to those of both. Within a sentence,
the cells of one diagonal, and those of one row that are punctuation, are added in float32: right to 1e-7.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.reduce import Batch, Running, Sums
from mha_viz.attention import Weights

OFFSETS = tuple(range(-5, 6))
DELIMITERS = ("cls", "sep", "punctuation")
POSITIONS = {-1: "previous", 0: "same", 1: "next"}


class Patterns:
    """Running sums of position, delimiter and entropy over batches of sentences.

    ``sums``: mass, maxima [head, offset] with mass_rows, maxima_rows [offset]; delimiter [head, 3] and nats [head] with
    rows; normalised [head] with sentences. ``even_mass`` [offset] and ``even_delimiter`` [3] are what a head would have
    that spreads its attention evenly: 1/T to each of T tokens.
    """

    def __init__(self, heads: int) -> None:
        self.sums: Running = {
            "mass": np.zeros((heads, len(OFFSETS))),
            "mass_rows": np.zeros(len(OFFSETS), np.int64),
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

    def add(self, batch: Batch, nats: Sums) -> None:
        """Take in a batch, whose sentences have their special tokens in the same places. ``nats`` [head]: the entropies
        of all its rows added up, as :meth:`Distances.add` gives them."""
        ordinary = np.array([word is not None for word in batch.pieces[0].words])
        self._positions(batch.weights, ordinary)
        self._maxima(batch.weights, np.flatnonzero(ordinary))
        self._delimiters(batch)
        self._entropy(batch.weights, nats)

    def _positions(self, weights: Weights, ordinary: npt.NDArray[np.bool_]) -> None:
        n, sentences = weights.shape[-1], weights.shape[1]
        for at, offset in enumerate(OFFSETS):
            kept = ordinary[max(0, -offset) : max(0, min(n, n - offset))]  # the rows that have this offset
            mass = np.vecdot(np.diagonal(weights, offset, 2, 3), kept.astype(np.float32))  # [head, sentence]
            self.sums["mass"][:, at] += mass.sum(axis=1, dtype=np.float64)
            self.sums["mass_rows"][at] += sentences * kept.sum()
            self.sums["even_mass"][at] += sentences * kept.sum() / n

    def _maxima(self, weights: Weights, ordinary: npt.NDArray[np.intp]) -> None:
        """Where the largest weight of a row lies, special columns aside; of equal ones, the first."""
        if not ordinary.size:
            return
        first, last = ordinary[0], ordinary[-1]
        if last - first + 1 == ordinary.size:  # a view, where the special tokens stand around the sentence
            content = weights[:, :, first : last + 1, first : last + 1]
        else:
            content = weights[:, :, ordinary[:, None], ordinary]
        places = np.stack([ordinary[head.argmax(axis=2)] - ordinary for head in content])  # the offset of each maximum
        for at, offset in enumerate(OFFSETS):
            exists = np.isin(ordinary + offset, ordinary)
            self.sums["maxima"][:, at] += np.count_nonzero(places == offset, axis=(1, 2))
            self.sums["maxima_rows"][at] += weights.shape[1] * exists.sum()

    def _delimiters(self, batch: Batch) -> None:
        words = batch.pieces[0].words
        special = [i for i, word in enumerate(words) if word is None]
        begins = [i for i in special if i == 0]
        ends = [i for i in special if i > 0]
        marks = np.array([pieces.punctuation for pieces in batch.pieces])  # [sentence, key]
        sentences, n = marks.shape
        punctuation = np.vecdot(batch.weights, marks[:, None].astype(np.float32))  # [head, sentence, query]
        masses = (batch.weights[..., begins], batch.weights[..., ends], punctuation[..., None])
        for at, mass in enumerate(masses):
            self.sums["delimiter"][:, at] += mass.sum(axis=(1, 2, 3), dtype=np.float64)
        self.sums["even_delimiter"] += (sentences * len(begins), sentences * len(ends), marks.sum())
        self.sums["rows"] += sentences * n

    def _entropy(self, weights: Weights, nats: Sums) -> None:
        n = weights.shape[-1]
        self.sums["nats"] += nats
        if n > 1:
            self.sums["normalised"] += nats / (n * math.log(n))
            self.sums["sentences"] += weights.shape[1]
