"""Which head follows which dependency relation: arg-max accuracy against gold trees, with two baselines from the gold.

Definitions: Clark et al. 2019, section 4.2 (word attention, arg-max, fixed offset); Voita et al. 2019, section 5.2.1
(ten points over the offset); Htut et al. 2019 (undirected). A relation is counted with its subtype ("nmod:poss", level
*full*), without it ("nmod", *base*) and in the aggregates "all" and "all without punct" (*agg*). Roots are not scored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.intervals import Documents
from mha_viz.analysis.reduce import Counts, Running
from mha_viz.attention import Weights
from mha_viz.corpus.treebank import Sentence

DIRECTIONS = ("dep_to_head", "head_to_dep", "head_row")
OFFSETS = tuple(
    sorted((o for o in range(-10, 11) if o), key=lambda o: (abs(o), o))
)  # −1, 1, −2, 2, …: among equals the first is chosen
SIDES = ("left", "right")
HALVES = (
    "even",
    "odd",
)  # of the sentences, by their number in the file: roles are chosen on one half, reported on the other

Indices = npt.NDArray[np.intp]


class RelationRow(NamedTuple):
    """A row of a table: level "full", "base" or "agg", and a relation."""

    level: str
    relation: str


class Tree(NamedTuple):
    """The gold annotation of one sentence as arrays over words: ``heads`` (−1 for roots), ``relations`` (index into
    :attr:`Relations.names`, −1 for roots), ``upos`` (index into :attr:`Relations.upos`)."""

    heads: Indices
    relations: Indices
    upos: Indices


class Relations:
    """The relations in a corpus, in a fixed order, and how the full ones add up to the ``rows`` of the tables."""

    def __init__(
        self, sentences: Sequence[Sentence], names: Iterable[str] | None = None, upos: Iterable[str] = ()
    ) -> None:
        """The relations in ``sentences``, or those in ``names`` and ``upos`` if given."""
        words = [word for sentence in sentences for word in sentence.words]
        if names is None:
            names = {word.relation for word in words if word.head is not None}
            upos = {word.upos for word in words}
        self.names, self.upos = tuple(sorted(names)), tuple(sorted(upos))
        self._number = {name: i for i, name in enumerate(self.names)}
        self._upos = {name: i for i, name in enumerate(self.upos)}

    @cached_property
    def rows(self) -> tuple[RelationRow, ...]:
        """Every row of a table, in order."""
        base = sorted({_base(name) for name in self.names})
        aggregates = [RelationRow("agg", "all"), RelationRow("agg", "all without punct")] if self.names else []
        return (
            *(RelationRow("full", name) for name in self.names),
            *(RelationRow("base", name) for name in base),
            *aggregates,
        )

    @cached_property
    def member(self) -> Counts:
        """[relation, row]: 1 if a full relation counts in a row."""
        return np.array([[_belongs(name, row) for row in self.rows] for name in self.names], np.int64).reshape(
            len(self.names), len(self.rows)
        )

    def tree(self, sentence: Sentence) -> Tree:
        """The gold annotation of a sentence as arrays."""
        heads = np.array([-1 if w.head is None else w.head for w in sentence.words], np.intp)
        relations = [-1 if w.head is None else self._number[w.relation] for w in sentence.words]
        return Tree(
            heads, np.array(relations, np.intp), np.array([self._upos[w.upos] for w in sentence.words], np.intp)
        )


def _base(relation: str) -> str:
    return relation.partition(":")[0]


def _belongs(name: str, row: RelationRow) -> bool:
    if row.level == "full":
        return name == row.relation
    if row.level == "base":
        return _base(name) == row.relation
    return row.relation == "all" or _base(name) != "punct"


class Syntax:
    """Running counts over sentences.

    ``sums``: correct [document, half, direction, relation, head] by full relation; edges [head] for the undirected
    measure with edge_count. The numbers of cases depend only on the annotation: :func:`gold`, :func:`cases`.
    """

    def __init__(self, relations: Relations, heads: int, documents: int = 1) -> None:
        self.relations = relations
        shape = (documents, len(HALVES), len(DIRECTIONS), len(relations.names), heads)
        self.sums: Running = {
            "correct": np.zeros(shape, np.int32),
            "edges": np.zeros(heads, np.int64),
            "edge_count": np.zeros((), np.int64),
        }
        self._punct = np.array([_base(name) == "punct" for name in relations.names] or [False])

    def add(self, sentences: Joined, numbers: Sequence[int], documents: Sequence[int] = ()) -> None:
        """Add sentences; their numbers in the corpus; their documents (by default the first)."""
        row, column, heads, relations, _, sentence = sentences
        words = np.flatnonzero(heads >= 0)
        above, names = heads[words], len(self.relations.names)
        halves = np.array(numbers) % 2 + len(HALVES) * np.array(documents or [0] * len(numbers), np.intp)
        bins = relations + names * halves[sentence]  # [word]: document, half and relation
        for direction, pointed in enumerate((row, column)):
            which, there = np.nonzero(pointed[:, words] == above)
            self._count(direction, which, bins[words[there]])
        which, there = np.nonzero(heads[row] == np.arange(len(heads)))  # a row that points to a dependent of its word
        self._count(2, which, bins[row[which, there]])
        plain = ~self._punct[relations[words]]
        down = row[:, above] == words
        self.sums["edges"] += np.count_nonzero(((row[:, words] == above) | down)[:, plain], axis=1)
        self.sums["edge_count"] += np.count_nonzero(plain)

    def _count(self, direction: int, which: Indices, bins: Indices) -> None:
        """Count correct answers: for each, the head that gave it and its bin, (document · 2 + half) · relations +
        relation."""
        documents, half, _, names, heads = self.sums["correct"].shape
        counts = np.bincount(bins * heads + which, minlength=documents * half * names * heads)
        self.sums["correct"][:, :, direction] += counts.reshape(documents, half, names, heads).astype(np.int32)


class Gold(NamedTuple):
    """The results that follow from the annotation alone, by :attr:`Relations.rows`: ``n`` [half, direction, row] cases;
    ``offset`` [half, direction, row, offset] and ``upos`` [half, direction, row, side, upos]: how many of them a fixed
    offset, or the nearest word of a part of speech on one side, gets right."""

    n: Counts
    offset: Counts
    upos: Counts


def best_offset(right: Counts) -> tuple[int, int]:
    """The offset with the most right cases and their number, from counts [offset]; among equals the nearer, then the
    negative one."""
    at = int(right.argmax())
    return OFFSETS[at], int(right[at])


def best_upos(right: Counts) -> tuple[int, int, int]:
    """Side, part of speech and count of the best rule, from counts [side, upos]; among equals the first part of speech
    by name, then the left side."""
    tag, side = np.unravel_index(int(right.T.argmax()), right.T.shape)
    return int(side), int(tag), int(right[side, tag])


def gold(relations: Relations, sentences: Sequence[tuple[int, Sentence]]) -> Gold:
    """Cases and baselines of ``sentences``, each with its number in the file."""
    names, tags = len(relations.names), len(relations.upos)
    n = np.zeros((2, 3, len(relations.rows)), np.int64)
    offset = np.zeros((2, 2, names, len(OFFSETS)), np.int64)  # [half, dependents or head's row, relation, offset]
    upos = np.zeros((2, 2, names, len(SIDES), tags), np.int64)
    for number, sentence in sentences:
        tree = relations.tree(sentence)
        half, dependents = number % 2, np.flatnonzero(tree.heads >= 0)
        n[half] += _cases(relations, tree)
        if len(tree.heads) < 2 or not dependents.size:
            continue
        far = tree.heads[dependents] - dependents
        for at, places in enumerate(OFFSETS):
            np.add.at(offset[half, 0, :, at], tree.relations[dependents[far == places]], 1)
            np.add.at(offset[half, 1, :, at], tree.relations[dependents[far == -places]], 1)
        _nearest(upos[half], tree, tags)
    by_row = [np.einsum("hdr...,rt->hdt...", table, relations.member)[:, [0, 0, 1]] for table in (offset, upos)]
    return Gold(n, by_row[0], by_row[1])


def cases(
    relations: Relations, sentences: Sequence[tuple[int, Sentence]], documents: Documents, first: int = 0
) -> Counts:
    """[document, half, direction, row]: the cases of ``sentences``, each with its number in the file. ``first``: the
    number of the first sentence that the ``documents`` number."""
    n = np.zeros((documents.count, len(HALVES), len(DIRECTIONS), len(relations.rows)), np.int64)
    for number, sentence in sentences:
        n[documents.numbers[number - first], number % 2] += _cases(relations, relations.tree(sentence))
    return n


def _cases(relations: Relations, tree: Tree) -> Counts:
    """The counts [direction, row] of one sentence."""
    dependents = np.flatnonzero(tree.heads >= 0)
    if len(tree.heads) < 2 or not dependents.size:
        return np.zeros((len(DIRECTIONS), len(relations.rows)), np.int64)
    by_dependent = relations.member[tree.relations[dependents]].sum(axis=0)
    has = np.zeros((len(tree.heads), len(relations.rows)), bool)  # [word, row]: whether it has such a dependent
    np.logical_or.at(has, tree.heads[dependents], relations.member[tree.relations[dependents]].astype(bool))
    return np.stack((by_dependent, by_dependent, has.sum(axis=0)))


def _nearest(table: Counts, tree: Tree, tags: int) -> None:
    """For the nearest word of each part of speech on each side of every word: whether it is the head, and whether it is
    a dependent."""
    n = len(tree.heads)
    for side, order in enumerate((range(n), range(n - 1, -1, -1))):
        last = np.full(tags, -1, np.intp)  # by part of speech: the last word seen so far
        for word in order:
            seen = np.flatnonzero(last >= 0)
            nearest_word = last[seen]
            if tree.heads[word] >= 0:
                table[0, tree.relations[word], side, seen[nearest_word == tree.heads[word]]] += 1
            below = tree.heads[nearest_word] == word
            np.add.at(table[1, :, side], (tree.relations[nearest_word[below]], seen[below]), 1)
            last[tree.upos[word]] = word


class Pointers(NamedTuple):
    """Where the heads of a model point in one sentence: ``row`` [head, word] is the word to which a word gives most
    weight, ``column`` [head, word] the word that gives it most weight."""

    row: Indices
    column: Indices


def pointers(block: Weights) -> Pointers:
    """The arg-max of each row and column of [head, word, word], ignoring the diagonal, which is overwritten. Among
    equal weights, the first."""
    n = block.shape[-1]
    block[:, np.arange(n), np.arange(n)] = -1
    return Pointers(block.argmax(axis=2), block.argmax(axis=1))


class Joined(NamedTuple):
    """Sentences whose words are numbered consecutively, so that all are processed at once: pointers ``row`` and
    ``column`` [head, word]; ``heads`` (−1 for roots), ``relations``, ``first`` (the first word of its sentence) and
    ``sentence`` (its place among them) are [word]."""

    row: Indices
    column: Indices
    heads: Indices
    relations: Indices
    first: Indices
    sentence: Indices


def joined(blocks: Sequence[Weights], trees: Sequence[Tree]) -> Joined:
    """Join sentences, at least one: ``blocks`` [head, word, word], overwritten on their diagonals, and their trees."""
    lengths = np.array([len(tree.heads) for tree in trees], np.intp)
    first = np.repeat(np.cumsum(lengths) - lengths, lengths)
    pointed = [pointers(block) for block in blocks]
    row, column = (np.concatenate(each, axis=1) + first for each in zip(*pointed, strict=True))
    heads, relations, _ = (np.concatenate(each) for each in zip(*trees, strict=True))
    heads += first * (heads >= 0)
    return Joined(row, column, heads, relations, first, np.repeat(np.arange(len(trees)), lengths))


class Arc(NamedTuple):
    """The answer of a head for one word of a sentence. ``word`` is the word in question, ``pointed`` the answer;
    ``gold`` are the right answers (one, or for a head's row all dependents); ``relation`` is the gold relation."""

    word: int
    pointed: int
    gold: tuple[int, ...]
    relation: str

    @property
    def right(self) -> bool:
        """True if the answer is right."""
        return self.pointed in self.gold


def arcs(sentence: Sentence, pointed: Pointers, head: int, relation: str, direction: str) -> tuple[Arc, ...]:
    """The cases of a relation (with or without subtype) in a sentence, and one head's answer to each."""
    dependents = [
        (word, gold.head, gold.relation)
        for word, gold in enumerate(sentence.words)
        if gold.head is not None and relation in (gold.relation, _base(gold.relation), "all")
    ]
    if direction == "head_row":
        words = sorted({above for _, above, _ in dependents})
        below = {word: tuple(d for d, above, _ in dependents if above == word) for word in words}
        return tuple(Arc(word, int(pointed.row[head, word]), below[word], relation) for word in words)
    answers = (pointed.row if direction == "dep_to_head" else pointed.column)[head]
    return tuple(Arc(word, int(answers[word]), (above,), name) for word, above, name in dependents)
