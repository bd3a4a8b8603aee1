"""By what heads find their keys over a corpus, with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.intervals import Documents
from mha_viz.attention import Head
from mha_viz.attention.parts import GROUPS, HEADS, KEY, QUERY
from mha_viz.attention.shares import LEAST, Variation

if TYPE_CHECKING:
    import pandas as pd

Sums = npt.NDArray[np.float64]

MOST_UNITS = 200  # the most documents or sentences that are drawn from; with more, neighbours are drawn together
HEADING = ("layer", "head", "group", "share", "low", "high")
ARROWS = ("from", "to", "side", "share", "low", "high")


class Share(NamedTuple):
    """A share with its 95 % interval."""

    share: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class CorpusWhy:
    """By what the heads of a model find their keys over a corpus: shares as in :class:`mha_viz.attention.shares.Why`,
    from covariances and variances that are summed over sentences, with 95 % intervals from drawing documents or, if the
    corpus names none, sentences. ``left_out`` sentences could not be read."""

    model: str
    corpus: str
    sentences: int
    left_out: int
    rows: tuple[tuple[Head, str, Share], ...]  # head, group
    composed: tuple[tuple[Head, Head, str, Share], ...]  # from, to, side

    def table(self) -> pd.DataFrame:
        """One row per head and group, with the columns HEADING; NaN for a head whose scores do not vary."""
        import pandas as pd

        return pd.DataFrame([(*head, group, *share) for head, group, share in self.rows], columns=list(HEADING))

    def by_head(self) -> Iterator[tuple[Head, pd.DataFrame]]:
        """Each head with its rows of the table."""
        table = self.table()
        heads = dict.fromkeys(head for head, *_ in self.rows)
        return ((head, table[(table["layer"] == head.layer) & (table["head"] == head.head)]) for head in heads)

    def arrows(self, least: float = LEAST) -> pd.DataFrame:
        """One row per earlier head that has at least ``least`` of a head's scores by one side ("query" or "key"), with
        the columns ARROWS, the largest share first."""
        import pandas as pd

        rows = [(str(of), str(to), side, *each) for of, to, side, each in self.composed if each.share >= least]
        table = pd.DataFrame(rows, columns=list(ARROWS))
        return table.sort_values("share", ascending=False, kind="stable", ignore_index=True)


class Gathered:
    """The sums over sentences, unit by unit: a unit is drawn as a whole. ``units``: the document of each sentence, or
    its number."""

    def __init__(self, units: Sequence[str], layers: int, heads: int) -> None:
        self._documents, self._heads = Documents(units, MOST_UNITS), heads
        size = self._documents.count, heads
        self._variances = np.zeros((layers, *size))
        self._groups = np.zeros((layers, *size, len(GROUPS)))
        # [side, unit, head, earlier head], for each layer
        self._earlier = [np.zeros((2, *size, layer * heads)) for layer in range(layers)]

    def add(self, sentence: int, variations: Sequence[Variation]) -> None:
        """Add the variations of all layers on the sentence with this number."""
        unit = self._documents.numbers[sentence]
        for layer, each in enumerate(variations):
            self._variances[layer, unit] += each.variance
            self._groups[layer, unit] += each.grouped()
            parts = [part for part, group in enumerate(each.groups) if group == HEADS]
            columns = [Head.parse(each.names[part]).place(self._heads) for part in parts]
            for side, sums in enumerate((each.query, each.key)):
                self._earlier[layer][side, unit][:, columns] += sums[:, parts]

    def rows(self) -> Iterator[tuple[Head, str, Share]]:
        """For each head and group: the share with its interval."""
        for head in self._every():
            numbers = self._shares(head, self._groups[head.layer, :, head.head])
            yield from ((head, group, Share(*map(float, each))) for group, each in zip(GROUPS, numbers.T, strict=True))

    def composed(self) -> Iterator[tuple[Head, Head, str, Share]]:
        """For each head, side and earlier head: the share with its interval."""
        for head in self._every():
            for side, sums in zip((QUERY, KEY), self._earlier[head.layer], strict=True):
                for place, each in enumerate(self._shares(head, sums[:, head.head]).T):
                    yield Head(*divmod(place, self._heads)), head, side, Share(*map(float, each))

    def _every(self) -> Iterator[Head]:
        return (Head(layer, head) for layer in range(len(self._variances)) for head in range(self._heads))

    def _shares(self, head: Head, sums: Sums) -> Sums:
        """[share, low and high, column] of sums [unit, column]."""
        variance = self._variances[head.layer, :, head.head]
        if variance.sum() <= 0 or not sums.shape[1]:
            return np.full((3, sums.shape[1]), np.nan)
        return np.vstack([sums.sum(axis=0) / variance.sum(), self._documents.of_means(sums, variance)])
