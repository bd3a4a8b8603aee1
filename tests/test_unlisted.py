"""Families without a row: the weights that transformers returns, bit for bit, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoModel,
    AutoTokenizer,
    BertConfig,
    BertTokenizer,
    EncoderDecoderConfig,
    EncoderDecoderModel,
    Gemma3Config,
    Gemma3Model,
    GPT2Tokenizer,
    LlavaConfig,
    LlavaModel,
)

from mha_viz.errors import ModelUnsupported
from mha_viz.models.families import is_listed
from mha_viz.models.folder import look_at
from mha_viz.models.loading import from_folder, one_stack
from tests import lanes, tiny_models, tiny_unlisted
from tests.oracles import SECOND, SENTENCE


@pytest.mark.parametrize("family", lanes.some(sorted(set(tiny_unlisted.FAMILIES) - {"lfm2"}), "deberta", "deepseek_v3", "olmo3"))
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


def test_a_model_with_attention_in_some_layers_is_refused_with_both_numbers(tmp_path: Path) -> None:
    with pytest.raises(ModelUnsupported, match="Of the 3 layers of .*, 1 have attention"):
        from_folder(tiny_unlisted.build("lfm2", tmp_path))


_SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}
_IMAGE: dict[str, Any] = _SIZES | {"image_size": 8, "patch_size": 4}
_ENDS = {"pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0}


@pytest.mark.parametrize("family", ["gemma3_text", "llama"])
def test_the_model_of_text_inside_a_larger_one_is_read_with_everything(family: str, tmp_path: Path) -> None:
    tokenizer = tiny_models.byte_level(GPT2Tokenizer, ("<|endoftext|>",))
    text = _SIZES | _ENDS | {"vocab_size": len(tokenizer), "head_dim": 8}
    if family == "llama":
        image = _IMAGE | {"model_type": "clip_vision_model"}
        config = LlavaConfig(text_config=text | {"model_type": family}, vision_config=image, image_token_index=5)
        folder = tiny_unlisted.written(LlavaModel(config), tokenizer, tmp_path)
    else:
        gemma = Gemma3Config(text_config=text | {"num_key_value_heads": 2}, vision_config=_IMAGE, mm_tokens_per_image=4)
        folder = tiny_unlisted.written(Gemma3Model(gemma), tokenizer, tmp_path)
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    with torch.inference_mode():
        outputs = model(**tokenizer(SENTENCE, return_tensors="pt"), output_attentions=True)
    encoder = one_stack(from_folder(folder))
    assert encoder.family == family
    assert (encoder.encode(SENTENCE).weights == torch.cat(outputs.attentions).numpy()).all()
    assert encoder.trace(SENTENCE).heads == 4


def test_two_berts_are_read_as_an_encoder_decoder(tmp_path: Path) -> None:
    tokenizer = tiny_models.wordpiece(BertTokenizer)
    stack = BertConfig(vocab_size=len(tokenizer), **_SIZES)
    made = EncoderDecoderModel(config=EncoderDecoderConfig.from_encoder_decoder_configs(stack, stack))
    made.generation_config.decoder_start_token_id = tokenizer.cls_token_id
    folder = tiny_unlisted.written(made, tokenizer, tmp_path)
    model = EncoderDecoderModel.from_pretrained(folder, attn_implementation="eager").eval()
    target = [tokenizer.cls_token_id, *tokenizer(SECOND).input_ids[:-1]]  # shifted by one
    with torch.inference_mode():
        outputs = model(
            **tokenizer(SENTENCE, return_tensors="pt"),
            decoder_input_ids=torch.tensor([target]),
            output_attentions=True,
        )
    loaded = from_folder(folder)
    for part in ("encoder", "decoder", "cross"):
        reading = loaded.encode(SENTENCE, target="" if part == "encoder" else SECOND, part=part)
        assert (reading.weights == torch.cat(outputs[f"{part}_attentions"]).numpy()).all(), part
        assert reading.made[-1] == "weights only"
