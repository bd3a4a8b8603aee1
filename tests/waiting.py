"""Wait for other threads and processes."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 120  # seconds; waits in tests fail after this


def until(done: Callable[[], bool], every: float = 0.02) -> None:
    """Call ``done`` every ``every`` seconds until it returns True; fail after PATIENCE seconds."""
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end
        time.sleep(every)
