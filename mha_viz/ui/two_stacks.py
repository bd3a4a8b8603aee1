"""Encoder–decoders on a page: which part is shown, what the target is, and the remarks where only models with one stack
work."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from urllib.parse import quote

import streamlit as st

from mha_viz.attention import Attention
from mha_viz.errors import MhaVizError, ModelUnsupported, TextError
from mha_viz.models import catalog, hub
from mha_viz.request import CROSS, ENCODER, PARTS, Request
from mha_viz.text import clean
from mha_viz.ui import address
from mha_viz.ui.address import Address
from mha_viz.ui.bound import Changes, bound
from mha_viz.ui.parts import complain, remark

MOST_TYPED = 2_000  # characters of a target
WHY = {
    "cross": "Rows are tokens of the target and columns those of the source, so weights on the token itself and its "
    "neighbours, roles and gold annotation are not defined here.",
    "decoder": "Roles and gold annotation belong to the source; they are not defined for the target.",
    "encoder": "Roles are measured on models with one stack of layers; they are not defined here.",
}


def has_two(model: catalog.Model) -> bool:
    """Whether a model is an encoder–decoder; False if its files are not here."""
    with suppress(MhaVizError):
        facts = hub.facts(model)
        return facts is not None and bool(facts.parts)
    return False


def of_part(request: Request, where: Address) -> Request:
    """The request with the target and the part that the URL asks of an encoder–decoder; unchanged for a model with one
    stack."""
    if not has_two(catalog.resolve(request.model)):
        return request
    return replace(request, target="" if where.part == ENCODER else where.target, part=where.part)


def beside(request: Request, attention: Attention, where: Address) -> Request:
    """The request to a model that is shown beside another one's reading: to an encoder–decoder about the same part, or
    else about its encoder."""
    return of_part(request, where if is_part(attention) else replace(where, part=ENCODER))


def controls(where: Address) -> None:
    """The controls for the part and the target of an encoder–decoder."""
    with suppress(MhaVizError):
        if not has_two(model_of(where)):
            return
        with st.container(key="two_stacks", horizontal=True, vertical_alignment="bottom"):
            part = partial(_part, where.part)
            bound(
                st.segmented_control, "Attention of", "part", where.part, PARTS, change=part, required=True,
                width="content",
            )  # fmt: skip
            if where.part != ENCODER:
                bound(
                    st.text_input, "Target", "target", where.target, change=_target, keeps=True, max_chars=MOST_TYPED,
                    placeholder="Empty: the model writes it, up to 64 tokens",
                )  # fmt: skip


def model_of(where: Address) -> catalog.Model:
    """The model that the URL names, or else the default one. Raises the errors of ``catalog.resolve``."""
    return catalog.resolve(where.model) if where.model else catalog.default()


def _part(before: str, part: str) -> Changes:
    of_a_stack = ("head", "on") if ENCODER in (part, before) else ()  # the encoder has other heads than the decoder
    changes = dict.fromkeys((*address.OF_THESE_TOKENS, "case", *of_a_stack))
    return {"part": None if part == CROSS else part, **changes}


def _target(typed: str) -> Changes:
    target = clean(str(typed)[:MOST_TYPED]).strip()
    if len(quote(target)) > address.room_for("target"):
        remedy = "Shorten one of them, or remove a compared head with a long text."
        raise TextError("Source and target are together too long for the page’s link.", remedy)
    return {"target": target or None, **dict.fromkeys((*address.OF_THESE_TOKENS, "case"))}


# ---- What is said ---------------------------------------------------------------------------------------


def say(attention: Attention) -> None:
    """Show the text that the model generated, and what is not defined for a part; nothing for a model with one
    stack."""
    request = attention.request
    if request is None or not request.part:
        return
    if request.part != ENCODER and not request.target:
        remark(f"Target, written by the model one token at a time: “{attention.queries.text}”")
    remark(WHY[request.part])


def is_part(attention: Attention) -> bool:
    """Whether a reading is a part of an encoder–decoder."""
    request = attention.request
    return request is not None and bool(request.part)


def refused(where: Address, what: str) -> bool:
    """Whether the model is an encoder–decoder; then also says that ``what`` needs a model with one stack of layers."""
    try:
        model = model_of(where)
    except MhaVizError:  # reported where the reading is requested
        return False
    if not has_two(model):
        return False
    complain(
        ModelUnsupported(
            f"{model.label} is an encoder–decoder: {what} only for models with one stack of layers.",
            "Its attention is drawn on Explore and Compare. Choose another model for this page.",
        )
    )
    return True
