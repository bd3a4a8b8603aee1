"""The frame of every page: settings, navigation, type."""

from __future__ import annotations

import logging
import warnings
from contextlib import suppress
from contextvars import ContextVar
from html import escape
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext

from mha_viz import process
from mha_viz.attention import Head
from mha_viz.errors import MhaVizError, MissingGlyphWarning
from mha_viz.files.assets import app_root
from mha_viz.models import catalog
from mha_viz.ui import address, classroom, navigation, request, search_field, tour, tray
from mha_viz.ui.components import scheme
from mha_viz.ui.components.share import share
from mha_viz.ui.navigation import pages
from mha_viz.ui.parts import complain, complain_later, entitle, fault, guarded, remark, say_complaint, sent

_LOG = logging.getLogger(__name__)
# The files that pages without a sentence field can save for others; the field has a "Copy link" button of its own.
SAVED = {"compare": "html", "roles": "figures", "why_heads_differ": "figures", "questions": "", "about": ""}
_inside: ContextVar[bool] = ContextVar("inside_frame")

OF_A_HEAD = ("compare", "roles", "inside_a_head")  # pages that show the head that the URL names

_STYLE = """
<style>
.stMainBlockContainer { max-width: 1480px; padding: 0.5rem 2.6rem 3rem; }
.stMainBlockContainer > .stVerticalBlock { gap: 0.9rem; }
@media (max-width: 640px) { .stMainBlockContainer { padding: 0.5rem 1rem 2rem; } }
.stMainBlockContainer:has(.st-key-explorer) { max-width: 1920px; }
header[data-testid="stHeader"] { height: 3rem; background: none; pointer-events: none; }
header[data-testid="stHeader"] * { pointer-events: auto; }
.st-key-mast, .st-key-pages { gap: 0.4rem; min-height: 2.2rem; }
[data-testid="stLayoutWrapper"]:has(> .st-key-search_box) {
  flex: 0 1 270px; min-width: 200px; margin-left: auto; position: relative; z-index: 70;
}
@media (max-width: 1400px) {
  [data-testid="stLayoutWrapper"]:has(> .st-key-search_box) { flex-basis: 212px; min-width: 150px; }
  .st-key-tour_way p > span:first-child:not(:last-child) { display: none; }
}
@media (min-width: 1081px) and (max-width: 1200px) {
  .st-key-mast, .st-key-pages { gap: 0; }
  .st-key-pages a[data-testid] { padding-inline: 0.35rem; }
  .mha-mark { padding-right: 0.4rem; }
}
@media (max-width: 1080px) { [data-testid="stLayoutWrapper"]:has(> .st-key-search_box) { flex-basis: 270px; } }
@media (min-width: 641px) and (max-width: 1080px) {
  [data-testid="stLayoutWrapper"]:has(> .st-key-pages) { order: 1; flex-basis: 100%; }
}
@media (max-width: 640px) {
  [data-testid="stLayoutWrapper"]:has(> .st-key-pages) { flex: 1 1 calc(100% - 7rem); min-width: 0; }
  .st-key-pages { flex-wrap: nowrap; overflow-x: auto; scrollbar-width: none; }
  .st-key-pages > * { flex: none; }
  .st-key-pages[data-more] { mask-image: linear-gradient(to left, transparent, #000 2.5rem); }
  [data-testid="stLayoutWrapper"]:has(> .st-key-search_box) { flex: 1 1 9rem; min-width: 9rem; margin-left: 0; }
  [data-testid="stLayoutWrapper"]:has(> .st-key-class_way) { display: none; }
  .stButtonGroup [role="radiogroup"]:has([data-variant="segmented_control"]) { gap: 6px; }
  .stButtonGroup [data-variant="segmented_control"] { margin: 0; border-width: 1px; border-radius: 6px; }
  .stButtonGroup button:not([aria-checked="true"]) { border-color: light-dark(#dedad2, #33383d) !important; }
}
.mha-mark { font: 600 1.15rem "Source Serif", Georgia, serif; padding-right: 0.9rem; white-space: nowrap; }
.mha-about { font: 400 1.35rem/1.35 "Source Serif", Georgia, serif; margin: 0; overflow-wrap: anywhere; }
.mha-about q { display: -webkit-inline-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; }
.mha-about span { font: 400 0.95rem "Source Sans", sans-serif; opacity: 0.7; white-space: nowrap; margin-left: 1rem; }
.mha-problem, .mha-remark { padding: 2px 0 2px 14px; border-left: 3px solid #b3541e; }
.mha-problem, .mha-remark { max-width: 90ch; overflow-wrap: anywhere; }
.mha-remark { border-left-color: rgba(127, 127, 127, 0.5); font-size: 0.94rem; }
.mha-problem p, .mha-remark p { margin: 2px 0; }
.mha-problem p:first-child { font-weight: 600; }
[class*="st-key-wide_"] { overflow-x: auto; }
[class*="st-key-wide_"][data-more] { mask-image: linear-gradient(to left, transparent, #000 2.5rem); }
[class*="st-key-wide_"]:not([data-scrolls]) .mha-layers { display: none; }
.stElementContainer:has(.mha-layers) { position: sticky; left: 0; z-index: 2; width: 0; height: 0; }
.mha-layers { background: light-dark(#fffefb, #14171a); padding-right: 5px; text-align: right; }
.stElementContainer[data-retained]:has(.stPlotlyChart) { display: none !important; }
@media (hover: none) { .js-plotly-plot .modebar-container { display: none; } }
.st-key-head_card [data-testid="stPageLink"] p { white-space: normal; text-decoration: underline; }
[data-testid="stLayoutWrapper"]:has(> .st-key-tour) { position: sticky; top: 0; z-index: 50; }
.st-key-tour {
  border-left: 4px solid light-dark(#0b5cad, #79c0f1); padding: 10px 14px; gap: 0.2rem;
  background: light-dark(#fffefb, #14171a); box-shadow: 0 6px 18px rgb(0 0 0 / 0.18);
}
@media (max-height: 500px) { [data-testid="stLayoutWrapper"]:has(> .st-key-tour) { position: static; } }
.st-key-tour_ways { gap: 1.2rem; }
.st-key-tour button, .st-key-tour a[data-testid] { min-height: 0; padding: 0.25rem 0; line-height: 1.4; }
.st-key-tour_way button, .st-key-class_way button { min-height: 0; padding: 0.25rem 0.5rem; line-height: 1.4; }
.st-key-tour p, .st-key-tour_way p, .st-key-class_way p { font-size: 0.94rem; }
button[kind="primary"]:enabled p, [data-tag], [data-tag] span { color: light-dark(#ffffff, #14171a); }
.stElementContainer:has(> .stHtml h1) { position: absolute; width: 1px; height: 1px; overflow: hidden; }
.mha-heading { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
:is(a, button, main, summary, [data-tag], [data-testid="stToast"]):focus-visible:focus-visible {
  outline: 2px solid light-dark(#0b5cad, #79c0f1); outline-offset: 2px; /* Streamlit's own has 2.3 : 1 */
}
:is(main, summary, .stButtonGroup button):focus-visible:focus-visible { outline-offset: -2px; }
@media (hover: none) { [data-testid="stElementToolbar"] { display: none; } }
[data-testid="stHeaderActionElements"] { display: none; } /* one stop of the keyboard per heading, all of one name */
@media (pointer: coarse) {
  a[data-testid="stPageLink-NavLink"], .stButton button, .stDownloadButton button { min-height: 2.75rem; }
}
@media (forced-colors: active) {
  a[data-testid="stPageLink-NavLink"][aria-current] { outline: 1px solid; }
  .stButtonGroup button[data-selected] {
    forced-color-adjust: none; background: Highlight !important; color: HighlightText !important;
  }
  .stRadio label > div > div:first-child, .stCheckbox label > :nth-child(2) { /* the mark, and the dot or thumb in it */
    forced-color-adjust: none; background-color: Canvas; border-color: ButtonText; outline: 1px solid ButtonText;
  }
  .stRadio label > div > div:first-child > div { background: Canvas; }
  .stCheckbox label > :nth-child(2) > div { background: ButtonText; }
  .stRadio label[data-selected] > div > div:first-child, .stCheckbox label[data-selected] > :nth-child(2) {
    background-color: Highlight; border-color: Highlight;
  }
  :is(.stRadio, .stCheckbox) label[data-selected] > div > div:first-child > div,
  .stCheckbox label[data-selected] > :nth-child(2) > div { background: HighlightText; }
  :is(.stRadio, .stCheckbox) label:has(:focus-visible) { outline: 2px solid Highlight; outline-offset: 2px; }
}
.st-key-two_stacks > .stElementContainer:has(.stTextInput) { min-width: min(16rem, 100%); }
.stElementContainer:has(> .stHtml style), .st-key-leaving { display: none; }
</style>
"""


def show() -> None:
    """Apply settings and navigation, then run the page that the URL names."""
    process.prepare()  # without one, as under `streamlit run app.py`
    warnings.simplefilter("ignore", MissingGlyphWarning)  # the page shows it; the log must not contain visitors' words
    st.set_page_config(page_icon=str(app_root() / "assets" / "icon.svg"), layout="wide")
    cut_short = address.shorten()
    every_page = pages()
    here = st.navigation(every_page, position="hidden")
    navigation.depart(here)
    st.html(_STYLE)
    entitle(here.title, *_subject())
    _mast(every_page, here)
    st.html(f'<h1 class="mha-heading">{escape(here.title)}</h1>')
    if cut_short:
        shortened = ", ".join(name[:30] for name in cut_short[:5])
        remark(f"This link is longer than can be read. These parts of it were shortened: {shortened}.")
    tour.show(every_page, here)
    classroom.show(every_page, here)
    token = _inside.set(True)
    try:
        with guarded(complain):
            here.run()
    finally:
        _inside.reset(token)
    say_complaint()  # of a callback, if the page had no place to show it


def on_script_error(error: Exception) -> bool:
    """For ``streamlit.App``: show the page with one sentence in place of an error box; the traceback goes to the log.

    Errors that reach this function were raised before the page ran: by a value that no control of the page can send.
    """
    context = get_script_run_ctx()
    if context is None:
        return False
    _forget_unreadable(context)
    if context.fragment_ids_this_run:
        return True  # this part of the page stays as it was
    complain_later(fault())
    try:
        show()
    except Exception:
        _LOG.exception("The page cannot be drawn after %r", error)
        return False
    return True


def _subject() -> list[str]:
    """What the URL asks for, in the words of a page title; a page that can be more specific sets its own."""
    where = address.read(address.now())
    subject = [str(where.head)] if where.head else []
    if where.model:
        with suppress(MhaVizError):
            subject.append(catalog.resolve(where.model).label)
    return subject


def _forget_unreadable(context: ScriptRunContext) -> None:
    """Drop the values that no control can read; otherwise Streamlit would raise the same error in every run."""
    values = context.session_state._state._new_widget_state
    for name in list(values):
        try:
            _ = values[name]
        except KeyError:  # of a control that is no longer on the page
            continue
        except Exception:
            del values[name]


def _mast(every_page: list[st.Page], here: st.Page) -> None:
    """The app's name, the links to the pages and the search. The links carry the parameters along, so that visiting
    another page loses nothing."""
    parameters, name = address.now(), here.title.lower()
    open_first = request.open_on_first_view() if here.title == every_page[0].title else {}
    with st.container(key="mast", horizontal=True, vertical_alignment="center"):
        st.html('<span class="mha-mark">mha_viz</span>', width="content")
        with st.container(key="pages", width="content", horizontal=True, vertical_alignment="center"):
            for other in every_page:
                compared = len(tray.read(parameters.get("tray"))[0]) if other.url_path == "compare" else 0
                label = f"{other.title} ({compared})" if compared else other.title
                carried = open_first if other.url_path in OF_A_HEAD else {}
                st.page_link(other, label=label, query_params=parameters | carried)
        if not address.in_class():
            with st.container(key="search_box"), guarded(complain):
                search_field.show(name)
        tour.link(every_page, here)
        classroom.link()
        _share(here)
        scheme.watch([page.title for page in every_page].index(here.title), _on_linked)


@guarded()
def _on_linked() -> None:
    name = sent(scheme.KEY, "linked")
    address.go(head=str(Head.parse(str(name))), on=None, pin=None, link=None)


def _share(here: Any) -> None:
    """The “Copy link” button of a page without a sentence field."""
    if here.url_path not in SAVED or address.in_class():
        return
    full = request.full(request.page_request()) if here.url_path in ("compare", "roles") else {}
    share({"model": full["model"]} if here.url_path == "roles" else full, SAVED[here.url_path])


def view() -> None:
    """Must be called first by every page: a page that was started without the frame restarts inside it.

    After a server start Streamlit runs the first deep link as a bare file of ``pages/``.
    """
    try:
        _inside.get()
    except LookupError:
        st.navigation(pages(), position="hidden")
        st.rerun()
