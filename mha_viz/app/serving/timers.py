"""Timed reruns (``run_every``) must not interrupt a run that a user started."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from streamlit.proto.ClientState_pb2 import ClientState


def patch_timer_reruns(
    original: Callable[[Any, ClientState | None], None],
) -> Callable[[Any, ClientState | None], None]:
    """Skip timed reruns of a session while another run is running or its output has not been sent yet.

    The timer asks again later. Without this, Streamlit starts the timed run and sends nothing of the previous run:
    neither its drawing nor the address that a click has set, so that the click is lost.
    """

    @wraps(original)
    def request_rerun(self: Any, client_state: ClientState | None) -> None:
        if self._scriptrunner is None or client_state is None or not client_state.is_auto_rerun:
            original(self, client_state)

    return request_rerun
