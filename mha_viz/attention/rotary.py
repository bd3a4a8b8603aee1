"""Rotary positions: queries and keys are rotated by an angle that grows with their token's position (Su et al. 2021,
"RoFormer", section 3.2.2), in some models after a separate normalisation."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
F = TypeVar("F", np.float32, np.float64)


class Rotation(NamedTuple):
    """The rotation of the queries and keys of a layer on one text.

    The first r of a head's d_k numbers are rotated, the others stay unchanged. Numbers i and i + r/2 are a point in a
    plane, which is rotated about 0; the paper, GPT-J and Cohere pair 2i and 2i + 1, which is the same up to the order
    of columns: a trace of such a model has its columns in the order that is used here.
    """

    cos: Floats  # [n, r]; some models for long texts multiply both by a factor
    sin: Floats  # [n, r]
    # Factors of queries and keys after division by their RMS: [2, d_k]; [0, 0] without normalisation; [2, h, 1, d_k] if
    # the RMS is that of all heads of a layer together, as in OLMo 2.
    norms: Floats
    eps: float = 0.0  # added to the mean square under the root

    @property
    def turned(self) -> int:
        """How many numbers of a query or key are rotated, r."""
        return int(self.cos.shape[1])

    @property
    def has_norms(self) -> bool:
        """True if queries and keys are normalised before the rotation."""
        return len(self.norms) > 0

    @property
    def is_joint(self) -> bool:
        """True if the queries of all heads are normalised together, and so their keys."""
        return self.norms.ndim > 2

    def normalised(self, vectors: Floats, which: int) -> Floats:
        """Queries (``which`` 0) or keys (1), [h, n, d_k], after their RMSNorm, where the model has one (Zhang and
        Sennrich 2019, equation 4)."""
        if not self.has_norms:
            return vectors
        scaled: Floats = vectors * self.factors(vectors, which)
        return scaled

    def factors(self, vectors: Floats, which: int) -> Floats:
        """What the RMSNorm of queries (``which`` 0) or keys (1), [h, n, d_k], multiplies each of their numbers by: ones
        where the model has none."""
        if not self.has_norms:
            return np.ones_like(vectors)
        axes = (0, -1) if self.is_joint else -1
        size = np.sqrt((vectors * vectors).mean(axis=axes, keepdims=True) + np.float32(self.eps))
        factors: Floats = self.norms[which] / size
        return factors

    def rotate(self, vectors: Floats) -> Floats:
        """Queries or keys of all tokens, [..., n, d_k], rotated by their positions."""
        return rotate(vectors, self.cos, self.sin)


def rotate(vectors: npt.NDArray[F], cos: Floats, sin: Floats) -> npt.NDArray[F]:
    """Vectors [..., d_k] rotated by angles with the given cosines and sines, [..., r] each."""
    r = cos.shape[-1]
    first, second = vectors[..., : r // 2], vectors[..., r // 2 : r]
    across = np.concatenate([-second, first], axis=-1)
    moved: npt.NDArray[F] = np.concatenate([vectors[..., :r] * cos + across * sin, vectors[..., r:]], axis=-1)
    return moved
