"""Minimal pairs, compared with plain loops over transformers' own models, and what the two toy models need for them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

import mha_viz as mv
from mha_viz.analysis.pairs import MinimalPairs
from mha_viz.attention import Head
from mha_viz.cli import main
from mha_viz.errors import Cancelled, CorpusError, ModelUnsupported, SettingError, TextError, UnknownHead
from mha_viz.files.assets import asset_path
from mha_viz.models.intervening import ablation, other_texts, sentence_scores
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import load_one_stack
from mha_viz.models.reading.probe import find_attention_modules
from mha_viz.request import MASK, METHODS_OVER_CORPUS, Question, Request
from mha_viz.study import pairs as study
from mha_viz.study.cases import LocalRun
from mha_viz.study.effects import compute_values, substitute
from tests import lanes
from tests.oracles import SENTENCE
from tests.tiny_models import ANSWERING

EQUAL = 1e-4  # nats
TOY = [
    ("The girl smiles because she sings .", "The girl smiles because he sings ."),
    ("The dogs near the king sleep .", "The dogs near the king often sleeps ."),
]
TYPED = [(SENTENCE, SENTENCE.replace("it was", "they was")), ("Two dogs bark.", "Two dogs barks loudly.")]
REPEATED = [("dog river anna dog river", "dog river anna dog house"), ("see the cat see the", "see cat see the the")]


@contextmanager
def without(base: Any, head: tuple[int, int], of: int) -> Iterator[None]:
    """Within this block, what a head gives to W_O is zero. ALBERT's layers are one module, called several times."""
    calls = count()

    def silence(_: Any, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        if base.config.model_type == "albert" and next(calls) % base.config.num_hidden_layers != head[0]:
            return inputs
        split = inputs[0].clone().unflatten(-1, (of, -1))
        split[..., head[1], :] = 0
        return (split.flatten(-2), *inputs[1:])

    handle = find_attention_modules(base, head[0]).output.register_forward_pre_hook(silence)
    try:
        yield
    finally:
        handle.remove()


def scored_plainly(folder: Path, text: str, off: Sequence[tuple[int, int]], encoder: Encoder) -> float:
    """The score of a sentence, one pass for each masked token."""
    kind: Any = AutoModelForCausalLM if encoder.causal else AutoModelForMaskedLM
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model = kind.from_pretrained(folder, attn_implementation="eager").eval()
    ids = tokenizer(text, return_tensors="pt")["input_ids"]
    ordinary = [place for place, one in enumerate(ids[0].tolist()) if one not in tokenizer.all_special_ids]
    total = 0.0
    with torch.no_grad(), ExitStack() as stack:
        for head in off:
            stack.enter_context(without(getattr(model, model.base_model_prefix), head, encoder.heads))
        if encoder.causal:
            log_p = model(ids).logits[0].double().log_softmax(-1)
            return sum(float(log_p[place - 1, ids[0, place]]) for place in ordinary if place > 0)
        for place in ordinary:
            masked = ids.clone()
            masked[0, place] = tokenizer.mask_token_id
            total += float(model(masked).logits[0, place].double().log_softmax(-1)[ids[0, place]])
    return total


def check(encoder: Encoder, folder: Path, typed: Sequence[tuple[str, str]], sets: Sequence[list[Any]]) -> None:
    measured = mv.minimal_pairs(encoder, typed, heads=sets)
    for row, pair in enumerate(typed):
        expected = [scored_plainly(folder, text, [], encoder) for text in pair]
        assert measured.log_p[row] == pytest.approx(expected, abs=EQUAL)
        for column, off in enumerate(sets):
            good, bad = (scored_plainly(folder, text, off, encoder) for text in pair)
            assert measured.margins[row, column] == pytest.approx(good - bad, abs=EQUAL)


# Resumed at a layer; passes that begin at the first layer; causal models, with and without a token before the text.
@pytest.mark.parametrize(
    "family", lanes.some([*ANSWERING], "bert words", "distilbert words", "gpt2 words", "llama words")
)
def test_scores_are_those_of_a_plain_loop(
    family: str, tiny: Callable[[str], Encoder], tiny_folder: Callable[[str], Path]
) -> None:
    encoder = tiny(family)
    last = encoder.layers - 1, encoder.heads - 1
    check(encoder, tiny_folder(family), TYPED, [[(0, 0)], [(0, 1)], [last], [(0, 1), last]])


def test_scores_of_the_toy_models_are_those_of_a_plain_loop(toy: Encoder) -> None:
    check(toy, asset_path("toy"), TOY, [[(0, 0)], [(1, 1)], [(0, 1), (0, 3)]])
    check(load_one_stack("repeater"), asset_path("repeater"), REPEATED, [[(0, 0)], [(1, 1)], [(0, 0), (0, 3)]])


def test_long_sentences_are_read_in_several_batches(toy: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = mv.minimal_pairs(toy, TOY)
    monkeypatch.setattr(sentence_scores, "MAX_BATCH_TOKENS", 20)
    parts = mv.minimal_pairs(toy, TOY)
    np.testing.assert_allclose(parts.log_p, whole.log_p, atol=EQUAL)
    np.testing.assert_allclose(parts.margins, whole.margins, atol=EQUAL)


@pytest.mark.parametrize("method", METHODS_OVER_CORPUS)
def test_every_method_is_that_of_one_text(method: str, toy: Encoder) -> None:
    """A pair whose only scored difference is one masked token: compared with ``mv.predict``'s own path."""
    means = ablation.compute_means(toy, [TOY[0][0]]) if method == "mean" else None
    sentences = [("The", "cat", "sleeps", ".")] if method == "resample" else ()
    options = {"means": means, "sentences": sentences}
    measured = mv.minimal_pairs(toy, TOY[:1], method=method, **options)  # type: ignore[arg-type]
    heads = [Head(layer, number) for layer, number in product(range(2), range(4))]
    for column, head in enumerate(heads):
        margin = sum(
            sign * masked_score(toy, text, head, method, **options) for sign, text in zip((1, -1), TOY[0], strict=True)
        )
        assert measured.margins[0, column] == pytest.approx(margin, abs=EQUAL)


def masked_score(toy: Encoder, text: str, head: Head, method: str, means: Any, sentences: Any) -> float:
    """The sum over the words of a sentence, each asked for at [MASK] as on one text."""
    words, total = text.split(), 0.0
    ids = toy.pieces(text).ids
    for place in range(len(words)):
        masked = " ".join([*words[:place], "[MASK]", *words[place + 1 :]])
        question = Question(MASK, place + 1, words[place], ids[place + 1], places=(place + 1,))
        request = Request(text=masked, method=method, question=question)
        make = partial(substitute, means=means, sentences=sentences)
        total += float(compute_values(toy, [[head]], request, make)[0, ids[place + 1]])
    return total


@pytest.mark.parametrize("method", ["zero", "resample"])
def test_margins_of_a_causal_model_are_those_of_each_sentence_alone(method: str) -> None:
    """Also if the sentences share their beginning but not the outputs that are drawn for it."""
    encoder = load_one_stack("repeater")
    typed = ("dog river anna dog river", "dog river anna dog house see")
    sentences = [("see", "the", "cat", "see", "the"), ("house", "dog", "anna", "house", "dog", "river")]
    heads = ((Head(0, 0),), (Head(0, 2),), (Head(1, 1),), (Head(0, 0), Head(0, 3)))
    options: Any = {"sentences": sentences} if method == "resample" else {}
    measured = mv.minimal_pairs(encoder, [typed], method=method, heads=[[*off] for off in heads], **options)
    totals = []
    for text in typed:
        sentence = sentence_scores.split_sentence(encoder, text)
        outputs = other_texts.choose_outputs(encoder, method, sentence.pieces, "", sentences) if options else None
        off_substitute = ablation.make_substitute(encoder, method, outputs)
        by = partial(lambda chosen, _: chosen, off_substitute)
        totals.append(sentence_scores.score_without(encoder, sentence, heads, by)[1])
    np.testing.assert_allclose(measured.margins[0], totals[0] - totals[1], atol=EQUAL)


@pytest.mark.parametrize(("text", "message"), [("[SEP]", "has no word"), ("the [MASK] saw the girl .", "masked token")])
def test_a_masked_model_scores_no_sentence_without_words_or_with_a_mask(text: str, message: str) -> None:
    toy, pair = load_one_stack("toy"), ("the dog saw the girl .", "the dogs saw the girl .")
    with pytest.raises(TextError, match=message):
        sentence_scores.split_sentence(toy, text)
    assert mv.minimal_pairs(toy, [pair, (text, "the cat .")]).left_out == 1


# ---- What the toy models need -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def of_toy() -> MinimalPairs:
    return mv.minimal_pairs("toy", "toy-pairs")


@pytest.fixture(scope="module")
def of_repeater() -> MinimalPairs:
    return mv.minimal_pairs("repeater", "repeater-pairs")


def needed(measured: MinimalPairs, kind: str = "all") -> set[str]:
    return {row.name for row in measured.needs(kind) if row.is_needed}


def test_toy_needs_one_head_for_agreement_and_for_pronouns(of_toy: MinimalPairs) -> None:
    assert of_toy.table()["accuracy"].min() >= 0.9
    assert needed(of_toy, "agreement") == {"L1H1", "L0H3"}
    assert needed(of_toy, "copula") == needed(of_toy, "reflexive") == needed(of_toy, "pronoun") == {"L1H1"}
    assert needed(of_toy) == {"L1H1", "L0H3", "L0H0"}
    row = of_toy.heads("agreement").set_index("heads").loc["L1H1"]
    assert row["accuracy"] == 0
    assert "coreference third_person" in row["roles"]
    other = of_toy.heads().set_index("heads").loc["L1H2"]
    assert "nsubj dep_to_head" in other["roles"], "the pattern of agreement, on every verb"
    assert not other["needed"], "which the behaviour does not need"


def test_repeater_needs_its_heads_to_the_tokens_before(of_repeater: MinimalPairs) -> None:
    """What tells the heads of the second layer which of two occurrences is repeated has no substitute."""
    assert of_repeater.score == "log p without the first token"
    assert of_repeater.table()["accuracy"].min() >= 0.9
    assert needed(of_repeater) == {"L0H0", "L0H2"}
    assert needed(of_repeater, "word twice") == {"L0H2"}
    assert needed(of_repeater, "seen word") == needed(of_repeater, "new word") == set()
    induction = of_repeater.heads("seen word").set_index("heads").loc[["L1H1", "L1H2", "L1H3"]]
    assert (induction["falls"] > induction["rises"]).all()
    assert (induction["q"] < 0.001).all()
    assert "position previous" in of_repeater.heads().loc[0, "roles"]


def test_repeater_needs_its_heads_for_repetition_together() -> None:
    """Heads of the same role make up for each other."""
    sets = ["L0H0", "L0H3", "L0H0+L0H3", "L1H1+L1H2+L1H3", [(1, 0), (1, 1), (1, 2), (1, 3)]]
    measured = mv.minimal_pairs("repeater", "repeater-pairs", heads=sets)
    assert needed(measured, "seen word") == {"L0H0+L0H3", "L1H0+L1H1+L1H2+L1H3"}
    previous = measured.heads("seen word").set_index("heads").loc["L0H0+L0H3"]
    assert previous["roles"] == "position previous"
    assert previous["accuracy"] < 0.5


# ---- Settings, stops and errors ---------------------------------------------------------------------------------


def test_a_model_that_predicts_no_words_is_refused(minilm: Encoder) -> None:
    with pytest.raises(ModelUnsupported, match=r"cannot predict words: .* Choose one that does, such as toy"):
        mv.minimal_pairs(minilm, TOY)


def test_settings_that_do_not_fit_are_refused(toy: Encoder) -> None:
    with pytest.raises(SettingError, match="cannot take every sentence’s place"):
        mv.minimal_pairs(toy, TOY, method="text")
    with pytest.raises(SettingError, match="“none” is not a way to switch a head off"):
        mv.minimal_pairs(toy, TOY, method="none")
    with pytest.raises(SettingError, match="means= goes with the method “mean”"):
        mv.minimal_pairs(toy, TOY, means=np.zeros((2, 4, 16), np.float32))
    with pytest.raises(SettingError, match="No head was named"):
        mv.minimal_pairs(toy, TOY, heads=[])
    with pytest.raises(UnknownHead):
        mv.minimal_pairs(toy, TOY, heads=["L7H1"])


@pytest.mark.filterwarnings("ignore::mha_viz.errors.TextCutWarning")
def test_pairs_that_cannot_be_scored_are_left_out_and_counted(toy: Encoder) -> None:
    measured = mv.minimal_pairs(toy, [("the dog " * 400, "the cat"), *TOY])
    assert (measured.left_out, len(measured.pairs)) == (1, len(TOY))
    assert measured.pairs[0].good == TOY[0][0]
    with pytest.raises(CorpusError, match="No pair of the list of pairs can be scored"):
        mv.minimal_pairs("repeater", [("dog", "cat")])


def test_sentences_that_the_model_reads_as_the_same_are_ties(toy: Encoder) -> None:
    measured = mv.minimal_pairs(toy, [("The zebra sleeps .", "The gnu sleeps ."), *TOY])
    assert measured.accuracies()[0].ties == 1
    assert measured.log_p[0, 0] == measured.log_p[0, 1]


def test_a_stopped_measurement_continues(toy: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, seen = mv.minimal_pairs(toy, TOY), list[int]()
    with pytest.raises(Cancelled):
        mv.minimal_pairs(toy, TOY, resume=tmp_path, cancelled=lambda: True)
    assert [*tmp_path.iterdir()]
    monkeypatch.setattr(study, "split_sentence", count_calls(study.split_sentence, seen))
    again = mv.minimal_pairs(toy, TOY, resume=tmp_path, progress=lambda state: None)
    assert len(seen) == 2, "the first pair is not measured again"
    np.testing.assert_array_equal(again.margins, whole.margins)
    assert not [*tmp_path.iterdir()]


def count_calls(function: Callable[..., Any], seen: list[int]) -> Callable[..., Any]:
    def counted(*arguments: Any) -> Any:
        seen.append(1)
        return function(*arguments)

    return counted


def test_results_depend_on_the_heads_and_the_method(toy: Encoder) -> None:
    kinds = [
        study.PairCases(1, ((Head(0, 0),),), "zero"),
        study.PairCases(1, ((Head(0, 1),),), "zero"),
        study.PairCases(1, ((Head(0, 0), Head(0, 1)),), "zero"),
        study.PairCases(1, ((Head(0, 0),), (Head(0, 1),)), "zero"),
        study.PairCases(1, ((Head(0, 0),),), "uniform"),
        study.PairCases(1, ((Head(0, 0),),), "mean", np.zeros((2, 4, 16), np.float32)),
        study.PairCases(1, ((Head(0, 0),),), "resample", sentences=(("a", "b"),)),
    ]
    corpus = study._make_corpus(study.read_pairs(TOY))
    keys = {LocalRun(toy, corpus, kind, folder=Path("unused"))._key for kind in kinds}
    assert len(keys) == len(kinds)


def test_the_command_explains_ties(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "pairs.tsv"
    for bad, has_tie in (("The gnu sleeps .", True), ("The zebra sleep .", False)):
        file.write_text(f"The zebra sleeps .\t{bad}\n", "utf-8")
        assert main(["pairs", str(file), "--model", "toy", "--heads", "L0H0"]) == 0
        assert ("both sentences score the same" in capsys.readouterr().out) is has_tie


def test_the_command_prints_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "pairs.jsonl", tmp_path / "heads.csv"
    lines = [
        json.dumps({"sentence_good": good, "sentence_bad": bad, "UID": kind})
        for (good, bad), kind in zip(TOY, ("pronoun", "agreement"), strict=True)
    ]
    file.write_text("\n".join(lines), "utf-8")
    assert main(["pairs", str(file), "--model", "toy", "--heads", "L1H1,L0H0+L0H1", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "toy on pairs.jsonl: pseudo-log-likelihood; heads switched off by zero\n" in printed
    assert "all: prefers the good sentence in 1.000 [0.342, 1.000] of 2 pairs, by" in printed
    assert "needed heads: 0 of 2 (q < 0.05" in printed
    assert "pronoun: none\n" in printed
    table = pd.read_csv(out)
    assert table["kind"].tolist() == ["all"] * 2 + ["pronoun"] * 2 + ["agreement"] * 2
    assert {*tmp_path.iterdir()} == {file, out}
    assert table["heads"][:2].tolist() == ["L1H1", "L0H0+L0H1"]
    expected = mv.minimal_pairs("toy", file, heads=["L1H1", "L0H0+L0H1"]).heads()
    assert table["margin_change"][:2].tolist() == pytest.approx(expected["margin_change"].tolist())


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["toy-pairs"], 2, "--model"),
        (["toy-pairs", "--model", "minilm"], 5, "cannot predict words"),
        (["none.tsv", "--model", "toy"], 3, "none.tsv cannot be read: it does not exist"),
        (["toy-pairs", "--model", "toy", "--heads", "L9H9"], 3, "L9H9 does not exist"),
        (["toy-pairs", "--model", "toy", "--method", "text"], 2, "“text” is not a value of --method"),
        (["toy-pairs", "--model", "toy", "--out", "a.xyz"], 2, "a table format"),
    ],
)
def test_the_command_refuses_with_its_exit_code(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pairs", *arguments]) == code
    assert said in capsys.readouterr().err
