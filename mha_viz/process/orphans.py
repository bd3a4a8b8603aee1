"""End child processes with their parent, or soon after it, even in the middle of their work."""

from __future__ import annotations

import os
import select
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

GRACE_S = 2.0  # seconds to save work, or to write an answer that nobody waits for
POLL_SECONDS = 0.02

_running_children: set[subprocess.Popen[bytes]] = set()  # the children of this process that have not ended


@contextmanager
def watch_child(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Register a child for :func:`end_children` until the block ends."""
    _running_children.add(child)
    try:
        yield
    finally:
        _running_children.discard(child)


def end_children() -> None:
    """End the children of this process, which is ending too. They have GRACE_S seconds to save their work."""
    children = [*_running_children]
    for child in children:
        child.terminate()
    deadline = time.monotonic() + GRACE_S
    while any(child.poll() is None for child in children) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    for child in children:
        child.kill()  # also ends a child that is busy inside a library and ignores the signal


def end_with_parent(stop: threading.Event | None = None) -> None:
    """End this process GRACE_S seconds after its standard input has closed; ``stop`` is set as soon as it closes.

    Call this with ``stop`` only once all messages have been read. It then detects the end by reading standard input,
    which works on every system. Without ``stop``, nothing is read, and systems without ``select.poll`` (Windows) detect
    the end at the next message.
    """
    if stop is not None or hasattr(select, "poll"):
        threading.Thread(target=_wait_for_parent, args=(stop,), daemon=True, name="orphan").start()


def _wait_for_parent(stop: threading.Event | None) -> None:
    """Wait until standard input closes, then end this process after GRACE_S seconds."""
    if stop is not None:
        while os.read(0, 1):
            pass
        stop.set()
    else:
        poll = select.poll()
        poll.register(0, select.POLLHUP)  # without POLLIN: messages are for another reader
        while not any(events & (select.POLLHUP | select.POLLERR) for _, events in poll.poll()):
            pass
    time.sleep(GRACE_S)
    os._exit(1)
