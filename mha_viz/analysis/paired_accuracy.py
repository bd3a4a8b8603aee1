"""Compare the accuracies of two heads over the same cases, with an interval over documents.

The same draws of documents are used for both heads, so a difficult document is difficult for both. The interval of the
difference is therefore narrower than the two intervals of the accuracies suggest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mha_viz.analysis.intervals import Documents, Interval, count_documents_with_cases
from mha_viz.attention import Head

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    *("relation", "direction", "model", "layer", "head", "other_model", "other_layer", "other_head"),
    *("n", "documents", "accuracy", "other_accuracy", "difference", "ci_low", "ci_high"),
)


class ModelHead(NamedTuple):
    """A head of a named model."""

    model: str
    head: Head


class PairedDifference(NamedTuple):
    """Two heads compared on one relation and direction.

    The difference is ``accuracy`` minus ``other_accuracy`` over the same ``n`` cases, which come from this many
    ``documents``; ``interval`` is its 95 % interval.
    """

    relation: str
    direction: str
    one: ModelHead
    other: ModelHead
    n: int
    documents: int
    accuracy: float
    other_accuracy: float
    interval: Interval

    @property
    def difference(self) -> float:
        """The accuracy of ``one`` minus that of ``other``, −1 to 1."""
        return self.accuracy - self.other_accuracy


class PairedDifferences(tuple[PairedDifference, ...]):
    """A tuple of :class:`PairedDifference`, one per pair; it is printed, and shown in Jupyter, as :meth:`table`."""

    def table(self) -> pd.DataFrame:
        """Return a table with one row per pair and the columns COLUMNS; layers and heads are counted from 0."""
        import pandas as pd

        rows: list[tuple[object, ...]] = []
        for pair in self:
            heads = (pair.one.model, *pair.one.head, pair.other.model, *pair.other.head)
            numbers = (pair.n, pair.documents, pair.accuracy, pair.other_accuracy, pair.difference, *pair.interval)
            rows.append((pair.relation, pair.direction, *heads, *numbers))
        return pd.DataFrame(rows, columns=list(COLUMNS))

    def __repr__(self) -> str:
        return repr(self.table())

    def _repr_html_(self) -> str:
        return self.table().to_html()


def compare_answers(
    relation: str,
    direction: str,
    heads: tuple[ModelHead, ModelHead],
    answers: Iterable[tuple[int, Sequence[bool], Sequence[bool]]],
    documents: Documents,
) -> PairedDifference:
    """Compare two heads on a relation and direction.

    ``answers`` has, for each sentence, its number and, for each case in it, whether the first and the second head are
    right.
    """
    outcomes = np.zeros((documents.count, 4), np.int64)
    for sentence, first_right, second_right in answers:
        for is_right, other_is_right in zip(first_right, second_right, strict=True):
            outcomes[documents.numbers[sentence], 2 * (not is_right) + (not other_is_right)] += 1
    both_right, first_only, other_only, neither = outcomes.sum(axis=0).tolist()
    n = both_right + first_only + other_only + neither
    accuracies = (both_right + first_only) / n, (both_right + other_only) / n
    documents_with_cases = count_documents_with_cases(outcomes.sum(axis=1))
    return PairedDifference(
        relation,
        direction,
        *heads,
        n,
        documents_with_cases,
        *accuracies,
        documents.compute_difference_interval(outcomes),
    )
