"""The pages of the app, how a callback switches to another one, and the tour that leads through them in six steps."""

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
from mha_viz.app.widgets.components import apply_style, lead
from mha_viz.app.widgets.parts import formulas, guarded
from mha_viz.files.assets import asset, page_files

LEAVING = "leaving"  # in the session, and the key of the link
BEFORE = "before_the_tour"  # in the session: the page and its parameters


def pages() -> list[st.Page]:
    """Return one page per file of ``pages/``, in the order of their numbers; the file's name is the URL path."""
    first = next(iter(page_files()))
    return [_page(name, file, name == first) for name, file in page_files().items()]


def page(name: str) -> st.Page:
    """Return the page called ``name``, as in its file's name."""
    path = name.replace(" ", "_")
    return _page(path, page_files()[path], path == next(iter(page_files())))


def name_of(page: Any) -> str:
    """Return a page's name in a lesson; the first page has no path in the URL."""
    return str(page.title.lower().replace(" ", "_"))


def leave(name: str, parameters: Mapping[str, str]) -> None:
    """Go to the page called ``name``: the next run shows a link to it, which the browser follows at once. A switch of
    the page by the server would be two entries of the browser's history: the parameters, then the page."""
    st.session_state[LEAVING] = (name, dict(parameters))


def depart(here: st.Page) -> None:
    """Follow the link to the page that was asked for, if any, until that is open: a run may end before it is sent.
    It is not seen."""
    name, parameters = st.session_state.get(LEAVING, ("", {}))
    if name and page(name).title == here.title:
        del st.session_state[LEAVING]
    elif name:
        with st.container(key=LEAVING):
            st.page_link(page(name), label=name, query_params=parameters)


def _page(name: str, file: Path, is_first: bool = False) -> st.Page:
    """Return a page of its own for every run, because Streamlit notes in it that it may run."""
    prepared = _prepared if get_script_run_ctx() else _prepared.__wrapped__  # without a run, Streamlit makes half of it
    return copy(prepared(name, file, is_first))


@cache
def _prepared(name: str, file: Path, is_first: bool) -> st.Page:
    return st.Page(file, title=name.replace("_", " ").capitalize(), url_path=name, default=is_first)


# ---- The tour -------------------------------------------------------------------------------------------------


TOUR = "tour"  # the parameter with the step, so that an interrupted tour can be continued
STAYING = ("tray",)  # the compared heads; every other parameter of a step's address is set by the step
READ = ("text", "pair", "model", "head")  # what the words of a step refer to
# What each step points at: CSS selectors; the view moves to the first one.
POINTS = (
    (".st-key-explorer *::part(grid)",),
    (".st-key-inside_map", ".st-key-inside_step"),
    (".st-key-lab_stage",),
    (".mha-map", ".st-key-head_card"),
    (".st-key-compare",),
    (".st-key-sentence", ".st-key-explorer *::part(drawings)"),
)


class TourStep(NamedTuple):
    """One step: its page, the URL parameters that it sets there, and its text."""

    page: str
    parameters: dict[str, str]
    title: str
    text: str


@cache
def steps() -> tuple[TourStep, ...]:
    """Return all steps in order."""
    return tuple(TourStep(**step) for step in json.loads(asset("tour.json").read_text("utf-8")))


def step_number(parameters: Mapping[str, Any]) -> int | None:
    """Return the step that a URL asks for, from 1; None without one."""
    wanted_step = str(parameters.get(TOUR, ""))
    return int(wanted_step) if wanted_step in map(str, range(1, len(steps()) + 1)) else None


def tour_link(pages: Sequence[Any], here: Any) -> None:
    """Show the link to the tour; a visitor whose URL has no parameters gets it as an invitation."""
    url = address.now()
    if step_number(url) is None:
        st.session_state[BEFORE] = (here.title.lower(), dict(url))
        with st.container(key="tour_way", width="content"):
            _show_way(pages, here, 1, "Tour" if url else ":primary[Tour]", "first")


def show_tour(pages: Sequence[Any], here: Any) -> None:
    """Show the step in the URL, with buttons for the next and the previous step and for leaving; on another page,
    the way back to the step's page."""
    url = address.now()
    at = step_number(url)
    if at is None:
        return
    step, page_of_step = steps()[at - 1], _page_of_step(pages, at)
    with st.container(key="tour"):
        if here.title != page_of_step.title:
            st.markdown(f"**The tour stopped at step {at} of {len(steps())}**, on the page *{page_of_step.title}*.")
        else:
            st.markdown(f"{at} of {len(steps())} &ensp; **{step.title}** {formulas(step.text)}", width=1000)
            if any(url.get(name) != step.parameters.get(name) for name in READ):
                st.markdown("*You have left the view that this text describes.*")
            pointed = POINTS[at - 1]  # highlighted; view and keyboard focus move there
            apply_style("tour", {"#pointed": ", ".join(pointed), "#first": pointed[0]})
            lead(str(at), pointed[0])
        with st.container(key="tour_ways", horizontal=True, vertical_alignment="center"):
            _ways(pages, here, at)


def _ways(pages: Sequence[Any], here: Any, at: int) -> None:
    if here.title != _page_of_step(pages, at).title:
        _show_way(pages, here, at, ":primary[**Go on →**]", "on")
    else:
        if at < len(steps()):
            _show_way(pages, here, at + 1, ":primary[**Next →**]", "next")
        else:
            st.button(":primary[**Finish**]", key="tour_out", type="tertiary", on_click=address.go, kwargs={TOUR: None})
        if at > 1:
            _show_way(pages, here, at - 1, "← Back", "back")
    if here.title != _page_of_step(pages, at).title or at < len(steps()):
        st.button("Leave the tour", key="tour_out", type="tertiary", on_click=_leave_tour, args=(here.title.lower(),))


@guarded()
def _leave_tour(here: str) -> None:
    """Go back to what was open before the tour, if anything was chosen there."""
    name, parameters = st.session_state.get(BEFORE, (here, {}))
    if not parameters:
        address.go(**{TOUR: None})
    elif name == here:
        address.open_at(parameters)
    else:
        leave(name, parameters)


def _show_way(pages: Sequence[Any], here: Any, at: int, label: str, key: str) -> None:
    """Show a control that leads to a step: a link if the step is on another page, a button if it is on this one. A
    link to the open page would leave the address bar unchanged, and a button that switches pages would add two
    entries to the browser's history."""
    staying = {name: value for name, value in address.now().items() if name in STAYING}
    parameters = {**staying, **steps()[at - 1].parameters, TOUR: str(at)}
    if here.title == _page_of_step(pages, at).title:
        st.button(label, key=f"tour_{key}", type="tertiary", on_click=_go_on, args=(parameters,))
    else:
        st.page_link(_page_of_step(pages, at), label=label, query_params=parameters)


@guarded()
def _go_on(parameters: dict[str, str]) -> None:
    address.open_at(parameters)


def _page_of_step(pages: Sequence[Any], at: int) -> Any:
    return next(page for page in pages if page.title.lower() == steps()[at - 1].page)
