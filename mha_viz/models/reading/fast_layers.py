"""Run the layers of BERT and similar models in sequence, with the modules of transformers but without its overhead.

W_Q, W_K and W_V are computed as one product. In the last layer only W_Q and W_K are joined, because most passes end
before its values are needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import torch

from mha_viz.models.families import FAMILIES, is_setting_true
from mha_viz.models.reading import capture
from mha_viz.models.reading.capture import Tap
from mha_viz.models.reading.linear import LinearRows, PackedLinear, join_layers


def make_layer_runner(model: Any) -> LayerRunner | None:
    """Return a runner for the model, joining its linear layers; None if its family or settings rule that out."""
    family, config = FAMILIES[model.config.model_type], model.config
    if not family.has_bert_layers or is_setting_true(family.causal, config) or config.chunk_size_feed_forward:
        return None
    *layers, last_layer = [layer.attention.self for layer in model.encoder.layer]
    for attention in layers:
        join_layers(attention, family.inputs)
    join_layers(last_layer, family.inputs[:2])
    return LayerRunner(model) if isinstance(last_layer.query, LinearRows) else None


class _Layer(NamedTuple):
    """The modules of a layer, in the order in which vectors go through them.

    ``activation`` is None if it is part of ``expansion``.
    """

    attention: Any
    attention_output: Any
    attention_norm: Any
    expansion: Any
    activation: Any
    contraction: Any
    contraction_norm: Any

    @classmethod
    def from_module(cls, layer: Any) -> _Layer:
        """Return the modules of a layer of transformers."""
        attention_output, expansion, contraction = layer.attention.output, layer.intermediate, layer.output
        activation = (
            None if isinstance(expansion.intermediate_act_fn, torch.nn.Identity) else expansion.intermediate_act_fn
        )
        return cls(
            layer.attention.self,
            attention_output.dense,
            attention_output.LayerNorm,
            expansion.dense,
            activation,
            contraction.dense,
            contraction.LayerNorm,
        )


class LayerRunner:
    """Runs the layers of a model. Hooks on its linear layers are called as in a normal pass."""

    def __init__(self, model: Any) -> None:
        self._model = model

    @cached_property
    def _layers(self) -> list[_Layer]:
        """The modules of each layer. They are cached, because a module looks up its parts by name each time."""
        return [_Layer.from_module(layer) for layer in self._model.encoder.layer]

    def __call__(self, tap: Tap, input_ids: torch.Tensor, token_type_ids: torch.Tensor | None = None) -> torch.Tensor:
        """Return the last states, [sentence, n, d_model]. Raises LastLayerSeen if the tap needs nothing more."""
        x = _embed(self._model.embeddings, input_ids, token_type_ids)
        if hasattr(self._model, "embeddings_project"):  # ELECTRA
            x = self._model.embeddings_project(x)
        return self.run_from(tap, x)

    def run_from(self, tap: Tap, x: torch.Tensor, positions: Sequence[int] = ()) -> torch.Tensor:
        """Run the remaining layers from x, the input of the next layer, and return the last states.

        With ``positions``, one token per sentence, the last layer after its attention is computed for these tokens
        alone, and the states are [sentence, 1, d_model].
        """
        for layer in self._layers[tap.seen :]:
            tap.enters(x)
            head_outputs = _attend(layer.attention, x, tap)
            if positions and layer is self._layers[-1]:
                indices = torch.arange(len(x)), list(positions)
                head_outputs, x = head_outputs[indices][:, None], x[indices][:, None]
            x = _normalise(layer.attention_norm, _apply_and_add(layer.attention_output, head_outputs, x))
            hidden = _apply(layer.expansion, x)
            if layer.activation is not None:
                hidden = layer.activation(hidden)
            x = _normalise(layer.contraction_norm, _apply_and_add(layer.contraction, hidden, x))
        return x


def _embed(embeddings: Any, ids: torch.Tensor, types: torch.Tensor | None) -> torch.Tensor:
    """Return the input vectors of the pieces, [sentence, n, width]: the sum of piece, segment and position vectors."""
    if types is None or hasattr(embeddings, "padding_idx"):  # RoBERTa counts positions from the padding index
        x: torch.Tensor = embeddings(input_ids=ids, token_type_ids=types)
        return x
    positions = embeddings.position_embeddings.weight[: ids.shape[1]]
    x = torch.embedding(embeddings.word_embeddings.weight, ids)
    segments = torch.embedding(embeddings.token_type_embeddings.weight, types)
    return _normalise(embeddings.LayerNorm, x + segments + positions)


def _has_hooks(*modules: Any) -> bool:
    """Return whether any of the modules has a hook."""
    return any(module._forward_hooks or module._forward_pre_hooks for module in modules)


def _apply(module: Any, x: torch.Tensor) -> torch.Tensor:
    """Apply a module to x; without hooks, skip the module's own dispatch to them."""
    y: torch.Tensor = module(x) if _has_hooks(module) else module.forward(x)
    return y


def _apply_and_add(module: Any, x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Apply a module to x and add another vector, in one step if no hook or gradient needs them separately."""
    if _has_hooks(module) or torch.is_grad_enabled() or not isinstance(module, PackedLinear):
        return _apply(module, x) + other
    return module.add_to(x, other)


def _normalise(norm: Any, x: torch.Tensor) -> torch.Tensor:
    """Apply a LayerNorm to x."""
    if _has_hooks(norm):
        return _apply(norm, x)
    return torch.layer_norm(x, norm.normalized_shape, norm.weight, norm.bias, norm.eps)


def _attend(attention: Any, x: torch.Tensor, tap: Tap) -> torch.Tensor:
    """Return the input of W_O, [sentence, n, head · d_head]."""
    inputs = attention.query, attention.key, attention.value
    has_hooks = _has_hooks(*inputs)
    if tap.only_weights and not has_hooks and (isinstance(inputs[2], LinearRows) or tap.ends_with(tap.seen)):
        projections = inputs[0].shared_layer.forward(x)
        return capture.attend_unmasked(tap, projections, attention.attention_head_size, attention.scaling)
    query, key, value = _project(attention, inputs, x, tap, has_hooks)
    outputs, _ = capture.capture_attention(attention, query, key, value, None, scaling=attention.scaling)
    return outputs.reshape(*x.shape[:-1], -1)


def _project(attention: Any, inputs: Any, x: torch.Tensor, tap: Tap, has_hooks: bool) -> list[torch.Tensor]:
    """Return queries, keys and values, [sentence, head, n, d_head] each.

    If the values are not needed, the queries are returned in their place.
    """
    if has_hooks:  # hooks on a layer need its output
        return [_split_heads(layer(x), attention, 1)[0] for layer in inputs]
    if isinstance(attention.value, LinearRows):
        return _split_heads(attention.query.shared_layer(x), attention, 3)
    query, key = _split_heads(attention.query.shared_layer(x), attention, 2)
    needs_values = not tap.ends_with(tap.seen)
    return [query, key, _split_heads(attention.value(x), attention, 1)[0] if needs_values else query]


def _split_heads(projections: torch.Tensor, attention: Any, count: int) -> list[torch.Tensor]:
    """Reshape [sentence, n, count · head · d_head] to ``count`` tensors [sentence, head, n, d_head]."""
    shape = *projections.shape[:-1], count, -1, attention.attention_head_size
    return list(projections.view(shape).permute(2, 0, 3, 1, 4).unbind())
