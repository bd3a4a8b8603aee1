"""Composition on the Explore page: which earlier heads the scores of each head come from."""

from __future__ import annotations

from typing import TypeAlias

from mha_viz.attention import Attention, Head
from mha_viz.browser.quantities import QUANTITIES
from mha_viz.errors import ModelUnsupported
from mha_viz.models import catalog
from mha_viz.reader import verbs
from mha_viz.request import Request
from mha_viz.ui import address, inference
from mha_viz.ui.address import Url
from mha_viz.ui.model_service import model_service
from mha_viz.ui.parts import complain, guarded, remark

Arrow: TypeAlias = tuple[Head, Head, str, float]


def arrows(what: Url, attention: Attention) -> tuple[Arrow, ...] | None:
    """The arrows of the text on the page, the largest first; None unless they are asked for, or with the reason why
    this model has none."""
    if address.now().get("arrows") != "on" or QUANTITIES[attention.quantity].of_layers:
        return None
    model = catalog.resolve(attention.model)
    with guarded(complain):
        future = model_service().cached(verbs.composition, Request(model.name, what.text, what.where.pair))
        try:
            composed: tuple[Arrow, ...] = inference.wait(future, f"{model.label} is being opened…")
            return composed
        except ModelUnsupported as error:
            remark(error.problem)
    return None
