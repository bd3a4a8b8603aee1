"""Define the modules of BERT, with the names that they have in transformers.

:mod:`mha_viz.models.reading.fast_layers` runs passes through them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from mha_viz.models.reading.attention_rewrites import eager_attention_forward

__all__ = ["Bert", "eager_attention_forward"]


class Bert(nn.Module):
    """The layers of BERT, without the dropout used in training. Its weights are on the meta device until loaded."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config: Any = config
        self.dtype = torch.float32
        self.embeddings = _Embeddings(config)
        self.encoder = nn.Module()
        self.encoder.layer = nn.ModuleList(_make_layer(config) for _ in range(config.num_hidden_layers))

    def forward(self, input_ids: torch.Tensor, token_type_ids: torch.Tensor | None = None) -> Any:
        """Declare the inputs of a pass, which :class:`mha_viz.models.reading.fast_layers.LayerRunner` runs."""
        raise NotImplementedError

    def get_input_embeddings(self) -> nn.Embedding:
        """Return the table of word vectors."""
        return self.embeddings.word_embeddings


class _Embeddings(nn.Module):
    """The input vectors: the normalised sum of the vectors of piece, segment and position."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        width = config.hidden_size
        self.word_embeddings = make_table(config.vocab_size, width)
        self.position_embeddings = make_table(config.max_position_embeddings, width)
        self.token_type_embeddings = make_table(config.type_vocab_size, width)
        self.LayerNorm = make_norm(config.hidden_size, config.layer_norm_eps)

    def forward(self, input_ids: torch.Tensor, token_type_ids: torch.Tensor | None = None) -> torch.Tensor:
        """Embed pieces: [sentence, n] → [sentence, n, d_model]."""
        types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        positions = self.position_embeddings.weight[: input_ids.shape[1]]
        x: torch.Tensor = self.LayerNorm(
            self.word_embeddings(input_ids) + self.token_type_embeddings(types) + positions
        )
        return x


class _Projections(nn.Module):
    """W_Q, W_K and W_V of a layer."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config: Any = config
        self.attention_head_size = config.hidden_size // config.num_attention_heads
        self.scaling = self.attention_head_size**-0.5
        self.query, self.key, self.value = (make_linear(config.hidden_size, config.hidden_size) for _ in range(3))


def _make_layer(config: Any) -> nn.Module:
    """Return a layer of BERT."""
    width, inner_width = config.hidden_size, config.intermediate_size
    layer = nn.Module()
    layer.attention = nn.Module()
    layer.attention.self = _Projections(config)
    layer.attention.output = _make_output(width, config)
    layer.intermediate = nn.Module()
    layer.intermediate.dense = make_linear(width, inner_width)
    layer.intermediate.intermediate_act_fn = nn.GELU()
    layer.output = _make_output(inner_width, config)
    return layer


def _make_output(width: int, config: Any) -> nn.Module:
    """Return a linear layer, and the norm that is applied to the sum of its output and the residual."""
    module = nn.Module()
    module.dense = make_linear(width, config.hidden_size)
    module.LayerNorm = make_norm(config.hidden_size, config.layer_norm_eps)
    return module


def make_linear(in_width: int, out_width: int) -> nn.Linear:
    """Return a linear layer, [..., in_width] → [..., out_width]."""
    return nn.Linear(in_width, out_width, device="meta")


def make_norm(width: int, eps: float) -> nn.LayerNorm:
    """Return a LayerNorm that adds ``eps`` to the variance."""
    return nn.LayerNorm(width, eps=eps, device="meta")


def make_table(rows: int, width: int) -> nn.Embedding:
    """Return a table of vectors on the meta device.

    Passing the weight avoids random initialisation, which on that device would import PyTorch's compiler (1.5 s).
    """
    return nn.Embedding(rows, width, _weight=torch.empty(rows, width, device="meta"))
