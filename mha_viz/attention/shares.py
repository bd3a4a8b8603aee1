"""Measure how heads select their keys: the share of each part of their input in the variance of their scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.attention.parts import (
    BIASES,
    CONSTANTS,
    DISTANCE,
    GROUPS,
    HEADS,
    KEY,
    POSITION,
    QUERY,
    ROTATION,
    Parts,
    compute_factors,
)
from mha_viz.attention.trace import Trace, repeat_for_heads, split_heads
from mha_viz.errors import UnknownHead
from mha_viz.heads import AnyHead, Head
from mha_viz.text import TokenizedText

if TYPE_CHECKING:
    import pandas as pd

FloatSums = npt.NDArray[np.float64]
MIN_SHARE = 0.05  # minimum share of a head's scores that is listed as an arrow


class Variation(NamedTuple):
    """Variance of the scores of each head of a layer over visible keys, and its covariance with each part.

    ``query`` and ``key``, [head, part], are covariances of the score with what the part adds to it on the side of the
    query, or of the key. They are taken over the keys that a query sees and summed over queries. Each side sums to
    ``variance``, [head], the sum of the scores' variances. A share is a covariance divided by the variance or, over
    several texts, the quotient of their sums. As s = Σ_g s_g, Var(s) = Σ_g Cov(s_g, s): the natural decomposition of a
    variance (Shorrocks 1982, "Inequality Decomposition by Factor Components", Econometrica 50, 193-211).
    """

    names: tuple[str, ...]
    groups: tuple[str, ...]
    query: FloatSums
    key: FloatSums
    variance: FloatSums

    def sum_groups(self) -> FloatSums:
        """Return [head, group], the covariances on the side of the key, in the order of GROUPS."""
        membership = np.array([[group == name for name in GROUPS] for group in self.groups], np.float64)
        group_sums: FloatSums = self.key @ membership
        return group_sums


def compute_variation(trace: Trace, parts: Parts) -> Variation:
    """Compute the variation of the scores of every head of a layer, whose input is the sum of ``parts``.

    Keys that a query does not see do not count, and a query that sees only one key has no variance.
    """
    scores, is_visible = trace.scaled.astype(np.float64), ~trace.mask
    counts = is_visible.sum(axis=-1, keepdims=True)
    means = (scores * is_visible).sum(axis=-1, keepdims=True) / counts
    centred = (scores - means) * is_visible / counts  # [h, query, key]; rows sum to 0
    q, k = (vectors.astype(np.float64) for vectors in trace.before_turn)
    # The covariance is linear in what a part adds, so it is a product of the part with one vector for each token.
    vectors = centred @ k, centred.transpose(0, 2, 1) @ q
    distance_terms = list(_iter_distance_terms(trace, centred, q, k))
    if distance_terms:
        vectors = vectors[0] + distance_terms[0][0], vectors[1] + distance_terms[1][0]
    names, groups = (*parts.names, BIASES), (*parts.groups, CONSTANTS)
    key_side = parts.key_parts.parts if parts.key_parts else parts
    sides = [
        _sum_by_part(trace, side_parts, side, vectors[side]) * trace.scaling
        for side, side_parts in enumerate((parts, key_side))
    ]
    if parts.key_parts:  # a part of one text adds nothing on the side of the other
        names, groups = (*names, *key_side.names), (*groups, *key_side.groups)
        query_zeros, key_zeros = (np.zeros((trace.heads, len(side_parts.names))) for side_parts in (parts, key_side))
        sides = [np.hstack([sides[0], key_zeros]), np.hstack([query_zeros, sides[1][:, -1:], sides[1][:, :-1]])]
    if trace.rotation is not None:
        unrotated = q @ k.transpose(0, 2, 1) * trace.scaling
        rotation_share = (centred * (trace.scores * np.float64(trace.scaling) - unrotated)).sum((1, 2))
        sides = [np.concatenate([side, rotation_share[:, None]], axis=1) for side in sides]
        names, groups = (*names, ROTATION), (*groups, POSITION)
    if distance_terms:
        sides = [
            np.concatenate([side, distance[:, None]], axis=1)
            for side, (_, distance) in zip(sides, distance_terms, strict=True)
        ]
        names, groups = (*names, DISTANCE), (*groups, POSITION)
    return Variation(names, groups, sides[0], sides[1], (centred * scores).sum((1, 2)))


def _sum_by_part(trace: Trace, parts: Parts, side: int, vectors: FloatSums) -> FloatSums:
    """Return [h, part and biases], the products of each part's queries (``side`` 0) or keys (1) with ``vectors``.

    ``vectors`` is [h, n, d_k]; products are summed over tokens.
    """
    p = trace.parameters
    matrix, bias = ((p.w_q, p.b_q), (p.w_k, p.b_k))[side]
    matrices = repeat_for_heads(trace.heads, split_heads(matrix, matrix.shape[1] // trace.d_k))  # [h, d_model, d_k]
    biases = repeat_for_heads(trace.heads, split_heads(bias[None], matrix.shape[1] // trace.d_k))  # [h, 1, d_k]
    scaled = (vectors * compute_factors(trace, side)).astype(np.float32)
    projected_back = scaled @ matrices.transpose(0, 2, 1)  # [h, n, d_model]
    part_sums = projected_back.reshape(len(projected_back), -1) @ parts.x.reshape(len(parts.x), -1).T
    return np.concatenate([part_sums, (scaled * biases).sum((1, 2))[:, None]], axis=1).astype(np.float64)


def _iter_distance_terms(
    trace: Trace, centred: FloatSums, q: FloatSums, k: FloatSums
) -> Iterator[tuple[FloatSums, FloatSums]]:
    """Yield the contribution of distances, for the side of the query and then of the key.

    It consists of the vectors that distances add to the vectors of tokens, [h, n, d_k], and the covariance with the
    part "distance", [h].
    """
    relative = trace.relative
    if relative is None:
        return
    bias_covariance = (centred * relative.biases).sum((1, 2))
    for own_side, opposites in ((0, k), (1, q)):
        vectors, covariance = np.zeros_like(opposites), bias_covariance.copy()
        for head in range(trace.heads):
            own_vectors, other_vectors = (
                relative.vectors(side, head).astype(np.float64) for side in (own_side, 1 - own_side)
            )
            if own_vectors.shape[-1]:
                vectors[head] = np.einsum("ijd,ij->id" if own_side == 0 else "ijd,ij->jd", own_vectors, centred[head])
            if other_vectors.shape[-1]:
                product = np.einsum("ijd,jd->ij" if own_side == 0 else "ijd,id->ij", other_vectors, opposites[head])
                covariance[head] += trace.scaling * (centred[head] * product).sum()
        yield vectors, covariance


@dataclass(frozen=True, eq=False)
class Why:
    """How the heads of a model select their keys on a text: shares of the variance of their scores.

    Over the keys that a query sees, the share of a part in a head's scores is the covariance of what the part adds with
    the score, divided by the variance of the score; queries are weighted by their variance. The shares of all parts sum
    to 1, on the side of the query and on that of the key. A share is negative if a part works against the others.
    """

    model: str
    text: TokenizedText  # the text of the queries
    layers: tuple[int, ...]
    variations: tuple[Variation, ...]  # one per layer

    def table(self) -> pd.DataFrame:
        """Return a table with one row per head, named "L0H0" and so on.

        The columns are ``layer``, ``head``, and the share of each of GROUPS on the side of the key; NaN for a head
        whose scores do not vary.
        """
        import pandas as pd

        shares = np.concatenate([_divide(layer.sum_groups(), layer.variance) for layer in self.variations])
        heads = [Head(layer, head) for layer, values in self._iter_layers() for head in range(len(values.variance))]
        numbers = {"layer": [head.layer for head in heads], "head": [head.head for head in heads]}
        columns = numbers | dict(zip(GROUPS, shares.T, strict=True))
        return pd.DataFrame(columns, index=pd.Index([str(head) for head in heads], name="name"))

    def parts(self, head: AnyHead) -> pd.DataFrame:
        """Return a table with one row per part of the input of a head's layer.

        The columns are its ``group`` and its shares on the sides of ``query`` and ``key``; the largest share on the
        side of the key, regardless of its sign, is first. Raises UnknownHead for a head that was not measured.
        """
        import pandas as pd

        measured_head, layer = self.of(head)
        shares = {
            side: _divide(sums[[measured_head.head]], layer.variance[[measured_head.head]])[0]
            for side, sums in ((QUERY, layer.query), (KEY, layer.key))
        }
        table = pd.DataFrame({"group": layer.groups} | shares, index=pd.Index(layer.names, name="part"))
        return table.sort_values(KEY, ascending=False, key=abs, kind="stable")

    def of(self, head: AnyHead) -> tuple[Head, Variation]:
        """Return a head and the variation of its layer. Raises UnknownHead for a head that was not measured."""
        named_head = Head.of(head)
        if named_head.layer not in self.layers:
            remedy = f"Measure it: explain_scores(…, head={str(named_head)!r})."
            raise UnknownHead(f"{named_head} was not measured.", remedy)
        variation = self.variations[self.layers.index(named_head.layer)]
        count = len(variation.variance)
        if named_head.head >= count:
            problem = f"{named_head} does not exist: {self.model} has {count} heads per layer."
            raise UnknownHead(problem, f"Choose one of H0 to H{count - 1}.")
        return named_head, variation

    def arrows(self, least: float = MIN_SHARE) -> pd.DataFrame:
        """Return a table with the composition of heads, largest share first.

        There is one row for each share of an earlier head in a head's scores, on one side, of at least ``least``, with
        ``from``, ``to``, ``side`` ("query" or "key") and ``share``. Elhage et al. 2021 measure Q- and K-composition by
        norms of products of weights, without a text; these shares are measured on this text.
        """
        import pandas as pd

        rows = [(source, str(target), side, share) for source, target, side, share in self._list_composed(least)]
        return pd.DataFrame(rows, columns=["from", "to", "side", "share"])

    def composed(self, least: float = MIN_SHARE) -> tuple[tuple[Head, Head, str, float], ...]:
        """Return the rows of :meth:`arrows` for a model with one stack."""
        return tuple(
            (Head.parse(source), target, side, share) for source, target, side, share in self._list_composed(least)
        )

    def _list_composed(self, least: float) -> list[tuple[str, Head, str, float]]:
        """Return the earlier head's name, the head, the side and the share of each pair, largest share first."""
        rows = [
            (name, Head(layer, int(head)), side, float(shares[head, part]))
            for layer, values in self._iter_layers()
            for side, sums in ((QUERY, values.query), (KEY, values.key))
            for shares in (_divide(sums, values.variance),)
            for head, part in np.argwhere(np.nan_to_num(shares) >= least)
            for name, group in ((values.names[part], values.groups[part]),)
            if group == HEADS
        ]
        return sorted(rows, key=lambda row: -row[3])

    def _iter_layers(self) -> Iterator[tuple[int, Variation]]:
        """Yield the number of each layer with its variation."""
        return zip(self.layers, self.variations, strict=True)


def _divide(sums: FloatSums, variance: FloatSums) -> FloatSums:
    """Return [head, …], shares of the variance; NaN where it is 0."""
    has_variance = variance > 0
    shares: FloatSums = np.where(has_variance[:, None], sums / np.where(has_variance, variance, 1)[:, None], np.nan)
    return shares
