"""95 % intervals of accuracies: by bootstrap over documents, or Wilson's if a corpus names no documents.

The cases of one document are not independent of each other, so whole documents are drawn with replacement.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.reduce import Counts, Sums
from mha_viz.corpus.treebank import Sentence

DRAWS, SEED = 2000, 0
LEVELS = (2.5, 97.5)  # percentiles of the draws
CELLS = 16_000_000  # the most documents with separate counts; beyond that, neighbours are drawn together
FEWEST_BLOCKS = 30

Bounds = npt.NDArray[np.float64]  # [low and high, head]


class Interval(NamedTuple):
    """A 95 % interval."""

    low: float
    high: float


def wilson(correct: int, n: int) -> Interval:
    """The 95 % interval of a share (Wilson 1927); 0 to 1 if there is no case."""
    if n == 0:
        return Interval(0.0, 1.0)
    z = 1.959963984540054
    share, spread = correct / n, z * z / n
    centre = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    return Interval(max(0.0, centre - half), min(1.0, centre + half))


class Documents:
    """The documents of a corpus: ``numbers`` [sentence], from 0 in the order of the file, and their ``count``. If the
    corpus names no documents, there is one without a name."""

    def __init__(self, names: Sequence[str], most: int | None = None) -> None:
        """``most``: if there are more documents than this, neighbouring ones get the same number."""
        order = {name: number for number, name in enumerate(dict.fromkeys(names))}
        self.numbers = np.array([order[name] for name in names], np.intp)
        self.count = max(1, len(order))
        if most is not None and self.count > most:
            self.numbers, self.count = self.numbers * most // self.count, most

    @classmethod
    def numbered(cls, numbers: Sequence[int], count: int) -> Documents:
        """``count`` documents, with the document ``numbers`` of some sentences."""
        documents = cls(())
        documents.numbers, documents.count = np.array(numbers, np.intp), max(1, count)
        return documents

    @cached_property
    def draws(self) -> Sums:
        """[draw, document]: how often each document is drawn; the same draws for the same number of documents."""
        drawn = np.random.default_rng(SEED).integers(0, self.count, (DRAWS, self.count))
        drawn += np.arange(DRAWS)[:, None] * self.count
        counts = np.bincount(drawn.ravel(), minlength=DRAWS * self.count)
        return counts.reshape(DRAWS, self.count).astype(np.float64)

    def interval(self, correct: Counts, n: Counts) -> Bounds:
        """[low and high, head] for the accuracies of heads. ``correct`` [document, head], ``n`` [document].

        Draws without a case are left out; for a single document it is Wilson's interval.
        """
        if self.count < 2:
            return np.array([wilson(int(right), int(n.sum())) for right in correct.sum(axis=0)], np.float64).T
        drawn = self.draws @ n  # [draw]
        accuracies = (self.draws @ correct)[drawn > 0] / drawn[drawn > 0, None]
        bounds: Bounds = np.percentile(accuracies, LEVELS, axis=0)
        return bounds


def documents_of(sentences: Sequence[Sentence], cells: int) -> Documents:
    """The documents of a corpus if a study stores ``cells`` counts for each."""
    return Documents([sentence.document for sentence in sentences], most_documents(cells))


def most_documents(cells: int) -> int:
    """How many documents can have separate counts, if each has ``cells`` of them."""
    return max(FEWEST_BLOCKS, CELLS // max(1, cells))
