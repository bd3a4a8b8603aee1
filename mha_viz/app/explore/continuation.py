"""Let a causal model continue the text on the Explore page, and mark the words that it wrote."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import streamlit as st

from mha_viz.app.service.caches import get_model_service, is_ready, read_facts
from mha_viz.app.service.reader import verbs
from mha_viz.app.url import address
from mha_viz.app.url.address import Url
from mha_viz.app.widgets import inference
from mha_viz.app.widgets.inference import PageReading
from mha_viz.app.widgets.parts import escape_markdown, report_errors, show_error, show_remark
from mha_viz.app.widgets.request import read_model
from mha_viz.attention.answers import Continuation
from mha_viz.attention.generate_outputs import mark_written
from mha_viz.errors import MhaVizError, TextError
from mha_viz.models.getting import catalog
from mha_viz.request import Request

WORD_COUNTS = (4, 8, 16, 32)
# Session keys: the control, and ((model name, text), words) of a continuation that was asked for.
WORD_COUNT_KEY, PENDING_KEY = "words_to_write", "continue_wanted"
PIECES_PER_CALL = 4  # subwords that the model writes per call; between calls, it can be stopped


def show_continue_button(url: Url) -> None:
    """Show the button that continues the text, if the model can. After a click, continue the text and rerun the page.

    The model must be causal, its files must be on this machine, and there must be one text of one line.
    """
    model = None
    with suppress(MhaVizError):  # reading the text reports the error
        model = _find_writer(url)
    if model is None:
        return
    with report_errors(show_error), st.container(key="continue", horizontal=True, vertical_alignment="bottom"):
        st.button("Let the model continue", key="continue_text", on_click=_on_continue)
        st.selectbox(
            "Words to write", WORD_COUNTS, index=1, key=WORD_COUNT_KEY, width=140, label_visibility="collapsed",
            format_func=lambda words: f"by {words} words",
        )  # fmt: skip
        progress = st.empty()  # created in every run, so that the elements below do not move while the model writes
    pending_source, words = st.session_state.pop(PENDING_KEY, (None, 0))
    if pending_source == (model.name, url.text):
        with report_errors(show_error):
            with progress:
                changes = _write_words(model, url, words)
            if changes:
                # None removes each parameter that belongs to the old text
                address.go(**dict.fromkeys(address.TEXT_PARAMETERS) | changes)
                st.rerun()


def _find_writer(url: Url) -> catalog.Model | None:
    """Return the model if it can continue the text, else None. Raises ModelError or a subclass."""
    model = read_model(url.location)
    if url.location.request.pair or "\n" in url.text or not url.text.strip() or not is_ready(model):
        return None
    facts = read_facts(model)
    return model if facts is not None and facts.causal and not facts.parts else None


@report_errors()
def _on_continue() -> None:
    """Request words from the model; they are written once the page is drawn, where progress can be shown."""
    url, words = address.get_url(), st.session_state.get(WORD_COUNT_KEY)
    if words in WORD_COUNTS:
        st.session_state[PENDING_KEY] = (read_model(url.location).name, url.text), words


def _write_words(model: catalog.Model, url: Url, words: int) -> dict[str, str]:
    """Let the model write words after the text, with a progress bar, and return the URL parameters of the longer text.

    Return {} if the model writes nothing. Any input on the page stops the model, because it reruns the page; a click on
    the button then starts the writing again. Raises TextError, and the model's errors.
    """
    request = Request(model.name, url.text, prefix=url.location.request.prefix)
    state, label = Continuation(), f"{escape_markdown(model.label)} is writing"
    bar = st.progress(0.0, text=f"{label}…")
    while not state.is_complete:
        future = get_model_service().ask_cached(verbs.continue_text, request, words, state, PIECES_PER_CALL)
        state = inference.wait_for_result(future, f"{model.label} is writing…")
        count = min(len(state.text.split()), words)
        bar.progress(count / words, text=f"{label}: word {count} of {words}…")
    if not state.text.strip():
        show_remark("The model ends the text here.")
        return {}
    longer_text = url.text + state.text
    if address.fit_texts(longer_text, "")[0] != longer_text:
        raise TextError("The continued text is too long for the page’s link.", "Shorten the text.")
    return {"text": longer_text, "written": str(len(state.text))}


def mark_written_text(page: PageReading) -> PageReading:
    """Return the reading with a step that records which part of the text the model wrote, and show a remark on it.

    Return the reading unchanged if the URL does not say that the model wrote any of it, or if another model is shown in
    place of an unavailable one.
    """
    container = st.container()  # created in every run, so that the drawing below does not move
    written_characters = page.url.location.written_characters
    if not written_characters or not page.is_requested:
        return page
    marked_attention = mark_written(page.attention, written_characters)
    if marked_attention is not page.attention:
        with container:
            show_remark(f"Written by the model: “{marked_attention.queries.text[-written_characters:].strip()}”")
    return replace(page, attention=marked_attention)
