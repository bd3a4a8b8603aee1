"""Effects over a corpus, compared sentence by sentence with transformers, and the rule for used roles."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

from mha_viz.analysis.corpus_effects import (
    HEADING,
    LOSS,
    MASKED_WORD,
    VECTOR,
    Variant,
    compute_effect_rows,
    list_variants,
)
from mha_viz.attention import Head
from mha_viz.cli import main
from mha_viz.corpus import grammar
from mha_viz.corpus.sources import read_corpus
from mha_viz.corpus.treebank import Corpus, Mention, Sentence, Word
from mha_viz.errors import CorpusError, SettingError, SumsUnsavedWarning, UnknownHead
from mha_viz.models.intervening import ablation
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import load
from mha_viz.models.reading.probe import find_attention_modules
from mha_viz.request import Request
from mha_viz.study.cases import Cases, LocalRun
from mha_viz.study.corpus_ablation import corpus_ablation_effects
from mha_viz.study.corpus_effects import (
    EffectCases,
    EffectSettings,
    Measurement,
    Progress,
    iter_anaphoric_pronouns,
)
from mha_viz.study.effects import measure_changes
from mha_viz.study.texts import TextCases
from tests.tiny_models import HEADS

Folder = Callable[[str], Path]
Tiny = Callable[[str], Encoder]

TREES = """# newdoc id = one
1\tThe\tthe\tDET\t_\t_\t2\tdet\t_\t_
2\tanimal\tanimal\tNOUN\t_\t_\t3\tnsubj\t_\t_
3\tjumps\tjump\tVERB\t_\t_\t0\troot\t_\t_

# newdoc id = two
1\tThe\tthe\tDET\t_\t_\t2\tdet\t_\t_
2\tfox\tfox\tNOUN\t_\t_\t3\tnsubj\t_\t_
3\twas\tbe\tAUX\t_\t_\t0\troot\t_\t_
4\tquick\tquick\tADJ\t_\t_\t3\txcomp\t_\t_

"""
OFF = Request(off=(Head(0, 0),))
FORMS = (("The", "animal", "jumps"), ("The", "fox", "was", "quick"))


@pytest.fixture
def trees(tmp_path: Path) -> Corpus:
    path = tmp_path / "trees.conllu"
    path.write_text(TREES, "utf-8")
    corpus = read_corpus(path)
    assert isinstance(corpus, Corpus)
    return corpus


def plain(folder: Path, kind: Any, off: Head | None) -> Any:
    """Transformers' own model in which one head outputs zero."""
    model = kind.from_pretrained(folder, attn_implementation="eager").eval()
    if off is not None:

        def hook(_: Any, arguments: Any) -> Any:
            joined = arguments[0].clone().unflatten(-1, (HEADS, -1))
            joined[:, :, off.head] = 0
            return (joined.flatten(-2),)

        find_attention_modules(model.base_model, off.layer).output.register_forward_pre_hook(hook)
    return model


def test_masked_words_of_a_relation_lose_what_transformers_say(trees: Corpus, tiny: Tiny, tiny_folder: Folder) -> None:
    encoder, off = tiny("bert words"), Head(1, 2)
    measured = corpus_ablation_effects(trees, [off], encoder, relation="det")  # the dependents, "The"
    assert (measured.measure, measured.cases, measured.left_out, measured.documents) == (MASKED_WORD, 2, 0, 2)
    falls = []
    for forms in FORMS:
        read = encoder.read_words(forms)
        assert read.words.count(0) == 1
        at, piece = read.words.index(0), read.ids[read.words.index(0)]
        ids = torch.tensor([[encoder.mask if i == at else one for i, one in enumerate(read.ids)]])
        with torch.no_grad():
            before, after = (
                plain(tiny_folder("bert words"), AutoModelForMaskedLM, head)(ids).logits[0, at].double().log_softmax(-1)
                for head in (None, off)
            )
        falls.append(float(before[piece] - after[piece]))
    row = measured.rows[0]
    assert (row.variant, row.effect) == (Variant((off,), "head"), pytest.approx(np.mean(falls), abs=1e-4))
    assert [r.variant.heads[0] for r in measured.rows[1:]] == [Head(1, 0), Head(1, 1), Head(1, 3)]
    assert {r.variant.kind for r in measured.rows[1:]} == {"control"}


def test_the_loss_of_a_text_rises_as_transformers_say(trees: Corpus, tiny: Tiny, tiny_folder: Folder) -> None:
    encoder, off = tiny("gpt2 words"), Head(0, 3)
    measured = corpus_ablation_effects(trees, [off], encoder)
    rises, falls = [], []
    for forms, word in zip(FORMS, (1, 1), strict=True):
        read = encoder.read_words(forms)
        ids = torch.tensor([read.ids])
        with torch.no_grad():
            before, after = (
                plain(tiny_folder("gpt2 words"), AutoModelForCausalLM, head)(ids).logits[0].double().log_softmax(-1)
                for head in (None, off)
            )
        followed = [(before[i - 1, one], after[i - 1, one]) for i, one in enumerate(read.ids) if i]
        rises.append(float(np.mean([b - a for b, a in followed])))
        before_next, after_next = followed[max(i for i, of in enumerate(read.words) if of == word)]
        falls.append(float(before_next - after_next))
    assert measured.measure == LOSS
    assert measured.rows[0].effect == pytest.approx(np.mean(rises), abs=1e-4)
    of_words = corpus_ablation_effects(trees, [off], encoder, relation="nsubj")
    assert of_words.measure == "fall of log p of the token after the word"
    assert of_words.rows[0].effect == pytest.approx(np.mean(falls), abs=1e-4)


def test_vectors_where_there_are_no_words(trees: Corpus, tiny: Tiny) -> None:
    encoder = tiny("bert")
    measured = corpus_ablation_effects(trees, ["L0H0", "L2H1"], encoder, method="uniform")
    assert measured.measure == VECTOR
    assert [row.variant.kind for row in measured.rows] == ["together", "head", "head"] + ["control"] * 6
    assert measured.rows[0].variant.name == "L0H0 L2H1"
    assert all(row.effect > 0 for row in measured.rows)
    words = corpus_ablation_effects(trees, ["L0H0"], encoder, relation="nsubj", direction="head_to_dep")
    assert (words.cases, words.measure) == (2, "1 − cosine of the word’s last state")


def test_a_direction_names_the_words_that_a_head_attends_from(trees: Corpus, tiny: Tiny) -> None:
    encoder = tiny("bert")
    for direction, word in (("dep_to_head", 1), ("head_row", 2)):
        measured = corpus_ablation_effects(trees, ["L1H1"], encoder, relation="nsubj", direction=direction)
        alone = []
        for forms in FORMS:
            pieces = encoder.read_words(forms).words
            tokens = measure_changes(encoder, [(Head(1, 1),)], Request(words=forms)).tokens[0]
            alone.append(np.mean([tokens[i] for i, one in enumerate(pieces) if one == word]))
        assert measured.rows[0].effect == pytest.approx(np.mean(alone), abs=1e-6)


def test_means_are_over_the_corpus_itself_or_the_one_that_is_named(trees: Corpus, tiny: Tiny, tmp_path: Path) -> None:
    encoder = tiny("bert")
    means = ablation.Means(encoder)
    means.add(sentence.forms for sentence in trees.sentences)
    over_itself = corpus_ablation_effects(trees, ["L0H1"], encoder, method="mean")
    given = corpus_ablation_effects(trees, ["L0H1"], encoder, method="mean", means=means.values())
    assert (over_itself.method, given.method) == (f"mean over {trees.name}", "mean")
    assert [row.effect for row in over_itself.rows] == pytest.approx([row.effect for row in given.rows], rel=1e-6)
    (tmp_path / "other.txt").write_text("It sleeps.\n" + "fox " * 200 + "\n", "utf-8")
    other = corpus_ablation_effects(trees, ["L0H1"], encoder, method="mean", means=tmp_path / "other.txt")
    means = ablation.Means(encoder)
    means.add([["It", "sleeps."]])  # the long one cannot be read
    expected = corpus_ablation_effects(trees, ["L0H1"], encoder, method="mean", means=means.values())
    assert other.method == "mean over other.txt"
    assert [row.effect for row in other.rows] == pytest.approx([row.effect for row in expected.rows], rel=1e-6)
    assert other.rows[0].effect != pytest.approx(over_itself.rows[0].effect, rel=1e-3)


def test_what_cannot_be_measured_is_said(trees: Corpus, tiny: Tiny, tmp_path: Path) -> None:
    encoder = tiny("bert")
    for problem, error, more in (
        ("has no word that obj applies to", CorpusError, {"relation": "obj"}),
        ("is not a direction", SettingError, {"relation": "det", "direction": "up"}),
        ("is not a way to switch a head off", SettingError, {"method": "half"}),
        ("most is 0", SettingError, {"most": 0}),
        ("means go with the method mean or resample, not “zero”", SettingError, {"means": "grammar"}),
        ("mean outputs of this model’s heads are missing", SettingError, {"method": "mean", "means": np.zeros((9, 9))}),
    ):
        with pytest.raises(error, match=problem):
            corpus_ablation_effects(trees, ["L0H0"], encoder, **more)  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="No head"):
        corpus_ablation_effects(trees, [], encoder)
    with pytest.raises(UnknownHead):
        corpus_ablation_effects(trees, ["L9H0"], encoder)
    text = tmp_path / "plain.txt"
    text.write_text("The fox jumps.\n", "utf-8")
    with pytest.raises(CorpusError, match="no dependencies"):
        corpus_ablation_effects(text, ["L0H0"], encoder, relation="nsubj")
    assert corpus_ablation_effects(text, ["L0H0"], encoder).cases == 1


def test_sentences_that_are_too_long_are_counted(trees: Corpus, tiny: Tiny, tmp_path: Path) -> None:
    text = tmp_path / "long.txt"
    text.write_text("The fox jumps.\n" + "fox " * 200 + "\n", "utf-8")
    measured = corpus_ablation_effects(text, ["L0H0"], tiny("bert"))
    assert (measured.cases, measured.sentences, measured.left_out) == (1, 2, 1)
    assert np.isnan(measured.rows[0].low)  # one sentence has no interval


def test_what_was_read_has_a_result(trees: Corpus, tiny: Tiny) -> None:
    run = Measurement(tiny("bert"), trees, EffectSettings(OFF))
    with pytest.raises(CorpusError, match="no sentence that can be measured"):
        run.result()
    next(run.iter_progress())
    assert (run.result().cases, run.result().sentences) == (1, 1)


# ---- The rule ----------------------------------------------------------------------------------------------------


HEAD, OTHER, THIRD = (
    Variant((Head(0, number),), kind) for number, kind in ((0, "head"), (1, "control"), (2, "control"))
)


def test_a_role_is_used_when_no_other_head_of_its_layer_does_as_much() -> None:
    generator = np.random.default_rng(0)
    noise = generator.normal(0, 0.05, (60, 3))
    units = [str(case // 3) for case in range(60)]
    for effects, used in (([1.0, 0.2, 0.5], True), ([1.0, 0.2, 0.99], False), ([1.0, 1.5, 0.1], False)):
        row = compute_effect_rows([HEAD, OTHER, THIRD], np.array(effects) + noise, units, has_role=True)[0]
        assert row.used is used
        assert row.more == pytest.approx(effects[0] - max(effects[1:]), abs=0.05)
        assert row.low < row.effect < row.high
        assert row.more_low < row.more < row.more_high
    assert compute_effect_rows([HEAD, OTHER], noise[:, :2], units, has_role=False)[0].used is None
    assert compute_effect_rows([HEAD], noise[:, :1], units, has_role=True)[0].used is None  # nothing to compare it with
    assert compute_effect_rows([HEAD, OTHER], noise[:, :2], ["one"] * 60, has_role=True)[0].used is None  # no interval


@pytest.mark.parametrize("method", ["zero", "mean", "resample"])
def test_of_a_corpus_that_is_cut_every_third_sentence_is_read(method: str) -> None:
    whole = grammar.corpus(35)
    cut = replace(whole, sentences=whole.sentences[::3])
    settings = EffectSettings(Request(off=(Head(1, 1),), method=method), relation="nsubj", most=12)
    ours, theirs = (Measurement(load("toy"), corpus, settings) for corpus in (whole, cut))
    for run in (ours, theirs):
        assert max(done.done for done in run.iter_progress()) == (24 if method == "mean" else 12)
    assert {number for _, number in ours.measured_cases.units} <= {*range(0, 35, 3)}
    assert (ours.result().sentences, ours.result().every, theirs.result().every) == (12, 3, 1)
    np.testing.assert_array_equal(ours.measured_cases.cases, theirs.measured_cases.cases)


def test_intervals_are_those_of_drawn_documents() -> None:
    effects = np.array([[0.0], [0.0], [1.0]])
    row = compute_effect_rows([HEAD], effects, ["a", "a", "b"], has_role=False)[0]
    half = 12.706 * np.sqrt((1 - 1 / 3) ** 2 + (0 - 1 / 3) ** 2)  # two documents; without one, the mean is 1 or 0
    assert (row.effect, row.low, row.high) == pytest.approx((1 / 3, 1 / 3 - half, 1 / 3 + half))
    many = compute_effect_rows(
        [HEAD], np.tile(effects, (40, 1)), [str(case // 3) for case in range(120)], has_role=False
    )[0]
    assert (many.low, many.high) == pytest.approx((1 / 3, 1 / 3))  # whatever is drawn of documents that are alike
    assert np.isnan(compute_effect_rows([HEAD], effects, ["a"] * 3, has_role=False)[0].low)


def test_a_pronoun_that_heads_several_mentions_counts_once_and_only_after_an_antecedent() -> None:
    words = tuple(Word(form, "PRON") for form in ("they", "all", "he", "she", "them"))
    nested = (Mention("1", 0, 1, 0), Mention("1", 0, 2, 0))
    assert [*iter_anaphoric_pronouns(Sentence(words, nested))] == []
    split = (Mention("2", 2, 3, 2), Mention("3", 3, 4, 3), Mention("2", 4, 5, 4), Mention("3", 4, 5, 4))
    assert [*iter_anaphoric_pronouns(Sentence(words, split))] == [4]


def test_heads_with_the_same_role_are_no_controls() -> None:
    variants = list_variants([Head(0, 1), Head(1, 0)], [Head(0, 2)], 4)
    names = [(variant.name, variant.kind) for variant in variants]
    assert names[:3] == [("L0H1 L1H0", "together"), ("L0H1", "head"), ("L1H0", "head")]
    assert [name for name, kind in names if kind == "control"] == ["L0H0", "L0H3", "L1H1", "L1H2", "L1H3"]


# ---- The command -------------------------------------------------------------------------------------------------


def test_the_command_writes_and_prints_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "effect.csv"
    command = ["effect", "grammar", "--model", "toy", "--heads", "L1H1", "--relation", "nsubj", "--most", "12"]
    assert main([*command, "--out", str(out)]) == 0
    table = pd.read_csv(out)
    assert tuple(table.columns) == HEADING
    assert table["heads"].tolist() == ["L1H1", "L1H0", "L1H2", "L1H3"]
    measured = corpus_ablation_effects("grammar", ["L1H1"], "toy", relation="nsubj", most=12)
    assert table["effect"].tolist() == pytest.approx([row.effect for row in measured.rows])
    printed = capsys.readouterr().out
    assert "toy on every 34th sentence of grammar, nsubj (dep_to_head): fall of log p of the masked word, z" in printed
    assert "same layer" in printed
    judged = [line for line in printed.splitlines() if line.startswith("L1H1 (2-2): For nsubj it changes the answer ")]
    assert len(judged) == 1
    assert ("the answer most of all heads of its layer." in judged[0]) == measured.rows[0].used
    assert ("the answer no more than other heads of its layer." in judged[0]) != measured.rows[0].used
    assert main([*command, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["heads"] == "L1H1"


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (["--heads", "L9H0"], "L9H0 does not exist"),
        (["--heads", "three"], "three"),
        (["--heads", "L0H0", "--relation", "obj", "--most", "0"], "expected a number of sentences"),
        ([], "--heads"),
    ],
)
def test_the_command_says_what_is_wrong(more: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["effect", "grammar", "--model", "toy", *more]) != 0
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize("read", [0, 3])
def test_the_command_is_stopped_before_and_after_the_first_sentence(
    read: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    all_sentences = Measurement.iter_progress

    def stopped(self: Measurement) -> Iterator[Progress]:
        yield from islice(all_sentences(self), read)
        raise KeyboardInterrupt

    monkeypatch.setattr(Measurement, "iter_progress", stopped)
    table = tmp_path / "effect.csv"
    assert main(["effect", "grammar", "--model", "toy", "--heads", "L1H1", "--out", str(table)]) == 130
    printed = capsys.readouterr()
    assert ("the sentences read so far" in printed.err) == table.exists() == bool(read)
    assert ("Stopped. Nothing was written" in printed.err) == (not read)
    assert "Name another corpus" not in printed.err


@pytest.mark.parametrize("more", [["--relation", "nsubj"], ["--method", "mean"], ["--method", "resample"]])
def test_a_command_that_was_stopped_continues_with_the_same_numbers(
    more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, table, parts = tmp_path / "whole.csv", tmp_path / "effect.csv", tmp_path / ".effect.csv.parts"
    command = ["effect", "grammar", "--model", "toy", "--heads", "L1H1", "--most", "8", *more, "--out"]
    assert main([*command, str(whole)]) == 0
    answer = capsys.readouterr().out
    measured, sentences = EffectCases.cases, list[int]()

    def stopped(self: EffectCases, encoder: Encoder, numbered: Sequence[tuple[int, Sentence]]) -> Cases:
        ((number, _),) = numbered
        sentences.append(number)
        one = measured(self, encoder, numbered)
        if number == 250 and sentences.count(250) == 1:
            raise KeyboardInterrupt
        return one

    monkeypatch.setattr(EffectCases, "cases", stopped)
    assert main([*command, str(table)]) == 130
    assert "run the same command again to continue" in capsys.readouterr().err
    assert len([*parts.glob("*.npz")]) == 1 + ("mean" in more), "the cases, and the sums for means"
    assert main([*command, str(table)]) == 0
    assert sentences == [0, 50, 100, 150, 200, 250, 250, 300, 350]
    assert capsys.readouterr().out == answer
    assert table.read_bytes() == whole.read_bytes()
    assert not parts.exists()


def test_a_call_in_python_continues_with_the_same_numbers(tiny: Tiny, tmp_path: Path) -> None:
    """It is stopped while means are taken, and while heads are off."""
    encoder = tiny("bert")
    measure = partial(corpus_ablation_effects, grammar.corpus(4), ["L0H1"], encoder, method="mean", most=4)
    whole, seen = measure(), list[Progress]()

    def stop(so_far: Progress) -> None:
        seen.append(so_far)
        if so_far.done in (2, 6):
            raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            measure(resume=tmp_path, progress=stop)
        assert [*tmp_path.iterdir()]
    again = measure(resume=tmp_path, progress=stop)
    assert [(so_far.done, so_far.total) for so_far in seen] == [(done, 8) for done in range(1, 9)]
    pd.testing.assert_frame_equal(again.table(), whole.table(), check_exact=True)
    assert not [*tmp_path.iterdir()]


def test_a_save_waits_ten_times_as_long_as_the_last_one_took(
    trees: Corpus, tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sentence takes 2 s, a save 3 s: the first is after 6 s, the next 30 s after it has ended, one at the end."""
    now, begun = [0.0], list[float]()

    def save(*_: Any) -> None:
        begun.append(now[0])
        now[0] += 3

    def measure(*_: Any) -> Cases:
        now[0] += 2
        return Cases([np.zeros(1)], [("", 0)], 1)

    monkeypatch.setattr("mha_viz.study.cases.time.monotonic", lambda: now[0])
    monkeypatch.setattr(Cases, "save", save)
    monkeypatch.setattr(TextCases, "cases", measure)
    many = replace(trees, sentences=(trees.sentences * 30)[:30])
    for _ in LocalRun(tiny("bert"), many, TextCases(1), folder=tmp_path).iter_progress():
        pass
    assert begun == [6, 41, 66]


def test_another_measurement_does_not_continue_from_it(trees: Corpus, tiny: Tiny, tmp_path: Path) -> None:
    run = Measurement(tiny("bert"), trees, EffectSettings(OFF, most=1), folder=tmp_path)
    assert [done.done for done in run.iter_progress()] == [1]
    uniform = Request(off=OFF.off, method="uniform")
    others = [{"request": uniform}, {"relation": "nsubj"}, {"most": 2}, {"same_role": ["L0H1"]}]
    for other in others:
        settings = EffectSettings(OFF, most=1)._replace(**other)
        assert not Measurement(tiny("bert"), trees, settings, folder=tmp_path).measured_cases.sentences_read
    again = Measurement(tiny("bert"), trees, EffectSettings(OFF, most=1), folder=tmp_path)
    assert [again.measured_cases.sentences_read, *again.iter_progress()] == [1]
    assert repr(again.result()) == repr(run.result())


def test_what_cannot_be_saved_is_measured_all_the_same(trees: Corpus, tiny: Tiny, tmp_path: Path) -> None:
    (tmp_path / "no folder").touch()
    run = Measurement(tiny("bert"), trees, EffectSettings(OFF), folder=tmp_path / "no folder")
    with pytest.warns(SumsUnsavedWarning, match="could not be saved"):
        assert len([*run.iter_progress()]) == len(FORMS)
    assert run.result().cases == len(FORMS)
