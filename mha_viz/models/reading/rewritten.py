"""Attention of families whose modules neither return their weights nor let the heads' outputs be changed: rewritten
here with the same parameters, in the form of the registered attention function."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import torch
from torch import nn

from mha_viz.models.families import FAMILIES, key_heads, layers
from mha_viz.models.reading import capture

_NEVER = 1e30  # XLNet subtracts this from the scores of masked positions


def rewrite(model: Any) -> Any:
    """The model, with its attention modules replaced by those of this file if its family needs that."""
    made = _MADE.get(model.config.model_type)
    if made is None or not capture.is_rewritten(model.config.model_type):
        return model
    family = FAMILIES[model.config.model_type]
    for layer in range(layers(model.config)):
        holder = family.holder.format(layer)
        model.set_submodule(holder, made(model.get_submodule(holder), model.config))
        if made is _Falcon:
            block = model.get_submodule(holder.rpartition(".")[0])
            block.mlp.register_forward_hook(_as_many)
    if made is _Longformer:  # windows that are cut from one matrix need no padding
        model._pad_to_window_size = _unpadded
    return model


def eager_attention_forward(
    _: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    scaling: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The outputs of the heads, [sentence, n, head, d_head], and their weights, [sentence, head, query, key]; ``mask``
    is added to the scores. Heads may share keys and values."""
    shared = query.shape[1] // key.shape[1]
    scores = query @ key.repeat_interleave(shared, dim=1).transpose(2, 3) * scaling
    weights = (scores if mask is None else scores + mask).softmax(-1)
    return (weights @ value.repeat_interleave(shared, dim=1)).transpose(1, 2), weights


class _Falcon(nn.Module):
    """Queries, keys and values come from one layer, group by group: the queries of all heads that share a key, that
    key, and their value. Positions rotate queries and keys, or the mask of the layer contains a term for each distance
    (ALiBi)."""

    def __init__(self, theirs: Any, config: Any) -> None:
        super().__init__()
        self.config: Any = config
        self.query_key_value, self.dense = theirs.query_key_value, theirs.dense
        for linear in (self.query_key_value, self.dense):
            linear.__class__ = nn.Linear  # the same product, where theirs adds its bias in a step of its own
        self.scaling = theirs.head_dim**-0.5
        self._keys = key_heads(config)

    def forward(
        self,
        hidden_states: torch.Tensor,
        *,
        alibi: torch.Tensor | None,
        attention_mask: torch.Tensor,
        position_embeddings: tuple[torch.Tensor, torch.Tensor],
        **_: Any,
    ) -> tuple[torch.Tensor, None]:
        size = self.config.num_attention_heads // self._keys + 2
        joined = self.query_key_value(hidden_states).unflatten(-1, (self._keys, size, -1)).transpose(1, 2)
        query, key, value = joined[..., :-2, :].transpose(2, 3).flatten(1, 2), joined[..., -2, :], joined[..., -1, :]
        if alibi is None:
            query, key = (_turned(each, *position_embeddings) for each in (query, key))
        output = capture.capture(self, query, key, value, attention_mask, scaling=self.scaling)[0]
        put_out = self.dense(output.flatten(2))
        tap = capture.current()
        if tap is not None:
            tap.sentences = len(put_out)
        return put_out, None


def _as_many(_: nn.Module, __: Any, result: torch.Tensor) -> torch.Tensor:
    """The output of a feed-forward part, repeated for each variant of its layer's attention, because the layer adds the
    two in place."""
    tap = capture.current()
    return result if tap is None else result.repeat(tap.sentences // len(result), 1, 1)


def _turned(vectors: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """[sentence, head, n, d_head] of vectors rotated by their positions, whose cosines and sines are [1, n, d_head]."""
    first, second = vectors.chunk(2, -1)
    turned: torch.Tensor = vectors * cos[:, None] + torch.cat((-second, first), -1) * sin[:, None]
    return turned


class _XLNet(nn.Module):
    """Adds to q · k the products of the query with the distance of the two tokens, and with whether they belong to the
    same text. Three biases of the queries belong to these three products."""

    def __init__(self, theirs: Any, config: Any) -> None:
        super().__init__()
        self.config: Any = config
        self.scaling = theirs.scale
        self.q, self.k, self.v, self.r = (_linear(getattr(theirs, name).flatten(1).T) for name in "qkvr")
        self.o = _linear(theirs.o.flatten(1))
        self.r_w_bias, self.r_r_bias, self.r_s_bias = theirs.r_w_bias, theirs.r_r_bias, theirs.r_s_bias
        self.seg_embed, self.layer_norm = theirs.seg_embed, theirs.layer_norm

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
        """``h``: [n, sentence, d_model]. The arguments named g belong to the second stream of its training, which is
        not used."""
        x = h.transpose(0, 1)
        heads = self.config.num_attention_heads
        query, key, value = (_by_head(layer(x), heads) for layer in (self.q, self.k, self.v))
        distances = _by_head(self.r(r[:, :1].transpose(0, 1).to(x.dtype)), heads)
        added = _shifted((query + self.r_r_bias[:, None]) @ distances.transpose(2, 3))
        if seg_mat is not None:
            by_text = torch.einsum("bnid,snd->bnis", query + self.r_s_bias[:, None], self.seg_embed)
            added = added + torch.einsum("ijbs,bnis->bnij", seg_mat.to(x.dtype), by_text)
        added = added.float() * self.scaling
        if attn_mask_h is not None:
            added = added - _NEVER * attn_mask_h.permute(2, 3, 0, 1)
        output = capture.capture(self, query + self.r_w_bias[:, None], key, value, added, scaling=self.scaling)[0]
        normalised: torch.Tensor = self.layer_norm(self.o(output.flatten(2)).transpose(0, 1) + h)
        return normalised, None


def _linear(weight: torch.Tensor) -> nn.Linear:
    """The linear layer with this weight, [out, in], and no bias."""
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=False, device="meta")
    layer.weight = nn.Parameter(weight.detach().contiguous())
    return layer


def _by_head(joined: torch.Tensor, heads: int) -> torch.Tensor:
    """[sentence, n, head · d_head] → [sentence, head, n, d_head]."""
    return joined.view(*joined.shape[:-1], heads, -1).transpose(1, 2)


def _shifted(scores: torch.Tensor) -> torch.Tensor:
    """Scores of queries with distances n, n − 1, …, [sentence, head, n, distance], as scores with keys: those of query
    i with the distances i − 0, i − 1, …; [sentence, head, n, n]."""
    sentences, heads, n, distances = scores.shape
    apart = scores.reshape(sentences, heads, distances, n)[:, :, 1:]
    return apart.reshape(sentences, heads, n, distances - 1)[..., :n]


class _Longformer(nn.Module):
    """A query sees keys that are at most ``reach`` tokens away. There are no global tokens, because a task decides
    which tokens are global."""

    def __init__(self, theirs: Any, config: Any) -> None:
        super().__init__()
        self.config: Any = config
        self.scaling = theirs.head_dim**-0.5
        self.query, self.key, self.value = theirs.query, theirs.key, theirs.value
        self.reach = int(theirs.one_sided_attn_window_size)

    def forward(self, hidden_states: torch.Tensor, **_: Any) -> tuple[torch.Tensor]:
        inputs = self.query, self.key, self.value
        query, key, value = (_by_head(layer(hidden_states), self.config.num_attention_heads) for layer in inputs)
        output = capture.capture(self, query, key, value, self._mask(hidden_states), scaling=self.scaling)[0]
        return (output.flatten(2),)

    def _mask(self, x: torch.Tensor) -> torch.Tensor | None:
        """The mask that is added to scores, [1, 1, query, key]; None if no position is masked."""
        n = x.shape[1]
        if n <= self.reach + 1:
            return None
        places = torch.arange(n, device=x.device)
        is_hidden = (places[:, None] - places).abs() > self.reach
        return torch.zeros(1, 1, n, n, device=x.device).masked_fill(is_hidden, torch.finfo(torch.float32).min)


def _unpadded(
    input_ids: Any, attention_mask: Any, token_type_ids: Any, position_ids: Any, inputs_embeds: Any, **_: Any
) -> Any:
    """Replaces the function that pads a text to a multiple of the window: nothing is added."""
    return 0, input_ids, attention_mask, token_type_ids, position_ids, inputs_embeds


class _Calling:
    """What GPT-J's and GPT-Neo's modules become besides themselves: the method that they call for their attention."""

    scaling = 1.0
    reach = -1  # how far back a query sees; everything if negative

    def _attn(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attention_mask: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The outputs of the heads, [sentence, head, n, d_head], and their weights."""
        mask: Any = attention_mask
        if self.reach >= 0:
            far = torch.ones(query.shape[-2:-1] * 2, dtype=torch.bool, device=query.device).tril(-self.reach - 1)
            mask = mask.masked_fill(far, torch.finfo(mask.dtype).min)
        module: Any = self
        output, weights = capture.capture(module, query, key, value, mask, scaling=self.scaling)
        return output.transpose(1, 2), weights


def _calling(theirs: Any, config: Any) -> nn.Module:
    """The same module, whose attention goes through the tap. GPT-J divides by √d_head; GPT-Neo does not, and sees a
    window in its local layers."""
    module: nn.Module = theirs
    theirs.__class__ = type("Calling", (_Calling, type(theirs)), {"__module__": __name__})
    theirs.scaling = 1 / getattr(theirs, "scale_attn", 1)
    if getattr(theirs, "attention_type", "global") == "local":
        theirs.reach = config.window_size - 1
    return module


_MADE: MappingProxyType[str, Callable[[Any, Any], nn.Module]] = MappingProxyType(
    {"falcon": _Falcon, "gpt_neo": _calling, "gptj": _calling, "longformer": _Longformer, "xlnet": _XLNet}
)
