"""Heads whose output is taken from another text: how much of the difference between two answers comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product

import numpy as np
import torch

from mha_viz.attention import AnyHead, Head, Weights
from mha_viz.attention.answers import Numbers, Patched, largest_estimate
from mha_viz.errors import ReadingFailed, SettingError, check_each
from mha_viz.models.intervening import ablation, gradients, other_texts, paths
from mha_viz.models.reading import answers
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.encoder_decoder import AnyModel, in_one_stack
from mha_viz.models.reading.tokenizer import TextPieces
from mha_viz.process.progress import OrBar, called, with_bar
from mha_viz.process.steps import ranges
from mha_viz.quotes import quoted
from mha_viz.request import TEXT
from mha_viz.text import WordPieces

AT_ONCE = 512  # tokens of all variants in one batch
SAME = 1e-6  # a smaller difference of two answers is rounding
ScoreOf = Callable[[torch.Tensor], torch.Tensor]  # of last states [variant, n, d_model]: [variant]


@with_bar("of the heads")
def activation_patching(
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
    progress: OrBar[float] = False,
) -> Patched:
    """Take each head's output from another text, one head at a time, while the model reads ``text``.

    What is measured is how much of the difference between the two answers comes back (activation patching; Vig et al.
    2020, Meng et al. 2022; with a difference of log-probabilities, as Zhang & Nanda 2024, section 3, recommend). The
    answer of a model that predicts words, at the masked token or next, is log p of ``word`` minus log p of ``foil``.
    Otherwise it is where its sentence vector, the mean of the last states, lies between those of the two texts: 0 at
    ``text``, 1 at ``other``. With ``similar_to``, it is the cosine of the vectors of the text that is read and of this
    one. The output of a head is that before W_O, at every token. Texts of equally many tokens are patched token by
    token; otherwise words by words, if there are equally many: a word in other pieces takes the mean over those of its
    counterpart. What comes back shows what a head carries here, not that no other head could: others may carry the
    same.

    With ``to`` and ``side``, the output of each earlier head is taken from ``other`` only on its way into that head
    (path patching; Wang et al. 2023, Goldowsky-Dill et al. 2023): it reaches it through the residual stream, norms and
    feed-forward parts, while all other heads keep their output on ``text``; everything after ``to`` is computed anew.
    These shares have no first-order estimate.

    Args:
        encoder: a model from :func:`mha_viz.load`, with one stack of layers.
        text: the text that the model reads; one with a pair cannot be patched.
        other: the text that outputs are taken from.
        word: by default the most probable one of ``text``.
        foil: by default the most probable word of ``other``.
        similar_to: a third text.
        to: a later head, at which paths end.
        side: of that head: "query", "key" or "value".
        exact: False takes one forward and one backward pass for all heads (attribution patching; Nanda 2023), and one
            more for the head with the largest estimate, whose share is exact: how far off its estimate is says how far
            the others may be trusted. Their ``shares`` are NaN.
        progress: True for a bar, or a function that is called with the share of the heads that is done, 0 to 1.

    Returns the share and the estimate of each head, [layer, head] (:class:`mha_viz.attention.answers.Patched`).

    Raises SettingError for the same text twice, for texts that cannot be aligned, where both texts have the same
    answer, and for a ``side`` that does not exist, a ``to`` without earlier layers or without ``exact``; ReadingFailed
    where a number is not finite; as :func:`mha_viz.models.reading.answers.question_about` for words; UnknownHead;
    ModelUnsupported for a path in a family whose queries and keys cannot be replaced; NeedsOneStack for an
    encoder–decoder; and the errors of ``encode``.

    >>> patched = mv.activation_patching(mv.load("toy"), "The girl smiles because [MASK] sings .",
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
    estimated = np.full((encoder.layers, encoder.heads), np.nan)
    if head is None:
        estimated = _estimated(encoder, read, theirs, score) / (after - before)
        patched = _alone(encoder, text, theirs, at_once, None if exact else largest_estimate(estimated))
    else:
        patched = paths.states(encoder, read, theirs, head, side, at_once)
    count = encoder.heads * (head.layer if head else encoder.layers) if exact else 1
    shares = (_scores(encoder, _report_each(patched, count, called(progress)), score) - before) / (after - before)
    return Patched(encoder.name, text, other, name, before, after, shares, estimated, head, side, encoder.revision)


def _report_each(
    patched: Iterator[tuple[list[Head], Weights]], count: int, progress: Callable[[float], None]
) -> Iterator[tuple[list[Head], Weights]]:
    """Yield what is patched, and report after each the share of the ``count`` heads that is done."""
    done = 0
    for heads, changed in patched:
        yield heads, changed
        done += len(heads)
        progress(done / count)


def _scores(encoder: Encoder, patched: Iterable[tuple[list[Head], Weights]], score: ScoreOf) -> Numbers:
    """Return [layer, head]: the score with each head that was ``patched``, from the last states [head, n, d_model]; NaN
    for the others."""
    scores = np.full((encoder.layers, encoder.heads), np.nan)
    for heads, changed in patched:
        scores[*zip(*heads, strict=True)] = _measured(encoder, score, changed)
    return scores


def _alone(
    encoder: Encoder, text: str, theirs: Weights, at_once: int, only: Head | None
) -> Iterator[tuple[list[Head], Weights]]:
    """Yield some heads of a layer, all in turn or ``only`` one, and for each of them the last states [head, n, d_model]
    with its output from the other text."""
    one = only and [(only.layer, range(only.head, only.head + 1))]
    by = ablation.substitute(encoder, TEXT, theirs)
    for layer, numbers in one or product(range(encoder.layers), ranges(0, encoder.heads, at_once)):
        changed = ablation.forked(encoder, layer, ablation.each_alone(numbers), by, text)
        yield [Head(layer, number) for number in numbers], changed.states


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
