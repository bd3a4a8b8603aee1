"""Two heads on the same cases: the counts of a profile, a case by case loop, two models, and the command."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mha_viz as mv
from mha_viz.analysis.paired_accuracy import COLUMNS
from mha_viz.analysis.syntax import DIRECTIONS
from mha_viz.attention import Head
from mha_viz.cli import main
from mha_viz.corpus import grammar
from mha_viz.errors import CorpusError, SettingError, UnknownHead
from mha_viz.models.reading import loading
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import load
from mha_viz.study.cases import Cases
from mha_viz.study.paired_heads import JudgedCases
from mha_viz.study.plan import find_all_pointers
from mha_viz.study.run import Progress

CORPUS = grammar.corpus(130)


def accuracies(profile: mv.Profile, relation: str, direction: str) -> dict[Head, float]:
    table = profile.tables["syntax"].query("level == 'base' and relation == @relation and direction == @direction")
    rows = table[["layer", "head", "accuracy"]].itertuples(index=False)
    return {Head(int(layer), int(head)): accuracy for layer, head, accuracy in rows}


@pytest.fixture(scope="module")
def measured() -> mv.Profile:
    return mv.profile(CORPUS, "toy")


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_accuracies_are_those_of_the_profile(direction: str, measured: mv.Profile) -> None:
    by_head = accuracies(measured, "nsubj", direction)
    (pair,) = mv.roles.compare_heads(CORPUS, "L1H2", "L0H0", "nsubj", direction, model="toy")
    assert (pair.accuracy, pair.other_accuracy) == pytest.approx((by_head[Head(1, 2)], by_head[Head(0, 0)]))
    assert pair.difference == pair.accuracy - pair.other_accuracy
    assert pair.interval.low < pair.difference < pair.interval.high


def test_the_interval_is_that_of_a_loop_over_the_words() -> None:
    """Each case by itself, and draw by draw; 130 documents, so that the interval is that of the draws."""
    pointed, net, n = find_all_pointers(load("toy"), CORPUS), np.zeros(130), np.zeros(130)
    for number, sentence in enumerate(CORPUS.sentences):
        one = pointed[number]
        assert one is not None
        for word, gold in enumerate(sentence.words):
            if gold.relation == "nsubj":
                net[number] += (one.row[6, word] == gold.head) - float(one.row[0, word] == gold.head)
                n[number] += 1
    assert len({sentence.document for sentence in CORPUS.sentences}) == 130
    draws = np.random.default_rng(0).integers(0, 130, (2000, 130)).tolist()
    differences = [sum(net[document] for document in draw) / sum(n[document] for document in draw) for draw in draws]
    (pair,) = mv.roles.compare_heads(CORPUS, "L1H2", "L0H0", "nsubj", model="toy")
    assert pair.n == n.sum()
    assert pair.documents == np.count_nonzero(n)
    assert pair.interval == pytest.approx(np.percentile(differences, (2.5, 97.5)).tolist(), abs=1e-12)


def test_a_head_is_as_good_as_itself() -> None:
    (pair,) = mv.roles.compare_heads(CORPUS, "L1H2", (1, 2), "nsubj", model="toy")
    assert (pair.difference, *pair.interval) == (0, 0, 0)


def test_the_same_head_at_two_steps_of_a_training(measured: mv.Profile) -> None:
    seen: list[Progress] = []
    (pair,) = mv.roles.compare_heads(
        CORPUS, "L1H2", "L1H2", "nsubj", model="toy", other_model="toy@100", progress=seen.append
    )
    after, before = (accuracies(one, "nsubj", "dep_to_head") for one in (measured, mv.profile(CORPUS, "toy@100")))
    assert (pair.accuracy, pair.other_accuracy) == (after[Head(1, 2)], before[Head(1, 2)])
    assert (pair.one.model, pair.other.model) == ("toy", "toy@100")
    assert seen == sorted(seen)
    assert seen[-1].fraction == 1


def test_a_sentence_that_one_model_cannot_read_is_no_case_of_either(monkeypatch: pytest.MonkeyPatch) -> None:
    from mha_viz.study import paired_heads as room

    whole, blocks = (
        mv.roles.compare_heads(CORPUS, "L1H2", "L1H2", "nsubj", model="toy", other_model="toy@100")[0],
        room.iter_word_blocks,
    )
    monkeypatch.setattr(
        room,
        "iter_word_blocks",
        lambda encoder, some: (
            one for one in blocks(encoder, some) if "@" not in encoder.name or some[one[0]] is not CORPUS.sentences[0]
        ),
    )
    (pair,) = mv.roles.compare_heads(CORPUS, "L1H2", "L1H2", "nsubj", model="toy", other_model="toy@100")
    first = sum(word.relation == "nsubj" for word in CORPUS.sentences[0].words)
    assert pair.n == whole.n - first < whole.n


def test_a_comparison_continues_with_the_model_that_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compare = partial(
        mv.roles.compare_heads, CORPUS, "L1H2", "L1H2", "nsubj", model="toy", other_model="toy@100", resume=tmp_path
    )
    whole, cases, models = compare(), JudgedCases.cases, list[str]()
    assert not [*tmp_path.iterdir()]

    def stopped(self: JudgedCases, encoder: Encoder, numbered: Any) -> Cases:
        models.append(encoder.name)
        if models == ["toy", "toy", "toy@100"]:
            raise KeyboardInterrupt
        return cases(self, encoder, numbered)

    monkeypatch.setattr(JudgedCases, "cases", stopped)
    monkeypatch.setattr(JudgedCases, "size", 65)
    monkeypatch.setattr("mha_viz.study.cases.FIRST_SIZE", 65)
    with pytest.raises(KeyboardInterrupt):
        compare()
    assert compare() == whole
    assert models == ["toy", "toy", "toy@100", "toy@100", "toy@100"]


def test_the_first_step_is_short() -> None:
    seen = list[Progress]()
    mv.roles.compare_heads(CORPUS, "L1H2", "L1H1", "nsubj", model="toy", progress=seen.append)
    assert seen[0] == Progress(25, 130)
    assert seen[1].done in (50, 75), "as many again, or twice as many if that was fast"
    assert seen[-1] == Progress(130, 130)


def test_without_documents_the_interval_speaks_of_these_cases_alone() -> None:
    unnamed = replace(CORPUS, sentences=tuple(replace(one, document="") for one in CORPUS.sentences))
    (pair,) = mv.roles.compare_heads(unnamed, "L1H1", "L0H0", "nsubj", "head_row", model="toy")
    assert pair.documents == 1
    assert pair.interval.low < pair.difference < pair.interval.high


def test_every_role_of_a_profile_beside_the_same_head_or_one_head() -> None:
    toy = mv.load_profile("toy")
    roles = [(f.head, f.detail) for f in toy.findings() if f.role == "syntax"]
    table = mv.roles.compare(toy, CORPUS, "toy@100").table()
    assert [*table.columns] == [*COLUMNS]
    heads = [Head(*map(int, pair)) for pair in table[["layer", "head"]].itertuples(index=False)]
    assert [*zip(heads, table["relation"] + " " + table["direction"], strict=True)] == roles
    assert (table["layer"] == table["other_layer"]).all()
    beside = mv.roles.compare(toy, CORPUS, "toy", "L1H2")
    assert {pair.other.head for pair in beside} == {Head(1, 2)}
    assert {pair.difference for pair in beside if pair.one.head == (1, 2)} == {0}
    assert repr(beside) == repr(beside.table())


def test_what_cannot_be_compared_is_said() -> None:
    with pytest.raises(CorpusError, match="no case of vocative"):
        mv.roles.compare_heads(CORPUS, "L1H1", "L0H0", "vocative", model="toy")
    with pytest.raises(CorpusError, match="has no trees"):
        mv.roles.compare_heads("repeats", "L1H1", "L0H0", "nsubj", model="toy")
    with pytest.raises(SettingError, match="not a direction"):
        mv.roles.compare_heads(CORPUS, "L1H1", "L0H0", "nsubj", "down", model="toy")
    with pytest.raises(UnknownHead, match="L9H0"):
        mv.roles.compare_heads(CORPUS, "L1H1", "L9H0", "nsubj", model="toy")
    with pytest.raises(CorpusError, match="no roles of syntax"):
        mv.roles.compare(replace(mv.load_profile("toy"), tables={}), CORPUS, "toy")
    with pytest.raises(SettingError, match="not a profile"):
        mv.roles.compare("toy", CORPUS, "toy")  # type: ignore[arg-type]


# ---- The command -----------------------------------------------------------------------------------------------------


def test_the_command_compares_the_heads_of_roles_with_another_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "pairs.csv"
    assert main(["replicate", "toy", "grammar", "--beside", "toy@100", "--out", str(out)]) == 0
    heading, first, *_, over, last = capsys.readouterr().out.splitlines()
    assert heading.split() == ["head", "role", "cases", "score", "other", "head", "score", "points", "95%", "interval"]
    assert "subject → its verb (nsubj)" in first
    assert "+63.5" in first
    assert over == "The 95% intervals on grammar are over 161 to 400 documents, or blocks of them."
    assert last == "toy beside toy@100: the interval excludes 0 for 7 of 7 roles."
    table = pd.read_csv(out)
    assert [*table.columns] == [*COLUMNS]
    assert table["difference"][0] == pytest.approx(0.635, abs=1e-3)


def test_the_command_reads_both_models_in_the_precision_of_the_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy, loaded = mv.load_profile("toy"), list[tuple[str, str]]()

    def load_noted(model: str, *arguments: Any, dtype: str, **options: Any) -> Any:
        loaded.append((model, dtype))
        return load(model, *arguments, dtype=dtype, **options)

    monkeypatch.setattr(loading, "load", load_noted)
    replace(toy, facts={**toy.facts, "revision": f"{toy.facts['revision']}, bfloat16"}).save(tmp_path / "half")
    assert main(["replicate", str(tmp_path / "half"), "grammar", "--beside", "toy@100"]) == 0
    assert loaded == [("toy", "bfloat16"), ("toy@100", "bfloat16")]


@pytest.mark.parametrize(
    ("code", "more", "words"),
    [
        (3, ["--beside", "toy/L9H9"], "L9H9 does not exist"),
        (2, ["--beside", "toy", "--workers", "2", "--cluster", "tcp://here:1"], "are both given"),
        (2, ["--beside", "toy", "--runs"], "--beside and --runs are both given"),
    ],
)
def test_what_the_command_refuses(code: int, more: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replicate", "toy", "grammar", *more]) == code
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("value", "parsed"), [("toy", ("toy", None)), ("toy@100", ("toy@100", None)), ("toy/L1H2", ("toy", Head(1, 2)))]
)
def test_what_stands_beside_is_a_model_a_profile_or_a_head(value: str, parsed: Any) -> None:
    from mha_viz.cli.replicate import parse_model_or_head

    assert parse_model_or_head(value) == parsed
