"""The effects of switching heads off over a corpus, with intervals, and the rule for a used role."""

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

MOST_UNITS = 1000  # the most documents or sentences that are drawn from; with more, neighbours are drawn together
# What an effect is, by what the model can answer: over whole sentences, and at the words that a role attends from.
MASKED_WORD, LOSS, VECTOR = (
    "fall of log p of the masked word",
    "rise of the loss per token",
    "1 − cosine of the sentence vector",
)
TOKEN_AFTER, WORD_STATE = "fall of log p of the token after the word", "1 − cosine of the word’s last state"
OF_WORDS = {MASKED_WORD: MASKED_WORD, LOSS: TOKEN_AFTER, VECTOR: WORD_STATE}
HEADING = ("heads", "kind", "n", "documents", "effect", "low", "high", "more", "more_low", "more_high", "used")


class Variant(NamedTuple):
    """Heads that are off together. ``kind``: "together", all measured heads; "head", one of them; "control", another
    head of one of their layers."""

    heads: tuple[Head, ...]
    kind: str

    @property
    def name(self) -> str:
        """ "L3H1", "L2H4 L3H1"."""
        return " ".join(map(str, self.heads))


def variants_of(heads: Sequence[Head], same_role: Sequence[Head], per_layer: int) -> tuple[Variant, ...]:
    """The variants to measure: the heads together if there are several, each alone, and each other head of their layers
    except those that have the same role."""
    together = [Variant(tuple(heads), "together")] if len(heads) > 1 else []
    layers = sorted({head.layer for head in heads})
    others = [Head(layer, number) for layer in layers for number in range(per_layer)]
    controls = [Variant((head,), "control") for head in others if head not in {*heads, *same_role}]
    return (*together, *(Variant((head,), "head") for head in heads), *controls)


class EffectRow(NamedTuple):
    """The effect of one variant over a corpus: its mean with a 95 % interval. For a measured head, ``more`` is its
    effect minus the largest effect of another head of its layer, with an interval; NaN if there is no other head.
    ``used``: whether its role is used; None if that is not judged."""

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
    """The effects of switching heads off over a corpus. ``measure`` says what an effect is; ``relation`` and
    ``direction`` say on which words it was measured, empty for whole sentences. ``cases`` were measured in
    ``sentences`` of ``documents`` (1 if the corpus names none); ``every``: k where every k-th sentence was read, 1 for
    all; ``left_out`` words or sentences could not be measured."""

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
        """One row per variant, with the columns HEADING; ``used`` is empty if it is not judged."""
        import pandas as pd

        counts = self.cases, self.documents
        rows = [
            (row.variant.name, row.variant.kind, *counts, *row[1:7], "" if row.used is None else row.used)
            for row in self.rows
        ]
        return pd.DataFrame(rows, columns=list(HEADING))


def effect_rows(
    variants: Sequence[Variant], effects: Numbers, units: Sequence[str], judged: bool
) -> tuple[EffectRow, ...]:
    """The rows of a table. ``effects`` [case, variant]; ``units``: for each case the document, or the sentence, which
    is drawn as a whole. ``judged``: whether the cases depend on a role.

    A head's role is used when the lower end of the 95 % interval of the difference between its effect and that of each
    other head of its layer without the role lies above 0.
    """
    means = effects.mean(axis=0)
    intervals = _intervals(effects, units)
    rows = []
    for at, variant in enumerate(variants):
        row = EffectRow(variant, float(means[at]), float(intervals[0, at]), float(intervals[1, at]))
        others = [
            number
            for number, other in enumerate(variants)
            if other.kind == "control" and variant.kind == "head" and other.heads[0].layer == variant.heads[0].layer
        ]
        if others:
            difference = effects[:, [at]] - effects[:, others]  # [case, control]
            bounds = _intervals(difference, units)
            nearest = int(difference.mean(axis=0).argmin())
            more = float(difference.mean(axis=0)[nearest]), *map(float, bounds[:, nearest])
            row = row._replace(more=more[0], more_low=more[1], more_high=more[2])
            row = row._replace(used=bool((bounds[0] > 0).all()) if judged else None)
        rows.append(row)
    return tuple(rows)


def _intervals(values: Numbers, units: Sequence[str]) -> Numbers:
    """[low and high, column] for the means of ``values`` [case, column], from draws of whole units; NaN if there is
    only one."""
    documents = Documents(units, MOST_UNITS)
    sums = np.zeros((documents.count, values.shape[1]))
    np.add.at(sums, documents.numbers, values)
    return documents.of_means(sums, np.bincount(documents.numbers, minlength=documents.count))
