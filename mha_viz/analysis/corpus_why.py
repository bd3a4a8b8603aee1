"""By what heads find their keys over a corpus, with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.intervals import Documents
from mha_viz.analysis.profile import HEADINGS, Profile
from mha_viz.analysis.reduce import Running
from mha_viz.attention import Head
from mha_viz.attention.parts import GROUPS, HEADS, KEY, QUERY
from mha_viz.attention.shares import LEAST, Variation
from mha_viz.errors import SettingError
from mha_viz.numerals import percent

if TYPE_CHECKING:
    import pandas as pd

FloatSums = npt.NDArray[np.float64]

HEADING = ("layer", "head", "group", "share", "low", "high", "documents")
ARROWS = ("from", "to", "side", "share", "low", "high", "documents")
WHY = "why"  # the table in a profile


class FoundBy(NamedTuple):
    """By what a head finds its keys: the share of each of GROUPS in its scores."""

    head: Head
    shares: Mapping[str, float]

    @property
    def words(self) -> str:
        """ "43% feed-forward · 32% earlier heads · 25% word": the shares, the largest first, without those of 0%."""
        listed = sorted(self.shares.items(), key=lambda each: -each[1])
        return " · ".join(f"{percent(share, 0)} {group}" for group, share in listed if abs(share) >= 0.005)


def found_by(table: pd.DataFrame | None) -> dict[Head, FoundBy]:
    """The heads in the table WHY of a profile whose scores vary; none without one."""
    shares: dict[Head, dict[str, float]] = {}
    columns = ["layer", "head", "group", "share"]
    rows = () if table is None else table[columns].dropna().itertuples(index=False, name=None)
    for layer, head, group, share in rows:
        if group in GROUPS:
            shares.setdefault(Head(int(layer), int(head)), {})[str(group)] = float(share)
    return {head: FoundBy(head, of_head) for head, of_head in shares.items()}


class Share(NamedTuple):
    """A share with its 95 % interval."""

    share: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class CorpusWhy:
    """By what the heads of a model find their keys over a corpus: shares as in :class:`mha_viz.attention.shares.Why`,
    from covariances and variances that are summed over sentences, with 95 % intervals from drawing documents or, if the
    corpus names none, sentences. They were read of ``documents``, 1 if the corpus names none; ``every``: k where
    every k-th sentence was, 1 for all; ``left_out`` sentences could not be read."""

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
        """One row per head and group, with the columns HEADING; NaN for a head whose scores do not vary."""
        import pandas as pd

        rows = [(*head, group, *share, self.documents) for head, group, share in self.rows]
        return pd.DataFrame(rows, columns=list(HEADING))

    def stored_in(self, profile: Profile) -> Profile:
        """The profile of the same model with :meth:`table` among its tables. Raises SettingError for another model."""
        theirs = profile.model, profile.facts.get("revision")
        if theirs != (self.model, self.revision):
            problem = f"The shares are of {self.model} ({self.revision}), the profile of {theirs[0]} ({theirs[1]})."
            raise SettingError(problem, "Give the profile of the same model.")
        table = self.table().assign(corpus=self.corpus, sentences=self.sentences, every=self.every)[list(HEADINGS[WHY])]
        return replace(profile, tables={**profile.tables, WHY: table})

    def by_head(self) -> Iterator[tuple[Head, pd.DataFrame]]:
        """Each head with its rows of the table."""
        table = self.table()
        heads = dict.fromkeys(head for head, *_ in self.rows)
        return ((head, table[(table["layer"] == head.layer) & (table["head"] == head.head)]) for head in heads)

    def arrows(self, least: float = LEAST) -> pd.DataFrame:
        """One row per earlier head that has at least ``least`` of a head's scores by one side ("query" or "key"), with
        the columns ARROWS, the largest share first."""
        import pandas as pd

        rows = [
            (str(of), str(to), side, *each, self.documents)
            for of, to, side, each in self.composed
            if each.share >= least
        ]
        table = pd.DataFrame(rows, columns=list(ARROWS))
        return table.sort_values("share", ascending=False, kind="stable", ignore_index=True)


def cells(heads: int) -> int:
    """How many sums a document has in a model with this many heads in all."""
    return heads * (1 + len(GROUPS) + 2 * heads)


class Gathered:
    """Sums over sentences by document, each of which is drawn as a whole. ``sums``: variance [document, head], groups
    [document, head, group], and query and key [document, head, earlier head]; heads of all layers are in one axis."""

    def __init__(self, documents: int, layers: int, heads: int, sums: Running | None = None) -> None:
        """``sums``: those measured so far, of this many documents."""
        self._layers, self._heads = layers, heads
        self._documents = Documents.numbered((), documents)
        size = documents, layers * heads
        shapes = {"variance": size, "groups": (*size, len(GROUPS)), **dict.fromkeys((QUERY, KEY), (*size, size[1]))}
        self.sums: Running = sums or {name: np.zeros(shape) for name, shape in shapes.items()}

    def add(self, document: int, variations: Sequence[Variation]) -> None:
        """Add the variations of all layers on a sentence of the document with this number."""
        for layer, each in enumerate(variations):
            of_layer = slice(layer * self._heads, (layer + 1) * self._heads)
            self.sums["variance"][document, of_layer] += each.variance
            self.sums["groups"][document, of_layer] += each.grouped()
            parts = [part for part, group in enumerate(each.groups) if group == HEADS]
            earlier = [Head.parse(each.names[part]).place(self._heads) for part in parts]
            for side, sums in ((QUERY, each.query), (KEY, each.key)):
                self.sums[side][document, of_layer][:, earlier] += sums[:, parts]

    def rows(self) -> Iterator[tuple[Head, str, Share]]:
        """For each head and group: the share with its interval."""
        for place, head in self._every():
            numbers = self._shares(place, self.sums["groups"][:, place])
            yield from ((head, group, Share(*map(float, each))) for group, each in zip(GROUPS, numbers.T, strict=True))

    def composed(self) -> Iterator[tuple[Head, Head, str, Share]]:
        """For each head, side and earlier head: the share with its interval."""
        for place, head in self._every():
            for side in (QUERY, KEY):
                earlier = self.sums[side][:, place, : head.layer * self._heads]
                for at, each in enumerate(self._shares(place, earlier).T):
                    yield Head(*divmod(at, self._heads)), head, side, Share(*map(float, each))

    def _every(self) -> Iterator[tuple[int, Head]]:
        return enumerate(Head(layer, head) for layer in range(self._layers) for head in range(self._heads))

    def _shares(self, place: int, sums: FloatSums) -> FloatSums:
        """[share, low and high, column] of sums [document, column]."""
        variance = self.sums["variance"][:, place]
        if variance.sum() <= 0 or not sums.shape[1]:
            return np.full((3, sums.shape[1]), np.nan)
        return np.vstack([sums.sum(axis=0) / variance.sum(), self._documents.of_means(sums, variance)])
