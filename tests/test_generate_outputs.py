"""Attention of text that a model wrote with ``generate()``: joined, it equals that of reading the text at once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    MistralConfig,
    MistralForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from mha_viz import Attention
from mha_viz.errors import ShapeError

NEW = 6
PROMPT = torch.tensor([[3, 4, 5, 6]])
BOTH = torch.tensor([[3, 4, 5, 6], [8, 9, 10, 11]])
LONG = torch.tensor([[3, 4, 5, 6, 3, 4, 5, 6, 3, 4]])
EAGER: dict[str, Any] = {"vocab_size": 40, "attn_implementation": "eager"}


SPREAD: dict[str, Any] = {"tie_word_embeddings": False}  # with large weights, so that the model writes different tokens


@pytest.fixture(scope="module")
def gpt2() -> Any:
    torch.manual_seed(1)
    small = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64, "initializer_range": 0.2}
    return GPT2LMHeadModel(GPT2Config(**small, **SPREAD, **EAGER)).eval()


@pytest.fixture(scope="module")
def t5() -> Any:
    torch.manual_seed(1)
    small = {"d_model": 16, "d_kv": 8, "num_layers": 2, "num_heads": 2, "d_ff": 16}
    model = T5ForConditionalGeneration(T5Config(initializer_factor=2.0, **small, **SPREAD, **EAGER)).eval()
    torch.nn.init.normal_(model.lm_head.weight, std=0.3)
    return model


def write(model: Any, prompt: torch.Tensor, mask: torch.Tensor | None = None, **options: Any) -> Any:
    mask = torch.ones_like(prompt) if mask is None else mask
    usual = {
        "max_new_tokens": NEW,
        "do_sample": False,
        "pad_token_id": 0,
        "eos_token_id": None,
        "decoder_start_token_id": 0,
    }
    returned = {"output_attentions": True, "return_dict_in_generate": True}
    return model.generate(prompt, attention_mask=mask, **(usual | returned | options))


def names_of(ids: torch.Tensor) -> list[str]:
    return [f"▁t{number}" for number in ids.tolist()]


def written(ids: torch.Tensor) -> str:
    return f"“{' '.join(name[1:] for name in names_of(ids))}” written by the model"


@torch.no_grad()
def read_at_once(model: Any, ids: torch.Tensor) -> np.ndarray:
    """[layer, head, query, key]."""
    layers = model(ids[None], output_attentions=True).attentions
    return torch.stack(layers)[:, 0].numpy()


@pytest.mark.parametrize(
    ("prompt", "options"),
    [
        (PROMPT, {}),
        (PROMPT, {"use_cache": False}),
        (PROMPT[:, :1], {}),
        (PROMPT[:, :1], {"use_cache": False}),
        (PROMPT, {"cache_implementation": "static"}),
        (LONG, {"prompt_lookup_num_tokens": 3}),
        (PROMPT, {"num_beams": 3}),
        (BOTH, {"num_beams": 3, "num_return_sequences": 2}),
        (BOTH, {}),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else str(tuple(value.shape)),
)
def test_joined_steps_equal_reading_the_whole_text(gpt2: Any, prompt: torch.Tensor, options: dict[str, Any]) -> None:
    generated = write(gpt2, prompt, **options)
    several = len(generated.sequences) > 1
    for sequence, ids in enumerate(generated.sequences):
        read = Attention.from_generated(generated, names_of(ids), sequence=sequence if several else None)
        assert read.tokens == tuple(name[1:] for name in names_of(ids)[:-1])
        assert read.weights == pytest.approx(read_at_once(gpt2, ids[:-1]), abs=1e-5)
        assert read.made == (written(ids[len(prompt[0]) : -1]),)


def test_beams_change_places_in_these_tests(gpt2: Any, t5: Any) -> None:
    for model in (gpt2, t5):
        assert len({*write(model, PROMPT, num_beams=3).beam_indices[0].tolist()}) > 1


def test_a_cache_of_a_window_holds_the_latest_keys() -> None:
    torch.manual_seed(0)
    heads = {"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8}
    config = MistralConfig(hidden_size=16, intermediate_size=16, sliding_window=5, **heads, **EAGER)
    model = MistralForCausalLM(config).eval()
    generated = write(model, LONG)
    assert generated.attentions[-1][0].shape[-1] == 5
    read = Attention.from_generated(generated, names_of(generated.sequences[0]))
    assert read.weights == pytest.approx(read_at_once(model, generated.sequences[0][:-1]), abs=1e-5)
    assert not read["L0H0"][9, :5].any()


def test_padding_before_a_prompt_and_after_a_text_is_left_out(gpt2: Any) -> None:
    prompts, mask = torch.tensor([[0, 0, 3, 4], [8, 9, 10, 11]]), torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1]])
    generated = write(gpt2, prompts, mask)
    ids, kept = generated.sequences[0], torch.tensor([0, 0, 1, 1] + [1] * NEW)
    kept[-2:] = 0  # as after an end
    read = Attention.from_generated(generated, names_of(ids), sequence=0, mask=kept)
    assert read.weights == pytest.approx(read_at_once(gpt2, ids[2:-2]), abs=1e-5)
    assert read.made == (written(ids[4:-2]),)


@pytest.mark.parametrize("options", [{}, {"use_cache": False}, {"num_beams": 3}], ids=str)
def test_an_encoder_decoder_has_a_row_for_each_token_that_it_went_on_from(t5: Any, options: dict[str, Any]) -> None:
    generated = write(t5, PROMPT, **options)
    ids = generated.sequences[0]
    to_target = Attention.from_generated(generated, names_of(ids))
    to_source = Attention.from_generated(generated, names_of(ids), names_of(PROMPT[0]))
    with torch.no_grad():
        outputs = t5(input_ids=PROMPT, decoder_input_ids=ids[None, :-1], output_attentions=True)
    for read, layers in ((to_target, outputs.decoder_attentions), (to_source, outputs.cross_attentions)):
        assert read.weights == pytest.approx(torch.stack(layers)[:, 0].numpy(), abs=1e-5)
        assert read.made == (written(ids[1:-1]),)
    assert [token.text for token in to_source.keys.tokens] == [name[1:] for name in names_of(PROMPT[0])]


def test_one_new_token_leaves_the_prompt(gpt2: Any) -> None:
    generated = write(gpt2, PROMPT, max_new_tokens=1)
    read = Attention.from_generated(generated, names_of(generated.sequences[0]), model="mine")
    assert (len(read.text), read.made, read.model) == (4, (), "mine")


@pytest.mark.parametrize("options", [{}, {"num_beams": 3, "num_return_sequences": 3}], ids=str)
def test_a_text_that_ended_before_another(gpt2: Any, options: dict[str, Any]) -> None:
    generated = write(gpt2, BOTH, eos_token_id=35, **options)
    sequence, ids = next((i, ids) for i, ids in enumerate(generated.sequences) if 35 in ids[4:-1])
    kept = torch.arange(len(ids)) <= int((ids == 35).nonzero()[0])  # up to the end
    read = Attention.from_generated(generated, names_of(ids), sequence=sequence, mask=kept)
    assert len(read.text) == int(kept.sum()) - bool(options)  # what beams end with is not read
    assert read.weights == pytest.approx(read_at_once(gpt2, ids[: len(read.text)]), abs=1e-5)


# ---- Refused --------------------------------------------------------------------------------------------------


def test_several_texts_have_to_be_chosen_from(gpt2: Any) -> None:
    generated = write(gpt2, BOTH)
    names = names_of(generated.sequences[1])
    with pytest.raises(ShapeError, match=r"2 texts were generated\. Choose one, such as sequence=0"):
        Attention.from_generated(generated, names)
    for wrong in (2, -1, True, "0"):
        with pytest.raises(ShapeError, match=r"sequence is .* Expected a number from 0 to 1"):
            Attention.from_generated(generated, names, sequence=wrong)  # type: ignore[arg-type]


def test_tokens_of_something_else_are_refused(gpt2: Any) -> None:
    generated = write(gpt2, PROMPT)
    names = names_of(generated.sequences[0])
    for wrong in (names[4:], names[:-2], [*names, "more"]):
        with pytest.raises(ShapeError, match="tokens were given, but the model read 9 and wrote one more"):
            Attention.from_generated(generated, wrong)
    assert len(Attention.from_generated(generated, names[:-1]).text) == 9
    with pytest.raises(ShapeError, match="keys are for encoder–decoders"):
        Attention.from_generated(generated, names, ["a"])


LAYER = np.ones((1, 1, 1, 1), np.float32)
ONE_TOKEN = {"sequences": [[3, 4]], "attentions": ((LAYER,),)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"attentions": None}, r"returned no attentions. Call generate\(…, output_attentions=True.*eager"),
        ({"attentions": ((None,),)}, "returned no attentions"),
        ({"attentions": (LAYER,)}, "the layers of one pass, .* to Attention.from_tensors"),
        ({"attentions": ((LAYER[0],),)}, "without layers"),
        ({"attentions": ((LAYER,), (LAYER, LAYER))}, "The steps have .* layers"),
        ({"attentions": ((np.ones((4, 1, 1, 1)),),)}, "read 4 beams together, and nothing says which.*num_beams=1"),
        ({"beam_indices": [[1]]}, "names beams other than the 1"),
        ({"beam_indices": [[0], [0]]}, r"beam_indices has shape \(2, 1\)"),
        ({"sequences": [3, 4]}, r"sequences has shape \(2,\)"),
        ({"sequences": None}, "sequences is 'None'"),
        ({"attentions": ((LAYER * 0.5,),)}, "row 0 sums to 0.5 instead of 1"),
        (
            {"attentions": ((np.full((1, 1, 1, 4), 0.25),),)},
            "1 tokens has weight on 4 keys, but only 1 had been read.*past_key",
        ),
        (
            {"sequences": [[3, 4, 5]], "attentions": ((LAYER,), (np.array([[[[1.0, 0.0]]]], np.float32),))},
            "no weight on the token that it read, in any head.*without assistant_model",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_not_returned_by_generate_is_refused(changes: dict[str, Any], message: str) -> None:
    assert Attention.from_generated(SimpleNamespace(**ONE_TOKEN), ["a", "b"]).tokens == ("a",)
    with pytest.raises(ShapeError, match=message):
        Attention.from_generated(SimpleNamespace(**(ONE_TOKEN | changes)), ["a", "b"])


def test_sequences_alone_are_refused(gpt2: Any) -> None:
    with pytest.raises(ShapeError, match=r"is not a result of generate\(\)\. Call generate"):
        Attention.from_generated(write(gpt2, PROMPT, return_dict_in_generate=False), ["a"])
    with pytest.raises(ShapeError, match=r"for Attention\.from_generated"):
        Attention.from_tensors(write(gpt2, PROMPT).attentions, ["a"])


def test_layers_keep_their_numbers() -> None:
    hybrid = SimpleNamespace(sequences=[[3, 4]], attentions=((None, LAYER, None, LAYER),))
    given = SimpleNamespace(sequences=[[3, 4]], attentions=((LAYER, LAYER),))
    by_themselves = Attention.from_generated(hybrid, ["a", "b"])
    named = Attention.from_generated(given, ["a", "b"], layers=[1, 3])
    assert by_themselves.made == named.made != ()
    assert [*by_themselves.measures().index] == [*named.measures().index]
    assert named["L3H0"].tolist() == [[1]]


def test_a_sink_of_written_text() -> None:
    half = SimpleNamespace(sequences=[[3, 4]], attentions=((LAYER * 0.5,),))
    assert Attention.from_generated(half, ["a", "b"], sink=True)["L0H0"].tolist() == [[0.5, 0.5]]
