"""What the heads of a model do for its answer to one text: the functions of notebooks, which ask the question and
choose how heads are switched off."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypedDict, Unpack

import numpy as np

from mha_viz.analysis.described import predicted
from mha_viz.analysis.effects import Effects
from mha_viz.analysis.recipe_tables import Recipes
from mha_viz.analysis.removal import MOST_SWITCHED, Switch
from mha_viz.attention import AnyHead, Attention, Weights
from mha_viz.attention.answers import Answer, Numbers, OfHeads
from mha_viz.errors import SettingError, check_kind
from mha_viz.models import ablation, answers, contributions, gradients
from mha_viz.models.capture import Tap
from mha_viz.models.encoder import Encoder
from mha_viz.models.encoder_decoder import AnyModel, in_one_stack
from mha_viz.request import BOTH, METHODS, RECIPE, RESAMPLE, TEXT, Question, Request
from mha_viz.study import effects as study
from mha_viz.study.effects import Instead, check_method, substitute

__all__ = ["RequestFields", "answer", "direct", "effects", "importance", "question_of", "smallest_switch", "without"]


class RequestFields(TypedDict, total=False):
    """The fields of a :class:`mha_viz.Request` that say what is asked about a text, and how heads are off, by name.

    ``place``: the masked token, if there are several. ``word``: whose log-probability is the score, by default the
    most probable one. ``other``: a second text, for how similar the two are; ``off_in``: in which of the two heads are
    off, and over whose tokens importance is a mean: "both", "first" or "second". ``method``: what replaces the output
    of heads that are off: zero, mean, uniform, recipe, resample or text. ``source``: the text that outputs are taken
    from by the method "text".
    """

    place: int | None
    word: str
    other: str
    off_in: str
    method: str
    source: str


def without(
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
    """The attention of every head while all of ``heads`` are off. Their own weights are still computed, but have no
    effect.

    ``method``: what replaces their outputs: zero, mean, uniform, recipe, resample or text. ``means``: for "mean", the
    mean outputs [layer, head, d_head] over a corpus (``means_over``). ``words``: the sentence as words, in place of
    ``text``. ``source``: by the method "text", the other text on which the heads' outputs are taken; by "resample",
    they are taken on random ones of the built-in sentences. ``recipes``: by the method "recipe", those that predict the
    weights, from :func:`mha_viz.recipes` or ``open_recipes``; by default those in a folder that MHA_VIZ_PROFILES names,
    or that come with the app; or the predicted weights themselves as ``means`` [layer, head, query, key]. Raises the
    errors of ``encode``, UnknownHead, and SettingError for an unknown method, and where what it needs of this model is
    missing.

    >>> mv.without(mv.load("toy"), ["L0H1"], "the dog barks .", method="recipe").made
    ('typed', 'without L0H1: recipe')
    """
    if recipes is not None and (method != RECIPE or means is not None):
        raise SettingError(f"Recipes are given, and heads are switched off by {method}.", 'Set method="recipe" alone.')
    encoder = in_one_stack(encoder)
    if method == RECIPE and means is None:
        means = predicted(encoder.encode_words(words) if words else encoder.encode(text, pair), recipes)
    return ablation.without(encoder, heads, text, pair, method, means, words, source=source)


def effects(
    encoder: AnyModel,
    text: str,
    pair: str = "",
    *,
    means: Weights | None = None,
    sentences: Sequence[Sequence[str]] = (),
    recipes: Recipes | None = None,
    **fields: Unpack[RequestFields],
) -> Effects:
    """The effect of switching off each head alone on one text: on its sentence vector, on each token, on later heads
    and, where the model has an answer to give, on the answer.

    ``fields``: the question and how heads are off (:class:`RequestFields`). ``means``: [layer, head, d_head], for the
    method "mean". ``sentences``: lists of words, those that "resample" draws from; by default the built-in ones.
    ``recipes``: as for :func:`mha_viz.without`. A text with a masked token, or of a causal model, is asked about by
    itself. Raises as :func:`mha_viz.models.answers.question_about` and :func:`mha_viz.without`.

    >>> alone = mv.effects(mv.load("toy"), "The girl smiles because [MASK] sings .", word="she")
    >>> alone.table()["rank"].idxmin()  # without which head the answer changes most
    'L1H0'
    """
    encoder = in_one_stack(encoder)
    request = Request(text=text, pair=pair, **fields)
    by = _instead(encoder, request, means, sentences, recipes)
    if (request.place, request.word, request.other, request.off_in) != (None, "", "", BOTH) or answers.predicts(
        encoder, text, pair
    ):
        request = request.about(question_of(encoder, request))
    return study.effects(encoder, request, by=by)


def answer(
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
    """The answer of the model to a text, before and after ``heads`` are switched off at once; without heads, the
    answer of the whole model.

    ``tap``: your own change of the heads in place of ``heads``, such as a subclass of :class:`mha_viz.Tap`; with
    ``other``, it reads the texts that ``off_in`` says. ``fields``, ``means``, ``sentences`` and ``recipes`` are as for
    :func:`mha_viz.effects`. Raises as :func:`mha_viz.models.answers.question_about` and :func:`mha_viz.without`, and
    SettingError for heads and a tap at once.

    >>> text, other = "The girl smiles because [MASK] sings .", "The boy smiles because [MASK] sings ."
    >>> mv.answer(mv.load("toy"), text, ["L1H1"], method="text", source=other).best  # before and after
    ('she', 'he')
    """
    encoder = in_one_stack(encoder)
    request = Request(text=text, pair=pair, **fields)
    by = _instead(encoder, request, means, sentences, recipes)
    question = question_of(encoder, request)
    request = request.about(question)
    if tap is None:
        return study.answer(encoder, replace(request, off=ablation.existing(encoder, heads)), by)
    check_kind(tap, Callable, "a tap", "Give a subclass of mha_viz.Tap.")
    if heads != ():
        raise SettingError("Heads and a tap were given.", "Switch the heads off in the tap, or leave one of them out.")
    changed = [tap if question.is_off_in(place) else Tap for place in range(len(request.passes))]
    states = [
        np.concatenate([encoder.states(*texts), encoder.states(*texts, used)])
        for texts, used in zip(request.passes, changed, strict=True)
    ]
    return study.compared(encoder, question, states)


def importance(encoder: AnyModel, text: str, pair: str = "", **fields: Unpack[RequestFields]) -> OfHeads:
    """How much the score of an answer depends on each head's output, to first order: |Att_h · ∂L/∂Att_h|, mean over
    tokens, normalised within each layer (:func:`mha_viz.models.gradients.importance`).

    ``fields``: the question (:class:`RequestFields`); no head is off. Raises as
    :func:`mha_viz.models.answers.question_about`.

    >>> mv.importance(mv.load("toy"), "The girl smiles because [MASK] sings .").table().loc["L1H1", "importance"]
    """
    return _of_heads(gradients.importance, "importance", encoder, text, pair, fields)


def direct(encoder: AnyModel, text: str, pair: str = "", **fields: Unpack[RequestFields]) -> OfHeads:
    """What each head adds to the logit of a word directly, through the residual stream alone
    (:func:`mha_viz.models.contributions.direct`).

    ``fields``: the question (:class:`RequestFields`); no head is off. Raises ModelUnsupported for models other than
    pre-norm ones with an unembedding, such as BERT, and as :func:`mha_viz.models.answers.question_about`.

    >>> mv.direct(mv.load("repeater"), "dog river anna dog river").table()["direct"].idxmax()[:2]
    'L1'
    """
    return _of_heads(contributions.direct, "direct", encoder, text, pair, fields)


def smallest_switch(
    encoder: AnyModel,
    text: str,
    word: str,
    pair: str = "",
    *,
    place: int | None = None,
    most: int = MOST_SWITCHED,
    method: str = METHODS[0],
    means: Weights | None = None,
    source: str = "",
    sentences: Sequence[Sequence[str]] = (),
    recipes: Recipes | None = None,
) -> Switch:
    """The smallest set of heads, found greedily, without which ``word`` is the answer; at most ``most`` of them. A
    smaller one may exist.

    ``place``: the masked token, if there are several. ``method``, ``means``, ``source``, ``sentences`` and ``recipes``
    are as for :func:`mha_viz.effects`. Raises as :func:`mha_viz.models.answers.question_about` and
    :func:`mha_viz.without`.

    >>> text, other = "The girl smiles because [MASK] sings .", "The boy smiles because [MASK] sings ."
    >>> switch = mv.smallest_switch(mv.load("toy"), text, "he", method="text", source=other)
    >>> [str(head) for head in switch.heads], switch.is_answer
    (['L1H1'], True)
    """
    encoder = in_one_stack(encoder)
    request = Request(text=text, pair=pair, place=place, word=word, method=method, source=source)
    by = _instead(encoder, request, means, sentences, recipes)
    return study.smallest_switch(encoder, request.about(question_of(encoder, request)), most, by=by)


def question_of(model: AnyModel, request: Request) -> Question:
    """The question of a request, with its word looked up. Raises as :func:`mha_viz.models.answers.question_about`."""
    return request.question or answers.question_about(
        model,
        *request.texts,
        request.words,
        place=request.place,
        word=request.word,
        other=request.other,
        off_in=request.off_in,
    )


def _of_heads(
    measure: Callable[[Encoder, Question, str, str], Numbers],
    name: str,
    encoder: AnyModel,
    text: str,
    pair: str,
    fields: RequestFields,
) -> OfHeads:
    encoder, request = in_one_stack(encoder), Request(text=text, pair=pair, **fields)
    if request.method != METHODS[0] or request.source:
        raise SettingError(f"No head is off for {name}.", "Leave out method= and source=.")
    question = question_of(encoder, request)
    return OfHeads(encoder.name, text, name, question.score, measure(encoder, question, text, pair))


def _instead(
    encoder: Encoder,
    request: Request,
    means: Weights | None,
    sentences: Sequence[Sequence[str]],
    recipes: Recipes | None,
) -> Instead:
    """What replaces the outputs of heads that are off. Raises SettingError for what does not go with the method."""
    method = request.method
    given = (("means", means is not None, "mean"), ("source", request.source, TEXT), ("sentences", sentences, RESAMPLE))
    for name, is_given, of in given:
        if is_given and method != of:
            raise SettingError(
                f"{name}= goes with the method “{of}”, and this is “{method}”.", "Leave one of them out."
            )
    check_method(encoder, method, means, recipes)
    return partial(substitute, means=means, sentences=sentences, recipes=recipes)
