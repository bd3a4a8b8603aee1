"""What closed tabs leave behind is given back: descriptors, uploads, memory."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import sys
import time
from itertools import accumulate
from typing import Any
from weakref import WeakKeyDictionary

from streamlit.runtime.media_file_manager import MediaFileManager, MediaFileMetadata
from streamlit.runtime.session_manager import SessionInfo, SessionStorage

from mha_viz.serving.seats import Seats

try:
    import resource
except ImportError:  # Windows counts no descriptors
    resource = None  # type: ignore[assignment]

_LOG = logging.getLogger(__name__)

TICK = 10  # seconds
QUIET = 60  # seconds without a visitor, after which caches are given back
FETCH_BYTES = 256_000_000  # of all such files; the oldest go
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
    """Runs as long as the server does; what goes wrong in one round is logged, and the next one comes."""
    broom = _Broom(seats, waiting, downloads)
    while True:
        await asyncio.sleep(TICK)
        try:
            await broom.sweep()
        except Exception:
            _LOG.exception("What closed tabs left behind could not be given back")


class _Broom:
    """One round after the other, and what the next one needs to know of the last."""

    def __init__(self, seats: Seats, waiting: Waiting, downloads: Downloads) -> None:
        self._seats, self._waiting, self._downloads = seats, waiting, downloads
        self._collected_at, self._collected, self._gave_back = time.monotonic(), 0, True

    async def sweep(self) -> None:
        """Give back what is due."""
        self._waiting.end_late()
        self._downloads.sweep()
        now = time.monotonic()
        if self._seats.taken:
            self._gave_back = False
            if now - self._collected_at >= COLLECT and self._waiting.ended - self._collected >= ENOUGH:
                self._collected_at, self._collected = now, self._waiting.ended
                gc.collect()
        elif not self._gave_back and now - self._seats.emptied >= QUIET:
            self._gave_back, self._collected_at, self._collected = True, now, self._waiting.ended
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
        met = {name: self._met.setdefault(made[name], now) for name in self._orphans()}
        newest = sorted(met, key=met.__getitem__, reverse=True)
        held = accumulate(self._size(name) for name in newest)
        return {name for name, size in zip(newest, held, strict=True) if now - met[name] > FETCH or size > FETCH_BYTES}

    def _size(self, name: str) -> int:
        file = self._files.read_file(name)
        return len(file.content) if file else 0

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
