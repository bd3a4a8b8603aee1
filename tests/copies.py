"""Copies of this process, which already have all libraries; a new Python process would import them for seconds.

They are for behaviour that is visible only from outside a process, such as its end by a signal, and not for what
happens at its start.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

RAISED = 70  # the exit code of a copy whose work raised an exception


class Copy:
    """A copy of this process that does ``work`` and ends with its return value as the exit code; it prints to
    ``log``."""

    def __init__(self, work: Callable[[], int], log: Path) -> None:
        self.log = log
        log.touch()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python 3.12 warns about locks of other threads; those here wait for work
            self.pid = os.fork()
        if not self.pid:
            _do(work, log)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, or minus the number of the signal that ended it; None while it runs."""
        return self._look(os.WNOHANG)

    def wait(self) -> int:
        """Wait for the end; the exit code."""
        code = self._look(0)
        assert code is not None
        return code

    def kill(self) -> int:
        """Kill it with SIGKILL unless it has ended, and wait; returns the exit code."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
        return self.wait()

    def _look(self, options: int) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, options)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode


def _do(work: Callable[[], int], log: Path) -> None:
    """In the copy: it ends here, so that nothing of the test is done twice."""
    code = RAISED
    try:
        with log.open("w", buffering=1) as printed:
            sys.stdout = sys.stderr = printed
            try:
                code = work()
            except BaseException:
                traceback.print_exc()
    finally:
        os._exit(code)
