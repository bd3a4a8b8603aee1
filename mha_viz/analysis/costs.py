"""What one layer of multi-head attention costs: parameters, multiply-adds and memory, by formula.

Vaswani et al. 2017, section 3.2.2: each head works in d_k = d_model / h dimensions, so that all heads together cost
about as much as one head of full width. What grows with h is the memory for the weights, h · n · n numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

from mha_viz.errors import SettingError

PAPER = (512, 8)  # d_model and h of the base model (Vaswani et al. 2017, table 3): d_k = 64
BYTES = 4  # of a float32
MOST_WIDTH, MOST_HEADS, MOST_TOKENS = 65_536, 1_024, 1_048_576


@dataclass(frozen=True)
class Costs:
    """One layer's attention, without the feed-forward part, over one text of ``n`` tokens."""

    d_model: int
    heads: int
    n: int

    @property
    def d_k(self) -> int:
        """Dimensions of one head."""
        return self.d_model // self.heads

    @property
    def parameters(self) -> int:
        """W_Q, W_K, W_V and W_O, d_model × d_model each, as in the paper. Does not depend on h."""
        return 4 * self.d_model**2

    @property
    def with_biases(self) -> int:
        """The parameters and four biases of d_model numbers, which models have but the paper has not."""
        return self.parameters + 4 * self.d_model

    @property
    def projections(self) -> int:
        """Multiply-adds of x W_Q, x W_K, x W_V and of the product with W_O."""
        return 4 * self.n * self.d_model**2

    @property
    def products(self) -> int:
        """Multiply-adds of q kᵀ and of the weighted sums of v: 2 · h · n · n · d_k = 2 · n · n · d_model."""
        return 2 * self.n**2 * self.heads * self.d_k

    @property
    def multiply_adds(self) -> int:
        """All of them; softmax and biases, which are no products of matrices, are not counted."""
        return self.projections + self.products

    @property
    def parameter_bytes(self) -> int:
        """Memory of the parameters as float32, biases included."""
        return BYTES * self.with_biases

    @property
    def weight_bytes(self) -> int:
        """Memory of the attention weights, h · n · n float32: what grows with the square of the text."""
        return BYTES * self.heads * self.n**2

    @property
    def vector_bytes(self) -> int:
        """Memory of q, k, v, the concatenation and the output, n · d_model float32 each."""
        return 5 * BYTES * self.n * self.d_model


def costs(d_model: int, heads: int, n: int) -> Costs:
    """The costs of these settings. Raises SettingError, which names what would do."""
    _check("d_model", d_model, MOST_WIDTH)
    _check("h", heads, MOST_HEADS)
    _check("n", n, MOST_TOKENS)
    if d_model % heads:
        near = sorted(sorted(divisors(d_model), key=lambda h: abs(h - heads))[:4])
        raise SettingError(
            f"{heads} heads cannot share {d_model} dimensions equally: {d_model % heads} would be left over.",
            f"Take h = {', '.join(map(str, near))}, or another d_model.",
        )
    return Costs(d_model, heads, n)


def divisors(d_model: int) -> list[int]:
    """The numbers of heads that divide a width."""
    return [h for h in range(1, min(d_model, MOST_HEADS) + 1) if d_model % h == 0]


def _check(name: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise SettingError(f"{name} is {value}.", f"Take a whole number from 1 to {most:,}.")
