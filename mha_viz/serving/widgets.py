"""The controls of a session while two runs of its script end and begin."""

from __future__ import annotations

from collections.abc import Iterator

from streamlit.runtime.state.session_state import WStates


def survive_a_second_run() -> None:
    """Let the run that begins look through the controls as they are at that moment.

    The run that it replaces may still add one, because Streamlit gives each run a lock of its own; the new one then
    ended with "dictionary changed size during iteration".
    """
    WStates.__iter__ = _as_they_are  # type: ignore[method-assign]


def _as_they_are(self: WStates) -> Iterator[str]:
    return iter(list(self.states))
