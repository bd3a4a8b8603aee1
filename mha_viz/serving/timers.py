"""Reruns that a timer asks for (``run_every``) give way to what a person did."""

from __future__ import annotations

from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.runtime.app_session import AppSession

_usual = AppSession.request_rerun


def give_way() -> None:
    """Let every session skip a timed rerun while a run is under way, or has ended and not been sent yet; the timer asks
    again.

    Streamlit would begin a new run for it, and then send nothing of the run before: neither its drawing nor the address
    that a click has set, so that the click is lost (streamlit/streamlit#9921).
    """
    AppSession.request_rerun = _request_rerun  # type: ignore[method-assign]


def _request_rerun(self: AppSession, client_state: ClientState | None) -> None:
    if self._scriptrunner is None or client_state is None or not client_state.is_auto_rerun:
        _usual(self, client_state)
