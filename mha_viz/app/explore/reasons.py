"""Answer the browser when it asks why the links of the open head look where they do, and what they write."""

from __future__ import annotations

import base64
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from typing import Any

import streamlit as st

from mha_viz.app.service.caches import model_service, read_facts
from mha_viz.app.service.reader import verbs
from mha_viz.app.url import address
from mha_viz.app.widgets.components import exchange_reasons
from mha_viz.app.widgets.inference import PageReading
from mha_viz.app.widgets.parts import guarded, read_message
from mha_viz.attention import Head
from mha_viz.attention.parts import GROUPS
from mha_viz.attention.reasons import LinkReasons
from mha_viz.errors import MhaVizError
from mha_viz.request import Request
from mha_viz.view.quantities import WEIGHT

MAX_TOKENS = 64  # longer texts are not explained
ASKED_KEY = "reasons_asked"  # session key: the head and the reading that the browser has asked about
POLL_S = 0.2  # seconds between two looks at an answer; in between, Streamlit may end an abandoned run


def has_reasons(page: PageReading) -> bool:
    """Return whether the page explains links: weights of one stack, with all heads on, in a short text.

    False in the view for a class, and for a model of which only the weights can be read.
    """
    attention = page.attention
    if page.is_part or attention.quantity != WEIGHT or page.tokens > MAX_TOKENS:
        return False
    if page.url.where.request.off or address.is_class_view():
        return False
    with suppress(MhaVizError):
        facts = read_facts(page.model)
        return facts is not None and not facts.weights_only
    return False


def answer_browser(page: PageReading) -> None:
    """Let the browser ask for the reasons of a head, without a run of the whole page."""
    if has_reasons(page):
        _answer(page.whole_request, page.attention.key)


@st.fragment
@guarded(lambda error: None)
def _answer(request: Request, key: str) -> None:
    """Send the reasons of the head that the browser has asked about; nothing if they are not available."""
    asked = st.session_state.get(ASKED_KEY, {})  # kept until it is answered: another run may end this one
    answer: dict[str, Any] = {}
    place = st.empty()
    if asked.get("key") == key:
        with suppress(MhaVizError):
            head = Head.parse(str(asked.get("head")))
            future = model_service().ask_cached(verbs.explain_links, request, head)
            answer = {"key": key, "head": str(head)} | encode_reasons(_wait_silently(future, place))
    st.session_state.pop(ASKED_KEY, None)
    exchange_reasons(answer, "reasons", _on_ask)


def encode_reasons(reasons: LinkReasons) -> dict[str, Any]:
    """Return the reasons for the browser.

    Keys: "groups", the names that codes refer to; "codes", a byte for each query and key as base64, or None; "words",
    of each key, or None.
    """
    codes = None if reasons.codes is None else base64.b64encode(reasons.codes.tobytes()).decode()
    return {"groups": GROUPS, "codes": codes, "words": reasons.words}


def _wait_silently(future: Future[LinkReasons], place: Any) -> LinkReasons:
    """Return the result of the future; the page shows nothing meanwhile. Raises what the model raises."""
    try:
        while True:
            try:
                return future.result(POLL_S)
            except NotYet:
                place.empty()  # Streamlit ends an abandoned run here
    finally:
        future.cancel()


@guarded()
def _on_ask() -> None:
    """Remember which head the browser asks about."""
    st.session_state[ASKED_KEY] = read_message("reasons", "ask")
