"""Wait for other threads and processes."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 120  # seconds after which any wait of any test fails; never reached if everything works


def until(done: Callable[[], bool], every: float = 0.02) -> None:
    """Wait until ``done()``, which is called every ``every`` seconds; fails if that takes too long."""
    end = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < end
        time.sleep(every)
