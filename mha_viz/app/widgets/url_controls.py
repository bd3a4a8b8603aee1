"""Controls bound to the URL: they show its values and write the user's choices into it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import streamlit as st

from mha_viz.app.url import address
from mha_viz.app.widgets.parts import report_errors, report_ignored

UrlChanges: TypeAlias = Mapping[str, str | None]  # parameters of the URL; None removes one
LATE_CONTROLS = {"relation": "", "level": "base"}  # controls whose value may arrive after a click: name → default


def read_option(name: str, options: Collection[str], pattern: str) -> str:
    """Return the value of a URL parameter if it is one of ``options``, else an empty string.

    If the value matches ``pattern``, a remark says that it was ignored. Other values are meant for other pages, whose
    parameters stay in the URL.
    """
    value = address.get_parameters().get(name, "")
    if value in options:
        return value
    report_ignored([f"{name}={value[:20]}"] if re.fullmatch(pattern, value, re.ASCII) else [])
    return ""


def bind_control(
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
    keeps_text: bool = False,
    **widget_options: Any,
) -> Any:
    """Show a control bound to the URL parameter ``name``, and return its value. Back and links change the control too.

    Args:
        widget: the function of Streamlit that draws it.
        label: its label.
        name: the URL parameter.
        value: the parameter's current value.
        options: the values to choose from, if there is a list of them.
        default: the value for which the parameter is removed from the URL.
        change: returns the parameters to set for a choice, None to set none; by default ``name`` alone. Errors that it
            raises are shown.
        go: sets the parameters, as one step of the browser's history.
        key: the key of the control, by default ``name``.
        keeps_text: whether typed text stays in the control if it was refused.
        widget_options: further arguments of ``widget``.
    """
    key = (key or name) + (f"_{value}" if keeps_text else "")
    # Streamlit sends a session-state value only once, and a browser that misses it shows an empty control.
    if keeps_text:
        widget_options["value"] = value
    else:
        st.session_state[key] = value

    def set_parameter(choice: Any) -> UrlChanges:
        return {name: None if choice in (None, default) else str(choice)}

    choices = {} if options is None else {"options": options}
    # Streamlit would mark the label of a menu as required.
    is_required = (
        widget_options.pop("required", False) if widget is st.selectbox else widget_options.get("required", False)
    )
    read_choice = partial(_read_choice, key, options, is_required)
    return widget(
        label,
        **choices,
        key=key,
        on_change=_apply_change,
        args=(read_choice, go, change or set_parameter),
        **widget_options,
    )


@report_errors()
def _apply_change(
    read_choice: Callable[[], Any], go: Callable[..., None], change: Callable[[Any], UrlChanges | None]
) -> None:
    try:
        choice = read_choice()
    except Exception:  # no browser sends such a value; Streamlit parses it only now and may raise anything
        return
    changes = change(choice)
    if changes is not None:
        go(**changes)


def _read_choice(key: str, options: Sequence[Any] | None, is_required: bool) -> Any:
    """Return the value of a control.

    Raises ValueError for a value that the control does not offer, and what Streamlit raises.
    """
    choice = st.session_state[key]
    choices = choice if isinstance(choice, list) else [choice]
    is_offered = not is_required if choice is None else options is None or all(choice in options for choice in choices)
    if not is_offered:
        raise ValueError(f"{key} has no such choice")
    return choice


@report_errors()
def go(**changes: str | None) -> None:
    """Set URL parameters with :func:`address.go`, together with the contents of some controls.

    These are the controls in ``LATE_CONTROLS`` that are on the page. After a click right after typing, the URL does not
    contain the typed text yet.
    """
    contents = {name: str(st.session_state[name] or "") for name in LATE_CONTROLS if name in st.session_state}
    control_changes = {
        name: None if value == LATE_CONTROLS[name] else value or None for name, value in contents.items()
    }
    address.go(**{**control_changes, **changes})
