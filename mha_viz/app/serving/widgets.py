"""The controls of a session while two runs of its script end and begin."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any


def survive_a_second_run(usual: Callable[[Any], Iterator[str]]) -> Callable[[Any], Iterator[str]]:
    """Let the run that begins look through the controls as they are at that moment.

    The run that it replaces may still add one, because Streamlit gives each run a lock of its own; the new one then
    ended with "dictionary changed size during iteration".
    """

    @wraps(usual)
    def as_they_are(self: Any) -> Iterator[str]:
        return iter(list(self.states))

    return as_they_are
