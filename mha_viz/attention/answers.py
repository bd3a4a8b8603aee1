"""The answers of a model: to a question about a text, with and without some of its heads; and what comes back of the
difference between two answers when heads give their output on another text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.heads import Head
from mha_viz.request import COSINE, Question

if TYPE_CHECKING:
    import pandas as pd

Numbers = npt.NDArray[np.float64]
FAR_OFF = 0.25  # of the exact share: an estimate that misses by more is not to be relied on
LITTLE = 0.05  # a smaller difference of two answers, cosines or log-probabilities, is hardly one
MOST_WORDS = 32  # that a model writes at once
SIDES = ("query", "key", "value")  # of a head, at which a path can end
BEST = 10  # words that are listed


class Answer(NamedTuple):
    """The answer of a model before and after heads are switched off.

    For a word, ``words`` are the most probable ones before, then those after that are not among them, then the followed
    word; ``before`` and ``after`` are their probabilities, ``divergence`` is KL(before ‖ after) over the vocabulary in
    nats. For a cosine there are no words, ``before`` and ``after`` hold one number, and ``divergence`` is the size of
    its change.
    """

    question: Question
    words: tuple[str, ...]
    before: Numbers
    after: Numbers
    divergence: float

    @property
    def best(self) -> tuple[str, str]:
        """The most probable word before and after."""
        return self.words[int(self.before.argmax())], self.words[int(self.after.argmax())]

    @property
    def followed(self) -> tuple[float, float]:
        """Before and after: the probability of the followed word, or the cosine."""
        at = self.words.index(self.question.word) if self.words else 0
        return float(self.before[at]), float(self.after[at])

    def table(self) -> pd.DataFrame:
        """A row for each of ``words``, or for the cosine: ``before`` and ``after``."""
        import pandas as pd

        index = pd.Index(self.words or (COSINE,), name="word" if self.words else "score")
        return pd.DataFrame({"before": self.before, "after": self.after}, index=index)


class Continuation(NamedTuple):
    """A continuation of a text by a model, as far as it has been written.

    Attributes:
        pieces: numbers of the written pieces in the vocabulary.
        text: the same as text, up to the last word that was wanted; it is added to the one before as it is.
        is_complete: True if the model ends here, or all words that were wanted are written.
    """

    pieces: tuple[int, ...] = ()
    text: str = ""
    is_complete: bool = False


@dataclass(frozen=True)
class OfHeads:
    """A number for each head on one text, ``values`` [layer, head]; ``name`` says which, ``score`` of what answer."""

    model: str
    text: str
    name: str
    score: str
    values: Numbers

    def table(self) -> pd.DataFrame:
        """A row for each head, ``L0H0`` first, with one column, named ``name``."""
        return by_head({self.name: self.values})


def by_head(columns: dict[str, Numbers]) -> pd.DataFrame:
    """A row for each head, ``L0H0`` first; the columns are numbers [layer, head]."""
    import pandas as pd

    (shape,) = {numbers.shape for numbers in columns.values()}
    index = pd.Index([str(Head(*at)) for at in np.ndindex(shape)], name="head")
    return pd.DataFrame({name: numbers.ravel() for name, numbers in columns.items()}, index=index)


@dataclass(frozen=True)
class Patched:
    """What comes back of the difference between the answers to two texts when one head alone gives its output on
    ``other`` while the model reads ``text``.

    ``score``: the answer in words. ``before`` and ``after``: the score on ``text`` and on ``other``. ``shares``
    [layer, head], exact: 0 where nothing comes back, 1 where all of it does; less than 0 where the answer moves away.
    ``estimated`` [layer, head]: the same to first order, from one forward and one backward pass (attribution patching).
    ``to``, ``side``: the head and its "query", "key" or "value" that alone the outputs reach; ``shares`` are then NaN
    for heads that are not earlier, ``estimated`` for all. Of estimates alone only the ``checked`` head has a share.
    """

    model: str
    text: str
    other: str
    score: str
    before: float
    after: float
    shares: Numbers
    estimated: Numbers
    to: Head | None = None
    side: str = ""
    revision: str = ""

    @property
    def hardly_differs(self) -> bool:
        """Whether the two answers are so close that shares of their difference say little."""
        return abs(self.after - self.before) < LITTLE

    @property
    def checked(self) -> Head | None:
        """The head with the largest estimate, whose share is exact even where all others are estimated; None for
        paths."""
        return None if self.to is not None else largest_estimate(self.estimated)

    @property
    def checked_shares(self) -> tuple[float, float]:
        """The share of the ``checked`` head to first order and exactly: how far estimates may be trusted. NaN for
        paths."""
        head = self.checked
        return (float("nan"), float("nan")) if head is None else (self.estimated[head].item(), self.shares[head].item())

    @property
    def is_far_off(self) -> bool:
        """Whether the estimate of the ``checked`` head misses by more than a quarter of its exact share."""
        estimated, exact = self.checked_shares
        return abs(estimated - exact) > FAR_OFF * abs(exact)

    @property
    def correlation(self) -> float:
        """Pearson's correlation of ``estimated`` and ``shares`` over heads; NaN if all numbers of one are equal,
        for paths, and where most shares are estimated alone."""
        one, other = self.shares.ravel(), self.estimated.ravel()
        if np.isnan([*one, *other]).any() or not (np.ptp(one) and np.ptp(other)):
            return float("nan")
        matrix: Numbers = np.array(np.corrcoef(one, other))
        return float(matrix[0, 1])

    def table(self) -> pd.DataFrame:
        """A row for each head, ``L0H0`` first: ``share``, of estimates alone that of the ``checked`` head and else NaN,
        and ``estimated``; for paths, for each earlier head, without ``estimated``."""
        table = by_head({"share": self.shares, "estimated": self.estimated})
        return table if self.to is None else table[["share"]].dropna()


def largest_estimate(estimated: Numbers) -> Head:
    """The head with the largest estimate in size, of [layer, head]."""
    layer, head = np.unravel_index(int(np.abs(estimated).argmax()), estimated.shape)
    return Head(int(layer), int(head))


def listed(before: Numbers, after: Numbers, piece: int) -> list[int]:
    """The BEST pieces by log-probability [piece] before, those after that are not among them, and ``piece``, each once;
    among equal ones the first in the vocabulary is chosen."""
    firsts = [np.argsort(-each, kind="stable")[:BEST].tolist() for each in (before, after)]
    return list(dict.fromkeys([*firsts[0], *firsts[1], piece]))


def divergences(before: Numbers, after: Numbers) -> Numbers:
    """KL(before ‖ after) in nats over the last axis, from log-probabilities; clipped so that rounding never makes it
    negative."""
    share = np.exp(before)
    terms = share * (np.where(share > 0, before, 0.0) - np.where(share > 0, after, 0.0))
    nats: Numbers = np.maximum(0.0, terms.sum(axis=-1))
    return nats


def cosines(first: Numbers, second: Numbers) -> Numbers:
    """The cosine over the last axis, in float64; 0 if one of the vectors is zero."""
    lengths = np.linalg.norm(first, axis=-1) * np.linalg.norm(second, axis=-1)
    alike: Numbers = np.clip(np.vecdot(first, second) / np.where(lengths == 0, 1.0, lengths), -1.0, 1.0)
    return alike
