"""Compute the costs of one layer of multi-head attention by formula: parameters, multiply-adds and memory.

Vaswani et al. 2017, section 3.2.2: each head works in d_k = d_model / h dimensions, so that all heads together cost
about as much as one head of full width. Only the memory for the weights grows with h: h · n · n numbers.

With full projections, as in the paper, every head sees the whole vector: three matrices d_model × d_k per head, and W_O
with h·d_k × d_model. There are three other ways to cut the vector: narrow with one matrix per chunk (Bloem,
"Transformers from scratch"), narrow with one matrix for all chunks (his library), and overlapping random chunks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from mha_viz.errors import SettingError

PAPER_SHAPE = (512, 8)  # d_model and h of the base model (Vaswani et al. 2017, table 3): d_k = 64
FLOAT_BYTES = 4  # of a float32
MAX_WIDTH, MAX_HEADS, MAX_TOKENS = 65_536, 1_024, 1_048_576


FULL, NARROW, SHARED, OVERLAPPING = "full", "narrow", "shared", "overlapping"
CUTS = (FULL, NARROW, SHARED, OVERLAPPING)


class Shape(NamedTuple):
    """The shape of an attention layer: the width of the vector, the number of heads, and how the vector is cut.

    ``head_width`` is the dimension of each head if it is not d_model / h, otherwise 0.
    """

    d_model: int
    heads: int
    cut: str = FULL
    head_width: int = 0

    @property
    def d_k(self) -> int:
        """The dimension of a head's query, key and value."""
        return self.head_width or self.d_model // self.heads

    @property
    def input_width(self) -> int:
        """The number of components of the vector that one head sees; overlapping random chunks have 2·d_k."""
        return {FULL: self.d_model, OVERLAPPING: min(self.d_model, 2 * self.d_k)}.get(self.cut, self.d_k)

    @property
    def matrices(self) -> int:
        """The number of matrices that W_Q consists of; W_K and W_V have as many."""
        return 1 if self.cut == SHARED else self.heads

    def check(self) -> None:
        """Raise SettingError if such a layer cannot exist."""
        if self.cut not in CUTS:
            raise SettingError(f"There is no cut “{self.cut}”.", f"Choose one of: {', '.join(CUTS)}.")
        if self.d_model < 1 or self.heads < 1:
            problem = f"A layer cannot have d_model {self.d_model} and {self.heads} heads."
            raise SettingError(problem, "Give at least 1 of each.")
        error = None if self.head_width else find_division_error(self.d_model, self.heads)
        if error:
            raise error


def count_parameters(shape: Shape) -> int:
    """Return the number of weights of W_Q, W_K, W_V and W_O. The layer has no biases."""
    inner_width = shape.heads * shape.d_k
    return 3 * shape.matrices * shape.input_width * shape.d_k + inner_width * shape.d_model


def count_multiply_adds(shape: Shape, words: int) -> int:
    """Return the number of multiply-add operations for one sentence: projections, q·k, weighted values, W_O.

    A shared matrix is stored once but used by every head.
    """
    inner_width = shape.heads * shape.d_k
    projections = 3 * words * shape.input_width * inner_width
    return projections + 2 * words * words * inner_width + words * inner_width * shape.d_model


@dataclass(frozen=True)
class Costs:
    """The costs of one attention layer, without the feed-forward part, on one text of ``n`` tokens."""

    d_model: int
    heads: int
    n: int

    @property
    def shape(self) -> Shape:
        """The shape of the layer, with full projections."""
        return Shape(self.d_model, self.heads)

    @property
    def d_k(self) -> int:
        """The dimension of one head."""
        return self.shape.d_k

    @property
    def parameters(self) -> int:
        """The weights of W_Q, W_K, W_V and W_O, d_model × d_model each, as in the paper. They do not depend on h."""
        return count_parameters(self.shape)

    @property
    def with_biases(self) -> int:
        """The parameters with four biases of d_model numbers each, which models have and the paper omits."""
        return self.parameters + 4 * self.d_model

    @property
    def projections(self) -> int:
        """Multiply-adds of x W_Q, x W_K, x W_V and of the product with W_O."""
        return self.multiply_adds - self.products

    @property
    def products(self) -> int:
        """Multiply-adds of q kᵀ and of the weighted sums of v: 2 · h · n · n · d_k = 2 · n · n · d_model."""
        return 2 * self.n**2 * self.heads * self.d_k

    @property
    def multiply_adds(self) -> int:
        """All multiply-adds. Softmax and biases are not counted, because they are not matrix products."""
        return count_multiply_adds(self.shape, self.n)

    @property
    def parameter_bytes(self) -> int:
        """Memory of the parameters as float32, biases included."""
        return FLOAT_BYTES * self.with_biases

    @property
    def weight_bytes(self) -> int:
        """Memory of the attention weights, h · n · n float32. It grows with the square of the length of the text."""
        return FLOAT_BYTES * self.heads * self.n**2

    @property
    def vector_bytes(self) -> int:
        """Memory of q, k, v, the concatenation and the output, n · d_model float32 each."""
        return 5 * FLOAT_BYTES * self.n * self.d_model


def compute_costs(d_model: int, heads: int, n: int) -> Costs:
    """Compute the costs of a layer. Raises SettingError, whose message names valid settings."""
    _check_range("d_model", d_model, MAX_WIDTH)
    _check_range("h", heads, MAX_HEADS)
    _check_range("n", n, MAX_TOKENS)
    error = find_division_error(d_model, heads)
    if error:
        raise error
    return Costs(d_model, heads, n)


def find_division_error(
    d_model: int, heads: int, min_heads: int = 1, max_heads: int = MAX_HEADS
) -> SettingError | None:
    """Return the error for a number of heads that does not divide the width; None if it does.

    The message suggests numbers from ``min_heads`` to ``max_heads`` that divide it.
    """
    if d_model % heads == 0:
        return None
    divisors = sorted(sorted(list_divisors(d_model, min_heads, max_heads), key=lambda h: abs(h - heads))[:4])
    return SettingError(
        f"{heads} heads cannot share {d_model} dimensions equally: {d_model % heads} would remain.",
        f"Choose h = {', '.join(map(str, divisors))}, or another d_model.",
    )


def list_divisors(d_model: int, min_heads: int = 1, max_heads: int = MAX_HEADS) -> list[int]:
    """Return the numbers of heads from ``min_heads`` to ``max_heads`` that divide the width."""
    return [h for h in range(min_heads, min(d_model, max_heads) + 1) if d_model % h == 0]


def _check_range(name: str, value: int, maximum: int) -> None:
    """Raise SettingError unless a value is between 1 and ``maximum``."""
    if not 1 <= value <= maximum:
        raise SettingError(f"{name} is {value}.", f"Give a whole number from 1 to {maximum:,}.")
