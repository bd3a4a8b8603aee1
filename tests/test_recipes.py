"""Recipes of heads: rules on sentences annotated by hand, the fit and the explained share against loops, a mixture that
is found again, and the tables of a study."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import torch
from transformers import AutoModel

import mha_viz as mv
from mha_viz.analysis import bundled_data as described
from mha_viz.analysis import recipes as fitting
from mha_viz.analysis.bundled_data import load_bundled_roles
from mha_viz.analysis.intervals import Documents, wilson_interval
from mha_viz.analysis.recipe_tables import HEADINGS, Recipes
from mha_viz.analysis.reduce import reduce_to_words
from mha_viz.analysis.rules import CLASSES, NAMES, RULES, UNIFORM_RULE, RuleText, make_matrix, predict
from mha_viz.analysis.syntax import find_pointers, list_arcs
from mha_viz.attention import Head
from mha_viz.cli import main
from mha_viz.corpus import grammar
from mha_viz.corpus.conllu import format_conllu
from mha_viz.corpus.sources import iterate, make_repeats
from mha_viz.corpus.treebank import Corpus, Mention, Sentence, Word
from mha_viz.errors import Cancelled, CorpusError, SettingError, ShapeError, TextError
from mha_viz.figures.layout import Size
from mha_viz.figures.layout.figure_code import write_head_code
from mha_viz.figures.layout.view import View
from mha_viz.models.getting.catalog import resolve
from mha_viz.models.getting.hub import find_local_folder
from mha_viz.models.intervening import ablation
from mha_viz.models.reading.encoder import Encoder
from mha_viz.request import Request
from mha_viz.study import effects, reading, replacements
from mha_viz.study import explained_shares as explained_sums
from mha_viz.study import recipes as study
from mha_viz.study import texts as texts_of
from mha_viz.study.cases import Cases, LocalRun, collect_cases
from mha_viz.study.cluster.tasks import PartSums, WorkerModel
from mha_viz.study.measures import ResamplingUnits
from mha_viz.study.recipes import CHOICE_FILE, iter_weights
from mha_viz.study.replacements import ACCURACY_COLUMNS, ReplacementStudy, VectorCases
from mha_viz.study.run import Progress, measure_sums
from mha_viz.study.sums import merge_sums
from mha_viz.text import WordPieces
from tests.cli_runs import assert_one_line
from tests.shards import lay_out_corpus, treebank

Numbers = npt.NDArray[np.float64]
Tiny = Callable[[str], Encoder]

SENTENCE = Sentence(
    (
        Word("Dogs", "NOUN", 1, "nsubj"),
        Word("chased", "VERB", None, "root"),
        Word("the", "DET", 3, "det"),
        Word("dogs", "NOUN", 1, "obj"),
        Word(",", "PUNCT", 5, "punct"),
        Word("barking", "VERB", 1, "advcl"),
        Word(".", "PUNCT", 1, "punct"),
    ),
    (Mention("1", 0, 1, 0), Mention("1", 2, 4, 3)),
)
# The pieces are [CLS] Dogs chas ##ed the dogs , barking . [SEP]
WORDS = (None, 0, 1, 1, 2, 3, 4, 5, 6, None)
TARGETS = {  # for a rule: the targets of some tokens; those that are not named have none
    "the token before": {0: [], 1: [0], 9: [8]},
    "2 tokens after": {0: [2], 8: []},
    "the 2 tokens on either side": {0: [1, 2], 4: [2, 3, 5, 6]},
    "all tokens before": {0: [], 3: [1, 2]},
    "[CLS]": {0: [0], 5: [0]},
    "[SEP]": {0: [9], 5: [9]},
    "punctuation": {3: [6, 8]},
    "commas": {3: [6]},
    "the last full stop": {3: [8]},
    "the first word": {3: [1]},
    "the rest of its own word": {1: [], 2: [3], 3: [2], 9: []},
    "the same form elsewhere": {0: [], 1: [5], 5: [1], 7: []},
    "all words": {0: [1, 2, 3, 4, 5, 6, 7, 8]},
    "verbs": {9: [2, 3, 7]},
    "content words": {0: [1, 2, 3, 5, 7]},
    "function words": {0: [4]},
    "the nearest noun before": {0: [], 1: [], 4: [1], 7: [5]},
    "the nearest verb after": {1: [2, 3], 2: [7], 7: []},
    "the nearest content word before": {2: [1], 5: [2, 3], 8: [7]},
    "the same part of speech": {1: [5], 2: [7], 4: []},
    "its head": {1: [2, 3], 2: [], 4: [5], 6: [7], 9: []},
    "its dependents": {2: [1, 5, 7, 8], 3: [1, 5, 7, 8], 5: [4], 1: []},
    "its siblings": {1: [5, 7, 8], 2: [], 4: []},
    "its head, as nsubj": {1: [2, 3], 5: []},
    "its obj": {2: [5], 1: []},
    "its antecedent": {1: [], 5: [1]},
    "its other mentions": {1: [5], 5: [1], 4: []},
    "what followed this token last time": {5: []},
    "everywhere": {4: list(range(10))},
}


def text_of(words: tuple[int | None, ...], sentence: Sentence, causal: bool = False) -> RuleText:
    """A sentence cut into pieces by hand, whose ids are those of its words."""
    n = len(words)
    ids = tuple(
        -1 if word is None else [*map(str.casefold, sentence.forms)].index(sentence.forms[word].casefold())
        for word in words
    )
    pieces = WordPieces(sentence.forms, ("x",) * n, ids, (0,) * n, words, ((0, 0),) * n, (True,) * n)
    return RuleText(sentence, pieces, causal)


TEXT = text_of(WORDS, SENTENCE)


@pytest.mark.parametrize("name", TARGETS)
def test_a_rule_looks_at_its_targets(name: str) -> None:
    shares = make_matrix(RULES[NAMES.index(name)], TEXT)
    for query, keys in TARGETS[name].items():
        expected = np.zeros(len(TEXT))
        expected[keys] = 1 / len(keys) if keys else 0
        assert shares[query] == pytest.approx(expected)


@pytest.mark.parametrize("causal", [False, True])
def test_every_rule_gives_shares_of_visible_tokens(causal: bool) -> None:
    text = text_of(WORDS, SENTENCE, causal)
    for rule in RULES:
        shares = make_matrix(rule, text)
        assert set(shares.sum(axis=1).round(12)) <= {0, 1}
        assert not shares[~text.is_visible].any()


def test_what_followed_last_time_is_for_causal_models() -> None:
    sentence = Sentence((Word("a"), Word("b"), Word("a"), Word("c"), Word("a")))
    rule = RULES[NAMES.index("what followed this token last time")]
    shares = make_matrix(rule, text_of((0, 1, 2, 3, 4), sentence, causal=True))
    assert [np.flatnonzero(row).tolist() for row in shares] == [[], [], [1], [], [3]]
    assert not make_matrix(rule, text_of((0, 1, 2, 3, 4), sentence)).any()


def test_query_words_have_classes() -> None:
    kinds = "[CLS] content content content function content punctuation content punctuation [SEP]"
    assert [CLASSES[number] for number in TEXT.classes] == kinds.split()


def test_names_are_different() -> None:
    assert len(set(NAMES)) == len(NAMES)


def planted(shares: dict[str, float], texts: int = 6) -> list[tuple[RuleText, npt.NDArray[np.float32]]]:
    """Texts of different order with attention [1, query, key] that is a mixture of rules."""
    every = np.zeros((len(CLASSES), 1, len(RULES)))
    for name, share in shares.items():
        every[:, 0, NAMES.index(name)] = share
    words = SENTENCE.words
    read = []
    for turn in range(texts):
        turned = tuple(
            word._replace(head=None if word.head is None else (word.head - turn) % len(words))
            for word in (*words[turn:], *words[:turn])
        )
        text = text_of((None, *range(len(words)), None), Sentence(turned))
        read.append((text, predict(every, text).astype(np.float32)))
    return read


def by_loops(rows: fitting.RuleRows, head: int, shares: dict[int, float], steps: int) -> dict[int, float]:
    """The fit of one head, cell by cell."""
    ends = [*rows.starts[1:], rows.rules.shape[1]]
    for _ in range(steps):
        taken, expected = dict.fromkeys(shares, 0.0), dict.fromkeys(shares, 0.0)
        for row, (start, end) in enumerate(zip(rows.starts, ends, strict=True)):
            total = sum(share for rule, share in shares.items() if rows.applies[rule, row])
            for rule in shares:
                expected[rule] += rows.applies[rule, row] / total
            for cell in range(start, end):
                mixed = sum(share * rows.rules[rule, cell] for rule, share in shares.items())
                for rule, share in shares.items():
                    taken[rule] += rows.weights[head, cell] * share * rows.rules[rule, cell] / mixed
        new = {rule: taken[rule] / expected[rule] if expected[rule] else 0.0 for rule in shares}
        shares = {rule: share / sum(new.values()) for rule, share in new.items()}
    return shares


def test_the_fit_is_that_of_a_loop_on_ten_sentences(toy: Encoder) -> None:
    """Of four heads, with rules that apply everywhere, to some words, and never."""
    texts = study.list_readable_texts(toy, grammar.corpus(10, seed=3), 10)
    rows = fitting.join_rows(
        fitting.make_rows_by_class((texts[number], weights) for number, weights in iter_weights(toy, texts))
    )
    begun = {"everywhere": 0.4, "its head": 0.2, "the token after": 0.1, "nouns": 0.2, "its vocative": 0.1}
    numbers = {NAMES.index(name): share for name, share in begun.items()}
    assert len(texts) == 10
    assert [rows.applies[rule].any() for rule in numbers] == [True, True, True, True, False]
    start = np.zeros(len(RULES))
    start[[*numbers]] = [*numbers.values()]
    together = fitting.fit_heads(rows, np.array([start] * len(rows.weights)), steps=3)
    for head in (0, 2, 5, 7):
        result = fitting.fit_head(rows, head, start, steps=3)
        assert {rule: result[rule] for rule in numbers} == pytest.approx(by_loops(rows, head, numbers, 3), rel=1e-9)
        assert result.sum() == pytest.approx(1)
        assert together[head] == pytest.approx(result)


def test_the_explained_share_by_hand() -> None:
    sentence = Sentence((Word("a"), Word("b")))
    text = text_of((0, 1), sentence)
    weights = np.array([[[0.9, 0.1], [0.5, 0.5]]], np.float32)
    before = fitting.make_single_rule_shares(np.array([NAMES.index("the token before")]))
    # The first token has none before it and looks everywhere: 0.5 + 0.1. The second looks at the first: 0.5.
    assert predict(before, text)[0].tolist() == [[0.5, 0.5], [1, 0]]
    rows = fitting.make_rows_by_class([(text, weights)])
    assert fitting.compute_explained_shares(rows, before) == pytest.approx([(0.6 + 0.5) / 2])


def test_a_planted_mixture_is_found_again() -> None:
    mixture = {"its head": 0.5, "the token before": 0.3, "everywhere": 0.2}
    rows = [fitting.join_rows(fitting.make_rows_by_class(planted(mixture)))]
    shares = fitting.choose_rules(rows)[0, 0]
    assert {NAMES[rule]: shares[rule] for rule in np.flatnonzero(shares > 0.01)} == pytest.approx(mixture, abs=0.02)
    assert fitting.compute_explained_shares(rows, shares[None, None]) == pytest.approx([1], abs=0.01)


def test_classes_have_shares_of_their_own_where_that_gains() -> None:
    read = planted({"its head": 1.0})
    even = planted({"[SEP]": 1.0})
    for (text, weights), (_, other) in zip(read, even, strict=True):
        at = text.classes == CLASSES.index("punctuation")
        weights[:, at] = other[:, at]
    rows = fitting.make_rows_by_class(read)
    fitted = fitting.choose_recipes(rows, read)
    assert fitted.by_class.tolist() == [True]
    assert fitted.shares[CLASSES.index("punctuation"), 0, NAMES.index("[SEP]")] > 0.9
    assert fitted.shares[CLASSES.index("content"), 0, NAMES.index("its head")] > 0.8
    assert fitting.choose_recipes(fitting.make_rows_by_class(even), even).by_class.tolist() == [False]


def test_rows_and_texts_are_predicted_alike() -> None:
    (text, weights), *_ = planted({"its head": 0.6, "its siblings": 0.4})
    shares = fitting.make_single_rule_shares(np.array([NAMES.index("its dependents")]))
    by_text = np.minimum(weights, predict(shares, text)).sum() / len(text)
    assert fitting.compute_explained_shares(fitting.make_rows_by_class([(text, weights)]), shares) == pytest.approx(
        [by_text]
    )


@pytest.fixture(scope="module")
def measured() -> Recipes:
    return mv.recipes.fit("grammar", "toy", most=24)


def test_tables_of_the_toy(measured: Recipes) -> None:
    tables = measured.tables
    assert {name: tuple(table.columns) for name, table in tables.items()} == {
        name: columns for name, columns in HEADINGS.items() if name != "stability"
    }
    sums = tables["recipes"].groupby(["layer", "head", "query_class"])["share"].sum()
    assert sums.to_numpy() == pytest.approx(1)
    rules = tables["recipes"].groupby(["layer", "head"])["rule"].nunique()
    assert rules.max() <= fitting.MAX_RULES
    explained = tables["explained"]
    assert (explained["fitted"] > explained["even"]).all()
    assert explained["other"].isna().all()
    assert explained[["held_out", "even", "best_rule", "untrained", "iou"]].apply(lambda c: c.between(0, 1).all()).all()
    assert "the token" in " ".join(measured.head("L1H0")["recipes"]["rule"])


def test_the_explained_share_is_that_of_a_loop(measured: Recipes) -> None:
    """Of head L0H3, from the tables, over the odd sentences."""
    toy, table = mv.load("toy"), measured.head("L0H3")["recipes"]
    shares = np.zeros((len(CLASSES), 1, len(RULES)))
    for name, rule, share in zip(table["query_class"], table["rule"], table["share"], strict=True):
        classes = slice(None) if name == "all" else CLASSES.index(name)
        shares[classes, 0, NAMES.index(rule)] = share
    total = rows = 0.0
    every = [*iterate("grammar")][::17]  # 24 of 400
    assert (measured.facts["corpus_sentences"], measured.facts["corpus_every"]) == (len(every), 17) == (24, 17)
    for sentence in every[1::2]:
        text = RuleText(sentence, toy.read_words(sentence.forms))
        weights = toy.encode_words(sentence.forms).weights[0, 3]
        total += np.minimum(weights, predict(shares, text)[0]).sum()
        rows += len(text)
    assert measured.head("L0H3")["explained"]["held_out"].item() == pytest.approx(total / rows, abs=1e-6)


def test_of_a_corpus_that_is_cut_every_second_sentence_is_read() -> None:
    """And every second one of these chooses: by their numbers, all of them would."""
    whole = grammar.corpus(31)
    ours, theirs = (
        mv.recipes.fit(replace(whole, sentences=whole.sentences[::step]), "toy", most=16).tables for step in (1, 2)
    )
    for name, table in theirs.items():
        pd.testing.assert_frame_equal(ours[name], table)


def test_a_choice_for_which_memory_has_no_room_thins_both_halves() -> None:
    corpus = plain(*["the dog ran"] * 20)  # of 5 pieces each: 5 of them have room, and every fourth of ten are 3
    assert [
        len(half) for half in study.split_halves(study.list_numbered_texts(mv.load("toy"), corpus, 20), 1, 5 * 25)
    ] == [2, 2]


def test_tables_are_read_as_they_were_saved(measured: Recipes, tmp_path: Path) -> None:
    read = mv.recipes.load(measured.save(tmp_path / "recipes"))
    assert read.facts == measured.facts
    for name, table in measured.tables.items():
        pd.testing.assert_frame_equal(read.tables[name], table, check_dtype=False, atol=1e-6)


def test_tables_of_recipes_saved_earlier_in_a_folder_are_deleted(tmp_path: Path) -> None:
    toy = mv.recipes.load("toy")
    mv.recipes.load("minilm").save(tmp_path)
    Recipes(toy.facts, {name: toy.tables[name] for name in ("recipes", "explained")}).save(tmp_path)
    assert {*mv.recipes.load(tmp_path).tables} == {"recipes", "explained"}


OTHER = replace(grammar.corpus(30, seed=7), name="other")


@pytest.fixture(scope="module")
def at_once() -> Recipes:
    """Chosen and measured on OTHER in one call."""
    return mv.recipes.fit("grammar", "toy", score=OTHER, most=24)


def test_found_recipes_are_measured_on_another_corpus_as_when_they_were_chosen(
    measured: Recipes, at_once: Recipes
) -> None:
    later = mv.recipes.fit(measured, score=OTHER, most=24)
    assert later.facts == at_once.facts
    for name, table in at_once.tables.items():
        pd.testing.assert_frame_equal(later.tables[name], table)


def test_beside_an_explained_share_is_its_interval_over_documents(measured: Recipes) -> None:
    """Of four documents, by a plain loop over their sentences."""
    corpus = grammar.corpus(12, seed=3)
    documents = [f"d{number // 3}" for number in range(12)]
    named = [replace(one, document=name) for one, name in zip(corpus.sentences, documents, strict=True)]
    scored = mv.recipes.fit(measured, score=replace(corpus, name="named", sentences=tuple(named)))
    toy, shares = mv.load("toy"), described.make_shares(measured)
    sums, rows = np.zeros((4, 8)), np.zeros(4)
    for number, sentence in enumerate(named):
        text = RuleText(sentence, toy.read_words(sentence.forms))
        weights = toy.encode_words(sentence.forms).weights.reshape(8, len(text), len(text))
        sums[number // 3] += np.minimum(weights, predict(shares, text)).sum(axis=(1, 2))
        rows[number // 3] += len(text)
    low, high = Documents(["d0", "d1", "d2", "d3"]).compute_mean_intervals(sums, rows)
    explained = scored.tables["explained"]
    np.testing.assert_allclose(explained[["other_low", "other_high"]].to_numpy().T, [low, high], atol=1e-6)
    (mean_low,), (mean_high,) = Documents(["d0", "d1", "d2", "d3"]).compute_mean_intervals(
        sums.mean(axis=1, keepdims=True), rows
    )
    assert scored.facts["mean"] == pytest.approx([sums.sum() / rows.sum() / 8, mean_low, mean_high], abs=1e-6)
    assert scored.facts["score_documents"] == 4
    first = described.describe_recipes(scored)[0]
    assert (first.low, first.high) == pytest.approx((low[0], high[0]), abs=1e-6)
    unexplained = f"{100 * (1 - first.explained):.0f}% [{100 * (1 - high[0]):.0f}%, {100 * (1 - low[0]):.0f}%]"
    assert first.describe(str).endswith(f"; no rule explains {unexplained}")


def made(shares: list[tuple[int, str, float]], model: str = "toy") -> Recipes:
    """Recipes of two heads: rows of head, rule and share."""
    rows = [(0, head, "all", rule, share) for head, rule, share in shares]
    facts = {"model": model, "revision": "r", "corpus": f"{len(rows)} rows", "layers": 1, "heads": 2}
    tables = {"recipes": pd.DataFrame(rows, columns=list(HEADINGS["recipes"]))}
    return Recipes({**facts, "best_rules": ["everywhere"] * 2}, tables)


def test_recipes_of_two_corpora_are_compared_by_their_shares() -> None:
    one = made([(0, "[CLS]", 0.7), (0, "everywhere", 0.3), (1, "the token before", 1.0)])
    other = made([(0, "[CLS]", 0.4), (0, "[SEP]", 0.5), (0, "everywhere", 0.1), (1, "the token before", 1.0)])
    table = mv.recipes.compare(one, other).tables["stability"]
    assert tuple(table.columns) == HEADINGS["stability"]
    assert table["corpus"].tolist() == ["4 rows"] * 2
    assert table["overlap"].tolist() == pytest.approx([0.4 + 0.1, 1])
    assert table[["rule", "other_rule", "same"]].to_numpy().tolist() == [
        ["[CLS]", "[SEP]", False],
        ["the token before", "the token before", True],
    ]
    assert table["rules_in_common"].tolist() == pytest.approx([2 / 3, 1])
    twice = mv.recipes.compare(mv.recipes.compare(mv.recipes.compare(one, other), one), other)
    assert twice.tables["stability"]["corpus"].tolist() == ["3 rows"] * 2 + ["4 rows"] * 2
    with pytest.raises(SettingError, match=r"are of toy \(r\) and minilm \(r\)"):
        mv.recipes.compare(one, made([(0, "[CLS]", 1.0)], "minilm"))


def test_another_corpus_is_compared_as_recipes_from_it(
    measured: Recipes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[float] = []
    ours = mv.recipes.compare(measured, OTHER, most=24, progress=lambda so_far: seen.append(so_far.fraction))
    theirs = mv.recipes.compare(measured, mv.recipes.fit(OTHER, "toy", most=24))
    pd.testing.assert_frame_equal(ours.tables["stability"], theirs.tables["stability"])
    assert seen == sorted(seen)
    assert seen[-1] == pytest.approx(1, abs=0.01)
    file, folder, out = tmp_path / "other.conllu", measured.save(tmp_path / "one"), tmp_path / "out"
    file.write_text(format_conllu(OTHER.sentences), "utf-8")
    command = ["recipes", str(folder), "--and", str(file), "--and", "toy", "--most", "24", "--out", str(out)]
    assert main(command) == 0
    overlap, same = ours.tables["stability"]["overlap"], ours.tables["stability"]["same"].sum()
    shown = capsys.readouterr().out.splitlines()[-2:]
    numbers = f"{overlap.mean():.2f} (least {overlap.min():.2f}), the same largest rule in {same} of 8 heads"
    assert shown[0] == f"chosen on other.conllu: shares overlap by {numbers}"
    assert shown[1].startswith("chosen on grammar: shares overlap by ")
    assert mv.recipes.load(out).head("L0H0")["stability"]["corpus"].tolist() == ["other.conllu", "grammar"]
    with pytest.raises(Cancelled):
        mv.recipes.compare(measured, OTHER, cancelled=lambda: True)


def test_recipes_of_earlier_versions_have_no_intervals(measured: Recipes, tmp_path: Path) -> None:
    folder = measured.save(tmp_path / "early")
    bounds = ["held_out_low", "held_out_high", "other_low", "other_high"]
    early = replace(
        measured, tables={**measured.tables, "explained": measured.tables["explained"].drop(columns=bounds)}
    )
    read = mv.recipes.load(early.save(folder))
    assert read.tables["explained"][bounds].isna().all(axis=None)
    assert "[" not in described.describe_recipes(read)[0].describe(lambda _: "a rule")


def test_recipes_of_earlier_versions_have_no_untrained_shares_and_say_so(
    measured: Recipes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = {name: table for name, table in measured.tables.items() if name != "untrained"}
    folder = replace(measured, tables=tables).save(tmp_path / "early")
    file = tmp_path / "other.conllu"
    file.write_text(format_conllu(grammar.corpus(4, seed=7).sentences), "utf-8")
    assert main(["recipes", str(folder), "--score", str(file), "--out", str(tmp_path / "out")]) == 0
    assert "for untrained weights unknown (recipes of an earlier version" in capsys.readouterr().out.splitlines()[0]
    explained = mv.recipes.load(tmp_path / "out").tables["explained"]
    assert explained["untrained"].isna().all()
    assert explained[["other", "other_low", "even", "best_rule", "iou"]].notna().all(axis=None)
    measured.save(folder)
    (folder / "untrained.csv").unlink()
    with pytest.raises(CorpusError, match=r"untrained.csv has changed since it was written"):
        mv.recipes.load(folder)


def test_what_was_scored_on_a_corpus_that_chose_nothing_says_so() -> None:
    """Of minilm and of toy; that of toy is made of the built-in grammar, and of no sentence that chose."""
    for name, corpus in (("minilm", "UD English GUM dev"), ("toy", "new sentences of grammar")):
        shipped = mv.recipes.load(name)
        assert shipped.facts["score"] == corpus
        assert shipped.tables["explained"].notna().all(axis=None)
    assert mv.recipes.load("toy").facts["score_sha256"] == grammar.corpus(300, seed=5).digest
    chose = {sentence.forms for sentence in iterate("grammar")}
    assert not chose & {sentence.forms for sentence in grammar.corpus(300, seed=5).sentences}


NEW = {"toy": grammar.corpus(40, seed=5), "repeater": make_repeats(20, seed=5), "minilm": grammar.corpus(20, seed=5)}


@pytest.mark.parametrize(("name", "off"), [("toy", 0.03), ("repeater", 0.03), ("minilm", 0.15)])
def test_recipes_come_with_the_app_and_hold_on_new_sentences(name: str, off: float) -> None:
    """For minilm, which learned from other texts, those of the grammar are unusual."""
    shipped = mv.recipes.load(name)
    assert shipped.facts["model"] == name
    explained = mv.recipes.fit(shipped, score=NEW[name]).tables["explained"]
    assert explained["untrained"].mean() == pytest.approx(shipped.tables["explained"]["untrained"].mean(), abs=0.03)
    assert explained["other"].mean() == pytest.approx(explained["held_out"].mean(), abs=off)
    assert (explained["other"] > explained["even"]).mean() > 0.9


def test_recipes_are_measured_with_their_rules_and_heads_alone(measured: Recipes, tiny: Tiny) -> None:
    with pytest.raises(SettingError, match="no corpus on which"):
        mv.recipes.fit(measured)
    with pytest.raises(SettingError, match="heads"):
        mv.recipes.fit(measured, tiny("bert"), score=grammar.corpus(3))
    with pytest.raises(CorpusError, match="plain has no"):
        mv.recipes.fit(measured, score=plain("the dog"))
    tables = {**measured.tables, "recipes": measured.tables["recipes"].assign(rule="looks at cats")}
    with pytest.raises(CorpusError, match="other rules"):
        mv.recipes.fit(replace(measured, tables=tables), score=grammar.corpus(3))


def test_a_damaged_folder_is_refused(measured: Recipes, tmp_path: Path) -> None:
    measured.save(tmp_path)
    (tmp_path / "explained.csv").write_text("layer\n0\n")
    with pytest.raises(CorpusError, match="holds no readable recipes"):
        mv.recipes.load(tmp_path)
    with pytest.raises(CorpusError, match="holds no readable recipes"):
        mv.recipes.load(tmp_path / "none")


def plain(*sentences: str) -> Corpus:
    """Sentences without annotation."""
    words = [Sentence(tuple(map(Word, sentence.split(" ")))) for sentence in sentences]
    return Corpus("plain", tuple(words), str(hash(sentences)))


def test_plain_text_and_a_causal_model(tiny: Tiny) -> None:
    corpus = plain(*["the dog saw the dog and the girl saw the dog"] * 4)
    result = mv.recipes.fit(corpus, tiny("gpt2"))
    needs = {rule.name: rule.needs for rule in RULES}
    assert {needs[rule] for rule in result.tables["recipes"]["rule"]} == {""}
    assert result.tables["explained"]["held_out"].between(0, 1).all()


def test_the_repeater_looks_at_what_followed() -> None:
    words = mv.load("repeater").vocabulary.convert_ids_to_tokens(list(range(20, 32)))
    random = np.random.default_rng(0)
    drawn = [[words[i] for i in random.permutation(len(words))] for _ in range(8)]
    result = mv.recipes.fit(plain(*(" ".join(half * 2) for half in drawn)), "repeater")
    table = result.tables["recipes"]
    assert table[table["rule"] == "what followed this token last time"]["share"].max() > 0.5


@pytest.mark.parametrize("text", ["x", "🙂", "🙂🙂 é́ ﷽", "a " * 40 + "a", "‮abc . , !"])
def test_hostile_texts(text: str, tiny: Tiny) -> None:
    result = mv.recipes.fit(plain(text, text + " b", "c d"), tiny("bert"))
    assert np.isfinite(result.tables["explained"]["fitted"]).all()


def test_long_sentences_are_left_out(monkeypatch: pytest.MonkeyPatch, tiny: Tiny) -> None:
    for module in (texts_of, explained_sums):
        monkeypatch.setattr(module, "MAX_TOKENS", 8)
    result = mv.recipes.fit(plain("the dog", "the girl", "the dog saw the girl and the dog"), tiny("bert"))
    assert result.facts["corpus_sentences"] == 2


def test_one_sentence_is_enough_for_a_recipe_and_leaves_the_rest_empty(tiny: Tiny) -> None:
    result = mv.recipes.fit(plain("the dog"), tiny("bert"))
    assert result.tables["explained"]["held_out"].isna().all()


def test_batches_change_nothing(measured: Recipes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "make_batches", lambda pieces, todo, heads: [(number,) for number in reversed(todo)])
    again = mv.recipes.fit("grammar", "toy", most=24)
    for name, table in measured.tables.items():
        assert again.tables[name].to_csv(float_format="%.5g") == table.to_csv(float_format="%.5g")


def test_errors_are_in_words(measured: Recipes) -> None:
    with pytest.raises(CorpusError, match="plain has no trees"):
        mv.recipes.fit("grammar", "toy", score=plain("the dog"))
    with pytest.raises(CorpusError, match="the same corpus"):
        mv.recipes.fit("grammar", "toy", score="grammar")
    with pytest.raises(CorpusError, match="the same corpus"):
        mv.recipes.fit(measured, score="grammar")
    with pytest.raises(CorpusError, match="Nothing in plain"):
        mv.recipes.fit(plain(), "toy")
    with pytest.raises(SettingError, match="Read 2 to 100,000 sentences"):
        mv.recipes.fit("grammar", "toy", most=1)


def test_a_study_can_be_watched_and_stopped() -> None:
    seen: list[float] = []
    mv.recipes.fit(plain("the dog saw", "the girl ran"), "toy", progress=lambda so_far: seen.append(so_far.fraction))
    assert seen == sorted(seen)
    assert seen[-1] == 1
    for when in (0.0, 0.5):  # at once, and when the choice is made
        fractions = [0.0]
        with pytest.raises(Cancelled, match="Start it again"):
            mv.recipes.fit(
                *("grammar", "toy"),
                most=10,
                progress=lambda so_far, fractions=fractions: fractions.append(so_far.fraction),  # type: ignore[misc]
                cancelled=lambda when=when, fractions=fractions: fractions[-1] >= when,  # type: ignore[misc]
            )


def test_a_study_goes_on_where_it_was_stopped(
    at_once: Recipes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """After the choice, and in the second of two corpora; nothing is left at the end."""
    monkeypatch.setattr("mha_viz.study.run.SAVE_SECONDS", 0.0)
    for share in (0.55, 0.85):
        shares: list[float] = []
        with pytest.raises(Cancelled):
            mv.recipes.fit(
                *("grammar", "toy"),
                score=OTHER,
                most=24,
                resume=tmp_path,
                progress=lambda so_far, shares=shares: shares.append(so_far.fraction),  # type: ignore[misc]
                cancelled=lambda share=share, shares=shares: bool(shares) and shares[-1] > share,  # type: ignore[misc]
            )
    monkeypatch.setattr(fitting, "choose_recipes", lambda *_: pytest.fail("it is known what was chosen"))
    seen: list[float] = []
    report = lambda so_far: seen.append(so_far.fraction)  # noqa: E731
    again = mv.recipes.fit("grammar", "toy", score=OTHER, most=24, resume=tmp_path, progress=report)
    assert seen[:2] == [0.625, 0.75], "the first corpus is not measured again"
    assert again.facts == at_once.facts
    for name, table in at_once.tables.items():
        pd.testing.assert_frame_equal(again.tables[name], table)
    assert [*tmp_path.iterdir()] == []


def test_what_was_chosen_otherwise_or_is_damaged_is_chosen_again(tmp_path: Path) -> None:
    expected = mv.recipes.fit("grammar", "toy", most=10)
    for damage in (None, b"", b"no file of numbers"):
        with pytest.raises(Cancelled):  # after the choice, from more sentences
            mv.recipes.fit(
                "grammar", "toy", most=12, resume=tmp_path, cancelled=partial(_has_file, tmp_path / CHOICE_FILE)
            )
        if damage is not None:
            (tmp_path / CHOICE_FILE).write_bytes(damage)
        again = mv.recipes.fit("grammar", "toy", most=10, resume=tmp_path)
        for name, table in expected.tables.items():
            pd.testing.assert_frame_equal(again.tables[name], table)


def _has_file(file: Path) -> bool:
    return file.exists()


def test_sentences_that_cannot_be_read_leave_the_other_half(tiny: Tiny) -> None:
    """The one sentence that can be read is fitted, and none is held out."""
    explained = mv.recipes.fit(plain("a " * 300, "the dog"), tiny("bert")).tables["explained"]
    assert explained["fitted"].between(0, 1).all()
    assert explained["held_out"].isna().all()
    assert explained["even"].isna().all()
    with pytest.raises(CorpusError, match=r"Nothing in .* can be read. Give another"):
        mv.recipes.fit(plain("the dog", "the girl"), "toy", score=plain("a " * 300))


def test_what_recipes_explain_is_the_same_from_any_shards(measured: Recipes, toy: Encoder, tmp_path: Path) -> None:
    file = tmp_path / "c.conllu"
    file.write_text(treebank(22, per_document=2), "utf-8")
    kind = explained_sums.RecipeSums(2, ResamplingUnits(False, None), {"trained": [described.make_shares(measured)]})
    whole = measure_sums([toy], mv.read_corpus(file), kind)
    layout = lay_out_corpus("c", [file], 300)
    parts = [part for part in layout.parts if kind.count_sentences(part.sentences, part.first)]
    assert len(parts) > 2
    model, summing = WorkerModel.from_encoder(toy), PartSums(("trained",), 512, kind)
    sums = merge_sums([summing.measure_part(model, part) for part in reversed(parts)])
    ours, theirs = (explained_sums.ExplainedSums.from_sums(one, [1]) for one in (sums, whole))
    for array, expected in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(array, expected, rtol=1e-12)
    assert theirs.sentences.sum(axis=0).tolist() == [6, 5]
    assert theirs.sentences.sum(axis=1).tolist() == [1] * 11, "by document"


def test_heads_that_are_their_own_attention_lose_nothing_and_even_ones_what_uniform_loses(tiny: Tiny) -> None:
    for family in ("bert", "gpt2", "llama"):
        encoder, forms = tiny(family), ("the", "dog", "ran")
        weights = encoder.encode_words(forms).weights
        heads = [[Head(layer, head) for layer in range(encoder.layers) for head in range(encoder.heads)]]
        states = partial(ablation.compute_states_without, encoder, heads, text="", words=forms)
        np.testing.assert_allclose(
            states(substitute=ablation.attend_with(weights))[0], encoder.states("", words=forms)[0], atol=1e-5
        )
        visible = (weights > 0).any(axis=(0, 1)).astype(np.float32)
        even = np.broadcast_to(visible / visible.sum(axis=1, keepdims=True), weights.shape).copy()
        expected = states(substitute=ablation.make_substitute(encoder, "uniform"))
        np.testing.assert_allclose(states(substitute=ablation.attend_with(even)), expected, atol=1e-5)


def test_heads_replaced_by_their_recipes_are_those_of_a_hook_on_the_plain_model(minilm: Encoder) -> None:
    """On the class of transformers itself: a hook on a layer's attention multiplies its values with what the recipe
    predicts, for two heads of the first layer and one of the third, whose inputs have changed."""
    text, off = "The old cat sat on the mat, and the dog barked.", (Head(0, 2), Head(0, 7), Head(2, 3))
    ids = torch.tensor([minilm.pieces(text).ids])
    plain: Any = AutoModel.from_pretrained(find_local_folder(resolve("minilm")), attn_implementation="eager").eval()
    rows = torch.from_numpy(described.predict_attention(minilm.encode(text)))

    def hook(layer: int, module: Any, args: Any, options: Any, output: Any) -> Any:
        states = args[0] if args else options["hidden_states"]
        values, context = module.value(states), output[0].clone()
        for head in (one.head for one in off if one.layer == layer):
            columns = slice(head * 32, (head + 1) * 32)
            context[:, :, columns] = rows[layer, head] @ values[:, :, columns]
        return (context, *output[1:])

    for layer, block in enumerate(plain.encoder.layer):
        block.attention.self.register_forward_hook(partial(hook, layer), with_kwargs=True)
    with torch.no_grad():
        expected = plain(input_ids=ids, output_attentions=True)
    ours = mv.ablate(minilm, off, text, method="recipe")
    np.testing.assert_allclose(ours.weights, torch.cat(expected.attentions), atol=1e-5)
    states = ablation.compute_states_without(minilm, [off], ablation.attend_with(rows.numpy()), text)
    np.testing.assert_allclose(states, expected.last_hidden_state, atol=1e-4)
    assert np.abs(ours.weights - minilm.encode(text).weights).max() > 0.05


def test_the_toy_loses_little_when_its_heads_are_only_their_recipes() -> None:
    lost = mv.recipes.ablate(mv.recipes.load("toy"), grammar.corpus(20, seed=5))
    assert tuple(lost.columns) == replacements.COLUMNS
    by = lost.pivot_table(values="lost", index="part", columns="method")
    assert (by["recipe"] < by[["mean", "uniform", "recipe of another head"]].min(axis=1)).all()
    assert by["recipe"].is_monotonic_increasing
    assert by.loc[[0.25, 0.5], "recipe of random heads"].gt(by.loc[[0.25, 0.5], "recipe"]).all()
    assert by.loc[1, "recipe of random heads"] == pytest.approx(by.loc[1, "recipe"], abs=1e-6)  # all of them
    assert (lost["low"] <= lost["lost"]).all()
    assert (lost["lost"] <= lost["high"]).all()


def test_what_heads_still_find_is_counted_by_hand_for_the_whole_model_and_with_recipes(toy: Encoder) -> None:
    """By documents too: the interval is that over the counts of each."""
    named = [replace(one, document=f"d{number % 6}") for number, one in enumerate(grammar.corpus(15, seed=5).sentences)]
    corpus, recipes = replace(grammar.corpus(15, seed=5), sentences=tuple(named)), mv.recipes.load("toy")
    table = mv.recipes.score(recipes, corpus)
    assert tuple(table.columns) == ACCURACY_COLUMNS
    whole, all_recipes = table.iloc[0], table.query("method == 'recipe' and part == 1").iloc[0]
    roles = [role for role in load_bundled_roles("toy") if role.role == "syntax"]
    first = [Head(0, head) for head in range(4)]  # those of the last layer change no weights
    right, cases = np.zeros((6, 2), np.int64), np.zeros(6, np.int64)
    for number, text in enumerate(study.list_readable_texts(toy, corpus, 15)):
        sentence, words = text.sentence, text.pieces.words
        read = toy.encode_words(sentence.forms)
        means = predict(described.make_shares(recipes), text).reshape(read.weights.shape)
        replaced = mv.ablate(toy, first, "", method="recipe", means=means, words=sentence.forms)
        for which, weights in enumerate((read.weights, replaced.weights)):
            pointed = find_pointers(reduce_to_words(weights.reshape(8, *weights.shape[2:]), words))
            of_roles = [list_arcs(sentence, pointed, role.head.place(4), *role.detail.split()) for role in roles]
            right[number % 6, which] += sum(arc.is_right for found in of_roles for arc in found)
        cases[number % 6] += sum(map(len, of_roles))
    assert whole[["role_cases", "role_documents"]].tolist() == [cases.sum(), 6]
    assert [whole["roles"], all_recipes["roles"]] == pytest.approx(right.sum(axis=0) / cases.sum())
    low, high = Documents([f"d{number}" for number in range(6)]).interval(right, cases)
    assert [whole["roles_low"], all_recipes["roles_low"]] == pytest.approx(low)
    assert [whole["roles_high"], all_recipes["roles_high"]] == pytest.approx(high)
    assert len({*right.sum(axis=0)}) == 2
    assert table["pronouns_low"].lt(table["pronouns_high"]).all()
    assert whole["pronouns"] > table.query("method == 'uniform' and part == 1")["pronouns"].item()
    with pytest.raises(SettingError, match="No roles of repeater"):
        mv.recipes.score(mv.recipes.load("repeater"), "repeats", most=2)


def test_a_corpus_that_names_no_documents_counts_as_one() -> None:
    corpus = grammar.corpus(5, seed=5)
    corpus = replace(corpus, sentences=tuple(replace(sentence, document="") for sentence in corpus.sentences))
    assert mv.recipes.ablate(mv.recipes.load("toy"), corpus)["documents"].unique().tolist() == [1]


def test_random_heads_are_as_many_drawn_for_each_sentence() -> None:
    prepared = ReplacementStudy.prepare(mv.recipes.load("toy"), "grammar", None, 3)
    replacing, toy = VectorCases(*prepared.settings), prepared.encoder
    texts = {number: texts_of.read_text(toy, grammar.corpus().sentences[number]) for number in prepared.texts.numbers}
    assert len(texts) == 3
    every = {Head(layer, head) for layer in range(2) for head in range(4)}
    drawn = [[*replacing.substitutes(toy, number, text)][-1][1] for number, text in texts.items() if text]
    assert drawn == [[*replacing.substitutes(toy, number, text)][-1][1] for number, text in texts.items() if text]
    assert [[len({*heads}) for heads in parts] for parts in drawn] == [[2, 4, 8]] * 3
    assert len({frozenset(parts[1]) for parts in drawn}) > 1
    assert all({*parts[0]} < {*parts[1]} < {*parts[2]} == every for parts in drawn)


def test_without_documents_or_pronouns_an_accuracy_has_wilsons_interval_or_none() -> None:
    corpus = grammar.corpus(60, seed=5)
    some = [replace(one, mentions=(), document="") for one in corpus.sentences[:3]]
    row = mv.recipes.score(mv.recipes.load("toy"), replace(corpus, sentences=tuple(some))).iloc[0]
    bounds = wilson_interval(row["roles"] * row["role_cases"], row["role_cases"])
    assert [row["roles_low"], row["roles_high"]] == pytest.approx([*bounds])
    assert row["role_documents"] == 1
    assert row[["pronoun_cases", "pronoun_documents"]].tolist() == [0, 0]
    assert row[["pronouns", "pronouns_low", "pronouns_high"]].isna().all()


def test_what_recipes_lose_can_be_watched_and_stopped() -> None:
    shipped, seen = mv.recipes.load("toy"), list[float]()
    mv.recipes.ablate(shipped, "grammar", most=3, progress=lambda so_far: seen.append(so_far.fraction))
    assert seen == pytest.approx([reading / 9 for reading in range(1, 10)])  # three passes
    with pytest.raises(Cancelled):
        mv.recipes.ablate(shipped, "grammar", most=3, cancelled=lambda: True)
    with pytest.raises(SettingError, match="Read 2 to 100,000 sentences"):
        mv.recipes.ablate(shipped, "grammar", most=0)


@pytest.mark.parametrize("measure", [mv.recipes.ablate, mv.recipes.score])
def test_what_is_replaced_continues_after_a_stop_and_does_not_depend_on_parts(
    measure: Callable[..., pd.DataFrame], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the sentences is too long, so that the random heads of those after it are drawn by another number."""
    corpus = grammar.corpus(8, seed=5)
    long = replace(corpus.sentences[2], words=corpus.sentences[2].words * 100)
    corpus = replace(corpus, sentences=(*corpus.sentences[:2], long, *corpus.sentences[3:]))
    shipped, toy = mv.recipes.load("toy"), mv.load("toy")
    expected, stops = measure(shipped, corpus, toy), [*[False] * 19, True]  # in the last of three passes
    with pytest.raises(Cancelled):
        measure(shipped, corpus, toy, resume=tmp_path, cancelled=lambda: stops.pop(0))
    read, measured = list[int](), replacements.ReplacementCases.cases

    def cases(self: replacements.ReplacementCases, encoder: Encoder, numbered: Any) -> Cases:
        read.extend(number for number, _ in numbered)
        return measured(self, encoder, numbered)

    monkeypatch.setattr(replacements.ReplacementCases, "cases", cases)
    pd.testing.assert_frame_equal(measure(shipped, corpus, toy, resume=tmp_path), expected, check_exact=True)
    assert read == [4, 5, 6, 7]
    assert not [*tmp_path.iterdir()]
    for before in (3, 11):  # in the first passes
        with pytest.raises(Cancelled):
            measure(shipped, corpus, toy, resume=tmp_path, cancelled=partial(next, iter([*[False] * before, True])))
        seen = list[Progress]()
        resumed = measure(shipped, corpus, toy, resume=tmp_path, progress=seen.append)
        pd.testing.assert_frame_equal(resumed, expected, check_exact=True)
        assert [(so_far.done, so_far.total) for so_far in seen] == [(done, 24) for done in range(before + 2, 25)]
        assert not [*tmp_path.iterdir()]
    prepared, together = ReplacementStudy.prepare(shipped, corpus, toy, 100), Cases()
    kind = VectorCases(*prepared.settings)
    for first, end in ((0, 3), (3, 4), (4, 8)):
        part = LocalRun(toy, replace(corpus, sentences=corpus.sentences[first:end]), kind, first=first)
        together.add(collect_cases(part, lambda _: None))
    whole = collect_cases(LocalRun(toy, corpus, kind), lambda _: None)
    assert together.units == whole.units
    np.testing.assert_array_equal(together.cases, whole.cases)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the dog saw the girl .\nthe girl saw the dog .\nthe dog ran .\nthe girl ran .\n")
    out = tmp_path / "out"
    assert main(["recipes", str(text), "--model", "toy", "--out", str(out)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert "toy on text.txt, scored on the odd-numbered sentences: " in shown[0]
    assert len(shown) == 9
    assert "L0H0" in shown[1]
    assert " explained, " in shown[1]
    table = mv.recipes.load(out).tables["explained"]
    assert f"more than the best single rule on {(table['held_out'] > table['best_rule']).sum()} of 8 heads" in shown[0]
    assert sorted(path.name for path in out.iterdir()) == [
        *("explained.csv", "recipes.csv", "recipes.json", "untrained.csv")
    ]
    assert len(mv.recipes.load(out).tables["explained"]) == 8


def test_the_command_marks_intervals_over_few_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sentences = [
        replace(one, document=f"d{number % 2}") for number, one in enumerate(grammar.corpus(4, seed=5).sentences)
    ]
    file = tmp_path / "c.conllu"
    file.write_text(format_conllu(sorted(sentences, key=lambda one: one.document)), "utf-8")
    out = tmp_path / "out"
    assert main(["recipes", "toy", "--score", str(file), "--replace", "--out", str(out)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("over 2 documents: few documents: applies to these alone")
    assert pd.read_csv(out / "accuracy.csv")["role_documents"].tolist() == [2] * 16


def test_the_command_scores_another_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, sentence in (("a.txt", "the dog ran ."), ("b.txt", "the girl saw the dog .")):
        (tmp_path / name).write_text(f"{sentence}\n" * 4)
    files = [str(tmp_path / name) for name in ("a.txt", "b.txt")]
    out = str(tmp_path / "out")
    assert main(["recipes", files[0], "--score", files[1], "--model", "toy", "--replace", "--out", out]) == 0
    assert "scored on b.txt" in capsys.readouterr().out
    found = mv.recipes.load(out)
    assert found.tables["explained"]["other"].between(0, 1).all()
    assert (tmp_path / "out" / "replaced.csv").read_text("utf-8").splitlines()[0] == ",".join(replacements.COLUMNS)
    again = tmp_path / "again"
    assert main(["recipes", out, "--score", files[1], "--out", str(again)]) == 0
    assert "toy on a.txt, scored on b.txt" in capsys.readouterr().out
    ours, theirs = ({**one.facts, "mean": None} for one in (mv.recipes.load(again), found))
    assert ours == theirs
    assert main(["recipes", "none.txt", "--model", "toy", "--out", str(tmp_path / "out")]) != 0
    assert_one_line(capsys.readouterr().err, "none.txt")
    assert main(["recipes", "grammar", "--model", "toy", "--workers", "2", "--out", str(tmp_path / "none")]) != 0
    assert_one_line(capsys.readouterr().err, "Measure it without a cluster (--workers, --cluster)")
    assert not (tmp_path / "none").exists()


def test_a_recipe_in_words_weighs_classes_by_how_often_they_occur(measured: Recipes) -> None:
    rows = [(0, 0, "punctuation", "[SEP]", 1.0), (0, 0, "content", "the token after", 1.0)]
    rows += [(layer, head, "all", "everywhere", 1.0) for layer in range(2) for head in range(4) if layer or head]
    tables = {
        "recipes": pd.DataFrame(rows, columns=list(HEADINGS["recipes"])),
        "explained": measured.tables["explained"].assign(other=np.nan, held_out=0.8, even=[0.4, *[0.78] * 7]),
    }
    facts = {**measured.facts, "classes": [0, 0, 1, 0, 3]}
    first, *others = described.describe_recipes(Recipes(facts, tables))
    assert [(part.name, part.kind) for part in first.parts] == [("the token after", "position"), ("[SEP]", "special")]
    assert [part.share for part in first.parts] == pytest.approx([0.6, 0.2])
    assert not first.is_even
    assert all(head.is_even for head in others)


def test_a_head_that_even_attention_hardly_explains_is_not_called_even() -> None:
    head = described.HeadRecipe(Head(0, 0), (described.RecipePart(UNIFORM_RULE, 0.43),), explained=0.43, even=0.39)
    assert head.describe(str) == "attends 43% everywhere; no rule explains 57%"


def test_a_typed_text_has_the_rules_of_the_same_words_without_annotation() -> None:
    model = mv.load("minilm")
    words = ["Dogs", "chased", "the", "zyxomorphic", "dogs", ",", "barking", "."]
    typed = described.make_rule_text(model.encode(" ".join(words)))
    given = RuleText(Sentence(tuple(map(Word, words))), model.read_words(words))
    assert len(typed) > len(words) + 2  # a word has several pieces
    for rule in RULES:
        assert np.array_equal(make_matrix(rule, typed), make_matrix(rule, given)), rule.name


def test_what_a_recipe_predicts_of_a_reading_is_what_the_study_scores() -> None:
    shipped, model = mv.recipes.load("repeater"), mv.load("repeater")
    words = model.vocabulary.convert_ids_to_tokens([*range(20, 26), *range(20, 26)])
    read = model.encode_words(words)
    predicted = described.predict_attention(read, shipped)
    assert predicted.sum(axis=3) == pytest.approx(np.ones(predicted.shape[:3]))
    assert not np.triu(predicted, 1).any()  # a causal model
    explained = np.minimum(read.weights, predicted).sum(axis=3).mean(axis=2)
    scored = mv.recipes.fit(shipped, score=plain(" ".join(words))).tables["explained"]["other"]
    assert explained.ravel() == pytest.approx(scored.to_numpy(), abs=1e-6)


def test_what_each_rule_takes_of_a_text_is_that_of_a_loop_and_sums_to_what_is_explained(toy: Encoder) -> None:
    """With the annotation of the sentence, and without; annotation of other words is not used."""
    sentence, shipped = grammar.corpus(3, seed=5).sentences[0], mv.recipes.load("toy")
    read, shares = toy.encode_words(sentence.forms), described.make_shares(shipped)
    syntax = [number for number, rule in enumerate(RULES) if rule.needs]
    for gold in (sentence, None):
        text = described.make_rule_text(read, gold)
        expected, whole = np.zeros(shares.shape[1:]), predict(shares, text)
        for head, query, key in np.ndindex(whole.shape):
            of_rules = shares[text.classes[query], head]
            applying = {
                rule: of_rules[rule]
                for rule in np.flatnonzero(of_rules).tolist()
                if make_matrix(RULES[rule], text)[query].any()
            }
            for rule, share in (applying or {UNIFORM_RULE: 1.0}).items():
                mixed = share / sum(applying.values() or [1.0]) * make_matrix(RULES[rule], text)[query, key]
                if mixed:
                    weight = read.weights.reshape(whole.shape)[head, query, key]
                    expected[head, rule] += min(weight, whole[head, query, key]) / whole[head, query, key] * mixed
        taken = described.explain_by_rule(read, gold)
        np.testing.assert_allclose(taken, expected / len(text), atol=1e-6)
        explained = np.minimum(read.weights.reshape(whole.shape), whole).sum(axis=2).mean(axis=1)
        np.testing.assert_allclose(taken.sum(axis=1), explained, atol=1e-6)
        assert taken[:, syntax].any() == (gold is not None)
    assert np.array_equal(
        described.explain_by_rule(read, grammar.corpus(3, seed=5).sentences[1]), described.explain_by_rule(read)
    )


def test_what_is_unexplained_is_weight_minus_prediction(tiny: Tiny) -> None:
    read = mv.load("minilm").encode("The cat sat on the mat.")
    left = mv.quantities.unexplained(read)
    assert left.weights == pytest.approx(read.weights - described.predict_attention(read), abs=1e-7)
    assert left.weights.sum(axis=3) == pytest.approx(np.zeros(left.weights.shape[:3]), abs=1e-5)
    assert (left.quantity, left.made[-1]) == ("unexplained", "unexplained")
    before = described.load_bundled_recipes("minilm").head("L0H2")["explained"]["other"].item()
    assert 1 - np.abs(left["L0H2"]).sum(axis=1).mean() / 2 == pytest.approx(before, abs=0.01)
    for other in (read.by_words(), left, mv.quantities.rollout(read)):
        with pytest.raises(ShapeError, match="unchanged attention weights"):
            mv.quantities.unexplained(other)
    with pytest.raises(SettingError, match="no recipes of the heads"):
        mv.quantities.unexplained(tiny("bert").encode("the cat"))
    with pytest.raises(SettingError, match="heads of repeater"):
        mv.quantities.unexplained(read, mv.recipes.load("repeater"))
    with pytest.raises(TextError, match="at most 256"):
        mv.quantities.unexplained(mv.load("minilm").encode("a " * 300))


def test_what_is_unexplained_of_an_annotated_sentence_is_without_all_rules(toy: Encoder) -> None:
    sentence, recipes = grammar.corpus(3, seed=5).sentences[0], mv.recipes.load("toy")
    read = toy.encode_words(sentence.forms)
    text = RuleText(sentence, toy.read_words(sentence.forms))
    rows = predict(described.make_shares(recipes), text).reshape(read.weights.shape)
    left, plainly = mv.quantities.unexplained(read, gold=sentence), mv.quantities.unexplained(read)
    assert left.weights == pytest.approx(read.weights - rows, abs=1e-6)
    assert np.abs(left.weights).sum() < np.abs(plainly.weights).sum()
    again = described.add_annotation(plainly, sentence)
    assert again.weights == pytest.approx(left.weights, abs=1e-6)
    assert (again.key, again.made) == (left.key, left.made)
    for other in (read, described.add_annotation(plainly, grammar.corpus(3, seed=5).sentences[1])):
        assert other.made[-1] != left.made[-1]
    assert "unexplained by rules that know its annotation" in left.heatmap("L1H2").caption
    assert "unexplained by rules that need no annotation" in plainly.heatmap("L1H2").caption
    assert "load_attention" in write_head_code(left, "heatmap", [Head(1, 2)], View(), Size(), "a.svg")
    with pytest.raises(TextError, match="differ from those of the text"):
        mv.quantities.unexplained(read, gold=grammar.corpus(3, seed=5).sentences[1])


def test_over_a_corpus_heads_become_recipes_that_know_the_annotation(toy: Encoder) -> None:
    corpus, off = grammar.corpus(2, seed=5), (Head(0, 1), Head(1, 2))
    shares, lost = described.make_shares(mv.recipes.load("toy")), list[float]()
    for sentence in corpus.sentences:
        rows = predict(shares, RuleText(sentence, toy.read_words(sentence.forms))).astype(np.float32)
        request = Request(words=sentence.forms, method="recipe")
        by, plain = (effects.substitute(toy, request, 0, gold=gold) for gold in (sentence, None))
        states = partial(ablation.compute_states_without, toy, [off], text="", words=sentence.forms)
        expected = states(substitute=ablation.attend_with(rows.reshape(2, 4, *rows.shape[1:])))
        np.testing.assert_allclose(states(substitute=by), expected, atol=1e-6)
        lost.append(float(np.abs(states(substitute=plain) - expected).max()))
    assert max(lost) > 1e-3, "the rules that need annotation matter here"


def test_other_weights_of_the_same_name_have_no_recipe() -> None:
    assert described.load_bundled_recipes("minilm", "53aa51172d14") is not None
    assert described.load_bundled_recipes("minilm", "another") is None
    assert described.load_bundled_recipes("../recipes/minilm") is None
    assert described.list_head_recipes("none") == ()


def test_heads_replaced_by_their_recipes_on_a_text_and_over_a_corpus() -> None:
    model, text, off = mv.load("minilm"), "The cat sat on the mat.", (Head(0, 2), Head(1, 8))
    request = Request("minilm", text, off=off, method="recipe")
    rows = described.predict_attention(model.encode(text))
    answered = reading.read(model, request)
    expected = model.through(text, "", ablation.make_ablation_tap([off], ablation.attend_with(rows)))[0]
    assert np.array_equal(answered.weights, expected.weights)
    assert answered.made[-1].row.method == "recipe"
    assert mv.ablate(model, off, text, method="recipe").key == answered.key
    ways = (Request(text=text, method=how) for how in ("recipe", "zero"))
    lost = {asked.method: effects.measure_changes(model, [off], asked).sentence[0] for asked in ways}
    assert 0 < lost["recipe"] < lost["zero"]
    over = mv.corpus_ablation_effects(grammar.corpus(4), off, "minilm", method="recipe").table()
    assert np.isfinite(over["effect"]).all()


def test_recipes_that_were_found_replace_heads(measured: Recipes, toy: Encoder) -> None:
    words = ("the", "dog", "barks")
    rows = described.predict_attention(toy.encode_words(words), measured)
    by_recipes = mv.ablate(toy, ["L0H2"], "", method="recipe", words=words, recipes=measured)
    by_rows = mv.ablate(toy, ["L0H2"], "", method="recipe", words=words, means=rows)
    assert by_recipes.key == by_rows.key
    assert np.array_equal(by_recipes.weights, by_rows.weights)
    assert by_recipes.key != mv.ablate(toy, ["L0H2"], "", method="recipe", words=words).key


def test_the_lines_of_a_figure_without_heads_by_shipped_recipes_make_it_again(
    toy: Encoder, measured: Recipes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("the", "dog", "barks")
    for read in (
        mv.ablate(toy, ["L0H2"], "the dog barks .", method="recipe"),
        mv.ablate(toy, ["L0H2", "L0H3"], "", method="recipe", words=words),
    ):
        code = write_head_code(read, "heatmap", [Head(1, 2)], View(), Size(), "figure.svg")
        assert "load_attention" not in code
        exec(code, {})
        assert (tmp_path / "figure.svg").read_bytes() == read.heatmap("L1H2").to_bytes(".svg")
    by_others = mv.ablate(toy, ["L0H2"], "", method="recipe", words=words, recipes=measured)
    for read in (by_others, mv.ablate(toy, ["L0H2"], "", method="recipe", words=words).by_words()):
        assert "load_attention" in write_head_code(read, "heatmap", [Head(1, 2)], View(), Size(), "figure.svg")


def test_only_heads_with_recipes_are_replaced_by_them(tiny: Tiny) -> None:
    with pytest.raises(SettingError, match=r"predicted weights .* are missing"):
        ablation.encode_without(mv.load("minilm"), ["L0H2"], "A cat.", method="recipe")
    with pytest.raises(SettingError, match="no recipes of the heads"):
        mv.ablate(tiny("bert"), ["L0H0"], "the cat", method="recipe")
    with pytest.raises(SettingError, match="heads of repeater"):
        mv.ablate(mv.load("minilm"), ["L0H2"], "A cat.", method="recipe", recipes=mv.recipes.load("repeater"))
    with pytest.raises(SettingError, match="recipes= goes with the method “recipe”"):
        mv.ablate(mv.load("minilm"), ["L0H2"], "A cat.", recipes=mv.recipes.load("minilm"))
    with pytest.raises(SettingError, match="no recipes of the heads"):
        mv.corpus_ablation_effects(grammar.corpus(2), ["L0H0"], tiny("bert"), method="recipe")
