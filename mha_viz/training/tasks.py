"""A language that can be learned within seconds, in which every word takes part in two relations at once.

A word is a letter with a mark, such as ``k▲``. Each mark occurs on two words of a sentence, which are linked by it like
a pronoun and its antecedent. At each word the model predicts two letters: that of the word before (a relation of
position) and that of the linked word (a relation of content). Letters are sampled independently for every word, so the
answer can only come from attending to the right place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

LETTERS = "abdegkmt"
MARKS = "▲●■◆★✚"
WORDS = 2 * len(MARKS)  # per sentence
RELATIONS = ("the word before", "the linked word")
CHANCE = 1 / len(LETTERS)  # accuracy of a guess

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Sentences:
    """Sentences and their answers, as numbers.

    ``letters``, ``marks``: [sentence, word]. ``places``: [sentence, word, relation], the place of the word to look at;
    −1 where nothing is asked (no word stands before the first). ``answers``: [sentence, word, relation], its letter.
    """

    letters: Integers
    marks: Integers
    places: Integers
    answers: Integers

    def words(self, sentence: int) -> tuple[str, ...]:
        """The words of one sentence, as text."""
        pairs = zip(self.letters[sentence], self.marks[sentence], strict=True)
        return tuple(LETTERS[letter] + MARKS[mark] for letter, mark in pairs)


def sentences(count: int, seed: tuple[int, ...]) -> Sentences:
    """``count`` sentences; the same seed gives the same ones."""
    rng = np.random.default_rng(seed)
    letters = rng.integers(len(LETTERS), size=(count, WORDS))
    marks = rng.permuted(np.tile(np.arange(WORDS) // 2, (count, 1)), axis=1)  # [sentence, word]
    same = marks[:, :, None] == marks[:, None, :]  # [sentence, word, word]
    linked = (same & ~np.eye(WORDS, dtype=bool)).argmax(axis=2)
    before = np.broadcast_to(np.arange(WORDS) - 1, (count, WORDS))
    places = np.stack([before, linked], axis=2)
    answers = np.take_along_axis(letters[:, :, None], np.maximum(places, 0), axis=1)
    answers[places < 0] = -1
    return Sentences(letters, marks, places, answers)
