"""Heads whose output is taken from another text: how much of the difference between two answers comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import product

import numpy as np
import torch

from mha_viz.attention import AnyHead, Head, Weights
from mha_viz.attention.answers import Numbers, Patched, largest_estimate
from mha_viz.errors import ReadingFailed, SettingError, check_each
from mha_viz.models import ablation, answers, gradients, other_texts, paths
from mha_viz.models.encoder import Encoder
from mha_viz.models.encoder_decoder import AnyModel, in_one_stack
from mha_viz.models.tokenizer import TextPieces
from mha_viz.process.steps import ranges
from mha_viz.quotes import quoted
from mha_viz.request import TEXT
from mha_viz.text import WordPieces

AT_ONCE = 512  # tokens of all variants in one batch
SAME = 1e-6  # a smaller difference of two answers is rounding
ScoreOf = Callable[[torch.Tensor], torch.Tensor]  # of last states [variant, n, d_model]: [variant]


def patch(
    encoder: AnyModel,
    text: str,
    other: str,
    *,
    word: str = "",
    foil: str = "",
    similar_to: str = "",
    to: AnyHead = "",
    side: str = "",
    exact: bool = True,
) -> Patched:
    """Take each head's output from another text, one head at a time, while the model reads ``text``: how much of the
    difference between the two answers comes back (activation patching; Vig et al. 2020, Meng et al. 2022; with a
    difference of log-probabilities, as Zhang & Nanda 2024, section 3, recommend).

    The answer of a model that predicts words, at the masked token or next, is log p of ``word`` minus log p of
    ``foil``: by default the most probable word of ``text`` and that of ``other``. Otherwise it is where its sentence
    vector, the mean of the last states, lies between those of the two texts: 0 at ``text``, 1 at ``other``. With
    ``similar_to``, a third text, it is the cosine of the vectors of the text that is read and of this one. The output
    of a head is that before W_O, at every token. Texts of equally many tokens are patched token by token; otherwise
    words by words, if there are equally many: a word in other pieces takes the mean over those of its counterpart.

    With ``to``, a later head, and ``side``, one of SIDES, the output of each earlier head is taken from ``other`` only
    on its way to the "query", "key" or "value" of that head (path patching; Wang et al. 2023, Goldowsky-Dill et al.
    2023): it reaches it through the residual stream, norms and feed-forward parts, while all other heads keep their
    output on ``text``; everything after ``to`` is computed anew. These shares have no first-order estimate.

    ``exact=False`` takes one forward and one backward pass for all heads (attribution patching; Nanda 2023), and one
    more for the head with the largest estimate, whose share is exact: how far off its estimate is says how far the
    others may be trusted. Their ``shares`` are NaN. A text with a ``pair`` cannot be patched.

    What comes back shows what a head carries here, not that no other head could: others may carry the same.

    Raises SettingError for the same text twice, for texts that cannot be aligned, where both texts have the same
    answer, and for a ``side`` that does not exist, a ``to`` without earlier layers or without ``exact``; ReadingFailed
    where a number is not finite; as :func:`mha_viz.models.answers.question_about` for words; UnknownHead;
    ModelUnsupported for a path in a family whose queries and keys cannot be replaced; NeedsOneStack for an
    encoder–decoder; and the errors of ``encode``.

    >>> patched = mv.patch(mv.load("toy"), "The girl smiles because [MASK] sings .",
    ...     "The boy smiles because [MASK] sings .")
    >>> patched.table()["share"].nlargest(3)
    """
    encoder = in_one_stack(encoder)
    check_each((text, other, similar_to), str, "a text", "Give the sentence as text.")
    if text.split() == other.split():
        raise SettingError("Both texts are the same.", "Change a word in one of them.")
    head = paths.ending(encoder, to, side, exact)
    read = encoder.pieces(text)
    theirs = other_texts.of_text(encoder, read, other)
    states = ablation.whole(encoder, text).states, encoder.states(other)[0]
    score, of_other, name = _score(encoder, text, other, word, foil, similar_to, states)
    ends = zip((score, of_other), states, strict=True)
    before, after = (float(_measured(encoder, by, each[None])[0]) for by, each in ends)
    if not np.isfinite([before, after, theirs.sum()]).all():
        raise ReadingFailed(f"{name} is not a finite number.", "Choose other texts, or another model.")
    if abs(after - before) < SAME:
        raise SettingError(f"Both texts have the same answer: {name}.", "Choose texts with different answers.")
    at_once = max(1, AT_ONCE // len(read.ids))

    def share(changed: Weights) -> Numbers:
        shares: Numbers = (_measured(encoder, score, changed) - before) / (after - before)
        return shares

    of = (encoder.name, text, other, name, before, after)
    if head is not None:
        along = paths.states(encoder, read, theirs, head, side, at_once)
        return Patched(*of, *_along_paths(encoder, along, share), head, side, encoder.revision)
    estimated: Numbers = _estimated(encoder, read, theirs, score) / (after - before)
    batches = _batches(encoder, at_once, None if exact else largest_estimate(estimated))
    return Patched(*of, _each_alone(encoder, text, theirs, batches, share), estimated, revision=encoder.revision)


def _batches(encoder: Encoder, at_once: int, head: Head | None) -> Iterable[tuple[int, range]]:
    """The heads to take alone, all or one: a layer and some of its heads at a time."""
    if head is not None:
        return [(head.layer, range(head.head, head.head + 1))]
    return product(range(encoder.layers), ranges(0, encoder.heads, at_once))


def _along_paths(
    encoder: Encoder, along: Iterable[tuple[Sequence[Head], Weights]], share: Callable[[Weights], Numbers]
) -> tuple[Numbers, Numbers]:
    """[layer, head], twice: the shares of the heads whose paths end at a later one, and no estimates."""
    shares = np.full((encoder.layers, encoder.heads), np.nan)
    for heads, changed in along:
        shares[*zip(*heads, strict=True)] = share(changed)
    return shares, np.full_like(shares, np.nan)


def _each_alone(
    encoder: Encoder,
    text: str,
    theirs: Weights,
    batches: Iterable[tuple[int, range]],
    share: Callable[[Weights], Numbers],
) -> Numbers:
    """[layer, head]: the share with each head alone from the other text; NaN for heads that are in no batch."""
    shares = np.full((encoder.layers, encoder.heads), np.nan)
    by = ablation.substitute(encoder, TEXT, theirs)
    for layer, heads in batches:
        shares[layer, heads] = share(ablation.forked(encoder, layer, ablation.each_alone(heads), by, text).states)
    return shares


def _estimated(encoder: Encoder, read: TextPieces | WordPieces, theirs: Weights, score: ScoreOf) -> Numbers:
    """[layer, head]: to first order, how much the score changes with each head's output on the other text."""
    outputs, slopes = gradients.outputs_and_slopes(encoder, read, lambda states: score(states[None])[0])
    moved = torch.from_numpy(theirs).to(outputs[0]) - torch.cat(outputs)
    changes: Numbers = (moved * torch.cat(slopes)).sum((1, 3)).detach().double().cpu().numpy()
    return changes


def _measured(encoder: Encoder, score: ScoreOf, states: Weights) -> Numbers:
    """[variant]: the score of last states [variant, n, d_model]."""
    with torch.inference_mode():
        measured: Numbers = score(torch.tensor(states, device=encoder.device)).double().cpu().numpy()
    return measured


def _similarity(encoder: Encoder, text: str) -> tuple[ScoreOf, ScoreOf, str]:
    """As :func:`_score`, for the cosine with the sentence vector of a text."""
    vector = torch.tensor(encoder.states(text)[0]).double().mean(0)

    def alike(states: torch.Tensor) -> torch.Tensor:
        return torch.cosine_similarity(states.double().mean(1), vector.to(states.device), dim=-1)

    return alike, alike, f"the cosine with {quoted(text)}"


def _score(
    encoder: Encoder, text: str, other: str, word: str, foil: str, similar_to: str, states: tuple[Weights, Weights]
) -> tuple[ScoreOf, ScoreOf, str]:
    """The answer as a function of the last states of each text, and in words; ``states``: of both, [n, d_model]."""
    if similar_to:
        if word or foil:
            raise SettingError("Both words and a text to compare with were given.", "Leave one of them out.")
        return _similarity(encoder, similar_to)
    if not (word or foil or answers.predicts(encoder, text)):
        first, second = (torch.tensor(each).double().mean(0) for each in states)
        line = second - first
        length = line.square().sum().clamp_min(torch.finfo(torch.float64).tiny)

        def along(states: torch.Tensor) -> torch.Tensor:
            return (states.double().mean(1) - first.to(states.device)) @ line.to(states.device) / length

        return along, along, "where the sentence vector lies between those of the two texts"
    question, of_other = (
        answers.question_about(encoder, each, word=named) for each, named in ((text, word), (other, foil))
    )
    aligned = other_texts.alignment(*(encoder.pieces(each).tokenized() for each in (text, other)))
    if not aligned[question.place, of_other.place]:
        raise SettingError(
            f"The word to predict is token {question.place} in one text and token {of_other.place}, another word, in "
            "the other.",
            "Put the masked token in the place of the same word.",
        )
    if question.piece == of_other.piece:
        raise SettingError(
            f"The words to compare are both {quoted(question.word)}: by default, each text’s most probable one.",
            "Name two different ones (word= and foil=, --word and --foil).",
        )

    def score(place: int, states: torch.Tensor) -> torch.Tensor:
        logits = answers.logits_of(answers.word_head(encoder), states[:, place])
        return logits[:, question.piece] - logits[:, of_other.piece]

    here, there = (partial(score, each.place) for each in (question, of_other))
    return here, there, f"log p of “{question.word}” minus log p of “{of_other.word}”"
