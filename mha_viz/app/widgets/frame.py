"""The frame of every page: settings, navigation and fonts."""

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
from mha_viz.app.url.lesson import NUMBER
from mha_viz.app.widgets import bound, classroom, navigation, request, search_field
from mha_viz.app.widgets.components import SCHEME, apply_style, draw_more_menu, watch_page
from mha_viz.app.widgets.navigation import make_pages
from mha_viz.app.widgets.parts import (
    complain,
    complain_later,
    guarded,
    make_fault,
    read_message,
    remark,
    say_complaint,
    set_title,
)
from mha_viz.attention import Head
from mha_viz.errors import MhaVizError, MissingGlyphWarning
from mha_viz.files.assets import asset_path
from mha_viz.models.getting import catalog

_LOG = logging.getLogger(__name__)
# The files that pages can save for others.
SAVED_KINDS = {"explore": "html", "compare": "html", "about": ""}
MORE_KEY = "more_menu"
ICON = str(asset_path("icon.svg"))
_prepare = cache(process.set_environment)
_inside_frame: ContextVar[bool] = ContextVar("inside_frame")

HEAD_PAGES = ("compare", "roles", "inside_a_head")  # pages that show the head that the URL names


def show_page() -> None:
    """Apply the settings, draw the navigation, and run the page that the URL names."""
    _prepare()  # without one, as under `streamlit run app.py`
    warnings.simplefilter("ignore", MissingGlyphWarning)  # the page shows it; the log must not contain visitors' words
    st.set_page_config(page_icon=ICON, layout="wide")
    caches.model_service().asker = visitors.asker
    with address.read_once() as cut_short:
        _show_frame(cut_short)


def _show_frame(cut_short: Sequence[str]) -> None:
    every_page = make_pages()
    here = st.navigation(every_page, position="hidden")
    navigation.follow_departure(here)
    apply_style("frame")
    set_title(here.title, *_list_title_words())
    _show_masthead(every_page, here)
    st.html(f'<h1 class="mha-heading">{escape(here.title)}</h1>')
    if cut_short:
        shortened = ", ".join(name[:30] for name in cut_short[:5])
        remark(f"This link is too long. These parts were shortened: {shortened}.")
    navigation.show_tour(every_page, here)
    if {address.CLASS, NUMBER} & address.url().parameters.keys():
        classroom.show_class_view(every_page, here, partial(_show_links, every_page, here))
    token = _inside_frame.set(True)
    try:
        with guarded(complain):
            here.run()
    finally:
        _inside_frame.reset(token)
    say_complaint()  # of a callback, if the page had no place to show it


def on_script_error(error: Exception) -> bool:
    """Show the page with one sentence in place of Streamlit's error box; called by ``streamlit.App``.

    The traceback goes to the log. Errors that reach this function were raised before the page ran, by a value that no
    control of the page can send.
    """
    context = get_script_run_ctx()
    if context is None:
        return False
    _forget_unreadable(context)
    if context.fragment_ids_this_run:
        return True  # this part of the page stays as it was
    complain_later(make_fault())
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
    where = address.url().where
    subject = [str(where.head)] if where.head else []
    if where.request.model:
        with suppress(MhaVizError):
            subject.append(catalog.resolve(where.request.model).label)
    return subject


def _forget_unreadable(context: ScriptRunContext) -> None:
    """Delete the values that no control can read; otherwise Streamlit would raise the same error in every run."""
    values = context.session_state._state._new_widget_state
    for name in list(values):
        try:
            _ = values[name]
        except KeyError:  # of a control that is no longer on the page
            continue
        except Exception:
            del values[name]


def _show_masthead(every_page: list[st.Page], here: st.Page) -> None:
    """Show the top of the page: the app's name, links to the pages, the search and, at the right, links about the app.

    The links keep the URL parameters, so that visiting another page loses nothing.
    """
    with st.container(key="mast", horizontal=True, vertical_alignment="center"):
        if not address.is_class_view():
            st.html('<span class="mha-mark">mha_viz</span>', width="content")
            with st.container(key="pages", width="content", horizontal=True, vertical_alignment="center"):
                _show_links(every_page, here)
            with st.container(key="search_box"), guarded(complain):
                search_field.show_search_field(here.title.lower())
            navigation.show_tour_link(every_page, here)
            page = navigation.get_page_name(here)
            draw_more_menu(_list_full_parameters(page), SAVED_KINDS.get(page, "figures"), MORE_KEY, _on_more)
            with st.container(key="about_way", width="content"):
                st.page_link(every_page[-1], query_params=address.get_parameters())
        watch_page([page.title for page in every_page].index(here.title), _on_linked)


def _show_links(every_page: list[st.Page], here: st.Page) -> None:
    """Show links to all pages except the last."""
    parameters = address.get_parameters()
    heads = len(comparison.read(parameters["tray"])[0]) if "tray" in parameters else 0
    compared = f" ({heads})" if heads else ""
    open_first = request.open_on_first_view() if here.title == every_page[0].title else {}
    for other in every_page[:-1]:
        label = f"{other.title}{compared}" if other.url_path == "compare" else other.title
        carried = open_first if other.url_path in HEAD_PAGES else {}
        st.page_link(other, label=label, query_params=parameters | carried)


@guarded()
def _on_linked() -> None:
    target = read_message(SCHEME, "linked")
    if "chapter" in target:
        bound.go(chapter=str(target["chapter"]) or None)
    elif "head" in target:
        bound.go(head=str(Head.parse(str(target["head"]))), on=None, pin=None, link=None)
    else:
        bound.go(kinds=str(target.get("kinds") or "") or None)


def _list_full_parameters(name: str) -> dict[str, str]:
    """Return the parameters that a link to this page needs besides the URL to show the same elsewhere."""
    if name not in (*classroom.TEXT_PAGES, "roles"):
        return {}
    with suppress(MhaVizError):  # the model that the page is about
        full = request.list_full_parameters(address.url())
        return {"model": full["model"]} if name == "roles" else full
    return {}


@guarded()
def _on_more() -> None:
    """Open the view for a class, or the ready-made lesson, which uses that view."""
    if "lesson" not in read_message(MORE_KEY, "class"):
        address.go(**{address.CLASS: "1"})
        return
    page, parameters = classroom.begin_first_hour()
    if page == navigation.get_page_name(make_pages()[0]):
        address.open_at(parameters)
    else:
        navigation.leave(page, parameters)


def ensure_frame() -> None:
    """Make sure that the page runs inside the frame. Every page must call this first.

    After a server start, Streamlit runs the first deep link as a bare file of ``make_pages/``; then restart inside the
    frame.
    """
    try:
        _inside_frame.get()
    except LookupError:
        st.navigation(make_pages(), position="hidden")
        st.rerun()
