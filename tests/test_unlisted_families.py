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

import mha_viz as mv
from mha_viz.cli import main
from mha_viz.errors import ModelUnsupported
from mha_viz.models.families import is_listed
from mha_viz.models.getting.folder import inspect_folder
from mha_viz.models.reading import opening
from mha_viz.models.reading.loading import from_folder, load_one_stack
from tests import lanes, tiny_models, tiny_unlisted
from tests.oracles import SECOND, SENTENCE
from tests.page_session import PageSession


@pytest.mark.parametrize(
    "family", lanes.some(sorted(tiny_unlisted.FAMILIES), "deberta", "deepseek_v3", "doge", "ibert", "olmo3")
)
def test_weights_are_those_of_transformers_bit_for_bit(family: str, tmp_path: Path) -> None:
    assert not is_listed(family)
    folder = tiny_unlisted.build(family, tmp_path)
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    inputs: Any = AutoTokenizer.from_pretrained(folder)(SENTENCE, return_tensors="pt")
    with torch.inference_mode():
        expected = torch.cat(model(**inputs, output_attentions=True).attentions).numpy()
    encoder = load_one_stack(from_folder(folder))
    reading = encoder.encode(SENTENCE)
    assert (reading.weights == expected).all()
    assert reading.made == ("typed", "weights only")
    assert inspect_folder(folder).weights_only
    assert encoder.causal == (not (abs(torch.from_numpy(expected).triu(1)) > 0).any())


def test_what_needs_a_row_is_refused_and_says_so(tmp_path: Path) -> None:
    encoder = load_one_stack(from_folder(tiny_unlisted.build("olmo", tmp_path)))
    for ask in (
        lambda: encoder.trace(SENTENCE),
        lambda: encoder.score_parts(SENTENCE, "L0H0", 2, 1),
        lambda: encoder.w_o(0),
    ):
        with pytest.raises(ModelUnsupported, match="weights only"):
            ask()


REFUSED = {
    "bros": "cannot run {} on the tokens of a text alone: its family also reads bbox.",
    "canine": r"For 32 queries and 32 keys transformers returns weights of {} of shape \(4, 8, 8\): not one for each",
    "led": r"For 32 queries and 32 keys transformers returns weights of {} of shape \(4, 32, 9\): not one for each",
    "lilt": "cannot run {} on the tokens of a text alone: its family also reads bbox.",
    "prophetnet": r"For 32 queries and 32 keys transformers returns weights of {} of shape \(4, 96, 32\): not one",
    "squeezebert": r"{} gives no weights that can be drawn: a weight is -[\d.]+: layer \d, head \d, row",
    "tapas": "cannot run {} on the tokens of a text alone: it stops with “too many indices",
    "yoso": "transformers returns no attention weights of {}.",
}


@pytest.mark.parametrize("family", lanes.some(sorted(REFUSED), "bros", "canine", "led", "prophetnet", "squeezebert"))
def test_a_family_that_cannot_be_read_says_why_and_what_leads_on(family: str, tmp_path: Path) -> None:
    folder = tiny_unlisted.build(family, tmp_path / "e")
    with pytest.raises(ModelUnsupported, match=REFUSED[family].format("“e”")) as refused:
        from_folder(folder)
    assert "mha_viz.Attention.from_tensors" in refused.value.remedy


def test_what_stops_a_library_is_no_damage_where_a_family_has_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stops(*_: object, **__: object) -> None:
        raise ValueError("no such part")

    folder = tiny_unlisted.build("olmo", tmp_path / "e")
    monkeypatch.setattr(opening.AutoTokenizer, "from_pretrained", stops)
    with pytest.raises(ModelUnsupported, match=r"cannot open “e”: no such part\. If its files are complete"):
        from_folder(folder)


@pytest.mark.parametrize("family", ["mamba", "rwkv", "fnet"])
def test_a_model_without_attention_is_refused_by_name(family: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": family}))
    with pytest.raises(ModelUnsupported, match="has no attention"):
        inspect_folder(tmp_path)


@pytest.mark.parametrize("family", lanes.some(sorted(tiny_unlisted.HYBRIDS), "lfm2", "minimax"))
def test_layers_of_a_hybrid_keep_their_numbers(family: str, tmp_path: Path) -> None:
    folder = tiny_unlisted.build(family, tmp_path)
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    inputs: Any = AutoTokenizer.from_pretrained(folder)(SENTENCE, return_tensors="pt")
    with torch.inference_mode():
        maps = model(**inputs, output_attentions=True).attentions
    reading = load_one_stack(from_folder(folder)).encode(SENTENCE)
    assert (reading["L7H1"] == maps[-1][0, 1].numpy()).all()
    assert {head.layer for head in reading.every_head()} == {3, 7}
    assert reading.made == ("typed", "weights only", "of layers 3, 7")
    assert reading.request is not None
    facts = inspect_folder(folder)
    assert (facts.model.layers, facts.attention_layers) == (8, 2)


def test_the_list_of_models_counts_the_layers_with_attention(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for family in ("lfm2", "olmo"):
        tiny_unlisted.build(family, tmp_path / family)
    monkeypatch.setenv("MHA_VIZ_MODELS", f"{tmp_path / 'lfm2'},{tmp_path / 'olmo'}")
    assert main(["models", "--format", "json"]) == 0
    listed = {Path(row["name"]).name: row["layers"] for row in json.loads(capsys.readouterr().out)}
    assert listed == {"lfm2": 2, "olmo": 3}


def test_the_learned_sinks_of_a_model_are_a_column(tmp_path: Path) -> None:
    folder = tiny_unlisted.build("gpt_oss", tmp_path)
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    inputs: Any = AutoTokenizer.from_pretrained(folder)(SENTENCE, return_tensors="pt")
    with torch.inference_mode():
        expected = torch.cat(model(**inputs, output_attentions=True).attentions).numpy()
    encoder = load_one_stack(from_folder(folder))
    reading = encoder.encode(SENTENCE)
    assert (reading.weights[..., :-1] == expected).all()
    assert reading.weights[..., -1] == pytest.approx(1 - expected.sum(-1), abs=1e-6)
    assert (reading.keys.tokens[-1].text, reading.has_sink, encoder.causal) == ("sink", True, True)
    assert reading.made == ("typed", "weights only", "the rest of each row as sink")
    assert reading.request is not None
    assert [each.has_sink for each in encoder.encode_many([SENTENCE, "It is."])] == [True, True]
    with pytest.raises(ModelUnsupported, match="leaves a share of each row to learned sinks"):
        mv.profile("grammar", encoder)
    link = {"model": str(folder), "text": "The cat sat.", "head": "L2H1"}
    assert PageSession(link).shown().header["keys"]["tokens"][-1] == "sink"
    for show in ("off", "similar"):
        assert "sink, " not in PageSession(link | {"show": show}, "pages/20_compare.py").said


def test_a_profile_of_a_hybrid_names_heads_by_their_layers(tmp_path: Path) -> None:
    encoder = load_one_stack(from_folder(tiny_unlisted.build("lfm2", tmp_path / "model")))
    profile = mv.profile("grammar", encoder)
    assert {head.layer for head in profile.heads()} == {3, 7}
    assert {*profile.tables["position"]["layer"]} == {3, 7}
    assert {*profile.head("L7H1")["position"]["layer"]} == {7}
    profile.save(tmp_path / "profile")
    assert mv.load_profile(tmp_path / "profile").layer_numbers == (3, 7)
    assert mv.roles.match_heads(encoder, encoder, most=60)[mv.Head(7, 1)] == (7, 1)
    with pytest.raises(ModelUnsupported, match="has attention in only some of its layers"):
        mv.recipes.fit("grammar", encoder)


def test_the_page_opens_a_hybrid_at_its_first_head_with_attention(tmp_path: Path) -> None:
    folder = tiny_unlisted.build("lfm2", tmp_path)
    page = PageSession({"model": str(folder), "text": "The cat sat."})
    drawn = page.shown().header
    assert (drawn["layer_numbers"], drawn["start"]["head"]) == ([3, 7], "L3H0")
    assert "head=" not in page.said
    page = PageSession({"model": str(folder), "text": "The cat sat.", "head": "L7H1"})
    assert page.shown().header["full"] == [*range(8)]
    assert page.url["head"] == "L7H1"
    for show in ("similar", "layer"):
        page = PageSession(
            {"model": str(folder), "text": "The cat sat.", "head": "L7H1", "show": show}, "pages/20_compare.py"
        )
        assert page.url["head"] == "L7H1"


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
        folder = tiny_unlisted.write_model(LlavaModel(config), tokenizer, tmp_path)
    else:
        gemma = Gemma3Config(text_config=text | {"num_key_value_heads": 2}, vision_config=_IMAGE, mm_tokens_per_image=4)
        folder = tiny_unlisted.write_model(Gemma3Model(gemma), tokenizer, tmp_path)
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    with torch.inference_mode():
        outputs = model(**tokenizer(SENTENCE, return_tensors="pt"), output_attentions=True)
    encoder = load_one_stack(from_folder(folder))
    assert encoder.family == family
    assert (encoder.encode(SENTENCE).weights == torch.cat(outputs.attentions).numpy()).all()
    assert encoder.trace(SENTENCE).heads == 4


def test_two_berts_are_read_as_an_encoder_decoder(tmp_path: Path) -> None:
    tokenizer = tiny_models.wordpiece(BertTokenizer)
    stack = BertConfig(vocab_size=len(tokenizer), **_SIZES)
    made = EncoderDecoderModel(config=EncoderDecoderConfig.from_encoder_decoder_configs(stack, stack))
    made.generation_config.decoder_start_token_id = tokenizer.cls_token_id
    folder = tiny_unlisted.write_model(made, tokenizer, tmp_path)
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
