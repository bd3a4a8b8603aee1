"""A first visit in six steps. The URL says which one: a tour that was left can be gone on with."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, NamedTuple

import streamlit as st

from mha_viz.assets import asset
from mha_viz.ui import frame

PARAMETER = "tour"


class Step(NamedTuple):
    """One step: the page it is on, what the URL must say there, and the words."""

    page: str
    parameters: dict[str, str]
    title: str
    text: str


@cache
def steps() -> tuple[Step, ...]:
    """All steps in order."""
    return tuple(Step(**step) for step in json.loads(asset("tour.json").read_text("utf-8")))


def number(parameters: dict[str, Any]) -> int | None:
    """The step that a URL asks for, from 1; None without one."""
    value = str(parameters.get(PARAMETER, ""))
    return int(value) if value.isascii() and value.isdigit() and 1 <= int(value[:3]) <= len(steps()) else None


def link() -> None:
    """The way into the tour."""
    first = steps()[0]
    st.page_link(frame.page(first.page), label="Tour", query_params={**first.parameters, PARAMETER: "1"})


def show() -> None:
    """The step that the URL names, with the way on, back and out."""
    at = number(st.query_params.to_dict())
    if at is None:
        return
    step = steps()[at - 1]
    with st.container(border=True, key="tour"):
        st.markdown(f"**{at} of {len(steps())}. {step.title}** {step.text}")
        with st.container(horizontal=True):
            if at > 1:
                _to(at - 1, "Back")
            if at < len(steps()):
                _to(at + 1, "Next")
            kept = {name: value for name, value in st.query_params.to_dict().items() if name != PARAMETER}
            st.page_link(frame.page(step.page), label="Finish" if at == len(steps()) else "Skip", query_params=kept)


def _to(at: int, label: str) -> None:
    step = steps()[at - 1]
    st.page_link(frame.page(step.page), label=label, query_params={**step.parameters, PARAMETER: str(at)})
