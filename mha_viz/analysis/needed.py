"""Read from a profile which heads its model needs for minimal pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mha_viz.analysis.intervals import Interval
from mha_viz.attention import Head
from mha_viz.corpus.pairs import ALL_PAIRS

if TYPE_CHECKING:
    import pandas as pd


class PairsWithout(NamedTuple):
    """What minimal pairs show about a head, from the table ``needed`` of a profile.

    Attributes:
        pairs: the name of the pairs.
        method: what replaces the output of the head.
        n, accuracy, difference, interval, lost, q: over all pairs, as in :class:`mha_viz.analysis.pairs.HeadNeed`.
        is_needed: whether all pairs together, or those of a kind, need the head.
        kinds: the kinds of pairs that need it.
    """

    pairs: str
    method: str
    n: int
    accuracy: float
    difference: float
    interval: Interval
    lost: int
    q: float
    is_needed: bool
    kinds: tuple[str, ...]

    @property
    def right(self) -> int:
        """The number of pairs that the whole model gets right."""
        return round((self.accuracy - self.difference) * self.n)


def find_needs(table: pd.DataFrame | None) -> dict[Head, PairsWithout]:
    """Return what the table ``needed`` of a profile shows about each head, in its order; empty without a table."""
    rows: list[Any] = [] if table is None else list(table.itertuples(index=False))
    kinds: dict[Head, list[str]] = {}
    for row in rows:
        if row.kind != ALL_PAIRS and is_marked(row.needed):
            kinds.setdefault(Head(int(row.layer), int(row.head)), []).append(str(row.kind))
    return {
        (head := Head(int(row.layer), int(row.head))): PairsWithout(
            str(row.pairs),
            str(row.method),
            int(row.n),
            float(row.accuracy),
            float(row.difference),
            Interval(float(row.low), float(row.high)),
            int(row.lost),
            float(row.q),
            is_marked(row.needed) or head in kinds,
            tuple(kinds.get(head, ())),
        )
        for row in rows
        if row.kind == ALL_PAIRS
    }


def is_marked(cell: object) -> bool:
    """Parse a cell of the column ``needed``, a truth value or its text."""
    return str(cell) == "True"
