"""Processes that end with the one that started them, or soon after it, even in the middle of their work."""

from __future__ import annotations

import os
import select
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

GRACE = 2.0  # seconds to save work, or to write an answer that nobody waits for any more
POLL_SECONDS = 0.02

_started: set[subprocess.Popen[bytes]] = set()  # the children of this process that have not ended


@contextmanager
def watched(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Until the block ends, :func:`end_children` ends this child."""
    _started.add(child)
    try:
        yield
    finally:
        _started.discard(child)


def end_children() -> None:
    """End the children of this process, which ends too: they have GRACE seconds to save their work."""
    children = [*_started]
    for child in children:
        child.terminate()
    until = time.monotonic() + GRACE
    while any(child.poll() is None for child in children) and time.monotonic() < until:
        time.sleep(POLL_SECONDS)
    for child in children:
        child.kill()  # also one that is held inside a library, where it notices nothing


def end_with_parent(stop: threading.Event | None = None) -> None:
    """End this process when its standard input has closed for GRACE seconds; ``stop`` is set as soon as it closes. Work
    of which every message was read should give ``stop``: then no system needs more than a read to notice. Without it,
    nothing is read, and systems without ``select.poll`` (Windows) notice at the next message."""
    if stop is not None or hasattr(select, "poll"):
        threading.Thread(target=_end, args=(stop,), daemon=True, name="orphan").start()


def _end(stop: threading.Event | None) -> None:
    if stop is not None:
        while os.read(0, 1):
            pass
        stop.set()
    else:
        poll = select.poll()
        poll.register(0, select.POLLHUP)  # not what can be read
        while not any(happened & (select.POLLHUP | select.POLLERR) for _, happened in poll.poll()):
            pass
    time.sleep(GRACE)
    os._exit(1)
