"""The functions that ask what heads do for the answer to one text: tables, taps, and the sets without which it changes,
against hooks in float64 on plain transformers."""

from __future__ import annotations

from itertools import product
from typing import Any, get_type_hints

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer, BertForMaskedLM

import mha_viz as mv
from mha_viz.errors import ModelUnsupported, SettingError, TextError
from mha_viz.files.assets import asset_path
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.probe import find_attention_modules
from mha_viz.request import Request
from mha_viz.study.one_text import RequestFields

GIRL, BOY = "The girl smiles because [MASK] sings .", "The boy smiles because [MASK] sings ."
LAYERS, HEADS, SIZE = 2, 4, 16


class Silent(mv.Tap):
    """L1H1 puts out nothing."""

    def layer(self, index: int, query: Any, key: Any, value: Any, output: torch.Tensor) -> torch.Tensor:
        if index == 1:
            output[:, :, 1] = 0
        return output


def by_hand(texts: tuple[str, str]) -> tuple[Any, np.ndarray, np.ndarray]:
    """The tokenizer of the toy; log p [word] at the mask of the first text, as it is and with each head's output on the
    second one, [layer, head, word]."""
    kind: Any = BertForMaskedLM
    model = kind.from_pretrained(asset_path("toy"), attn_implementation="eager").eval().double()
    tokenizer = AutoTokenizer.from_pretrained(asset_path("toy"))
    inputs = [tokenizer(text, return_tensors="pt") for text in texts]
    at = int((inputs[0]["input_ids"][0] == tokenizer.mask_token_id).nonzero())
    theirs: list[torch.Tensor] = []

    def run(which: int) -> np.ndarray:
        logits: torch.Tensor = model(**inputs[which]).logits[0, at]
        return logits.log_softmax(-1).numpy()

    with torch.no_grad():
        outputs = [find_attention_modules(model.bert, layer).output for layer in range(LAYERS)]
        hooks = [output.register_forward_pre_hook(lambda _, x: theirs.append(x[0].clone())) for output in outputs]
        run(1)
        for hook in hooks:
            hook.remove()
        whole, changed = run(0), []
        for layer, head in product(range(LAYERS), range(HEADS)):

            def taken(_: Any, x: Any, layer: int = layer, head: int = head) -> Any:
                mixed = x[0].clone()
                mixed[..., head * SIZE : (head + 1) * SIZE] = theirs[layer][..., head * SIZE : (head + 1) * SIZE]
                return (mixed,)

            hook = outputs[layer].register_forward_pre_hook(taken)
            changed.append(run(0))
            hook.remove()
    return tokenizer, whole, np.array(changed)


def test_effects_and_answers_are_those_of_hooks_in_float64(toy: Encoder) -> None:
    tokenizer, whole, changed = by_hand((GIRL, BOY))
    she, he = (tokenizer.convert_tokens_to_ids(word) for word in ("she", "he"))
    table = mv.ablation_effects(toy, GIRL, method="text", source=BOY).table()
    assert list(table.columns) == ["sentence", "answer", "score", "changed", "rank"]
    divergences = (np.exp(whole) * (whole - changed)).sum(axis=1)
    assert np.allclose(table["answer"], divergences, atol=1e-5)
    assert np.allclose(table["score"], changed[:, she] - whole[she], atol=1e-5)
    assert table["rank"].tolist() == (1 + np.argsort(np.argsort(-divergences))).tolist()
    assert table["rank"].idxmin() == "L1H1"
    answer = mv.predict(toy, GIRL, ["L1H1"], method="text", source=BOY)
    assert answer.best == ("she", "he")
    expected = np.exp([[each[she], each[he]] for each in (whole, changed[5])])
    assert np.allclose(answer.table().loc[["she", "he"]].to_numpy().T, expected, atol=1e-5)
    switch = mv.minimal_ablation(toy, GIRL, "he", method="text", source=BOY)
    assert switch.table()["head"].tolist() == ["", "L1H1"]
    margins = [each[he] - np.delete(each, he).max() for each in (whole, changed[5])]
    assert switch.table()["margin"].tolist() == pytest.approx(margins, abs=1e-5)


def test_a_tap_changes_the_answer_as_the_heads_that_it_switches_off(toy: Encoder, minilm: Encoder) -> None:
    for encoder, text, other in ((toy, GIRL, ""), (minilm, "It is.", "It was.")):
        by_tap, by_heads = (
            mv.predict(encoder, text, **how, other=other) for how in ({"tap": Silent}, {"heads": ["L1H1"]})
        )
        assert np.array_equal(by_tap.table(), by_heads.table())
        assert not np.array_equal(by_tap.before, by_tap.after)
    first, both = (mv.predict(minilm, "It is.", tap=Silent, other="It was.", off_in=off) for off in ("first", "both"))
    states = [minilm.states("It is.", tap=Silent)[0].mean(0), minilm.states("It was.")[0].mean(0)]
    assert first.after[0] == pytest.approx(states[0] @ states[1] / np.prod(np.linalg.norm(states, axis=1)), abs=1e-6)
    assert first.after[0] != both.after[0]
    with pytest.raises(SettingError, match="Heads and a tap were given"):
        mv.predict(toy, GIRL, ["L1H1"], tap=Silent)
    no_heads: list[str] = []
    assert np.array_equal(mv.predict(toy, GIRL, no_heads, tap=Silent).after, mv.predict(toy, GIRL, tap=Silent).after)


def test_numbers_of_heads_are_tables(toy: Encoder) -> None:
    importance = mv.gradient_importance(toy, GIRL)
    assert importance.score == "log p of “she” at token 5"
    squares = importance.table()["importance"].pow(2).to_numpy().reshape(LAYERS, HEADS)
    assert np.allclose(squares.sum(axis=1), 1), "normalised within each layer"
    direct = mv.direct_logit_attribution(mv.load("repeater"), "dog river anna dog river").table()["direct"]
    assert direct.nlargest(4).index.str.startswith("L1").all(), "the induction heads"
    assert list(mv.ablation_effects(toy, "The girl sings .").table().columns) == ["sentence", "rank"], (
        "no word is asked for"
    )


def test_what_cannot_be_asked_is_said(toy: Encoder, minilm: Encoder) -> None:
    with pytest.raises(ModelUnsupported, match="more than one norm"):
        mv.direct_logit_attribution(toy, GIRL)
    with pytest.raises(ModelUnsupported, match="cannot predict words"):
        mv.predict(minilm, "It is.")
    with pytest.raises(TextError, match="no \\[MASK\\]"):
        mv.ablation_effects(toy, "The girl sings .", word="she")
    with pytest.raises(TextError, match="“zzz” is not in the vocabulary"):
        mv.minimal_ablation(toy, GIRL, "zzz")
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        mv.ablation_effects(toy, GIRL, wrod="she")  # type: ignore[call-arg]


def test_what_is_asked_by_name_are_fields_of_a_request(toy: Encoder) -> None:
    assert get_type_hints(RequestFields).items() <= get_type_hints(Request).items()
    for measure, name in ((mv.gradient_importance, "importance"), (mv.direct_logit_attribution, "direct")):
        with pytest.raises(SettingError, match=f"The measure “{name}” does not switch heads off"):
            measure(toy, GIRL, method="mean")
