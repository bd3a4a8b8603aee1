"""Compute the reading that a request asks for. Only this module knows which function computes which quantity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from mha_viz.analysis.bundled_data import predict_attention, unexplained
from mha_viz.analysis.recipe_tables import Recipes
from mha_viz.attention import Attention, Weights
from mha_viz.attention.rollout import rollout
from mha_viz.attention.steps import UNEXPLAINED
from mha_viz.corpus import grammar
from mha_viz.models.decomposing.contributions import norm_weighted
from mha_viz.models.intervening import ablation, gradients
from mha_viz.models.reading.encoder_decoder import AnyModel, require_one_stack
from mha_viz.request import METHODS, RECIPE, Request
from mha_viz.study.one_text import ablate, build_question
from mha_viz.view import quantities
from mha_viz.view.quantities import Quantity

Compute: TypeAlias = Callable[[AnyModel, Request, "Weights | None"], Attention]


def read(model: AnyModel, request: Request, means: Weights | None = None, recipes: Recipes | None = None) -> Attention:
    """Compute the quantity that a request asks for, for every head: [layer, head, query, key].

    Args:
        model: the model that answers; the request's ``model`` is only a name, for links.
        request: the text, the quantity, and which heads are off.
        means: the mean outputs of the heads [layer, head, d_head], for heads that are off by the method "mean"
            (:func:`mha_viz.models.intervening.ablation.compute_means`); by default, those over the built-in sentences.
        recipes: for the quantity "unexplained" and the method "recipe", from ``mv.recipes.fit`` or
            ``mv.recipes.load``; by default those in a folder that MHA_VIZ_PROFILES names, or that come with the app.

    Raises SettingError for settings that exclude each other, the errors of ``encode`` and :func:`mha_viz.ablate`, and
    those of the quantity.

    >>> toy = mv.load("toy")
    >>> mv.read(toy, mv.Request("toy", "the dog barks .", off=(mv.Head(0, 1),), method="recipe")).made
    ('typed', 'without L0H1: recipe')
    """
    quantity = request.checked().quantity
    if request.off and request.method == "mean" and means is None:
        sentences = grammar.corpus().sentences
        means = ablation.compute_means(require_one_stack(model), (" ".join(sentence.forms) for sentence in sentences))
    model = require_one_stack(model).prefixed(request.prefix) if request.prefix else model
    if recipes is not None:
        if request.off and request.method == RECIPE:
            reading = _compute_weights(model, replace(request, off=(), method=METHODS[0]), None)
            means = predict_attention(reading, recipes)
        if quantity == UNEXPLAINED.row.name:
            return unexplained(_compute_weights(model, request, means), recipes)
    return _functions[quantity](model, request, means)


def _compute_weights(model: AnyModel, request: Request, means: Weights | None) -> Attention:
    """Return the attention weights, computed with the request's heads switched off."""
    if request.off:
        texts, method, words, source = request.texts, request.method, request.words, request.source
        return ablate(model, request.off, *texts, method, means, words, source=source)
    if request.words and not request.part:
        return require_one_stack(model).encode_words(request.words)
    text = " ".join(request.words) or request.text  # an encoder–decoder reads given words as one text
    return model.encode(text, request.pair, target=request.target, part=request.part)


_functions: dict[str, Compute] = {
    "weight": _compute_weights,
    "norm": lambda model, request, _: norm_weighted(model, *request.texts, request.words),
    "gradient": lambda model, request, _: gradients.weight_by_gradient(
        require_one_stack(model), build_question(model, request), *request.texts, request.words
    ),
    "rollout": lambda model, request, means: rollout(_compute_weights(model, request, means)),
    "unexplained": lambda model, request, means: unexplained(_compute_weights(model, request, means)),
}


def add(quantity: Quantity, compute: Compute) -> None:
    """Add a quantity for the rest of this process: its row, and the function that computes it.

    Call this before pages and figures are imported. The quantity is then in menus, links, captions, files, recipes and
    options.
    """
    quantities.add(quantity)
    _functions[quantity.name] = compute
