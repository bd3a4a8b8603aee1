"""The filters of the Roles page. The URL holds them: controls follow the URL, and only callbacks write it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import streamlit as st

from mha_viz.figures.role_words import COLOURS
from mha_viz.models import catalog
from mha_viz.text import clean
from mha_viz.ui import address
from mha_viz.ui.bound import Changes
from mha_viz.ui.parts import guarded

LONGEST = 60  # the most characters of the typed text
LEVELS = {"base": "relations", "full": "with subtypes", "agg": "all together"}


class Filters(NamedTuple):
    """The kinds of roles (none: all), the typed part of a relation's name, and the kind of relations.

    The fields are named like the URL's parameters and of the controls.
    """

    kinds: tuple[str, ...] = ()
    relation: str = ""
    level: str = "base"


def from_url() -> Filters:
    """The filters in the URL; invalid values are ignored."""
    given = address.now()
    level = given.get("level", "")
    return Filters(
        kinds=tuple(kind for kind in COLOURS if kind in given.get("kinds", "").split(".")),
        relation=clean(given.get("relation", ""))[:LONGEST],
        level=level if level in LEVELS else "base",
    )


@guarded()
def go(**changes: str | None) -> None:
    """As :func:`address.go`, together with the content of the controls: a click right after typing arrives with a URL
    that does not contain the typed text yet."""
    address.go(**{**_written(st.session_state), **changes})


def of_model(name: str) -> Changes:
    """The parameters that change together with the model."""
    other = None if name == catalog.default().name else name
    return {"model": other, "corpus": None, "before": None, **dict.fromkeys(address.OF_THIS_MODEL)}


def _written(state: Mapping[Any, Any]) -> dict[str, str | None]:
    """The parameters of the controls that are on the page."""
    written: dict[str, str | None] = {}
    for name in (name for name in ("relation", "level") if name in state):
        value = str(state[name] or "")
        written[name] = None if value == Filters._field_defaults[name] else value or None
    return written


def relation(place: Any) -> str:
    """The part of a relation's name that is typed at ``place``, in lower case. The field is set to what it has not,
    because a run that began before a person typed would overwrite what was typed."""
    wanted = from_url().relation
    has = st.session_state.get("relation") == wanted
    st.session_state.update({} if has else {"relation": wanted})
    look = {"max_chars": LONGEST, "placeholder": "subject, or nsubj"}
    typed = place.text_input("Filter relations", wanted if has else "", key="relation", on_change=go, **look)
    return str(typed).strip().lower()


def level(place: Any) -> str:
    """The kind of relations that is chosen at ``place``."""
    st.session_state["level"] = from_url().level
    chosen = place.segmented_control(
        "Level", list(LEVELS), key="level", required=True, on_change=go, format_func=LEVELS.__getitem__, wrap=True
    )
    return str(chosen or "base")
