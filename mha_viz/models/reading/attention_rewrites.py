"""Replace the attention of families whose modules neither return their weights nor let the heads' outputs be changed.

The modules here have the same parameters and call the registered attention function.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import torch
from torch import nn

from mha_viz.models.families import FAMILIES, count_key_heads, count_layers
from mha_viz.models.reading import capture

_MASK_PENALTY = 1e30  # subtracted from XLNet's scores of masked positions


def rewrite(model: Any) -> Any:
    """Replace the model's attention modules with the ones in this file if its family needs that. Return the model."""
    make_attention = _REPLACEMENTS.get(model.config.model_type)
    if make_attention is None or not capture.is_rewritten(model.config.model_type):
        return model
    family = FAMILIES[model.config.model_type]
    for layer in range(count_layers(model.config)):
        holder = family.holder.format(layer)
        model.set_submodule(holder, make_attention(model.get_submodule(holder), model.config))
        if make_attention is _FalconAttention:
            block = model.get_submodule(holder.rpartition(".")[0])
            block.mlp.register_forward_hook(_repeat_for_variants)
    if make_attention is _LongformerAttention:  # masking a full matrix needs no padding to windows
        model._pad_to_window_size = _skip_padding
    return model


def eager_attention_forward(
    _: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    scaling: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the outputs of the heads, [sentence, n, head, d_head], and their weights, [sentence, head, query, key].

    ``mask`` is added to the scores. Heads may share keys and values.
    """
    heads_per_key = query.shape[1] // key.shape[1]
    scores = query @ key.repeat_interleave(heads_per_key, dim=1).transpose(2, 3) * scaling
    weights = (scores if mask is None else scores + mask).softmax(-1)
    return (weights @ value.repeat_interleave(heads_per_key, dim=1)).transpose(1, 2), weights


class _FalconAttention(nn.Module):
    """Falcon's attention.

    Queries, keys and values come from a single layer, group by group: the queries of all heads that share a key, that
    key, and their value. Positions rotate queries and keys, or the mask of the layer contains a term for each distance
    (ALiBi).
    """

    def __init__(self, original: Any, config: Any) -> None:
        super().__init__()
        self.config: Any = config
        self.query_key_value, self.dense = original.query_key_value, original.dense
        for linear in (self.query_key_value, self.dense):
            linear.__class__ = nn.Linear  # the same product; the original adds its bias in a separate step
        self.scaling = original.head_dim**-0.5
        self._key_heads = count_key_heads(config)

    def forward(
        self,
        hidden_states: torch.Tensor,
        *,
        alibi: torch.Tensor | None,
        attention_mask: torch.Tensor,
        position_embeddings: tuple[torch.Tensor, torch.Tensor],
        **_: Any,
    ) -> tuple[torch.Tensor, None]:
        """Return the output of the attention, recording it in the current tap."""
        group_size = self.config.num_attention_heads // self._key_heads + 2
        qkv = self.query_key_value(hidden_states).unflatten(-1, (self._key_heads, group_size, -1)).transpose(1, 2)
        query, key, value = qkv[..., :-2, :].transpose(2, 3).flatten(1, 2), qkv[..., -2, :], qkv[..., -1, :]
        if alibi is None:
            query, key = (_rotate(vectors, *position_embeddings) for vectors in (query, key))
        output = capture.capture_attention(self, query, key, value, attention_mask, scaling=self.scaling)[0]
        projection = self.dense(output.flatten(2))
        tap = capture.get_current_tap()
        if tap is not None:
            tap.sentences = len(projection)
        return projection, None


def _repeat_for_variants(_: nn.Module, __: Any, result: torch.Tensor) -> torch.Tensor:
    """Repeat the output of a feed-forward part for each variant of its layer's attention.

    The layer adds the two in place, so their shapes must agree.
    """
    tap = capture.get_current_tap()
    return result if tap is None else result.repeat(tap.sentences // len(result), 1, 1)


def _rotate(vectors: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotate vectors, [sentence, head, n, d_head], by their positions, whose cosines and sines are [1, n, d_head]."""
    first, second = vectors.chunk(2, -1)
    rotated: torch.Tensor = vectors * cos[:, None] + torch.cat((-second, first), -1) * sin[:, None]
    return rotated


class _XLNetAttention(nn.Module):
    """XLNet's attention.

    To q · k it adds products of the query with an embedding of the two tokens' distance, and with one of whether they
    belong to the same text. Each of the three products has its own query bias.
    """

    def __init__(self, original: Any, config: Any) -> None:
        super().__init__()
        self.config: Any = config
        self.scaling = original.scale
        self.q, self.k, self.v, self.r = (_make_linear(getattr(original, name).flatten(1).T) for name in "qkvr")
        self.o = _make_linear(original.o.flatten(1))
        self.r_w_bias, self.r_r_bias, self.r_s_bias = original.r_w_bias, original.r_r_bias, original.r_s_bias
        self.seg_embed, self.layer_norm = original.seg_embed, original.layer_norm

    def forward(
        self,
        h: torch.Tensor,
        _g: None,
        attn_mask_h: torch.Tensor | None,
        _attn_mask_g: torch.Tensor | None,
        r: torch.Tensor,
        seg_mat: torch.Tensor | None,
        **_: Any,
    ) -> tuple[torch.Tensor, None]:
        """Return the normalised output, recording the attention in the current tap.

        ``h`` is [n, sentence, d_model]. The arguments named g belong to the second stream of XLNet's training, which is
        not used.
        """
        x = h.transpose(0, 1)
        heads = self.config.num_attention_heads
        query, key, value = (_split_heads(layer(x), heads) for layer in (self.q, self.k, self.v))
        distances = _split_heads(self.r(r[:, :1].transpose(0, 1).to(x.dtype)), heads)
        bias = _align_with_keys((query + self.r_r_bias[:, None]) @ distances.transpose(2, 3))
        if seg_mat is not None:
            text_scores = torch.einsum("bnid,snd->bnis", query + self.r_s_bias[:, None], self.seg_embed)
            bias = bias + torch.einsum("ijbs,bnis->bnij", seg_mat.to(x.dtype), text_scores)
        bias = bias.float() * self.scaling
        if attn_mask_h is not None:
            bias = bias - _MASK_PENALTY * attn_mask_h.permute(2, 3, 0, 1)
        output = capture.capture_attention(
            self, query + self.r_w_bias[:, None], key, value, bias, scaling=self.scaling
        )[0]
        normalised: torch.Tensor = self.layer_norm(self.o(output.flatten(2)).transpose(0, 1) + h)
        return normalised, None


def _make_linear(weight: torch.Tensor) -> nn.Linear:
    """Return a linear layer with this weight, [out, in], and no bias."""
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False, device="meta")
    layer.weight = nn.Parameter(weight.detach().contiguous())
    return layer


def _split_heads(projection: torch.Tensor, heads: int) -> torch.Tensor:
    """Reshape [sentence, n, head · d_head] to [sentence, head, n, d_head]."""
    return projection.view(*projection.shape[:-1], heads, -1).transpose(1, 2)


def _align_with_keys(scores: torch.Tensor) -> torch.Tensor:
    """Convert scores of queries with distances to scores with keys, [sentence, head, n, n].

    The input has distances n, n − 1, … as its last axis. In the output, query i has the scores of the distances i − 0,
    i − 1, …
    """
    sentences, heads, n, distances = scores.shape
    realigned = scores.reshape(sentences, heads, distances, n)[:, :, 1:]
    return realigned.reshape(sentences, heads, n, distances - 1)[..., :n]


class _LongformerAttention(nn.Module):
    """Longformer's attention, in which a query sees keys that are at most ``reach`` tokens away.

    There are no global tokens, because the task decides which tokens are global.
    """

    def __init__(self, original: Any, config: Any) -> None:
        super().__init__()
        self.config: Any = config
        self.scaling = original.head_dim**-0.5
        self.query, self.key, self.value = original.query, original.key, original.value
        self.reach = int(original.one_sided_attn_window_size)

    def forward(self, hidden_states: torch.Tensor, **_: Any) -> tuple[torch.Tensor]:
        """Return the outputs of the heads, recording the attention in the current tap."""
        inputs = self.query, self.key, self.value
        query, key, value = (_split_heads(layer(hidden_states), self.config.num_attention_heads) for layer in inputs)
        mask = self._make_mask(hidden_states)
        output = capture.capture_attention(self, query, key, value, mask, scaling=self.scaling)[0]
        return (output.flatten(2),)

    def _make_mask(self, x: torch.Tensor) -> torch.Tensor | None:
        """Return the mask that is added to scores, [1, 1, query, key]; None if no position is masked."""
        n = x.shape[1]
        if n <= self.reach + 1:
            return None
        positions = torch.arange(n, device=x.device)
        is_hidden = (positions[:, None] - positions).abs() > self.reach
        return torch.zeros(1, 1, n, n, device=x.device).masked_fill(is_hidden, torch.finfo(torch.float32).min)


def _skip_padding(
    input_ids: Any, attention_mask: Any, token_type_ids: Any, position_ids: Any, inputs_embeds: Any, **_: Any
) -> Any:
    """Return a text unpadded. Replaces the function that pads a text to a multiple of the window."""
    return 0, input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds


class _TappedMixin:
    """A mixin for GPT-J's and GPT-Neo's modules with the method that they call for their attention."""

    scaling = 1.0
    reach = -1  # the number of tokens that a query sees before its own; all of them if negative

    def _attn(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attention_mask: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the outputs of the heads, [sentence, head, n, d_head], and their weights."""
        mask: Any = attention_mask
        if self.reach >= 0:
            is_too_far = torch.ones(query.shape[-2:-1] * 2, dtype=torch.bool, device=query.device).tril(-self.reach - 1)
            mask = mask.masked_fill(is_too_far, torch.finfo(mask.dtype).min)
        module: Any = self
        output, weights = capture.capture_attention(module, query, key, value, mask, scaling=self.scaling)
        return output.transpose(1, 2), weights


def _tap_attention(original: Any, config: Any) -> nn.Module:
    """Modify a module so that its attention goes through the tap, and return it.

    GPT-J divides by √d_head; GPT-Neo does not, and sees a window in its local layers.
    """
    module: nn.Module = original
    original.__class__ = type("TappedAttention", (_TappedMixin, type(original)), {"__module__": __name__})
    original.scaling = 1 / getattr(original, "scale_attn", 1)
    if getattr(original, "attention_type", "global") == "local":
        original.reach = config.window_size - 1
    return module


_REPLACEMENTS: MappingProxyType[str, Callable[[Any, Any], nn.Module]] = MappingProxyType(
    {
        "falcon": _FalconAttention,
        "gpt_neo": _tap_attention,
        "gptj": _tap_attention,
        "longformer": _LongformerAttention,
        "xlnet": _XLNetAttention,
    }
)
