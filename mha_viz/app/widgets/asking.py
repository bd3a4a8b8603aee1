"""The question about the text whose answer a page follows, and its controls. The URL holds it."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

import streamlit as st

from mha_viz.app.url import address
from mha_viz.app.url.address import MAX_WORD, Address
from mha_viz.app.widgets import inference
from mha_viz.app.widgets.bound import UrlChanges, bound
from mha_viz.app.widgets.parts import complain, remark
from mha_viz.attention import Attention
from mha_viz.errors import MhaVizError, ModelUnsupported, TextError
from mha_viz.models.getting import catalog
from mha_viz.request import COSINE, MASK, Question, Request
from mha_viz.text import clean

WAITING = "Asking the model…"


def question(model: catalog.Model, attention: Attention, where: Address) -> Question | None:
    """Return the question that the URL asks the model about the text; None, with a remark on the page, if nothing can
    be asked. If the word cannot be followed, the model's own answer takes its place."""
    try:
        of = Request(model.name, attention.text.text, where.request.pair, prefix=where.request.prefix)
        return inference.question_about(of, where)
    except (ModelUnsupported, TextError) as error:
        if where.request.word or where.request.other:
            complain(error)
        else:
            remark(error.problem)
    except MhaVizError as error:
        complain(error)
    return question(model, attention, where.but(word="")) if where.request.word else None


def panel(model: catalog.Model, attention: Attention, where: Address) -> Question | None:
    """Return the question, with its controls."""
    of = question(model, attention, where)
    controls(of, where)
    return of


def controls(of: Question | None, where: Address) -> None:
    """Show the controls for the masked token, the followed word and a second text."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if of is not None and of.kind == MASK and len(of.places) > 1:
            bound(
                st.selectbox, "Masked token", "place", of.place, of.places,
                change=lambda place: {"place": str(place), "word": None},
                format_func=lambda place: f"number {of.places.index(place) + 1} of {len(of.places)}", width=160,
            )  # fmt: skip
        if where.request.word or (of is not None and of.kind != COSINE):
            word, place = (of.word, of.place) if of is not None else (where.request.word, 0)
            key = f"word_{place}"
            bound(st.text_input, "Word to follow", "word", word, change=_word, key=key, max_chars=MAX_WORD, width=180)
        bound(
            st.text_input, "Second text, to compare", "second", where.request.other,
            change=second_text, key="second_text", keeps=True, max_chars=2_000,
        )  # fmt: skip


def _word(typed: str) -> UrlChanges:
    return {"word": clean(typed)[:MAX_WORD].strip() or None}


def other_text(name: str) -> Callable[[str], UrlChanges]:
    """Return what another text sets in the URL, as the parameter ``name``. Raises TextError if it does not fit into a
    link."""

    def change(typed: str) -> UrlChanges:
        other = clean(typed)
        if len(quote(other)) > address.room_for(name):
            remedy = "Shorten one of them, or remove a head with a long text from My heads."
            raise TextError("This sentence and the first are together too long for the page’s link.", remedy)
        return {name: other}

    return change


second_text = other_text("second")
