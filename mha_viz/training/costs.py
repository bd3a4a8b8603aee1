"""What multi-head attention costs: parameters and multiply-adds, by formula.

Projected in full (Vaswani et al. 2017, section 3.2.2), every head sees the whole vector: three matrices d_model × d_k
per head, and W_O with h·d_k × d_model. With d_k = d_model / h neither sum depends on h. The other ways to cut the
vector are those of Bloem, "Transformers from scratch" (narrow, one matrix per chunk), of his library (narrow, one
matrix for all chunks), and random chunks that overlap.
"""

from __future__ import annotations

from typing import NamedTuple

from mha_viz.errors import SettingError

FULL, NARROW, SHARED, OVERLAPPING = "full", "narrow", "shared", "overlapping"
CUTS = (FULL, NARROW, SHARED, OVERLAPPING)


class Shape(NamedTuple):
    """One attention layer: the width of the vector, the number of heads, and how the vector is cut."""

    d_model: int
    heads: int
    cut: str = FULL

    @property
    def d_k(self) -> int:
        """The dimension of a head's query, key and value."""
        return self.d_model // self.heads

    @property
    def seen(self) -> int:
        """Components of the vector that one head sees; overlapping random chunks have 2·d_k."""
        return {FULL: self.d_model, OVERLAPPING: min(self.d_model, 2 * self.d_k)}.get(self.cut, self.d_k)

    @property
    def matrices(self) -> int:
        """The number of matrices that W_Q consists of (and W_K, and W_V)."""
        return 1 if self.cut == SHARED else self.heads

    def check(self) -> None:
        """Raise SettingError when such a layer cannot exist."""
        if self.cut not in CUTS:
            raise SettingError(f"There is no cut “{self.cut}”.", f"Choose one of: {', '.join(CUTS)}.")
        if self.d_model < 1 or self.heads < 1:
            raise SettingError(f"A layer with d_model {self.d_model} and {self.heads} heads does not exist.")
        if self.d_model % self.heads:
            divisors = [h for h in range(1, self.d_model + 1) if self.d_model % h == 0]
            raise SettingError(
                f"{self.heads} heads do not divide d_model = {self.d_model}: d_k = d_model / h must be whole.",
                f"Take one of {', '.join(map(str, divisors))}.",
            )


def parameters(shape: Shape) -> int:
    """Weights of W_Q, W_K, W_V and W_O; the layer has no biases."""
    inner = shape.heads * shape.d_k
    return 3 * shape.matrices * shape.seen * shape.d_k + inner * shape.d_model


def multiply_adds(shape: Shape, words: int) -> int:
    """Multiply-add operations for one sentence: projections, q·k, weighted values, W_O.

    A shared matrix is stored once but used by every head.
    """
    inner = shape.heads * shape.d_k
    projections = 3 * words * shape.seen * inner
    return projections + 2 * words * words * inner + words * inner * shape.d_model
