"""Compute the terms of a score that depend on the distance of two tokens, in families where they are separable."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import torch

from mha_viz.attention.trace import DistanceTerms, Floats

# Takes the module of a layer's attention, its arguments by name, the scale of its scores and the number of tokens.
# Returns the scale that the family uses, and the terms that it adds.
ComputeTerms: TypeAlias = Callable[[Any, dict[str, Any], float, int], tuple[float, DistanceTerms]]


def _make_bias(bias: torch.Tensor, n: int) -> DistanceTerms:
    """Return a term that adds a number per head and distance, [h, n or 1, n]."""
    empty = np.zeros((len(bias), 0, 0), np.float32)
    bias_by_pair = np.broadcast_to(bias.float().cpu().numpy(), (len(bias), n, n))
    return DistanceTerms(bias_by_pair, empty, empty, np.zeros((2, n, n), np.intp))


def _compute_mpnet_terms(_: Any, arguments: dict[str, Any], scaling: float, n: int) -> tuple[float, DistanceTerms]:
    """Return MPNet's terms: numbers as in T5, with scaling.

    See Song et al. 2020, "MPNet: Masked and Permuted Pre-training for Language Understanding".
    """
    return scaling, _make_bias(arguments["position_bias"][0], n)


def _compute_bloom_terms(_: Any, arguments: dict[str, Any], scaling: float, n: int) -> tuple[float, DistanceTerms]:
    """Return ALiBi's terms: the distance times a slope per head.

    See Press et al. 2022, "Train Short, Test Long", section 3.
    """
    return scaling, _make_bias(arguments["alibi"], n)


def _compute_t5_terms(holder: Any, arguments: dict[str, Any], scaling: float, n: int) -> tuple[float, DistanceTerms]:
    """Return T5's terms: a learned number per head and bucket of distances, added to q · k, which is not scaled.

    See Raffel et al. 2020, "Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer", section
    2.1. The first layer computes the numbers and passes them to the others.
    """
    bias = arguments.get("position_bias")
    with torch.inference_mode():
        return scaling, _make_bias((holder.compute_bias(n, n) if bias is None else bias)[0], n)


def _compute_deberta_terms(
    holder: Any, arguments: dict[str, Any], scaling: float, n: int
) -> tuple[float, DistanceTerms]:
    """Return DeBERTa's terms: the products of content with position and of position with content.

    All products are divided by the root of d_k times their number (He et al. 2021, equation 4).
    """
    kinds = [kind for kind in ("c2p", "p2c") if kind in holder.pos_att_type]
    scaling /= (1 + len(kinds)) ** 0.5
    if not holder.relative_attention:
        return scaling, _make_bias(torch.zeros(holder.num_attention_heads, n, n), n)
    span = holder.pos_ebd_size
    buckets = arguments["relative_pos"].reshape(n, n).cpu().numpy()  # query position minus key position, in buckets
    indices = np.stack([np.clip(buckets + span, 0, 2 * span - 1), np.clip(-buckets.T + span, 0, 2 * span - 1)])
    keys = _read_distance_vectors(holder, arguments, "c2p", "key")
    queries = _read_distance_vectors(holder, arguments, "p2c", "query")
    return scaling, DistanceTerms(np.zeros((1, n, n), np.float32), keys, queries, indices.astype(np.intp))


def _read_distance_vectors(holder: Any, arguments: dict[str, Any], kind: str, name: str) -> Floats:
    """Return the keys or queries of distances, [h, distance, d_k]; no rows if the model does not compare with them."""
    heads = holder.num_attention_heads
    if kind not in holder.pos_att_type:
        return np.zeros((heads, 0, 0), np.float32)
    module = getattr(holder, f"{name}_proj" if holder.share_att_key else f"pos_{name}_proj")
    with torch.inference_mode():
        rows = module(arguments["rel_embeddings"][: 2 * holder.pos_ebd_size])
    by_head: Floats = rows.reshape(len(rows), heads, -1).transpose(0, 1).contiguous().float().cpu().numpy()
    return by_head


TERMS_BY_FAMILY: MappingProxyType[str, ComputeTerms] = MappingProxyType(
    {
        "bloom": _compute_bloom_terms,
        "deberta-v2": _compute_deberta_terms,
        "mpnet": _compute_mpnet_terms,
        "mt5": _compute_t5_terms,
        "t5": _compute_t5_terms,
    }
)
