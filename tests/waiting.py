"""Waiting for what other threads and processes do."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 180  # seconds after which a wait counts as endless; never reached when things work


def until(done: Callable[[], bool], every: float = 0.02) -> None:
    """Wait until ``done()``, which is asked ``every`` so many seconds; a test that waits in vain fails."""
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end
        time.sleep(every)
