"""The toy model: its questions are correct, training is reproducible, and the shipped model does what is claimed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import BertForMaskedLM

from mha_viz.attention import Head, Weights
from mha_viz.cli import main
from mha_viz.corpus import grammar
from mha_viz.corpus.treebank import Sentence
from mha_viz.errors import Cancelled, ModelBroken, SettingError
from mha_viz.files import list_unchanged, record_writes
from mha_viz.files.assets import asset_path
from mha_viz.lab import toy_model
from mha_viz.models.getting import snapshots
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import load
from mha_viz.study.toy_scores import evaluate

SHIPPED = asset_path("toy")
PREVIOUS, VERB, ANTECEDENT = Head(1, 3), Head(1, 2), Head(1, 1)


@pytest.fixture(scope="module")
def trained() -> toy_model.TrainedModel:
    return toy_model.train(seed=3, steps=2, pool=40)


@pytest.fixture
def few_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model is trained on few sentences: the many that it needs take seconds to sample."""
    monkeypatch.setattr(toy_model, "train", partial(toy_model.train, pool=80))


def cli(*arguments: str) -> int:
    return main(list(arguments))


def asked(sentence: Sentence, answers: list[int]) -> dict[str, str]:
    """The answers to the questions, by the word at which they are asked."""
    return {sentence.forms[i - 1].lower(): toy_model.VOCABULARY[a] for i, a in enumerate(answers) if a >= 0}


def sentence_with(part: str) -> Sentence:
    """The first sentence of the grammar that contains the given words."""
    random = Random(0)
    return next(s for _ in range(20_000) if part in " ".join((s := grammar.sample_sentence(random)).forms))


# ---- questions ------------------------------------------------------------------------------------------


def test_what_is_asked_of_a_sentence() -> None:
    sentence = sentence_with("because it")
    made = toy_model.make_example(sentence)
    assert [toy_model.VOCABULARY[i] for i in made.ids] == ["[CLS]", *[f.lower() for f in sentence.forms], "[SEP]"]
    assert [toy_model.VOCABULARY[i] for i in made.previous[2:-1]] == [f.lower() for f in sentence.forms[:-1]]
    chain = next(m.chain for m in sentence.mentions if sentence.forms[m.word] == "it")
    first = min(m.word for m in sentence.mentions if m.chain == chain)
    assert asked(sentence, made.antecedent)["it"] == sentence.forms[first].lower()
    doing = {
        sentence.forms[i].lower(): sentence.forms[w.head]
        for i, w in enumerate(sentence.words)
        if w.relation == "nsubj" and w.head
    }
    assert asked(sentence, made.predicate) == doing


def test_what_agrees_is_asked_for_even_where_it_is_seen() -> None:
    made = [toy_model.make_example(s) for s in grammar.corpus(64, 5).sentences]
    batch = next(iter(toy_model._iter_batches(made, Random(0))))
    ids, wrong, pronoun = batch[0], batch[4], batch[5]
    seen, answers = toy_model._corrupt(ids, wrong, pronoun, torch.Generator().manual_seed(0))
    agrees = wrong != ids
    assert agrees.any()
    assert (answers[agrees] == ids[agrees]).all()
    changed = (seen == wrong) & agrees
    assert 0.1 < changed.sum() / agrees.sum() < 0.4
    assert (seen[ids <= toy_model._MASK] == ids[ids <= toy_model._MASK]).all()
    assert ((answers >= 0) | (seen == ids)).all()


def test_words_are_the_pieces() -> None:
    words = toy_model.make_tokenizer()
    assert words.tokenize("The king's dogs DIDN’T cross; [MASK] is xyzzy.") == (
        ["the", "king", "'s", "dogs", "did", "n't", "cross", "[UNK]", "[MASK]", "is", "[UNK]", "."]
    )
    for sentence in grammar.corpus(50, 2).sentences:
        pieces = words(list(sentence.forms), is_split_into_words=True)
        assert pieces.input_ids == toy_model.make_example(sentence).ids


# ---- training -------------------------------------------------------------------------------------------


def test_the_same_seed_trains_the_same_model(trained: toy_model.TrainedModel) -> None:
    torch.manual_seed(99)  # whatever else runs in the process changes nothing
    again = toy_model.train(seed=3, steps=2, pool=40)
    other = toy_model.train(seed=4, steps=2, pool=40)
    for name, weight in again.snapshots[2].items():
        assert torch.equal(weight, trained.snapshots[2][name])
    assert any(not torch.equal(w, other.snapshots[2][name]) for name, w in again.snapshots[2].items())
    assert [*trained.snapshots] == [0, 2]


def test_progress_is_told_and_training_can_be_stopped() -> None:
    seen: list[toy_model.TrainingProgress] = []
    sampled: list[tuple[int, int]] = []
    toy_model.train(steps=1, pool=501, progress=seen.append, report_sampling=lambda *so_far: sampled.append(so_far))
    assert sampled == [(0, 501), (500, 501)]
    assert [(p.step, p.steps, set(p.losses)) for p in seen] == [
        (1, 1, {"masked", "previous", "antecedent", "predicate"})
    ]
    with pytest.raises(Cancelled):
        toy_model.train(steps=10, pool=10, progress=seen.append, cancelled=lambda: True)
    assert len(seen) == 1


@pytest.mark.parametrize(("steps", "pool"), [(0, 10), (-1, 10), (5, 0)])
def test_settings_that_cannot_be(steps: int, pool: int) -> None:
    with pytest.raises(SettingError):
        toy_model.train(steps=steps, pool=pool)


def test_a_saved_model_is_a_model_folder(trained: toy_model.TrainedModel, tmp_path: Path) -> None:
    toy_model.save(trained, tmp_path / "toy", toy_model.make_tokenizer())
    encoder = Encoder.from_folder(tmp_path / "toy")
    assert (encoder.layers, encoder.heads, encoder.d_model, encoder.limit) == (2, 4, 64, 40)
    sentence = grammar.corpus(1, 8).sentences[0]
    ids = torch.tensor([toy_model.make_example(sentence).ids])
    trained.model.set_attn_implementation("eager")
    with torch.no_grad():
        expected = torch.stack(trained.model(ids, output_attentions=True).attentions)[:, 0].numpy()
    np.testing.assert_allclose(encoder.encode_words(sentence.forms).weights, expected, atol=1e-5)


def test_a_stop_while_a_model_is_saved_leaves_no_part_of_a_file_and_it_can_be_saved_again(
    trained: toy_model.TrainedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "toy"

    def stop(_: object, file: Path, **__: object) -> None:
        file.write_bytes(b"half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, record_writes() as record:
        patched.setattr(toy_model, "save_file", stop)
        with pytest.raises(KeyboardInterrupt):
            toy_model.save(trained, folder, toy_model.make_tokenizer())
    assert [*folder.iterdir()] == list_unchanged(record, folder) == []
    with record_writes() as record:
        toy_model.save(trained, folder, toy_model.make_tokenizer())
    written = list_unchanged(record, folder)
    assert written[-1].name == "model.safetensors", "a folder with weights has everything"
    assert {*written} == {*folder.resolve().iterdir()}


def test_snapshots_come_back_as_models(trained: toy_model.TrainedModel, tmp_path: Path) -> None:
    toy_model.save(trained, tmp_path / "toy", toy_model.make_tokenizer())
    assert snapshots.list_steps(tmp_path / "toy") == (0, 2)
    two = snapshots.unpack(tmp_path / "toy", 2)
    sentence = grammar.corpus(1, 8).sentences[0].forms
    whole, packed = (Encoder.from_folder(tmp_path / name).encode_words(sentence).weights for name in ("toy", two))
    np.testing.assert_allclose(packed, whole, atol=0.01)
    with pytest.raises(ModelBroken):
        snapshots.unpack(tmp_path / "toy", 1)
    with pytest.raises(ModelBroken):
        snapshots.list_steps(tmp_path / "nowhere")


# ---- what is shipped ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def read() -> list[tuple[Sentence, Weights]]:
    """Held-out sentences, with the attention between words [layer, head, from, to]."""
    encoder = Encoder.from_folder(SHIPPED)
    sentences = grammar.corpus(300, seed=20_001).sentences
    return [(s, encoder.encode_words(s.forms).weights[:, :, 1:-1, 1:-1]) for s in sentences]


def share(right: Iterator[bool]) -> float:
    judged = list(right)
    assert len(judged) > 200
    return sum(judged) / len(judged)


def test_a_head_looks_at_the_word_before(read: list[tuple[Sentence, Weights]]) -> None:
    right = (row[i].argmax() == i - 1 for _, w in read for row in [w[PREVIOUS]] for i in range(1, len(row)))
    assert share(right) >= 0.95


def test_a_head_links_subject_and_verb(read: list[tuple[Sentence, Weights]]) -> None:
    def right() -> Iterator[bool]:
        for sentence, weights in read:
            others = weights[VERB] - np.eye(len(sentence.words))  # the word itself never has the largest weight
            for subject, word in enumerate(sentence.words):
                if word.relation == "nsubj" and word.head is not None:
                    yield others[subject].argmax() == word.head

    assert share(right()) >= 0.98


def test_a_head_links_pronoun_and_antecedent(read: list[tuple[Sentence, Weights]]) -> None:
    def right() -> Iterator[bool]:
        for sentence, weights in read:
            mentions = sorted(sentence.mentions, key=lambda mention: mention.word)
            for place, mention in enumerate(mentions):
                earlier = mentions[:place]
                if any(e.chain == mention.chain for e in earlier):
                    row = weights[ANTECEDENT][mention.word]
                    yield max(earlier, key=lambda e: row[e.word]).chain == mention.chain

    assert share(right()) >= 0.95


def test_the_command_says_what_its_table_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli("toy", "evaluate", "--seed", "20001", "--sentences", "300", "--out", str(tmp_path / "t.csv")) == 0
    stdout = capsys.readouterr().out
    table = pd.read_csv(tmp_path / "t.csv")
    assert list(table) == ["task", "layer", "head", "n", "correct", "accuracy", "baseline"]
    assert len(table) == 3 * 8
    for (task, of_task), head, least, most in zip(
        table.groupby("task", sort=False), (PREVIOUS, VERB, ANTECEDENT), (0.95, 0.9, 0.9), (0.1, 0.6, 0.6), strict=True
    ):
        best = of_task.loc[of_task["correct"].idxmax()]
        assert (best["layer"], best["head"]) == tuple(head)
        assert best["n"] > 200
        assert best["accuracy"] == pytest.approx(best["correct"] / best["n"], abs=1e-5)
        assert best["accuracy"] >= least
        assert 0 < best["baseline"] <= most
        assert f"{task}: {head} ({head.paper}) {best['accuracy']:.3f} of {best['n']:,}, baseline " in stdout


def test_the_baselines_are_those_of_the_sentences() -> None:
    corpus = grammar.corpus(60, seed=5)
    table = evaluate(Encoder.from_folder(SHIPPED), 5, 60)
    words = [len(sentence.words) for sentence in corpus.sentences]
    previous = table[table["task"] == "previous_token"].iloc[0]
    assert previous["n"] == sum(n - 1 for n in words)
    assert previous["baseline"] == pytest.approx(sum((n - 1) / n for n in words) / sum(n - 1 for n in words))
    pairs = [w.head - i for s in corpus.sentences for i, w in enumerate(s.words) if w.relation == "nsubj" and w.head]
    subject = table[table["task"] == "verb_subject"].iloc[0]
    assert subject["n"] == len(pairs)
    assert subject["baseline"] == pytest.approx(max(Counter(pairs).values()) / len(pairs))
    right = [
        earlier[-1].chain == mention.chain
        for sentence in corpus.sentences
        for mention in sentence.mentions
        if sentence.words[mention.word].upos == "PRON"
        and (earlier := sorted((m for m in sentence.mentions if m.word < mention.word), key=lambda m: m.word))
        and any(m.chain == mention.chain for m in earlier)
    ]
    pronoun = table[table["task"] == "pronoun_antecedent"].iloc[0]
    assert (pronoun["n"], pronoun["baseline"]) == (len(right), pytest.approx(sum(right) / len(right)))


def test_a_table_without_a_case_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seed = next(s for s in range(100) if all(len(t.mentions) < 2 for t in grammar.corpus(1, s).sentences))
    assert cli("toy", "evaluate", "--seed", str(seed), "--sentences", "1", "--out", str(tmp_path / "t.csv")) == 0
    assert "pronoun_antecedent: no case in these sentences" in capsys.readouterr().out


def test_the_shipped_history_is_that_of_the_shipped_model() -> None:
    table = pd.read_csv(SHIPPED.parent / "toy_history.csv")
    assert tuple(sorted(set(table["step"]))) == snapshots.list_steps(SHIPPED)
    fresh = evaluate(load("toy@400"), 1, 300)
    shipped = table[table["step"] == 400].drop(columns="step").reset_index(drop=True)
    pd.testing.assert_frame_equal(shipped, fresh, check_dtype=False, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("train", "--sentences", "5"),
            "--sentences does not go with toy train. It goes with evaluate, history and effects.",
        ),
        (("evaluate", "--steps", "5"), "--steps does not go with toy evaluate. It goes with train."),
        (("history", "--model", "toy"), "--model does not go with toy history."),
        (("train", "--steps", "0"), "A model cannot train for 0 steps."),
        (("evaluate", "--sentences", "0"), "There is nothing to measure in 0 sentences."),
        (("evaluate", "--seed", "-1"), "expected a whole number from 0"),
    ],
)
def test_what_cannot_be_asked_is_answered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    assert cli("toy", *arguments, "--out", str(tmp_path / "t.csv")) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_hidden_words_alone_begin_with_the_same_weights_and_have_one_loss() -> None:
    both = [toy_model.train(5, steps=2, pool=80, questions=some) for some in (toy_model.QUESTIONS, ())]
    assert [set(trained.history[-1].losses) for trained in both] == [{"masked", *toy_model.QUESTIONS}, {"masked"}]
    first, second = (trained.snapshots[0] for trained in both)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not all(torch.equal(both[0].snapshots[2][name], both[1].snapshots[2][name]) for name in first)


@pytest.mark.usefixtures("few_sentences")
def test_hidden_words_alone_are_trained_and_measured_step_by_step(tmp_path: Path) -> None:
    assert cli("toy", "train", "--kind", "hidden", "--steps", "2", "--out", str(tmp_path / "new")) == 0
    out = tmp_path / "t.csv"
    arguments = ("--folder", str(tmp_path / "new"), "--sentences", "20", "--out", str(out))
    assert cli("toy", "history", *arguments) == 0
    assert sorted(set(pd.read_csv(out)["step"])) == [0, 2]
    assert cli("toy", "history", "--kind", "repeater", *arguments) == 2


def test_a_step_that_was_not_saved_is_answered_with_those_that_were(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli("toy", "evaluate", "--model", "toy@7", "--out", str(tmp_path / "t.csv")) == 3
    steps = ", ".join(map(str, snapshots.list_steps(SHIPPED)))
    assert f"“toy@7” does not exist. Give toy@ and one of the steps {steps}." in capsys.readouterr().err


@pytest.mark.usefixtures("few_sentences")
def test_the_command_trains_a_model_that_can_be_evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli("toy", "train", "--steps", "2", "--seed", "3", "--out", str(tmp_path / "new")) == 0
    arguments = ("--sentences", "9", "--out", str(tmp_path / "t.csv"))
    assert cli("toy", "evaluate", "--model", str(tmp_path / "new"), *arguments) == 0
    monkeypatch.chdir(tmp_path)
    assert cli("toy", "evaluate", "--model", "new", "--sentences", "9", "--out", "t.csv") == 0
    assert cli("toy", "train", "--steps", "2", "--out", "new") == 2, "what is there is not written over"


def test_hidden_words_are_predicted() -> None:
    loaded: Any = BertForMaskedLM.from_pretrained(SHIPPED, output_loading_info=True)
    model, loading = loaded
    assert not loading["missing_keys"]
    pieces = toy_model.make_tokenizer()
    right = judged = 0
    for sentence in grammar.corpus(40, seed=20_002).sentences:
        ids = torch.tensor(pieces.encode(list(sentence.forms), is_split_into_words=True))
        places = torch.arange(1, len(ids) - 1)
        hidden = ids.repeat(len(places), 1)
        hidden[torch.arange(len(places)), places] = pieces.mask_token_id  # in each row another word
        with torch.no_grad():
            predicted = model(input_ids=hidden).logits[torch.arange(len(places)), places].argmax(-1)
        right += int((predicted == ids[places]).sum())
        judged += len(places)
    assert right / judged > 0.35  # one of some 200 words


@pytest.mark.slow
def test_training_from_the_seed_gives_the_shipped_model(tmp_path: Path) -> None:
    assert cli("toy", "train", "--seed", "0", "--out", str(tmp_path / "again")) == 0
    again, shipped = (evaluate(Encoder.from_folder(f), 9, 300) for f in (tmp_path / "again", SHIPPED))
    best = [table.groupby("task")["accuracy"].max() for table in (again, shipped)]
    pd.testing.assert_series_equal(*best, atol=0.03)


def test_the_files_are_small() -> None:
    assert sum(file.stat().st_size for file in SHIPPED.iterdir()) < 2_000_000
    assert 12 <= len(snapshots.list_steps(SHIPPED)) <= 20
