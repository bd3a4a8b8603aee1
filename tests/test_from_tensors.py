"""Attention from tensors that were computed elsewhere: accepted and drawn correctly, or refused with a reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mha_viz import Attention, Head
from mha_viz.attention.steps import parse_wordings
from mha_viz.errors import ShapeError
from mha_viz.text import from_names
from tests import hostile

BERT = ["[CLS]", "play", "##ing", "chess", ".", "[SEP]", "it", "rain", "##s", "[SEP]"]


def layer(heads: int, n: int, m: int | None = None, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(m or n), (1, heads, n)).astype(np.float32)


def test_the_tuple_of_transformers_as_it_is() -> None:
    layers = tuple(layer(3, 10, seed=i) for i in range(2))
    attention = Attention.from_tensors(layers, BERT)
    assert (attention.layers, attention.heads, len(attention.text)) == (2, 3, 10)
    assert (attention[Head(1, 2)] == layers[1][0, 2]).all()


def test_a_layer_may_be_a_list_with_the_one_text_of_a_batch() -> None:
    layers = [layer(3, 10, seed=i) for i in range(2)]
    listed = Attention.from_tensors([[one[0]] for one in layers], BERT)
    assert listed.key == Attention.from_tensors(layers, BERT).key


def test_torch_tensors_with_a_graph_and_in_half_precision() -> None:
    scores = torch.randn(1, 2, 4, 4, requires_grad=True)
    attention = Attention.from_tensors((scores.softmax(-1), scores.softmax(-1).bfloat16()), ["a", "b", "c", "d"])
    assert attention[Head(0, 1)] == pytest.approx(scores.softmax(-1)[0, 1].detach().numpy())
    assert attention[Head(1, 1)] == pytest.approx(scores.softmax(-1)[0, 1].detach().numpy(), abs=0.01)
    assert attention.weights[1].sum(axis=-1) == pytest.approx(1, abs=1e-6)


def test_pieces_of_wordpiece_become_words() -> None:
    text = from_names(BERT, pair_start=6)
    assert text.text == "playing chess ."
    assert text.pair == "it rains"
    assert [t.text for t in text.by_words().tokens] == [
        "[CLS]",
        "playing",
        "chess",
        ".",
        "[SEP]",
        "it",
        "rains",
        "[SEP]",
    ]
    assert [t.segment for t in text.tokens] == [0] * 6 + [1] * 4
    assert [t.text for t in text.tokens if not t.special] == [name for name in BERT if name not in ("[CLS]", "[SEP]")]
    assert all(text.typed(t) == t.text.removeprefix("##") for t in text.tokens if not t.special)


@pytest.mark.parametrize("mark", ["Ġ", "▁"])
def test_pieces_of_byte_level_and_sentencepiece_vocabularies(mark: str) -> None:
    text = from_names(["<s>", f"{mark}The", f"{mark}play", "ing", f"{mark}cat", "</s>"])
    assert text.text == "The playing cat"
    assert [t.text for t in text.by_words().tokens] == ["<s>", "The", "playing", "cat", "</s>"]


def test_an_axis_that_was_guessed_is_named_in_the_caption() -> None:
    taken = "first axis of each layer taken for heads"
    names = ["a", "b", "c"]
    read = torch.nn.MultiheadAttention(4, 2, batch_first=True)
    _, mean = read(*[torch.randn(2, 3, 4)] * 3)  # [text, query, key]: the mean over heads, for each of two texts
    guessed = Attention.from_tensors([mean, mean], names)
    assert guessed.made == (taken,)
    assert taken in guessed.heatmap("L0H1").caption
    assert Attention.from_tensors([mean[:1]], names).made == (taken,)  # of one text, or of one head
    known: list[Any] = [[layer(2, 3)], np.stack([layer(2, 3)[0]])]
    assert [Attention.from_tensors(given, names).made for given in known] == [()] * 2
    several = np.stack([layer(2, 3)[0]] * 2)  # of two layers, or of a batch of two texts
    assert Attention.from_tensors(several, names).made == ("first two axes taken for layers and heads",)
    assert Attention.from_tensors(several, names, layers=[0, 1]).made == ()
    batch = Attention.from_tensors([np.concatenate([layer(2, 3)] * 2)], [names] * 2)
    assert [one.made for one in batch] == [(), ()]
    cached = [{name: layer(2, 3)[0]} for name in ("blocks.0.attn.hook_pattern", "layer.0")]
    assert [Attention.from_cache(cache, names).made for cache in cached] == [(), (taken,)]


@pytest.mark.parametrize("numbers", [[3, 7], (3, 7), np.array([3, 7]), torch.tensor([3, 7])], ids=str)
def test_numbers_of_layers_may_be_of_any_kind(numbers: Any) -> None:
    layers = [layer(2, 3), layer(2, 3)]
    assert Attention.from_tensors(layers, ["a", "b", "c"], layers=numbers).layer_numbers == (3, 7)
    one = Attention.from_tensors(layers[:1], ["a", "b", "c"], layers=numbers[:1])
    assert ", of layer 3." in one.heatmap("L3H1").caption
    assert parse_wordings(map(str, one.made)) == one.made
    for wrong in (torch.tensor([3.0, 7.0]), [True, 7], [3, "7"]):
        with pytest.raises(ShapeError, match=r"Give one number for each.*layers=\[3, 7\]"):
            Attention.from_tensors(layers, ["a", "b", "c"], layers=wrong)


def changed(weights: np.ndarray, place: tuple[int, ...], value: float) -> np.ndarray:
    """The weights with another value at a place."""
    copied = weights.copy()
    copied[place] = value
    return copied


REFUSED: list[tuple[Any, list[str], str]] = [
    ((), ["a"], "the tuple is empty"),
    (None, ["a"], "was given: None. Load the model with attn"),
    ((None,), ["a"], "is None"),
    (3, ["a"], "not a list of layers"),
    ((layer(2, 1),), None, "tokens is 'None', which is not a list"),
    ((layer(2, 1),), "a", "tokens is 'a', which is not a list"),
    ((layer(2, 3, 5),), ["a", "b", "c"], "3 queries to 5 keys: cross-attention"),
    ((layer(2, 3), layer(2, 4)), ["a", "b", "c"], "different shapes"),
    ((layer(2, 3), layer(4, 3)), ["a", "b", "c"], "different shapes"),
    ((np.concatenate([layer(2, 3)] * 2),), ["a", "b", "c"], "a batch of 2 texts"),
    ((np.ones(3),), ["a"], r"shape \(1, 3\): one matrix. Give \[\[matrix\]\]"),
    ((np.full((1, 1, 1, 1), "x"),), ["a"], "not real numbers"),
    ((layer(2, 3),), ["a"], "1 tokens were given"),
    ((layer(2, 3) * 2,), ["a", "b", "c"], "sums to"),
    ((layer(2, 3) * np.nan,), ["a", "b", "c"], "not numbers"),
]


@pytest.mark.parametrize(("tensors", "tokens", "message"), REFUSED, ids=[message for *_, message in REFUSED])
def test_what_is_no_self_attention_is_refused_with_the_reason(tensors: Any, tokens: list[str], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        Attention.from_tensors(tensors, tokens)


EVEN = np.full((2, 3, 4, 4), 0.25, np.float32)
CAUSES: dict[str, tuple[Any, str]] = {
    "learned sinks": (
        EVEN * 0.6,
        r"Layer 0, head 0, row 0 sums to 0.6 instead of 1. .* give sink=True.* model.eval\(\)",
    ),
    "one row": (changed(EVEN, (1, 2, 3), 0.2), "Layer 1, head 2, row 3 sums to 0.8 instead of 1. .* sink=True"),
    "dropout, each diagonal": (
        np.where(np.eye(4) > 0, 0, EVEN / 0.9),
        r"row 0 sums to 0.83333 instead of 1. A model in training mode .*: call model.eval\(\)",
    ),
    "dropout that dropped nothing here": (
        changed(EVEN, (1, 0), 0.25 / 0.9) * [[1], [1], [1], [0.8]],
        r"Layer 0, head 0, row 3 sums to 0.8 .* mode .* call model.eval\(\)",
    ),
    "padding": (EVEN * [[0], [1], [1], [1]], r"row 0 sums to 0 instead of 1. .* mask=inputs\['attention_mask'\]"),
    "padding as NaN": (changed(EVEN, (1, 2, 0), np.nan), r"not numbers: layer 1, head 2, row 0. .* mask=inputs"),
    "overflow": (
        changed(EVEN, (1, 2, 0, 3), np.inf),
        r"not numbers: layer 1, head 2, row 0. They come from an overflow",
    ),
    "transposed": (EVEN * [[0.4], [1.6], [1], [1]], r"columns .* sum to 1: .*swapaxes\(-1, -2\)"),
    "percentages": (EVEN * 100, "sums to 100 instead of 1. All rows of this head sum to 100: divide"),
    "scores": (changed(EVEN, (1, 0, 2, 3), -3), "A weight is -3: layer 1, head 0, row 2, key 3. .* softmax first"),
    "scores, masked": (
        np.where(np.tril(np.ones((4, 4))) > 0, EVEN, -np.inf),
        "A weight is -inf: layer 0, head 0, row 0, key 1. .* Scores must pass the softmax first",
    ),
    "as fair-esm": (
        EVEN[None],
        r"batch of 2 texts, or one text with 2 layers. .* For \[text, layer, head, query, key\] give \[0\]",
    ),
    "as fair-esm, of texts": (np.stack([EVEN] * 3), r"batch of 2 texts. .* For \[text, layer, .* give \[0\]"),
    "one matrix": (EVEN[0, 0], r"shape \(4, 4\): one matrix. Give \[\[matrix\]\]"),
    "one row alone": (EVEN[0, 0, 0], r"shape \(4,\): one row. Give \[\[\[row\]\]\], with its own token"),
    "numbers in a list": ([0.25] * 4, r"shape \(4,\): one row"),
    "a layer": (EVEN[0], r"shape \(3, 4, 4\): the heads of one layer, .* give \[layer\]"),
    "windows around tokens": (EVEN[..., :3] / 0.75, r"4 queries to 3 keys: .*, or windows, .* with 0 outside"),
    "windows of an image": ([np.full((2, 3, 2, 2), 0.5)], r"2 windows of 2 tokens, .* Give one window, \[layer\[0\]"),
    "stages": ([np.full((4, 3, 2, 2), 0.5), np.full((1, 6, 2, 2), 0.5)], "different shapes: .* layers of one stage"),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_refused_weights_name_the_place_and_the_likely_cause(cause: str) -> None:
    weights, message = CAUSES[cause]
    with pytest.raises(ShapeError, match=message):
        Attention.from_tensors(weights, list("abcd"))


@pytest.mark.parametrize("sink", [False, True])
def test_weights_of_tokens_that_a_mask_leaves_out_are_named(sink: bool) -> None:
    weights = EVEN[:1] * np.float32(0.8 if sink else 1)
    expected = rf"Layer 7, head 0, row 0 gives {0.2 if sink else 0.25} of its weight to tokens that the mask leaves out"
    with pytest.raises(ShapeError, match=expected):
        Attention.from_tensors(weights, list("abcd"), layers=[7], mask=[1, 1, 1, 0], sink=sink)


# ---- Sinks ----------------------------------------------------------------------------------------------------


def test_a_refused_row_is_named_by_its_layer_and_its_place_in_the_array() -> None:
    with pytest.raises(ShapeError, match="Layer 0, head 0, row 1 gives"):
        Attention.from_tensors(EVEN, list("abcd"), mask=[0, 1, 1, 1])
    empty = np.array([np.tri(4) / 8] * 2)[:, None]
    empty[1, 0, 2] = 0
    for mask in (None, [0, 1, 1, 1]):
        with pytest.raises(ShapeError, match="Layer 7, head 0, row 2 has no weight"):
            Attention.from_tensors(empty, list("abcd"), layers=[3, 7], mask=mask, sink=True)


def test_what_rows_leave_to_a_learned_sink_is_a_column() -> None:
    """Of transformers' gpt-oss: a row is the softmax of its scores and its head's sink, so in the first row, which sees
    itself alone, the ratio of the two weights is that of their exponentials."""
    from transformers import GptOssConfig, GptOssModel

    torch.manual_seed(0)
    eager: dict[str, Any] = {"attn_implementation": "eager"}
    small = {"hidden_size": 32, "intermediate_size": 8, "num_local_experts": 2, "num_experts_per_tok": 1}
    heads = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8}
    model = GptOssModel(GptOssConfig(vocab_size=9, **eager, **small, **heads)).eval()
    for block in model.layers:
        torch.nn.init.normal_(block.self_attn.sinks)
    with torch.no_grad():
        layers = model(torch.arange(8)[None], output_attentions=True).attentions
    attention = Attention.from_tensors(layers, list("abcdefgh"), sink=True)
    assert attention.has_sink
    assert [token.text for token in attention.keys.tokens] == [*"abcdefgh", "sink"]
    assert (attention.weights[..., :8] == np.stack([layer[0].numpy() for layer in layers])).all()
    assert attention.weights.sum(axis=3) == pytest.approx(1, abs=1e-6)
    shares = torch.stack([layer[0] for layer in layers])
    sinks = torch.stack([block.self_attn.sinks.detach() for block in model.layers])
    scores = torch.log(shares[:, :, 0, 0] / (1 - shares[:, :, 0, 0])) + sinks  # of the first token to itself
    expected = torch.softmax(torch.stack([scores, sinks], -1), -1)[..., 1]
    assert attention.weights[:, :, 0, 8] == pytest.approx(expected.numpy(), abs=1e-6)


def test_a_sink_may_be_the_last_column_that_is_given() -> None:
    names = ["a", "b", "c"]
    whole = [layer(2, 3, 4, seed) for seed in range(2)]  # three tokens and a sink
    expected = Attention.from_tensors([one[..., :-1] for one in whole], names, sink=True)
    for weights in (whole, np.concatenate(whole), [torch.tensor(one) for one in whole]):
        read = Attention.from_tensors(weights, names, layers=[0, 1], sink=True)
        assert read.weights == pytest.approx(expected.weights, abs=1e-6)
        assert read.keys == expected.keys
    padded = Attention.from_tensors([np.eye(3, 4)[None, None]], names, mask=[1, 1, 0], sink=True)
    assert padded["L0H0"].tolist() == [[1, 0, 0], [0, 1, 0]]
    with pytest.raises(ShapeError, match=r"from 3 queries to 4 keys: .* a sink.*sink=True"):
        Attention.from_tensors(whole, names)
    with pytest.raises(ShapeError, match=r"Including its sink, the sum of a row differs from 1 by 0\.5"):
        Attention.from_tensors([one / 2 for one in whole], names, sink=True)


def test_a_sink_is_no_token_for_measures_and_is_hidden_with_special_tokens() -> None:
    names = ["<s>", "▁pho", "to", "▁a"]
    attention = Attention.from_tensors(EVEN * 0.6, names, layers=[0, 1], sink=True)
    of_one = attention.measures().loc["L0H0"]
    expected = {"previous": 0.15, "following": 0.15, "same": 0.15, "cls": 0.15, "sep": 0}
    assert of_one[[*expected]].to_dict() == pytest.approx(expected)
    words = attention.by_words()
    assert words.has_sink
    assert words["L0H0"][1] == pytest.approx([0.15, 0.3, 0.15, 0.4])
    assert words.without_special().hidden == pytest.approx(0.55)  # <s> and the sink
    assert "reading “photo a”, the rest of each row as sink." in attention.heatmap("L0H0").caption
    with pytest.raises(ShapeError, match="of one text and a sink, 4 queries and 5 keys"):
        attention.tokens  # noqa: B018


def test_a_sink_in_half_precision_in_a_cache_and_beside_padding() -> None:
    half = torch.tensor(EVEN * np.array([0.9961, 1, 1.008, 0.6])[:, None]).half()
    rows = Attention.from_tensors(half, list("abcd"), sink=True)["L0H0"]
    assert rows[:, 4] == pytest.approx([0.0039, 0, 0, 0.4], abs=1e-3)
    assert rows.sum(axis=1) == pytest.approx(1, abs=1e-6)
    cached = {f"layers.{layer}.self_attn": EVEN[layer][None] * np.float32(0.5) for layer in range(2)}
    assert Attention.from_cache(cached, list("abcd"), sink=True)["L1H2"][:, 4] == pytest.approx(0.5)
    padded_rows = EVEN[:, :, :3] * np.array([0, 1, 1, 1], np.float32)
    padded_rows = np.concatenate([EVEN[:, :, :1], padded_rows], axis=2)
    read = Attention.from_tensors(padded_rows, ["<pad>", *"abc"], mask=[0, 1, 1, 1], sink=True)
    assert read["L0H0"] == pytest.approx(np.full((3, 4), 0.25))


@pytest.mark.parametrize(
    ("weights", "options", "message"),
    [
        (EVEN * 0.6, {"sink": 1}, "sink is '1'. Expected True or False"),
        (EVEN * 0.6, {"sink": True, "quantity": "norm"}, "Only weights can have a sink"),
        (EVEN * 2, {"sink": True}, "sums to 2 instead of 1"),
        (EVEN * [[1], [1], [1], [0]], {"sink": True}, "Layer 0, head 0, row 3 has no weight, .* mask="),
    ],
)
def test_a_sink_of_what_has_none_is_refused(weights: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        Attention.from_tensors(weights, list("abcd"), **options)


# ---- Batches --------------------------------------------------------------------------------------------------


def padded(lengths: tuple[int, ...], left: bool = False) -> tuple[list[np.ndarray], np.ndarray]:
    """Two layers [text, head, query, key] in which padding gets no weight, and the mask [text, token]."""
    n, rng = max(lengths), np.random.default_rng(0)
    mask = np.array([[*([1] * k), *([0] * (n - k))][:: -1 if left else 1] for k in lengths])
    scores = [rng.random((len(lengths), 3, n, n)) * mask[:, None, None] for _ in range(2)]
    return [(one / one.sum(-1, keepdims=True)).astype(np.float32) for one in scores], mask


@pytest.mark.parametrize("start", [-1, 4, 99, "b"])
def test_a_second_sentence_begins_with_one_of_the_tokens(start: Any) -> None:
    with pytest.raises(ShapeError, match=f"sentence_b_start is '{start}'. Give the index of one of the 4 tokens"):
        Attention.from_tensors(EVEN, list("abcd"), sentence_b_start=start)


@pytest.mark.parametrize("mask", [[2, 1, 1, 1], [0, 0, -np.inf, -np.inf]])
def test_a_mask_of_other_numbers_than_0_and_1_is_refused(mask: list[float]) -> None:
    with pytest.raises(ShapeError, match="mask has numbers other than 0 and 1"):
        Attention.from_tensors(EVEN, list("abcd"), mask=mask)


@pytest.mark.parametrize("left", [False, True], ids=["padding after", "padding before"])
def test_a_batch_gives_a_list_without_its_padding(left: bool) -> None:
    layers, mask = padded((4, 2, 3), left)
    names = [[f"{text}{i}" if read else "[PAD]" for i, read in enumerate(row)] for text, row in enumerate(mask)]
    readings = Attention.from_tensors(layers, names, mask=mask, sentence_b_start=[None, None, 3 if left else 2])
    assert [one.weights.shape for one in readings] == [(2, 3, 4, 4), (2, 3, 2, 2), (2, 3, 3, 3)]
    for text, one in enumerate(readings):
        at = np.flatnonzero(mask[text])
        assert [token.text for token in one.text.tokens] == [names[text][i] for i in at]
        assert (one["L1H2"] == layers[1][text, 2][np.ix_(at, at)]).all()
    assert [token.segment for token in readings[2].text.tokens] == [0, 0, 1]


def test_one_text_with_padding() -> None:
    layers, mask = padded((2, 4))
    alone = Attention.from_tensors([layer[:1] for layer in layers], ["a", "b", "[PAD]", "[PAD]"], mask=mask[:1])
    assert alone.weights.shape == (2, 3, 2, 2)


def test_a_batch_of_transformers_and_of_cross_attention() -> None:
    tensors = tuple(torch.softmax(torch.randn(2, 3, 2, 4), -1) for _ in range(2))
    keys_mask = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 1]])
    crossed = Attention.from_tensors(tensors, [["a", "b"]] * 2, keys=[["c", "d", "e", "f"]] * 2, keys_mask=keys_mask)
    assert [one.weights.shape for one in crossed] == [(2, 3, 2, 4)] * 2
    assert crossed[1]["L1H0"] == pytest.approx(tensors[1][1, 0].numpy())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tokens": [["a"] * 4] * 2}, "Tokens of 2 texts were given, and layers of shape .3, 3, 4, 4"),
        ({"tokens": [["a"] * 4] * 3, "mask": [[1] * 4]}, "mask is .* tokens of 3 texts"),
        ({"tokens": [["a"] * 4] * 3, "mask": [[1, 1]] * 3}, r"mask has shape \(2,\), for 4 tokens. Give 1"),
        ({"tokens": [["a"] * 4] * 3, "mask": [[0] * 4] * 3}, "mask keeps no token"),
        ({"tokens": [["a"] * 4] * 3, "sentence_b_start": 2}, "sentence_b_start is '2', and tokens of 3 texts"),
        ({"tokens": [["a"] * 3] * 3}, "3 tokens were given"),
        ({"tokens": ["a"] * 4}, r"a batch of 3 texts. Give tokens as a list of lists.*attention_mask"),
    ],
)
def test_a_batch_that_does_not_fit_is_refused_with_the_reason(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        Attention.from_tensors(padded((4, 2, 3))[0], **options)


def test_the_whole_output_of_a_model_says_which_part_to_take() -> None:
    from transformers.modeling_outputs import BaseModelOutput, Seq2SeqModelOutput

    layers = (layer(2, 3),)
    both = Seq2SeqModelOutput(decoder_attentions=layers, cross_attentions=layers)
    outputs: dict[str, Any] = {
        r"the whole output of a model, not its attention. Take .attentions\.$": BaseModelOutput(attentions=layers),
        r"Take .attentions of a model with attn_implementation=.eager., called with": BaseModelOutput(),
        r"Take .decoder_attentions or .cross_attentions\.$": both,
        r"Take .attentions of": {"logits": 3},
    }
    for message, output in outputs.items():
        for tokens in (["a", "b", "c"], [["a", "b", "c"]]):
            with pytest.raises(ShapeError, match=message):
                Attention.from_tensors(output, tokens)


@given(st.lists(st.text(max_size=8), min_size=1, max_size=12), st.integers(0, 12))
def test_any_names_make_a_text_whose_spans_are_right(names: list[str], second: int) -> None:
    text = from_names(names, second)
    assert len(text.tokens) == len(names)
    assert [i for group in text.groups for i in group] == list(range(len(names)))
    assert all(text.typed(t) for t in text.tokens if not t.special)


def test_hostile_names() -> None:
    names = list(hostile.TEXTS.values())
    text = from_names([name[:200] for name in names])
    assert len(text.tokens) == len(names)
