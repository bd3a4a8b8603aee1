"""Heads compared with dependency trees, with counts computed by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mha_viz.analysis.intervals import Documents
from mha_viz.analysis.pos_rules import NearestRule, choose_rules, count_paths, find_nearest_words
from mha_viz.analysis.syntax import (
    CHOICE_COUNTS,
    DIRECTIONS,
    OFFSETS,
    RelationRow,
    Relations,
    Syntax,
    count_cases,
    count_gold,
    find_best_offset,
    join_sentences,
)
from mha_viz.corpus.treebank import Sentence, Word
from tests import brute


def sentence_of(*words: str) -> Sentence:
    """From "form UPOS head relation", the head counted from 1, 0 for the root."""
    parsed = []
    for form, upos, head, relation in (word.split() for word in words):
        parsed.append(Word(form, upos, int(head) - 1 if int(head) else None, relation))
    return Sentence(tuple(parsed))


class Counted(NamedTuple):
    """Counts over a few sentences, by direction and row of the tables."""

    relations: Relations
    gold: Any
    ruled: Any  # [half, direction, row]
    rules: Any
    by_row: Any  # [half, direction, row, head]
    sums: Any

    def of(self, direction: str, relation: str, level: str = "agg", half: int | None = None) -> tuple[int, int]:
        """(right, cases) of the first head."""
        d, r = DIRECTIONS.index(direction), self.relations.rows.index(RelationRow(level, relation))
        halves = [0, 1] if half is None else [half]
        return int(self.by_row[halves, d, r, 0].sum()), int(self.gold.n[halves, d, r].sum())


def counted(sentences: Sequence[Sentence], blocks: Sequence[Any]) -> Counted:
    """Blocks are [word, word] of one head, or [head, word, word]."""
    relations = Relations(sentences)
    blocks = [np.array(block, np.float32) for block in blocks]
    blocks = [block[None] if block.ndim == 2 else block for block in blocks]
    rules = choose_rules(count_paths(sentences[::2]), relations)
    trees = [relations.make_tree(sentence, rules) for sentence in sentences]
    syntax = Syntax(relations, len(blocks[0]))
    for part in (slice(0, 1), slice(1, None)):  # a batch of one, and the others together
        numbers = range(len(sentences))[part]
        if numbers:
            syntax.add(join_sentences(relations, blocks[part], trees[part]), numbers)
    by_row = np.einsum("nhdrk,rt->hdtk", syntax.sums["correct"], relations.member)
    _, ruled = count_cases(relations, [*enumerate(trees)], Documents([""] * len(trees)))
    return Counted(relations, count_gold(relations, [*enumerate(trees)]), ruled[0], rules, by_row, syntax.sums)


MICE = sentence_of("the DET 2 det", "cat NOUN 3 nsubj", "saw VERB 0 root", "mice NOUN 3 obj")
LOOKS = [
    [0.9, 0.5, 0.3, 0.2],  # the → cat, its head; what it gives itself does not count
    [0.4, 0.9, 0.4, 0.1],  # cat → the: as much as to saw, but first; "the" is its dependent
    [0.1, 0.3, 0.9, 0.2],  # saw → cat, its subject
    [0.0, 0.0, 0.6, 0.9],  # mice → saw, its head
]


@pytest.fixture
def mice() -> Counted:
    return counted([MICE], [LOOKS])


def test_from_the_dependent_to_its_head(mice: Counted) -> None:
    counts = {name: mice.of("dep_to_head", name, "full") for name in ("det", "nsubj", "obj")}
    assert counts == {"det": (1, 1), "nsubj": (0, 1), "obj": (1, 1)}
    assert mice.of("dep_to_head", "all") == (2, 3)


def test_from_the_head_to_its_dependent(mice: Counted) -> None:
    # most to "the": cat (0.4), its head. Most to cat: the (0.5). Most to mice: the and saw (0.2), the first is wrong
    counts = {name: mice.of("head_to_dep", name, "full") for name in ("det", "nsubj", "obj")}
    assert counts == {"det": (1, 1), "nsubj": (0, 1), "obj": (0, 1)}
    assert mice.of("head_to_dep", "all") == (1, 3)


def test_the_row_of_the_head(mice: Counted) -> None:
    counts = {name: mice.of("head_row", name, "full") for name in ("det", "nsubj", "obj")}
    assert counts == {"det": (1, 1), "nsubj": (1, 1), "obj": (0, 1)}
    assert mice.of("head_row", "all") == (2, 2)  # cat and saw have dependents, and look at one


def test_roots_are_not_scored(mice: Counted) -> None:
    assert "root" not in mice.relations.names
    assert mice.of("dep_to_head", "all")[1] == 3


def test_edges_without_direction() -> None:
    sentence = sentence_of("so ADV 3 advmod", "we PRON 3 nsubj", "go VERB 0 root", ". PUNCT 3 punct")
    looks = [
        [0, 1, 0, 0],  # so → we
        [0, 0, 0, 1],  # we → .
        [0, 1, 0, 0],  # go → we: the edge of nsubj, from its head
        [0, 0, 1, 0],  # . → go: right, but punctuation
    ]
    counts = counted([sentence], [looks])
    assert (counts.sums["edges"].tolist(), int(counts.sums["edge_count"])) == ([1], 2)  # advmod is missed both ways


def test_an_edge_that_is_found_both_ways_counts_once(mice: Counted) -> None:
    # the ↔ cat both look at each other; cat is found from saw, mice from itself
    assert (mice.sums["edges"].tolist(), int(mice.sums["edge_count"])) == ([3], 3)


NMODS = sentence_of(
    *("my PRON 2 nmod:poss", "uncle NOUN 0 root", "of ADP 4 case", "Rome NOUN 2 nmod", "today NOUN 2 nmod:tmod"),
    *(", PUNCT 2 punct",),
)


def test_with_subtype_without_and_all_together() -> None:
    uncle_looks_at_today = np.eye(6)[[1, 4, 3, 1, 1, 1]]
    counts = counted([NMODS], [uncle_looks_at_today])
    # my, Rome, today and "," look at uncle, their head, and "of" at Rome, its own
    assert counts.of("dep_to_head", "nmod:poss", "full") == (1, 1)
    assert counts.of("dep_to_head", "nmod", "full") == (1, 1)
    assert counts.of("dep_to_head", "nmod", "base") == (3, 3)
    assert counts.of("dep_to_head", "all") == (5, 5)
    assert counts.of("dep_to_head", "all without punct") == (4, 4)


def test_a_head_with_several_dependents_is_one_case() -> None:
    uncle_looks_at_today = np.eye(6)[[1, 4, 3, 1, 1, 1]]
    counts = counted([NMODS], [uncle_looks_at_today])
    assert counts.of("head_row", "nmod:tmod", "full") == (1, 1)
    assert counts.of("head_row", "nmod:poss", "full") == (0, 1)
    assert counts.of("head_row", "nmod", "base") == (1, 1)  # three dependents, one row
    assert counts.of("head_row", "punct", "base") == (0, 1)
    assert counts.of("head_row", "all") == (1, 2)  # uncle is right; Rome looks at uncle, not at "of"
    assert counts.of("head_row", "all without punct") == (1, 2)


def test_a_relation_is_the_same_with_and_without_its_subtype_when_it_has_none() -> None:
    rows = Relations([NMODS, MICE]).rows
    assert [row.relation for row in rows if row.level == "full"] == [
        *("case", "det", "nmod", "nmod:poss", "nmod:tmod", "nsubj", "obj", "punct"),
    ]
    assert [row.relation for row in rows if row.level == "base"] == ["case", "det", "nmod", "nsubj", "obj", "punct"]
    assert [row.relation for row in rows if row.level == "agg"] == ["all", "all without punct"]


def test_even_and_odd_sentences_are_counted_apart() -> None:
    wrong = np.eye(4)[[3, 3, 0, 0]]
    counts = counted([MICE, MICE, MICE], [LOOKS, wrong, LOOKS])
    assert counts.of("dep_to_head", "det", "full", half=0) == (2, 2)
    assert counts.of("dep_to_head", "det", "full", half=1) == (0, 1)


def test_a_sentence_of_one_word_is_no_case() -> None:
    counts = counted([sentence_of("Yes INTJ 0 root"), MICE], [[[1.0]], LOOKS])
    assert counts.of("dep_to_head", "all") == (2, 3)
    assert counts.gold.n[0].sum() == 0


# ---- Baselines -------------------------------------------------------------------------------------------------------


def right(counts: Counted, table: str, direction: str, relation: str, *rest: int) -> int:
    d, r = (
        DIRECTIONS.index(direction),
        counts.relations.rows.index(RelationRow("agg" if relation == "all" else "base", relation)),
    )
    return int(getattr(counts.gold, table).sum(axis=0)[(d, r, *rest)])


def test_a_fixed_offset(mice: Counted) -> None:
    by_offset = {o: right(mice, "offset", "dep_to_head", "all", i) for i, o in enumerate(OFFSETS)}
    # the → cat and cat → saw are one to the right, mice → saw one to the left
    assert {o: n for o, n in by_offset.items() if n} == {1: 2, -1: 1}
    assert 0 not in OFFSETS
    assert (min(OFFSETS), max(OFFSETS), len(OFFSETS)) == (-10, 10, 20)
    same = [right(mice, "offset", "head_to_dep", "all", i) for i in range(20)]
    assert same == list(by_offset.values())


def test_a_fixed_offset_from_the_head(mice: Counted) -> None:
    by_offset = {o: right(mice, "offset", "head_row", "all", i) for i, o in enumerate(OFFSETS)}
    # one to the left: cat has the, saw has cat; one to the right: only saw has one there, mice
    assert {o: n for o, n in by_offset.items() if n} == {-1: 2, 1: 1}


def test_an_offset_beyond_ten_is_never_right() -> None:
    far = sentence_of("go VERB 0 root", *(["x X 1 dep"] * 11))
    counts = counted([far], [np.eye(12)])
    assert counts.gold.n.sum(axis=0)[0, counts.relations.rows.index(RelationRow("agg", "all"))] == 11
    by_offset = [right(counts, "offset", "dep_to_head", "all", i) for i in range(20)]
    assert by_offset == [1, 0] * 10  # words 1 to 10 have their head 1 to 10 to the left, word 11 none


def test_of_offsets_that_tie_the_nearer_then_the_negative_one_is_the_best() -> None:
    def best(**right: int) -> tuple[int, int]:
        by_name = {int(name[1:]) * (-1 if name[0] == "m" else 1): n for name, n in right.items()}
        return find_best_offset(np.array([by_name.get(offset, 0) for offset in OFFSETS]))

    assert best(m3=4, p2=4, p7=3) == (2, 4)
    assert best(m2=4, p2=4) == (-2, 4)
    assert best(p1=4, m2=4, m10=4) == (1, 4)
    assert best(m10=5, m1=4) == (-10, 5)


def test_cases_are_counted_by_document_and_half() -> None:
    sentences, documents = [MICE, MICE, NMODS], Documents(["a", "b", "a"])
    relations = Relations(sentences)
    trees = [*enumerate(map(relations.make_tree, sentences))]
    counted, ruled = count_cases(relations, trees, documents)
    every = relations.rows.index(RelationRow("agg", "all"))
    assert counted[:, :, DIRECTIONS.index("dep_to_head"), every].tolist() == [[3 + 5, 0], [0, 3]]
    assert counted[:, :, DIRECTIONS.index("head_row"), every].tolist() == [[2 + 2, 0], [0, 2]]
    np.testing.assert_array_equal(counted.sum(axis=0), count_gold(relations, trees).n)
    assert not ruled.any(), "without a rule"


def test_right_answers_are_counted_by_document() -> None:
    relations = Relations([MICE])
    syntax = Syntax(relations, 1, documents=2)
    blocks = [np.array([LOOKS], np.float32) for _ in range(3)]
    syntax.add(join_sentences(relations, blocks, [relations.make_tree(MICE)] * 3), [0, 2, 3], [1, 0, 1])
    right = syntax.sums["correct"][:, :, DIRECTIONS.index("dep_to_head"), :, 0].sum(axis=2)  # [document, half]
    assert right.tolist() == [[2, 0], [2, 2]]


# ---- The rule by parts of speech -------------------------------------------------------------------------------------

FROM_DEPENDENT, FROM_HEAD = 0, 1
# cats → sleep, that → purr, purr → cats; then dogs → bark
CATS = sentence_of("cats N 4 nsubj", "that P 3 nsubj", "purr V 1 acl", "sleep V 0 root")
DOGS = sentence_of("big A 2 amod", "dogs N 3 nsubj", "bark W 0 root")


def rule_of(counts: Counted, seeker: int, relation: str, level: str = "base") -> NearestRule:
    return counts.rules[seeker, RelationRow(level, relation)]  # type: ignore[no-any-return]


def test_parts_of_speech_are_added_as_long_as_one_more_is_right_more_often() -> None:
    counts = counted([DOGS, DOGS, CATS], [np.eye(3), np.eye(3), np.eye(4)])
    # to the right of dogs the nearest W, of "that" the nearest V is the head; that of cats is purr, and is not
    assert rule_of(counts, FROM_DEPENDENT, "nsubj") == NearestRule(1, ("V", "W"))
    assert counts.ruled[:, 0, counts.relations.rows.index(RelationRow("base", "nsubj"))].tolist() == [2, 1]
    assert rule_of(counts, FROM_DEPENDENT, "acl") == NearestRule(0, ("N",))
    # the other way round: left of bark and of sleep the nearest N; with P, purr would gain what sleep loses
    assert rule_of(counts, FROM_HEAD, "nsubj") == NearestRule(0, ("N",))
    assert counts.ruled[:, 2, counts.relations.rows.index(RelationRow("base", "nsubj"))].tolist() == [2, 1]


def test_the_odd_sentences_choose_nothing() -> None:
    counts = counted([CATS, DOGS], [np.eye(4), np.eye(3)])
    assert rule_of(counts, FROM_DEPENDENT, "nsubj") == NearestRule(1, ("V",))
    assert rule_of(counts, FROM_DEPENDENT, "amod") == NearestRule(0, ())
    assert counts.ruled[:, 0, counts.relations.rows.index(RelationRow("base", "amod"))].tolist() == [0, 0]


def test_of_parts_of_speech_that_tie_the_first_by_name_and_of_sides_the_left_one() -> None:
    both_sides = sentence_of("b B 3 x", "a A 3 x", "h H 0 root", "d D 3 x", "c C 3 x")
    counts = counted([both_sides], [np.eye(5)])
    assert rule_of(counts, FROM_DEPENDENT, "x") == NearestRule(0, ("H",))  # two on each side
    assert rule_of(counts, FROM_HEAD, "x") == NearestRule(0, ("A",))  # one word, whichever of four it is


def test_a_rule_names_its_parts_of_speech_in_one_order() -> None:
    rule = NearestRule(1, ("NOUN", "PROPN", "ADV"))
    assert (rule.name, rule.in_words) == ("right NOUN PROPN ADV", "nearest NOUN, PROPN or ADV to the right")
    assert (NearestRule(0, ("VERB",)).in_words, NearestRule(0, ()).in_words) == ("nearest VERB to the left", "")


def test_the_nearest_named_word() -> None:
    assert find_nearest_words([True, False, True, False], 0).tolist() == [-1, 0, 0, 2]
    assert find_nearest_words([True, False, True, False], 1).tolist() == [2, 2, -1, -1]
    assert find_nearest_words([False, False], 1).tolist() == [-1, -1]


# ---- Compared with plain loops ---------------------------------------------------------------------------------------


@st.composite
def treebanks(draw: st.DrawFn) -> list[tuple[Sentence, Any]]:
    """Random trees with the blocks [head, word, word] of two heads, in quarters, so that ties are common."""
    sentences = []
    for _ in range(draw(st.integers(1, 4))):
        n = draw(st.integers(1, 7))
        order = draw(st.permutations(range(n)))
        words = [Word("w", "X")] * n
        for place, word in enumerate(order):
            tag, relation = draw(st.sampled_from("NVP")), draw(st.sampled_from(["a", "b", "b:x", "b:y", "punct"]))
            head = order[draw(st.integers(0, place - 1))] if place else None
            words[word] = Word("w", tag, head, relation if place else "root")
        block = np.random.default_rng(draw(st.integers(0, 10**6))).integers(0, 4, (2, n, n)) / 4
        sentences.append((Sentence(tuple(words)), block))
    return sentences


@given(treebanks())
def test_all_counts_are_those_of_the_plain_loops(corpus: list[tuple[Sentence, Any]]) -> None:
    tallied = counted([s for s, _ in corpus], [block.copy() for _, block in corpus])
    plain = [
        brute.Sentence(
            "",
            list(s.forms),
            [w.upos for w in s.words],
            [],
            [-1 if w.head is None else w.head for w in s.words],
            [w.relation for w in s.words],
        )
        for s, _ in corpus
    ]
    readings = [brute.Reading(block, list(range(len(block[0]))), [], [], []) for _, block in corpus]
    both = list(zip(plain, readings, strict=True))
    rules = brute.find_set_rules(plain[::2])
    rows = tallied.relations.rows
    for (group, direction), (side, tags) in rules.items():
        rule = tallied.rules[int(direction == "head_row"), RelationRow(*group)]
        assert (rule.side, {*rule.tags}) == (int(side == "right"), tags)
    for half in (0, 1):
        expected = brute.syntax(both[half::2])
        offsets = brute.pick_best(brute.count_by_offset(plain[half::2]))
        by_rule = brute.count_by_set_rules(plain[half::2], rules)
        with_rule = brute.count_both_right(both[half::2], rules)
        for r, row in enumerate(rows):
            for d, direction in enumerate(DIRECTIONS):
                n, group = int(tallied.gold.n[half, d, r]), (row.level, row.relation)
                for head in (0, 1):
                    count = expected.get((group, direction, head), (0, 0))
                    assert (n, int(tallied.by_row[half, d, r, head])) == count
                    assert tallied.sums["both"][half, d, r, head] == with_rule.get((group, direction, head), 0)
                assert int(tallied.gold.offset[half, d, r].max()) == offsets.get((group, direction), (0, 0))[1]
                assert int(tallied.ruled[half, d, r]) == by_rule.get((group, direction), (0, 0))[1]
        of_kind = brute.count_kinds(both[half::2])
        for b, base in enumerate(tallied.relations.bases):
            for d, direction in enumerate(DIRECTIONS):
                for head in (0, 1):
                    n, found = of_kind.get((base, direction, head), (0, []))
                    assert tallied.gold.kinds[half, d, b] == n
                    sums = dict(zip(CHOICE_COUNTS, tallied.sums["choices"][half, d, b, head], strict=True))
                    assert sums == pytest.approx({
                        "kind": len(found),
                        "right": sum(case.right for case in found),
                        "nearest_left": sum(case.left for case in found),
                        "nearest_right": sum(case.right_side for case in found),
                        "both_left": sum(case.right and case.left for case in found),
                        "both_right": sum(case.right and case.right_side for case in found),
                        "random": sum(case.chance for case in found),
                    })  # fmt: skip
    totals = tallied.sums["choices"].sum(axis=0)[..., : tallied.sums["kinds"].shape[-1]]
    np.testing.assert_array_equal(tallied.sums["kinds"].sum(axis=0), totals)
    edge_count = int(tallied.sums["edge_count"])
    assert [(edge_count, edges) for edges in tallied.sums["edges"].tolist()] == brute.uas(both)
