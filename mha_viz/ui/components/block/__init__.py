"""The block of multi-head attention as a map of its steps: a click on a step opens it, a click on a head chooses it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mha_viz.ui.components import drawing

_mount = drawing("block")


def block(content: dict[str, Any], key: str, on_step: Callable[[], None], on_head: Callable[[], None]) -> None:
    """Draw the diagram.

    ``content``: steps [{name, label, shape, inside}] in order, those ``inside`` a head as one group; step, the open
    one; heads [colour]; head, the chosen one.

    In the callbacks, ``st.session_state[key]`` holds ``step`` (its name) or ``head`` (its number).
    """
    _mount(key=key, data=content, on_step_change=on_step, on_head_change=on_head)
