"""Rotary positions: queries and keys are rotated by an angle that grows with the position of their token.

See Su et al. 2021, "RoFormer", section 3.2.2. Some models normalise queries and keys before the rotation.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
F = TypeVar("F", np.float32, np.float64)


class Rotation(NamedTuple):
    """The rotation of the queries and keys of a layer on one text.

    The first r of a head's d_k numbers are rotated, the others stay unchanged. Numbers i and i + r/2 are a point in a
    plane, which is rotated about 0. The paper, GPT-J and Cohere pair 2i and 2i + 1 instead, which is the same up to the
    order of columns; a trace of such a model has its columns in the order used here.
    """

    cos: Floats  # [n, r]; some models for long texts multiply cos and sin by a factor
    sin: Floats  # [n, r]
    # Factors of queries and keys after division by their RMS: [2, d_k]; [0, 0] without normalisation; [2, h, 1, d_k] if
    # the RMS is that of all heads of a layer together, as in OLMo 2.
    norms: Floats
    eps: float = 0.0  # added to the mean square under the root

    @property
    def rotated_size(self) -> int:
        """The number of rotated components of a query or key, r."""
        return int(self.cos.shape[1])

    @property
    def has_norms(self) -> bool:
        """True if queries and keys are normalised before the rotation."""
        return len(self.norms) > 0

    @property
    def is_joint(self) -> bool:
        """True if the queries of all heads are normalised together, and the keys, too."""
        return self.norms.ndim > 2

    def normalise(self, vectors: Floats, side: int) -> Floats:
        """Apply the RMSNorm of queries (``side`` 0) or keys (1), [h, n, d_k], if the model has one.

        See Zhang and Sennrich 2019, equation 4.
        """
        if not self.has_norms:
            return vectors
        scaled: Floats = vectors * self.compute_factors(vectors, side)
        return scaled

    def compute_factors(self, vectors: Floats, side: int) -> Floats:
        """Return the factors by which the RMSNorm of queries (``side`` 0) or keys (1), [h, n, d_k], multiplies them.

        They are ones if the model has no such norm.
        """
        if not self.has_norms:
            return np.ones_like(vectors)
        axes = (0, -1) if self.is_joint else -1
        rms = np.sqrt((vectors * vectors).mean(axis=axes, keepdims=True) + np.float32(self.eps))
        factors: Floats = self.norms[side] / rms
        return factors

    def rotate(self, vectors: Floats) -> Floats:
        """Rotate queries or keys of all tokens, [..., n, d_k], by their positions."""
        return rotate(vectors, self.cos, self.sin)


def rotate(vectors: npt.NDArray[F], cos: Floats, sin: Floats) -> npt.NDArray[F]:
    """Rotate vectors [..., d_k] by angles with these cosines and sines, [..., r] each."""
    r = cos.shape[-1]
    first, second = vectors[..., : r // 2], vectors[..., r // 2 : r]
    perpendicular = np.concatenate([-second, first], axis=-1)
    rotated: npt.NDArray[F] = np.concatenate([vectors[..., :r] * cos + perpendicular * sin, vectors[..., r:]], axis=-1)
    return rotated
