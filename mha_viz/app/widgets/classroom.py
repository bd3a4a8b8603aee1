"""The view for a class: larger type, fewer controls, the lesson, and icons for everything else at the window's edge.

``class=1`` in the URL turns it on. Answers are hidden until somebody clicks to see them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import streamlit as st

from mha_viz.app.url import address, lesson
from mha_viz.app.url.lesson import LESSON_PARAMETER, OLD_VIEW_PARAMETER, VIEW_PARAMETER, Lesson, LessonView
from mha_viz.app.widgets import request
from mha_viz.app.widgets.components import apply_style
from mha_viz.app.widgets.navigation import get_page_name
from mha_viz.app.widgets.parts import escape_markdown, report_errors, report_ignored, show_remark
from mha_viz.app.widgets.search_field import OPEN_COUNT_KEY
from mha_viz.figures.charts.chart import Chart
from mha_viz.numerals import counted

CONTROLS_KEY = "class_ways"  # the key of the controls of a lesson: "next" and "back" (browser/scheme/lesson.js)
TEXT_SCALE = 1.2  # enlargement of letters in charts and drawings
LOOPBACK = ("localhost", "127.0.0.1", "::1")
# Width in pixels of a QR code's square, for a camera at the back of a room, and maximum width of the whole code.
MODULE_PIXELS, MAX_PIXELS = 7, 540
_ANIMAL = "The animal didn't cross the street because it was too tired."
_WOMAN = "The old woman saw the young man with a small telescope."
FIRST_HOUR = (  # the ready-made lesson, "What do heads do?"
    LessonView(
        "explore",
        {"text": _WOMAN, "model": "minilm", "head": "L0H2", "special": "hide"},
        "Each row shows where a word looks. Where do the words look in this head?",
    ),
    LessonView(
        "explore",
        {"text": _WOMAN, "model": "minilm", "head": "L4H5"},
        "This head rests: nearly all of its attention goes to [CLS], the mark at the start.",
    ),
    LessonView(
        "explore",
        {"text": _WOMAN, "model": "minilm", "head": "L2H8", "special": "hide"},
        "Find “the” and “a”. Which word do they look at, beyond the adjective?",
    ),
    LessonView(
        "explore",
        {"text": _ANIMAL, "model": "minilm", "head": "L3H1", "special": "hide"},
        "Guess what “it” refers to. Then find its row.",
    ),
    LessonView(
        "explore",
        {"text": "the dog [MASK] the girl .", "model": "toy", "head": "L1H1", "off": "L1H1"},
        "The toy guesses the word with and without this head. What changes?",
    ),
    LessonView(
        "why_heads_differ",
        {"experiment": "random"},
        "Four heads start at random. Will two of them end with the same job?",
    ),
)
TEXT_PAGES = ("explore", "compare", "inside_a_head")  # pages with a sentence and a head, which a link must name


def draw_legible(chart: Chart) -> Any:
    """Draw the chart with Plotly; in the view for a class, with letters that can be read from the last row."""
    from mha_viz.figures.charts.chart_plotly import (
        plotly,  # imports Plotly and pandas, which the first picture must not wait for
    )

    return plotly(chart, TEXT_SCALE if address.is_class_view() else 1)


@contextmanager
def hide_answer(label: str = "Answer") -> Iterator[None]:
    """Hide the content of the block behind a click in the view for a class; show it otherwise."""
    if address.is_class_view():
        with st.expander(label):
            yield
    else:
        yield


def show_class_view(pages: Sequence[Any], current_page: Any, show_links: Callable[[], None]) -> None:
    """Show the lesson's current view above the page and, at the window's edge, icons for everything else.

    The icons are for the pages, the QR code, the lesson builder, and leaving the class view.
    """
    parameters = address.get_parameters()
    views, is_complete = lesson.read(parameters.get(LESSON_PARAMETER))
    ignored_names = [address.CLASS] if address.CLASS in parameters and not address.is_class_view() else []
    if VIEW_PARAMETER in parameters and lesson.read_number(parameters, views) is None:
        ignored_names.append(VIEW_PARAMETER)
    report_ignored([f"{name}={parameters[name][:30]}" for name in ignored_names])
    if not address.is_class_view():
        return
    apply_style("classroom", {"var(--larger)": str(TEXT_SCALE)})
    if not is_complete:
        show_remark("Some views of this lesson could not be read; the others are shown.")
    _show_edge(pages, current_page, views, parameters, show_links)
    if not views:
        return
    with st.container(key="classroom"):
        number, page_name = lesson.read_number(parameters, views), get_page_name(current_page)
        has_left = number is not None and lesson.has_left(
            views[number - 1], page_name, parameters, _read_full_parameters(page_name)
        )
        if number is not None and not has_left:
            remark = escape(views[number - 1].remark)
            st.html(f'<p class="mha-lesson"><small>{number} of {len(views)}</small> &ensp; {remark}</p>')
        with st.container(key=CONTROLS_KEY, horizontal=True, vertical_alignment="center", width="content"):
            _show_view_controls(pages, current_page, views, parameters, has_left)


def _show_edge(
    pages: Sequence[Any], current_page: Any, views: Lesson, parameters: dict[str, str], show_links: Callable[[], None]
) -> None:
    """Show the icons at the window's edge."""
    with st.container(key="edge", horizontal=True, width="content"):
        with (
            st.popover(
                "Pages",
                icon=":material/menu:",
                type="tertiary",
                help="Pages",
                key=f"pages_of_{get_page_name(current_page)}",
            ),
            st.container(key="pages"),
        ):
            show_links()
            st.page_link(pages[-1], query_params=parameters)
        with (
            st.container(key="class_code", width="content"),
            st.popover("QR code", icon=":material/qr_code_2:", type="tertiary", help="QR code"),
        ):
            _show_code(current_page)
        _show_builder(pages, current_page, views)
        exit_changes = dict.fromkeys((address.CLASS, LESSON_PARAMETER, VIEW_PARAMETER, *_list_old_names(parameters)))
        label = "Leave the class view"
        icon = ":material/close:"
        st.button(
            label, icon=icon, help=label, key="class_out", type="tertiary", on_click=address.go, kwargs=exit_changes
        )  # fmt: skip


# ---- The lesson -----------------------------------------------------------------------------------------------


def _show_view_controls(
    pages: Sequence[Any], current_page: Any, views: Lesson, parameters: dict[str, str], has_left: bool
) -> None:
    """Show buttons for the next and the previous view, or a button back to the view that was left."""
    number = lesson.read_number(parameters, views)
    if views and number is None:
        _show_view_control(pages, current_page, views, 1, ":primary[**Begin the lesson →**]")
    if number is not None and has_left:
        _show_view_control(pages, current_page, views, number, f":primary[**← View {number} of {len(views)}**]")
    elif number is not None and number > 1:
        _show_view_control(pages, current_page, views, number - 1, "← Back")
    if number is not None and number < len(views):
        _show_view_control(pages, current_page, views, number + 1, ":primary[**Next →**]")


def _show_view_control(pages: Sequence[Any], current_page: Any, views: Lesson, number: int, label: str) -> None:
    """Show a control that opens a view, as in the tour.

    It is a link if the view is on another page, and a button otherwise.
    """
    view = views[number - 1]
    parameters = _make_view_parameters(views, number)
    page = _find_page(pages, view.page)
    if page.title == current_page.title:
        st.button(label, key=f"lesson_{number}", type="tertiary", on_click=_open_view, args=(parameters,))
    else:
        st.page_link(page, label=label, query_params=parameters)


def _open_view(parameters: dict[str, str]) -> None:
    """Open another view on this page; the drawing follows it."""
    st.session_state[OPEN_COUNT_KEY] = st.session_state.get(OPEN_COUNT_KEY, 0) + 1
    address.open_at(parameters)


def _make_view_parameters(views: Lesson, number: int) -> dict[str, str]:
    """Return the URL parameters of a view, with those of its lesson."""
    lesson_parameters = {LESSON_PARAMETER: lesson.write(views) or "", VIEW_PARAMETER: str(number), address.CLASS: "1"}
    return {**views[number - 1].parameters, **lesson_parameters}


def begin_first_hour() -> tuple[str, dict[str, str]]:
    """Return page and URL parameters of the first view of the ready-made lesson."""
    return FIRST_HOUR[0].page, _make_view_parameters(FIRST_HOUR, 1)


def _find_page(pages: Sequence[Any], name: str) -> Any:
    return next(page for page in pages if get_page_name(page) == name)


def _list_old_names(parameters: dict[str, str]) -> list[str]:
    """Return the parameter that an older link uses for the number of its view, as a list; empty for newer links."""
    return [OLD_VIEW_PARAMETER] if lesson.is_old_number(parameters) else []


# ---- The lesson builder -------------------------------------------------------------------------------------


def _show_builder(pages: Sequence[Any], current_page: Any, views: Lesson) -> None:
    label = f"Lesson: {counted(len(views), 'view')}" if views else "Make a lesson"
    with st.popover(label, icon=":material/playlist_add:", help=label, type="tertiary", key="lesson_box"):
        st.markdown(
            "A lesson is a list of views in one link. Open a view, write what the class should notice, and add it."
        )
        st.text_input("Remark", key="lesson_remark", max_chars=lesson.MAX_REMARK)
        st.button("Add this view", key="lesson_add", on_click=_add, args=(get_page_name(current_page),))
        for number, view in enumerate(views, 1):
            with st.container(horizontal=True, vertical_alignment="center"):
                st.markdown(
                    f"{number}. {escape_markdown(_find_page(pages, view.page).title)}: {escape_markdown(view.remark)}",
                    width="stretch",
                )
                for name, step, end in (("up", -1, 1), ("down", 1, len(views))):
                    st.button(
                        f"Move view {number} {name}", icon=f":material/arrow_{name}ward:", type="tertiary",
                        key=f"lesson_{name}_{number}", on_click=_move, args=(number, step), disabled=number == end,
                    )  # fmt: skip
                st.button("Remove", key=f"lesson_remove_{number}", on_click=_remove, args=(number,))
        if views:
            st.caption("Link to the whole lesson")
            path = _find_page(pages, views[0].page).url_path
            st.code(
                f"{_find_base_address(current_page)}/{path}?{_encode_query(_make_view_parameters(views, 1))}",
                language=None,
                wrap_lines=True,
            )


@report_errors()
def _add(page: str) -> None:
    views, _ = lesson.read(address.get_parameters().get(LESSON_PARAMETER))
    new_lesson = lesson.add(views, page, _read_full_parameters(page), str(st.session_state.get("lesson_remark", "")))
    address.go(
        **{
            LESSON_PARAMETER: lesson.write(new_lesson),
            VIEW_PARAMETER: str(len(new_lesson)),
            **dict.fromkeys(_list_old_names(address.get_parameters())),
        }
    )
    st.session_state["lesson_remark"] = ""


@report_errors()
def _remove(number: int) -> None:
    views, _ = lesson.read(address.get_parameters().get(LESSON_PARAMETER))
    lesson_parameter = lesson.write(lesson.remove(views, number))
    old_parameter = dict.fromkeys(_list_old_names(address.get_parameters()))
    address.go(**{LESSON_PARAMETER: lesson_parameter, VIEW_PARAMETER: None, **old_parameter})


@report_errors()
def _move(number: int, step: int) -> None:
    """Move a view up or down. The open view stays open."""
    views, _ = lesson.read(address.get_parameters().get(LESSON_PARAMETER))
    open_number = lesson.read_number(address.get_parameters(), views)
    new_numbers = {number: number + step, number + step: number}
    view_parameter = {} if open_number is None else {VIEW_PARAMETER: str(new_numbers.get(open_number, open_number))}
    old_parameter = dict.fromkeys(_list_old_names(address.get_parameters()))
    address.go(
        **{LESSON_PARAMETER: lesson.write(lesson.move(views, number, number + step)), **view_parameter, **old_parameter}
    )


def _read_full_parameters(page: str) -> dict[str, str]:
    """Return the URL's parameters and, for a page with a text, the defaults that it opens."""
    return {
        **(request.list_full_parameters(address.get_url()) if page in TEXT_PAGES else {}),
        **address.get_parameters(),
    }


# ---- The QR code ----------------------------------------------------------------------------------------------


def _show_code(page: Any) -> None:
    """Show a QR code with the address of this page."""
    base = _find_base_address(page)
    if not base:
        return
    picture = draw_qr_code(f"{base}/{page.url_path}?{_encode_query(_read_full_parameters(get_page_name(page)))}")
    if picture is None:
        show_remark("This view’s link is too long for a QR code. Use a shorter sentence or lesson.")
        return
    st.html(picture)
    if urlsplit(base).hostname in LOOPBACK:
        show_remark(f"{base} works on this computer only. To let others in, restart with --host 0.0.0.0.")


def draw_qr_code(link: str) -> str | None:
    """Return the QR code of a link as an ``img`` element; None if the link is too long."""
    import segno

    try:
        code = segno.make_qr(link, error="l")
    except segno.DataOverflowError:
        return None
    modules = code.symbol_size()[0]
    side = modules * min(MODULE_PIXELS, MAX_PIXELS // modules)
    picture = escape(code.svg_data_uri(scale=MODULE_PIXELS))
    return f'<img class="mha-code" alt="QR code of this view" width="{side}" src="{picture}">'


def _encode_query(parameters: dict[str, str]) -> str:
    return urlencode(parameters, quote_via=quote)


def _find_base_address(page: Any) -> str:
    """Return the address of the app without the path of the page; empty if the browser has not reported it."""
    url = (st.context.url or "").rstrip("/")
    return url.removesuffix(f"/{page.url_path}") if page.url_path else url
