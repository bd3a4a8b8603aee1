"""The computation of one layer's attention: every number between its input and its output vectors.

Vaswani et al. 2017: MultiHead(x) = Concat(head_1, …, head_h) W_O, where each head has its own matrices, q = x W_Q, k =
x W_K and v = x W_V (section 3.2.2), and outputs softmax(q kᵀ / √d_k) v (section 3.2.1). Models add a bias to each
product of x with a matrix, and to the product with W_O.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from mha_viz.attention.rotary import Rotation
from mha_viz.errors import ShapeError, UnknownHead
from mha_viz.heads import AnyHead, Head, is_number
from mha_viz.model_names import shorten_name
from mha_viz.text import TokenizedText

Floats = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
A = TypeVar("A", Floats, Mask)


class Parameters(NamedTuple):
    """The trained parameters of one layer's attention, with the matrices of heads side by side, as models store them.

    If heads share keys and values, as in Llama, there are g < h of them, each for h / g heads (Ainslie et al. 2023,
    "GQA"); otherwise g = h.
    """

    w_q: Floats  # [d_model, h · d_k]
    w_k: Floats  # [d_model, g · d_k]
    w_v: Floats  # [d_model, g · d_k]
    w_o: Floats  # [h · d_k, d_model]
    b_q: Floats  # [h · d_k]; zeros where the model has no bias
    b_k: Floats  # [g · d_k]
    b_v: Floats  # [g · d_k]
    b_o: Floats  # [d_model]


class DistanceTerms(NamedTuple):
    """Terms that a layer adds to its scaled scores for the distance between two tokens.

    They are a bias (Raffel et al. 2020; Press et al. 2022, "ALiBi"), and the products of the query and of the key with
    vectors of distances (He et al. 2021, "DeBERTa", equation 4).
    """

    biases: Floats  # [h or 1, query, key]
    keys: Floats  # [h, distance, d_k]: vectors that queries are compared with; no rows without such products
    queries: Floats  # [h, distance, d_k]: vectors that keys are compared with
    rows: npt.NDArray[np.intp]  # [2, query, key]: the rows of ``keys`` and ``queries`` for two tokens

    def vectors(self, side: int, head: int) -> Floats:
        """Return [query, key, d_k], the vectors of distances for the keys (``side`` 0) or the queries (1) of a head.

        The last axis is empty if there are none.
        """
        vectors = (self.keys, self.queries)[side]
        return vectors[head][self.rows[side]] if vectors.shape[1] else np.zeros((*self.rows.shape[1:], 0), np.float32)

    def compute(self, q: Floats, k: Floats, scaling: float) -> Floats:
        """Compute [h, query, key], the terms to add to the scaled scores of q and k, [h, n, d_k] each."""
        sides = enumerate((q, k))
        products = [
            self.multiply(side, head, head_vectors)
            for side, vectors in sides
            for head, head_vectors in enumerate(vectors)
        ]
        side_sums = np.stack(products).reshape(2, len(q), *self.rows.shape[1:]).sum(axis=0)
        total: Floats = side_sums * np.float32(scaling) + self.biases
        return total

    def multiply(self, side: int, head: int, vectors: Floats) -> Floats:
        """Multiply queries or keys with the vectors of distances. Return the products, [query, key].

        ``vectors`` are a head's queries (``side`` 0) or keys (1), [n, d_k].
        """
        distance_vectors = self.vectors(side, head)
        if not distance_vectors.shape[-1]:
            return np.zeros(distance_vectors.shape[:2], np.float32)
        product: Floats = np.einsum("ijd,id->ij" if side == 0 else "ijd,jd->ij", distance_vectors, vectors)
        return product


class Agreement(NamedTuple):
    """The largest differences between the numbers computed here and those of the model."""

    weights: float
    output: float


@dataclass(frozen=True, eq=False)
class Trace:
    """One layer's attention on one text, step by step. Every array is float32 and read-only.

    Attributes:
        scaling: the factor of the products, 1 / √d_k in the paper and in almost every model.
        layer_input: the input of a layer that normalises it and passes the result, x, to its attention.
        rotation: the rotation of queries and keys by their positions, in models that have it. ``q`` and ``k`` are then
            rotated; ``before_turn`` has the unrotated ones.
        relative: the terms that the distance between two tokens adds to the scaled scores.
        memory: in cross-attention, the input of W_K and W_V in place of x; there are then m keys.
    """

    model: str
    revision: str
    layer: int
    text: TokenizedText
    scaling: float
    parameters: Parameters
    x: Floats  # [n, d_model]: the input of W_Q, W_K and W_V for every head; normalised if layers do so first
    mask: Mask  # [query, key]: True at masked positions
    q: Floats  # [h, n, d_k]
    k: Floats  # [h, n, d_k]; equal for heads that share keys
    v: Floats  # [h, n, d_k]
    scores: Floats  # [h, query, key]: q · k
    weights: Floats  # [h, query, key]: softmax(scores · scaling), rows sum to 1
    context: Floats  # [h, n, d_k]: the weighted sum of the values
    agreement: Agreement
    layer_input: Floats | None = None  # [n, d_model]
    rotation: Rotation | None = None
    relative: DistanceTerms | None = None
    memory: Floats | None = None  # [m, d_model]

    @property
    def heads(self) -> int:
        """The number of heads in the layer, h."""
        return int(self.q.shape[0])

    @property
    def n(self) -> int:
        """The number of tokens."""
        return int(self.x.shape[0])

    @property
    def d_model(self) -> int:
        """The dimension of a token's vector."""
        return int(self.x.shape[1])

    @property
    def d_k(self) -> int:
        """The dimension of a head's queries, keys and values."""
        return int(self.q.shape[2])

    @property
    def key_heads(self) -> int:
        """The number of keys, and of values, per token; less than the number of heads if heads share them."""
        return int(self.parameters.w_k.shape[1]) // self.d_k

    @property
    def pre_norm(self) -> bool:
        """True if the layer normalises its input and passes the result to its attention."""
        return self.layer_input is not None

    @cached_property
    def before_turn(self) -> tuple[Floats, Floats]:
        """Queries and keys before the rotation by their positions, [h, n, d_k] each.

        Without a rotation, they are ``q`` and ``k``.
        """
        if self.rotation is None:
            return self.q, self.k
        q, k, _ = project_input(self.x, self.parameters, self.heads, self.memory)
        return _read_only(self.rotation.normalise(q, 0)), _read_only(self.rotation.normalise(k, 1))

    @property
    def has_standard_scaling(self) -> bool:
        """True if the products are divided by √d_k and nothing else."""
        return math.isclose(self.scaling, 1 / math.sqrt(self.d_k), rel_tol=1e-6)

    @property
    def masked(self) -> bool:
        """True if some query must not attend to some key."""
        return bool(self.mask.any())

    @property
    def causal(self) -> bool:
        """True if no query may attend to a later key."""
        return self.n > 1 and bool(self.mask[np.triu_indices(self.n, 1)].all())

    @property
    def windowed(self) -> bool:
        """True if some query must not attend to an earlier key, because it is too far away."""
        return bool(np.tril(self.mask).any())

    @property
    def scaled(self) -> Floats:
        """The input of softmax, before the mask: [h, query, key]."""
        return _read_only(_scale_scores(self.q, self.k, self.scores, self.scaling, self.relative))

    @property
    def concatenation(self) -> Floats:
        """The outputs of the heads side by side: [n, h · d_k]; columns i·d_k to (i+1)·d_k belong to head i."""
        return _read_only(concatenate_heads(self.context))

    @cached_property
    def output(self) -> Floats:
        """The output of the layer's attention, before the residual is added: [n, d_model]."""
        return _read_only(self.concatenation @ self.parameters.w_o + self.parameters.b_o)

    @property
    def bytes(self) -> int:
        """The size of the arrays in memory, in bytes."""
        arrays = (self.x, self.mask, self.q, self.k, self.v, self.scores, self.weights, self.context, self.output)
        inputs = [] if self.layer_input is None else [self.layer_input]
        rotations = [] if self.rotation is None else [self.rotation.cos, self.rotation.sin, self.rotation.norms]
        return sum(array.nbytes for array in (*arrays, *self.parameters, *inputs, *rotations))

    def number(self, head: int | AnyHead) -> int:
        """Return the number of a head within the layer, given as 1, "L3H1" or (3, 1).

        Raises UnknownHead for a head of another layer, or one that does not exist.
        """
        target = Head.of((self.layer, head) if is_number(head) else head)
        if target.layer != self.layer:
            raise UnknownHead(f"{target} is in another layer: this is layer {self.layer}.", "Trace that layer.")
        if not 0 <= target.head < self.heads:
            raise UnknownHead(
                f"{target} does not exist: layer {self.layer} of {shorten_name(self.model)} has {self.heads} heads.",
                f"Choose between {Head(self.layer, 0)} and {Head(self.layer, self.heads - 1)}.",
            )
        return target.head

    def slice_w_o(self, head: int | AnyHead) -> Floats:
        """Return the rows of W_O that are multiplied with this head's output: [d_k, d_model].

        Raises UnknownHead, as do all methods below.
        """
        number = self.number(head)
        return self.parameters.w_o[number * self.d_k : (number + 1) * self.d_k]

    def contribution(self, head: int | AnyHead) -> Floats:
        """Return the contribution of this head to the output: [n, d_model].

        The sum over all heads, plus the bias, is the output.
        """
        return _read_only(self.context[self.number(head)] @ self.slice_w_o(head))

    def undivided(self, head: int | AnyHead) -> Floats:
        """Return the weights of this head without the scaling: [query, key]."""
        return _read_only(softmax(self.scores[self.number(head)], self.mask))

    def norm_weighted(self, head: int | AnyHead) -> Floats:
        """Return ‖A[i, j] (x_j W_V + b_V) W_O‖ for this head: [query, key] (Kobayashi et al. 2020, section 3.2)."""
        number = self.number(head)
        lengths: Floats = np.linalg.norm(self.v[number] @ self.slice_w_o(number), axis=1)  # [key]
        return _read_only(self.weights[number] * lengths)

    @cached_property
    def loop_difference(self) -> float:
        """The largest difference between computing all heads together and one after the other."""
        loop_context = compute_one_by_one(
            self.x, self.parameters, self.mask, self.scaling, self.heads, self.rotation, self.memory
        )
        return float(np.abs(self.context - loop_context).max())


def compute_trace(
    model: str,
    revision: str,
    layer: int,
    text: TokenizedText,
    x: Floats,
    parameters: Parameters,
    mask: Mask,
    *,
    heads: int,
    scaling: float,
    layer_input: Floats | None = None,
    rotation: Rotation | None = None,
    relative: DistanceTerms | None = None,
    memory: Floats | None = None,
    model_results: tuple[Floats, Floats] | None = None,
) -> Trace:
    """Compute a trace from ``x`` [n, d_model].

    ``model_results`` are the weights [h, query, key] and the output [n, d_model] of the model, for comparison.
    ``layer_input``, ``rotation``, ``relative`` and ``memory`` are as for :class:`Trace`. Raises ShapeError if the
    number of heads does not divide the number of columns of W_Q.
    """
    if parameters.w_q.shape[1] % heads:
        raise ShapeError(f"{heads} heads cannot share {parameters.w_q.shape[1]} columns.")
    p = parameters
    q, k, v = project_input(x, p, heads, memory)
    if rotation is not None:
        q, k = (rotation.rotate(rotation.normalise(vectors, side)) for side, vectors in enumerate((q, k)))
    scores = q @ k.transpose(0, 2, 1)  # [h, query, key]: one matrix product for all heads
    weights = softmax(_scale_scores(q, k, scores, scaling, relative), mask)
    context = weights @ v  # [h, n, d_k]
    output = concatenate_heads(context) @ p.w_o + p.b_o  # [n, d_model]
    reference = model_results or (weights, output)
    agreement = Agreement(float(np.abs(weights - reference[0]).max()), float(np.abs(output - reference[1]).max()))
    for array in (x, q, k, v, scores, weights, context, *p):
        _read_only(array)
    return Trace(
        *(model, revision, layer, text, scaling, p, x, _read_only(mask)),
        *(q, k, v, scores, weights, context, agreement),
        layer_input,
        rotation,
        relative,
        memory,
    )


def _scale_scores(q: Floats, k: Floats, scores: Floats, scaling: float, relative: DistanceTerms | None) -> Floats:
    """Return [h, query, key], the scores times their factor, plus what distances add."""
    scaled: Floats = scores * np.float32(scaling)
    return scaled if relative is None else scaled + relative.compute(q, k, scaling)


def project_input(x: Floats, p: Parameters, heads: int, memory: Floats | None = None) -> tuple[Floats, Floats, Floats]:
    """Return queries, keys and values, [h, n, d_k] each; shared ones are repeated.

    ``memory`` is as for :class:`Trace`.
    """
    d_k, y = p.w_q.shape[1] // heads, x if memory is None else memory
    projections = ((x, p.w_q, p.b_q), (y, p.w_k, p.b_k), (y, p.w_v, p.b_v))
    q, k, v = (split_heads(source @ w + b, w.shape[1] // d_k) for source, w, b in projections)
    return q, repeat_for_heads(heads, k), repeat_for_heads(heads, v)


def repeat_for_heads(heads: int, vectors: Floats) -> Floats:
    """Repeat shared keys or values [g, n, d_k] for each head, [h, n, d_k]."""
    return vectors if len(vectors) == heads else np.repeat(vectors, heads // len(vectors), axis=0)


def compute_one_by_one(
    x: Floats,
    p: Parameters,
    mask: Mask,
    scaling: float,
    heads: int,
    rotation: Rotation | None = None,
    memory: Floats | None = None,
) -> Floats:
    """Compute the heads in a loop, each with its slices of the matrices. Return the context, [h, n, d_k]."""
    d_k, y = p.w_q.shape[1] // heads, x if memory is None else memory
    heads_per_key = heads * d_k // p.w_k.shape[1]  # heads per key and value
    outputs = []
    factors = [np.ones((heads, 1, 1), np.float32)] * 2
    if rotation is not None:  # a norm may be over all heads together
        factors = [rotation.compute_factors(v, side) for side, v in enumerate(project_input(x, p, heads, memory)[:2])]
    for head in range(heads):
        columns, shared_columns = (slice(number * d_k, (number + 1) * d_k) for number in (head, head // heads_per_key))
        q = x @ p.w_q[:, columns] + p.b_q[columns]  # [n, d_k]
        k = y @ p.w_k[:, shared_columns] + p.b_k[shared_columns]
        v = y @ p.w_v[:, shared_columns] + p.b_v[shared_columns]
        if rotation is not None:
            q, k = rotation.rotate(q * factors[0][head]), rotation.rotate(k * factors[1][head])
        outputs.append(softmax(q @ k.T * np.float32(scaling), mask) @ v)
    return np.stack(outputs)


def split_heads(columns: Floats, heads: int) -> Floats:
    """Split the columns of W_Q or q by heads, [rows, h · d_k] → [h, rows, d_k], as a view."""
    return columns.reshape(len(columns), heads, -1).transpose(1, 0, 2)


def concatenate_heads(context: Floats) -> Floats:
    """Concatenate the outputs of heads: [h, n, d_k] → [n, h · d_k]."""
    return context.transpose(1, 0, 2).reshape(context.shape[1], -1)


def softmax(scores: Floats, mask: Mask) -> Floats:
    """Return the softmax of [..., query, key] over keys; 0 where the mask is True."""
    visible_scores = np.where(mask, np.float32(-np.inf), scores)
    exponentials = np.exp(visible_scores - visible_scores.max(axis=-1, keepdims=True))
    weights: Floats = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return weights


def _read_only(array: A) -> A:
    """Make an array read-only and return it."""
    array.flags.writeable = False
    return array
