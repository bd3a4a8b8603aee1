"""Protect the iteration over a session's controls while one run of its script ends and another begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any


def patch_widget_iteration(original: Callable[[Any], Iterator[str]]) -> Callable[[Any], Iterator[str]]:
    """Make a new run iterate over a copy of the controls.

    The run that it replaces may still add one, because Streamlit gives each run a lock of its own. Without the copy,
    the new run ended with "dictionary changed size during iteration".
    """

    @wraps(original)
    def iterate_copy(self: Any) -> Iterator[str]:
        return iter(list(self.states))

    return iterate_copy
