"""The search for a head on every page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mha_viz.ui.components import drawing

_mount = drawing("search")


def search(content: dict[str, Any], key: str, on_query: Callable[[], None], on_open: Callable[[], None]) -> None:
    """Draw the field.

    ``content``: typed, the query that is answered; problem, why it cannot be answered; groups [{title, note, answers:
    [{head, paper, does, score, baseline, rule, standing, href}]}].

    In the callbacks, ``st.session_state[key]`` holds ``query`` (what was typed) or ``open`` ({typed, index}, an answer
    by its place among all).
    """
    _mount(key=key, data=content, on_query_change=on_query, on_open_change=on_open)
