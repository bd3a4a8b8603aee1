"""The null that keeps the kind of word: what is drawn, and its counts, by plain loops; equal for any shards."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mha_viz as mv
from mha_viz.analysis.chance import KIND, ChanceRoles, find_chance_roles
from mha_viz.analysis.kind_null import DrawnSyntax, Replacements
from mha_viz.analysis.syntax import DIRECTIONS, OFFSETS, Pointers, Relations, find_pointers
from mha_viz.cli import main
from mha_viz.corpus import grammar
from mha_viz.corpus.conllu import format_conllu
from mha_viz.corpus.treebank import Sentence, Word
from mha_viz.errors import SettingError
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import load
from mha_viz.study.kind_null import KindNullSums
from mha_viz.study.run import Progress, StudyRun, measure_sums
from mha_viz.study.sums import merge_sums


def sentence(*words: str, document: str = "") -> Sentence:
    """From "form UPOS head relation", the head counted from 1, 0 for the root."""
    made = []
    for word in words:
        form, upos, head, relation = word.split()
        made.append(Word(form, upos, int(head) - 1 if head != "0" else None, relation))
    return Sentence(tuple(made), document=document)


# Seen by its dependents: of "saw", a verb, there is one other, "barked"; of the noun "dog", "cat" and "tree".
DOGS = sentence(
    "the DET 2 det",
    "dog NOUN 3 nsubj",
    "saw VERB 0 root",
    "cat NOUN 3 obj",
    "tree NOUN 3 obl",
    "and CCONJ 7 cc",
    "barked VERB 3 conj",
)


def drawn(one: Sentence, seed: int = 0) -> Replacements:
    relations = Relations([one])
    return Replacements.draw(relations, relations.make_tree(one), np.random.default_rng(seed))


def test_another_word_of_its_kind_takes_the_place_of_the_right_one() -> None:
    """In the order of the dependents: the, dog, cat, tree, and, barked."""
    above, below = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for seed in range(400):
        others = drawn(DOGS, seed)
        above.update(enumerate(others.heads.tolist()))
        below.update(enumerate(others.dependents.tolist()))
    # the looks for dog: cat or tree; dog, cat and tree for saw: barked; and for barked: saw; barked for saw: none
    assert {at for at, _ in above} == {*range(6)}
    assert {place for at, place in above if at == 0} == {3, 4}
    assert all(150 < above[0, place] < 250 for place in (3, 4))
    assert {pair for pair in above if pair[0] > 0} == {(1, 6), (2, 6), (3, 6), (4, 2), (5, -1)}
    # in place of the (of dog) there is no determiner; of dog (of saw) cat or tree; of "and" none; of barked none
    assert {place for at, place in below if at == 1} == {3, 4}
    assert {place for at, place in below if at == 2} == {1, 4}
    assert {pair for pair in below if pair[0] in (0, 4, 5)} == {(0, -1), (4, -1), (5, -1)}


def test_of_several_dependents_of_one_relation_others_take_the_place_of_each() -> None:
    """Of "give", two objects by base relation: three nouns are left, each of which takes one place at most; a third
    object, a pronoun, has one other; without enough words the last is left out."""
    words = ["a NOUN 2 obj", "give VERB 0 root", "b NOUN 2 obj:x", "it PRON 2 obj"]
    rest = ["c NOUN 2 obl", "d NOUN 2 obl", "she PRON 2 nsubj"]
    pairs = Counter(tuple(drawn(sentence(*words, *rest), seed).dependents[:3].tolist()) for seed in range(200))
    assert {(a, b) for a, b, _ in pairs} == {(4, 5), (5, 4)}
    assert {pronoun for *_, pronoun in pairs} == {6}
    left = drawn(sentence(*words, "c NOUN 2 obl"), 0).dependents[:3].tolist()
    assert left == [4, -1, -1]


def test_the_word_that_looks_takes_no_place() -> None:
    """A compound looks for its head among the other nouns, and a noun for its compounds."""
    text = sentence("a NOUN 2 compound", "b NOUN 0 root", "c NOUN 2 conj")
    for seed in range(20):
        others = drawn(text, seed)
        assert others.heads.tolist() == [2, 0]  # a looks for b: c; c looks for b: a
        assert others.dependents.tolist() == [2, 0]  # b looks for a: c; for c: a


# ---- Counts ----------------------------------------------------------------------------------------------------------


def by_loops(
    one: Sentence, row: Any, column: Any, others: Replacements
) -> tuple[dict[tuple[str, str, int], int], dict[tuple[str, str], int], dict[tuple[str, str, int], int]]:
    """Of one draw: right answers by direction, relation and head; cases and right offsets by base relation."""
    correct: dict[tuple[str, str, int], int] = defaultdict(int)
    cases: dict[tuple[str, str], int] = defaultdict(int)
    offsets: dict[tuple[str, str, int], int] = defaultdict(int)
    asked: dict[tuple[int, str], list[tuple[int, str]]] = defaultdict(list)
    dependents = [at for at, word in enumerate(one.words) if word.head is not None]
    for at, (above, below) in enumerate(zip(others.heads.tolist(), others.dependents.tolist(), strict=True)):
        place, word = dependents[at], one.words[dependents[at]]
        assert word.head is not None
        if below >= 0:
            asked[word.head, word.base].append((below, word.relation))
        if above < 0:
            continue
        for direction, points in (("dep_to_head", row), ("head_to_dep", column)):
            cases[direction, word.base] += 1
            if abs(above - place) <= 10:
                offsets[direction, word.base, above - place] += 1
            for head in range(len(points)):
                correct[direction, word.relation, head] += int(points[head][place]) == above
    for (looking, base), right in asked.items():
        cases["head_row", base] += 1
        for there, relation in right:
            if abs(there - looking) <= 10:
                offsets["head_row", base, there - looking] += 1
            for head in range(len(row)):
                correct["head_row", relation, head] += int(row[head][looking]) == there
    return ({key: n for key, n in some.items() if n} for some in (correct, cases, offsets))  # type: ignore[return-value]


def stored(counted: DrawnSyntax, draw: int, half: int) -> Any:
    """The same from the sums of all documents."""
    relations = counted.relations
    correct, cases = (counted.sums[name].sum(axis=0)[draw, half] for name in ("correct", "cases"))
    offset = counted.sums["offset"][draw, half]
    bases = {at: row.relation for at, row in enumerate(relations.rows) if row.level == "base"}
    return (
        {
            (DIRECTIONS[d], relations.names[r], int(head)): int(correct[d, r, head])
            for d, r, head in np.argwhere(correct)
        },
        {(DIRECTIONS[d], bases[r]): int(cases[d, r]) for d, r in np.argwhere(cases) if r in bases},
        {(DIRECTIONS[d], bases[r], OFFSETS[o]): int(offset[d, r, o]) for d, r, o in np.argwhere(offset) if r in bases},
    )


@st.composite
def trees(draw: st.DrawFn) -> Sentence:
    n = draw(st.integers(1, 8))
    relations = st.sampled_from(["obj", "obj:x", "nsubj", "punct"])
    words = []
    for at in range(n):
        head = (
            draw(st.one_of(st.none(), st.integers(0, n - 1).filter(lambda head, at=at: head != at))) if n > 1 else None
        )
        relation = draw(relations) if head is not None else "root"
        words.append(Word("w", draw(st.sampled_from(["NOUN", "VERB"])), head, relation))
    return Sentence(tuple(words))


@given(trees(), st.integers(0, 10**6), st.integers(0, 3))
def test_all_counts_are_those_of_the_plain_loops(one: Sentence, seed: int, number: int) -> None:
    relations, n = Relations([one]), len(one.words)
    block = np.random.default_rng(seed).integers(0, 3, (2, n, n)).astype(np.float32)  # ties are common
    pointed = find_pointers(block) if n > 1 else Pointers(*np.zeros((2, 2, n), np.intp))
    counted = DrawnSyntax(relations, 2, 2, draws=2, seed=seed)
    tree = relations.make_tree(one)
    counted.add(pointed, tree, number, 1)
    assert not counted.sums["correct"][0].any()
    assert not counted.sums["offset"][:, 1 - number % 2].any()
    for at in range(3):
        if n < 2 or not (tree.heads >= 0).any():
            expected: Any = ({}, {}, {})
        else:
            random = np.random.default_rng([seed, at, number])
            others = Replacements.draw(relations, tree, random) if at else Replacements.from_tree(tree)
            expected = tuple(by_loops(one, pointed.row.tolist(), pointed.column.tolist(), others))
        assert stored(counted, at, number % 2) == expected


# ---- Over a corpus ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def toy() -> Encoder:
    model = load("toy")
    assert isinstance(model, Encoder)
    return model


def test_the_sums_are_equal_for_any_shards(toy: Encoder) -> None:
    corpus, kind = grammar.corpus(60), KindNullSums(3, seed=5)
    whole = measure_sums([toy], corpus, kind)
    cuts = [0, 7, 30, 60]
    parts = []
    for number, (first, last) in enumerate(pairwise(cuts)):
        part = replace(corpus, sentences=corpus.sentences[first:last])
        parts.append(StudyRun([toy], part, first=first, number=number, kind=kind, size=64).measure())
    together = merge_sums(parts)
    assert together.relations.names == whole.relations.names
    assert [*together.documents] == [*whole.documents]
    for name, array in whole.select("trained/kinds").items():
        assert np.array_equal(together.select("trained/kinds")[name], array), name
    assert not np.array_equal(
        whole.select("trained/kinds")["correct"][:, 1], whole.select("trained/kinds")["correct"][:, 2]
    )
    assert whole.counted["left_out"] == 0


def test_the_first_draw_is_the_study_itself(toy: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """With so few cases for a role that many heads have one: the numbers of suggested and of established roles."""
    monkeypatch.setattr("mha_viz.analysis.roles.MIN_CASES", 15)
    one, other = grammar.corpus(40), grammar.corpus(40, seed=5)
    studied = [mv.profile(corpus, "toy") for corpus in (one, other)]
    suggested = [role for role in studied[0].findings() if role.role == "syntax"]
    assert len(suggested) > 3
    assert mv.roles.permutation_test(one, toy, keeps="kind", draws=1).observed == len(suggested)
    established = [role for role in mv.roles.establish(*studied)[0].findings() if role.role == "syntax"]
    assert len(established) > 3
    assert mv.roles.permutation_test(one, toy, also=other, keeps="kind", draws=1).observed == len(established)


def test_a_head_that_likes_a_kind_of_word_has_no_role_by_it(toy: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Among the draws of the toy are fewer roles than it has."""
    monkeypatch.setattr("mha_viz.analysis.roles.MIN_CASES", 15)
    found = mv.roles.permutation_test(grammar.corpus(40), toy, keeps="kind", draws=4)
    assert (found.role, found.null, found.corpora) == ("syntax", KIND, ("grammar",))
    assert found.observed > max(found.drawn)
    assert found.p == pytest.approx(1 / 5)
    assert mv.roles.permutation_test(grammar.corpus(40), toy, keeps="kind", draws=4) == found
    assert mv.roles.permutation_test(grammar.corpus(40), toy, keeps="kind", draws=4, batch=40) == found


# ---- In a profile ----------------------------------------------------------------------------------------------------


def test_both_nulls_are_stored_and_stated(tmp_path: Path) -> None:
    shipped = mv.load_profile("toy")
    found = ChanceRoles(7, (0, 2), ("grammar",), null=KIND)
    again = mv.load_profile(found.stored_in(shipped).save(tmp_path / "toy"))
    assert find_chance_roles(again, "syntax", KIND) == found
    assert find_chance_roles(again) == find_chance_roles(shipped)
    assert find_chance_roles(shipped) is not None
    words = (
        "with another word of the same part of speech in the place of each right one at most 2, in 2 draws (p = 0.333)"
    )
    assert f"By chance: 7 roles of syntax; {words}, on grammar." in mv.roles.report(again).notes
    assert find_chance_roles(shipped, "syntax", KIND) == ChanceRoles(7, (*[0] * 19, 1), ("grammar",), null=KIND)
    twice = ChanceRoles(7, (1,), ("grammar",), null=KIND).stored_in(again)
    assert find_chance_roles(twice, "syntax", KIND) == ChanceRoles(7, (1,), ("grammar",), null=KIND)
    assert find_chance_roles(twice) == find_chance_roles(shipped)


@pytest.mark.parametrize(("keeps", "role"), [("kinds", "syntax"), ("kind", "coreference")])
def test_what_cannot_be_kept_is_said(keeps: str, role: str) -> None:
    with pytest.raises(SettingError, match=f"'{keeps}' cannot be kept for roles of {role}"):
        mv.roles.permutation_test("grammar", "toy", role=role, keeps=keeps)


def test_progress_runs_once_over_the_corpora() -> None:
    shares: list[float] = []
    one, other = grammar.corpus(30), grammar.corpus(30, seed=5)
    mv.roles.permutation_test(
        one, "toy", also=other, keeps="kind", draws=1, progress=lambda so_far: shares.append(so_far.fraction)
    )
    assert shares == sorted(shares)
    assert {0.5, 1} <= {*shares}


def test_the_command_counts_and_stores_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    corpus, out = tmp_path / "one.conllu", tmp_path / "out"
    corpus.write_text(format_conllu(grammar.corpus(40).sentences), "utf-8")
    assert main(["profile", str(corpus), "--model", "toy", "--chance-of-kind", "2", "--out", str(out)]) == 0
    assert "with another word of the same part of speech in the place of each right one" in capsys.readouterr().out
    table = mv.load_profile(out).tables["chance"]
    assert table[["role", "null", "draw"]].values.tolist() == [["syntax", "kind", draw] for draw in range(3)]


class _Stop(Exception):
    """Stops a study."""


def test_a_count_that_was_stopped_goes_on(tmp_path: Path, toy: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mha_viz.study.run.SAVE_SECONDS", 0)
    corpus = grammar.corpus(60)

    def stop(so_far: Progress) -> None:
        if so_far.fraction > 0.5:
            raise _Stop

    with pytest.raises(_Stop):
        mv.roles.permutation_test(corpus, toy, keeps="kind", draws=2, batch=64, resume=tmp_path, progress=stop)
    shares: list[float] = []
    resumed = mv.roles.permutation_test(
        *(corpus, toy),
        keeps="kind",
        draws=2,
        batch=64,
        resume=tmp_path,
        progress=lambda so_far: shares.append(so_far.fraction),
    )
    assert shares[0] > 0.25, "from where it was"
    assert resumed == mv.roles.permutation_test(corpus, toy, keeps="kind", draws=2)
