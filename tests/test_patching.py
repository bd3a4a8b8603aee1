"""Heads whose output is taken from another text, against hooks written out by hand on plain transformers."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer, BertForMaskedLM

import mha_viz as mv
from mha_viz.attention import Head
from mha_viz.cli import main
from mha_viz.errors import (
    EmptyText,
    MhaVizError,
    ModelUnsupported,
    NeedsOneStack,
    ReadingFailed,
    SettingError,
    TextError,
)
from mha_viz.figures.charts.effects import draw_head_grid
from mha_viz.figures.drawing.theme import DARK
from mha_viz.files.assets import asset_path
from mha_viz.models.intervening import ablation, other_texts, patching
from mha_viz.models.reading import answers
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.probe import find_attention_modules
from mha_viz.numerals import percent
from tests import oracles

GIRL, BOY = "The girl slept because [MASK] ran .", "The boy slept because [MASK] ran ."
ENDS = ("A cat is a dog.", "A dog is a cat.")


@pytest.fixture(scope="module")
def toy() -> Any:
    return mv.load("toy")


def outputs_of(model: Any, inputs: Any, layers: int) -> list[torch.Tensor]:
    """What enters W_O of every layer, [1, n, d_model]."""
    outputs: list[torch.Tensor] = []
    hooks = [
        find_attention_modules(model, layer).output.register_forward_pre_hook(
            lambda _, given: outputs.append(given[0].clone())
        )
        for layer in range(layers)
    ]
    model(**inputs)
    for hook in hooks:
        hook.remove()
    return outputs


def by_hand(stack: Any, whole: Any, texts: list[Any], shape: tuple[int, int], score: Callable[[Any], float]) -> Any:
    """The share that comes back with each head, [layer, head], one pass of the ``whole`` model with a hook for each."""
    theirs = outputs_of(stack, texts[1], shape[0])
    before, after = (score(whole(**text)) for text in texts)
    shares = np.zeros(shape)
    for layer, head in np.ndindex(shape):

        def taken(_: Any, given: Any, at: int = layer, number: int = head) -> Any:
            joined = given[0].clone()
            size = joined.shape[-1] // shape[1]
            columns = slice(number * size, (number + 1) * size)
            joined[..., columns] = theirs[at][..., columns]
            return (joined,)

        hook = find_attention_modules(stack, layer).output.register_forward_pre_hook(taken)
        shares[layer, head] = (score(whole(**texts[0])) - before) / (after - before)
        hook.remove()
    return shares


def test_the_toy_s_coreference_head_carries_who_is_meant(toy: Any) -> None:
    patched = mv.activation_patching(toy, GIRL, BOY)
    assert patched.score == "log p of “she” minus log p of “he”"
    assert patched.before > 0 > patched.after
    table = patched.table()
    assert table["share"].idxmax() == "L1H1"
    assert table["share"].max() > 0.99
    assert table["share"].drop("L1H1").abs().max() < 0.1
    assert patched.correlation > 0.99


def test_words_are_those_of_hooks_on_the_model_with_its_words(toy: Any) -> None:
    kind: Any = BertForMaskedLM
    model = kind.from_pretrained(asset_path("toy"), attn_implementation="eager").eval().double()
    tokenizer = AutoTokenizer.from_pretrained(asset_path("toy"))
    she, he = (tokenizer.convert_tokens_to_ids(word) for word in ("she", "he"))
    texts = [tokenizer(text, return_tensors="pt") for text in (GIRL, BOY)]
    at = int((texts[0]["input_ids"][0] == tokenizer.mask_token_id).nonzero())
    with torch.no_grad():
        shares = by_hand(
            model.bert, model, texts, (2, 4), lambda out: float(out.logits[0, at, she] - out.logits[0, at, he])
        )
    assert np.abs(mv.activation_patching(toy, GIRL, BOY).shares - shares).max() <= 1e-4


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "opt", "deberta-v2"])
def test_sentence_vectors_are_those_of_hooks_in_float64(
    family: str,
    tiny: Callable[[str], Encoder],
    tiny_folder: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answers, "can_predict", lambda *_: False)  # words of random weights tell nothing apart
    encoder = tiny(family)
    model, tokenizer = oracles.load_plain(tiny_folder(family))
    model, texts = deepcopy(model).double(), [tokenizer(text, return_tensors="pt") for text in ENDS]
    with torch.no_grad():
        first, second = (model(**text).last_hidden_state[0].double().mean(0) for text in texts)
        line = second - first
        shares = by_hand(
            model,
            model,
            texts,
            (encoder.layers, encoder.heads),
            lambda out: float((out.last_hidden_state[0].double().mean(0) - first) @ line / line.square().sum()),
        )
    patched = mv.activation_patching(encoder, *ENDS)
    assert (patched.before, patched.after) == (pytest.approx(0, abs=1e-6), pytest.approx(1, abs=1e-6))
    assert np.abs(patched.shares - shares).max() <= 1e-4


def test_similarities_with_a_third_text_are_those_of_hooks(
    tiny: Callable[[str], Encoder], tiny_folder: Callable[[str], Path]
) -> None:
    model, tokenizer = oracles.load_plain(tiny_folder("bert"))
    model, third = deepcopy(model).double(), "The fox was quick."
    texts = [tokenizer(text, return_tensors="pt") for text in ENDS]
    with torch.no_grad():
        vector = model(**tokenizer(third, return_tensors="pt")).last_hidden_state[0].mean(0)
        score = lambda out: float(torch.cosine_similarity(out.last_hidden_state[0].mean(0), vector, dim=0))  # noqa: E731
        shares = by_hand(model, model, texts, (tiny("bert").layers, tiny("bert").heads), score)
        before, after = (score(model(**text)) for text in texts)
    patched = mv.activation_patching(tiny("bert"), *ENDS, similar_to=third)
    assert (patched.before, patched.after) == (pytest.approx(before, abs=1e-6), pytest.approx(after, abs=1e-6))
    rounding = 5e-7 * (1 + np.abs(shares))  # in 32 bits, of a share's own change and of the whole one, which divides it
    assert (np.abs((patched.shares - shares) * (after - before)) <= rounding).all()
    assert patched.score == f"the cosine with “{third}”"
    with pytest.raises(SettingError, match="Both words and a text"):
        mv.activation_patching(tiny("bert"), *ENDS, similar_to=third, word="cat")


def test_a_first_order_estimate_is_the_slope_of_the_exact_number(tiny: Callable[[str], Encoder]) -> None:
    """Of a head whose output moves only a little of the way."""
    encoder, step = tiny("bert"), 1e-2
    patched = mv.activation_patching(encoder, *ENDS)
    mine, theirs = (other_texts.compute_outputs(encoder, encoder.pieces(text)) for text in ENDS)
    by = ablation.make_substitute(encoder, "text", mine + np.float32(step) * (theirs - mine))
    ends = [encoder.states(text)[0].astype(np.float64).mean(0) for text in ENDS]
    line = ends[1] - ends[0]
    for layer in range(encoder.layers):
        states = ablation.run_forked_pass(
            encoder, layer, ablation.ablate_one_by_one(range(encoder.heads)), by, ENDS[0]
        ).states
        moved = (states.astype(np.float64).mean(1) - ends[0]) @ line / (line @ line)
        assert np.abs(moved / step - patched.estimated[layer]).max() <= 0.02


def test_words_of_other_pieces_are_aligned(minilm: Encoder) -> None:
    texts = [minilm.encode(text).text for text in ("She was tired.", "She was extraterrestrial.")]
    assert len(texts[0]) < len(texts[1])
    aligned = other_texts.align_texts(*texts)
    assert np.allclose(aligned.sum(axis=1), 1)
    assert [row.argmax() for row in aligned[:3]] == [0, 1, 2]
    pieces = len(texts[1]) - len(texts[0]) + 1
    assert np.allclose(aligned[3, 3 : 3 + pieces], 1 / pieces)
    assert aligned[-1, -1] == 1
    assert np.isfinite(mv.activation_patching(minilm, "She was tired.", "She was extraterrestrial.").shares).all()


@pytest.mark.parametrize(
    ("texts", "error", "says"),
    [
        (("It is.", "It  is. "), SettingError, "Both texts are the same"),
        (("It is.", "It is a dog."), SettingError, "has 3 words, .* has 5"),
        (("", "It is."), EmptyText, "no text|Nothing"),
        ((7, "It is."), MhaVizError, "is int, not a text"),
    ],
)
def test_what_cannot_be_compared_is_refused(minilm: Encoder, texts: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        mv.activation_patching(minilm, *texts)


def test_answers_that_cannot_be_compared_are_refused(toy: Any) -> None:
    with pytest.raises(SettingError, match="The words to compare are both “she”"):
        mv.activation_patching(toy, GIRL, "The woman slept because [MASK] ran .", foil="she", word="she")
    with pytest.raises(SettingError, match="token 5 in one text and token 2, another word"):
        mv.activation_patching(toy, GIRL, "The [MASK] slept because he ran .")
    with pytest.raises(TextError, match="no \\[MASK\\]"):
        mv.activation_patching(toy, GIRL, BOY.replace("[MASK]", "he"))


def test_outputs_that_are_not_finite_are_refused(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(other_texts, "compute_outputs_on_text", lambda *_: np.full((2, 9, 4, 16), np.nan, np.float32))
    with pytest.raises(ReadingFailed, match="log p of “she” minus log p of “he” is not a finite number"):
        mv.activation_patching(toy, GIRL, BOY)


def test_a_model_without_words_says_so_if_words_are_asked_for(minilm: Encoder) -> None:
    assert mv.activation_patching(minilm, "She was [MASK].", "He was [MASK].").score.startswith(
        "where the sentence vector lies"
    )
    with pytest.raises(ModelUnsupported, match="cannot predict words"):
        mv.activation_patching(minilm, "She was [MASK].", "He was [MASK].", word="tired")


def test_two_stacks_are_refused(tmp_path: Path) -> None:
    from tests import tiny_encoder_decoders

    with pytest.raises(NeedsOneStack):
        mv.activation_patching(mv.load(str(tiny_encoder_decoders.build("t5", tmp_path / "t5"))), *ENDS)


def test_the_command_prints_heads_or_writes_a_table(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["patch", GIRL, BOY, "--model", "toy"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "toy: log p of “she” minus log p of “he” is 3.41, on the other text −2.11"
    assert lines[2] == "L1H1 (2-2) 100.0%, to first order 82.4%"
    out = tmp_path / "patched.csv"
    assert main(["patch", GIRL, BOY, "--model", "toy", "--out", str(out)]) == 0
    assert out.read_text("utf-8").splitlines()[0] == "head,share,estimated"
    assert main(["patch", GIRL, GIRL, "--model", "toy"]) == 2
    assert "Both texts are the same" in capsys.readouterr().err


def test_all_heads_are_estimated_by_one_pass_there_and_back(
    toy: Encoder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    both = mv.activation_patching(toy, GIRL, BOY)
    forked, passes = ablation.run_forked_pass, list[int]()
    with monkeypatch.context() as patched:
        patched.setattr(ablation, "run_forked_pass", lambda *given: passes.append(given[1]) or forked(*given))
        alone = mv.activation_patching(toy, GIRL, BOY, exact=False)
        assert main(["patch", GIRL, BOY, "--model", "toy", "--estimate"]) == 0
    assert passes == [1, 1], "one head is taken alone, by the call and by the command"
    assert alone.checked == both.checked == Head(1, 1)
    assert np.argwhere(~np.isnan(alone.shares)).tolist() == [[1, 1]], "the largest estimate alone is checked"
    assert alone.shares[1, 1] == pytest.approx(both.shares[1, 1], abs=1e-6)
    assert np.isnan(alone.correlation)
    assert (alone.estimated == both.estimated).all()
    assert alone.table()["share"].dropna().index.tolist() == ["L1H1"]
    exact = percent(float(both.shares[1, 1]))
    printed = capsys.readouterr().out.splitlines()
    assert printed[2] == f"L1H1 (2-2) {exact}, to first order 82.4%"
    assert printed[3].split(" ", 2)[2].startswith("to first order ")
    assert printed[-2] == f"The largest estimate, of L1H1 (2-2), is 82.4%; computed exactly, {exact}."
    with pytest.raises(SettingError, match="Paths have no first-order estimate"):
        mv.activation_patching(toy, GIRL, BOY, to="L1H1", exact=False)


def test_estimates_that_do_not_hold_are_called_so(capsys: pytest.CaptureFixture[str]) -> None:
    """Saturated softmaxes have a slope that says little."""
    texts = "again boy bring bird busy again", "box boy bring bird busy again"
    repeater = mv.load("repeater")
    both, alone = mv.activation_patching(repeater, *texts), mv.activation_patching(repeater, *texts, exact=False)
    assert both.correlation < 0
    assert both.shares.max() > 0.9 > 0.25 > both.estimated.max()
    assert alone.checked is not None
    assert alone.checked_shares == pytest.approx((both.estimated[alone.checked], both.shares[alone.checked]), abs=1e-6)
    assert alone.is_far_off
    assert main(["patch", *texts, "--model", "repeater", "--estimate"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert "is 22.0%; computed exactly, 35.6%: the estimates are unreliable here" in said[-2]
    assert "an important one may have a small estimate" in said[-1]


def test_answers_that_do_not_differ_are_refused_and_those_that_hardly_do_are_said(
    toy: Encoder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not mv.activation_patching(toy, GIRL, BOY).hardly_differs
    with monkeypatch.context() as patched:
        patched.setattr("mha_viz.attention.answers.MIN_DIFFERENCE", 10.0)
        assert main(["patch", GIRL, BOY, "--model", "toy"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "The two answers hardly differ, so these shares mean little."
    monkeypatch.setattr(patching, "ROUNDING_ERROR", 10.0)
    with pytest.raises(SettingError, match="Both texts have the same answer: log p of “she” minus log p of “he”"):
        mv.activation_patching(toy, GIRL, BOY)


def test_a_share_below_zero_is_written_in_the_ink_of_zero() -> None:
    numbers = draw_head_grid(np.array([[1.0, 0.0, -0.02]]), "", (), DARK).series[1]
    assert numbers.inks[2] == numbers.inks[1] != numbers.inks[0]
