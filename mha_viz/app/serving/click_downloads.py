"""Build downloads from the page's state at the time of the click.

A click on a download first takes the focus from a text field, so that the page reruns with what was typed, and then
requests the file. Streamlit would build the file from the run before, without what was typed. If the new run already
offers the file under another name, it would fail ("Deferred file not found"). Therefore files are built when the run
has ended, and have the same name in all runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from hashlib import sha256
from typing import Any

from streamlit.runtime import Runtime

MAX_WAIT_S = 30.0  # seconds; after that, build the file from the current state
POLL_INTERVAL_S = 0.1  # seconds; the first pause lets typed text arrive, which a browser may send after the click


def name_files_by_button(original: Callable[..., str]) -> Callable[..., str]:
    """Name a file after its button and its session. The name is a digest that is as secret as the session id."""

    @wraps(original)
    def add_deferred(self: Any, *args: Any, **options: Any) -> str:
        file_id = original(self, *args, **options)
        with self._lock:
            entry = self._deferred_callables.pop(file_id)
            session = entry["session_id"]
            name = sha256(f"{session} {entry['element_id'] or file_id}".encode()).hexdigest()
            self._deferred_callables[name] = entry
            self._deferred_ids_by_session[session].discard(file_id)
            self._deferred_ids_by_session[session].add(name)
            self._files_by_session_and_coord[session][entry["coordinates"]] = name
        return name

    return add_deferred


def wait_for_rerun(original: Callable[[Any, Any, str], Awaitable[Any]]) -> Callable[[Any, Any, str], Awaitable[Any]]:
    """Delay building a file until the page has rerun with what was typed before the click."""

    @wraps(original)
    async def handle(self: Any, request: Any, session_id: str) -> Any:
        clock = asyncio.get_running_loop().time
        deadline = clock() + MAX_WAIT_S
        await asyncio.sleep(POLL_INTERVAL_S)
        while _is_running(session_id) and clock() < deadline:
            await asyncio.sleep(POLL_INTERVAL_S)
        return await original(self, request, session_id)

    return handle


def _is_running(session_id: str) -> bool:
    """Return whether the page of a session is running."""
    info = Runtime.instance()._session_mgr.get_active_session_info(session_id)
    return info is not None and info.session._scriptrunner is not None
