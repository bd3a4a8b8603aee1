"""A file is made of what stands on the page when somebody asks for it.

A click on a download first takes the focus from a field, so that the page is run with what was typed, and then asks for
the file. Streamlit makes it of the run before, without what was typed, or not at all, if the new run already offers the
file under another name ("Deferred file not found"). So it is made when the run has ended, and has one name in all runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from hashlib import sha256
from typing import Any

from streamlit.runtime import Runtime

LONGEST = 30.0  # seconds; after that the file is made of what there is
EVERY = 0.1  # of which the first lets what was typed come after the click, as a browser may send them


def name_by_button(usual: Callable[..., str]) -> Callable[..., str]:
    """Give a file the name of its button, which is as secret as that of the session, of which it is made."""

    @wraps(usual)
    def add_deferred(self: Any, *given: Any, **named: Any) -> str:
        file_id = usual(self, *given, **named)
        with self._lock:
            offered = self._deferred_callables.pop(file_id)
            session = offered["session_id"]
            name = sha256(f"{session} {offered['element_id'] or file_id}".encode()).hexdigest()
            self._deferred_callables[name] = offered
            self._deferred_ids_by_session[session].discard(file_id)
            self._deferred_ids_by_session[session].add(name)
            self._files_by_session_and_coord[session][offered["coordinates"]] = name
        return name

    return add_deferred


def wait_for_the_run(usual: Callable[[Any, Any, str], Awaitable[Any]]) -> Callable[[Any, Any, str], Awaitable[Any]]:
    """Let files be made when the page has been run with what was typed before the click."""

    @wraps(usual)
    async def handle(self: Any, request: Any, session_id: str) -> Any:
        clock = asyncio.get_running_loop().time
        end = clock() + LONGEST
        await asyncio.sleep(EVERY)
        while _runs(session_id) and clock() < end:
            await asyncio.sleep(EVERY)
        return await usual(self, request, session_id)

    return handle


def _runs(session_id: str) -> bool:
    """Return whether the page of a session is being run."""
    info = Runtime.instance()._session_mgr.get_active_session_info(session_id)
    return info is not None and info.session._scriptrunner is not None
