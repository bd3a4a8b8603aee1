"""Decompose a score into a sum over pairs of parts, one of the query's token and one of the key's.

The input x of a layer's attention is a sum: vectors of words and positions, outputs of earlier heads and feed-forward
parts, and constants. The norms in between are linear if their standard deviations are fixed to the values in the actual
forward pass (Kobayashi et al. 2021, "Incorporating Residual and Normalization Layers into Analysis of Masked Language
Models", equation 3), so q_i · k_j is a sum over pairs of parts (Elhage et al. 2021, "A Mathematical Framework for
Transformer Circuits").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.attention.rotary import rotate
from mha_viz.attention.trace import Floats, Trace, project_input
from mha_viz.errors import SettingError, shorten_value
from mha_viz.heads import Head
from mha_viz.text import TokenizedText

if TYPE_CHECKING:
    import pandas as pd

FloatSums = npt.NDArray[np.float64]

WORD, POSITION, HEADS, FEED_FORWARD, CONSTANTS = "word", "position", "earlier heads", "feed-forward", "constants"
GROUPS = (WORD, POSITION, HEADS, FEED_FORWARD, CONSTANTS)
BIASES = "biases of q and k"
ROTATION = "rotation"
DISTANCE = "distance"
QUERY, KEY = "query", "key"


class Parts(NamedTuple):
    """The parts that sum to the input x of a layer's attention, or to the last state of a stack."""

    names: tuple[str, ...]
    groups: tuple[str, ...]  # the group of each part, of GROUPS
    x: Floats  # [part, n, d_model]; the sum over parts is ``Trace.x``, or ``Trace.memory``
    key_parts: KeyParts | None = None  # in cross-attention, the parts of its memory


class KeyParts(NamedTuple):
    """The text of the keys and its parts, if it differs from that of the queries, as in cross-attention."""

    text: TokenizedText
    parts: Parts


@dataclass(frozen=True, eq=False)
class ScoreParts:
    """The score of one query with one key in one head, part by part. Every array is float64.

    ``values[a, b]`` is the amount that part a of the query and part b of the key add to the score, the input of
    softmax, with the scaling; all of them sum to ``score``. A score alone decides nothing, because softmax compares
    keys: ``means`` are the same numbers averaged over all keys that the query sees, and ``above_mean`` is the
    difference.

    Two parts belong to both tokens together and occur on both sides. "rotation" is what the rotation of queries and
    keys by their positions adds (Su et al. 2021, "RoFormer", equation 16): the difference between the parts in
    ``rotated`` and those in ``values``, which are not rotated. "distance" is what a model adds for the distance between
    the two tokens; if it compares the query or the key with a vector of the distance, as DeBERTa does, that product is
    in the column or row "distance".

    In the cross-attention of an encoder–decoder, keys are computed from the encoder's last state: ``keys`` is the
    source, and ``key_names`` are the parts of that state, which differ from those of the decoder. Otherwise both sides
    have the same text and the same parts.
    """

    head: Head
    query: int
    key: int
    text: TokenizedText
    names: tuple[str, ...]
    groups: tuple[str, ...]  # the group of each part, of GROUPS
    values: FloatSums  # [part of the query, part of the key]
    means: FloatSums  # [part of the query, part of the key]
    score: float  # computed from q and k as a whole
    rotated: FloatSums | None = None  # as ``values``, without "rotation"; None if nothing is rotated
    keys: TokenizedText | None = None
    key_names: tuple[str, ...] = ()
    key_groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.keys is None:
            for name, default in (("keys", self.text), ("key_names", self.names), ("key_groups", self.groups)):
                object.__setattr__(self, name, default)

    @property
    def above_mean(self) -> FloatSums:
        """[part of the query, part of the key]: the values minus their means over the keys that the query sees."""
        return self.values - self.means

    @property
    def of_query(self) -> FloatSums:
        """[part]: the sum of ``above_mean`` over the parts of the key."""
        total: FloatSums = self.above_mean.sum(axis=1)
        return total

    @property
    def of_key(self) -> FloatSums:
        """[part]: the sum of ``above_mean`` over the parts of the query."""
        total: FloatSums = self.above_mean.sum(axis=0)
        return total

    def by_group(self) -> pd.DataFrame:
        """Return ``above_mean`` summed by groups.

        There is one row per group of the query's parts and one column per group of the key's, both in the order of
        GROUPS.
        """
        import pandas as pd

        query_groups, key_groups = (
            np.array([[group == name for group in groups] for name in GROUPS], np.float64)
            for groups in (self.groups, self.key_groups)
        )
        sums = query_groups @ self.above_mean @ key_groups.T
        return pd.DataFrame(sums, index=pd.Index(GROUPS, name="query"), columns=pd.Index(GROUPS, name="key"))

    def table(self) -> pd.DataFrame:
        """Return a table with one row per pair of parts, the largest difference from the mean first.

        The columns are ``query_part``, ``key_part``, the groups ``query_group`` and ``key_group``, ``value``, ``mean``
        and ``above_mean``, in units of the score.
        """
        import pandas as pd

        order = np.argsort(-abs(self.above_mean), axis=None, kind="stable")
        rows, columns = np.unravel_index(order, self.values.shape)
        numbers = {"value": self.values, "mean": self.means, "above_mean": self.above_mean}
        labels = {
            f"{side}_{kind}": [values[index] for index in indices]
            for kind, pair in (("part", (self.names, self.key_names)), ("group", (self.groups, self.key_groups)))
            for side, indices, values in zip((QUERY, KEY), (rows, columns), pair, strict=True)
        }
        return pd.DataFrame(labels | {name: values[rows, columns] for name, values in numbers.items()})


def score_parts(trace: Trace, parts: Parts, head: Head, query: int, keys: Sequence[int]) -> tuple[ScoreParts, ...]:
    """Decompose the scores of ``query`` with each of ``keys`` in a head of the layer of ``trace``.

    Tokens are numbered from 0; the input of the layer is the sum of ``parts``. Raises UnknownHead for a head of another
    layer, and SettingError for tokens that do not exist or a key that the query does not see.
    """
    number, key_parts = trace.number(head), parts.key_parts
    for key in keys:
        check_tokens(trace, query, key)
    rows = _project_parts(trace, parts, number, 0, [query])[:, 0]
    columns = _project_parts(trace, key_parts.parts if key_parts else parts, number, 1, slice(None))
    values = _multiply_parts(rows, columns) * trace.scaling  # [part, part, key]
    names, groups = _append_biases(parts)
    rotated, rotation = None, trace.rotation
    if rotation is not None:
        cos, sin = rotation.cos, rotation.sin
        rotated_pair = rotate(rows, cos[query], sin[query]), rotate(columns, cos, sin)
        rotated = _multiply_parts(*rotated_pair) * trace.scaling
        values = _add_part(values, (rotated - values).sum((0, 1)))
        names, groups = (*names, ROTATION), (*groups, POSITION)
    if trace.relative is not None:
        values = _add_distances(trace, number, query, values, rows, columns)
        names, groups = (*names, DISTANCE), (*groups, POSITION)
    means = values[:, :, ~trace.mask[query]].mean(axis=-1)
    scores = trace.scaled[number, query].tolist()
    rotated_by_key = [None if rotated is None else rotated[:, :, key] for key in keys]
    key_side = () if key_parts is None else (key_parts.text, *_append_biases(key_parts.parts))
    return tuple(
        ScoreParts(
            head, query, key, trace.text, names, groups, values[:, :, key], means, scores[key], key_rotated, *key_side
        )
        for key, key_rotated in zip(keys, rotated_by_key, strict=True)
    )


def sum_key_groups(trace: Trace, parts: Parts, head: Head) -> FloatSums:
    """Sum the parts of a head's scores by the group of the key's part, minus their mean: [query, key, group].

    Each number equals ``score_parts(…)[key].by_group().sum()`` of the group, one of GROUPS in their order: the sum over
    all parts of the query, minus its mean over the keys that the query sees. NaN for keys that it does not see.
    """
    number, key_parts = trace.number(head), parts.key_parts.parts if parts.key_parts else parts
    queries = _project_parts(trace, parts, number, 0, slice(None)).sum(axis=0)  # [query, d_k]
    columns, (_, groups) = _project_parts(trace, key_parts, number, 1, slice(None)), _append_biases(key_parts)
    keys = np.stack([columns[[group == name for group in groups]].sum(axis=0) for name in GROUPS])  # [group, key, d_k]
    sums = (keys @ queries.T).transpose(2, 1, 0) * trace.scaling
    position_sums = sums[:, :, GROUPS.index(POSITION)]
    if trace.rotation is not None:
        cos, sin = trace.rotation.cos, trace.rotation.sin
        rotated = rotate(queries, cos, sin) @ rotate(columns.sum(axis=0), cos, sin).T
        position_sums += rotated * trace.scaling - sums.sum(axis=-1)
    if trace.relative is not None:
        vectors = (trace.relative.vectors(side, number).astype(np.float64) for side in (0, 1))
        key_vectors, query_vectors = vectors  # [query, key, d_k]
        position_sums += trace.relative.biases[number % len(trace.relative.biases)]
        if key_vectors.shape[-1]:
            position_sums += np.einsum("id,ijd->ij", queries, key_vectors) * trace.scaling
        if query_vectors.shape[-1]:
            sums += np.einsum("gjd,ijd->ijg", keys, query_vectors) * trace.scaling
    above_mean: FloatSums = sums - sums.mean(axis=1, keepdims=True, where=~trace.mask[:, :, None])
    above_mean[trace.mask] = np.nan
    return above_mean


def _append_biases(parts: Parts) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names and groups of parts, followed by those of the biases of a linear layer."""
    return (*parts.names, BIASES), (*parts.groups, CONSTANTS)


def check_tokens(trace: Trace, query: int, key: int | None = None) -> None:
    """Raise SettingError unless the tokens exist and the query sees the key, if there is one."""
    texts = ("text", "text") if trace.memory is None else ("target", "source")
    numbers = (query,) if key is None else (query, key)
    for side, number, text, n in zip((QUERY, KEY), numbers, texts, trace.mask.shape, strict=False):
        if not isinstance(number, Integral):
            raise SettingError(
                f"{shorten_value(number)} is not the number of a {side}.", f"Give a whole number from 0 to {n - 1}."
            )
        if not 0 <= number < n:
            raise SettingError(
                f"There is no {side} {number}: the {text} has {n} tokens.", f"Tokens count from 0 to {n - 1}."
            )
    if key is not None and trace.mask[query, key]:
        raise SettingError(
            f"Token {query} does not see token {key} in layer {trace.layer}, so they have no score.",
            "Choose a key that the query may attend to.",
        )


def _project_parts(trace: Trace, parts: Parts, head: int, side: int, tokens: slice | list[int]) -> FloatSums:
    """Return [part and biases, token, d_k], the parts of a head's queries (``side`` 0) or keys (1), before rotation.

    ``head`` is the number of the head in its layer.
    """
    p = trace.parameters
    matrix, bias = ((p.w_q, p.b_q), (p.w_k, p.b_k))[side]
    number = head * matrix.shape[1] // p.w_q.shape[1]
    columns = slice(number * trace.d_k, (number + 1) * trace.d_k)
    part_vectors = parts.x[:, tokens] @ np.ascontiguousarray(matrix[:, columns])
    with_bias = np.concatenate([part_vectors, np.broadcast_to(bias[columns], (1, *part_vectors.shape[1:]))]).astype(
        np.float64
    )
    if trace.rotation is not None and trace.rotation.has_norms:
        with_bias *= compute_factors(trace, side)[head, tokens]
    return with_bias


def compute_factors(trace: Trace, side: int) -> Floats:
    """Return [h, n, d_k], the factors by which the layer multiplies its queries or keys before it rotates them."""
    rotation = trace.rotation
    if rotation is None or not rotation.has_norms:
        return np.ones((trace.heads, 1, 1), np.float32)
    return rotation.compute_factors(project_input(trace.x, trace.parameters, trace.heads)[side], side)


def _multiply_parts(rows: FloatSums, columns: FloatSums) -> FloatSums:
    """Return [a, b, key], the products of vectors [a, d_k] with vectors [b, key, d_k]."""
    return (columns @ rows.T).transpose(2, 0, 1)


def _add_part(
    values: FloatSums, own_value: FloatSums, row: FloatSums | None = None, column: FloatSums | None = None
) -> FloatSums:
    """Add one more part on each side: [part + 1, part + 1, key].

    ``own_value`` [key] is the value where both meet, ``row`` [part, key] are its values with the parts of the key,
    ``column`` those with the parts of the query.
    """
    extended_values = np.pad(values, ((0, 1), (0, 1), (0, 0)))
    extended_values[-1, -1] = own_value
    if row is not None:
        extended_values[-1, :-1] = row
    if column is not None:
        extended_values[:-1, -1] = column
    return extended_values


def _add_distances(
    trace: Trace, head: int, query: int, values: FloatSums, rows: FloatSums, columns: FloatSums
) -> FloatSums:
    """Add the part "distance" to the values."""
    relative = trace.relative
    assert relative is not None
    # [key, d_k]
    key_vectors, query_vectors = (relative.vectors(side, head)[query].astype(np.float64) for side in (0, 1))
    own_value = relative.biases[head % len(relative.biases), query]
    column = np.einsum("ad,jd->aj", rows, key_vectors) * trace.scaling if key_vectors.shape[-1] else None
    row = np.einsum("bjd,jd->bj", columns, query_vectors) * trace.scaling if query_vectors.shape[-1] else None
    return _add_part(values, own_value, row, column)
