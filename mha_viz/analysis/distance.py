"""How different heads are: the Jensen–Shannon divergence of their rows, in nats.

JS(p, q) = H((p + q) / 2) − (H(p) + H(q)) / 2 with H the entropy in nats: 0 for equal rows, ln 2 = 0.693 for rows that
share no key (Lin 1991; of attention heads, Clark et al. 2019, section 6). Mean over all rows.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.reduce import TINY, Batch, FloatSums, Running
from mha_viz.attention import Attention, Head, Weights
from mha_viz.errors import ShapeError

FloatMatrix = npt.NDArray[np.float64]

LN2 = math.log(2)  # the largest divergence
CELLS = 1 << 20  # cells that are processed at a time: 4 MB
NEAR = 1 << 16  # cells that fit into the cache of a core together with their logarithms
TOGETHER = 1 << 10  # about so many cells are added in float32; these sums are added in float64


def entropy(shares: npt.NDArray[np.floating]) -> FloatSums:
    """[...]: −Σ p ln p along the last axis, in nats: 0 if one cell holds everything, ln n if all n cells are equal.

    0 · ln 0 = 0. Logarithms, products and sums of up to TOGETHER cells are of the type of ``shares``, their sums
    float64.
    """
    rows = shares.reshape(-1, shares.shape[-1])
    bits = np.empty(len(rows))
    step = max(1, NEAR // max(1, rows.shape[1]))  # rows at a time
    whole = rows.shape[1] // TOGETHER * TOGETHER
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        if part.min(initial=0) < 0:  # a weight may be a rounding error below 0
            part = np.maximum(part, 0)
        logs = np.log2(part + TINY)
        sums = (array[:, :whole].reshape(len(part), -1, TOGETHER) for array in (part, logs))
        rest = np.vecdot(part[:, whole:], logs[:, whole:])
        bits[start : start + step] = np.vecdot(*sums).sum(axis=1, dtype=np.float64) + rest
    return (0.0 - bits * LN2).reshape(shares.shape[:-1])  # the sign is changed without producing -0.0


def jensen_shannon(mean: FloatSums, first: FloatSums, second: FloatSums) -> FloatSums:
    """The divergence of two distributions from the entropy of their mean and the entropies of both."""
    nats: FloatSums = np.maximum(0, mean - (first + second) / 2)
    return nats


def divergence(first: Weights, second: Weights) -> float:
    """Mean over rows of the Jensen–Shannon divergence of two matrices [query, key], in nats.

    Raises ShapeError if their axes differ.
    """
    if first.shape != second.shape or first.ndim != 2:
        raise ShapeError(f"Matrices with axes {first.shape} and {second.shape} have no common rows and columns.")
    p, q = (matrix.astype(np.float64).reshape(-1) for matrix in (first, second))
    return float(jensen_shannon(entropy((p + q) / 2), entropy(p), entropy(q))) / len(first)


def per_head(first: Attention, second: Attention) -> FloatMatrix:
    """[layer, head]: the divergence of each head's matrix in two readings of the same tokens by the same model, mean
    over rows, in nats. Raises ShapeError if their axes differ."""
    if first.weights.shape != second.weights.shape:
        raise ShapeError(f"Readings with axes {first.weights.shape} and {second.weights.shape} cannot be compared.")
    p, q = (a.weights.reshape(a.layers, a.heads, -1) for a in (first, second))
    nats: FloatMatrix = jensen_shannon(entropy((p + q) / 2), entropy(p), entropy(q)) / len(first.queries)
    return nats


def from_head(attention: Attention, head: Head) -> FloatSums:
    """Return [head]: the divergence of every head of a reading, in the order L0H0, L0H1, …, from ``head``, in nats.

    Logarithms are float32, sums float64: exact to 1e-6.
    """
    flat = attention.weights.reshape(attention.layers * attention.heads, -1)  # [head, query · key]
    entropies, place = _entropies(flat), attention.place(head)
    apart = jensen_shannon(_entropies(flat, flat[place]), entropies, entropies[place]) / len(attention.queries)
    apart[place] = 0  # from itself
    return apart


def across(first: Weights, second: Weights) -> FloatMatrix:
    """[head of the first, head of the second]: the divergence of their rows, added over rows, from weights [head,
    query, key] of the same tokens. Raises ShapeError if their axes of tokens differ."""
    if first.shape[1:] != second.shape[1:]:
        raise ShapeError(f"Heads with axes {first.shape[1:]} and {second.shape[1:]} have no common rows and columns.")
    flat, other = first.reshape(len(first), -1), second.reshape(len(second), -1)  # [head, query · key]
    entropies = _entropies(other)
    return np.stack([jensen_shannon(_entropies(other, rows), entropies, entropy(rows)) for rows in flat])


def _entropies(flat: Weights, other: Weights | None = None) -> FloatSums:
    """[head]: the entropy of each head of ``flat`` [head, query · key], or of its mean with ``other``."""
    step = max(1, CELLS // flat.shape[1])  # heads at a time
    entropies = np.empty(len(flat))
    for start in range(0, len(flat), step):
        part = flat[start : start + step] if other is None else (flat[start : start + step] + other) / 2
        entropies[start : start + step] = entropy(part)
    return entropies


class Distances:
    """Running sums over batches of sentences, for the divergence of every two heads over a corpus.

    ``sums``: mixed [head, head], above the diagonal, and own [head]: Σ x·ln x of s = p + q and of p, over all cells;
    rows. :func:`divergences` are made of them. About TOGETHER cells of a sentence are added in float32, always the
    same ones; these sums are added in float64.
    """

    ROOM = 900_000  # cells of all heads that are processed at a time: enough that threads rarely wait for each other

    def __init__(self, heads: int) -> None:
        self.sums: Running = {
            "mixed": np.zeros((heads, heads)),
            "own": np.zeros(heads),
            "rows": np.zeros((), np.int64),
        }

    def add(self, batch: Batch) -> FloatSums:
        """Add a batch. Returns the sum of the entropies of its rows in nats, [head]."""
        before = self.sums["own"].copy()
        heads, sentences, n, _ = batch.weights.shape
        rows = -(-n // -(-n * n // TOGETHER))  # rows per float32 sum: equally many, but for the last
        sums = self.ROOM // (heads * rows * n) or 1  # heads at a time
        many = max(1, sums * rows // n)  # sentences at a time
        room = np.empty((3, heads * sums * rows * n), np.float32)
        for start in range(0, sentences, many):
            for row in range(0, n, sums * rows):
                block = batch.weights[:, start : start + many, row : min(n, row + sums * rows)]
                whole = block.shape[2] // rows * rows
                self._take(block[:, :, :whole], rows, room)
                if whole < block.shape[2]:
                    self._take(block[:, :, whole:], block.shape[2] - whole, room)
        self.sums["rows"] += sentences * n
        entropies: FloatSums = before - self.sums["own"]
        return entropies

    def _take(self, block: Weights, rows: int, room: Weights) -> None:
        """Add Σ x·log x of [head, sentence, query, key] with so many ``rows`` per float32 sum: for every head, and for
        every sum of two heads."""
        heads, cells = len(block), block.size
        np.add(block, TINY, out=room[0, :cells].reshape(block.shape))
        rows_of_heads, both, logs = (
            part[:cells].reshape(heads, -1, rows * block.shape[3]) for part in room
        )  # [head, sum, cell]
        entropies = np.zeros((heads, heads))  # [distance between the two, the first of the two]
        entropies[0] = np.vecdot(rows_of_heads, np.log2(rows_of_heads, out=logs)).sum(axis=1, dtype=np.float64)
        for far in range(1, heads):  # heads at this distance are in two blocks of memory, which are added at once
            pairs = np.add(rows_of_heads[:-far], rows_of_heads[far:], out=both[:-far])
            entropies[far, :-far] = np.vecdot(pairs, np.log2(pairs, out=logs[:-far])).sum(axis=1, dtype=np.float64)
        entropies *= LN2
        first, second = np.triu_indices(heads, 1)
        self.sums["own"] += entropies[0]
        self.sums["mixed"][first, second] += entropies[second - first, first]


def divergences(sums: Running) -> FloatMatrix:
    """[head, head]: the mean Jensen–Shannon divergence over all rows, in nats, from the sums of :class:`Distances`.

    With s = p + q, whose rows sum to 2, JS(p, q) = log 2 + ½ Σ (p log p + q log q − s log s).
    """
    mixed, entropies, rows = sums["mixed"], sums["own"], max(1, int(sums["rows"]))
    above = LN2 + (entropies[:, None] + entropies[None] - mixed) / (2 * rows)
    upper = np.triu(np.maximum(0, above), 1)
    symmetric: FloatMatrix = upper + upper.T
    return symmetric


def nearest(distances: FloatSums, head: int, count: int) -> list[int]:
    """The ``count`` heads most similar to head number ``head``, nearest first, without itself. ``distances`` [head] are
    the distances from it."""
    order = np.argsort(distances, kind="stable")
    return [int(other) for other in order if other != head][:count]
