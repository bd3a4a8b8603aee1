"""Weight attention by the gradient of a score: to first order, how much an answer depends on each weight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch

from mha_viz.attention import Attention
from mha_viz.attention.answers import Numbers
from mha_viz.attention.steps import Step, StepData, make_first_steps
from mha_viz.errors import ReadingFailed, SettingError
from mha_viz.models.reading import answers, cores
from mha_viz.models.reading.capture import RecordingTap
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.encoder_decoder import AnyModel, require_one_stack
from mha_viz.models.reading.tokenizer import TextPieces
from mha_viz.request import BOTH, COSINE, FIRST_TEXT, SECOND_TEXT, Question
from mha_viz.text import WordPieces


def gradient_weighted(
    encoder: AnyModel,
    text: str,
    pair: str = "",
    words: Sequence[str] = (),
    *,
    place: int | None = None,
    word: str = "",
    other: str = "",
    off_in: str = BOTH,
) -> Attention:
    """Weight each attention weight by its gradient: A[i, j] · ∂s/∂A[i, j].

    To first order, this is how much the score s would rise if the weight grew by its own size. A weight may matter
    although its gradient is near 0, if s is flat there. s is the log-probability of ``word`` or, with ``other``, the
    cosine of the vectors of the two texts (:func:`mha_viz.models.reading.answers.make_question`).

    Args:
        encoder: a model from :func:`mha_viz.load`, with one stack of layers.
        text: the text that the model reads.
        pair: a second text, read together with the first.
        words: the sentence as words, in place of ``text``.
        place: the token to predict, counted from 0, if several are masked; −1 for the first of them.
        word: the word whose log-probability is the score, by default the most probable word.
        other: a text to compare ``text`` with.
        off_in: with ``other``, "both" or "first" for the weights and tokens of ``text``, while the weights of ``other``
            stay as they are; "second" for the reverse, which needs ``text`` to be a single text.

    Returns a reading with the products of every head, [layer, head, query, key], signed; rows do not sum to 1. Raises
    the errors of :func:`mha_viz.models.reading.answers.make_question`, and ReadingFailed if a gradient is not finite.
    """
    encoder = require_one_stack(encoder)
    question = answers.make_question(encoder, text, pair, words, place=place, word=word, other=other, off_in=off_in)
    return weight_by_gradient(encoder, question, text, pair, words)


def weight_by_gradient(
    encoder: Encoder, question: Question, text: str, pair: str = "", words: Sequence[str] = ()
) -> Attention:
    """Compute :func:`gradient_weighted` for a given question."""
    if question.off_in == SECOND_TEXT:
        if pair or words:
            problem = "The gradient with respect to the second text needs the first text without a pair."
            raise SettingError(problem, "Leave out pair and words.")
        text, question = question.other, question._replace(other=text, off_in=FIRST_TEXT)
    pieces = encoder.pieces(text, pair, words)
    tap, gradients = _backpropagate(encoder, partial(_evaluate_score, encoder, question), pieces)
    products = [
        weights * torch.einsum("qhd,hkd->hqk", gradient[0], values)
        for weights, gradient, values in zip(tap.weights, gradients, tap.values, strict=True)
    ]
    stacked_products = torch.stack(products)
    if not torch.isfinite(stacked_products).all():
        raise ReadingFailed(
            f"A gradient of {question.score} is not a finite number.", "Choose another word or a shorter text."
        )
    steps = make_first_steps(words, Step(StepData("gradient", question=question)), prefix=encoder.prefix)
    tokens, weights = pieces.tokenized(), stacked_products.cpu().numpy()
    return Attention(encoder.name, encoder.revision, tokens, weights, made=steps, quantity="gradient")


def compute_importance(encoder: Encoder, question: Question, text: str, pair: str = "") -> Numbers:
    """Return the gradient importance of each head, [layer, head]: |Att_h(x)ᵀ ∂L/∂Att_h(x)|.

    It is the mean over the tokens of a text, ℓ2-normalised within each layer (Michel et al. 2019, equation 2). Att_h is
    the output of the head, and the loss L is minus the score of the question. Where two texts are compared, the tokens
    are those of the texts in which the question's heads are off. Raises the errors of ``encode``.
    """
    texts = [(text, pair), (question.other, "")] if question.kind == COSINE else [(text, pair)]
    products = []
    for index in (index for index in range(len(texts)) if question.is_off_in(index)):
        score = partial(_evaluate_score, encoder, question, other=texts[1 - index] if question.other else ("", ""))
        tap, gradients = _backpropagate(encoder, score, encoder.pieces(*texts[index]))
        products.append((torch.cat(gradients) * torch.cat(tap.outputs)).sum(-1))  # [layer, n, head]
    sizes = torch.cat(products, dim=1).abs().mean(1)  # [layer, head]
    lengths = sizes.norm(dim=1, keepdim=True).clamp_min(torch.finfo(sizes.dtype).tiny)
    normalised: Numbers = (sizes / lengths).detach().cpu().numpy().astype(np.float64)
    return normalised


def compute_output_gradients(
    encoder: Encoder, pieces: TextPieces | WordPieces, score: Callable[[torch.Tensor], torch.Tensor]
) -> tuple[list[torch.Tensor], tuple[torch.Tensor, ...]]:
    """Return the outputs of the heads, and the gradient of a score with respect to them.

    ``score`` is a function of the last states, [n, d_model]. Both results have one tensor per layer, [1, n, head,
    d_head].
    """
    tap, gradients = _backpropagate(encoder, score, pieces)
    return tap.outputs, gradients


def _backpropagate(
    encoder: Encoder, score_states: Callable[[torch.Tensor], torch.Tensor], pieces: TextPieces | WordPieces
) -> tuple[_DifferentiableTap, tuple[torch.Tensor, ...]]:
    """Return the tap of a pass over a text, and the gradient of the score with respect to the outputs of the heads."""
    states, tap = encoder.last_states(pieces, _DifferentiableTap)
    assert isinstance(tap, _DifferentiableTap)
    with torch.enable_grad():
        score = score_states(states[0])  # this may read another text, which takes the lock
        with cores.pass_lock:
            gradients = torch.autograd.grad(score, tap.outputs)
    return tap, gradients


def _evaluate_score(
    encoder: Encoder, question: Question, states: torch.Tensor, other: tuple[str, str] = ("", "")
) -> torch.Tensor:
    """Return the score computed from the last states, [n, d_model].

    ``other`` is the text that a cosine compares with, by default that of the question.
    """
    if question.kind == COSINE:
        texts = other if other[0] else (question.other, "")
        other_states = torch.as_tensor(encoder.states(*texts)).to(states)
        return torch.cosine_similarity(states.mean(0), other_states[0].mean(0), dim=0)
    logits = answers.compute_logits(answers.load_word_head(encoder), states[question.place][None])
    return logits[0].log_softmax(-1)[question.piece]


class _DifferentiableTap(RecordingTap):
    """A tap whose outputs receive gradients.

    An output is A V, so ∂s/∂A[i, j] is the product of the gradient at output i and value j.
    """

    differentiable = True
