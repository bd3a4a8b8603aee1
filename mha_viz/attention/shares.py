"""By what heads find their keys: how much of the variation of their scores each part of their input makes up."""

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
    factors,
)
from mha_viz.attention.trace import Trace, shared_by, split
from mha_viz.errors import UnknownHead
from mha_viz.heads import AnyHead, Head
from mha_viz.text import TokenizedText

if TYPE_CHECKING:
    import pandas as pd

FloatSums = npt.NDArray[np.float64]
LEAST = 0.05  # share of a head's scores from which on an arrow is drawn


class Variation(NamedTuple):
    """How the scores of each head of a layer vary over the keys that a query sees, and with which parts.

    ``query`` and ``key``, [head, part]: the covariance of the score with what the part adds to it on the side of the
    query, or of the key, over the keys that a query sees, summed over queries. Each side sums to ``variance``, [head],
    the sum of the scores' variances. So a share is one divided by the other, and over several texts the quotient of
    their sums: with s = Σ_g s_g, Var(s) = Σ_g Cov(s_g, s), the natural decomposition of a variance (Shorrocks 1982,
    "Inequality Decomposition by Factor Components", Econometrica 50, 193-211).
    """

    names: tuple[str, ...]
    groups: tuple[str, ...]
    query: FloatSums
    key: FloatSums
    variance: FloatSums

    def grouped(self) -> FloatSums:
        """[head, group]: the covariances on the side of the key, in the order of GROUPS."""
        member = np.array([[group == of for of in GROUPS] for group in self.groups], np.float64)
        grouped: FloatSums = self.key @ member
        return grouped


def variation(trace: Trace, parts: Parts) -> Variation:
    """The variation of the scores of every head of a layer, whose input is the sum of ``parts``. Keys that a query does
    not see count for nothing, and a query that sees one key has no variance."""
    scores, seen = trace.scaled.astype(np.float64), ~trace.mask
    counts = seen.sum(axis=-1, keepdims=True)
    means = (scores * seen).sum(axis=-1, keepdims=True) / counts
    centred = (scores - means) * seen / counts  # [h, query, key]; rows sum to 0
    q, k = (vectors.astype(np.float64) for vectors in trace.before_turn)
    # The covariance is linear in what a part adds: it is the product of the part with one vector for each token.
    vectors = centred @ k, centred.transpose(0, 2, 1) @ q
    extra = list(_of_distances(trace, centred, q, k))
    if extra:
        vectors = vectors[0] + extra[0][0], vectors[1] + extra[1][0]
    names, groups = (*parts.names, BIASES), (*parts.groups, CONSTANTS)
    memory = parts.of_keys.parts if parts.of_keys else parts
    sides = [_by_part(trace, of, which, vectors[which]) * trace.scaling for which, of in enumerate((parts, memory))]
    if parts.of_keys:  # a part of one text adds nothing on the side of the other
        names, groups = (*names, *memory.names), (*groups, *memory.groups)
        mine, theirs = (np.zeros((trace.heads, len(of.names))) for of in (parts, memory))
        sides = [np.hstack([sides[0], theirs]), np.hstack([mine, sides[1][:, -1:], sides[1][:, :-1]])]
    if trace.rotation is not None:
        unturned = q @ k.transpose(0, 2, 1) * trace.scaling
        turning = (centred * (trace.scores * np.float64(trace.scaling) - unturned)).sum((1, 2))
        sides = [np.concatenate([side, turning[:, None]], axis=1) for side in sides]
        names, groups = (*names, ROTATION), (*groups, POSITION)
    if extra:
        sides = [np.concatenate([side, alone[:, None]], axis=1) for side, (_, alone) in zip(sides, extra, strict=True)]
        names, groups = (*names, DISTANCE), (*groups, POSITION)
    return Variation(names, groups, sides[0], sides[1], (centred * scores).sum((1, 2)))


def _by_part(trace: Trace, parts: Parts, which: int, vectors: FloatSums) -> FloatSums:
    """[h, part and biases]: the sum over tokens of the products of each part's queries (``which`` 0) or keys (1) with
    ``vectors`` [h, n, d_k]."""
    p = trace.parameters
    matrix, bias = ((p.w_q, p.b_q), (p.w_k, p.b_k))[which]
    matrices = shared_by(trace.heads, split(matrix, matrix.shape[1] // trace.d_k))  # [h, d_model, d_k]
    biases = shared_by(trace.heads, split(bias[None], matrix.shape[1] // trace.d_k))  # [h, 1, d_k]
    scaled = (vectors * factors(trace, which)).astype(np.float32)
    back = scaled @ matrices.transpose(0, 2, 1)  # [h, n, d_model]
    of_parts = back.reshape(len(back), -1) @ parts.x.reshape(len(parts.x), -1).T
    return np.concatenate([of_parts, (scaled * biases).sum((1, 2))[:, None]], axis=1).astype(np.float64)


def _of_distances(
    trace: Trace, centred: FloatSums, q: FloatSums, k: FloatSums
) -> Iterator[tuple[FloatSums, FloatSums]]:
    """For the side of the query and that of the key: what the vectors of distances add to the vectors of its tokens,
    [h, n, d_k], and the covariance with the part "distance", [h]."""
    relative = trace.relative
    if relative is None:
        return
    alone = (centred * relative.alone).sum((1, 2))
    for which, other in ((0, k), (1, q)):
        added, alone_of_side = np.zeros_like(other), alone.copy()
        for head in range(trace.heads):
            mine, theirs = (relative.vectors(side, head).astype(np.float64) for side in (which, 1 - which))
            if mine.shape[-1]:
                added[head] = np.einsum("ijd,ij->id" if which == 0 else "ijd,ij->jd", mine, centred[head])
            if theirs.shape[-1]:
                product = np.einsum("ijd,jd->ij" if which == 0 else "ijd,id->ij", theirs, other[head])
                alone_of_side[head] += trace.scaling * (centred[head] * product).sum()
        yield added, alone_of_side


@dataclass(frozen=True, eq=False)
class Why:
    """By what the heads of a model find their keys on a text.

    Over the keys that a query sees, the share of a part in a head's scores is the covariance of what the part adds with
    the score, divided by the variance of the score; queries count by their variance. The shares of all parts sum to 1,
    on the side of the query and on that of the key. A share is negative where a part works against the rest.
    """

    model: str
    text: TokenizedText  # that of the queries
    layers: tuple[int, ...]
    variations: tuple[Variation, ...]  # one per layer

    def table(self) -> pd.DataFrame:
        """One row per head, named "L0H0" and so on: ``layer``, ``head``, and the share of each of GROUPS by the side of
        the key; NaN for a head whose scores do not vary."""
        import pandas as pd

        shares = np.concatenate([_quotient(each.grouped(), each.variance) for each in self.variations])
        heads = [Head(layer, head) for layer, each in self._by_layer() for head in range(len(each.variance))]
        places = {"layer": [head.layer for head in heads], "head": [head.head for head in heads]}
        columns = places | dict(zip(GROUPS, shares.T, strict=True))
        return pd.DataFrame(columns, index=pd.Index([str(head) for head in heads], name="name"))

    def parts(self, head: AnyHead) -> pd.DataFrame:
        """One row per part of the input of a head's layer: its ``group``, and its shares by the sides of ``query`` and
        ``key``, those with the largest on the side of the key first. Raises UnknownHead for a head that was not
        measured."""
        import pandas as pd

        one, each = self.of(head)
        shares = {
            side: _quotient(sums[[one.head]], each.variance[[one.head]])[0]
            for side, sums in ((QUERY, each.query), (KEY, each.key))
        }
        table = pd.DataFrame({"group": each.groups} | shares, index=pd.Index(each.names, name="part"))
        return table.sort_values(KEY, ascending=False, key=abs, kind="stable")

    def of(self, head: AnyHead) -> tuple[Head, Variation]:
        """A head, and the variation of its layer. Raises UnknownHead for a head that was not measured."""
        one = Head.among(head, max(self.layers) + 1, len(self.variations[-1].variance), self.model)
        if one.layer not in self.layers:
            raise UnknownHead(f"{one} was not measured.", f"Measure it: why(…, head={str(one)!r}).")
        return one, self.variations[self.layers.index(one.layer)]

    def arrows(self, least: float = LEAST) -> pd.DataFrame:
        """Composition: one row for each earlier head that has at least ``least`` of a head's scores by one side, with
        ``from``, ``to``, ``side`` ("query" or "key") and ``share``, the largest first.

        Elhage et al. 2021 measure Q- and K-composition by norms of products of weights, on no text; these shares are
        what occurs on this one.
        """
        import pandas as pd

        rows = [(of, str(to), side, share) for of, to, side, share in self._composed(least)]
        return pd.DataFrame(rows, columns=["from", "to", "side", "share"])

    def composed(self, least: float = LEAST) -> tuple[tuple[Head, Head, str, float], ...]:
        """The rows of :meth:`arrows` of a model with one stack."""
        return tuple((Head.parse(of), to, side, share) for of, to, side, share in self._composed(least))

    def _composed(self, least: float) -> list[tuple[str, Head, str, float]]:
        rows = [
            (name, Head(layer, int(head)), side, float(shares[head, part]))
            for layer, each in self._by_layer()
            for side, sums in ((QUERY, each.query), (KEY, each.key))
            for shares in (_quotient(sums, each.variance),)
            for head, part in np.argwhere(np.nan_to_num(shares) >= least)
            for name, group in ((each.names[part], each.groups[part]),)
            if group == HEADS
        ]
        return sorted(rows, key=lambda row: -row[3])

    def _by_layer(self) -> Iterator[tuple[int, Variation]]:
        return zip(self.layers, self.variations, strict=True)


def _quotient(sums: FloatSums, variance: FloatSums) -> FloatSums:
    """[head, …]: shares; NaN where nothing varies."""
    varies = variance > 0
    shares: FloatSums = np.where(varies[:, None], sums / np.where(varies, variance, 1)[:, None], np.nan)
    return shares
