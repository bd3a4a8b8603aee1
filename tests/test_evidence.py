"""Evidence equals a plain loop over every case with the stated rule; it is streamed, merged, written and read."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

from mha_viz.analysis import evidence
from mha_viz.analysis.evidence import CASE_DTYPE, KINDS, SLOT_SIZES, Selection, _draw_numbers, iter_evidence_rows
from mha_viz.analysis.profile import SENTENCES_FILE, Profile, read_profile
from mha_viz.analysis.syntax import Relations, join_sentences
from mha_viz.corpus import grammar
from mha_viz.corpus.conllu import format_conllu, read_conllu
from mha_viz.corpus.excerpts import merge_sentences
from mha_viz.corpus.reading import read_plain
from mha_viz.corpus.treebank import Mention, Sentence, Word
from mha_viz.errors import CorpusError, EvidenceMissingWarning, UnknownHead
from mha_viz.heads import list_heads
from mha_viz.study.child import _remove_words
from mha_viz.study.run import measure_one_pass, study
from tests import brute, lanes, tiny_models

if TYPE_CHECKING:
    from mha_viz.models.reading.encoder import Encoder

pytestmark = pytest.mark.usefixtures("one_thread")

SENTENCES_READ = 11


@pytest.fixture(scope="module")
def text() -> str:
    """Nine sentences of the grammar in documents of three, and two unusual ones: one word, and words of several
    pieces."""
    made = grammar.corpus(9, seed=5).sentences
    blocks = format_conllu(made).split("# newdoc id = ")[1:]
    parts = [f"# newdoc id = d{i // 3}\n" * (i % 3 == 0) + b.partition("\n")[2] for i, b in enumerate(blocks)]
    odd = format_conllu([
        Sentence((Word("Yes", "INTJ", None, "root"),)),
        Sentence((Word("Incomprehensible", "ADJ", 1, "amod"), Word("machinery", "NOUN", 2, "nsubj:odd"),
                  Word("hums", "VERB", None, "root"), Word("!?", "PUNCT", 2, "punct"))),
    ])  # fmt: skip
    return "".join(parts) + odd


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT with room for a chunk of 128 pieces."""
    import torch

    folder = tmp_path_factory.mktemp("small") / "small"
    torch.manual_seed(2)
    model, tokenizer = tiny_models._bert(max_position_embeddings=140)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def small(folder: Path) -> Encoder:
    from mha_viz.models.reading.encoder import Encoder

    return Encoder.from_folder(folder)


# ---- The loop --------------------------------------------------------------------------------------------------------


class Case(NamedTuple):
    head: int
    role: str
    first: int  # sentence
    word: int
    answer: int
    weight: float
    right: bool


def every_case(text: str, model: brute.Model) -> Iterator[Case]:
    """All cases of all heads, one at a time."""
    read = brute.results(text, model)
    for number, sentence, reading in read.sentences:
        for head, a in enumerate(reading.attention):
            w = brute.sum_to_words(a, reading.words)
            for q in brute.questions(sentence) if len(sentence.forms) > 2 else ():
                if q.group[1].split(":")[0] == "punct":  # no relation of syntax
                    continue
                if q.group[0] == "base" or (q.group[0] == "full" and ":" in q.group[1]):
                    answer = brute.answer(w, q)
                    weight = w[answer, q.asked] if q.direction == "head_to_dep" else w[q.asked, answer]
                    role = f"syntax {q.group[1]} {q.direction}"
                    yield Case(head, role, number, q.asked, answer, weight, answer in q.right)
            yield from rows(head, number, a.tolist(), reading)
    ends = iter(np.cumsum([len(s.forms) for s in brute.read(text)]).tolist())
    number, words = 0, 0
    for chunk, reading in read.chunks:
        first, end = number, words + len(chunk.forms)
        while words < end:
            number, words = number + 1, next(ends)
        for head, a in enumerate(reading.attention):
            w = brute.sum_to_words(a, reading.words)
            for x in brute.anaphors(chunk):
                if "third_person" in x.kinds and len(x.candidates) > 1:
                    answer = brute.find_best(w[x.word], x.candidates)
                    right = answer in x.right
                    yield Case(head, "coreference third_person", first, x.word, answer, w[x.word, answer], right)


def rows(head: int, number: int, a: Any, reading: brute.Reading) -> Iterator[Case]:
    """The cases of position, delimiter and broad roles."""
    size = len(reading.words)
    plain = [i for i in range(size) if not reading.ends[i]]
    count = len({reading.words[i] for i in plain})
    word = [
        -1 if end == "cls" else count if end == "sep" else w for end, w in zip(reading.ends, reading.words, strict=True)
    ]
    for i in plain:
        inner, answer = brute.find_best(a[i], plain), brute.find_best(a[i], range(size))
        for offset, name in ((-1, "previous"), (0, "same"), (1, "next")):
            if i + offset in plain:
                yield Case(head, f"position {name}", number, word[i], word[inner], a[i][inner], inner == i + offset)
        marks = {"cls": reading.ends[answer] == "cls", "sep": reading.ends[answer] == "sep"}
        on = marks | {"punctuation": reading.marks[answer], "both": any(marks.values())}
        for name, right in on.items():
            yield Case(head, f"delimiter {name}", number, word[i], word[answer], a[i][answer], right)
        entropy = -sum(x * math.log(x) for x in a[i] if x > 0)
        yield Case(head, "broad entropy", number, word[i], word[answer], a[i][answer], entropy >= 0.78 * math.log(size))


def chosen(cases: list[Case], right: bool) -> list[Case]:
    """The two with the largest weights, to four digits, from different texts; among equal ones the first."""
    ordered = sorted((c for c in cases if c.right == right), key=lambda c: (-round(c.weight, 4), c.first))
    best: dict[int, Case] = {}
    for case in ordered:
        best.setdefault(case.first, case)
    return list(best.values())[:2]


def every_line(selection: Selection, heads: int) -> list[tuple[Any, ...]]:
    every = list_heads(range(selection.heads // heads), heads)
    return list(iter_evidence_rows(selection, every, [(*head, *role) for role in selection.roles for head in every]))


def test_every_choice_is_that_of_a_plain_loop(small: Encoder, folder: Path, text: str) -> None:
    by_slot: dict[tuple[int, str], list[Case]] = defaultdict(list)
    for case in every_case(text, brute.Model(folder)):
        by_slot[case.head, case.role].append(case)
    selection = measure_one_pass(small, read_conllu(text)).selection
    assert selection is not None
    kept_cases: dict[tuple[int, str], dict[str, list[Any]]] = defaultdict(lambda: {kind: [] for kind in KINDS})
    for layer, head, role, detail, kind, *rest in every_line(selection, small.heads):
        kept_cases[layer * small.heads + head, f"{role} {detail}"][kind].append(rest)
    assert kept_cases.keys() == by_slot.keys()
    assert {role.split()[0] for _, role in kept_cases} == {"syntax", "coreference", "position", "delimiter", "broad"}
    for slot, kinds in kept_cases.items():
        for kind, right in (("right", True), ("wrong", False)):
            expected = chosen(by_slot[slot], right)
            assert [(c[0], c[5]) for c in kinds[kind]] == [(e.first, right) for e in expected], slot
            assert [c[4] for c in kinds[kind]] == pytest.approx([e.weight for e in expected], abs=6e-5), slot
            cases = {(c.first, c.word, c.answer, c.right) for c in by_slot[slot]}
            assert {(c[0], c[2], c[3], c[5]) for c in kinds[kind]} <= cases
        (drawn,) = kinds["random"]
        largest = max(by_slot[slot], key=lambda c: int(_draw_numbers(np.array([c.first]), np.array([c.word]))[0]))
        assert (drawn[0], drawn[2]) == (largest.first, largest.word), slot
        assert (drawn[3], drawn[5]) in {
            (c.answer, c.right) for c in by_slot[slot] if (c.first, c.word) == (largest.first, largest.word)
        }


def test_what_is_drawn_does_not_depend_on_the_head(small: Encoder, text: str) -> None:
    selection = measure_one_pass(small, read_conllu(text)).selection
    assert selection is not None
    drawn = defaultdict(set)
    for _, _, role, detail, kind, first, _, word, *_ in every_line(selection, small.heads):
        if kind == "random":
            drawn[role, detail].add((first, word))
    assert {len(places) for places in drawn.values()} == {1}
    assert len(set().union(*drawn.values())) > 5


def test_every_case_is_drawn_equally_often() -> None:
    first = [int(np.argmax([_draw_numbers(number, np.arange(4)).max() for number in range(start, start + 5)]))
             for start in range(0, 10_000, 5)]  # fmt: skip
    assert np.bincount(first) == pytest.approx([400] * 5, abs=100)
    words = [int(_draw_numbers(number, np.arange(4)).argmax()) for number in range(2000)]
    assert np.bincount(words) == pytest.approx([500] * 4, abs=110)


# ---- By hand ---------------------------------------------------------------------------------------------------------


def sentence(*words: tuple[str, int | None, str]) -> Sentence:
    return Sentence(tuple(Word(form, "X", head, relation) for form, head, relation in words))


DOGS = sentence(("Dogs", 1, "nsubj"), ("bark", None, "root"), ("loudly", 1, "advmod"))
TWO_WORDS = sentence(("Dogs", 1, "nsubj"), ("bark", None, "root"))
BIG_DOGS = sentence(("Big", 1, "amod"), ("dogs", 2, "nsubj"), ("bark", None, "root"))


def test_two_sentences_by_hand() -> None:
    sentences = [DOGS, BIG_DOGS, TWO_WORDS]  # of two words, only one can be the answer
    relations = Relations(sentences)
    selection = Selection(relations, 1)
    blocks = (
        [[0.5, 0.3, 0.2], [0.2, 0.6, 0.15], [0.1, 0.05, 0.4]],
        [[0.1, 0.2, 0.4], [0.7, 0.1, 0.2], [0.15, 0.25, 0.6]],
        [[0.1, 0.9], [0.9, 0.1]],
    )
    weights = [np.array([block], np.float32) for block in blocks]
    selection.add_syntax(
        join_sentences(relations, weights, [relations.make_tree(sentence) for sentence in sentences]),
        weights,
        [0, 1, 2],
    )
    by_hand = {
        # of "Dogs" the largest weight is 0.3 on "bark"; of "dogs" 0.7 on "Big"
        ("nsubj dep_to_head", "right"): [(0, 0, 1, 0.3)],
        ("nsubj dep_to_head", "wrong"): [(1, 1, 0, 0.7)],
        # "bark" gives "Dogs" most, 0.2, and "dogs" most, 0.25
        ("nsubj head_to_dep", "right"): [(1, 1, 2, 0.25), (0, 0, 1, 0.2)],
        ("nsubj head_row", "right"): [(1, 2, 1, 0.25), (0, 1, 0, 0.2)],
        # "loudly" gives "Dogs" most, and gets most from it; "bark" attends to "Dogs", which is no adverb
        ("advmod dep_to_head", "wrong"): [(0, 2, 0, 0.1)],
        ("advmod head_to_dep", "wrong"): [(0, 2, 0, 0.2)],
        ("advmod head_row", "wrong"): [(0, 1, 0, 0.2)],
        ("amod dep_to_head", "wrong"): [(1, 0, 2, 0.4)],
        ("amod head_to_dep", "right"): [(1, 0, 1, 0.7)],
        ("amod head_row", "right"): [(1, 1, 0, 0.7)],
    }
    chosen: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for _, _, _, detail, kind, first, _, word, answer, weight, _ in every_line(selection, 1):
        chosen[detail, kind].append((first, word, answer, weight))
    assert {slot: cases for slot, cases in chosen.items() if slot[1] != "random"} == by_hand
    assert {detail for detail, kind in chosen if kind == "random"} == {detail for detail, _ in by_hand}


def test_of_equal_weights_the_first_in_the_corpus_counts_in_any_order() -> None:
    relations = Relations([DOGS])
    weights = [0.30004, 0.3, 0.29996, 0.2]  # equal to four digits, except for the last

    role = Selection(relations, 1).roles.index(("syntax", "nsubj dep_to_head"))

    def added(order: list[int]) -> np.ndarray:
        selection = Selection(relations, 1)
        for number in order:
            block = np.array([[[0.5, weights[number], 0.1], [0.2, 0.6, 0.1], [0.1, 0.1, 0.1]]], np.float32)
            selection.add_syntax(join_sentences(relations, [block], [relations.make_tree(DOGS)]), [block], [number])
        return selection.cases

    cases = added([0, 1, 2, 3])
    np.testing.assert_array_equal(cases, added([3, 1, 0, 2]))
    right = cases[cases["slot"] == role * len(KINDS)]
    assert right["first"].tolist() == [0, 1]


def test_cases_without_a_place_can_be_left_out_as_soon_as_that_is_known(
    small: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 60 if lanes.everything else 16
    corpus = grammar.corpus(count, seed=1)
    once = measure_one_pass(small, corpus).selection
    monkeypatch.setattr(evidence, "MAX_UNSORTED", -(10**9))  # sorted after each batch
    often = measure_one_pass(small, corpus).selection
    assert once is not None
    assert often is not None
    np.testing.assert_array_equal(once.cases, often.cases)
    late = measure_one_pass(small, grammar.corpus(count, seed=2)).selection
    assert late is not None
    before = len(often.unsorted_cases)
    often.merge(late.cases)
    assert len(often.unsorted_cases) - before < len(late.cases) / 2


def test_no_more_is_kept_however_much_is_read(small: Encoder) -> None:
    few, many = (
        measure_one_pass(small, grammar.corpus(count, seed=1)).selection
        for count in (10, 60 if lanes.everything else 30)
    )
    assert few is not None
    assert many is not None
    most = len(many.roles) * many.heads * sum(SLOT_SIZES)
    assert len(few.cases) <= len(many.cases) <= most
    _, counts = np.unique(many.cases["slot"], return_counts=True)
    assert counts.max() == max(SLOT_SIZES)


def test_cases_of_another_corpus_are_refused() -> None:
    selection = Selection(Relations([DOGS]), 1)
    strange = np.zeros(1, CASE_DTYPE)
    strange["slot"] = 10_000
    with pytest.raises(ValueError, match="another corpus"):
        selection.check(strange)


# ---- Profiles --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def toy_profile() -> Profile:
    from mha_viz.models.reading.loading import load

    return study(load("toy"), grammar.corpus(400), control=False)


def test_a_profile_shows_words(toy_profile: Profile) -> None:
    table = toy_profile.evidence("L1H2", "nsubj")
    assert set(table["kind"]) <= {"right", "wrong", "random"}
    assert all(column in str(Profile.evidence.__doc__) for column in table.columns)
    assert set(table["detail"]) == {"nsubj dep_to_head"}
    right = table[table["kind"] == "right"]
    assert (right["answer"] == right["gold"]).all()
    assert (right["attention"] > 0.9).all()
    for line in table.itertuples():
        assert line.right == (line.answer in line.gold.split(" / "))
        assert {line.word, line.answer} <= {*line.sentence.split()}
    assert toy_profile.evidence("L1H2", "coreference").empty
    assert set(toy_profile.evidence("L1H1", "coreference")["right"]) == {True}  # it is right in all cases
    with pytest.raises(UnknownHead):
        toy_profile.evidence("L9H9")


def test_every_role_has_evidence(toy_profile: Profile) -> None:
    for finding in toy_profile.findings():
        kinds = {e.kind for e in toy_profile.examples(finding.head, finding.detail)}
        assert "random" in kinds, finding
        assert {"right", "wrong"} & kinds


def test_examples_lead_to_the_weights_that_they_state(toy_profile: Profile) -> None:
    from mha_viz.models.reading.loading import load

    toy = load("toy")
    for head in ("L1H2", "L1H1", "L0H3"):
        for example in toy_profile.examples(head):
            block = toy.encode_words(example.sentence.forms).by_words().without_special()[head]
            if example.role in ("syntax", "coreference"):
                link = (
                    (example.answer, example.word)
                    if "head_to_dep" in example.detail
                    else (example.word, example.answer)
                )
                assert 0 < example.weight <= block[link] + 1e-4


def test_a_profile_is_read_as_it_was_written(toy_profile: Profile, tmp_path: Path) -> None:
    toy_profile.save(tmp_path)
    opened = read_profile(tmp_path)
    assert opened == toy_profile
    assert [s.forms for s in opened.sentences] == [s.forms for s in toy_profile.sentences]
    assert opened.evidence("L1H1").equals(toy_profile.evidence("L1H1"))


def test_an_old_profile_is_opened_without_evidence(toy_profile: Profile, tmp_path: Path) -> None:
    toy_profile.save(tmp_path)
    for name in (SENTENCES_FILE, "evidence.csv"):
        (tmp_path / name).unlink()
    old = read_profile(tmp_path)
    assert len(old.findings()) == len(toy_profile.findings())
    with pytest.warns(EvidenceMissingWarning, match="no sentences of") as caught:
        assert old.evidence("L1H2").empty
    assert caught[0].filename == __file__
    assert old.evidence("L0H1").empty  # has no role, so nothing is missing


def test_numbers_without_sentences_are_opened(toy_profile: Profile, tmp_path: Path) -> None:
    toy_profile.save(tmp_path)
    (tmp_path / SENTENCES_FILE).unlink()
    with pytest.warns(EvidenceMissingWarning, match="measure a corpus of your own"):
        assert read_profile(tmp_path).evidence("L1H2").empty


@pytest.mark.parametrize("damage", ["", "1\tDogs", "\n\n1\tDogs" + 8 * "\t_" + "\n\n"])
def test_damaged_sentences_are_named(toy_profile: Profile, tmp_path: Path, damage: str) -> None:
    toy_profile.save(tmp_path)
    file = tmp_path / SENTENCES_FILE
    file.write_text(file.read_text("utf-8") + damage if damage else " ", "utf-8")
    with pytest.raises(CorpusError, match=r"evidence\.c"):
        read_profile(tmp_path)


def test_a_server_gets_numbers_and_no_words(toy_profile: Profile) -> None:
    sent = _remove_words(toy_profile).files()
    assert SENTENCES_FILE not in sent
    assert "evidence.csv" in sent
    words = {form for s in toy_profile.sentences for form in s.forms if len(form) > 4}
    assert not [word for word in words if word in "".join(sent.values())]


def test_a_corpus_without_annotation_has_evidence_of_patterns_alone(tiny: Callable[[str], Encoder]) -> None:
    profile = study(tiny("bert"), read_plain("The animal was tired.\nThe street was wide.\n"), control=False)
    assert {*profile.tables["evidence"]["role"]} <= {"position", "delimiter", "broad"}
    assert all(example.gold == () for head in profile.heads() for example in profile.examples(head))


def test_sentences_read_together_keep_their_trees_and_chains() -> None:
    one = Sentence(TWO_WORDS.words, (Mention("1", 0, 1, 0),), "d", 3)
    both = merge_sentences([one, Sentence(BIG_DOGS.words, (Mention("1", 0, 2, 1),))])
    assert both.forms == ("Dogs", "bark", "Big", "dogs", "bark")
    assert [word.head for word in both.words] == [1, None, 3, 4, None]
    assert both.mentions == (Mention("1", 0, 1, 0), Mention("1", 2, 4, 3))
    (again,) = read_conllu(format_conllu([both])).sentences
    assert (again.words, again.mentions) == (both.words, both.mentions)
