"""Attention from tensors that were computed elsewhere: accepted and drawn correctly, or refused with a reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mha_viz import Attention, Head
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
    text = from_names(BERT, second_from=6)
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
    known: list[Any] = [[layer(2, 3)], [layer(1, 3)[0]], np.stack([layer(2, 3)[0]])]
    assert [Attention.from_tensors(given, names).made for given in known] == [()] * 3
    batch = Attention.from_tensors([np.concatenate([layer(2, 3)] * 2)], [names] * 2)
    assert [one.made for one in batch] == [(), ()]
    cached = [{name: layer(2, 3)[0]} for name in ("blocks.0.attn.hook_pattern", "layer.0")]
    assert [Attention.from_cache(cache, names).made for cache in cached] == [(), (taken,)]


REFUSED: list[tuple[Any, list[str], str]] = [
    ((), ["a"], "the tuple is empty"),
    (None, ["a"], "was given: None. Load the model with attn"),
    ((None,), ["a"], "is None"),
    (3, ["a"], "not a list of layers"),
    ((layer(2, 1),), None, "tokens is 'None', which is not a list"),
    ((layer(2, 1),), "a", "tokens is 'a', which is not a list"),
    ((layer(2, 3, 5),), ["a", "b", "c"], "3 queries to 5 keys: cross-attention"),
    ((layer(2, 3), layer(2, 4)), ["a", "b", "c"], "different axes"),
    ((layer(2, 3), layer(4, 3)), ["a", "b", "c"], "different axes"),
    ((np.concatenate([layer(2, 3)] * 2),), ["a", "b", "c"], "a batch of 2 texts"),
    ((np.ones(3),), ["a"], "Expected \\[head, query, key\\]"),
    ((np.full((1, 1, 1, 1), "x"),), ["a"], "not real numbers"),
    ((layer(2, 3),), ["a"], "1 tokens were given"),
    ((layer(2, 3) * 2,), ["a", "b", "c"], "sums to"),
    ((layer(2, 3) * np.nan,), ["a", "b", "c"], "not numbers"),
]


@pytest.mark.parametrize(("tensors", "tokens", "message"), REFUSED, ids=[message for *_, message in REFUSED])
def test_what_is_no_self_attention_is_refused_with_the_reason(tensors: Any, tokens: list[str], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        Attention.from_tensors(tensors, tokens)


# ---- Batches --------------------------------------------------------------------------------------------------


def padded(lengths: tuple[int, ...], left: bool = False) -> tuple[list[np.ndarray], np.ndarray]:
    """Two layers [text, head, query, key] in which padding gets no weight, and the mask [text, token]."""
    n, rng = max(lengths), np.random.default_rng(0)
    mask = np.array([[*([1] * k), *([0] * (n - k))][:: -1 if left else 1] for k in lengths])
    scores = [rng.random((len(lengths), 3, n, n)) * mask[:, None, None] for _ in range(2)]
    return [(one / one.sum(-1, keepdims=True)).astype(np.float32) for one in scores], mask


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
        ({"tokens": [["a"] * 4] * 2}, "Tokens of 2 texts were given, and layers with axes .3, 3, 4, 4"),
        ({"tokens": [["a"] * 4] * 3, "mask": [[1] * 4]}, "mask is .* tokens of 3 texts"),
        ({"tokens": [["a"] * 4] * 3, "mask": [[1, 1]] * 3}, r"mask has axes \(2,\), for 4 tokens. Give 1"),
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
