"""Families without a row: the weights that transformers returns, bit for bit, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from mha_viz.errors import ModelUnsupported
from mha_viz.models.families import is_listed
from mha_viz.models.folder import look_at
from mha_viz.models.loading import from_folder, one_stack
from tests import lanes, tiny_unlisted
from tests.oracles import SENTENCE


@pytest.mark.parametrize("family", lanes.some(sorted(tiny_unlisted.FAMILIES), "deberta", "deepseek_v3", "olmo3"))
def test_weights_are_those_of_transformers_bit_for_bit(family: str, tmp_path: Path) -> None:
    assert not is_listed(family)
    folder = tiny_unlisted.build(family, tmp_path)
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    inputs: Any = AutoTokenizer.from_pretrained(folder)(SENTENCE, return_tensors="pt")
    with torch.inference_mode():
        expected = torch.cat(model(**inputs, output_attentions=True).attentions).numpy()
    encoder = one_stack(from_folder(folder))
    reading = encoder.encode(SENTENCE)
    assert (reading.weights == expected).all()
    assert reading.made == ("typed", "weights only")
    assert look_at(folder).weights_only
    assert encoder.causal == (not (abs(torch.from_numpy(expected).triu(1)) > 0).any())


def test_what_needs_a_row_is_refused_and_says_so(tmp_path: Path) -> None:
    encoder = one_stack(from_folder(tiny_unlisted.build("olmo", tmp_path)))
    for ask in (
        lambda: encoder.trace(SENTENCE),
        lambda: encoder.score_parts(SENTENCE, "L0H0", 2, 1),
        lambda: encoder.w_o(0),
    ):
        with pytest.raises(ModelUnsupported, match="weights only"):
            ask()


@pytest.mark.parametrize("family", ["mamba", "rwkv", "fnet"])
def test_a_model_without_attention_is_refused_by_name(family: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": family}))
    with pytest.raises(ModelUnsupported, match="has no attention"):
        look_at(tmp_path)
