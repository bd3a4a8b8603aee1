"""What closed tabs leave behind is given back: descriptors, uploads, memory."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import sys
import time
from typing import Any
from weakref import WeakKeyDictionary

from streamlit.runtime.media_file_manager import MediaFileManager, MediaFileMetadata
from streamlit.runtime.session_manager import SessionInfo, SessionStorage

from mha_viz.serving.seats import Seats

try:
    import resource
except ImportError:  # Windows counts no descriptors
    resource = None  # type: ignore[assignment]

TICK = 10  # seconds
QUIET = 60  # seconds without a visitor, after which caches are given back
FETCH = 60  # seconds that a browser has to fetch a file that was made for it
COLLECT = 60  # seconds between two collections while visitors are here
ENOUGH = 25  # ended sessions that are worth a collection
MOST_WAITING = 128
_DESCRIPTORS = 1 << 20


def raise_descriptor_limit() -> None:
    """As many open descriptors as the system lets this process have: a session needs four."""
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):  # macOS refuses more than its kernel allows
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, 10_240), hard))


class Waiting(SessionStorage):
    """Sessions whose WebSocket is closed, held for a reconnect. When their time is over they are shut down.

    Streamlit's own storage only forgets them; then each keeps three descriptors, its files and its memory until the
    interpreter happens to collect it. Used on the event loop's thread, as Streamlit does.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._held: dict[str, tuple[SessionInfo, float]] = {}  # by id, the oldest first
        self.ended = 0

    def get(self, session_id: str) -> SessionInfo | None:
        """The session, as long as its time is not over."""
        info, end = self._held.get(session_id, (None, 0.0))
        return info if end > time.monotonic() else None

    def save(self, session_info: SessionInfo) -> None:
        """Hold a session; the oldest ends where there are too many."""
        self._held[session_info.session.id] = (session_info, time.monotonic() + self._seconds)
        self.end_late()
        while len(self._held) > MOST_WAITING:
            self._end(next(iter(self._held)))

    def delete(self, session_id: str) -> None:
        """Forget a session that somebody else goes on with or has shut down."""
        self._held.pop(session_id, None)

    def list(self) -> list[SessionInfo]:
        """All that are held."""
        return [info for info, _ in self._held.values()]

    def end_late(self) -> None:
        """End the sessions whose time is over."""
        now = time.monotonic()
        for late in [name for name, (_, end) in self._held.items() if end <= now]:
            self._end(late)

    def _end(self, session_id: str) -> None:
        info, _ = self._held.pop(session_id)
        info.session.shutdown()
        self.ended += 1


async def sweep(seats: Seats, waiting: Waiting, downloads: Downloads) -> None:
    """Runs as long as the server does."""
    collected_at, collected, gave_back, frozen = time.monotonic(), 0, True, False
    while True:
        await asyncio.sleep(TICK)
        waiting.end_late()
        downloads.sweep()
        now = time.monotonic()
        if seats.taken:
            gave_back = False
            if now - collected_at >= COLLECT and waiting.ended - collected >= ENOUGH:
                collected_at, collected = now, waiting.ended
                gc.collect()
                if not frozen:  # 0.3 s each time as long as all modules are looked at
                    gc.freeze()
                frozen = True
        elif not gave_back and now - seats.emptied >= QUIET:
            gave_back, collected_at, collected, frozen = True, now, waiting.ended, True
            await asyncio.to_thread(_give_back)


class Downloads:
    """Keeps a file that was made for a download until the browser has had time to fetch it.

    Streamlit counts such a file to no session, and any visitor's next run but one would delete it.
    """

    def __init__(self, files: MediaFileManager) -> None:
        self._files = files
        self._orphans = files._get_inactive_file_ids
        # When each file was first met without a session; one that is made again is another.
        self._met: WeakKeyDictionary[MediaFileMetadata, float] = WeakKeyDictionary()
        files._get_inactive_file_ids = self._late  # type: ignore[method-assign]

    def _late(self) -> set[str]:
        """Called under the manager's own lock."""
        now, made = time.monotonic(), self._files._file_metadata
        return {name for name in self._orphans() if now - self._met.setdefault(made[name], now) > FETCH}

    def sweep(self) -> None:
        """Delete what nobody fetches any more, also when no page runs."""
        self._files.remove_orphaned_files()


def _give_back() -> None:
    """Nobody is here: caches, and memory that only the allocator holds, go back to the system."""
    empty: Any = getattr(sys.modules.get("mha_viz.ui.cache"), "idle", None)  # not loaded before the first visitor
    if empty is not None:
        empty()
    gc.unfreeze()
    gc.collect()
    gc.freeze()  # what is left are modules: later collections need not look at them
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform.startswith("linux") else None
    if trim is not None:
        trim(0)
