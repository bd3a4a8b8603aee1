"""From a request to a reading: the only place that knows which function computes which quantity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from mha_viz.attention import Attention, Weights
from mha_viz.attention.rollout import rollout
from mha_viz.browser import quantities
from mha_viz.browser.quantities import QUANTITIES, Quantity
from mha_viz.corpus import grammar
from mha_viz.errors import SettingError
from mha_viz.models import ablation, answers, gradients
from mha_viz.models.encoder_decoder import AnyModel, in_one_stack
from mha_viz.models.norms import norm_weighted
from mha_viz.request import Question, Request

Compute: TypeAlias = Callable[[AnyModel, Request, "Weights | None"], Attention]
After: TypeAlias = Callable[[Attention], Attention]
NOTHING: Mapping[str, After] = MappingProxyType({})


def read(
    model: AnyModel, request: Request, means: Weights | None = None, after: Mapping[str, After] = NOTHING
) -> Attention:
    """What a model answers to a request: the requested quantity of every head, [layer, head, query, key].

    ``means``: the mean outputs of the heads, for heads that are off by the method "mean"
    (:func:`mha_viz.models.ablation.means_over`); by default, those over the built-in sentences. ``after``: quantities
    that are computed from the weights by what this room may not use. Raises SettingError for
    what excludes each other, the errors of ``encode``, and those of the quantity.
    """
    request.checked()
    if request.quantity in after:
        return after[request.quantity](_weights(model, request, means))
    if request.quantity not in _computed:
        raise SettingError(f"quantity is {str(request.quantity)[:40]!r}.", f"Choose one of {', '.join(QUANTITIES)}.")
    return _computed[request.quantity](model, request, means)


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


def _weights(model: AnyModel, request: Request, means: Weights | None) -> Attention:
    if request.off:
        if request.method == "mean" and means is None:
            sentences = grammar.corpus().sentences
            means = ablation.means_over(in_one_stack(model), (" ".join(sentence.forms) for sentence in sentences))
        texts, method, words, source = request.texts, request.method, request.words, request.source
        return ablation.without(model, request.off, *texts, method, means, words, source=source)
    if request.words and not request.part:
        return in_one_stack(model).encode_words(request.words)
    text = " ".join(request.words) or request.text  # an encoder–decoder reads given words as one text
    return model.encode(text, request.pair, target=request.target, part=request.part)


def _norms(model: AnyModel, request: Request, _: Weights | None) -> Attention:
    return norm_weighted(model, *request.texts, request.words)


def _gradients(model: AnyModel, request: Request, _: Weights | None) -> Attention:
    return gradients.of_score(in_one_stack(model), question_of(model, request), *request.texts, request.words)


def _rollout(model: AnyModel, request: Request, means: Weights | None) -> Attention:
    return rollout(_weights(model, request, means))


_computed: dict[str, Compute] = {"weight": _weights, "norm": _norms, "gradient": _gradients, "rollout": _rollout}


def add(quantity: Quantity, compute: Compute) -> None:
    """Add a quantity for the rest of this process, before pages and figures are imported: its row, and the function
    that computes it. It is then in menus, links, captions, files, recipes and options."""
    quantities.add(quantity)
    _computed[quantity.name] = compute
