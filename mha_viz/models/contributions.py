"""The direct contribution of each head to a word's logit, for models in which it can be read off (Elhage et al. 2021,
"A Mathematical Framework for Transformer Circuits")."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import torch

from mha_viz.attention.answers import Numbers
from mha_viz.errors import ModelUnsupported
from mha_viz.model_names import quote_model
from mha_viz.models import answers
from mha_viz.models.capture import Recorded
from mha_viz.models.encoder import Encoder
from mha_viz.models.families import family_of, holds
from mha_viz.models.probe import epsilon, is_centred
from mha_viz.request import COSINE, Question


def direct(encoder: Encoder, question: Question, text: str, pair: str = "") -> Numbers:
    """[layer, head]: the contribution of each head to the logit of the word in question through the residual stream
    alone: its output at the place, times its slice of W_O, the final norm with the scale that it has on this text, and
    the word's row of the unembedding. What other layers compute from the head's output is not included.

    Raises ModelUnsupported for models other than pre-norm ones with an unembedding, and the errors of
    :meth:`Encoder.encode`.
    """
    norm = _final_norm(encoder, question)
    given, thread = list[torch.Tensor](), threading.get_ident()

    def take(_: Any, inputs: tuple[torch.Tensor, ...]) -> None:
        if threading.get_ident() == thread:
            given.append(inputs[0])

    hook = norm.register_forward_pre_hook(take)
    try:
        _, tap = encoder.last_states(encoder.pieces(text, pair), Recorded)
    finally:
        hook.remove()
    assert isinstance(tap, Recorded)
    head = answers.word_head(encoder)
    row = _unembedding(head).weight[question.piece].detach() * getattr(head, "logit_scale", 1)  # of Cohere
    direction = _before_norm(norm, given[-1][0, question.place].float(), row.float())  # [d_model]
    added = [
        _moved(output[0, question.place], encoder.w_o(layer)) @ direction for layer, output in enumerate(tap.outputs)
    ]
    contributions: Numbers = torch.stack(added).cpu().numpy().astype(np.float64)
    return contributions


def _final_norm(encoder: Encoder, question: Question) -> Any:
    family = family_of(encoder.config)
    width = getattr(encoder.config, "word_embed_proj_dim", encoder.d_model)  # OPT: another matrix follows the norm
    is_readable = family.final_norm and holds(family.pre_norm, encoder.config) and width == encoder.d_model
    if question.kind == COSINE or not is_readable:
        raise ModelUnsupported(
            f"What a head of {quote_model(encoder.name)} adds to a word’s logit cannot be computed: between "
            "them there is more than one norm and one matrix.",
            "Choose a model such as GPT-2, or look at the effect of switching the head off.",
        )
    return encoder.module(family.final_norm)


def _unembedding(head: Any) -> Any:
    """The layer that computes logits from last states; GPT-NeoX has a different name for it."""
    return head.embed_out if hasattr(head, "embed_out") else head.lm_head


def _before_norm(norm: Any, state: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
    """The direction of the residual stream, [d_model], whose product with a vector is its contribution to a row of the
    unembedding: the norm backwards, with its scale fixed. ``state``: the input of the norm. RMSNorm does not subtract
    the mean."""
    has_mean = is_centred(norm)
    centred = state - state.mean() if has_mean else state
    direction: torch.Tensor = row * norm.weight.detach() / (centred.square().mean() + epsilon(norm)).sqrt()
    return direction - direction.mean() if has_mean else direction


def _moved(output: torch.Tensor, w_o: torch.Tensor) -> torch.Tensor:
    """[head, d_model]: outputs [head, d_head] times their slices of W_O, [head · d_head, d_model]."""
    slices = w_o.reshape(len(output), -1, w_o.shape[-1])
    moved: torch.Tensor = torch.bmm(output[:, None], slices)[:, 0]
    return moved
