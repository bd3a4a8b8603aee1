"""A null for syntax: another word of the same kind takes the place of each gold word.

The replacement is drawn from the words of the sentence that have the gold word's part of speech; it is never the
seeker, the word that looks for it. In the directions that ask for the head of a dependent, the gold word is the head.
In the direction "head_row", where the head's row should point to one of its dependents, the gold words are all its
dependents of that relation, with any subtype; each is replaced by a different word that is not among them. A gold word
without a replacement is dropped, and so is a case without gold words. A head that only knows which kind of word to look
for is therefore right as often as before, and whatever it finds in such trees, it finds by chance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.reduce import RunningSums
from mha_viz.analysis.syntax import DIRECTIONS, HALVES, OFFSETS, Pointers, Relations, Tree

Indices = npt.NDArray[np.intp]


class Replacements(NamedTuple):
    """The words that count as right in a draw; −1 means none.

    Both arrays are [dependent], in the order of the words that have a head: ``heads`` has replacements for the heads of
    the dependents, ``dependents`` for the dependents themselves.
    """

    heads: Indices
    dependents: Indices

    @classmethod
    def from_tree(cls, tree: Tree) -> Replacements:
        """Return the words of the tree itself, without replacing any."""
        dependents = np.flatnonzero(tree.heads >= 0)
        return cls(tree.heads[dependents], dependents)

    @classmethod
    def draw(cls, relations: Relations, tree: Tree, random: np.random.Generator) -> Replacements:
        """Draw other words of the same kinds. The sentence must have at least one dependent."""
        heads, dependents = cls.from_tree(tree)
        base = relations.base_indices[tree.relations[dependents]]
        dependent_cases = np.arange(len(dependents))  # one gold word per case: the head
        pairs = np.stack((heads, base))  # one case per head and relation, with a gold word for each dependent
        head_cases = np.unique(pairs, axis=1, return_inverse=True)[1].ravel()
        return cls(
            _draw_replacements(tree.upos, heads, dependents, dependent_cases, random),
            _draw_replacements(tree.upos, dependents, heads, head_cases, random),
        )


def _draw_replacements(
    upos: Indices, gold: Indices, seekers: Indices, cases: Indices, random: np.random.Generator
) -> Indices:
    """Draw a replacement for each gold word; −1 where there is none.

    ``gold``, ``seekers`` (the words that look for them) and ``cases`` (the numbers of their cases) are [gold word];
    ``upos`` is [word].
    """
    words, gold_numbers = np.arange(len(upos)), np.arange(len(gold))
    same_case = cases == cases[:, None]  # [gold word, gold word]
    is_gold = np.zeros((len(gold), len(upos)), bool)  # [gold word, word]: a gold word of the same case
    np.logical_or.at(is_gold, (gold_numbers[:, None], gold[None]), same_case)
    is_free = (upos == upos[gold][:, None]) & (words != seekers[:, None]) & ~is_gold
    same_kind = same_case & (upos[gold] == upos[gold][:, None])  # gold words with the same free words
    rank = (same_kind & (gold_numbers < gold_numbers[:, None])).sum(axis=1)
    order = np.where(is_free, random.random(is_free.shape)[same_kind.argmax(axis=1)], -1).argsort(axis=1)[:, ::-1]
    return np.where(rank < is_free.sum(axis=1), order[gold_numbers, np.minimum(rank, len(upos) - 1)], -1)


class DrawnSyntax:
    """Running counts over sentences, for the trees as they are (draw 0) and for ``draws`` draws.

    ``sums`` has correct [document, draw, half, direction, relation, head] by full relation, cases [document, draw,
    half, direction, row] and offset [draw, half, direction, row, offset]. Without ``by_half``, all sentences count as
    one half. The result of a draw depends only on the seed, the draw and the number of the sentence.
    """

    def __init__(
        self, relations: Relations, heads: int, documents: int, draws: int, seed: int = 0, by_half: bool = True
    ) -> None:
        self.relations, self.seed, self.by_half = relations, seed % 2**32, by_half
        halves, rows = len(HALVES) if by_half else 1, len(relations.rows)
        shape = (draws + 1, halves, len(DIRECTIONS))
        self.sums: RunningSums = {
            "correct": np.zeros((documents, *shape, len(relations.names), heads), np.int32),
            "cases": np.zeros((documents, *shape, rows), np.int64),
            "offset": np.zeros((*shape, rows, len(OFFSETS)), np.int64),
        }

    def add(self, pointers: Pointers, tree: Tree, number: int, document: int = 0) -> None:
        """Add a sentence.

        Args:
            pointers: the words to which heads point in it.
            tree: its tree.
            number: its number in the corpus.
            document: its document.
        """
        gold = Replacements.from_tree(tree)
        if len(tree.heads) < 2 or not len(gold.dependents):
            return
        half, draw_count = number % 2 if self.by_half else 0, len(self.sums["offset"])  # draw 0 included
        generators = (np.random.default_rng([self.seed, draw, number]) for draw in range(1, draw_count))
        draws_with_gold = [gold, *(Replacements.draw(self.relations, tree, random) for random in generators)]
        heads, dependents = (np.stack(words) for words in zip(*draws_with_gold, strict=True))  # [draw, dependent]
        names = tree.relations[gold.dependents]
        is_relation = np.eye(len(self.relations.names), dtype=np.float32)[names]  # [dependent, relation]
        is_in_row = self.relations.member[names].astype(np.float32)  # [dependent, row]
        row, column = pointers
        head_answers = (row[:, gold.dependents], column[:, gold.dependents], row[:, gold.heads])
        for direction, (answers, right) in enumerate(zip(head_answers, (heads, heads, dependents), strict=True)):
            seekers = gold.heads if direction == 2 else gold.dependents
            correct = (answers == right[:, None]).astype(np.float32) @ is_relation  # [draw, head, relation]
            hits = (right[:, None] - seekers == np.array(OFFSETS)[:, None]) & (right >= 0)[:, None]
            offset = hits.astype(np.float32) @ is_in_row  # [draw, offset, row]
            has_right = (right >= 0).astype(np.float32)  # [draw, dependent]
            cases = has_right @ is_in_row  # [draw, row]
            if direction == 2:  # all dependents that a head looks for in a row are one case
                is_seeker = np.eye(len(tree.heads), dtype=np.float32)[seekers].T  # [word, dependent]
                cases = ((has_right[:, None] * is_seeker) @ is_in_row > 0).sum(axis=1)
            for name, counts in (("correct", correct.swapaxes(1, 2)), ("cases", cases)):
                self.sums[name][document, :, half, direction] += counts.astype(self.sums[name].dtype)
            self.sums["offset"][:, half, direction] += offset.swapaxes(1, 2).astype(np.int64)
