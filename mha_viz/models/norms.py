"""Attention weighted by the norm of the vectors that it moves (Kobayashi et al. 2020, "Attention is Not Only a
Weight")."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

import torch

from mha_viz.attention import Attention
from mha_viz.attention.steps import NORM_WEIGHTED, read_as
from mha_viz.models.capture import Recorded
from mha_viz.models.encoder import Encoder
from mha_viz.models.encoder_decoder import AnyModel, in_one_stack

_one_decomposition = threading.Lock()
_of_encoders: WeakKeyDictionary[Encoder, list[torch.Tensor]] = WeakKeyDictionary()


def norm_weighted(encoder: AnyModel, text: str, pair: str = "", words: Sequence[str] = ()) -> Attention:
    """‖A[i, j] · (x_j W_V + b_V) W_O‖₂ for every head, where W_O is its slice, without b_O (equation 3): [layer, head,
    query, key]. Rows do not sum to 1.

    It says how much a key contributes to a query, which is little if a large weight meets a short vector. It does not
    say what later layers do with it. ``words``: the sentence as words, in place of ``text``. Raises as ``encode``.
    """
    encoder = in_one_stack(encoder)
    reading, norms = encoder.through(text, pair, Recorded, words)
    assert isinstance(norms, Recorded)
    lengths = [torch.bmm(*each).norm(dim=-1) for each in zip(norms.values, _turned(encoder), strict=True)]
    weights = reading.weights * torch.stack(lengths).cpu().numpy()[:, :, None, :]
    return replace(reading, weights=weights, quantity="norm", made=read_as(words, NORM_WEIGHTED, prefix=encoder.prefix))


def _turned(encoder: Encoder) -> list[torch.Tensor]:
    """For each layer, a matrix per head, [head, d_head, d_head], that gives vectors the same length as the head's slice
    of W_O does: the triangular factor of a QR decomposition, since a rotation keeps lengths."""
    with _one_decomposition:
        if encoder not in _of_encoders:
            matrices = [encoder.w_o(layer) for layer in range(encoder.layers)]
            slices = [w_o.reshape(encoder.heads, -1, w_o.shape[1]) for w_o in matrices]
            _of_encoders[encoder] = [torch.linalg.qr(each.mT, mode="r").R.mT for each in slices]
        return _of_encoders[encoder]
