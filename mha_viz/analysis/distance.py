"""Measure how different heads are: the mean Jensen–Shannon divergence of their rows, in nats.

JS(p, q) = H((p + q) / 2) − (H(p) + H(q)) / 2, where H is the entropy in nats. It is 0 for equal rows and ln 2 = 0.693
for rows that share no key (Lin 1991; for attention heads, Clark et al. 2019, section 6).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.reduce import TINY, Batch, FloatSums, RunningSums
from mha_viz.attention import Attention, Head, Weights
from mha_viz.errors import ShapeError

FloatMatrix = npt.NDArray[np.float64]

LN2 = math.log(2)  # the largest divergence
BATCH_CELLS = 1 << 20  # cells that are processed at a time: 4 MB
CACHE_CELLS = 1 << 16  # cells whose values and logarithms fit into a core's cache
BLOCK_CELLS = 1 << 10  # about this many cells are added in float32, and the results in float64


def entropy(shares: npt.NDArray[np.floating]) -> FloatSums:
    """Return the entropy −Σ p ln p along the last axis, in nats.

    It is 0 if one cell has everything, and ln n if all n cells are equal; 0 · ln 0 counts as 0. Logarithms, products
    and sums of up to BLOCK_CELLS cells have the type of ``shares``; these sums are added in float64.
    """
    rows = shares.reshape(-1, shares.shape[-1])
    bits = np.empty(len(rows))
    step = max(1, CACHE_CELLS // max(1, rows.shape[1]))  # rows at a time
    full_blocks = rows.shape[1] // BLOCK_CELLS * BLOCK_CELLS
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        if part.min(initial=0) < 0:  # a weight may be a rounding error below 0
            part = np.maximum(part, 0)
        logs = np.log2(part + TINY)
        sums = (array[:, :full_blocks].reshape(len(part), -1, BLOCK_CELLS) for array in (part, logs))
        remainder = np.vecdot(part[:, full_blocks:], logs[:, full_blocks:])
        bits[start : start + step] = np.vecdot(*sums).sum(axis=1, dtype=np.float64) + remainder
    return (0.0 - bits * LN2).reshape(shares.shape[:-1])  # the sign is changed without producing -0.0


def jensen_shannon(mean: FloatSums, first: FloatSums, second: FloatSums) -> FloatSums:
    """Return the Jensen–Shannon divergence, given the entropy of the mean and the entropies of both distributions."""
    nats: FloatSums = np.maximum(0, mean - (first + second) / 2)
    return nats


def divergence(first: Weights, second: Weights) -> float:
    """Return the Jensen–Shannon divergence of two matrices [query, key], in nats, averaged over rows.

    Raises ShapeError if their axes differ.
    """
    if first.shape != second.shape or first.ndim != 2:
        raise ShapeError(f"Matrices of shape {first.shape} and {second.shape} have no common rows and columns.")
    p, q = (matrix.astype(np.float64).reshape(-1) for matrix in (first, second))
    return float(jensen_shannon(entropy((p + q) / 2), entropy(p), entropy(q))) / len(first)


def compute_head_divergences(first: Attention, second: Attention) -> FloatMatrix:
    """Return [layer, head], the divergence of each head between two readings, in nats, averaged over rows.

    Both readings are of the same tokens by the same model. Raises ShapeError if their axes differ.
    """
    if first.weights.shape != second.weights.shape:
        raise ShapeError(f"Readings of shape {first.weights.shape} and {second.weights.shape} cannot be compared.")
    p, q = (a.weights.reshape(a.layers, a.heads, -1) for a in (first, second))
    nats: FloatMatrix = jensen_shannon(entropy((p + q) / 2), entropy(p), entropy(q)) / len(first.queries)
    return nats


def compute_divergences_from(attention: Attention, head: Head) -> FloatSums:
    """Return [head], the divergence of every head of a reading from ``head``, in nats.

    Heads are in the order L0H0, L0H1, …. Logarithms are float32 and sums float64; the result is exact to 1e-6.
    """
    flat = attention.weights.reshape(attention.layers * attention.heads, -1)  # [head, query · key]
    entropies, place = _compute_entropies(flat), attention.place(head)
    distances = jensen_shannon(_compute_entropies(flat, flat[place]), entropies, entropies[place]) / len(
        attention.queries
    )
    distances[place] = 0  # its distance from itself
    return distances


def compute_cross_divergences(first: Weights, second: Weights) -> FloatMatrix:
    """Return [head of the first, head of the second], the divergences of their rows, added over rows.

    The weights are [head, query, key] of the same tokens. Raises ShapeError if their axes of tokens differ.
    """
    if first.shape[1:] != second.shape[1:]:
        raise ShapeError(f"Heads of shape {first.shape[1:]} and {second.shape[1:]} have no common rows and columns.")
    flat, other = first.reshape(len(first), -1), second.reshape(len(second), -1)  # [head, query · key]
    entropies = _compute_entropies(other)
    return np.stack([jensen_shannon(_compute_entropies(other, rows), entropies, entropy(rows)) for rows in flat])


def _compute_entropies(flat: Weights, other: Weights | None = None) -> FloatSums:
    """Return [head], the entropy of each head of ``flat`` [head, query · key], or of its mean with ``other``."""
    step = max(1, BATCH_CELLS // flat.shape[1])  # heads at a time
    entropies = np.empty(len(flat))
    for start in range(0, len(flat), step):
        part = flat[start : start + step] if other is None else (flat[start : start + step] + other) / 2
        entropies[start : start + step] = entropy(part)
    return entropies


class Distances:
    """Running sums over batches of sentences, for the divergence of every two heads (:func:`compute_divergences`).

    ``sums`` has three arrays. "mixed" [head, head] is, above the diagonal, Σ x·ln x over all cells x of s = p + q;
    "own" [head] is the same sum over the cells of p; "rows" is the number of rows. Blocks of about BLOCK_CELLS cells of
    a sentence, always the same blocks, are added in float32, and their sums in float64.
    """

    CELLS_PER_STEP = 900_000  # cells of all heads per step; enough that threads rarely wait for each other

    def __init__(self, heads: int) -> None:
        self.sums: RunningSums = {
            "mixed": np.zeros((heads, heads)),
            "own": np.zeros(heads),
            "rows": np.zeros((), np.int64),
        }

    def add(self, batch: Batch) -> FloatSums:
        """Add a batch. Return [head], the sum of the entropies of its rows in nats."""
        own_before = self.sums["own"].copy()
        heads, sentences, n, _ = batch.weights.shape
        rows = -(-n // -(-n * n // BLOCK_CELLS))  # rows per float32 sum; the last sum may have fewer
        sum_count = self.CELLS_PER_STEP // (heads * rows * n) or 1  # float32 sums of each head at a time
        sentences_at_once = max(1, sum_count * rows // n)
        buffers = np.empty((3, heads * sum_count * rows * n), np.float32)
        for start in range(0, sentences, sentences_at_once):
            for row in range(0, n, sum_count * rows):
                block = batch.weights[:, start : start + sentences_at_once, row : min(n, row + sum_count * rows)]
                full_rows = block.shape[2] // rows * rows
                self._add_block(block[:, :, :full_rows], rows, buffers)
                if full_rows < block.shape[2]:
                    self._add_block(block[:, :, full_rows:], block.shape[2] - full_rows, buffers)
        self.sums["rows"] += sentences * n
        entropies: FloatSums = own_before - self.sums["own"]
        return entropies

    def _add_block(self, block: Weights, rows: int, buffers: Weights) -> None:
        """Add Σ x·log x of ``block`` [head, sentence, query, key], for every head and for every sum of two heads.

        ``rows`` is the number of rows per float32 sum; ``buffers`` are three arrays to compute in.
        """
        heads, cells = len(block), block.size
        np.add(block, TINY, out=buffers[0, :cells].reshape(block.shape))
        # [head, sum, cell]
        head_cells, pair_sums, logs = (part[:cells].reshape(heads, -1, rows * block.shape[3]) for part in buffers)
        entropies = np.zeros((heads, heads))  # [gap between two heads, first head]
        entropies[0] = np.vecdot(head_cells, np.log2(head_cells, out=logs)).sum(axis=1, dtype=np.float64)
        for gap in range(1, heads):  # all pairs of heads this far apart are added at once
            pairs = np.add(head_cells[:-gap], head_cells[gap:], out=pair_sums[:-gap])
            entropies[gap, :-gap] = np.vecdot(pairs, np.log2(pairs, out=logs[:-gap])).sum(axis=1, dtype=np.float64)
        entropies *= LN2
        first, second = np.triu_indices(heads, 1)
        self.sums["own"] += entropies[0]
        self.sums["mixed"][first, second] += entropies[second - first, first]


def compute_divergences(sums: RunningSums) -> FloatMatrix:
    """Return [head, head], the mean Jensen–Shannon divergence over all rows, in nats.

    ``sums`` come from :class:`Distances`. With s = p + q, whose rows sum to 2, JS(p, q) = log 2 + ½ Σ (p log p + q
    log q − s log s).
    """
    mixed_sums, entropies, rows = sums["mixed"], sums["own"], max(1, int(sums["rows"]))
    divergences = LN2 + (entropies[:, None] + entropies[None] - mixed_sums) / (2 * rows)
    upper_triangle = np.triu(np.maximum(0, divergences), 1)
    symmetric_divergences: FloatMatrix = upper_triangle + upper_triangle.T
    return symmetric_divergences


def find_nearest_heads(distances: FloatSums, head: int, count: int) -> list[int]:
    """Return the ``count`` heads most similar to head number ``head``, nearest first, without the head itself.

    ``distances`` [head] are the distances from it.
    """
    order = np.argsort(distances, kind="stable")
    return [int(other) for other in order if other != head][:count]
