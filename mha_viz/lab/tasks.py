"""A language that can be learned within seconds, and the tasks on its words, one row each.

A word is a letter with a mark, such as ``k▲``. Each mark occurs on two words of a sentence and links them, like a
pronoun and its antecedent. At each word the model names the letter of every word to which the task's relations lead.
Letters are sampled independently for every word, so the answer can only come from the right word.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

LETTERS = "abdegkmt"
MARKS = "▲●■◆★✚"
WORDS = 2 * len(MARKS)  # per sentence
CHANCE = 1 / len(LETTERS)  # accuracy of a guess
BEFORE, LINKED, ITSELF = RELATIONS = "the word before", "the same symbol", "the word itself"

Integers = npt.NDArray[np.int64]


class LabTask(NamedTuple):
    """The task of a lab model: the letters to name at each word.

    Attributes:
        relations: some of RELATIONS; the model names the letter of the word to which each leads.
        instruction: the sentence that explains the task to a visitor; ``letters`` complete it.
        letters: descriptions of these letters.
        note: another sentence for the visitor.
        is_residual: whether a residual connection carries every word past the heads, so that a word need not attend to
            itself. Otherwise the letter can only come through attention.
    """

    relations: tuple[str, ...]
    instruction: str
    letters: tuple[str, ...]
    note: str = ""
    is_residual: bool = False


# A relation of position and a relation of content, both asked at every word.
TWO_RELATIONS = LabTask(
    (BEFORE, LINKED),
    "For each word the layer must name two letters:",
    ("the previous word’s", "that of the word with the same symbol"),
)
# Only the current position matters.
OWN_LETTER = LabTask(
    (ITSELF,),
    "For each word the layer must name one letter:",
    ("its own",),
    "The residual connection carries it past the heads.",
    is_residual=True,
)


@dataclass(frozen=True)
class Sentences:
    """Sentences and their answers, as numbers.

    Attributes:
        letters, marks: [sentence, word].
        places: the position of the correct word, [sentence, word, relation]; −1 where there is none (no word precedes
            the first).
        answers: the letter of that word, [sentence, word, relation].
    """

    letters: Integers
    marks: Integers
    places: Integers
    answers: Integers

    def words(self, sentence: int) -> tuple[str, ...]:
        """Return the words of one sentence, as text."""
        pairs = zip(self.letters[sentence], self.marks[sentence], strict=True)
        return tuple(LETTERS[letter] + MARKS[mark] for letter, mark in pairs)


def draw_sentences(count: int, seed: tuple[int, ...], task: LabTask = TWO_RELATIONS) -> Sentences:
    """Draw ``count`` sentences with the answers of the task. The same seed gives the same sentences for every task."""
    rng = np.random.default_rng(seed)
    letters = rng.integers(len(LETTERS), size=(count, WORDS))
    marks = rng.permuted(np.tile(np.arange(WORDS) // 2, (count, 1)), axis=1)  # [sentence, word]
    places = np.stack([_find_places(relation, marks) for relation in task.relations], axis=2)
    answers = np.take_along_axis(letters[:, :, None], np.maximum(places, 0), axis=1)
    answers[places < 0] = -1
    return Sentences(letters, marks, places, answers)


def _find_places(relation: str, marks: Integers) -> Integers:
    """Return the position of the word in this relation to each word, [sentence, word]."""
    if relation == LINKED:
        has_same_mark = marks[:, :, None] == marks[:, None, :]  # [sentence, word, word]
        linked_words: Integers = (has_same_mark & ~np.eye(WORDS, dtype=bool)).argmax(axis=2)
        return linked_words
    return np.broadcast_to(np.arange(WORDS) - (relation == BEFORE), marks.shape)
