"""Read from a profile which heads its model needs for minimal pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from mha_viz.analysis.intervals import Interval
from mha_viz.attention import Head
from mha_viz.corpus.pairs import ALL_PAIRS

if TYPE_CHECKING:
    import pandas as pd


class PairCounts(NamedTuple):
    """Counts of pairs: all, right with the whole model, right without a head, and lost without it."""

    n: int
    right: int
    right_without: int
    lost: int

    @property
    def difference(self) -> float:
        """The change in accuracy without the head."""
        return (self.right_without - self.right) / self.n


class KindResult(NamedTuple):
    """The result of switching off a head for the pairs of one kind, or for all pairs.

    Attributes:
        n, accuracy, difference, interval, lost, q, is_needed: as in :class:`mha_viz.analysis.pairs.HeadEffect`;
            q-values are over the heads that were off, for this kind.
    """

    n: int
    accuracy: float
    difference: float
    interval: Interval
    lost: int
    q: float
    is_needed: bool

    @property
    def counts(self) -> PairCounts:
        """The numbers of pairs that are right and lost."""
        right = round((self.accuracy - self.difference) * self.n)
        return PairCounts(self.n, right, round(self.accuracy * self.n), self.lost)


class PairResults(NamedTuple):
    """The results of minimal pairs for a head, from the table ``needed`` of a profile.

    Attributes:
        pairs: the name of the pairs.
        method: the replacement for the output of the head.
        all_pairs: the result over all pairs.
        by_kind: the result for each kind of pair; empty if the pairs have no kinds.
    """

    pairs: str
    method: str
    all_pairs: KindResult
    by_kind: Mapping[str, KindResult]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of pairs that need the head."""
        return tuple(kind for kind, result in self.by_kind.items() if result.is_needed)

    @property
    def is_needed(self) -> bool:
        """Whether all pairs together, or those of a kind, need the head."""
        return self.all_pairs.is_needed or bool(self.kinds)

    @property
    def counts(self) -> PairCounts:
        """The sums over the kinds of pairs that need the head, or the numbers of all pairs if no kind does."""
        counts = [self.by_kind[kind].counts for kind in self.kinds] or [self.all_pairs.counts]
        return PairCounts(*map(sum, zip(*counts, strict=True)))


def find_needs(table: pd.DataFrame | None) -> dict[Head, PairResults]:
    """Read the rows about each head in the table ``needed`` of a profile, in its order; empty without a table."""
    rows: list[Any] = [] if table is None else list(table.itertuples(index=False))
    by_kind: dict[Head, dict[str, KindResult]] = {}
    for row in rows:
        if row.kind != ALL_PAIRS:
            by_kind.setdefault(_get_head(row), {})[str(row.kind)] = _parse_row(row)
    return {
        (head := _get_head(row)): PairResults(str(row.pairs), str(row.method), _parse_row(row), by_kind.get(head, {}))
        for row in rows
        if row.kind == ALL_PAIRS
    }


def _get_head(row: Any) -> Head:
    return Head(int(row.layer), int(row.head))


def _parse_row(row: Any) -> KindResult:
    interval = Interval(float(row.low), float(row.high))
    numbers = int(row.n), float(row.accuracy), float(row.difference), interval
    return KindResult(*numbers, int(row.lost), float(row.q), is_marked(row.needed))


def is_marked(cell: object) -> bool:
    """Parse a cell of the column ``needed``, a truth value or its text."""
    return str(cell) == "True"
