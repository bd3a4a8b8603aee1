"""The Explore page: the drawing of a reading, the remarks around it, and its changes to the URL."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import streamlit as st

from mha_viz.app.explore import averages, continuation, corpus_cases, gold
from mha_viz.app.explore.badges import describe_view, encode_badges
from mha_viz.app.service import studies
from mha_viz.app.service.caches import get_model_service, is_ready
from mha_viz.app.service.reader import verbs
from mha_viz.app.service.studies import make_built_in_corpus
from mha_viz.app.url import address, comparison
from mha_viz.app.url.address import Address, Url
from mha_viz.app.url.annotated_texts import find_annotation
from mha_viz.app.url.comparison import ComparedHead
from mha_viz.app.widgets import asking, download_panel, inference, navigation, search_field
from mha_viz.app.widgets.components import apply_style, draw_explorer, exchange_reasons
from mha_viz.app.widgets.download_panel import PageChart, parse_view
from mha_viz.app.widgets.inference import PageReading
from mha_viz.app.widgets.parts import (
    escape_markdown,
    quote_for_title,
    read_message,
    read_sent_value,
    report_errors,
    report_ignored,
    set_title,
    show_error,
    show_error_later,
    show_pending_error,
    show_remark,
)
from mha_viz.app.widgets.request import describe_part, read_model, set_part
from mha_viz.app.widgets.study_progress import show_progress
from mha_viz.attention import Head
from mha_viz.attention.parts import GROUPS
from mha_viz.attention.reasons import MAX_EXPLAINED, LinkReasons
from mha_viz.errors import Cancelled, CorpusError, MhaVizError, UnknownHead
from mha_viz.figures.layout.packet import RankedLink, compute_view_key, is_coarse
from mha_viz.figures.layout.view import View
from mha_viz.models.getting import catalog
from mha_viz.numerals import format_done
from mha_viz.request import Request
from mha_viz.view.quantities import QUANTITIES, WEIGHT
from mha_viz.view.settings import DEFAULTS

ELSEWHERE_KEY = "explorer_elsewhere"  # session key: the cases of other sentences that the page offers
LEFT_HEADS_KEY = "heads_before_layers"  # session key: the model, and its HEAD_PARAMETERS before a map per layer
HEAD_PARAMETERS = ("head", "on")
DRAWN_KEY = "explorer_drawn"  # session key: the request and the view key of the drawing on screen
INTRODUCTION = "Each square shows where one attention head looks."
ASKED_KEY = "reasons_asked"  # session key: the head and the reading that the browser has asked about
MAX_LISTED = 3  # maximum number of listed groups of heads
_SKELETON = '<div class="mha-skeleton" aria-hidden="true"><b></b><b></b></div>'  # so that the page is never empty


class PageMode(Protocol):
    """A mode of the page, such as switching heads off.

    Attributes:
        drawing_json: its part of the drawing, as JSON.

    ``show`` shows text above the drawing and returns charts to download.
    """

    @property
    def drawing_json(self) -> str: ...
    def show(self, open_head: Head) -> list[PageChart]: ...


def draw(page: PageReading, make_mode: Callable[[PageReading], PageMode | None], on_toggle: Callable[[], None]) -> None:
    """Draw a reading, with remarks on what could not be read or followed.

    Args:
        page: the reading.
        make_mode: creates the mode; called if the URL has ``off``, even if no head is off.
        on_toggle: called when a head is switched off or on.
    """
    mode = make_mode(page) if "off" in page.url.parameters else None
    set_title(str(page.heads[0]), quote_for_title(page.url.sentence))
    _report_limits(page)
    gold.show_case(page)
    _show_question(page)
    explains = _has_reasons(page)
    charts = _show_heads(page, mode, on_toggle, explains)
    charts += _show_gold_and_averages(page)
    download_panel.show_reading_downloads(page.attention, page.heads, partial(_read_view, page), charts)
    if explains:
        _answer_browser(page.plain_request, page.attention.key)


def _report_limits(page: PageReading) -> None:
    """Report which parts of the text or the link cannot be shown, and which part of a model is shown.

    Also report if numbers have fewer than three decimals, and the progress of a study of the roles.
    """
    location, attention = page.url.location, page.attention
    inference.report_cut_text(page)
    inference.report_unknown_text(attention)
    unread_parameters = ["tray"] if location.tray and not comparison.read(location.tray)[1] else []
    missing_tokens = [f"token {token}" for token in location.tokens if token >= page.token_count]
    missing_heads = [str(head) for head, exists in page.requested_heads.items() if not exists]
    report_ignored([*missing_heads, *location.list_ignored("explore"), *missing_tokens, *unread_parameters])
    describe_part(attention)
    if is_coarse(attention):
        show_remark(
            "In a text as long as this one, numbers on the page are accurate to within 0.2% of the largest in their "
            "row. Files have the exact numbers."
        )
    show_study_progress(page)


def _show_heads(
    page: PageReading, mode: PageMode | None, on_toggle: Callable[[], None], explains: bool
) -> list[PageChart]:
    """Show the drawing below the output of the ``mode``. Return the mode's charts.

    ``explains``: whether the page explains links.
    """
    st.session_state[DRAWN_KEY] = _identify_request(page.url), compute_view_key(page.attention)
    mode_container = st.container()
    open_count = st.session_state.get(search_field.OPEN_COUNT_KEY, 0)
    view_fields = describe_view(page, open_count, mode.drawing_json if mode else None)
    packet = get_model_service().pack_reading(page.attention, page.heads, _find_ranked_link(page), page.opening)
    callbacks = {
        "view": _on_view,
        "compare": _on_compare,
        "card": _on_card,
        "measure": _on_measure,
        "off": on_toggle,
        "why": _on_why,
        "elsewhere": _on_elsewhere,
    }
    cases = st.session_state[ELSEWHERE_KEY] = corpus_cases.find_cases(page)
    view_fields |= corpus_cases.describe_cases(page, cases) | {"explains": explains}
    draw_explorer(packet, encode_badges(page, view_fields), "explorer", callbacks)
    show_pending_error()
    if mode is None:
        return []
    with mode_container:
        return mode.show(page.heads[0])


def _find_ranked_link(page: PageReading) -> RankedLink | None:
    """Return the link by which heads are ranked; None if there is none or its tokens do not exist."""
    link, attention = page.url.location.link, page.attention
    if link is None or link[0] >= len(attention.queries) or link[1] >= len(attention.keys):
        return None
    return RankedLink(*link, words=page.url.location.is_in_words)


def _read_view(page: PageReading) -> View:
    """Return the view on screen. If the URL names no head, it includes the pin of the first view."""
    return parse_view(
        address.get_parameters(), page.opening.pin if page.url.location.head is None else None, page.token_count
    )


def _show_gold_and_averages(page: PageReading) -> list[PageChart]:
    """Compare the open head with the gold annotation, if there is any, and show averages over several lines.

    Return the charts of the averages.
    """
    if page.attention.quantity != WEIGHT:
        description = QUANTITIES[page.attention.quantity].about
        show_remark(f"{description} Roles were measured on weights, so they are not shown here.")
    elif page.gold is not None:
        gold.show_gold(page, page.gold)
    elif not page.is_part and isinstance(annotation_error := find_annotation(page.url.text), CorpusError):
        show_error(annotation_error)
    return averages.show_averages(page) if "\n" in page.url.text else []


def _show_question(page: PageReading) -> None:
    """Say which score a gradient belongs to, and show the controls of its question; nothing for other quantities."""
    location = page.url.location
    if not QUANTITIES[location.request.quantity].of_answer:
        return
    if not QUANTITIES[page.attention.quantity].of_answer:  # the reason was already shown
        asking.show_controls(None, location)
        return
    with report_errors(show_error):
        question = asking.show_question(page.model, page.attention, location)
        if question is not None:
            show_remark(f"Each number is a link’s first-order contribution to {question.score}.")


@report_errors()
def _on_view() -> None:
    """Apply a change of the view, unless the message is about an earlier text."""
    view = read_message("explorer", "view")
    url = address.get_url()
    if _is_drawn(view, url):
        changes = address.select_accepted(view)
        address.go(**changes | _change_quantity(url.location, changes.get("shown")))


def _is_drawn(event: Mapping[str, object], url: Url) -> bool:
    """Return whether a message is about the text that is requested now, and not about an earlier one."""
    return st.session_state.get(DRAWN_KEY) == (_identify_request(url), event.get("of"))


def _identify_request(url: Url) -> tuple[str, ...]:
    """Return the parts of the request that identify its tokens and, for an encoder–decoder, its heads."""
    request = url.location.request
    return url.text, request.pair, request.target, request.part, request.prefix


def _change_quantity(location: Address, quantity: str | None) -> dict[str, str | None]:
    """Return the parameters that change together with the quantity.

    Norms have no common scale, and rollout has other heads; the heads that were open before it open again after it.
    """
    if (quantity or DEFAULTS["shown"]) == location.request.quantity:
        return {}
    changes = {"scale": address.choose_scale(quantity)}
    row, old_row = QUANTITIES.get(quantity or WEIGHT), QUANTITIES[location.request.quantity]
    is_of_layers = row is not None and row.of_layers
    if is_of_layers == old_row.of_layers:
        return changes
    model, heads = st.session_state.pop(LEFT_HEADS_KEY, ("", {}))
    if is_of_layers:
        parameters = address.get_parameters()
        heads = {name: parameters.get(name) for name in HEAD_PARAMETERS}
        st.session_state[LEFT_HEADS_KEY] = location.request.model, heads
    has_heads = not is_of_layers and model == location.request.model
    return changes | (heads if has_heads else dict.fromkeys(HEAD_PARAMETERS))


@report_errors()
def _on_compare() -> None:
    """Add the head on screen to the compared heads."""
    event = read_message("explorer", "compare")
    url = address.get_url()
    if DRAWN_KEY in st.session_state and not _is_drawn(event, url):  # a new session has drawn nothing yet
        st.toast("The sentence has changed. Press **+ Compare** again once it is drawn.")
        return
    try:
        name, head = str(event.get("model", "")), Head.parse(str(event.get("head")))
        request = Request(name, url.sentence, url.location.request.pair)
        request = set_part(request, catalog.resolve(name), url.location)
        if not request.part:
            request = replace(request, text=url.get_full_text(url.sentence), **address.read_switched_off(event))
        if url.location.request.prefix:
            st.toast("The texts of My heads are read without the prefix in this link.")
        heads, _ = comparison.read(url.location.tray)
        layer = f"Layer {head.layer}" if QUANTITIES[url.location.request.quantity].of_layers else ""
        address.go(tray=comparison.write(comparison.add(heads, ComparedHead(request, head), layer)))
    except MhaVizError as error:
        st.toast(escape_markdown(str(error)))  # the button may be far from where errors are shown
        show_error_later(error)


@report_errors()
def _on_card() -> None:
    """Open the card of a head on the Roles page."""
    with suppress(UnknownHead):
        head = Head.parse(str(read_sent_value("explorer", "card")))
        parameters = {name: value for name, value in address.get_parameters().items() if name not in ("on", "corpus")}
        navigation.open_page("roles", {**parameters, "head": str(head)})


@report_errors()
def _on_elsewhere() -> None:
    """Read another sentence in which the open head plays its role."""
    offered_cases, number = st.session_state.get(ELSEWHERE_KEY, []), read_sent_value("explorer", "elsewhere")
    if (
        isinstance(number, int)
        and 0 <= number < len(offered_cases)
        and (changes := corpus_cases.make_case_parameters(offered_cases[number]))
    ):
        address.go(**dict.fromkeys(address.get_parameters()) | changes)


@report_errors()
def _on_why() -> None:
    """Open the page *Why heads differ*."""
    navigation.open_page("why heads differ", {})


def warm_up() -> None:
    """Load the default model after the first picture was sent; errors are reported when the model is requested."""
    with suppress(MhaVizError):
        model = catalog.choose_default()
        if is_ready(model):
            get_model_service().warm(model)


def read_page(url: Url) -> PageReading | None:
    """Return the reading of the page (:func:`inference.read_nearest`); show a placeholder until it is drawn."""
    apply_style("skeleton")
    skeleton = st.empty()
    skeleton.html(_SKELETON)
    page = None
    try:
        with st.container():  # one container, so that remarks that come and go do not redraw what is below
            page = inference.read_nearest(url, url.location, reports_source=False)
    finally:
        if page is None:
            skeleton.empty()
    return page and continuation.mark_written_text(page)


def report_model_limits(page: PageReading) -> None:
    """Report whether only the model's weights can be read, and which heads share keys and values."""
    if page.facts is None:
        return
    if page.facts.weights_only:
        show_remark(
            "Only the attention weights of this model can be read, so norms, parts of a score, "
            "switching heads off, predictions and the steps inside a head are not available."
        )
    group_size = page.facts.heads_per_key
    if group_size > 1:
        joiner = " and " if group_size == 2 else " to "
        heads = range(0, page.attention.heads, group_size)
        groups = [f"H{first}{joiner}H{first + group_size - 1}" for first in heads]
        group_list = ", ".join(groups[:MAX_LISTED]) + (", and so on," if len(groups) > MAX_LISTED else "")
        show_remark(f"In each layer {group_list} share a key and a value; their queries differ.")


def show_study_progress(page: PageReading) -> None:
    """Show the progress of the study of this model over the built-in sentences, while it runs."""
    if page.summary.is_measured:
        return
    study, error = page.study
    if study is not None:
        show_progress(
            study,
            lambda job: f"Measuring the roles of {escape_markdown(page.model.label)}: {format_done(job.fraction)}",
        )
    elif error is not None and not isinstance(error, Cancelled):  # do not report a study that a visitor stopped
        show_error(error)


@report_errors()
def _on_measure() -> None:
    """Start measuring the model on the page, or join its study if it is under way."""
    studies.start(read_model(address.get_url().location), make_built_in_corpus())


# ---- Why the links of the open head look where they do, and what they write ----------------------------------------


def _has_reasons(page: PageReading) -> bool:
    """Return whether the page explains links: weights of one stack, with all heads on, in a short text.

    False in the view for a class, and for a model of which only the weights can be read.
    """
    attention = page.attention
    if page.is_part or attention.quantity != WEIGHT or page.token_count > MAX_EXPLAINED:
        return False
    if page.url.location.request.off or address.is_class_view():
        return False
    return page.facts is not None and not page.facts.weights_only


@st.fragment
@report_errors(lambda error: None)
def _answer_browser(request: Request, key: str) -> None:
    """Send the reasons of the head that the browser has asked about; nothing if they are not available.

    The browser asks without a run of the whole page.
    """
    open_question = st.session_state.get(ASKED_KEY, {})  # kept until it is answered: another run may end this one
    answer: dict[str, Any] = {}
    container = st.container()  # created in every run, so that the elements below do not move
    if open_question.get("key") == key:
        with container, suppress(MhaVizError):
            head = Head.parse(str(open_question.get("head")))
            future = get_model_service().ask_cached(verbs.explain_links, request, head)
            answer = {"key": key, "head": str(head)} | _pack_reasons(inference.wait_for_result(future, ""))
    st.session_state.pop(ASKED_KEY, None)
    exchange_reasons(answer, "reasons", _on_ask)


def _pack_reasons(reasons: LinkReasons) -> dict[str, Any]:
    """Return the reasons for the browser.

    Keys: "groups", the names that codes refer to; "codes", a byte for each query and key as base64, or None; "words",
    of each key, or None.
    """
    codes = None if reasons.codes is None else base64.b64encode(reasons.codes.tobytes()).decode()
    return {"groups": GROUPS, "codes": codes, "words": reasons.words}


@report_errors()
def _on_ask() -> None:
    """Remember which head the browser asks about."""
    st.session_state[ASKED_KEY] = read_message("reasons", "ask")
