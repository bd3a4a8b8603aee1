"""End the server and all processes that it has started at once, without waiting for its threads."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from contextlib import suppress
from types import FrameType
from typing import NoReturn

from mha_viz.process.orphans import end_children

EXIT_STOPPED = 130  # the usual exit code of a command after Ctrl-C
STOP_MESSAGE = "Open pages can be reloaded once the same command runs again: their addresses hold what was chosen."


def end_server(number: int, _frame: FrameType | None = None) -> NoReturn:
    """End this process on a signal. After Ctrl-C, print that open pages can be opened again."""
    if number == signal.SIGINT:
        with suppress(OSError, ValueError):  # stderr is closed
            print(f"mha-viz: Stopped. {STOP_MESSAGE}", file=sys.stderr, flush=True)
    end_children()
    atexit._run_exitfuncs()  # unlike sys.exit, this does not wait for pool threads
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(EXIT_STOPPED if number == signal.SIGINT else 0)
