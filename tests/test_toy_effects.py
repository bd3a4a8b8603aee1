"""The toy model's answers at pronouns without some of its heads, compared with transformers' own model."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import AutoTokenizer, BertForMaskedLM

from mha_viz.attention import Head
from mha_viz.corpus import grammar
from mha_viz.files.assets import asset_path
from mha_viz.models.reading.loading import load
from mha_viz.study.toy_effects import COLUMNS, measure_without_heads

SENTENCES, SEED = 60, 0


@pytest.fixture(scope="module")
def model() -> Any:
    kind: Any = BertForMaskedLM
    return kind.from_pretrained(asset_path("toy"), attn_implementation="eager").eval()


def silenced(model: Any, off: list[Head]) -> list[Any]:
    """Hooks that make heads output zero."""

    def hook(head: Head) -> Any:
        def zero(_: Any, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
            changed = inputs[0].clone()
            changed[..., 16 * head.head : 16 * (head.head + 1)] = 0
            return (changed,)

        return zero

    layers = model.bert.encoder.layer
    return [layers[head.layer].attention.output.dense.register_forward_pre_hook(hook(head)) for head in off]


def correct(model: Any, off: list[Head]) -> tuple[int, int]:
    """Right answers at masked pronouns with an earlier mention of their chain, and the number of such pronouns."""
    tokenizer = AutoTokenizer.from_pretrained(asset_path("toy"))
    hooks = silenced(model, off)
    right = count = 0
    for sentence in grammar.corpus(SENTENCES, SEED).sentences:
        for mention in sentence.mentions:
            earlier = any(m.chain == mention.chain and m.word < mention.word for m in sentence.mentions)
            if not earlier or sentence.words[mention.word].upos != "PRON":
                continue
            forms = [word.form for word in sentence.words]
            forms[mention.word] = "[MASK]"
            ids = tokenizer(forms, is_split_into_words=True, return_tensors="pt")["input_ids"]
            with torch.no_grad():
                logits = model(ids).logits[0, ids[0].tolist().index(tokenizer.mask_token_id)]
            pronoun = sentence.words[mention.word].form.lower()
            right += int(logits.argmax()) == tokenizer.convert_tokens_to_ids(pronoun)
            count += 1
    for each in hooks:
        each.remove()
    return right, count


@pytest.mark.app
def test_accuracies_without_heads_are_those_of_transformers(model: Any) -> None:
    table = measure_without_heads(load("toy"), SEED, SENTENCES)
    assert tuple(table.columns) == COLUMNS
    rows = table.set_index("off")
    variants = {"none": [], "L1H1": [Head(1, 1)], "layer 1": [Head(1, head) for head in range(4)]}
    for name, off in variants.items():
        right, count = correct(model, off)
        assert (rows.loc[name, "correct"], rows.loc[name, "n"]) == (right, count), name
        assert rows.loc[name, "accuracy"] == pytest.approx(right / count)
    alone = rows.loc[[f"L1H{head}" for head in range(4)], "accuracy"]
    assert alone.idxmin() == "L1H1"
    assert rows.loc["none", "accuracy"] - alone["L1H1"] > 0.1
    assert rows.loc["none", "accuracy"] > rows.loc["none", "baseline"]
