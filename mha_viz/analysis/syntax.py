"""Score which head follows which dependency relation: arg-max accuracy against gold trees, with two baselines.

Definitions: Clark et al. 2019, section 4.2 (word attention, arg-max, fixed offset); Voita et al. 2019, section 5.2.1
(ten points over the offset); Htut et al. 2019 (undirected). A relation is counted with its subtype ("nmod:poss", level
*full*), without it ("nmod", *base*) and in the aggregates "all" and "all without punct" (*agg*). Roots are not scored.

*Kind and choice*: in sentences with two or more words of the gold word's part of speech, besides the seeker (the word
whose head or dependent is looked for), does a head point to a word of this *kind*, and if so, is its *choice* among
them the gold word? For comparison, the same cases are scored for the nearest such word on each side and for a random
one. Subtypes count with their base relation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.intervals import Documents
from mha_viz.analysis.pos_rules import SIDES, NearestRule, RulesByRow, find_nearest_words
from mha_viz.analysis.reduce import Counts, RunningSums
from mha_viz.attention import Weights
from mha_viz.corpus.treebank import Sentence

DIRECTIONS = ("dep_to_head", "head_to_dep", "head_row")
# −1, 1, −2, 2, …: of equally good offsets, the first is chosen.
OFFSETS = tuple(sorted((o for o in range(-10, 11) if o), key=lambda o: (abs(o), o)))
# Halves of the sentences, by their number in the file: roles are chosen on one half and reported on the other.
HALVES = ("even", "odd")

# Counts of kind and choice. "kind": the head points to a word of the gold word's kind. The others count among these
# cases. "right": the word is right. "nearest_…": the nearest such word on the left or right is right. "both_…": both
# are right. "random": a random such word would be right.
KIND_COUNTS = ("kind", "right", "nearest_left", "nearest_right")
CHOICE_COUNTS = (*KIND_COUNTS, "both_left", "both_right", "random")

Indices = npt.NDArray[np.intp]
Hits = npt.NDArray[np.bool_]  # [head, word]


class RelationRow(NamedTuple):
    """A row of a table: a level, "full", "base" or "agg", and a relation."""

    level: str
    relation: str


class Tree(NamedTuple):
    """The gold annotation of a sentence as arrays over words.

    Attributes:
        heads: [word], −1 for roots.
        relations: [word], index into :attr:`Relations.names`, −1 for roots.
        upos: [word], index into :attr:`Relations.upos`.
        rows: the indices in :attr:`Relations.rows` of the rows with a case.
        rule_hits: [2, row, word] for these rows: whether the rule of the row finds the head of a dependent, and
            whether it finds, from a head, one of its dependents.
    """

    heads: Indices
    relations: Indices
    upos: Indices
    rows: Indices
    rule_hits: npt.NDArray[np.bool_]


class Relations:
    """The relations in a corpus, in a fixed order, and the ``rows`` of the tables that they add up to."""

    def __init__(
        self, sentences: Sequence[Sentence], names: Iterable[str] | None = None, upos: Iterable[str] = ()
    ) -> None:
        """Take the relations from ``names`` and ``upos`` if given, otherwise from ``sentences``."""
        words = [word for sentence in sentences for word in sentence.words]
        if names is None:
            names = {word.relation for word in words if word.head is not None}
            upos = {word.upos for word in words}
        self.names, self.upos = tuple(sorted(names)), tuple(sorted(upos))
        self._indices = {name: i for i, name in enumerate(self.names)}
        self._upos_indices = {name: i for i, name in enumerate(self.upos)}

    @cached_property
    def rows(self) -> tuple[RelationRow, ...]:
        """Every row of a table, in order."""
        aggregates = [RelationRow("agg", "all"), RelationRow("agg", "all without punct")] if self.names else []
        return (
            *(RelationRow("full", name) for name in self.names),
            *(RelationRow("base", name) for name in self.bases),
            *aggregates,
        )

    @cached_property
    def bases(self) -> tuple[str, ...]:
        """The relations without subtypes, in order."""
        return tuple(sorted({strip_subtype(name) for name in self.names}))

    @cached_property
    def base_indices(self) -> Indices:
        """[relation]: the index of its base relation in :attr:`bases`."""
        return np.array([self.bases.index(strip_subtype(name)) for name in self.names], np.intp)

    def find_base(self, row: int) -> int:
        """Return the index in :attr:`bases` of the relation of a row, which must not be an aggregate."""
        return self.bases.index(strip_subtype(self.rows[row].relation))

    @cached_property
    def member(self) -> Counts:
        """[relation, row]: 1 if a full relation counts in a row."""
        return np.array([[_belongs(name, row) for row in self.rows] for name in self.names], np.int64).reshape(
            len(self.names), len(self.rows)
        )

    def make_tree(self, sentence: Sentence, rules: RulesByRow = MappingProxyType({})) -> Tree:
        """Convert the gold annotation of a sentence to arrays, with the answers of the ``rules`` by parts of speech."""
        heads = np.array([-1 if w.head is None else w.head for w in sentence.words], np.intp)
        relations = np.array([-1 if w.head is None else self._indices[w.relation] for w in sentence.words], np.intp)
        upos = np.array([self._upos_indices[w.upos] for w in sentence.words], np.intp)
        rows = np.flatnonzero(self.member[relations[relations >= 0]].any(axis=0))
        rule_hits = np.zeros((2, len(rows), len(heads)), bool)
        for index, row in enumerate(rows.tolist()):
            is_in_row = (relations >= 0) & self.member[relations, row].astype(bool)
            for seeker in range(2):
                rule = rules.get((seeker, self.rows[row]))
                if rule is None or not rule.tags:
                    continue
                answer = find_nearest_words(self._mark_rule(rule)[upos], rule.side)
                if seeker == 0:
                    rule_hits[0, index] = is_in_row & (answer == heads)
                else:
                    rule_hits[1, index] = (answer >= 0) & (heads[answer] == np.arange(len(heads))) & is_in_row[answer]
        return Tree(heads, relations, upos, rows, rule_hits)

    def mark_named(self, rules: RulesByRow) -> npt.NDArray[np.bool_]:
        """Return [seeker, side, row, part of speech], which parts of speech each rule names.

        These arrays can be added over parts of a corpus.
        """
        is_named = np.zeros((2, len(SIDES), len(self.rows), len(self.upos)), bool)
        for (seeker, row), rule in rules.items():
            if row in self.rows:
                is_named[seeker, rule.side, self.rows.index(row)] = self._mark_rule(rule)
        return is_named

    def _mark_rule(self, rule: NearestRule) -> npt.NDArray[np.bool_]:
        """Return [part of speech], whether the rule names it."""
        return np.array([tag in rule.tags for tag in self.upos], bool)


def strip_subtype(relation: str) -> str:
    """Return a relation without its subtype."""
    return relation.partition(":")[0]


def _belongs(name: str, row: RelationRow) -> bool:
    """Return True if a full relation counts in a row."""
    if row.level == "full":
        return name == row.relation
    if row.level == "base":
        return strip_subtype(name) == row.relation
    return row.relation == "all" or strip_subtype(name) != "punct"


class Syntax:
    """Running counts over sentences.

    ``sums`` has correct [document, half, direction, relation, head] by full relation; both [half, direction, row,
    head], cases that the rule by parts of speech gets right, too; kinds [document, direction, base, head, KIND_COUNTS]
    and choices [half, direction, base, head, CHOICE_COUNTS]; and, for the undirected measure, edges [head] and
    edge_count. The numbers of cases depend only on the annotation: see :func:`count_gold` and :func:`count_cases`.
    """

    def __init__(self, relations: Relations, heads: int, documents: int = 1) -> None:
        self.relations = relations
        directions, bases = len(DIRECTIONS), len(relations.bases)
        shape = (documents, len(HALVES), directions, len(relations.names), heads)
        self.sums: RunningSums = {
            "correct": np.zeros(shape, np.int32),
            "both": np.zeros((len(HALVES), directions, len(relations.rows), heads), np.int64),
            "kinds": np.zeros((documents, directions, bases, heads, len(KIND_COUNTS)), np.int32),
            "choices": np.zeros((len(HALVES), directions, bases, heads, len(CHOICE_COUNTS))),
            "edges": np.zeros(heads, np.int64),
            "edge_count": np.zeros((), np.int64),
        }
        self._punct = np.array([strip_subtype(name) == "punct" for name in relations.names] or [False])

    def add(self, sentences: JoinedSentences, numbers: Sequence[int], documents: Sequence[int] = ()) -> None:
        """Add sentences, with their numbers in the corpus and their documents (by default the first)."""
        row, column, heads, relations = sentences.row, sentences.column, sentences.heads, sentences.relations
        words = np.flatnonzero(heads >= 0)
        governors, names = heads[words], len(self.relations.names)
        half = (np.array(numbers) % 2)[sentences.sentence]  # [word]
        document = np.array(documents or [0] * len(numbers), np.intp)[sentences.sentence]
        bins = relations + names * (half + len(HALVES) * document)  # [word]: document, half and relation
        down_hits = row[:, governors] == words  # [head, dependent]: the row of its governor points to it
        hits = (row[:, words] == governors, column[:, words] == governors, down_hits)
        right = self.sums["correct"]  # [document, half, direction, relation, head]
        for direction, is_hit in enumerate(hits):
            head, dependent = np.nonzero(is_hit)
            counts = np.bincount(bins[words[dependent]] * right.shape[-1] + head, minlength=right[:, :, 0].size)
            right[:, :, direction] += counts.reshape(right[:, :, 0].shape).astype(np.int32)
        self._count_both(sentences, hits, words, half)
        self._count_kinds(sentences, half, document)
        is_scored = ~self._punct[relations[words]]
        self.sums["edges"] += np.count_nonzero((hits[0] | down_hits)[:, is_scored], axis=1)
        self.sums["edge_count"] += np.count_nonzero(is_scored)

    def _count_both(self, sentences: JoinedSentences, hits: Sequence[Hits], words: Indices, half: Indices) -> None:
        """Count the cases that both a head and the rule of the row get right."""
        is_in_row = self.relations.member[sentences.relations[words]].T.astype(bool)  # [row, dependent]
        from_dependents, from_heads = sentences.rule_hits
        hits_by_seeker = from_dependents[:, words], from_heads[:, sentences.heads[words]] & is_in_row
        for direction, is_hit in enumerate(hits):
            for number in range(len(HALVES)):
                is_in_half = half[words] == number
                pair = hits_by_seeker[direction == 2], is_hit
                rule_hits, head_hits = (array[:, is_in_half].astype(np.float32) for array in pair)
                self.sums["both"][number, direction] += (rule_hits @ head_hits.T).astype(np.int64)

    def _count_kinds(self, sentences: JoinedSentences, half: Indices, document: Indices) -> None:
        """Count kind and choice, in sentences with two or more words of the gold word's kind."""
        kinds = sentences.kinds
        for direction, kind_cases in enumerate((kinds.of_dependents, kinds.of_dependents, kinds.of_heads)):
            targets = (sentences.column if direction == 1 else sentences.row)[:, kind_cases.word]  # [head, case]
            is_kind = sentences.upos[targets] == kind_cases.tag
            if direction == 2:
                target_relations = sentences.relations[targets]
                base = np.where(target_relations >= 0, self.relations.base_indices[target_relations], -1)
                is_right = is_kind & (sentences.heads[targets] == kind_cases.word) & (base == kind_cases.base)
            else:
                is_right = targets == sentences.heads[kind_cases.word]
            is_right &= is_kind
            left, right = (is_kind & is_nearest for is_nearest in kind_cases.nearest)
            answers = (is_kind, is_right, left, right, is_right & left, is_right & right, is_kind * kind_cases.chance)
            quantities = np.stack([answer.T for answer in answers], axis=2, dtype=np.float64)  # [case, head, count]
            cells = np.stack((document[kind_cases.word], half[kind_cases.word], kind_cases.base))
            order = np.lexsort(cells[::-1])
            starts = np.flatnonzero(np.diff(cells[:, order], prepend=-1).any(axis=0))
            if not starts.size:
                continue
            totals = np.add.reduceat(quantities[order], starts, axis=0)
            documents, halves, bases = cells[:, order[starts]]
            np.add.at(self.sums["choices"][:, direction], (halves, bases), totals)
            kind_totals = totals[..., : len(KIND_COUNTS)].astype(np.int32)
            np.add.at(self.sums["kinds"][:, direction], (documents, bases), kind_totals)


class GoldCounts(NamedTuple):
    """Counts that depend only on the annotation, by :attr:`Relations.rows`.

    Attributes:
        n: [half, direction, row], the number of cases.
        offset: [half, direction, row, offset], the number of these cases that a fixed offset gets right.
        kinds: [half, direction, base], the cases of kind and choice.
    """

    n: Counts
    offset: Counts
    kinds: Counts


def find_best_offset(right: Counts) -> tuple[int, int]:
    """Return the offset with the most right cases, and their number, from counts [offset].

    Of equally good offsets, the nearer is chosen, then the negative one.
    """
    best = int(right.argmax())
    return OFFSETS[best], int(right[best])


def count_gold(relations: Relations, trees: Sequence[tuple[int, Tree]]) -> GoldCounts:
    """Count the cases of ``trees``, and those that each fixed offset gets right.

    Each tree comes with the number of its sentence in the file.
    """
    names = len(relations.names)
    n = np.zeros((2, 3, len(relations.rows)), np.int64)
    offset = np.zeros((2, 2, names, len(OFFSETS)), np.int64)  # [half, dependents or head's row, relation, offset]
    kinds = np.zeros((2, 3, len(relations.bases)), np.int64)
    for number, tree in trees:
        half, dependents = number % 2, np.flatnonzero(tree.heads >= 0)
        n[half] += _count_cases(relations, tree)
        if len(tree.heads) < 2 or not dependents.size:
            continue
        dependent_cases, head_cases = (
            np.bincount(k.base, minlength=kinds.shape[2]) for k in collect_kinds(relations, tree)
        )
        kinds[half] += (dependent_cases, dependent_cases, head_cases)
        distances = tree.heads[dependents] - dependents
        for column, distance in enumerate(OFFSETS):
            np.add.at(offset[half, 0, :, column], tree.relations[dependents[distances == distance]], 1)
            np.add.at(offset[half, 1, :, column], tree.relations[dependents[distances == -distance]], 1)
    return GoldCounts(n, np.einsum("hdro,rt->hdto", offset, relations.member)[:, [0, 0, 1]], kinds)


def count_cases(
    relations: Relations, trees: Sequence[tuple[int, Tree]], documents: Documents, first: int = 0
) -> tuple[Counts, Counts]:
    """Count the cases of ``trees``, and those that the rule by parts of speech gets right.

    Both are [document, half, direction, row]. Each tree comes with the number of its sentence in the file.
    ``documents`` has the document of each sentence from number ``first`` on, and the number of documents.
    """
    n = np.zeros((documents.count, len(HALVES), len(DIRECTIONS), len(relations.rows)), np.int64)
    rule_correct = np.zeros_like(n)
    for number, tree in trees:
        cell = documents.numbers[number - first], number % 2
        n[cell] += _count_cases(relations, tree)
        if len(tree.heads) > 1:
            rule_correct[cell][:, tree.rows] += tree.rule_hits.sum(axis=2)[[0, 0, 1]]
    return n, rule_correct


def _count_cases(relations: Relations, tree: Tree) -> Counts:
    """Return the cases [direction, row] of a sentence."""
    dependents = np.flatnonzero(tree.heads >= 0)
    if len(tree.heads) < 2 or not dependents.size:
        return np.zeros((len(DIRECTIONS), len(relations.rows)), np.int64)
    dependent_counts = relations.member[tree.relations[dependents]].sum(axis=0)
    # [word, row]: whether it has such a dependent
    has_dependent = np.zeros((len(tree.heads), len(relations.rows)), bool)
    np.logical_or.at(has_dependent, tree.heads[dependents], relations.member[tree.relations[dependents]].astype(bool))
    return np.stack((dependent_counts, dependent_counts, has_dependent.sum(axis=0)))


class Pointers(NamedTuple):
    """The words to which the heads of a model point in a sentence.

    ``row`` [head, word] is the word to which a word gives most weight, ``column`` [head, word] the word that gives it
    most weight.
    """

    row: Indices
    column: Indices


def find_pointers(block: Weights) -> Pointers:
    """Return the arg-max of each row and column of [head, word, word], ignoring the diagonal.

    The diagonal is overwritten. Of equal weights, the first is chosen.
    """
    n = block.shape[-1]
    block[:, np.arange(n), np.arange(n)] = -1
    return Pointers(block.argmax(axis=2), block.argmax(axis=1))


class KindCases(NamedTuple):
    """Cases with two or more words of the gold word's part of speech, besides the seeker.

    Attributes:
        word: [case], the seeker: the word whose head or dependent is looked for.
        base: [case], the base relation.
        tag: [case], the gold word's part of speech.
        chance: [case], the share of the words with this part of speech that are right.
        nearest: [side, case], whether the nearest of them on each side is right.
    """

    word: Indices
    base: Indices
    tag: Indices
    chance: npt.NDArray[np.float64]
    nearest: npt.NDArray[np.bool_]


class Kinds(NamedTuple):
    """Cases of dependents, which look for their head, and of heads, which look for a dependent.

    The gold word of a head is the first dependent of the relation.
    """

    of_dependents: KindCases
    of_heads: KindCases


def collect_kinds(relations: Relations, tree: Tree) -> Kinds:
    """Collect the cases of kind and choice of a sentence."""
    heads, upos, n = tree.heads, tree.upos, len(tree.heads)
    count = np.bincount(upos, minlength=len(relations.upos))
    nearest = np.full((len(SIDES), len(relations.upos), n), -1, np.intp)  # [side, part of speech, word]
    for tag in np.unique(upos):
        for side in range(len(SIDES)):
            nearest[side, tag] = find_nearest_words(upos == tag, side)
    dependents = np.flatnonzero(heads >= 0)
    governors = heads[dependents]
    base = relations.base_indices[tree.relations[dependents]] if dependents.size else governors
    first_dependents: dict[tuple[int, int], int] = {}  # (head, base relation) → its first dependent
    for dependent, pair in zip(dependents.tolist(), zip(governors.tolist(), base.tolist(), strict=True), strict=True):
        first_dependents.setdefault(pair, dependent)
    words, names = (np.array([pair[part] for pair in first_dependents], np.intp) for part in range(2))
    tags = upos[np.array([*first_dependents.values()], np.intp)]
    is_dependent = (governors == words[:, None]) & (base == names[:, None])  # [case, dependent]: whether it is right
    is_right = np.zeros((len(words), n + 1), bool)  # [case, word]; the last column stands for no word
    is_right[:, dependents] = is_dependent

    def keep_choices(word: Indices, base: Indices, tag: Indices, right: Any, hits: Any) -> KindCases:
        """Keep the cases with two or more words to choose from."""
        choices = count[tag] - (upos[word] == tag)
        has_choice = choices > 1
        return KindCases(
            word[has_choice],
            base[has_choice],
            tag[has_choice],
            (right / np.maximum(choices, 1))[has_choice],
            hits[:, has_choice],
        )

    hits = nearest[:, upos[governors], dependents] == governors
    dependent_cases = keep_choices(dependents, base, upos[governors], np.ones(len(governors)), hits)
    right_counts = (is_dependent & (upos[dependents] == tags[:, None])).sum(axis=1)
    hits = is_right[np.arange(len(words)), nearest[:, tags, words]]
    return Kinds(dependent_cases, keep_choices(words, names, tags, right_counts, hits))


class JoinedSentences(NamedTuple):
    """Sentences with consecutively numbered words, so that all can be processed at once.

    Attributes:
        row, column: [head, word], as in :class:`Pointers`.
        heads: [word], −1 for roots.
        relations, upos: [word], as in :class:`Tree`.
        first: [word], the first word of its sentence.
        sentence: [word], the index of its sentence.
        rule_hits: [2, row, word], as in :class:`Tree`, for all rows.
        kinds: the cases of kind and choice.
    """

    row: Indices
    column: Indices
    heads: Indices
    relations: Indices
    upos: Indices
    first: Indices
    sentence: Indices
    rule_hits: npt.NDArray[np.bool_]
    kinds: Kinds


def join_sentences(relations: Relations, blocks: Sequence[Weights], trees: Sequence[Tree]) -> JoinedSentences:
    """Join one or more sentences, given as ``blocks`` [head, word, word] and trees.

    The diagonals of the blocks are overwritten.
    """
    lengths = np.array([len(tree.heads) for tree in trees], np.intp)
    starts = np.cumsum(lengths) - lengths
    first = np.repeat(starts, lengths)
    pointers = [find_pointers(block) for block in blocks]
    row, column = (np.concatenate(words, axis=1) + first for words in zip(*pointers, strict=True))
    heads, names, upos = (np.concatenate(values) for values in zip(*(tree[:3] for tree in trees), strict=True))
    heads += first * (heads >= 0)
    rule_hits = np.zeros((2, len(relations.rows), len(heads)), bool)
    kinds: list[Kinds] = []
    for tree, start, length in zip(trees, starts.tolist(), lengths.tolist(), strict=True):
        rule_hits[:, tree.rows, start : start + length] = tree.rule_hits
        kinds.append(Kinds(*(part._replace(word=part.word + start) for part in collect_kinds(relations, tree))))
    fields = [
        [np.concatenate(arrays, axis=-1) for arrays in zip(*parts, strict=True)] for parts in zip(*kinds, strict=True)
    ]
    all_kinds = Kinds(*(KindCases(*arrays) for arrays in fields))
    return JoinedSentences(
        row, column, heads, names, upos, first, np.repeat(np.arange(len(trees)), lengths), rule_hits, all_kinds
    )


class Arc(NamedTuple):
    """The answer of a head for one word of a sentence.

    Attributes:
        word: the word in question.
        answer: the word to which the head points.
        gold: the right answers; a single one, or for a head's row all dependents.
        relation: the gold relation.
    """

    word: int
    answer: int
    gold: tuple[int, ...]
    relation: str

    @property
    def is_right(self) -> bool:
        """True if the answer is right."""
        return self.answer in self.gold


def list_arcs(sentence: Sentence, pointers: Pointers, head: int, relation: str, direction: str) -> tuple[Arc, ...]:
    """Return the cases of a relation (with or without subtype) in a sentence, with one head's answers."""
    dependents = [
        (word, gold_word.head, gold_word.relation)
        for word, gold_word in enumerate(sentence.words)
        if gold_word.head is not None and relation in (gold_word.relation, strip_subtype(gold_word.relation), "all")
    ]
    if direction == "head_row":
        words = sorted({governor for _, governor, _ in dependents})
        dependents_by_word = {word: tuple(d for d, governor, _ in dependents if governor == word) for word in words}
        return tuple(Arc(word, int(pointers.row[head, word]), dependents_by_word[word], relation) for word in words)
    answers = (pointers.row if direction == "dep_to_head" else pointers.column)[head]
    return tuple(Arc(word, int(answers[word]), (governor,), name) for word, governor, name in dependents)
