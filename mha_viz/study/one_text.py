"""Measure how the heads of a model affect its answer to one text; for notebooks.

These functions build the question from their arguments, and choose how heads are switched off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypedDict, Unpack

import numpy as np

from mha_viz.analysis.bundled_data import predict_attention
from mha_viz.analysis.effects import Effects
from mha_viz.analysis.recipe_tables import Recipes
from mha_viz.analysis.removal import MAX_ABLATED_HEADS, AblationSet
from mha_viz.attention import AnyHead, Attention, Weights
from mha_viz.attention.answers import Answer, HeadValues, Numbers
from mha_viz.errors import SettingError, check_kind
from mha_viz.models.decomposing import contributions
from mha_viz.models.intervening import ablation, gradients
from mha_viz.models.reading import answers
from mha_viz.models.reading.capture import Tap
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.encoder_decoder import AnyModel, require_one_stack
from mha_viz.process.progress import ProgressOption, as_callback, with_bar
from mha_viz.request import BOTH, METHODS, RECIPE, RESAMPLE, TEXT, Question, Request
from mha_viz.study import effects
from mha_viz.study.effects import MakeSubstitute, check_method, substitute

__all__ = [
    "RequestFields",
    "ablate",
    "ablation_effects",
    "build_question",
    "direct_logit_attribution",
    "gradient_importance",
    "minimal_ablation",
    "predict",
]


class RequestFields(TypedDict, total=False):
    """The fields of a :class:`mha_viz.Request` that define the question about a text, and how heads are switched off.

    Attributes:
        place: the index from 0, among all tokens, of the masked token that is asked about; −1 for the first masked
            token. Needed only if several tokens are masked.
        word: the word whose log-probability is the score, by default the most probable one.
        other: a second text; the question is then the cosine of both texts.
        off_in: with ``other``, the text in which heads are off: "both", "first" or "second". For
            ``gradient_importance``, the text over whose tokens the mean is taken.
        method: the replacement for the output of heads that are off: zero, mean, uniform, recipe, resample or text.
        source: for the method "text", the text whose head outputs replace those of heads that are off.
    """

    place: int | None
    word: str
    other: str
    off_in: str
    method: str
    source: str


def ablate(
    encoder: AnyModel,
    heads: Iterable[AnyHead],
    text: str,
    pair: str = "",
    method: str = "zero",
    means: Weights | None = None,
    words: Sequence[str] = (),
    *,
    source: str = "",
    recipes: Recipes | None = None,
) -> Attention:
    """Switch heads off, all at once, and return the attention of every head.

    The weights of heads that are off are still computed, but have no effect.

    Args:
        encoder: a model from :func:`mha_viz.load`, with one stack of layers.
        heads: the heads to switch off, such as "L3H1".
        text: the text that the model reads.
        pair: a second text, read together with the first.
        method: the replacement for the outputs of the heads: zero, mean, uniform, recipe, resample (their outputs on
            randomly drawn built-in sentences) or text.
        means: for "mean", the mean outputs over a corpus, [layer, head, d_k] (``compute_means``); for "recipe", the
            predicted weights, [layer, head, query, key], in place of ``recipes``.
        words: the sentence as words, in place of ``text``.
        source: for "text", the text whose head outputs replace those of the heads.
        recipes: for "recipe", the recipes that predict the weights, from ``mv.recipes.fit`` or ``mv.recipes.load``; by
            default those in a folder that MHA_VIZ_PROFILES names, or that come with the app.

    Raises the errors of ``encode``, UnknownHead, and SettingError for a method that is unknown or needs data that this
    model lacks.

    >>> mv.ablate(mv.load("toy"), ["L0H1"], "the dog barks .", method="recipe").made  # the steps of the reading
    ('typed', 'without L0H1: recipe')
    """
    if recipes is not None and (method != RECIPE or means is not None):
        raise SettingError("recipes= goes with the method “recipe”, without means=.", "Leave one of them out.")
    encoder = require_one_stack(encoder)
    if method == RECIPE and means is None:
        means = predict_attention(encoder.encode_words(words) if words else encoder.encode(text, pair), recipes)
    return ablation.encode_without(encoder, heads, text, pair, method, means, words, source=source)


@with_bar("of the heads")
def ablation_effects(
    encoder: AnyModel,
    text: str,
    pair: str = "",
    *,
    means: Weights | None = None,
    sentences: Sequence[Sequence[str]] = (),
    recipes: Recipes | None = None,
    progress: ProgressOption[float] = False,
    **fields: Unpack[RequestFields],
) -> Effects:
    """Measure the effect of switching off each head alone on one text.

    Args:
        encoder: a model from :func:`mha_viz.load`, with one stack of layers.
        text: the text that the model reads. Without a question in ``fields``, the question is the masked token or, for
            a causal model, the next word.
        pair: a second text, read together with the first.
        means: for the method "mean", the mean outputs, [layer, head, d_k].
        sentences: for "resample", the sentences to draw from, as lists of words; by default the built-in sentences.
        recipes: for "recipe", as for :func:`mha_viz.ablate`.
        progress: True for a bar, or a function that is called with the completed fraction, 0 to 1.
        **fields: the question and how heads are off (:class:`RequestFields`).

    Returns the effects on the sentence vector, on each token, on later heads and, where the model has an answer to
    give, on the answer (:class:`mha_viz.analysis.effects.Effects`). Raises the errors of
    :func:`mha_viz.models.reading.answers.make_question` and :func:`mha_viz.ablate`.

    >>> effects = mv.ablation_effects(mv.load("toy"), "The girl smiles because [MASK] sings .", word="she")
    >>> effects.table()["rank"].idxmin()  # the head without which the answer changes most
    'L1H0'
    """
    encoder = require_one_stack(encoder)
    request = Request(text=text, pair=pair, **fields)
    make_substitute = _bind_substitute(encoder, request, means, sentences, recipes)
    has_question = (request.place, request.word, request.other, request.off_in) != (None, "", "", BOTH)
    if has_question or answers.can_predict(encoder, text, pair):
        request = request.with_question(build_question(encoder, request))
    return effects.measure_effects(encoder, request, as_callback(progress), make_substitute)


def predict(
    encoder: AnyModel,
    text: str,
    heads: Iterable[AnyHead] = (),
    pair: str = "",
    *,
    tap: Callable[[Any], Tap] | None = None,
    means: Weights | None = None,
    sentences: Sequence[Sequence[str]] = (),
    recipes: Recipes | None = None,
    **fields: Unpack[RequestFields],
) -> Answer:
    """Ask the model about a text, before and after heads are switched off together.

    Args:
        encoder: a model from :func:`mha_viz.load`, with one stack of layers.
        text: the text that the model reads.
        heads: the heads to switch off; if there are none, the whole model answers.
        pair: a second text, read together with the first.
        tap: your own intervention in place of ``heads``: a subclass of :class:`mha_viz.Tap`, or a function that returns
            a tap that writes the weights into the tensor given to it; with ``other``, it is applied to the texts that
            ``off_in`` names.
        means: as for :func:`mha_viz.ablation_effects`.
        sentences: as for :func:`mha_viz.ablation_effects`.
        recipes: as for :func:`mha_viz.ablation_effects`.
        **fields: as for :func:`mha_viz.ablation_effects`.

    Returns the answer before and after (:class:`mha_viz.attention.answers.Answer`). Raises the errors of
    :func:`mha_viz.models.reading.answers.make_question` and :func:`mha_viz.ablate`, and SettingError for heads and a
    tap at once.

    >>> text, other = "The girl smiles because [MASK] sings .", "The boy smiles because [MASK] sings ."
    >>> mv.predict(mv.load("toy"), text, ["L1H1"], method="text", source=other).best  # before and after
    ('she', 'he')
    """
    encoder = require_one_stack(encoder)
    request = Request(text=text, pair=pair, **fields)
    make_substitute = _bind_substitute(encoder, request, means, sentences, recipes)
    question = build_question(encoder, request)
    request = request.with_question(question)
    if tap is None:
        return effects.compute_answer(
            encoder, replace(request, off=ablation.check_heads(encoder, heads)), make_substitute
        )
    check_kind(tap, Callable, "a tap", "Give a subclass of mha_viz.Tap.")
    if ablation.check_heads(encoder, heads):
        raise SettingError("Heads and a tap were given.", "Switch the heads off in the tap, or leave one of them out.")
    taps = [tap if question.is_off_in(pass_index) else Tap for pass_index in range(len(request.passes))]
    states = [  # for each text, the states of its tokens before and after, along the first axis
        np.concatenate([encoder.states(*texts), encoder.states(*texts, pass_tap)])
        for texts, pass_tap in zip(request.passes, taps, strict=True)
    ]
    return effects.compare_answers(encoder, question, states)


def gradient_importance(encoder: AnyModel, text: str, pair: str = "", **fields: Unpack[RequestFields]) -> HeadValues:
    """Measure how much the score of an answer depends on each head's output, to first order.

    This is |o_h · ∂s/∂o_h|, where o_h is the head's output and s the score; it is the mean over tokens, normalised
    within each layer (:func:`mha_viz.models.intervening.gradients.compute_importance`). ``fields``: the question
    (:class:`RequestFields`); no head is off. Raises the errors of :func:`mha_viz.models.reading.answers.make_question`.

    >>> text = "The girl smiles because [MASK] sings ."
    >>> mv.gradient_importance(mv.load("toy"), text).table()["importance"].idxmax()
    'L1H0'
    """
    return _measure_heads(gradients.compute_importance, "importance", encoder, text, pair, fields)


def direct_logit_attribution(
    encoder: AnyModel, text: str, pair: str = "", **fields: Unpack[RequestFields]
) -> HeadValues:
    """Measure what each head adds to the logit of a word directly, through the residual stream alone.

    See :func:`mha_viz.models.decomposing.contributions.direct_contributions`. ``fields``: the question
    (:class:`RequestFields`); no head is off. Raises ModelUnsupported, such as for BERT, unless the model is pre-norm
    and has an unembedding, and the errors of :func:`mha_viz.models.reading.answers.make_question`.

    >>> mv.direct_logit_attribution(mv.load("repeater"), "dog river anna dog river").table()["direct"].idxmax()[:2]
    'L1'
    """
    return _measure_heads(contributions.direct_contributions, "direct", encoder, text, pair, fields)


@with_bar("of the heads")
def minimal_ablation(
    encoder: AnyModel,
    text: str,
    word: str,
    pair: str = "",
    *,
    place: int | None = None,
    most: int = MAX_ABLATED_HEADS,
    method: str = METHODS[0],
    means: Weights | None = None,
    source: str = "",
    sentences: Sequence[Sequence[str]] = (),
    recipes: Recipes | None = None,
    progress: ProgressOption[float] = False,
) -> AblationSet:
    """Greedily find a small set of heads that, switched off together, make ``word`` the answer.

    A smaller set may exist.

    Args:
        encoder: a model from :func:`mha_viz.load`, with one stack of layers.
        text: the text that the model reads.
        word: the word that must become the answer.
        pair: a second text, read together with the first.
        place: the index from 0, among all tokens, of the masked token that is asked about, if several are masked;
            −1 for the first.
        most: the maximum number of heads in the set.
        method: the replacement for the outputs of heads that are off, as for :func:`mha_viz.ablate`.
        means: as for :func:`mha_viz.ablation_effects`.
        source: as for :func:`mha_viz.ablate`.
        sentences: as for :func:`mha_viz.ablation_effects`.
        recipes: as for :func:`mha_viz.ablation_effects`.
        progress: as for :func:`mha_viz.ablation_effects`.

    Returns the heads in the order in which they were found (:class:`mha_viz.analysis.removal.AblationSet`). Raises the
    errors of :func:`mha_viz.models.reading.answers.make_question` and :func:`mha_viz.ablate`.

    >>> text, other = "The girl smiles because [MASK] sings .", "The boy smiles because [MASK] sings ."
    >>> switch = mv.minimal_ablation(mv.load("toy"), text, "he", method="text", source=other)
    >>> [str(head) for head in switch.heads], switch.is_answer
    (['L1H1'], True)
    """
    encoder = require_one_stack(encoder)
    request = Request(text=text, pair=pair, place=place, word=word, method=method, source=source)
    make_substitute = _bind_substitute(encoder, request, means, sentences, recipes)
    return effects.find_small_ablation(
        encoder, request.with_question(build_question(encoder, request)), most, as_callback(progress), make_substitute
    )


def build_question(model: AnyModel, request: Request) -> Question:
    """Build the question of a request, and find its word in the vocabulary.

    Raises the errors of :func:`mha_viz.models.reading.answers.make_question`.
    """
    return request.question or answers.make_question(
        model,
        *request.texts,
        request.words,
        place=request.place,
        word=request.word,
        other=request.other,
        off_in=request.off_in,
    )


def _measure_heads(
    measure: Callable[[Encoder, Question, str, str], Numbers],
    name: str,
    encoder: AnyModel,
    text: str,
    pair: str,
    fields: RequestFields,
) -> HeadValues:
    """Measure a value of each head for an answer. Raises SettingError if the fields switch heads off."""
    encoder, request = require_one_stack(encoder), Request(text=text, pair=pair, **fields)
    if request.method != METHODS[0] or request.source:
        raise SettingError(f"The measure “{name}” does not switch heads off.", "Leave out method= and source=.")
    question = build_question(encoder, request)
    return HeadValues(encoder.name, text, name, question.score, measure(encoder, question, text, pair))


def _bind_substitute(
    encoder: Encoder,
    request: Request,
    means: Weights | None,
    sentences: Sequence[Sequence[str]],
    recipes: Recipes | None,
) -> MakeSubstitute:
    """Return :func:`mha_viz.study.effects.substitute` with these arguments bound.

    Raises SettingError for arguments that do not go with the method.
    """
    method = request.method
    arguments = (
        ("means", means is not None, "mean"),
        ("source", request.source, TEXT),
        ("sentences", sentences, RESAMPLE),
    )
    for name, is_given, needed_method in arguments:
        if is_given and method != needed_method:
            raise SettingError(
                f"{name}= goes with the method “{needed_method}”, and this is “{method}”.", "Leave one of them out."
            )
    check_method(encoder, method, means, recipes)
    return partial(substitute, means=means, sentences=sentences, recipes=recipes)
