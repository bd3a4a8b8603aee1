"""What a model is asked about a text, and what it answers with and without some of its heads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

MASK, NEXT, COSINE = KINDS = ("mask", "next", "cosine")
FIRST = -1  # of the masked tokens of a text, whichever that is

Numbers = npt.NDArray[np.float64]


class Question(NamedTuple):
    """What a model is asked about a text.

    ``kind``: "mask", the word at the masked token ``place``; "next", the one that follows the last token, ``place``;
    "cosine", how alike the vectors of the text and of ``other`` are. ``word`` names a piece of the vocabulary, which is
    number ``piece`` there: its log-probability is the score; of a cosine the score is the cosine. ``places``: all
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
        """What is followed, in words: "log p of “cat” at token 5"."""
        if self.kind == COSINE:
            return f"the cosine with “{self.other}”"
        return f"log p of “{self.word}” {f'at token {self.place}' if self.kind == MASK else 'as the next token'}"


class Ablation(NamedTuple):
    """A text on which heads are switched off: ``method`` is what replaces their output, as in ``models.methods``;
    ``question`` is what the model is asked, if anything."""

    text: str
    pair: str = ""
    method: str = "zero"
    question: Question | None = None


class Answer(NamedTuple):
    """What a model answers before and after heads are switched off.

    Of a word, ``words`` are the most probable ones before, then those after that are not among them, then the one that
    is asked for; ``before`` and ``after`` are their probabilities, ``divergence`` is KL(before ‖ after) over the
    vocabulary in nats. Of a cosine there is no word, ``before`` and ``after`` hold one number, and ``divergence`` is
    the size of its change.
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
        """Before and after: the probability of the word that is asked for, or the cosine."""
        at = self.words.index(self.question.word) if self.words else 0
        return float(self.before[at]), float(self.after[at])
