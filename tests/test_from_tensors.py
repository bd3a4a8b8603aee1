"""Attention from tensors that were computed elsewhere: drawn right, or refused with a reason."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
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
    torch = pytest.importorskip("torch")
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
    assert all(text.typed(t) == t.text for t in text.tokens if not t.special)


@pytest.mark.parametrize("mark", ["Ġ", "▁"])
def test_pieces_of_byte_level_and_sentencepiece_vocabularies(mark: str) -> None:
    text = from_names(["<s>", f"{mark}The", f"{mark}play", "ing", f"{mark}cat", "</s>"])
    assert text.text == "The playing cat"
    assert [t.text for t in text.by_words().tokens] == ["<s>", "The", "playing", "cat", "</s>"]


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
    ((np.full((1, 1, 1, 1), "x"),), ["a"], "axes"),
    ((layer(2, 3),), ["a"], "1 tokens were given"),
    ((layer(2, 3) * 2,), ["a", "b", "c"], "sums to"),
    ((layer(2, 3) * np.nan,), ["a", "b", "c"], "not numbers"),
]


@pytest.mark.parametrize(("tensors", "tokens", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_what_is_no_self_attention_is_refused_with_the_reason(tensors: Any, tokens: list[str], said: str) -> None:
    with pytest.raises(ShapeError, match=said):
        Attention.from_tensors(tensors, tokens)


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
