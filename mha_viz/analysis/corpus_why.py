"""Explain the attention scores of heads over a corpus, with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.intervals import Documents
from mha_viz.analysis.profile import HEADINGS, Profile, check_same_model
from mha_viz.analysis.reduce import RunningSums
from mha_viz.attention import Head
from mha_viz.attention.parts import GROUPS, HEADS, KEY, QUERY
from mha_viz.attention.shares import MIN_SHARE, Variation
from mha_viz.numerals import percent

if TYPE_CHECKING:
    import pandas as pd

FloatSums = npt.NDArray[np.float64]

HEADING = ("layer", "head", "group", "share", "low", "high", "documents")
ARROW_COLUMNS = ("from", "to", "side", "share", "low", "high", "documents")
WHY = "why"  # the table in a profile


class HeadShares(NamedTuple):
    """The share of each of GROUPS in the scores of a head, which tells how the head selects its keys."""

    head: Head
    shares: Mapping[str, float]

    @property
    def words(self) -> str:
        """The shares as text, largest first, without those of 0%: "43% feed-forward · 32% earlier heads · 25% word"."""
        largest_first = sorted(self.shares.items(), key=lambda item: -item[1])
        return " · ".join(f"{percent(share, 0)} {group}" for group, share in largest_first if abs(share) >= 0.005)


def load_head_shares(table: pd.DataFrame | None) -> dict[Head, HeadShares]:
    """Return the heads in the table WHY of a profile whose scores vary; an empty dict without a table."""
    shares: dict[Head, dict[str, float]] = {}
    columns = ["layer", "head", "group", "share"]
    rows = () if table is None else table[columns].dropna().itertuples(index=False, name=None)
    for layer, head, group, share in rows:
        if group in GROUPS:
            shares.setdefault(Head(int(layer), int(head)), {})[str(group)] = float(share)
    return {head: HeadShares(head, head_shares) for head, head_shares in shares.items()}


class Share(NamedTuple):
    """A share with its 95 % interval."""

    share: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class CorpusWhy:
    """Shares of the attention scores of a model's heads by what they depend on, over a corpus.

    Shares are defined as in :class:`mha_viz.attention.shares.Why`, from covariances and variances that are summed over
    sentences. The 95 % intervals come from resampling documents or, if the corpus names none, sentences.

    Attributes:
        documents: the number of documents read, 1 if the corpus names none.
        every: k if every k-th sentence was read, 1 for all.
        left_out: the number of sentences that could not be read.
        rows: the share of each head and group.
        composed: the share of each earlier head in a head's scores, through its queries or keys.
    """

    model: str
    revision: str
    corpus: str
    sentences: int
    every: int
    documents: int
    left_out: int
    rows: tuple[tuple[Head, str, Share], ...]  # head, group
    composed: tuple[tuple[Head, Head, str, Share], ...]  # from, to, side

    def table(self) -> pd.DataFrame:
        """Return a table with one row per head and group and the columns HEADING.

        Shares are NaN if the head's scores do not vary.
        """
        import pandas as pd

        rows = [(*head, group, *share, self.documents) for head, group, share in self.rows]
        return pd.DataFrame(rows, columns=list(HEADING))

    def stored_in(self, profile: Profile) -> Profile:
        """Return the profile of the same model with :meth:`table` added. Raises SettingError for another model."""
        check_same_model(profile, self.model, self.revision)
        table = self.table().assign(corpus=self.corpus, sentences=self.sentences, every=self.every)[list(HEADINGS[WHY])]
        return replace(profile, tables={**profile.tables, WHY: table})

    def by_head(self) -> Iterator[tuple[Head, pd.DataFrame]]:
        """Yield each head with its rows of the table."""
        table = self.table()
        heads = dict.fromkeys(head for head, *_ in self.rows)
        return ((head, table[(table["layer"] == head.layer) & (table["head"] == head.head)]) for head in heads)

    def arrows(self, least: float = MIN_SHARE) -> pd.DataFrame:
        """Return a table with one row per earlier head that matters to a later one, largest share first.

        Included are earlier heads with at least the share ``least`` of a head's scores through one side ("query" or
        "key"). The columns are ARROW_COLUMNS.
        """
        import pandas as pd

        rows = [
            (str(source), str(target), side, *share, self.documents)
            for source, target, side, share in self.composed
            if share.share >= least
        ]
        table = pd.DataFrame(rows, columns=list(ARROW_COLUMNS))
        return table.sort_values("share", ascending=False, kind="stable", ignore_index=True)


def count_cells(heads: int) -> int:
    """Return the number of sums per document for a model with this many heads in all."""
    return heads * (1 + len(GROUPS) + 2 * heads)


class ShareSums:
    """Sums over sentences, by document, because intervals resample whole documents.

    ``sums`` has variance [document, head], groups [document, head, group], and query and key [document, head, earlier
    head]. The heads of all layers are on one axis.
    """

    def __init__(self, documents: int, layers: int, heads: int, sums: RunningSums | None = None) -> None:
        """Start from ``sums`` measured before for this many documents, or from zero."""
        self._layers, self._heads = layers, heads
        self._documents = Documents.from_numbers((), documents)
        size = documents, layers * heads
        shapes = {"variance": size, "groups": (*size, len(GROUPS)), **dict.fromkeys((QUERY, KEY), (*size, size[1]))}
        self.sums: RunningSums = sums or {name: np.zeros(shape) for name, shape in shapes.items()}

    def add(self, document: int, variations: Sequence[Variation]) -> None:
        """Add the variations of all layers on a sentence of the document with this number."""
        for layer, variation in enumerate(variations):
            layer_heads = slice(layer * self._heads, (layer + 1) * self._heads)
            self.sums["variance"][document, layer_heads] += variation.variance
            self.sums["groups"][document, layer_heads] += variation.sum_groups()
            parts = [part for part, group in enumerate(variation.groups) if group == HEADS]
            earlier_heads = [Head.parse(variation.names[part]).place(self._heads) for part in parts]
            for side, sums in ((QUERY, variation.query), (KEY, variation.key)):
                self.sums[side][document, layer_heads][:, earlier_heads] += sums[:, parts]

    def rows(self) -> Iterator[tuple[Head, str, Share]]:
        """Yield each head and group with its share and interval."""
        for index, head in self._iter_heads():
            numbers = self._compute_shares(index, self.sums["groups"][:, index])
            yield from (
                (head, group, Share(*map(float, column))) for group, column in zip(GROUPS, numbers.T, strict=True)
            )

    def composed(self) -> Iterator[tuple[Head, Head, str, Share]]:
        """Yield each earlier head, head and side with the share and its interval."""
        for index, head in self._iter_heads():
            for side in (QUERY, KEY):
                earlier_sums = self.sums[side][:, index, : head.layer * self._heads]
                for earlier_index, column in enumerate(self._compute_shares(index, earlier_sums).T):
                    yield Head(*divmod(earlier_index, self._heads)), head, side, Share(*map(float, column))

    def _iter_heads(self) -> Iterator[tuple[int, Head]]:
        """Yield the index of each head on the axis of heads, and the head."""
        return enumerate(Head(layer, head) for layer in range(self._layers) for head in range(self._heads))

    def _compute_shares(self, index: int, sums: FloatSums) -> FloatSums:
        """Return [share, low and high, column] of sums [document, column]; NaN if the head's scores do not vary."""
        variance = self.sums["variance"][:, index]
        if variance.sum() <= 0 or not sums.shape[1]:
            return np.full((3, sums.shape[1]), np.nan)
        return np.vstack([sums.sum(axis=0) / variance.sum(), self._documents.compute_mean_intervals(sums, variance)])
