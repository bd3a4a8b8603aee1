"""Processes that end soon after the one that started them, even in the middle of their work."""

from __future__ import annotations

import os
import select
import threading
import time

GRACE = 2.0  # seconds to save work, or to write an answer that nobody waits for any more


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
