"""Select sentences for and against each role, by a fixed rule, in one pass over a corpus.

A *case* is a question to a head, and its *answer* is the token with the largest weight:

* syntax: a word and a relation in one of the three directions, scored as in :mod:`mha_viz.analysis.syntax`;
* coreference: a third-person pronoun among the earlier mentions, as in :mod:`mha_viz.analysis.coreference`;
* position: the row of a token that is not special, without special columns; right if the answer is the previous, same
  or next token;
* delimiter: the row of a token that is not special; right if the answer is ``[CLS]``, ``[SEP]``, either of these, or
  punctuation;
* broad: the row of a token that is not special; right if its entropy reaches 0.78 of the largest possible.

There is no case if only one answer is possible: in a sentence of two words, or with one earlier mention.

For every role and head, five cases are stored: the two right and the two wrong cases with the largest weights, no two
of them from the same text, and a random case. Weights are compared to four digits; of equal weights, the first in the
corpus is chosen. The random case depends only on its place in the corpus and a seed. The selection is therefore
independent of the order of batches and of the number of workers, and the selections of two corpora can be merged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.coreference import Chunk
from mha_viz.analysis.metrics import ON_DELIMITERS, POSITIONS
from mha_viz.analysis.reduce import TINY, Batch, index_ordinary
from mha_viz.analysis.roles import BROAD_THRESHOLD, list_named_rows
from mha_viz.analysis.syntax import DIRECTIONS, JoinedSentences, Relations
from mha_viz.attention import Head, Weights

KINDS = ("right", "wrong", "random")
SLOT_SIZES = (2, 2, 1)  # stored cases of each kind for a role and head
WEIGHT_STEPS = 10_000  # weights are compared in steps of 1 / WEIGHT_STEPS
SEED = 0  # seed of the random cases
MAX_UNSORTED = 50_000  # cases that are collected before they are sorted
HEADS_PER_STEP = 8  # heads per computation of entropies; their weights fit into a core's cache
MAX_CASES = 1 << 16  # exceeds the number of cases of a role in one text

# ``slot``: role, head and kind. ``rank``: cases with the largest ranks are stored. ``first`` and ``last``: numbers of
# the first and last sentence of the text. ``word`` and ``answer``: numbers of words in the text; −1 is a special token
# before the first word, the number of words is a special token after the last. ``weight`` in steps.
CASE_DTYPE = np.dtype([
    ("slot", "<i8"), ("rank", "<i8"), ("first", "<i4"), ("last", "<i4"),
    ("word", "<i4"), ("answer", "<i4"), ("weight", "<i4"), ("right", "?"),
])  # fmt: skip

CaseRows = npt.NDArray[Any]  # an array of CASE_DTYPE
Integers = npt.NDArray[np.int64]


class Selection:
    """The stored cases of one pass. Each slot holds at most as many cases as SLOT_SIZES says for its kind."""

    def __init__(self, relations: Relations, heads: int, target: Selection | None = None) -> None:
        """Start without cases.

        ``target`` is the selection that this one will be merged into. Cases that would find no place in it are dropped.
        """
        self.member = relations.member[:, list_named_rows(relations)].astype(bool)  # [relation, named row]
        self.roles = list_roles_with_cases(relations)
        self.heads = heads
        # [slot]: the lowest rank that still has a place.
        lowest_ranks = np.zeros(len(self.roles) * heads * len(KINDS), np.int64)
        self._lowest_ranks: Integers = lowest_ranks if target is None else target._lowest_ranks
        self._cases: CaseRows = np.empty(0, CASE_DTYPE)
        self._unsorted: list[CaseRows] = []  # not sorted yet, because sorting takes as long as adding a batch

    @property
    def cases(self) -> CaseRows:
        """The stored cases, sorted by slot and rank."""
        self._sort()
        return self._cases

    @property
    def unsorted_cases(self) -> CaseRows:
        """The stored cases, unsorted, possibly with some that will be dropped. Faster than ``cases``."""
        return np.concatenate((self._cases, *self._unsorted))

    def _sort(self) -> None:
        """Sort new cases into the stored ones, drop those without a place, and update the lowest ranks."""
        if self._unsorted:
            self._cases, self._unsorted = select_best_cases(np.concatenate((self._cases, *self._unsorted))), []
            slots, ends = self._cases["slot"], np.flatnonzero(_find_starts(self._cases["slot"][::-1])[::-1])
            full_slot_ends = ends[np.diff(ends, prepend=-1) == np.array(SLOT_SIZES)[slots[ends] % len(KINDS)]]
            lowest_ranks = self._lowest_ranks.copy()  # another selection may share the old array
            lowest_ranks[slots[full_slot_ends]] = self._cases["rank"][full_slot_ends]
            self._lowest_ranks = lowest_ranks

    def check(self, cases: CaseRows) -> None:
        """Raise ValueError unless these are valid cases of this selection."""
        if cases.dtype != CASE_DTYPE or (
            len(cases) and cases["slot"].max() >= len(self.roles) * self.heads * len(KINDS)
        ):
            raise ValueError("cases of another corpus")

    def merge(self, cases: CaseRows) -> None:
        """Add cases of other sentences of the same corpus."""
        self._unsorted.append(cases[cases["rank"] >= self._lowest_ranks[cases["slot"]]])
        if sum(map(len, self._unsorted)) > MAX_UNSORTED + 4 * len(self._cases):
            self._sort()

    def join(self, other: Selection) -> None:
        """Add the cases of another selection, whose roles must be among those of this one."""
        cases = other.unsorted_cases
        if other.roles != self.roles:
            numbers = {role: number for number, role in enumerate(self.roles)}
            role, remainder = np.divmod(cases["slot"], self.heads * len(KINDS))
            new_role = np.array([numbers[name] for name in other.roles])[role]
            cases["slot"] = new_role * self.heads * len(KINDS) + remainder
        self.merge(cases)

    def add(self, batch: Batch) -> None:
        """Add the cases of position, delimiter and broad roles in a batch."""
        self._merge_best(list(self._iter_row_answers(batch)))

    def add_syntax(self, sentences: JoinedSentences, blocks: Sequence[Weights], numbers: Sequence[int]) -> None:
        """Add the syntax cases of sentences.

        ``blocks`` are the weights [head, word, word] from which ``sentences`` were computed; ``numbers`` are the
        numbers of the sentences in the corpus.
        """
        self._merge_best(list(self._iter_syntax_answers(sentences, blocks, np.array(numbers, np.int64))))

    def add_coreference(self, block: Weights, chunk: Chunk) -> None:
        """Add the coreference cases of a chunk. ``block`` is [head, word, word]."""
        anaphors = [a for a in chunk.anaphors if "third_person" in a.types and len(a.candidates) > 1]
        words = np.array([anaphor.word for anaphor in anaphors], np.intp)
        answers = np.empty((self.heads, len(anaphors)), np.intp)
        right = np.empty(answers.shape, bool)
        for number, anaphor in enumerate(anaphors):
            candidates = np.array(anaphor.candidates)
            # Of equal weights, the first is chosen.
            answers[:, number] = candidates[block[:, anaphor.word, candidates].argmax(axis=1)]
            right[:, number] = np.isin(answers[:, number], list(anaphor.right))
        weights = block[np.arange(self.heads)[:, None], words, answers]
        role = self.roles.index(("coreference", "third_person"))
        self._merge_best([_make_answers(role, chunk.numbers[0], words, answers, weights, right, chunk.numbers[-1])])

    def _merge_best(self, parts: Sequence[Answers]) -> None:
        """Merge the best cases of each text."""
        if parts:
            self.merge(
                self._select_best_per_text(Answers(*(np.concatenate(a, axis=-1) for a in zip(*parts, strict=True))))
            )

    # ---- cases ------------------------------------------------------------------------------------------------------

    def _iter_syntax_answers(
        self, sentences: JoinedSentences, blocks: Sequence[Weights], numbers: Integers
    ) -> Iterator[Answers]:
        """Yield the syntax cases of sentences, for each of the three directions."""
        row, column, heads, relations = sentences[:4]
        first, sentence = sentences.first, sentences.sentence
        weights = [np.concatenate([block.max(axis=axis) for block in blocks], axis=1) for axis in (2, 1)]
        dependents = np.flatnonzero((heads >= 0) & (np.bincount(sentence)[sentence] > 2))
        case, named_row = np.nonzero(self.member[relations[dependents]])
        words, count = dependents[case], self.member.shape[1]

        def make_answers(role: Any, words: Integers, targets: Integers, largest: Weights, right: Any) -> Answers:
            starts = first[words]
            return _make_answers(
                role, numbers[sentence[words]], words - starts, targets - starts, largest[:, words], right
            )

        for direction, targets in enumerate((row[:, words], column[:, words])):
            yield make_answers(
                direction * count + named_row, words, targets, weights[direction], targets == heads[words]
            )
        has_dependent = np.zeros((len(heads), count), bool)  # [word, named row]: has a dependent that counts
        np.logical_or.at(has_dependent, heads[dependents], self.member[relations[dependents]])
        words, named_row = np.nonzero(has_dependent)
        targets = row[:, words]
        right = (heads[targets] == words) & self.member[relations[targets], named_row]
        yield make_answers(2 * count + named_row, words, targets, weights[0], right)

    def _iter_row_answers(self, batch: Batch) -> Iterator[Answers]:
        """Yield the cases of position, delimiter and broad roles in a batch."""
        tokens = np.flatnonzero(batch.is_ordinary)
        if not tokens.size:
            return
        rows = batch.weights[:, :, index_ordinary(tokens)]  # [head, sentence, row, key]
        words = np.stack([_number_words(pieces.words) for pieces in batch.pieces])  # [sentence, token]
        answers, weights = batch.largest_keys, _take_weights(rows, batch.largest_keys)  # [head, sentence, row]
        for offset, name in POSITIONS.items():
            targets = np.arange(max(0, -offset), len(tokens) - max(0, offset))
            # Keep queries with no special token between them and the answer.
            targets = targets[tokens[targets + offset] - tokens[targets] == offset]
            query_tokens, answer_tokens = tokens[targets], answers[..., targets]
            role = "position", name
            yield self._make_row_answers(
                role,
                batch,
                words,
                query_tokens,
                answer_tokens,
                weights[..., targets],
                answer_tokens == query_tokens + offset,
            )
        answers = np.stack([head.argmax(axis=2) for head in rows])
        weights = _take_weights(rows, answers)
        marks = np.array([pieces.punctuation for pieces in batch.pieces])  # [sentence, key]
        cls, sep = answers < tokens[0], answers > tokens[-1]
        hits = cls, sep, marks[np.arange(len(marks))[:, None], answers], cls | sep
        for name, right in zip(ON_DELIMITERS, hits, strict=True):
            yield self._make_row_answers(("delimiter", name), batch, words, tokens, answers, weights, right)
        entropies = np.concatenate(
            [_compute_entropies(rows[i : i + HEADS_PER_STEP]) for i in range(0, self.heads, HEADS_PER_STEP)]
        )
        right = entropies >= BROAD_THRESHOLD * math.log(rows.shape[3])
        yield self._make_row_answers(("broad", "entropy"), batch, words, tokens, answers, weights, right)

    def _make_row_answers(
        self,
        role: tuple[str, str],
        batch: Batch,
        words: Integers,
        query_tokens: Any,
        answer_tokens: Any,
        weights: Any,
        right: Any,
    ) -> Answers:
        """Return the cases of one role.

        ``words`` [sentence, token] are numbers of words. ``query_tokens`` is [row]; ``answer_tokens``, ``weights`` and
        ``right`` are [head, sentence, row].
        """
        sentences = np.arange(len(words))[:, None]
        return _make_answers(
            self.roles.index(role),
            np.repeat(batch.numbers, len(query_tokens)),
            words[:, query_tokens].reshape(-1),
            *(array.reshape(self.heads, -1) for array in (words[sentences, answer_tokens], weights, right)),
        )

    def _select_best_per_text(self, cases: Answers) -> CaseRows:
        """Return the case with the highest rank for each text, role, head and kind."""
        order = np.lexsort((cases.first, cases.role))  # stable: keeps the order within a group
        is_group_start = _find_starts(cases.role[order]) | _find_starts(cases.first[order])
        starts = np.flatnonzero(is_group_start)
        if not starts.size:
            return np.empty(0, CASE_DTYPE)
        positions = np.arange(len(order))
        group_starts = np.repeat(starts, np.diff(starts, append=len(order)))
        tie_break = (MAX_CASES - 1 - positions + group_starts).astype(np.int32)  # the earlier of equal cases first
        sorting: Any = slice(None) if np.array_equal(order, positions) else order
        steps, right = cases.steps[:, sorting] * MAX_CASES + tie_break, cases.right[:, sorting]
        signed_steps = np.where(right, steps, ~steps)  # wrong answers are below 0
        random_ranks = _draw_numbers(cases.first, cases.word)[order] * MAX_CASES + tie_break
        slots = (cases.role[order[starts]] * self.heads + np.arange(self.heads)[:, None]) * len(KINDS)  # [head, group]
        best_of_kinds = (  # [head, group], below 0 if there is none
            np.maximum.reduceat(signed_steps, starts, axis=1),
            ~np.minimum.reduceat(signed_steps, starts, axis=1),
            np.maximum.reduceat(random_ranks[None], starts, axis=1),
        )
        parts = []
        for kind, best in enumerate(best_of_kinds):
            head, group = np.nonzero((best >= 0) & (best // MAX_CASES >= self._lowest_ranks[slots + kind]))
            best = np.broadcast_to(best, slots.shape)[head, group]
            case = order[starts[group] + MAX_CASES - 1 - best % MAX_CASES]
            part = np.empty(len(head), CASE_DTYPE)
            part["slot"], part["rank"] = slots[head, group] + kind, best // MAX_CASES
            for name in ("first", "last", "word"):
                part[name] = getattr(cases, name)[case]
            for name, values in (("answer", cases.answer), ("weight", cases.steps), ("right", cases.right)):
                part[name] = values[head, case]
            parts.append(part)
        return np.concatenate(parts)


class Answers(NamedTuple):
    """Cases of several texts with the answers of every head.

    ``role`` (its number), ``first`` and ``last`` sentence and ``word`` are [case]; ``answer``, ``steps`` (the weight in
    steps) and ``right`` are [head, case].
    """

    role: Integers
    first: Integers
    last: Integers
    word: Integers
    answer: Integers
    steps: npt.NDArray[np.int32]
    right: npt.NDArray[np.bool_]


def _make_answers(
    role: Any, first: Any, words: Integers, answers: Any, weights: Weights, right: Any, last: int | None = None
) -> Answers:
    """Return the cases with their weights in steps. ``last`` is by default the ``first`` sentence."""
    steps = np.rint(weights.astype(np.float64) * WEIGHT_STEPS).astype(np.int32)
    roles, firsts, lasts = (np.broadcast_to(a, words.shape) for a in (role, first, first if last is None else last))
    return Answers(roles, firsts, lasts, words, answers, steps, right)


def _take_weights(rows: Weights, keys: Integers) -> Weights:
    """Return the weight of each row at the given key."""
    return np.take_along_axis(rows, keys[..., None], -1)[..., 0]


def _compute_entropies(rows: Weights) -> Weights:
    """Return the entropy of each row, in nats."""
    logs = rows + TINY
    entropies: Weights = -np.vecdot(rows, np.log(logs, out=logs))
    return entropies


def list_roles_with_cases(relations: Relations) -> tuple[tuple[str, str], ...]:
    """Return the roles that have cases, with their details, in the order of the slots."""
    rows = [relations.rows[row] for row in list_named_rows(relations)]
    return (
        *(("syntax", f"{row.relation} {direction}") for direction in DIRECTIONS for row in rows),
        ("coreference", "third_person"),
        *(("position", name) for name in POSITIONS.values()),
        *(("delimiter", name) for name in ON_DELIMITERS),
        ("broad", "entropy"),
    )


def select_best_cases(cases: CaseRows) -> CaseRows:
    """Return the best cases of each slot, as many as it has places, in order.

    Each text must contribute at most one case to a slot.
    """
    slots, ranks = cases["slot"].copy(), cases["rank"].copy()
    # Find the lowest rank that has a place in each slot, so that few cases must be sorted.
    lowest_ranks = np.full(int(slots.max(initial=0)) + 1, np.iinfo(np.int64).max)
    for place in range(max(SLOT_SIZES)):
        lower_cases = np.flatnonzero((ranks < lowest_ranks[slots]) & (np.array(SLOT_SIZES)[slots % len(KINDS)] > place))
        lowest_ranks[slots[lower_cases]] = -1
        np.maximum.at(lowest_ranks, slots[lower_cases], ranks[lower_cases])
    cases = cases[ranks >= lowest_ranks[slots]]
    cases = cases[np.lexsort((cases["first"], -cases["rank"], cases["slot"]))]
    starts = np.flatnonzero(_find_starts(cases["slot"]))
    ranks_in_slot = np.arange(len(cases)) - np.repeat(starts, np.diff(starts, append=len(cases)))
    best: CaseRows = cases[ranks_in_slot < np.array(SLOT_SIZES)[cases["slot"] % len(KINDS)]]
    return best


def _find_starts(values: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return where a value differs from the value before it."""
    return np.append(np.ones(min(1, len(values)), bool), values[1:] != values[:-1])


def _draw_numbers(first: Integers, words: Integers) -> Integers:
    """Return a pseudorandom number of 46 bits for each word (SplitMix64).

    It depends only on the word's place in the corpus and on the seed.
    """
    bits = np.asarray(((SEED + 1) << 48) + (np.asarray(first, np.int64) << 16) + words).astype(np.uint64)
    with np.errstate(over="ignore"):
        bits = bits * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    return ((bits ^ (bits >> np.uint64(31))) >> np.uint64(18)).astype(np.int64)


def _number_words(words: Sequence[int | None]) -> Integers:
    """Return [token], the number of its word.

    It is −1 for special tokens before the first word and the number of words for later special tokens.
    """
    count, has_seen_word, numbers = len({word for word in words if word is not None}), False, []
    for word in words:
        has_seen_word = has_seen_word or word is not None
        numbers.append(word if word is not None else count if has_seen_word else -1)
    return np.array(numbers, np.int64)


def iter_evidence_rows(
    selection: Selection, heads: Sequence[Head], roles: Iterable[tuple[int, int, str, str]]
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the table ``evidence`` for the roles in ``roles``.

    ``heads`` are all heads in order; ``roles`` has layer, head, role and detail.
    """
    roles_by_slot: Mapping[int, tuple[int, int, str, str]] = {  # by the first slot of the role and head
        (selection.roles.index((role, detail)) * selection.heads + heads.index(Head(layer, head))) * len(KINDS): (
            *(layer, head, role, detail),
        )
        for layer, head, role, detail in roles
        if (role, detail) in selection.roles
    }
    for case in selection.cases:
        slot = int(case["slot"])
        kind = slot % len(KINDS)
        if slot - kind in roles_by_slot:
            numbers = (int(case[name]) for name in ("first", "last", "word", "answer"))
            weight = int(case["weight"]) / WEIGHT_STEPS
            yield (*roles_by_slot[slot - kind], KINDS[kind], *numbers, weight, bool(case["right"]))
