"""The question to the model about the text, and its controls. The URL holds the question."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

import streamlit as st

from mha_viz.app.url import address
from mha_viz.app.url.address import MAX_WORD, Address
from mha_viz.app.widgets import inference
from mha_viz.app.widgets.parts import show_error, show_remark
from mha_viz.app.widgets.url_controls import UrlChanges, bind_control
from mha_viz.attention import Attention
from mha_viz.errors import MhaVizError, ModelUnsupported, TextError
from mha_viz.models.getting import catalog
from mha_viz.request import COSINE, MASK, Question, Request
from mha_viz.text import clean

WAIT_NOTE = "Asking the model…"


def read_question(model: catalog.Model, attention: Attention, location: Address) -> Question | None:
    """Return the question that the URL asks the model about the text; None, with a remark, if nothing can be asked.

    If the word in the URL cannot be followed, ask for the model's own answer instead.
    """
    try:
        request = Request(model.name, attention.text.text, location.request.pair, prefix=location.request.prefix)
        return inference.load_question(request, location)
    except (ModelUnsupported, TextError) as error:
        if location.request.word or location.request.other:
            show_error(error)
        else:
            show_remark(error.problem)
    except MhaVizError as error:
        show_error(error)
    return read_question(model, attention, location.with_request(word="")) if location.request.word else None


def show_question(model: catalog.Model, attention: Attention, location: Address) -> Question | None:
    """Show the controls of the question, and return it."""
    question = read_question(model, attention, location)
    show_controls(question, location)
    return question


def show_controls(question: Question | None, location: Address) -> None:
    """Show controls for the masked token, the word to follow, and a second text."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if question is not None and question.kind == MASK and len(question.places) > 1:
            bind_control(
                st.selectbox, "Masked token", "place", question.place, question.places,
                change=lambda place: {"place": str(place), "word": None},
                format_func=lambda place: f"number {question.places.index(place) + 1} of {len(question.places)}",
                width=160,
            )  # fmt: skip
        if location.request.word or (question is not None and question.kind != COSINE):
            word, place = (question.word, question.place) if question is not None else (location.request.word, 0)
            key = f"word_{place}"
            bind_control(
                st.text_input,
                "Word to score",
                "word",
                word,
                change=_change_word,
                key=key,
                max_chars=MAX_WORD,
                width=180,
            )
        bind_control(
            st.text_input, "Second text, to compare", "second", location.request.other,
            change=change_second_text, key="second_text", keeps_text=True, max_chars=2_000,
        )  # fmt: skip


def _change_word(word: str) -> UrlChanges:
    return {"word": clean(word)[:MAX_WORD].strip() or None}


def make_text_change(name: str) -> Callable[[str], UrlChanges]:
    """Return a callback that stores a typed text as the URL parameter ``name``.

    The callback raises TextError if the text does not fit into a link.
    """

    def change(text: str) -> UrlChanges:
        text = clean(text)
        if len(quote(text)) > address.count_room(name):
            remedy = "Shorten one of them, or remove a head with a long text from My heads."
            raise TextError("This sentence and the first are together too long for the page’s link.", remedy)
        return {name: text}

    return change


change_second_text = make_text_change("second")
