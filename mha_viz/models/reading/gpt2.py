"""Define the modules of GPT-2, with the names that they have in transformers, and a pass through them."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from mha_viz.models.reading import capture
from mha_viz.models.reading.attention_rewrites import eager_attention_forward
from mha_viz.models.reading.bert import make_norm, make_table
from mha_viz.models.reading.linear import TransposedLinear

__all__ = ["Gpt2", "eager_attention_forward"]


class Gpt2(nn.Module):
    """The layers of GPT-2, without the dropout used in training. Its weights are on the meta device until loaded."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config: Any = config
        self.dtype = torch.float32
        self.wte = make_table(config.vocab_size, config.n_embd)
        self.wpe = make_table(config.n_positions, config.n_embd)
        self.h = nn.ModuleList(_Layer(config) for _ in range(config.n_layer))
        self.ln_f = make_norm(config.n_embd, config.layer_norm_epsilon)

    def forward(self, input_ids: torch.Tensor) -> Any:
        """Return the last states as ``last_hidden_state``: [sentence, n] → [sentence, n, d_model]."""
        n = input_ids.shape[1]
        x = self.wte(input_ids) + self.wpe.weight[:n]
        mask = torch.full((1, 1, n, n), torch.finfo(torch.float32).min).triu(1)
        for layer in self.h:
            x = layer(x, mask)
        return SimpleNamespace(last_hidden_state=self.ln_f(x))

    def get_input_embeddings(self) -> nn.Embedding:
        """Return the table of word vectors."""
        return self.wte


class _Layer(nn.Module):
    """A layer of GPT-2."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = (make_norm(config.n_embd, config.layer_norm_epsilon) for _ in range(2))
        self.attn = _Attention(config)
        self.mlp = _FeedForward(config.n_embd, getattr(config, "n_inner", None) or 4 * config.n_embd)

    def forward(self, hidden_states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the output of the layer, [sentence, n, d_model]."""
        x = self.attn(self.ln_1(hidden_states), mask) + hidden_states
        y: torch.Tensor = x + self.mlp(self.ln_2(x))
        return y


class _Attention(nn.Module):
    """The attention of a layer. A single matrix holds W_Q, W_K and W_V side by side."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config: Any = config
        self.scaling = (config.n_embd // config.n_head) ** -0.5
        self.c_attn = TransposedLinear(config.n_embd, 3 * config.n_embd)
        self.c_proj = TransposedLinear(config.n_embd, config.n_embd)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the output of the attention, recording it in the current tap."""
        projections = self.c_attn(x).unflatten(-1, (3, self.config.n_head, -1))
        query, key, value = projections.permute(2, 0, 3, 1, 4).unbind()  # [sentence, head, n, d_head]
        outputs, _ = capture.capture_attention(self, query, key, value, mask, scaling=self.scaling)
        projection: torch.Tensor = self.c_proj(outputs.flatten(2).contiguous())
        return projection


class _FeedForward(nn.Module):
    """The feed-forward part of a layer."""

    def __init__(self, width: int, inner_width: int) -> None:
        super().__init__()
        self.c_fc, self.c_proj = TransposedLinear(width, inner_width), TransposedLinear(inner_width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply the tanh approximation of GELU (Hendrycks and Gimpel 2016, section 2) in the steps of transformers.

        PyTorch's own function differs in the last bits.
        """
        y = self.c_fc(x)
        y = 0.5 * y * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (y + 0.044715 * torch.pow(y, 3.0))))
        projection: torch.Tensor = self.c_proj(y)
        return projection
