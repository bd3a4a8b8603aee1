"""The answers of a model to a question about a text, with and without some of its heads, and after patching.

Patching measures how much of the difference between two answers is restored when the outputs of heads are taken from
another text.
"""

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
MAX_ERROR = 0.25  # relative error above which an estimate of a share is unreliable
MIN_DIFFERENCE = 0.05  # a smaller difference of cosines or log-probabilities is negligible
MAX_WORDS = 32  # maximum number of words that a model writes at once
SIDES = ("query", "key", "value")  # the inputs of a head at which a path can end
MAX_LISTED = 10  # number of words to list


class Answer(NamedTuple):
    """The answer of a model before and after heads are ablated.

    For a word, ``words`` are the most probable words before, those after, and the word of the question, each only
    once. ``before`` and ``after`` are their probabilities, and ``divergence`` is KL(before ‖ after) over the
    vocabulary in nats. For a cosine there are no words, ``before`` and ``after`` have one number, and ``divergence`` is
    the size of its change.
    """

    question: Question
    words: tuple[str, ...]
    before: Numbers
    after: Numbers
    divergence: float

    @property
    def best(self) -> tuple[str, str]:
        """The most probable words before and after."""
        return self.words[int(self.before.argmax())], self.words[int(self.after.argmax())]

    @property
    def followed(self) -> tuple[float, float]:
        """The probability of the word of the question, or the cosine, before and after."""
        place = self.words.index(self.question.word) if self.words else 0
        return float(self.before[place]), float(self.after[place])

    def table(self) -> pd.DataFrame:
        """Return a table with a row for each of ``words``, or for the cosine.

        The columns are ``before`` and ``after``.
        """
        import pandas as pd

        index = pd.Index(self.words or (COSINE,), name="word" if self.words else "score")
        return pd.DataFrame({"before": self.before, "after": self.after}, index=index)


class Continuation(NamedTuple):
    """A continuation of a text by a model, as far as it has been written.

    Attributes:
        pieces: the written tokens, by their numbers in the vocabulary.
        text: the text of these tokens up to the last requested word, to be appended to the original text unchanged.
        is_complete: True if the model ends here, or if all wanted words are written.
    """

    pieces: tuple[int, ...] = ()
    text: str = ""
    is_complete: bool = False


@dataclass(frozen=True)
class HeadValues:
    """A number for each head on one text.

    ``values`` is [layer, head]; ``name`` says what is measured, and ``score`` which answer of the model it refers to.
    """

    model: str
    text: str
    name: str
    score: str
    values: Numbers

    def table(self) -> pd.DataFrame:
        """Return a table with one row per head, ``L0H0`` first, and one column, ``name``."""
        return make_head_table({self.name: self.values})


def make_head_table(columns: dict[str, Numbers]) -> pd.DataFrame:
    """Return a table with one row per head, ``L0H0`` first, from columns [layer, head]."""
    import pandas as pd

    (shape,) = {numbers.shape for numbers in columns.values()}
    index = pd.Index([str(Head(*place)) for place in np.ndindex(shape)], name="head")
    return pd.DataFrame({name: numbers.ravel() for name, numbers in columns.items()}, index=index)


@dataclass(frozen=True)
class PatchResult:
    """The results of patching each head alone: the model reads ``text``, and the head's output is that on ``other``.

    Attributes:
        score: the score in words.
        before, after: the score on ``text`` and on ``other``.
        shares: [layer, head], the exact share of the difference that is restored: 0 for none, 1 for all, below 0 if the
            answer moves away.
        estimated: [layer, head], the shares to first order, from one forward and one backward pass (attribution
            patching).
        to, side: for paths, the head and its "query", "key" or "value", which alone receive the outputs. ``shares`` are
            then NaN for heads of the layer of ``to`` and of later ones, and ``estimated`` for all.

    If only estimates were computed, only the ``checked`` head has a share.
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
        """True if the two answers are so close that shares of their difference mean little."""
        return abs(self.after - self.before) < MIN_DIFFERENCE

    @property
    def checked(self) -> Head | None:
        """The head with the largest estimate; None for paths.

        Its share is exact even if all others are estimated.
        """
        return None if self.to is not None else find_largest_estimate(self.estimated)

    @property
    def checked_shares(self) -> tuple[float, float]:
        """The estimated and the exact share of the ``checked`` head; NaN for paths.

        They show how reliable estimates are.
        """
        head = self.checked
        return (float("nan"), float("nan")) if head is None else (self.estimated[head].item(), self.shares[head].item())

    @property
    def is_far_off(self) -> bool:
        """True if the estimate of the ``checked`` head misses its exact share by more than a quarter of it."""
        estimated, exact = self.checked_shares
        return abs(estimated - exact) > MAX_ERROR * abs(exact)

    @property
    def correlation(self) -> float:
        """Pearson's correlation of ``estimated`` and ``shares`` over heads.

        NaN if either is constant, for paths, and if most shares are only estimated.
        """
        exact, estimated = self.shares.ravel(), self.estimated.ravel()
        if np.isnan([*exact, *estimated]).any() or not (np.ptp(exact) and np.ptp(estimated)):
            return float("nan")
        matrix: Numbers = np.array(np.corrcoef(exact, estimated))
        return float(matrix[0, 1])

    def table(self) -> pd.DataFrame:
        """Return a table with one row per head, ``L0H0`` first, and the columns ``share`` and ``estimated``.

        If only estimates were computed, only the ``checked`` head has a share, and others have NaN. For paths, there is
        a row for each earlier head, and no column ``estimated``.
        """
        table = make_head_table({"share": self.shares, "estimated": self.estimated})
        return table if self.to is None else table[["share"]].dropna()


def find_largest_estimate(estimated: Numbers) -> Head:
    """Return the head with the largest absolute estimate, from [layer, head]."""
    layer, head = np.unravel_index(int(np.abs(estimated).argmax()), estimated.shape)
    return Head(int(layer), int(head))


def list_tokens(before: Numbers, after: Numbers, piece: int) -> list[int]:
    """Return the tokens to list: the MAX_LISTED most probable before and after, and ``piece``.

    ``before`` and ``after`` are log-probabilities [token]. Each token is listed once: first those before, then those
    after. Of equally probable tokens, the first in the vocabulary is chosen.
    """
    best_before, best_after = (np.argsort(-logs, kind="stable")[:MAX_LISTED].tolist() for logs in (before, after))
    return list(dict.fromkeys([*best_before, *best_after, piece]))


def compute_divergences(before: Numbers, after: Numbers) -> Numbers:
    """Return KL(before ‖ after) in nats over the last axis, from log-probabilities.

    The result is clipped so that rounding never makes it negative.
    """
    p = np.exp(before)
    terms = p * (np.where(p > 0, before, 0.0) - np.where(p > 0, after, 0.0))
    nats: Numbers = np.maximum(0.0, terms.sum(axis=-1))
    return nats


def compute_cosines(first: Numbers, second: Numbers) -> Numbers:
    """Return the cosine over the last axis, in float64; 0 if one of the vectors is zero."""
    lengths = np.linalg.norm(first, axis=-1) * np.linalg.norm(second, axis=-1)
    similarity: Numbers = np.clip(np.vecdot(first, second) / np.where(lengths == 0, 1.0, lengths), -1.0, 1.0)
    return similarity
