"""A training step by step: Play, Pause and a slider; all animation happens in the browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mha_viz.ui.components import drawing

_mount = drawing("player")


def player(content: dict[str, Any], key: str, on_step: Callable[[], None]) -> None:
    """Draw the output of :func:`mha_viz.figures.frames.frames`.

    In the callback, ``st.session_state[key].step`` is the step at which the visitor stopped.
    """
    _mount(key=key, data=content, on_step_change=on_step)
