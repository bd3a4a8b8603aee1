"""Reruns that a timer asks for (``run_every``) give way to what a person did."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from streamlit.proto.ClientState_pb2 import ClientState


def give_way(usual: Callable[[Any, ClientState | None], None]) -> Callable[[Any, ClientState | None], None]:
    """Let every session skip a timed rerun while a run is under way, or has ended and not been sent yet; the timer asks
    again.

    Streamlit would begin a new run for it, and then send nothing of the run before: neither its drawing nor the address
    that a click has set, so that the click is lost.
    """

    @wraps(usual)
    def request_rerun(self: Any, client_state: ClientState | None) -> None:
        if self._scriptrunner is None or client_state is None or not client_state.is_auto_rerun:
            usual(self, client_state)

    return request_rerun
