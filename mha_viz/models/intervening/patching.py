"""Take the outputs of heads from another text; measure how much of the difference between two answers comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product

import numpy as np
import torch

from mha_viz.attention import AnyHead, Head, Weights
from mha_viz.attention.answers import Numbers, PatchResult, find_largest_estimate
from mha_viz.errors import ReadingFailed, SettingError, check_items
from mha_viz.models.intervening import ablation, gradients, other_texts, paths
from mha_viz.models.reading import answers
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.encoder_decoder import AnyModel, require_one_stack
from mha_viz.models.reading.tokenizer import TextPieces
from mha_viz.process.progress import ProgressOption, as_callback, with_bar
from mha_viz.process.steps import split_range
from mha_viz.quotes import quote
from mha_viz.request import TEXT
from mha_viz.text import WordPieces

MAX_BATCH_TOKENS = 512  # maximum number of tokens in a batch, over all variants
ROUNDING_ERROR = 1e-6  # smaller differences between two answers are rounding errors
ScoreFunction = Callable[[torch.Tensor], torch.Tensor]  # from last states [variant, n, d_model] to scores [variant]


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
    progress: ProgressOption[float] = False,
) -> PatchResult:
    """Take each head's output from another text, one head at a time, while the model reads ``text``.

    Measures how much of the difference between the two answers comes back (activation patching; Vig et al. 2020, Meng
    et al. 2022; with a difference of log-probabilities, as Zhang & Nanda 2024, section 3, recommend). The answer of a
    model that predicts words, at the masked token or next, is log p of ``word`` minus log p of ``foil``. For other
    models, it is the position of the sentence vector, the mean of the last states, between the vectors of the two
    texts: 0 at ``text``, 1 at ``other``. With ``similar_to``, it is the cosine between the vector of the text and that
    of ``similar_to``.

    A head's output is taken before W_O, at every token. Texts with equally many tokens are patched token by token.
    Otherwise they are patched word by word, if they have equally many words; a word that is split differently takes the
    mean over the tokens of its counterpart. The result shows what a head carries here, not that no other head could:
    others may carry the same.

    With ``to`` and ``side``, the output of each earlier head is taken from ``other`` only on its way into that head
    (path patching; Wang et al. 2023, Goldowsky-Dill et al. 2023). It reaches that head through the residual stream,
    norms and feed-forward parts, while all other heads keep their outputs on ``text``; everything after ``to`` is
    computed anew. These shares have no first-order estimate.

    Args:
        encoder: a model from :func:`mha_viz.load`, with one stack of layers.
        text: the text that the model reads, without a pair.
        other: the text that outputs are taken from.
        word: by default the most probable word of ``text``.
        foil: by default the most probable word of ``other``.
        similar_to: a third text.
        to: a later head, at which paths end.
        side: the side of that head at which paths end: "query", "key" or "value".
        exact: False takes one forward and one backward pass for all heads (attribution patching; Nanda 2023), and one
            more for the head with the largest estimate. The share of that head is exact, and the error of its estimate
            shows how far the others may be trusted. The ``shares`` of the others are NaN.
        progress: True for a bar, or a function that is called with the fraction of heads that are done, 0 to 1.

    Returns the share and the estimate of each head, [layer, head] (:class:`mha_viz.attention.answers.PatchResult`).

    Raises SettingError if the texts are the same, cannot be aligned or have the same answer, for a ``side`` that does
    not exist, and for a ``to`` without earlier layers or without ``exact``. Raises ReadingFailed if a number is not
    finite, UnknownHead, ModelUnsupported for a path in a family whose queries and keys cannot be replaced,
    NeedsOneStack for an encoder–decoder, the errors of :func:`mha_viz.models.reading.answers.make_question` for words,
    and the errors of ``encode``.

    >>> patched = mv.activation_patching(mv.load("toy"), "The girl smiles because [MASK] sings .",
    ...     "The boy smiles because [MASK] sings .")
    >>> patched.table()["share"].nlargest(3)
    """
    encoder = require_one_stack(encoder)
    check_items((text, other, similar_to), str, "a text", "Give the sentence as text.")
    if text.split() == other.split():
        raise SettingError("Both texts are the same.", "Change a word in one of them.")
    head = paths.check_path_end(encoder, to, side, exact)
    pieces = encoder.pieces(text)
    other_outputs = other_texts.compute_outputs_on_text(encoder, pieces, other)
    states = ablation.run_full_pass(encoder, text).states, encoder.states(other)[0]
    score, other_score, label = _make_scores(encoder, text, other, word, foil, similar_to, states)
    scores_and_states = zip((score, other_score), states, strict=True)
    before, after = (
        float(_evaluate(encoder, text_score, text_states[None])[0]) for text_score, text_states in scores_and_states
    )
    if not np.isfinite([before, after, other_outputs.sum()]).all():
        raise ReadingFailed(f"{label} is not a finite number.", "Choose other texts, or another model.")
    if abs(after - before) < ROUNDING_ERROR:
        raise SettingError(f"Both texts have the same answer: {label}.", "Choose texts with different answers.")
    batch_size = max(1, MAX_BATCH_TOKENS // len(pieces.ids))
    estimates = np.full((encoder.layers, encoder.heads), np.nan)
    if head is None:
        estimates = _estimate_changes(encoder, pieces, other_outputs, score) / (after - before)
        passes = _patch_one_by_one(
            encoder, text, other_outputs, batch_size, None if exact else find_largest_estimate(estimates)
        )
    else:
        passes = paths.patch_paths(encoder, pieces, other_outputs, head, side, batch_size)
    count = encoder.heads * (head.layer if head else encoder.layers) if exact else 1
    shares = (_score_heads(encoder, _report_progress(passes, count, as_callback(progress)), score) - before) / (
        after - before
    )
    return PatchResult(encoder.name, text, other, label, before, after, shares, estimates, head, side, encoder.revision)


def _report_progress(
    passes: Iterator[tuple[list[Head], Weights]], count: int, progress: Callable[[float], None]
) -> Iterator[tuple[list[Head], Weights]]:
    """Yield the passes unchanged, and report after each the fraction of the ``count`` heads that are done."""
    done = 0
    for heads, states in passes:
        yield heads, states
        done += len(heads)
        progress(done / count)


def _score_heads(encoder: Encoder, passes: Iterable[tuple[list[Head], Weights]], score: ScoreFunction) -> Numbers:
    """Return the score with each head that was patched, [layer, head]; NaN for the others.

    ``passes`` yields heads with their last states, [head, n, d_model].
    """
    scores = np.full((encoder.layers, encoder.heads), np.nan)
    for heads, states in passes:
        scores[*zip(*heads, strict=True)] = _evaluate(encoder, score, states)
    return scores


def _patch_one_by_one(
    encoder: Encoder, text: str, other_outputs: Weights, batch_size: int, only_head: Head | None
) -> Iterator[tuple[list[Head], Weights]]:
    """Yield heads of a layer with the last states, [head, n, d_model], that result when each head is patched.

    A patched head has its output from the other text. All heads are patched in turn, or ``only_head`` alone.
    """
    only_range = only_head and [(only_head.layer, range(only_head.head, only_head.head + 1))]
    substitute = ablation.make_substitute(encoder, TEXT, other_outputs)
    for layer, numbers in only_range or product(range(encoder.layers), split_range(0, encoder.heads, batch_size)):
        forked_pass = ablation.run_forked_pass(encoder, layer, ablation.ablate_one_by_one(numbers), substitute, text)
        yield [Head(layer, number) for number in numbers], forked_pass.states


def _estimate_changes(
    encoder: Encoder, pieces: TextPieces | WordPieces, other_outputs: Weights, score: ScoreFunction
) -> Numbers:
    """Return the first-order estimate of how much the score changes with each head's output on the other text, [layer,
    head].
    """
    outputs, output_gradients = gradients.compute_output_gradients(
        encoder, pieces, lambda states: score(states[None])[0]
    )
    differences = torch.from_numpy(other_outputs).to(outputs[0]) - torch.cat(outputs)
    changes: Numbers = (differences * torch.cat(output_gradients)).sum((1, 3)).detach().double().cpu().numpy()
    return changes


def _evaluate(encoder: Encoder, score: ScoreFunction, states: Weights) -> Numbers:
    """Return the score of each of the last states, [variant, n, d_model]: [variant]."""
    with torch.inference_mode():
        scores: Numbers = score(torch.tensor(states, device=encoder.device)).double().cpu().numpy()
    return scores


def _make_similarity_score(encoder: Encoder, text: str) -> tuple[ScoreFunction, ScoreFunction, str]:
    """Build the score and description of :func:`_make_scores` for the cosine with the sentence vector of a text."""
    vector = torch.tensor(encoder.states(text)[0]).double().mean(0)

    def compute_cosines(states: torch.Tensor) -> torch.Tensor:
        return torch.cosine_similarity(states.double().mean(1), vector.to(states.device), dim=-1)

    return compute_cosines, compute_cosines, f"the cosine with {quote(text)}"


def _make_scores(
    encoder: Encoder, text: str, other: str, word: str, foil: str, similar_to: str, states: tuple[Weights, Weights]
) -> tuple[ScoreFunction, ScoreFunction, str]:
    """Return, for each text, a function from its last states to the answer, and the answer's description.

    ``states`` holds the last states of both texts, [n, d_model].
    """
    if similar_to:
        if word or foil:
            raise SettingError("Both words and a text to compare with were given.", "Leave one of them out.")
        return _make_similarity_score(encoder, similar_to)
    if not (word or foil or answers.can_predict(encoder, text)):
        first_vector, second_vector = (torch.tensor(item).double().mean(0) for item in states)
        direction = second_vector - first_vector
        squared_length = direction.square().sum().clamp_min(torch.finfo(torch.float64).tiny)

        def project(states: torch.Tensor) -> torch.Tensor:
            return (
                (states.double().mean(1) - first_vector.to(states.device))
                @ direction.to(states.device)
                / squared_length
            )

        return project, project, "where the sentence vector lies between those of the two texts"
    question, other_question = (
        answers.make_question(encoder, item, word=answer_word) for item, answer_word in ((text, word), (other, foil))
    )
    alignment = other_texts.align_texts(*(encoder.pieces(item).tokenized() for item in (text, other)))
    if not alignment[question.place, other_question.place]:
        raise SettingError(
            f"The word to predict is token {question.place} in one text and token {other_question.place}, another "
            "word, in the other.",
            "Put the masked token in the place of the same word.",
        )
    if question.piece == other_question.piece:
        raise SettingError(
            f"The words to compare are both {quote(question.word)}: by default, each text’s most probable one.",
            "Name two different ones (word= and foil=, --word and --foil).",
        )

    def score(place: int, states: torch.Tensor) -> torch.Tensor:
        logits = answers.compute_logits(answers.load_word_head(encoder), states[:, place])
        return logits[:, question.piece] - logits[:, other_question.piece]

    score_text, score_other = (partial(score, item.place) for item in (question, other_question))
    return score_text, score_other, f"log p of “{question.word}” minus log p of “{other_question.word}”"
