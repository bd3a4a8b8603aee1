"""The layers of BERT and similar models, one after the other: the modules of transformers, without its overhead between
them.

W_Q, W_K and W_V are computed as one product; in the last layer only W_Q and W_K, because most passes end before its
values are needed.
"""

from __future__ import annotations

from typing import Any

import torch

from mha_viz.models import capture
from mha_viz.models.capture import Tap
from mha_viz.models.families import FAMILIES, holds
from mha_viz.models.linear import Rows, join


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


class Straight:
    """Runs the layers of a model. Hooks on its linear layers are called, as in a normal pass."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __call__(self, tap: Tap, input_ids: torch.Tensor, token_type_ids: torch.Tensor | None = None) -> torch.Tensor:
        """The last states, [sentence, n, d_model]. Raises LastLayerSeen if the tap needs nothing more."""
        x: torch.Tensor = self._model.embeddings(input_ids=input_ids, token_type_ids=token_type_ids)
        if hasattr(self._model, "embeddings_project"):  # ELECTRA
            x = self._model.embeddings_project(x)
        return self.onwards(tap, x)

    def onwards(self, tap: Tap, x: torch.Tensor) -> torch.Tensor:
        """The last states from x, the input of the layer after those that the tap has seen."""
        for layer in self._model.encoder.layer[tap.seen :]:
            tap.enters(x)
            x = _through(layer, x, tap)
        return x


def _through(layer: Any, x: torch.Tensor, tap: Tap) -> torch.Tensor:
    """The output of a layer for the input x, both [sentence, n, d_model]."""
    attention, after, wide, narrow = layer.attention.self, layer.attention.output, layer.intermediate, layer.output
    query, key, value = _projected(attention, x, tap)
    heads, _ = capture.capture(attention, query, key, value, None, scaling=attention.scaling)
    x = after.LayerNorm(after.dense(heads.reshape(*x.shape[:-1], -1)) + x)
    between = wide.intermediate_act_fn(wide.dense(x))
    normalised: torch.Tensor = narrow.LayerNorm(narrow.dense(between) + x)
    return normalised


def _projected(attention: Any, x: torch.Tensor, tap: Tap) -> list[torch.Tensor]:
    """Queries, keys and values, [sentence, head, n, d_head] each; the queries stand in for values that are not
    needed."""
    inputs = attention.query, attention.key, attention.value
    if any(one._forward_hooks or one._forward_pre_hooks for one in inputs):  # hooks on one of them get its output
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
