"""A language small enough to learn within seconds, in which every word must follow two relations at once.

A word is a letter with a mark, such as ``k▲``. Every mark stands on two words of a sentence: these two are linked, as a
pronoun and its antecedent are. At each word two answers are asked for: the letter of the word before (a relation of
position) and the letter of the linked word (a relation of content). Letters are drawn anew for every word, so that
nothing but looking at the right place gives the answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

LETTERS = "abdegkmt"
MARKS = "▲●■◆★✚"
WORDS = 2 * len(MARKS)  # of a sentence
RELATIONS = ("the word before", "the linked word")
CHANCE = 1 / len(LETTERS)  # of an answer that was not looked up

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Sentences:
    """Sentences and their answers, as numbers.

    ``letters``, ``marks``: [sentence, word]. ``places``: [sentence, word, relation], the place of the word to look at;
    −1 where nothing is asked (no word stands before the first). ``answers``: [sentence, word, relation], its letter.
    """

    letters: Numbers
    marks: Numbers
    places: Numbers
    answers: Numbers

    def words(self, sentence: int) -> tuple[str, ...]:
        """The words of one sentence as they are written."""
        pairs = zip(self.letters[sentence], self.marks[sentence], strict=True)
        return tuple(LETTERS[letter] + MARKS[mark] for letter, mark in pairs)


def sentences(count: int, seed: tuple[int, ...]) -> Sentences:
    """``count`` sentences; the same seed gives the same ones."""
    chance = np.random.default_rng(seed)
    letters = chance.integers(len(LETTERS), size=(count, WORDS))
    marks = chance.permuted(np.tile(np.arange(WORDS) // 2, (count, 1)), axis=1)  # [sentence, word]
    same = marks[:, :, None] == marks[:, None, :]  # [sentence, word, word]
    linked = (same & ~np.eye(WORDS, dtype=bool)).argmax(axis=2)
    before = np.broadcast_to(np.arange(WORDS) - 1, (count, WORDS))
    places = np.stack([before, linked], axis=2)
    answers = np.take_along_axis(letters[:, :, None], np.maximum(places, 0), axis=1)
    answers[places < 0] = -1
    return Sentences(letters, marks, places, answers)
