"""Measure the contributions of heads.

The direct contribution of a head to a word's logit is computed for pre-norm models with an unembedding (Elhage et al.
2021, "A Mathematical Framework for Transformer Circuits"). Attention can also be weighted by the norm of the vectors
that it moves (Kobayashi et al. 2020, "Attention is Not Only a Weight").
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch

from mha_viz.attention import Attention
from mha_viz.attention.answers import Numbers
from mha_viz.attention.steps import NORM_WEIGHTED, make_first_steps
from mha_viz.errors import ModelUnsupported
from mha_viz.model_names import quote_model
from mha_viz.models.families import find_family, is_setting_true
from mha_viz.models.reading import answers
from mha_viz.models.reading.capture import RecordingTap
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.encoder_decoder import AnyModel, require_one_stack
from mha_viz.models.reading.probe import get_epsilon, is_centred
from mha_viz.request import COSINE, Question

_cache_lock = threading.Lock()  # guards the cache below
_length_matrix_cache: WeakKeyDictionary[Encoder, list[torch.Tensor]] = WeakKeyDictionary()


def direct_contributions(encoder: Encoder, question: Question, text: str, pair: str = "") -> Numbers:
    """Return each head's direct contribution to the logit of the word in question, [layer, head].

    A head's output at the predicted token is multiplied by its slice of W_O, by the final norm with its scale on this
    text, and by the word's row of the unembedding. Contributions through later layers are not included.

    Raises ModelUnsupported for models other than pre-norm ones with an unembedding, and the errors of
    :meth:`Encoder.encode`.
    """
    norm = _find_final_norm(encoder, question)
    norm_inputs, thread = list[torch.Tensor](), threading.get_ident()

    def record_input(_: Any, inputs: tuple[torch.Tensor, ...]) -> None:
        """Record the input of the norm. Passes of other threads are ignored."""
        if threading.get_ident() == thread:
            norm_inputs.append(inputs[0])

    hook = norm.register_forward_pre_hook(record_input)
    try:
        _, tap = encoder.last_states(encoder.pieces(text, pair), RecordingTap)
    finally:
        hook.remove()
    assert isinstance(tap, RecordingTap)
    row = answers.find_output_matrix(encoder)[question.piece]
    direction = _pull_back_through_norm(norm, norm_inputs[-1][0, question.place].float(), row.float())  # [d_model]
    head_contributions = []
    for layer, output in enumerate(tap.outputs):
        w_o = encoder.w_o(layer)  # [head · d_head, d_model]
        residual_updates = torch.bmm(
            output[0, question.place][:, None], w_o.reshape(output.shape[2], -1, w_o.shape[-1])
        )[:, 0]
        head_contributions.append(residual_updates @ direction)
    contributions: Numbers = torch.stack(head_contributions).cpu().numpy().astype(np.float64)
    return contributions


def _find_final_norm(encoder: Encoder, question: Question) -> Any:
    """Return the model's final norm. Raises ModelUnsupported where direct contributions cannot be computed."""
    family = find_family(encoder.config)
    width = getattr(encoder.config, "word_embed_proj_dim", encoder.d_model)  # OPT: another matrix follows the norm
    is_readable = family.final_norm and is_setting_true(family.pre_norm, encoder.config) and width == encoder.d_model
    if question.kind == COSINE or not is_readable:
        raise ModelUnsupported(
            f"A head’s contribution to a word’s logit cannot be computed for {quote_model(encoder.name)}: between "
            "the head and the logit there is more than one norm and one matrix.",
            "Choose a model such as GPT-2, or look at the effect of switching the head off.",
        )
    return encoder.module(family.final_norm)


def _pull_back_through_norm(norm: Any, state: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
    """Return the direction in the residual stream that corresponds to a row of the unembedding, [d_model].

    The product of a vector with this direction is the vector's contribution to the logit. It is the final norm applied
    backwards with its scale fixed at ``state``, the input of the norm. RMSNorm does not subtract the mean.
    """
    has_mean = is_centred(norm)
    centred = state - state.mean() if has_mean else state
    direction: torch.Tensor = row * norm.weight.detach() / (centred.square().mean() + get_epsilon(norm)).sqrt()
    return direction - direction.mean() if has_mean else direction


def norm_weighted(encoder: AnyModel, text: str, pair: str = "", words: Sequence[str] = ()) -> Attention:
    """Return norm-weighted attention, ‖A[i, j] · (x_j W_V + b_V) W_O‖₂, of every head, [layer, head, query, key].

    W_O is the head's slice, without b_O (equation 3). Rows do not sum to 1.

    The value says how much a key contributes to a query: little if a large weight multiplies a short vector. It does
    not say how later layers use that contribution. ``words``: the sentence as words, in place of ``text``. Raises
    the errors of ``encode``.
    """
    encoder = require_one_stack(encoder)
    reading, tap = encoder.through(text, pair, RecordingTap, words)
    assert isinstance(tap, RecordingTap)
    lengths = [
        torch.bmm(*matrices).norm(dim=-1)
        for matrices in zip(tap.values, _compute_length_matrices(encoder), strict=True)
    ]
    weights = reading.weights * torch.stack(lengths).cpu().numpy()[:, :, None, :]
    return replace(
        reading, weights=weights, quantity="norm", made=make_first_steps(words, NORM_WEIGHTED, prefix=encoder.prefix)
    )


def _compute_length_matrices(encoder: Encoder) -> list[torch.Tensor]:
    """Return for each layer matrices [head, d_head, d_head] that give vectors the same lengths as slices of W_O do.

    They are the triangular factors of a QR decomposition, since a rotation keeps lengths.
    """
    with _cache_lock:
        if encoder not in _length_matrix_cache:
            matrices = [encoder.w_o(layer) for layer in range(encoder.layers)]
            slices = [w_o.reshape(encoder.heads, -1, w_o.shape[1]) for w_o in matrices]
            _length_matrix_cache[encoder] = [torch.linalg.qr(w_o_slices.mT, mode="r").R.mT for w_o_slices in slices]
        return _length_matrix_cache[encoder]
