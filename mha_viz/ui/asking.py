"""What a model is asked about the text on a page, and where a visitor says so. The URL holds it."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote

import streamlit as st

from mha_viz.attention import Attention
from mha_viz.attention.answers import COSINE, FIRST, MASK, Question
from mha_viz.errors import MhaVizError, TextError
from mha_viz.models import catalog
from mha_viz.text import clean
from mha_viz.ui import address, inference
from mha_viz.ui.address import MAX_WORD, Address
from mha_viz.ui.cache import office
from mha_viz.ui.parts import complain, complain_later, guarded

WAITING = "Asking the model…"


def asked(model: catalog.Model, text: str, where: Address) -> Question:
    """What the URL asks of a model about a text; of several masked tokens the first, unless it names one. Raises as
    ``models.answers.asked``."""
    place = FIRST if where.place is None else where.place
    other = where.second if where.second and where.second.strip() and where.second != text else ""
    return inference.wait(office().question(model, text, where.pair, place, where.word, other), WAITING)


def question(model: catalog.Model, attention: Attention, where: Address) -> Question | None:
    """As :func:`asked`, with a word on why where nothing can be asked; a word that cannot be followed is left to the
    model."""
    text = attention.text
    try:
        return asked(model, text.text, where)
    except MhaVizError as error:
        complain(error)
    return question(model, attention, replace(where, word="")) if where.word else None


def controls(of: Question | None, where: Address) -> None:
    """The masked token, the word that is followed there, and a second text."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if of is not None and of.kind == MASK and len(of.places) > 1:
            _places(of)
        if of is not None and of.kind != COSINE:
            key = f"word_{of.word}_{of.place}"
            st.text_input(
                "Word to follow", of.word, key=key, max_chars=MAX_WORD, width=180, on_change=_on_word, args=(key,)
            )
        second = where.second or ""
        key = f"second_{second}"
        st.text_input(
            "Second text, to ask how alike the two are",
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
    """A second text was typed into the field with this key; ``changes`` of the URL go with it."""
    second = clean(st.session_state[key])
    if len(quote(second)) > address.room_for("second"):
        remedy = "Shorten one of them, or remove a compared head with a long text."
        complain_later(TextError("This sentence and the first are together too long for the page’s link.", remedy))
        return
    address.go(second=second, **changes)
