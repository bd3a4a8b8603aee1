"""The view for a class: larger type, fewer controls, a QR code of the current page, and the open lesson.

``class=1`` in the URL turns it on. Answers are hidden until somebody asks for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import streamlit as st

from mha_viz.figures.chart import Chart
from mha_viz.numerals import counted
from mha_viz.ui import address, lesson, request
from mha_viz.ui.components import apply_style
from mha_viz.ui.lesson import NUMBER, OLD_NUMBER, PARAMETER, Lesson
from mha_viz.ui.navigation import name_of
from mha_viz.ui.parts import guarded, plain, remark, say_unused

LARGER = 1.2  # of charts and drawings
LOOPBACK = ("localhost", "127.0.0.1", "::1")
MODULE, WIDEST = 7, 540  # pixels of a QR code's square, for a camera at the back of a room, and of the whole code
WITH_A_TEXT = ("explore", "compare", "inside_a_head")  # pages whose sentence and head a link must name


def legible(chart: Chart) -> Any:
    """The chart for the page, drawn by Plotly; in a class, with letters that can be read from the last row."""
    from mha_viz.figures.chart_plotly import plotly  # imports Plotly and pandas, for which no first picture must wait

    return plotly(chart, LARGER if address.in_class() else 1)


@contextmanager
def answer(label: str = "Answer") -> Iterator[None]:
    """The block contains an answer, which is hidden in a class until somebody asks for it."""
    if address.in_class():
        with st.expander(label):
            yield
    else:
        yield


def show_class_view(pages: Sequence[Any], here: Any) -> None:
    """The class's panel above the page: the lesson's remark and navigation, the QR code, and how to make a lesson."""
    url = address.now()
    views, whole = lesson.read(url.get(PARAMETER))
    odd = [address.CLASS] if address.CLASS in url and not address.in_class() else []
    odd += [NUMBER] if NUMBER in url and lesson.number_of(url, views) is None else []
    say_unused([f"{name}={url[name][:30]}" for name in odd])
    if not address.in_class():
        return
    apply_style("classroom", {"var(--larger)": str(LARGER)})
    if not whole:
        remark("Part of this lesson could not be read; the other views are shown.")
    with st.container(key="classroom"):
        number = lesson.number_of(url, views)
        is_left = number is not None and lesson.is_left(views[number - 1], name_of(here), url, _seen(name_of(here)))
        if number is not None and not is_left:
            words = escape(views[number - 1].remark)
            st.html(f'<p class="mha-lesson"><small>{number} of {len(views)}</small> &ensp; {words}</p>')
        with st.container(horizontal=True, vertical_alignment="center"):
            _ways(pages, here, views, url, is_left)
            _builder(pages, here, views)
            with st.container(key="class_code", width="content"), st.popover("QR code", type="tertiary"):
                _code(here)


# ---- The lesson -----------------------------------------------------------------------------------------------


def _ways(pages: Sequence[Any], here: Any, views: Lesson, url: dict[str, str], is_left: bool) -> None:
    """The buttons for the next and the previous view, or back to the one that was left, and out of the class view."""
    number = lesson.number_of(url, views)
    if views and number is None:
        _to(pages, here, views, 1, ":primary[**Begin the lesson →**]")
    if number is not None and is_left:
        _to(pages, here, views, number, f":primary[**← View {number} of {len(views)}**]")
    elif number is not None and number > 1:
        _to(pages, here, views, number - 1, "← Back")
    if number is not None and number < len(views):
        _to(pages, here, views, number + 1, ":primary[**Next →**]")
    out = dict.fromkeys((address.CLASS, PARAMETER, NUMBER, *_old(url)))
    st.button("Leave the class view", key="class_out", type="tertiary", on_click=address.go, kwargs=out)


def _to(pages: Sequence[Any], here: Any, views: Lesson, number: int, label: str) -> None:
    """A control that leads to a view: a link if the view is on another page, a button if it is on this one, as in the
    tour."""
    view = views[number - 1]
    parameters = _with_lesson(views, number)
    page = _page(pages, view.page)
    if page.title == here.title:
        st.button(label, key=f"lesson_{number}", type="tertiary", on_click=address.open_at, args=(parameters,))
    else:
        st.page_link(page, label=label, query_params=parameters)


def _with_lesson(views: Lesson, number: int) -> dict[str, str]:
    """The URL parameters of a view of the lesson."""
    place = {PARAMETER: lesson.write(views) or "", NUMBER: str(number), address.CLASS: "1"}
    return {**views[number - 1].parameters, **place}


def _page(pages: Sequence[Any], name: str) -> Any:
    return next(page for page in pages if name_of(page) == name)


def _old(url: dict[str, str]) -> list[str]:
    """The parameter with which an older link counts its views, if this is one."""
    return [OLD_NUMBER] if lesson.is_old_number(url) else []


# ---- How a lesson is made -------------------------------------------------------------------------------------


def _builder(pages: Sequence[Any], here: Any, views: Lesson) -> None:
    label = f"Lesson: {counted(len(views), 'view')}" if views else "Make a lesson"
    with st.popover(label, type="tertiary", key="lesson_box"):
        st.markdown(
            "A lesson is a list of views in one link. Go to a view, write what the class should notice, and add it."
        )
        st.text_input("Remark", key="lesson_remark", max_chars=lesson.MAX_REMARK)
        st.button("Add this view", key="lesson_add", on_click=_add, args=(name_of(here),))
        for number, view in enumerate(views, 1):
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(f"{number}. {plain(_page(pages, view.page).title)}: {plain(view.remark)}", width="stretch")
                st.button("Remove", key=f"lesson_remove_{number}", on_click=_remove, args=(number,))
        if views:
            st.caption("Link to the whole lesson")
            path = _page(pages, views[0].page).url_path
            st.code(f"{_base(here)}/{path}?{_query(_with_lesson(views, 1))}", language=None, wrap_lines=True)


@guarded()
def _add(page: str) -> None:
    views, _ = lesson.read(address.now().get(PARAMETER))
    more = lesson.add(views, page, _seen(page), str(st.session_state.get("lesson_remark", "")))
    address.go(**{PARAMETER: lesson.write(more), NUMBER: str(len(more)), **dict.fromkeys(_old(address.now()))})
    st.session_state["lesson_remark"] = ""


@guarded()
def _remove(number: int) -> None:
    views, _ = lesson.read(address.now().get(PARAMETER))
    left = lesson.write(lesson.remove(views, number))
    address.go(**{PARAMETER: left, NUMBER: None, **dict.fromkeys(_old(address.now()))})


def _seen(page: str) -> dict[str, str]:
    """The parameters of the URL, with those that the page opens by itself."""
    return {**(request.full(address.url()) if page in WITH_A_TEXT else {}), **address.now()}


# ---- The QR code ----------------------------------------------------------------------------------------------


def _code(here: Any) -> None:
    """The QR code of the current page's address."""
    base = _base(here)
    if not base:
        return
    picture = qr_code(f"{base}/{here.url_path}?{_query(_seen(name_of(here)))}")
    if picture is None:
        remark("This view's link is too long for a QR code; use a shorter sentence or lesson.")
        return
    st.html(picture)
    if urlsplit(base).hostname in LOOPBACK:
        remark(f"Only this computer can open {base}. Start mha-viz with --host 0.0.0.0 for the others in the room.")


def qr_code(link: str) -> str | None:
    """A link as the image of a QR code (an ``img`` element); None if it is too long for one."""
    import segno

    try:
        code = segno.make_qr(link, error="l")
    except segno.DataOverflowError:
        return None
    modules = code.symbol_size()[0]
    side = modules * min(MODULE, WIDEST // modules)
    picture = escape(code.svg_data_uri(scale=MODULE))
    return f'<img class="mha-code" alt="QR code of this view" width="{side}" src="{picture}">'


def _query(parameters: dict[str, str]) -> str:
    return urlencode(parameters, quote_via=quote)


def _base(here: Any) -> str:
    """The address of the app without its page; empty if the browser has not reported it."""
    url = (st.context.url or "").rstrip("/")
    return url.removesuffix(f"/{here.url_path}") if here.url_path else url
