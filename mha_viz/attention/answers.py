"""The question to a model about a text, and its answer with and without some of its heads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

MASK, NEXT, COSINE = KINDS = ("mask", "next", "cosine")
FIRST = -1  # the first masked token of a text

Numbers = npt.NDArray[np.float64]


class Question(NamedTuple):
    """A question to a model about a text.

    ``kind``: "mask", the word at the masked token ``place``; "next", the word that follows the last token, ``place``;
    "cosine", how similar the vectors of the text and of ``other`` are. ``word`` names a piece of the vocabulary, which
    is number ``piece`` there: its log-probability is the score; for "cosine", the score is the cosine. ``places``: all
    masked tokens of the text.
    """

    kind: str
    place: int = 0
    word: str = ""
    piece: int = 0
    other: str = ""
    places: tuple[int, ...] = ()

    @property
    def score(self) -> str:
        """The score in words: "log p of “cat” at token 5"."""
        if self.kind == COSINE:
            return f"the cosine with “{self.other}”"
        return f"log p of “{self.word}” {f'at token {self.place}' if self.kind == MASK else 'as the next token'}"


class Ablation(NamedTuple):
    """A text with heads switched off: ``method`` is what replaces their output, as in ``models.methods``; ``question``
    is the question to the model, if any."""

    text: str
    pair: str = ""
    method: str = "zero"
    question: Question | None = None


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
