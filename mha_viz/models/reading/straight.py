"""The layers of BERT and similar models, one after the other: the modules of transformers, without its overhead between
them.

W_Q, W_K and W_V are computed as one product; in the last layer only W_Q and W_K, because most passes end before its
values are needed.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import torch

from mha_viz.models.families import FAMILIES, holds
from mha_viz.models.reading import capture
from mha_viz.models.reading.capture import Tap
from mha_viz.models.reading.linear import PackedLinear, Rows, join


def straight(model: Any) -> Straight | None:
    """The object that runs the model in this way, if its family and its settings allow it; its linear layers are
    joined."""
    family, config = FAMILIES[model.config.model_type], model.config
    if not family.straight or holds(family.causal, config) or config.chunk_size_feed_forward:
        return None
    *layers, last = [layer.attention.self for layer in model.encoder.layer]
    for attention in layers:
        join(attention, family.inputs)
    join(last, family.inputs[:2])
    return Straight(model) if isinstance(last.query, Rows) else None


class _Layer(NamedTuple):
    """The modules of a layer, in the order in which vectors go through them; ``act`` is None where it is part of
    ``wide``."""

    attention: Any
    output: Any
    output_norm: Any
    wide: Any
    act: Any
    narrow: Any
    narrow_norm: Any

    @classmethod
    def of(cls, layer: Any) -> _Layer:
        """The modules of a layer of transformers."""
        after, between, narrow = layer.attention.output, layer.intermediate, layer.output
        act = None if isinstance(between.intermediate_act_fn, torch.nn.Identity) else between.intermediate_act_fn
        inside = layer.attention.self
        return cls(inside, after.dense, after.LayerNorm, between.dense, act, narrow.dense, narrow.LayerNorm)


class Straight:
    """Runs the layers of a model. Hooks on its linear layers are called, as in a normal pass."""

    def __init__(self, model: Any) -> None:
        self._model = model

    @cached_property
    def _layers(self) -> list[_Layer]:
        """Found once, at the first pass: a module looks its parts up by name each time."""
        return [_Layer.of(layer) for layer in self._model.encoder.layer]

    def __call__(self, tap: Tap, input_ids: torch.Tensor, token_type_ids: torch.Tensor | None = None) -> torch.Tensor:
        """The last states, [sentence, n, d_model]. Raises LastLayerSeen if the tap needs nothing more."""
        x = _embedded(self._model.embeddings, input_ids, token_type_ids)
        if hasattr(self._model, "embeddings_project"):  # ELECTRA
            x = self._model.embeddings_project(x)
        return self.onwards(tap, x)

    def onwards(self, tap: Tap, x: torch.Tensor) -> torch.Tensor:
        """The last states from x, the input of the layer after those that the tap has seen."""
        for layer in self._layers[tap.seen :]:
            tap.enters(x)
            x = _normalised(layer.output_norm, _added(layer.output, _attended(layer.attention, x, tap), x))
            between = _given(layer.wide, x)
            if layer.act is not None:
                between = layer.act(between)
            x = _normalised(layer.narrow_norm, _added(layer.narrow, between, x))
        return x


def _embedded(embeddings: Any, ids: torch.Tensor, types: torch.Tensor | None) -> torch.Tensor:
    """The vectors of the pieces, [sentence, n, width]: of each its own, its segment's and its place's."""
    if types is None or hasattr(embeddings, "padding_idx"):  # RoBERTa counts places from the padding on
        x: torch.Tensor = embeddings(input_ids=ids, token_type_ids=types)
        return x
    places = embeddings.position_embeddings.weight[: ids.shape[1]]
    x = torch.embedding(embeddings.word_embeddings.weight, ids)
    segments = torch.embedding(embeddings.token_type_embeddings.weight, types)
    return _normalised(embeddings.LayerNorm, x + segments + places)


def _listened(*modules: Any) -> bool:
    """Whether a hook is on one of the modules."""
    return any(module._forward_hooks or module._forward_pre_hooks for module in modules)


def _given(module: Any, x: torch.Tensor) -> torch.Tensor:
    """What a module makes of x; without hooks also without the module's own way to them."""
    y: torch.Tensor = module(x) if _listened(module) else module.forward(x)
    return y


def _added(module: Any, x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """What a module makes of x, and another vector added: one step where nobody needs them apart."""
    if _listened(module) or torch.is_grad_enabled() or not isinstance(module, PackedLinear):
        return _given(module, x) + other
    return module.added(x, other)


def _normalised(norm: Any, x: torch.Tensor) -> torch.Tensor:
    if _listened(norm):
        return _given(norm, x)
    return torch.layer_norm(x, norm.normalized_shape, norm.weight, norm.bias, norm.eps)


def _attended(attention: Any, x: torch.Tensor, tap: Tap) -> torch.Tensor:
    """What W_O is given, [sentence, n, head · d_head]."""
    inputs = attention.query, attention.key, attention.value
    is_listened = _listened(*inputs)
    if tap.only_weights and not is_listened and (isinstance(inputs[2], Rows) or tap.ends_with(tap.seen)):
        joined = inputs[0].whole.forward(x)
        return capture.attended(tap, joined, attention.attention_head_size, attention.scaling)
    query, key, value = _projected(attention, inputs, x, tap, is_listened)
    heads, _ = capture.capture(attention, query, key, value, None, scaling=attention.scaling)
    return heads.reshape(*x.shape[:-1], -1)


def _projected(attention: Any, inputs: Any, x: torch.Tensor, tap: Tap, is_listened: bool) -> list[torch.Tensor]:
    """Queries, keys and values, [sentence, head, n, d_head] each; the queries stand in for values that are not
    needed."""
    if is_listened:  # hooks on one of them get its output
        return [_by_head(one(x), attention, 1)[0] for one in inputs]
    if isinstance(attention.value, Rows):
        return _by_head(attention.query.whole(x), attention, 3)
    query, key = _by_head(attention.query.whole(x), attention, 2)
    needs_values = not tap.ends_with(tap.seen)
    return [query, key, _by_head(attention.value(x), attention, 1)[0] if needs_values else query]


def _by_head(joined: torch.Tensor, attention: Any, count: int) -> list[torch.Tensor]:
    """[sentence, n, count · head · d_head] → ``count`` times [sentence, head, n, d_head]."""
    shape = *joined.shape[:-1], count, -1, attention.attention_head_size
    return list(joined.view(shape).permute(2, 0, 3, 1, 4).unbind())
