"""Each family's attention compared with plain transformers, eager, on the same weights; words and spans from its
tokenizer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModel, AutoTokenizer
from transformers.pytorch_utils import Conv1D

from mha_viz.attention import Weights
from mha_viz.errors import EmptyText, TextError
from mha_viz.models.families import FAMILIES, is_setting_true
from mha_viz.models.reading import capture, linear
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import from_folder, load_one_stack
from mha_viz.models.reading.opening import open_folder
from mha_viz.models.reading.probe import find_attention_modules
from tests import hostile, lanes, tiny_models
from tests.oracles import EQUAL, SECOND, SENTENCE, check_text, collect_attentions, load_plain, silence_heads

Folder = Callable[[str], Path]
Tiny = Callable[[str], Encoder]
EVERY = sorted(FAMILIES)  # every offered family has a tiny model
families = pytest.mark.parametrize("family", EVERY)
ALGORITHMS = ("albert", "bert", "llama")  # SentencePiece, WordPiece, byte pairs
tokenizers = pytest.mark.parametrize("family", lanes.some(EVERY, *tiny_models.TOKENIZERS))
with_pairs = pytest.mark.parametrize("family", tiny_models.WITH_PAIRS)


def oracle(folder: Path, *typed: str, limit: int = 64) -> Weights:
    """[layer, head, query, key] from transformers itself, including its tokenizer."""
    model, tokenizer = load_plain(folder)
    inputs = tokenizer(*typed, return_tensors="pt", truncation="longest_first", max_length=limit)
    with torch.no_grad():
        layers = collect_attentions(model, model(**inputs, output_attentions=True))
    assert len(layers) == tiny_models.LAYERS
    weights: Weights = torch.cat(layers).numpy()
    return weights


@families
def test_one_text_equals_transformers(family: str, tiny: Tiny, tiny_folder: Folder) -> None:
    weights = tiny(family).encode(SENTENCE).weights
    assert np.abs(weights - oracle(tiny_folder(family), SENTENCE)).max() <= EQUAL
    assert tiny(family).family == family
    assert tiny(family).causal != np.triu(weights, 1).any()
    of_heads = weights.reshape(tiny_models.LAYERS * tiny_models.HEADS, -1)
    distances = np.abs(of_heads[:, None] - of_heads[None]).max(axis=2)
    differ = distances[~np.eye(len(distances), dtype=bool)].min()
    assert differ > 1000 * EQUAL, "heads of a tiny model that are alike would hide a wrong order"


@with_pairs
def test_a_pair_equals_transformers(family: str, tiny: Tiny, tiny_folder: Folder) -> None:
    weights = tiny(family).encode(SENTENCE, SECOND).weights
    assert np.abs(weights - oracle(tiny_folder(family), SENTENCE, SECOND)).max() <= EQUAL


@families
def test_a_cut_text_equals_transformers(family: str, tiny: Tiny, tiny_folder: Folder) -> None:
    attention = tiny(family).encode(SENTENCE * 9)
    assert len(attention.text) == tiny(family).limit == 64
    assert np.abs(attention.weights - oracle(tiny_folder(family), SENTENCE * 9)).max() <= EQUAL


@pytest.mark.parametrize(
    ("family", "lengths"), lanes.pair_values(tiny_models.WITH_PAIRS, [(9, 1), (1, 9), (9, 9), (2, 9)]), ids=str
)
def test_a_cut_pair_equals_transformers(family: str, lengths: tuple[int, int], tiny: Tiny, tiny_folder: Folder) -> None:
    typed = (SECOND * lengths[0], SECOND * lengths[1])
    weights = tiny(family).encode(*typed).weights
    assert np.abs(weights - oracle(tiny_folder(family), *typed)).max() <= EQUAL


@pytest.mark.parametrize("family", sorted(capture.PLAIN_FAMILIES))
def test_the_family_s_own_function_gives_the_same(family: str, tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = tiny(family).encode(SENTENCE).weights
    monkeypatch.setattr(capture, "PLAIN_FAMILIES", frozenset())
    assert np.abs(tiny(family).encode(SENTENCE).weights - expected).max() <= EQUAL


@pytest.mark.parametrize("family", lanes.some(EVERY, "bert", "distilbert", "falcon", "gpt2", "llama", "xlnet"))
def test_without_onednn_the_same(family: str, tiny: Tiny, tiny_folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = tiny(family).encode(SENTENCE).weights  # first: the model that all tests share keeps its own layers
    monkeypatch.setattr(linear, "is_available", lambda: False)
    encoder = load_one_stack(from_folder(tiny_folder(family)))
    assert not any(isinstance(m, linear.PackedLinear) for m in encoder._model.modules())
    assert np.abs(encoder.encode(SENTENCE).weights - expected).max() <= EQUAL


@pytest.mark.usefixtures("packing")
def test_packing_reaches_every_linear_layer(tiny: Tiny) -> None:
    for family in tiny_models.FAMILIES:
        left = [type(m).__name__ for m in tiny(family)._model.modules()]
        assert "Linear" not in left, family
        assert "Conv1D" not in left, family


def test_a_bert_that_is_a_decoder_is_causal(tmp_path: Path) -> None:
    model, tokenizer = tiny_models._bert(is_decoder=True)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    decoder = Encoder.from_folder(tmp_path)
    assert decoder.causal
    assert not np.triu(decoder.encode(SENTENCE).weights, 1).any()


@pytest.mark.parametrize("kind", sorted({*tiny_models.OTHERS} - {"falcon by distance", "opt behind"}))
def test_other_settings_of_a_family_equal_transformers(kind: str, tiny: Tiny, tiny_folder: Folder) -> None:
    weights = tiny(kind).encode(SENTENCE).weights
    assert np.abs(weights - oracle(tiny_folder(kind), SENTENCE)).max() <= EQUAL
    assert tiny(kind).causal
    assert not np.triu(weights, 1).any()


def test_a_falcon_that_knows_places_by_distance_is_what_transformers_runs(tiny: Tiny, tiny_folder: Folder) -> None:
    """Its eager attention adds the distance term twice; the attention that transformers uses by default adds it
    once."""
    folder = tiny_folder("falcon by distance")
    model = AutoModel.from_pretrained(folder, attn_implementation="sdpa").eval()
    inputs = AutoTokenizer.from_pretrained(folder)(SENTENCE, return_tensors="pt")
    with torch.no_grad():
        states = model(**inputs).last_hidden_state.numpy()
    assert np.abs(tiny("falcon by distance").states(SENTENCE) - states).max() <= EQUAL
    twice = np.abs(tiny("falcon by distance").encode(SENTENCE).weights - oracle(folder, SENTENCE)).max()
    assert twice > 1000 * EQUAL  # otherwise the eager attention is correct by now, and this test must be changed


def test_a_window_hides_what_is_further_away(tiny: Tiny) -> None:
    weights = tiny("longformer").encode(SENTENCE).weights
    places = np.arange(weights.shape[2])
    for layer, window in zip(weights, tiny("longformer").config.attention_window, strict=True):
        is_near = abs(places[:, None] - places) <= window // 2
        assert not is_near.all()
        assert (layer[:, ~is_near] == 0).all()
        assert (layer[:, is_near] > 0).all()


def test_a_big_bird_that_is_sparse_on_long_texts_shows_every_weight(tmp_path: Path, tiny_folder: Folder) -> None:
    for file in tiny_folder("big_bird").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = (tmp_path / "config.json").read_text("utf-8")
    assert "original_full" in config
    (tmp_path / "config.json").write_text(config.replace("original_full", "block_sparse"), "utf-8")
    weights = Encoder.from_folder(tmp_path).encode(SENTENCE).weights
    assert np.abs(weights - oracle(tiny_folder("big_bird"), SENTENCE)).max() <= EQUAL


def test_gpt2_takes_no_pair(tiny: Tiny) -> None:
    with pytest.raises(TextError, match="one text at a time"):
        tiny("gpt2").encode(SENTENCE, SECOND)


class _Silenced(capture.Tap):
    """Head 2 outputs nothing in any layer; in every layer, because ALBERT has only one."""

    def layer(
        self, index: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, output: torch.Tensor
    ) -> torch.Tensor:
        output[:, :, 2] = 0
        return output


# Of the other families, tests/test_ablation.py shows the same.
@pytest.mark.parametrize("family", lanes.some(EVERY, "albert", "bert"))
def test_a_tap_that_silences_a_head_equals_zeroed_rows_of_w_o(family: str, tiny: Tiny, tiny_folder: Folder) -> None:
    ours = tiny(family).through(SENTENCE, tap=_Silenced)[0].weights
    every_layer = [(layer, 2) for layer in range(tiny_models.LAYERS)]
    with silence_heads(load_plain(tiny_folder(family))[0], every_layer, tiny_models.HEADS):
        expected = oracle(tiny_folder(family), SENTENCE)
    assert np.abs(ours - expected).max() <= EQUAL
    assert np.abs(ours - tiny(family).encode(SENTENCE).weights)[1:].max() > 1000 * EQUAL


class _Values(capture.Tap):
    """The values of the heads of every layer: [layer][head, n, d_k]."""

    def __init__(self, weights: torch.Tensor) -> None:
        super().__init__(weights)
        self.values: list[torch.Tensor] = []

    def layer(
        self, index: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, output: torch.Tensor
    ) -> torch.Tensor:
        self.values.append(value[0])
        return output


@families
def test_the_last_of_the_input_layers_makes_the_values(family: str, tiny: Tiny) -> None:
    made: list[torch.Tensor] = []
    model, layers = tiny(family)._model, range(tiny_models.LAYERS)
    modules = {id(one): one for one in (find_attention_modules(model, layer).inputs[-1] for layer in layers)}
    hooks = [one.register_forward_hook(lambda _, __, result: made.append(result[0])) for one in modules.values()]
    _, tap = tiny(family).through(SENTENCE, tap=_Values)
    for hook in hooks:
        hook.remove()
    assert isinstance(tap, _Values)
    for columns, value in zip(made, tap.values, strict=True):  # [n, …], of all three where one layer makes them
        if FAMILIES[family].interleaved:
            groups = columns.unflatten(-1, (len(value), tiny_models.HEADS // len(value) + 2, -1))
            assert torch.equal(groups[:, :, -1], value.transpose(0, 1))
            continue
        assert torch.equal(columns[:, -value.shape[0] * value.shape[2] :], value.transpose(0, 1).flatten(1))


@families
def test_the_feed_forward_part_sees_the_attention_unless_the_row_says_parallel(
    family: str, tiny: Tiny, tiny_folder: Callable[[str], Path]
) -> None:
    ids = torch.tensor([tiny(family)._tokenizer.read(SENTENCE).ids])
    model, _ = open_folder(tiny_folder(family), family)
    before, after = (_after_attention(model, ids, times) for times in (1, 2))
    assert torch.equal(before, after) is is_setting_true(FAMILIES[family].parallel, tiny(family).config)


def _after_attention(model: Any, ids: torch.Tensor, times: float) -> torch.Tensor:
    """The input of the first linear layer after W_O of layer 0, if the output of W_O is multiplied by ``times``."""
    entered: list[torch.Tensor] = []

    def watch(module: torch.nn.Module, given: tuple[torch.Tensor, ...]) -> None:
        if put_out:
            entered.append(given[0])

    put_out: list[torch.Tensor] = []
    linears = [m for m in model.modules() if isinstance(m, (torch.nn.Linear, linear.PackedLinear, Conv1D))]
    hooks = [module.register_forward_pre_hook(watch) for module in linears]
    output = find_attention_modules(model, 0).output
    hooks.append(output.register_forward_hook(lambda _, __, result: put_out.append(result) or result * times))
    with torch.no_grad():
        model(ids)
    for hook in hooks:
        hook.remove()
    return entered[0]


# ---- words and spans ------------------------------------------------------------------------------------------------

_HARD = (
    "'’.,-–!?()[]…ı İßẞéñ\u0301\u0308漢字 かなカナ한국עבריתعربي"
    "😀🏽👩\u200d👧🇨🇭\u00ad\u200b\ufeff\u202e\t\n \u00a0\u3000ﬁ½™𐤀"
)
# Some tokenizers keep nothing of these.
KEPT_BY_SOME = {"only nul", "surrogates in the wrong order", "only combining marks", "only zero width"}
texts = st.lists(
    st.one_of(
        st.sampled_from(
            ["The", "animal", "didn't", "tired.", "it's", "rock'n'roll", " ", "  ", "[MASK]", "[SEP]", "##a"]
        ),
        st.text(st.sampled_from(_HARD), max_size=6),
        st.text(max_size=4),
    ),
    max_size=12,
).map("".join)


# Of every way to cut a text, one family; with --all every family.
@pytest.mark.app
@tokenizers
@settings(max_examples=80 if lanes.everything else 10)
@given(text=texts, pair=texts)
def test_any_text_gives_words_and_rows_or_a_plain_message(family: str, text: str, pair: str, tiny: Tiny) -> None:
    encoder = tiny(family)
    try:
        attention = encoder.encode(text, pair if family in tiny_models.WITH_PAIRS else "")
    except EmptyText:
        return
    check_text(attention.text)
    sums = attention.by_words().weights.sum(axis=3)
    assert np.abs(sums - 1).max() < 1e-5


@tokenizers
def test_hostile_text_gives_attention_or_a_plain_message(family: str, tiny: Tiny) -> None:
    """Every short one through a tokenizer of each algorithm, because each normalises in its own way."""
    short = {name: typed for name, typed in hostile.TEXTS.items() if len(typed) < 1000}
    for name, typed in (short if family in ALGORITHMS else hostile.KINDS).items():
        try:
            text = tiny(family).encode(typed).text
        except EmptyText:
            assert name in KEPT_BY_SOME or not typed.strip(), name
            continue
        assert len(text.text) == len(typed), name
        check_text(text)


@tokenizers
def test_words_are_what_a_reader_calls_words(family: str, tiny: Tiny) -> None:
    for typed, expected in (
        ("It didn’t; it wasn't tired.", ["It", "didn’t", ";", "it", "wasn't", "tired", "."]),
        ("one   two 😀 [x", ["one", "two", "😀", "[", "x"]),  # a blank alone leads into the next word
    ):
        words = [t.text for t in tiny(family).tokenize(typed).by_words().tokens if not t.special]
        assert words == expected


@tokenizers
def test_words_of_marks_other_directions_and_joined_emoji(family: str, tiny: Tiny) -> None:
    for typed in ("cafe\u0301 nai\u0308ve", "Zoe\u0308's dog", "שלום עולם", "the 👩‍👩‍👧‍👦 went"):
        words = [t for t in tiny(family).tokenize(typed).by_words().tokens if not t.special]
        covered = ["".join(typed[t.start : t.end].split()) for t in words]
        assert [w for w in covered if w] == covered, typed
        assert words[0].start == 0, typed
        assert len(words) >= len(typed.split()), typed
        check_text(tiny(family).tokenize(typed))
