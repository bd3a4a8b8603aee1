"""A file is made of what stands on the page when somebody asks for it.

A click on a download first takes the focus from a field, so that the page is run with what was typed, and then asks for
the file. Streamlit makes it of the run before, without what was typed, or not at all, if the new run already offers the
file under another name ("Deferred file not found"). So it is made when the run has ended, and has one name in all runs.
"""

from __future__ import annotations

import asyncio
from hashlib import sha256
from typing import Any

from streamlit.runtime import Runtime
from streamlit.runtime.backend_operation_handler import DeferredFileHandler
from streamlit.runtime.media_file_manager import MediaFileManager

LONGEST = 30.0  # seconds; after that the file is made of what there is
EVERY = 0.1  # of which the first lets what was typed come after the click, as a browser may send them
_handle, _add = DeferredFileHandler.handle, MediaFileManager.add_deferred


def wait_for_what_was_typed() -> None:
    """Let files be made when the page has been run with what was typed before the click."""
    MediaFileManager.add_deferred = _add_by_button  # type: ignore[method-assign]
    DeferredFileHandler.handle = _handle_after_the_run  # type: ignore[method-assign]


def _add_by_button(self: MediaFileManager, *given: Any, **named: Any) -> str:
    """The name is as secret as that of the session, of which it is made."""
    file_id = _add(self, *given, **named)
    with self._lock:
        offered = self._deferred_callables.pop(file_id)
        session = offered["session_id"]
        name = sha256(f"{session} {offered['element_id'] or file_id}".encode()).hexdigest()
        self._deferred_callables[name] = offered
        self._deferred_ids_by_session[session].discard(file_id)
        self._deferred_ids_by_session[session].add(name)
        self._files_by_session_and_coord[session][offered["coordinates"]] = name
    return name


async def _handle_after_the_run(self: DeferredFileHandler, request: Any, session_id: str) -> Any:
    clock = asyncio.get_running_loop().time
    end = clock() + LONGEST
    await asyncio.sleep(EVERY)
    while _runs(session_id) and clock() < end:
        await asyncio.sleep(EVERY)
    return await _handle(self, request, session_id)


def _runs(session_id: str) -> bool:
    """Whether the page of a session is being run."""
    info = Runtime.instance()._session_mgr.get_active_session_info(session_id)
    return info is not None and info.session._scriptrunner is not None
