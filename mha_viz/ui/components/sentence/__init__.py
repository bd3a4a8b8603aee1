"""The sentence in large type, its second sentence, its examples, and the model that reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mha_viz.ui.components import drawing

_mount = drawing("sentence")


def sentence(
    content: dict[str, Any],
    key: str,
    on_read: Callable[[], None],
    on_example: Callable[[], None],
    on_model: Callable[[], None],
) -> None:
    """Draw the input.

    ``content``: text, pair, look, opens ({index, head} of an example, or None), intro, model, label (of the model),
    models [{name, label}], open, examples [{text, pair, look}].

    In the callbacks, ``st.session_state[key]`` holds ``read`` ({text, pair}), ``example`` (its index) or
    ``model`` (a name as chosen or typed).
    """
    _mount(key=key, data=content, on_read_change=on_read, on_example_change=on_example, on_model_change=on_model)
