"""Attention that another library recorded: what is taken from its cache, and what is said if something is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

import mha_viz as mv
from mha_viz.errors import ShapeError
from mha_viz.models.reading.encoder import Encoder

TEXT = "The animal didn't cross the street because it was too tired."
NAMES = ["<|endoftext|>", "The", " animal", " did", "n", "'t"]
N = len(NAMES)


def weights(seed: int, *axes: int) -> np.ndarray:
    """[…, query, key] with rows that sum to 1."""
    return np.random.default_rng(seed).dirichlet(np.ones(axes[-1]), axes[:-1]).astype(np.float32)


def lens(texts: int = 1, layers: int = 3, heads: int = 4, shared: int = 4) -> dict[str, Any]:
    """The entries of an ActivationCache of TransformerLens, by name, in no order."""
    cache: dict[str, Any] = {
        "hook_embed": torch.randn(texts, N, 8),
        "blocks.0.hook_resid_pre": torch.randn(texts, N, 8),
    }
    for layer in (2, 0, 1)[-layers:] if layers == 3 else range(layers):
        cache[f"blocks.{layer}.attn.hook_attn_scores"] = torch.randn(texts, heads, N, N)
        cache[f"blocks.{layer}.attn.hook_v"] = torch.randn(texts, N, shared, 5, generator=torch.manual_seed(layer))
        cache[f"blocks.{layer}.attn.hook_pattern"] = torch.tensor(weights(layer, texts, heads, N, N))
    return cache


class ActivationCache:
    """What an ActivationCache has that a dict has not, and lacks that a dict has: it is no Mapping."""

    def __init__(self, entries: Mapping[str, Any]) -> None:
        self.cache_dict = entries
        self.model = type("Model", (), {"cfg": type("Config", (), {"model_name": "gpt2"})})

    def __getitem__(self, key: str) -> Any:
        return self.cache_dict[key]

    def keys(self) -> Any:
        return self.cache_dict.keys()


class Recorded(NamedTuple):
    """An entry of a cache that keeps the output of a module."""

    output: Any


def test_the_patterns_of_transformerlens_in_the_order_of_layers() -> None:
    cache = lens()
    a = mv.Attention.from_cache(ActivationCache(cache), NAMES)
    assert (a.layers, a.heads, a.model) == (3, 4, "gpt2")
    for layer in range(3):
        assert (a.weights[layer] == cache[f"blocks.{layer}.attn.hook_pattern"][0].numpy()).all()
    assert a.by_words().tokens == ("<|endoftext|>", "The", "animal", "didn't")
    bare = {name: entry[0] for name, entry in cache.items()}  # cache.remove_batch_dim()
    assert mv.Attention.from_cache(bare, NAMES, model="gpt2").key == a.key


def test_several_texts_without_their_padding() -> None:
    cache = lens(texts=2)
    mask = [[1] * N, [1] * (N - 2) + [0] * 2]
    for name, entry in cache.items():
        if name.endswith("pattern"):
            entry[1, :, :, N - 2 :] = 0
            entry[1] /= entry[1].sum(-1, keepdim=True)
    one, two = mv.Attention.from_cache(cache, [NAMES, NAMES], mask=mask, w_o=torch.randn(3, 4, 5, 8))
    assert one.weights.shape == (3, 4, N, N)
    assert two.weights.shape == (3, 4, N - 2, N - 2)
    assert one.quantity == two.quantity == "norm"


@pytest.mark.parametrize("shared", [4, 2, 1], ids=lambda n: f"{n} heads of values")
def test_norms_are_those_of_the_formula(shared: int) -> None:
    cache, w_o = lens(shared=shared), torch.randn(3, 4, 5, 8)
    a = mv.Attention.from_cache(cache, NAMES, w_o=w_o)
    for layer, head in np.ndindex(3, 4):
        pattern, values = (cache[f"blocks.{layer}.attn.hook_{name}"][0] for name in ("pattern", "v"))
        moved = values[:, head * shared // 4] @ w_o[layer, head]  # [key, d_model]
        each = torch.stack([pattern[head, query, :, None] * moved for query in range(N)])
        assert a.weights[layer, head] == pytest.approx(each.norm(dim=-1).numpy(), rel=1e-5)


@pytest.mark.parametrize("has_column", [True, False], ids=["the sink is a column", "half precision"])
def test_norms_beside_a_sink_are_those_of_its_weights(has_column: bool) -> None:
    layer = weights(0, 1, 2, N, N + 1) if has_column else (weights(0, 1, 2, N, N) * 0.99).astype(np.float16)
    values, w_o = torch.randn(N, 2, 5), torch.randn(2, 5, 8)
    options: dict[str, Any] = {"sink": True}
    of_weights = mv.Attention.from_cache([layer], NAMES, **options)
    lengths = torch.einsum("khd,hdm->hkm", values, w_o).norm(dim=-1).numpy()[:, None]  # [head, 1, key]
    a = mv.Attention.from_cache([layer], NAMES, w_o=[w_o], values=[values], **options)
    assert a.weights[0] == pytest.approx(of_weights.weights[0, ..., :N] * lengths, rel=1e-5)


def test_norms_equal_those_of_the_model_itself(minilm: Encoder) -> None:
    class Values(mv.Tap):
        def layer(self, index: int, query: Any, key: Any, value: Any, output: Any) -> Any:
            self.values = [*getattr(self, "values", []), value[0].transpose(0, 1)]  # [key, head, d_head]
            return output

    reading, tap = minilm.through(TEXT, tap=Values)
    w_o = [minilm.w_o(layer).reshape(minilm.heads, -1, minilm.d_model) for layer in range(minilm.layers)]
    values = getattr(tap, "values")  # noqa: B009
    a = mv.Attention.from_cache([*reading.weights], reading.tokens, values=values, w_o=w_o)
    assert a.weights == pytest.approx(mv.quantities.norm_weighted(minilm, TEXT).weights, rel=1e-4, abs=1e-6)


def test_what_nnsight_saved_of_attention_modules() -> None:
    layers = [weights(layer, 1, 4, N, N) for layer in range(3)]
    expected = mv.Attention.from_tensors(layers, NAMES).key
    outputs = [(torch.randn(1, N, 8), torch.tensor(layer)) for layer in layers]  # [text, n, d_model], weights
    named = {f"transformer.h.{i}.attn": output for i, output in enumerate(outputs)}
    hidden = {f"transformer.h.{i}.mlp": torch.randn(1, N, 8) for i in range(3)}
    recorded = {name: Recorded(output) for name, output in named.items()}
    for cache in (outputs, dict(enumerate(layers)), named, hidden | named, recorded, layers, np.stack(layers)):
        assert mv.Attention.from_cache(cache, NAMES).key == expected
    guessed = mv.Attention.from_cache(np.stack(layers)[:, 0], NAMES)
    assert guessed.made == ("first two axes taken for layers and heads",)
    for names in ("gpt2.h.{}.attn", "L{}", "encoder.block.{}.layer.0"):
        assert mv.Attention.from_cache({names.format(i): layers[i] for i in range(3)}, NAMES).key == expected


@pytest.mark.parametrize("is_dict", [False, True])
def test_what_multihead_attention_of_pytorch_returns(is_dict: bool) -> None:
    module, x = torch.nn.MultiheadAttention(8, 2, batch_first=True), torch.randn(1, N, 8)

    def cached(*outputs: Any) -> Any:
        return {f"layers.{i}.attn": output for i, output in enumerate(outputs)} if is_dict else [*outputs]

    whole, alone = (module(*[one] * 3, average_attn_weights=False) for one in (x, x[0]))
    for outputs in (whole, alone):
        read = mv.Attention.from_cache(cached(outputs, outputs), NAMES)
        assert read.weights == pytest.approx(torch.stack([whole[1][0]] * 2).detach().numpy(), abs=1e-6)
    for mean in (module(x, x, x), module(*[torch.cat([x, x])] * 3), module(*[x[0]] * 3)):
        with pytest.raises(ShapeError, match=r"a mean over its heads.*average_attn_weights=False"):
            mv.Attention.from_cache(cached(mean, mean), NAMES)


def test_layers_without_attention_are_none_in_a_cache() -> None:
    layers = {f"layers.{number}.attn": weights(number, 1, 4, N, N) for number in (3, 7)}
    cache = {"layers.0.attn": None, **layers, "layers.9.attn": None}
    assert mv.Attention.from_cache(cache, NAMES).key == mv.Attention.from_cache(layers, NAMES).key
    with pytest.raises(ShapeError, match="No attention weights are in this cache"):
        mv.Attention.from_cache({"layers.3.attn": None}, NAMES)


def test_one_of_several_stacks_is_named() -> None:
    layers = [weights(layer, 1, 4, N, N) for layer in range(2)]
    crossed = [weights(layer, 1, 4, N, 3) for layer in range(2)]
    cache = {f"decoder.{i}.attn.hook_pattern": layer for i, layer in enumerate(layers)}
    cache |= {f"decoder.{i}.cross_attn.hook_pattern": layer for i, layer in enumerate(crossed)}
    with pytest.raises(ShapeError, match=r"2 stacks .*'decoder.\{layer\}.attn.hook_pattern', .*names="):
        mv.Attention.from_cache(cache, NAMES)
    a = mv.Attention.from_cache(cache, NAMES, ["a", "b", "c"], names="decoder.{layer}.cross_attn.hook_pattern")
    assert a.weights.shape == (2, 4, N, 3)
    with pytest.raises(ShapeError, match=r"no 'x' in this cache. It has 'decoder"):
        mv.Attention.from_cache(cache, NAMES, names="x")


def without(cache: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: entry for name, entry in cache.items() if name not in names}


W_O = torch.zeros(3, 4, 5, 8)
OF_SINKS = torch.full((1, 4, N, N), 1 / N)
ANY: list[tuple[Any, dict[str, Any], str]] = [
    (without(lens(), "blocks.1.attn.hook_v"), {"w_o": W_O}, "'blocks.1.attn.hook_v' is missing: norms need"),
    (lens(), {"w_o": W_O[:2]}, "weights have 3 layers, the values 3, w_o 2"),
    (lens(), {"w_o": torch.zeros(3, 20, 8)}, r"w_o of a layer has shape \(20, 8\), for 4 heads with values of 5"),
    (lens(shared=3), {"w_o": W_O}, r"values of a layer have shape \(1, 6, 3, 5\), for 4 heads and 6 keys"),
    ([weights(0, 4, N, N)], {"w_o": W_O[:1]}, "The values are missing"),
    ({"logits": torch.zeros(3)}, {}, "No name in this cache has the number of a layer"),
    ({"h.0.mlp": torch.zeros(1, N, 8)}, {}, r"no entry has the axes .* It has 'h.\{layer\}.mlp'"),
    ({"h.0.attn": (torch.zeros(1, N, 8), None)}, {"names": "h.{layer}.attn"}, "'h.0.attn', has no weights. Load"),
    ([(torch.zeros(1, N, 8), None)], {}, 'no weights. Load .*"eager"; call nn.Mult.* need_weights=True'),
    ({"blocks.0.attn.hook_pattern": torch.zeros(1, 4, N, N)}, {}, "Layer 0, head 0, row 0 sums to 0 instead of 1"),
    (
        {"blocks.0.attn.hook_pattern": torch.zeros(N, N)},
        {},
        r"shape \(1, 6, 6\): the heads of one layer, .* For \[head, query, key\]",
    ),
    (lens(texts=2), {}, "a batch of 2 texts"),
    (
        {f"layers.{layer}.self_attn": (torch.zeros(1, N, 8), OF_SINKS * share) for layer, share in ((3, 1), (7, 0.7))},
        {},
        "Layer 7, head 0, row 0 sums to 0.7 instead of 1. If the model has learned sinks, .* give sink=True",
    ),
    (
        {"layers.3.attn": OF_SINKS.triu() / 0.75},
        {"sink": True},
        r"Layer 3, head 0, row 0 sums to 1.3333 .* A model in training mode .* call model.eval\(\)",
    ),
    ({}, {}, "No name in this cache has the number of a layer.*from_tensors"),
]


@pytest.mark.parametrize(("cache", "options", "message"), ANY, ids=[message for *_, message in ANY])
def test_what_does_not_fit_is_refused_with_the_reason(cache: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        mv.Attention.from_cache(cache, NAMES, **options)


def test_ids_are_no_names() -> None:
    with pytest.raises(ShapeError, match=r"begins with '5', which is not a text. .*to_str_tokens"):
        mv.Attention.from_cache(lens(), [5, 2, 7, 8, 9, 1])  # type: ignore[list-item]
    with pytest.raises(ShapeError, match="the whole output of a model"):
        mv.Attention.from_cache(type("Output", (dict,), {"attentions": ()})(), NAMES)


@pytest.mark.parametrize(
    "name",
    [
        "layer{}.attention.0",
        "attn1_layer{}",
        "module.0.layers.{}.attn",
        "vit_base_patch16_224.blocks.{}.attn",
        "0.auto_model.encoder.layer.{}.attention",
        "encoder.block.{}.layer.0.SelfAttention",
        "transformer.h.{}.attn.1",
    ],
)
def test_the_number_of_a_layer_is_told_from_others(name: str) -> None:
    weights = np.full((1, 2, 2, 2), 0.5, np.float32)
    reading = mv.Attention.from_cache({name.format(layer): weights for layer in (3, 7)}, ["a", "b"])
    assert reading.layer_numbers == (3, 7)
