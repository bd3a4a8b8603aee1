"""Effects of ablating heads over a corpus, with intervals, and the test for a used role."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mha_viz.analysis.effects import Numbers
from mha_viz.analysis.intervals import Documents
from mha_viz.attention import Head

if TYPE_CHECKING:
    import pandas as pd

MAX_UNITS = 1000  # maximum number of resampled documents or sentences; beyond it, neighbours are drawn together
# The measure of an effect depends on what the model predicts. First for whole sentences, then for the words that a
# role attends from.
MASKED_WORD, LOSS, VECTOR = (
    "fall of log p of the masked word",
    "rise of the loss per token",
    "1 − cosine of the sentence vector",
)
NEXT_TOKEN, WORD_STATE = "fall of log p of the token after the word", "1 − cosine of the word’s last state"
WORD_MEASURES = {MASKED_WORD: MASKED_WORD, LOSS: NEXT_TOKEN, VECTOR: WORD_STATE}
HEADING = ("heads", "kind", "n", "documents", "effect", "low", "high", "more", "more_low", "more_high", "used")


class Variant(NamedTuple):
    """Heads that are ablated together.

    ``kind`` is "together" for all measured heads, "head" for one of them, or "control" for another head of their
    layers.
    """

    heads: tuple[Head, ...]
    kind: str

    @property
    def name(self) -> str:
        """The names of the heads: "L3H1" or "L2H4 L3H1", for example."""
        return " ".join(map(str, self.heads))


def list_variants(heads: Sequence[Head], same_role: Sequence[Head], per_layer: int) -> tuple[Variant, ...]:
    """Return the variants to measure.

    They are all heads together if there are several, each head alone, and each other head of their layers that does not
    have the same role.
    """
    all_together = [Variant(tuple(heads), "together")] if len(heads) > 1 else []
    layers = sorted({head.layer for head in heads})
    layer_heads = [Head(layer, number) for layer in layers for number in range(per_layer)]
    controls = [Variant((head,), "control") for head in layer_heads if head not in {*heads, *same_role}]
    return (*all_together, *(Variant((head,), "head") for head in heads), *controls)


class EffectRow(NamedTuple):
    """The mean effect of one variant over a corpus, with a 95 % interval.

    For a measured head, ``more`` is its effect minus the largest effect of another head of its layer, with an interval;
    NaN if there is no other head. ``used`` says whether its role is used; None if that is not tested.
    """

    variant: Variant
    effect: float
    low: float
    high: float
    more: float = np.nan
    more_low: float = np.nan
    more_high: float = np.nan
    used: bool | None = None


@dataclass(frozen=True)
class CorpusEffect:
    """Effects of ablating heads over a corpus.

    Attributes:
        measure: the name of the measured effect.
        relation, direction: the words at which it was measured; empty for whole sentences.
        cases, sentences, documents: how many were measured; one document if the corpus names none.
        every: k if every k-th sentence was read, 1 for all.
        left_out: words or sentences that could not be measured.
    """

    model: str
    corpus: str
    method: str
    measure: str
    relation: str
    direction: str
    cases: int
    sentences: int
    every: int
    documents: int
    left_out: int
    rows: tuple[EffectRow, ...]

    def table(self) -> pd.DataFrame:
        """Return a table with one row per variant and the columns HEADING. ``used`` is empty if it was not tested."""
        import pandas as pd

        counts = self.cases, self.documents
        rows = [
            (row.variant.name, row.variant.kind, *counts, *row[1:7], "" if row.used is None else row.used)
            for row in self.rows
        ]
        return pd.DataFrame(rows, columns=list(HEADING))


def compute_effect_rows(
    variants: Sequence[Variant], effects: Numbers, units: Sequence[str], has_role: bool
) -> tuple[EffectRow, ...]:
    """Compute the rows of the table.

    A head's role is used if its effect exceeds that of each other head of its layer without the role: the lower end of
    the 95 % interval of every difference must lie above 0. Without intervals, that is not tested.

    Args:
        variants: the sets of heads that were ablated.
        effects: [case, variant].
        units: the document, or the sentence, of each case; the bootstrap draws whole units.
        has_role: whether the cases depend on a role, so that its use can be tested.
    """
    means = effects.mean(axis=0)
    intervals = _compute_intervals(effects, units)
    rows = []
    for column, variant in enumerate(variants):
        row = EffectRow(variant, float(means[column]), float(intervals[0, column]), float(intervals[1, column]))
        controls = [
            number
            for number, other in enumerate(variants)
            if other.kind == "control" and variant.kind == "head" and other.heads[0].layer == variant.heads[0].layer
        ]
        if controls:
            difference = effects[:, [column]] - effects[:, controls]  # [case, control]
            bounds = _compute_intervals(difference, units)
            nearest_control = int(difference.mean(axis=0).argmin())
            margin = float(difference.mean(axis=0)[nearest_control]), *map(float, bounds[:, nearest_control])
            row = row._replace(more=margin[0], more_low=margin[1], more_high=margin[2])
            is_tested = has_role and not np.isnan(bounds).any()
            row = row._replace(used=bool((bounds[0] > 0).all()) if is_tested else None)
        rows.append(row)
    return tuple(rows)


def _compute_intervals(values: Numbers, units: Sequence[str]) -> Numbers:
    """Return [low and high, column], the intervals of the means of ``values`` [case, column].

    Whole units are resampled. The interval is NaN if there is only one unit.
    """
    documents = Documents(units, MAX_UNITS)
    sums = np.zeros((documents.count, values.shape[1]))
    np.add.at(sums, documents.numbers, values)
    return documents.compute_mean_intervals(sums, np.bincount(documents.numbers, minlength=documents.count))
