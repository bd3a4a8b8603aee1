"""The pages of the app, switching between them in callbacks, and the guided tour."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from mha_viz.app.url import address
from mha_viz.app.widgets.components import apply_style, scroll_to_step
from mha_viz.app.widgets.parts import format_formulas, report_errors
from mha_viz.files.assets import asset_path, page_files

PENDING_PAGE_KEY = "leaving"  # session key: the page to go to; also the key of the container of its link
BEFORE_KEY = "before_the_tour"  # session key: the page that was open before the tour, and its parameters


def make_pages() -> list[st.Page]:
    """Return the pages, one per file of ``pages/``, in the order of their numbers.

    The file's name is the path in the URL.
    """
    first_name = next(iter(page_files()))
    return [_make_page(name, file, name == first_name) for name, file in page_files().items()]


def find_page(name: str) -> st.Page:
    """Return the page with this name, as in the name of its file."""
    path = name.replace(" ", "_")
    return _make_page(path, page_files()[path], path == next(iter(page_files())))


def get_page_name(page: Any) -> str:
    """Return the name by which lessons refer to a page. Needed because the first page has no path in the URL."""
    return str(page.title.lower().replace(" ", "_"))


def open_page(name: str, parameters: Mapping[str, str]) -> None:
    """Open another page: the next run draws a hidden link to it, which the browser follows at once.

    If the server switched pages, the browser's history would get two entries: the parameters, then the page.
    """
    st.session_state[PENDING_PAGE_KEY] = (name, dict(parameters))


def show_pending_link(current_page: st.Page) -> None:
    """Show the hidden link of :func:`open_page` in every run until its page is open.

    A run may end before the link is sent.
    """
    name, parameters = st.session_state.get(PENDING_PAGE_KEY, ("", {}))
    if name and find_page(name).title == current_page.title:
        del st.session_state[PENDING_PAGE_KEY]
    elif name:
        with st.container(key=PENDING_PAGE_KEY):
            st.page_link(find_page(name), label=name, query_params=parameters)


def _make_page(name: str, file: Path, is_first: bool = False) -> st.Page:
    """Return a copy of the page for this run, because Streamlit stores in it whether it may run."""
    # Outside a run, Streamlit creates an incomplete page, which must not be cached.
    prepare_page = _prepare_page if get_script_run_ctx() else _prepare_page.__wrapped__
    return copy(prepare_page(name, file, is_first))


@cache
def _prepare_page(name: str, file: Path, is_first: bool) -> st.Page:
    return st.Page(file, title=name.replace("_", " ").capitalize(), url_path=name, default=is_first)


# ---- The tour -------------------------------------------------------------------------------------------------


TOUR = "tour"  # the URL parameter with the step, so that an interrupted tour can be continued
KEPT_PARAMETERS = ("tray",)  # the compared heads; a step of the tour replaces all other parameters
DESCRIBED_PARAMETERS = ("text", "pair", "model", "head")  # parameters that the text of a step refers to
# CSS selectors of the elements that each step highlights; the page scrolls to the first one.
STEP_SELECTORS = (
    (".st-key-explorer *::part(grid)",),
    (".st-key-inside_map", ".st-key-inside_stage"),
    (".st-key-lab_stage",),
    (".mha-map", ".st-key-head_card"),
    (".st-key-compare",),
    (".st-key-sentence", ".st-key-explorer *::part(drawings)"),
)


class TourStep(NamedTuple):
    """A step of the tour: its page, the URL parameters that it sets there, and its text."""

    page: str
    parameters: dict[str, str]
    title: str
    text: str


@cache
def load_steps() -> tuple[TourStep, ...]:
    """Load all steps of the tour, in order."""
    return tuple(TourStep(**step) for step in json.loads(asset_path("tour.json").read_text("utf-8")))


def read_step_number(parameters: Mapping[str, Any]) -> int | None:
    """Return the number of the tour's step in a URL, from 1; None if there is none."""
    step = str(parameters.get(TOUR, ""))
    return int(step) if step in map(str, range(1, len(load_steps()) + 1)) else None


def show_tour_link(pages: Sequence[Any], current_page: Any) -> None:
    """Show the link to the tour. A visitor whose URL has no parameters sees it as an invitation."""
    parameters = address.get_parameters()
    if read_step_number(parameters) is None:
        st.session_state[BEFORE_KEY] = (current_page.title.lower(), dict(parameters))
        with st.container(key="tour_way", width="content"):
            _show_step_control(pages, current_page, 1, "Tour" if parameters else ":primary[Tour]", "first")


def show_tour(pages: Sequence[Any], current_page: Any) -> None:
    """Show the current step of the tour, with buttons for next, back and leaving.

    On another page, show the way back to the step's page.
    """
    parameters = address.get_parameters()
    number = read_step_number(parameters)
    if number is None:
        return
    step, step_page = load_steps()[number - 1], _find_step_page(pages, number)
    with st.container(key="tour"):
        if current_page.title != step_page.title:
            st.markdown(
                f"**The tour stopped at step {number} of {len(load_steps())}**, on the page *{step_page.title}*."
            )
        else:
            st.markdown(
                f"{number} of {len(load_steps())} &ensp; **{step.title}** {format_formulas(step.text)}", width=1000
            )
            if any(parameters.get(name) != step.parameters.get(name) for name in DESCRIBED_PARAMETERS):
                st.markdown("*You have left the view that this text describes.*")
            selectors = STEP_SELECTORS[number - 1]  # the page scrolls there and moves the keyboard focus
            apply_style("tour", {"#pointed": ", ".join(selectors), "#first": selectors[0]})
            scroll_to_step(str(number), selectors[0])
        with st.container(key="tour_ways", horizontal=True, vertical_alignment="center"):
            _show_step_controls(pages, current_page, number)


def _show_step_controls(pages: Sequence[Any], current_page: Any, number: int) -> None:
    if current_page.title != _find_step_page(pages, number).title:
        _show_step_control(pages, current_page, number, ":primary[**Continue →**]", "on")
    else:
        if number < len(load_steps()):
            _show_step_control(pages, current_page, number + 1, ":primary[**Next →**]", "next")
        else:
            st.button(":primary[**Finish**]", key="tour_out", type="tertiary", on_click=address.go, kwargs={TOUR: None})
        if number > 1:
            _show_step_control(pages, current_page, number - 1, "← Back", "back")
    if current_page.title != _find_step_page(pages, number).title or number < len(load_steps()):
        st.button(
            "Leave the tour", key="tour_out", type="tertiary", on_click=_leave_tour, args=(current_page.title.lower(),)
        )


@report_errors()
def _leave_tour(current_name: str) -> None:
    """Go back to the page and view that were open before the tour, if that page had any parameters."""
    name, parameters = st.session_state.get(BEFORE_KEY, (current_name, {}))
    if not parameters:
        address.go(**{TOUR: None})
    elif name == current_name:
        address.open_at(parameters)
    else:
        open_page(name, parameters)


def _show_step_control(pages: Sequence[Any], current_page: Any, number: int, label: str, key: str) -> None:
    """Show a control that opens a step: a link if the step is on another page, a button if it is on this one.

    A link to the open page would leave the address bar unchanged, and a button that switches pages would add two
    entries to the browser's history.
    """
    kept_parameters = {name: value for name, value in address.get_parameters().items() if name in KEPT_PARAMETERS}
    parameters = {**kept_parameters, **load_steps()[number - 1].parameters, TOUR: str(number)}
    if current_page.title == _find_step_page(pages, number).title:
        st.button(label, key=f"tour_{key}", type="tertiary", on_click=_open_step, args=(parameters,))
    else:
        st.page_link(_find_step_page(pages, number), label=label, query_params=parameters)


@report_errors()
def _open_step(parameters: dict[str, str]) -> None:
    address.open_at(parameters)


def _find_step_page(pages: Sequence[Any], number: int) -> Any:
    return next(page for page in pages if page.title.lower() == load_steps()[number - 1].page)
