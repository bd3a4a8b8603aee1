"""End the server at once, whatever its threads are waiting for, with all processes that it has started."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from contextlib import suppress
from types import FrameType
from typing import NoReturn

from mha_viz.process.orphans import end_children

EXIT_STOPPED = 130  # the exit code after Ctrl-C, as of every command
STOP_MESSAGE = (
    "The pages that were open can be opened again when the same command runs: their addresses hold what was chosen."
)


def end_server(number: int, _frame: FrameType | None = None) -> NoReturn:
    """End this process on a signal. After Ctrl-C, print a sentence on what is kept."""
    if number == signal.SIGINT:
        with suppress(OSError, ValueError):  # stderr is closed
            print(f"mha-viz: Stopped. {STOP_MESSAGE}", file=sys.stderr, flush=True)
    end_children()
    atexit._run_exitfuncs()  # do not wait for threads of pools, whose readings nobody needs any more
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(EXIT_STOPPED if number == signal.SIGINT else 0)
