"""The frame of every page: settings, masthead and navigation."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import cache, partial
from html import escape

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext

from mha_viz import process
from mha_viz.app.service import caches, visitors
from mha_viz.app.url import address, comparison
from mha_viz.app.url.lesson import VIEW_PARAMETER
from mha_viz.app.widgets import classroom, navigation, request, search_field, url_controls
from mha_viz.app.widgets.components import SCHEME, apply_style, draw_more_menu, watch_page
from mha_viz.app.widgets.navigation import make_pages
from mha_viz.app.widgets.parts import (
    make_fault,
    read_message,
    report_errors,
    set_title,
    show_error,
    show_error_later,
    show_pending_error,
    show_remark,
)
from mha_viz.attention import Head
from mha_viz.errors import MhaVizError, MissingGlyphWarning
from mha_viz.files.assets import asset_path
from mha_viz.models.getting import catalog

_LOG = logging.getLogger(__name__)
# The kind of file that a page can save for others; "figures" for all other pages.
SAVED_KINDS = {"explore": "html", "compare": "html", "about": ""}
MORE_KEY = "more_menu"
ICON = str(asset_path("icon.svg"))
_set_environment = cache(process.set_environment)
_inside_frame: ContextVar[bool] = ContextVar("inside_frame")

HEAD_PAGES = ("compare", "roles", "inside_a_head")  # pages that show the head that the URL names


def show_page() -> None:
    """Apply the settings, draw the navigation, and run the page that the URL names."""
    _set_environment()  # for servers that did not do it, as under `streamlit run app.py`
    warnings.simplefilter("ignore", MissingGlyphWarning)  # the page shows it; the log must not contain visitors' words
    st.set_page_config(page_icon=ICON, layout="wide")
    caches.get_model_service().identify_asker = visitors.identify_asker
    with address.read_once() as cut_parameters:
        _show_frame(cut_parameters)


def _show_frame(cut_parameters: Sequence[str]) -> None:
    pages = make_pages()
    current_page = st.navigation(pages, position="hidden")
    navigation.show_pending_link(current_page)
    apply_style("frame")
    set_title(current_page.title, *_list_title_words())
    _show_masthead(pages, current_page)
    st.html(f'<h1 class="mha-heading">{escape(current_page.title)}</h1>')
    if cut_parameters:
        parameter_names = ", ".join(name[:30] for name in cut_parameters[:5])
        show_remark(f"This link is too long. These parts were shortened: {parameter_names}.")
    navigation.show_tour(pages, current_page)
    if {address.CLASS, VIEW_PARAMETER} & address.get_url().parameters.keys():
        classroom.show_class_view(pages, current_page, partial(_show_links, pages, current_page))
    token = _inside_frame.set(True)
    try:
        with report_errors(show_error):
            current_page.run()
    finally:
        _inside_frame.reset(token)
    show_pending_error()  # the error of a callback, if the page has not shown it


def on_script_error(error: Exception) -> bool:
    """Show the page with one sentence in place of Streamlit's error box; called by ``streamlit.App``.

    The traceback goes to the log. Errors that reach this function were raised before the page ran, by a value that no
    control of the page can send.
    """
    context = get_script_run_ctx()
    if context is None:
        return False
    _delete_unreadable_values(context)
    if context.fragment_ids_this_run:
        return True  # this part of the page stays as it was
    show_error_later(make_fault())
    try:
        show_page()
    except Exception:
        _LOG.exception("The page cannot be drawn after an error of the class %s", type(error).__name__)
        return False
    return True


def _list_title_words() -> list[str]:
    """Return the model and head in the URL as words of the page title.

    A page that can be more specific sets its own title.
    """
    location = address.get_url().location
    subject = [str(location.head)] if location.head else []
    if location.request.model:
        with suppress(MhaVizError):
            subject.append(catalog.resolve(location.request.model).label)
    return subject


def _delete_unreadable_values(context: ScriptRunContext) -> None:
    """Delete values that no control can read, because Streamlit would raise the same error in every run."""
    values = context.session_state._state._new_widget_state
    for name in list(values):
        try:
            _ = values[name]
        except KeyError:  # the control is no longer on the page
            continue
        except Exception:
            del values[name]


def _show_masthead(pages: list[st.Page], current_page: st.Page) -> None:
    """Show the top of the page: the app's name, links to the pages, the search and, at the right, links about the app.

    The links keep the URL parameters, so that visiting another page loses nothing.
    """
    with st.container(key="mast", horizontal=True, vertical_alignment="center"):
        if not address.is_class_view():
            st.html('<span class="mha-mark">mha_viz</span>', width="content")
            with st.container(key="pages", width="content", horizontal=True, vertical_alignment="center"):
                _show_links(pages, current_page)
            with st.container(key="search_box"), report_errors(show_error):
                search_field.show_search_field(current_page.title.lower())
            navigation.show_tour_link(pages, current_page)
            page = navigation.get_page_name(current_page)
            draw_more_menu(_list_full_parameters(page), SAVED_KINDS.get(page, "figures"), MORE_KEY, _on_more)
            with st.container(key="about_way", width="content"):
                st.page_link(pages[-1], query_params=address.get_parameters())
        watch_page([page.title for page in pages].index(current_page.title), _on_linked)


def _show_links(pages: list[st.Page], current_page: st.Page) -> None:
    """Show links to all pages except the last."""
    parameters = address.get_parameters()
    head_count = len(comparison.read(parameters["tray"])[0]) if "tray" in parameters else 0
    count_note = f" ({head_count})" if head_count else ""
    opening = request.list_opening_parameters() if current_page.title == pages[0].title else {}
    for page in pages[:-1]:
        label = f"{page.title}{count_note}" if page.url_path == "compare" else page.title
        extra_parameters = opening if page.url_path in HEAD_PAGES else {}
        st.page_link(page, label=label, query_params=parameters | extra_parameters)


@report_errors()
def _on_linked() -> None:
    message = read_message(SCHEME, "linked")
    if "chapter" in message:
        url_controls.go(chapter=str(message["chapter"]) or None)
    elif "head" in message:
        url_controls.go(head=str(Head.parse(str(message["head"]))), on=None, pin=None, link=None)
    else:
        url_controls.go(kinds=str(message.get("kinds") or "") or None)


def _list_full_parameters(name: str) -> dict[str, str]:
    """Return the parameters that a link must add to the URL to show the same view on another server."""
    if name not in (*classroom.TEXT_PAGES, "roles"):
        return {}
    with suppress(MhaVizError):  # the model in the URL may be invalid
        parameters = request.list_full_parameters(address.get_url())
        return {"model": parameters["model"]} if name == "roles" else parameters
    return {}


@report_errors()
def _on_more() -> None:
    """Open the view for a class, or the ready-made lesson, which uses that view."""
    if "lesson" not in read_message(MORE_KEY, "class"):
        address.go(**{address.CLASS: "1"})
        return
    page, parameters = classroom.begin_first_hour()
    if page == navigation.get_page_name(make_pages()[0]):
        address.open_at(parameters)
    else:
        navigation.open_page(page, parameters)


def ensure_frame() -> None:
    """Make sure that the page runs inside the frame. Every page must call this first.

    After a server start, Streamlit runs the file in ``pages/`` of the first deep link without the frame. In that case,
    register the pages and run again.
    """
    try:
        _inside_frame.get()
    except LookupError:
        st.navigation(make_pages(), position="hidden")
        st.rerun()
