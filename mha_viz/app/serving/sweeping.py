"""Free the file descriptors, uploads and memory of closed tabs."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import time
from collections.abc import Callable
from functools import wraps
from itertools import accumulate
from typing import Any
from weakref import WeakKeyDictionary

from streamlit import config
from streamlit.runtime.media_file_manager import MediaFileManager, MediaFileMetadata
from streamlit.runtime.session_manager import SessionInfo, SessionStorage

from mha_viz import process
from mha_viz.app.serving.session_limit import SessionLimit

try:
    import resource
except ImportError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]

_LOG = logging.getLogger(__name__)

SWEEP_INTERVAL_S = 10  # seconds between two sweeps
IDLE_S = 60  # seconds without a visitor after which caches are freed
FETCH_BYTES = 256_000_000  # maximum size of all files that wait for a download; the oldest are deleted first
FETCH_S = 60  # seconds that a browser has to download a file that was made for it
COLLECT_S = 60  # seconds between two garbage collections while there are visitors
MIN_ENDED = 25  # minimum ended sessions that are worth a garbage collection
MAX_WAITING = 128  # maximum sessions that wait for a reconnect
_MAX_DESCRIPTORS = 1 << 20  # a system without a limit counts as having this one


def raise_descriptor_limit() -> None:
    """Raise the limit of open file descriptors to the system's maximum, because a session needs four."""
    if resource is None:
        return
    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = _MAX_DESCRIPTORS if hard_limit == resource.RLIM_INFINITY else min(hard_limit, _MAX_DESCRIPTORS)
    if soft_limit != resource.RLIM_INFINITY and soft_limit < target:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard_limit))
        except (OSError, ValueError):  # macOS refuses more than its kernel allows
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(target, 10_240), hard_limit))


def read_descriptor_limit() -> int:
    """Return how many files and connections this process may have open."""
    if resource is None:
        return _MAX_DESCRIPTORS
    soft_limit: int = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _MAX_DESCRIPTORS if soft_limit == resource.RLIM_INFINITY else soft_limit


class WaitingSessions(SessionStorage):
    """Sessions whose WebSocket is closed, kept for a reconnect and shut down when they expire.

    Streamlit's own storage only drops its reference; the session then holds three descriptors, its files and its memory
    until it happens to be garbage collected. Like Streamlit's, this storage is used on the event loop's thread.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._stored: dict[str, tuple[SessionInfo, float]] = {}  # session and when it expires, by id, the oldest first
        self.ended_count = 0

    def get(self, session_id: str) -> SessionInfo | None:
        """Return the session; None if there is none or it has expired."""
        info, expiry = self._stored.get(session_id, (None, 0.0))
        return info if expiry > time.monotonic() else None

    def save(self, session_info: SessionInfo) -> None:
        """Store a session; shut down the oldest ones if there are too many."""
        self._stored[session_info.session.id] = (session_info, time.monotonic() + self._seconds)
        self.end_expired()
        while len(self._stored) > MAX_WAITING:
            self._end(next(iter(self._stored)))

    def delete(self, session_id: str) -> None:
        """Remove a session that was resumed or shut down."""
        self._stored.pop(session_id, None)

    def list(self) -> list[SessionInfo]:
        """Return all stored sessions."""
        return [info for info, _ in self._stored.values()]

    def end_expired(self) -> None:
        """Shut down the sessions that have expired."""
        now = time.monotonic()
        for session_id in [name for name, (_, expiry) in self._stored.items() if expiry <= now]:
            self._end(session_id)

    def _end(self, session_id: str) -> None:
        info, _ = self._stored.pop(session_id)
        info.session.shutdown()
        self.ended_count += 1


async def sweep(session_limit: SessionLimit, stored_sessions: WaitingSessions, downloads: MediaFileManager) -> None:
    """Sweep until the server ends. An error in one round is logged and does not stop the next."""
    sweeper = _Sweeper(session_limit, stored_sessions, downloads)
    while True:
        await asyncio.sleep(SWEEP_INTERVAL_S)
        try:
            await sweeper.sweep()
        except Exception:
            _LOG.exception("Resources of closed tabs could not be freed")


class _Sweeper:
    """Frees resources in rounds."""

    def __init__(
        self, session_limit: SessionLimit, stored_sessions: WaitingSessions, downloads: MediaFileManager
    ) -> None:
        self._session_limit, self._sessions, self._downloads = session_limit, stored_sessions, downloads
        self._collected_at, self._ended_before, self._is_swept = time.monotonic(), 0, True

    async def sweep(self) -> None:
        """End expired sessions, delete orphaned files and, from time to time, free memory."""
        self._sessions.end_expired()
        self._downloads.remove_orphaned_files()  # also while no page runs
        now = time.monotonic()
        if self._session_limit.open_count:
            self._is_swept = False
            if now - self._collected_at >= COLLECT_S and self._sessions.ended_count - self._ended_before >= MIN_ENDED:
                self._collected_at, self._ended_before = now, self._sessions.ended_count
                gc.collect()
        elif not self._is_swept and now - self._session_limit.last_closed >= IDLE_S:
            self._is_swept, self._collected_at, self._ended_before = True, now, self._sessions.ended_count
            await asyncio.to_thread(_free_memory)


def store_waiting_sessions(original: Callable[..., None]) -> Callable[..., None]:
    """Make the session manager store sessions that wait for a reconnect in :class:`WaitingSessions`."""

    @wraps(original)
    def init(self: Any, session_storage: SessionStorage, *args: Any, **options: Any) -> None:
        original(self, WaitingSessions(float(config.get_option("server.disconnectedSessionTTL"))), *args, **options)

    return init


def keep_unfetched_files(original: Callable[[Any], set[str]]) -> Callable[[Any], set[str]]:
    """Keep files that were created for a download until the browser has had time to fetch them.

    Streamlit assigns such a file to no session, so the second run of any visitor would delete it.
    """
    # When each file was first seen without a session; a file that is created again counts as new.
    first_seen: WeakKeyDictionary[MediaFileMetadata, float] = WeakKeyDictionary()

    @wraps(original)
    def list_expired(self: MediaFileManager) -> set[str]:
        now, files = time.monotonic(), self._file_metadata
        first_seen_times = {name: first_seen.setdefault(files[name], now) for name in original(self)}
        newest_names = sorted(first_seen_times, key=first_seen_times.__getitem__, reverse=True)
        sizes = accumulate(_count_bytes(self, name) for name in newest_names)
        return {
            name
            for name, size in zip(newest_names, sizes, strict=True)
            if now - first_seen_times[name] > FETCH_S or size > FETCH_BYTES
        }

    return list_expired


def _count_bytes(files: MediaFileManager, name: str) -> int:
    file = files.read_file(name)
    return len(file.content) if file else 0


def _free_memory() -> None:
    """Empty the caches and return free memory to the system; called when there are no visitors."""
    # The first visitor loads the module.
    free_caches: Any = getattr(sys.modules.get("mha_viz.app.service.caches"), "empty_caches", None)
    if free_caches is not None:
        free_caches()
    process.release_memory()
