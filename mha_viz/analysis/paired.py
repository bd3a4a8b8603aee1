"""How much more often one head is right than another over the same cases, with an interval over documents.

Both are judged by the same draws of documents, so that what is hard about a document is hard for both: the interval of
the difference is narrower than the two intervals of the accuracies suggest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mha_viz.analysis.intervals import Documents, Interval, with_cases
from mha_viz.attention import Head

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    *("relation", "direction", "model", "layer", "head", "other_model", "other_layer", "other_head"),
    *("n", "documents", "accuracy", "other_accuracy", "difference", "ci_low", "ci_high"),
)


class HeadOf(NamedTuple):
    """A head of a model."""

    model: str
    head: Head


class PairedDifference(NamedTuple):
    """Two heads on one relation and direction: ``accuracy`` minus ``other_accuracy`` over the same ``n`` cases from
    this many ``documents``, with its 95 % interval."""

    relation: str
    direction: str
    one: HeadOf
    other: HeadOf
    n: int
    documents: int
    accuracy: float
    other_accuracy: float
    interval: Interval

    @property
    def difference(self) -> float:
        """How much more often the one is right, −1 to 1."""
        return self.accuracy - self.other_accuracy


class PairedDifferences(tuple[PairedDifference, ...]):
    """A :class:`PairedDifference` for each pair; printed or shown in Jupyter, it is :meth:`table`."""

    def table(self) -> pd.DataFrame:
        """One row per pair, with COLUMNS; layers and heads counted from 0."""
        import pandas as pd

        rows: list[tuple[object, ...]] = []
        for pair in self:
            heads = (pair.one.model, *pair.one.head, pair.other.model, *pair.other.head)
            measured = (pair.n, pair.documents, pair.accuracy, pair.other_accuracy, pair.difference, *pair.interval)
            rows.append((pair.relation, pair.direction, *heads, *measured))
        return pd.DataFrame(rows, columns=list(COLUMNS))

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        return self.table().to_html()


def difference(
    relation: str,
    direction: str,
    heads: tuple[HeadOf, HeadOf],
    answers: Iterable[tuple[int, Sequence[bool], Sequence[bool]]],
    documents: Documents,
) -> PairedDifference:
    """Compare two heads. ``answers``: of each sentence its number, and for each case in it whether the one is right,
    and the other."""
    outcomes = np.zeros((documents.count, 4), np.int64)
    for sentence, one, other in answers:
        for is_right, other_is_right in zip(one, other, strict=True):
            outcomes[documents.numbers[sentence], 2 * (not is_right) + (not other_is_right)] += 1
    both, alone, other_alone, neither = outcomes.sum(axis=0).tolist()
    n = both + alone + other_alone + neither
    accuracies = (both + alone) / n, (both + other_alone) / n
    over = with_cases(outcomes.sum(axis=1))
    return PairedDifference(relation, direction, *heads, n, over, *accuracies, documents.of_difference(outcomes))
