"""The answer of a model to a question about a text, with and without some of its heads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.request import Question

Numbers = npt.NDArray[np.float64]


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
