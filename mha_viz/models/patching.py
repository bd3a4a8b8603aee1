"""Heads whose output is taken from another text: how much of the difference between two answers comes back."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from mha_viz.attention import Weights
from mha_viz.attention.answers import Numbers
from mha_viz.attention.patched import Patched
from mha_viz.errors import ModelUnsupported, ReadingFailed, SettingError, check_kind
from mha_viz.models import ablation, answers, gradients
from mha_viz.models.encoder import Encoder
from mha_viz.models.encoder_decoder import AnyModel, in_one_stack
from mha_viz.process.steps import ranges
from mha_viz.quotes import quoted
from mha_viz.text import TokenizedText

AT_ONCE = 512  # tokens of all variants in one batch
SAME = 1e-6  # a smaller difference of two answers is rounding
ScoreOf = Callable[[torch.Tensor], torch.Tensor]  # of last states [variant, n, d_model]: [variant]


def patch(encoder: AnyModel, text: str, other: str, *, word: str = "", foil: str = "") -> Patched:
    """Take each head's output from another text, one head at a time, while the model reads ``text``: how much of the
    difference between the two answers comes back (activation patching; Vig et al. 2020, Meng et al. 2022; with a
    difference of log-probabilities, as Zhang & Nanda 2024, section 3, recommend).

    The answer of a model that predicts words, at the masked token or next, is log p of ``word`` minus log p of
    ``foil``: by default the most probable word of ``text`` and that of ``other``. Otherwise it is where its sentence
    vector, the mean of the last states, lies between those of the two texts: 0 at ``text``, 1 at ``other``. The output
    of a head is that before W_O, at every token. Texts of equally many tokens are patched token by token; otherwise
    words by words, if there are equally many: a word in other pieces takes the mean over those of its counterpart.

    What comes back shows what a head carries here, not that no other head could: others may carry the same.

    Raises SettingError for the same text twice, for texts that cannot be aligned, and where both texts have the same
    answer; ReadingFailed where it is not finite; as :func:`mha_viz.models.answers.question_about` for words;
    NeedsOneStack for an encoder–decoder; and the errors of ``encode``.

    >>> patched = mv.patch(mv.load("toy"), "The girl saw the dog because [MASK] slept .",
    ...     "The boy saw the dog because [MASK] slept .")
    >>> patched.table()["share"].nlargest(3)
    """
    encoder = in_one_stack(encoder)
    for each in (text, other):
        check_kind(each, str, "a text", "Give the sentence as text.")
    if text.split() == other.split():
        raise SettingError("Both texts are the same.", "Change a word in one of them.")
    read = encoder.pieces(text)
    taken = _aligned(encoder, text, other)
    score, name = _score(encoder, text, other, word, foil)
    before, after = ends = [float(_measured(encoder, score, encoder.states(each))[0]) for each in (text, other)]
    if not np.isfinite(ends).all():
        raise ReadingFailed(f"{name} is not a finite number.", "Choose other texts, or another model.")
    if abs(after - before) < SAME:
        raise SettingError(f"Both texts have the same answer: {name}.", "Choose texts with different answers.")
    shares = np.zeros((encoder.layers, encoder.heads))
    for layer in range(encoder.layers):
        for heads in ranges(0, encoder.heads, max(1, AT_ONCE // len(read.ids))):
            variants = ablation.each_alone(list(heads))
            states = ablation.forked(encoder, layer, variants, ablation.given(taken), text).states
            shares[layer, heads] = _measured(encoder, score, states)
    outputs, slopes = gradients.outputs_and_slopes(encoder, read, lambda states: score(states[None])[0])
    estimated = [
        ((theirs - mine) * slope)[0].sum((0, 2)) for theirs, mine, slope in zip(taken, outputs, slopes, strict=True)
    ]
    change = after - before
    first_order: Numbers = torch.stack(estimated).detach().double().cpu().numpy() / change
    return Patched(encoder.name, text, other, name, before, after, (shares - before) / change, first_order)


def _measured(encoder: Encoder, score: ScoreOf, states: Weights) -> Numbers:
    """[variant]: the score of last states [variant, n, d_model]."""
    with torch.inference_mode():
        measured: Numbers = score(torch.tensor(states, device=encoder.device)).double().cpu().numpy()
    return measured


def _aligned(encoder: Encoder, text: str, other: str) -> list[torch.Tensor]:
    """The outputs of every layer's heads on ``other``, [1, n, head, d_head], at the tokens of ``text``."""
    mine, theirs = encoder.pieces(text).tokenized(), encoder.pieces(other).tokenized()
    at = torch.from_numpy(_alignment(mine, theirs))
    return [torch.einsum("nm,bmhd->bnhd", at.to(output), output) for output in ablation.outputs(encoder, other)]


def _alignment(mine: TokenizedText, theirs: TokenizedText) -> Numbers:
    """[token of the first text, token of the second]: rows sum to 1. Raises SettingError."""
    if len(mine) == len(theirs):
        return np.eye(len(mine))
    groups = mine.groups, theirs.groups
    kinds = [
        [text.tokens[group[0]].special for group in each] for text, each in zip((mine, theirs), groups, strict=True)
    ]
    if kinds[0] != kinds[1]:
        raise SettingError(
            f"The texts have {len(mine)} and {len(theirs)} tokens, and {len(groups[0])} and {len(groups[1])} words.",
            "Replace words in one of them, so that both have equally many words.",
        )
    aligned = np.zeros((len(mine), len(theirs)))
    for pieces, others in zip(*groups, strict=True):
        if len(pieces) == len(others):
            aligned[pieces, others] = 1
        else:
            aligned[np.ix_(pieces, others)] = 1 / len(others)
    return aligned


def _predicts(encoder: Encoder, text: str) -> bool:
    """Whether the model has a word to predict in a text, and weights for words."""
    if not encoder.causal and encoder.mask not in encoder.pieces(text).ids:
        return False
    try:
        answers.word_head(encoder)
    except ModelUnsupported:
        return False
    return True


def _score(encoder: Encoder, text: str, other: str, word: str, foil: str) -> tuple[ScoreOf, str]:
    """The answer as a function of the last states, and in words."""
    if not (word or foil or _predicts(encoder, text)):
        first, second = (torch.as_tensor(encoder.states(each))[0].double().mean(0) for each in (text, other))
        line = second - first
        length = line.square().sum().clamp_min(torch.finfo(torch.float64).tiny)
        return (
            lambda states: (states.double().mean(1) - first.to(states.device)) @ line.to(states.device) / length,
            "where the sentence vector lies between those of the two texts",
        )
    question, of_other = (
        answers.question_about(encoder, each, word=named) for each, named in ((text, word), (other, foil))
    )
    if question.place != of_other.place:
        raise SettingError(
            f"The word to predict is token {question.place} in one text and token {of_other.place} in the other.",
            "Put the masked token in the same place.",
        )
    if question.piece == of_other.piece:
        raise SettingError(
            f"Both texts are answered with {quoted(question.word)}.", "Say which words to compare (word=, foil=)."
        )

    def score(states: torch.Tensor) -> torch.Tensor:
        logits = answers.logits_of(answers.word_head(encoder), states[:, question.place])
        return logits[:, question.piece] - logits[:, of_other.piece]

    return score, f"log p of “{question.word}” minus log p of “{of_other.word}”"
