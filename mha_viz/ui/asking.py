"""The question about the text whose answer a page follows, and its controls. The URL holds it."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote

import streamlit as st

from mha_viz.attention import Attention
from mha_viz.errors import MhaVizError, ModelUnsupported, TextError
from mha_viz.models import catalog
from mha_viz.request import COSINE, MASK, Question, Request
from mha_viz.text import clean
from mha_viz.ui import address, inference
from mha_viz.ui.address import MAX_WORD, Address
from mha_viz.ui.parts import complain, complain_later, guarded, remark

WAITING = "Asking the model…"


def question(model: catalog.Model, attention: Attention, where: Address) -> Question | None:
    """The question that the URL asks the model about the text; None, with a remark on the page, if nothing can be
    asked. If the word cannot be followed, the model's own answer takes its place."""
    try:
        return inference.question_about(Request(model.name, attention.text.text, where.pair), where)
    except (ModelUnsupported, TextError) as error:
        if where.word or where.second:
            complain(error)
        else:
            remark(str(error))
    except MhaVizError as error:
        complain(error)
    return question(model, attention, replace(where, word="")) if where.word else None


def panel(model: catalog.Model, attention: Attention, where: Address) -> Question | None:
    """The question, with its controls."""
    of = question(model, attention, where)
    controls(of, where)
    return of


def controls(of: Question | None, where: Address) -> None:
    """The controls for the masked token, the followed word and a second text."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if of is not None and of.kind == MASK and len(of.places) > 1:
            _places(of)
        if where.word or (of is not None and of.kind != COSINE):
            word, place = (of.word, of.place) if of is not None else (where.word, 0)
            key = f"word_{word}_{place}"
            st.text_input(
                "Word to follow", word, key=key, max_chars=MAX_WORD, width=180, on_change=_on_word, args=(key,)
            )
        second = where.second or ""
        key = f"second_{second}"
        st.text_input(
            "Second text, to measure how similar the two are",
            second,
            key=key,
            max_chars=2_000,
            on_change=on_second,
            args=(key,),
        )


def _places(of: Question) -> None:
    key = f"place_{of.place}"
    st.selectbox(
        "Masked token",
        of.places,
        index=of.places.index(of.place),
        format_func=lambda place: f"number {of.places.index(place) + 1} of {len(of.places)}",
        key=key,
        width=160,
        on_change=_on_place,
        args=(key,),
    )


@guarded()
def _on_place(key: str) -> None:
    address.go(place=str(int(st.session_state[key])), word=None, want=None)


@guarded()
def _on_word(key: str) -> None:
    address.go(word=clean(st.session_state[key])[:MAX_WORD].strip() or None)


@guarded()
def on_second(key: str, **changes: str | None) -> None:
    """A second text was typed into the field with this key; sets it in the URL together with ``changes``."""
    second = clean(st.session_state[key])
    if len(quote(second)) > address.room_for("second"):
        remedy = "Shorten one of them, or remove a compared head with a long text."
        complain_later(TextError("This sentence and the first are together too long for the page’s link.", remedy))
        return
    address.go(second=second, **changes)
