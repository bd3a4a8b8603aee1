"""Attention rollout (Abnar & Zuidema 2020, "Quantifying Attention Flow in Transformers")."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mha_viz.attention import Attention
from mha_viz.attention.steps import NUMBERED_LAYERS, ONLY, ROLLOUT
from mha_viz.errors import READING_KIND, ShapeError, check_kind
from mha_viz.request import DECODER


def rollout(attention: Attention) -> Attention:
    """Compute how much of each input token is in the state of each token, layer by layer.

    All heads of a layer have the same share, and the residual has one half (section 3): R_l = Â_l R_{l−1}, Â_l = ½ mean
    over heads of A_l + ½ I, R_{−1} = I.

    The result has one head per layer, [layer, 1, token after the layer, input token]; rows sum to 1. It is computed
    from weights alone, so it ignores values and feed-forward layers. Raises ShapeError for readings without the
    complete weights of all heads from a text to itself, and for a decoder that also reads a source.
    """
    check_kind(attention, Attention, *READING_KIND)
    if attention.queries.unit == "words":
        raise ShapeError(
            "Rollout follows the model's tokens through its layers; this reading has words.",
            "Follow first, then group: mv.quantities.rollout(reading).by_words().",
        )
    has_all_heads = not any(step.row.name == ONLY for step in attention.made)
    if not has_all_heads or attention.is_cross or attention.quantity != "weight" or attention.hidden.any():
        raise ShapeError(
            "Rollout needs the unchanged attention weights of all heads within one text; this reading has others.",
            "Use the reading as the model returned it.",
        )
    if any(step.row.name == NUMBERED_LAYERS for step in attention.made):
        raise ShapeError(
            "Rollout follows a text through all layers of a model; this reading has only some of them.",
            "Use a model whose layers all have attention, or give the weights of every layer.",
        )
    request = attention.request
    if request is not None and request.part == DECODER:
        raise ShapeError(
            "Rollout follows a text through its own layers; this decoder also reads the source between them.",
            "Use the encoder: part=encoder.",
        )
    identity = np.eye(len(attention.queries))
    layer_mixtures, mixture = [], identity
    for layer in attention.weights:
        mixture = (layer.mean(axis=0, dtype=np.float64) + identity) / 2 @ mixture
        layer_mixtures.append(mixture)
    weights = np.stack(layer_mixtures)[:, None].astype(np.float32)
    hidden = np.zeros(weights.shape[:3], np.float32)
    return replace(attention, weights=weights, hidden=hidden, quantity="rollout", made=(*attention.made, ROLLOUT))
