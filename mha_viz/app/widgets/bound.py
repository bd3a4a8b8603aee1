"""Controls that are bound to the URL: they show what it says, and what is chosen in them is written into it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import streamlit as st

from mha_viz.app.url import address
from mha_viz.app.widgets.parts import guarded, say_unused

UrlChanges: TypeAlias = Mapping[str, str | None]  # parameters of the URL; None removes one
LATE = {"relation": "", "level": "base"}  # parameters, and keys of controls, that a click may come before; usual values


def in_link(name: str, options: Collection[str], form: str) -> str:
    """Return the value of a parameter of the URL if it is one of the ``options``, else an empty string: with a remark
    if it is of the ``form`` of theirs, and so was meant for this page, because pages hand on what others read."""
    given = address.now().get(name, "")
    if given in options:
        return given
    say_unused([f"{name}={given[:20]}"] if re.fullmatch(form, given, re.ASCII) else [])
    return ""


def bound(
    widget: Callable[..., Any],
    label: str,
    name: str,
    value: Any,
    options: Sequence[Any] | None = None,
    *,
    default: Any = None,
    change: Callable[[Any], UrlChanges | None] | None = None,
    go: Callable[..., None] = address.go,
    key: str = "",
    keeps: bool = False,
    **look: Any,
) -> Any:
    """Return a control for the parameter ``name`` of the URL, which has this ``value`` there; Back and links move it
    too.

    What is chosen, one or several of the ``options`` if there are any, is one step of the browser's history: ``change``
    gives the parameters that ``go`` sets, None for no change; by default ``name`` alone, or nothing for the
    ``default``. Errors that ``change`` raises are shown. ``keeps``: what was typed stays in the control if it was
    refused. ``key``: of the control, by default ``name``. Returns the value of the control.
    """
    key = (key or name) + (f"_{value}" if keeps else "")
    if keeps:  # not in the session's state, which would be told once: a browser that misses it shows an empty control
        look["value"] = value
    else:
        st.session_state[key] = value

    def write(chosen: Any) -> UrlChanges:
        return {name: None if chosen in (None, default) else str(chosen)}

    choices = {} if options is None else {"options": options}
    # The label of a menu would say that it is.
    required = look.pop("required", False) if widget is st.selectbox else look.get("required", False)
    sent = partial(_read_choice, key, options, required)
    return widget(label, **choices, key=key, on_change=_changed, args=(sent, go, change or write), **look)


@guarded()
def _changed(sent: Callable[[], Any], go: Callable[..., None], change: Callable[[Any], UrlChanges | None]) -> None:
    try:
        chosen = sent()
    except Exception:  # no browser sends it; Streamlit, which reads it only now, raises anything
        return
    changes = change(chosen)
    if changes is not None:
        go(**changes)


def _read_choice(key: str, options: Sequence[Any] | None, required: bool) -> Any:
    """Return what was chosen. Raises ValueError for what the control does not offer, and what Streamlit raises."""
    chosen = st.session_state[key]
    every = chosen if isinstance(chosen, list) else [chosen]
    is_offered = not required if chosen is None else options is None or all(one in options for one in every)
    if not is_offered:
        raise ValueError(f"{key} has no such choice")
    return chosen


@guarded()
def go(**changes: str | None) -> None:
    """As :func:`address.go`, with the content of the controls of LATE that are on the page: a click right after
    typing arrives with a URL that does not contain the typed text yet."""
    held = {name: str(st.session_state[name] or "") for name in LATE if name in st.session_state}
    written = {name: None if value == LATE[name] else value or None for name, value in held.items()}
    address.go(**{**written, **changes})
