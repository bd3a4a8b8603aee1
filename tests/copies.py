"""Copies of this process, which already have all libraries; a new Python process would import them for seconds.

They are for behaviour that is visible only from outside a process, such as its end by a signal, and for processes that
a test asks something, but not for what happens at the start of a process.
"""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

STOPPING = {signal.SIGINT, signal.SIGTERM}
RAISED = 70  # the exit code of a copy whose work raised an exception


def _fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python 3.12 warns about locks of other threads; those here wait for work
        return os.fork()


class _Child:
    """A child process of this one."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._looking = threading.Lock()

    def poll(self) -> int | None:
        """Return the exit code, or minus the number of the signal that ended it; None while it runs."""
        with self._looking:
            if self.returncode is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                self.returncode = os.waitstatus_to_exitcode(status) if pid else None
            return self.returncode

    def wait(self) -> int:
        """Wait for the end; the exit code."""
        while (code := self.poll()) is None:
            time.sleep(0.002)
        return code

    def terminate(self) -> None:
        """Ask it to end, with SIGTERM."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> int:
        """Kill it with SIGKILL unless it has ended, and wait; returns the exit code."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
        return self.wait()


class Copy(_Child):
    """A copy of this process that does ``work`` and ends with its return value as the exit code.

    It prints to ``log``.
    """

    def __init__(self, work: Callable[[], int], log: Path) -> None:
        self.log = log
        log.touch()
        # Before its work is guarded, a signal would send the copy on through the tests as a second worker.
        allowed = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
        pid = _fork()
        if not pid:
            _do(work, log, allowed)
        signal.pthread_sigmask(signal.SIG_SETMASK, allowed)
        super().__init__(pid)


def _do(work: Callable[[], int], log: Path, allowed: set[Any]) -> None:
    """Do the work in the copy and end it, so that nothing of the test is done twice."""
    code = RAISED
    try:
        with log.open("w", buffering=1) as printed:
            sys.stdout = sys.stderr = printed
            try:
                signal.pthread_sigmask(signal.SIG_SETMASK, allowed)
                code = work()
            except BaseException:
                traceback.print_exc()
    finally:
        os._exit(code)


# ---- Copies that are asked ----------------------------------------------------------------------------------------


class Piped(_Child):
    """A copy of this process that does ``work`` with a pipe each for standard input and output.

    It holds nothing else that is open here, and stands in for a ``subprocess.Popen``.
    """

    def __init__(self, work: Callable[[], object]) -> None:
        (their_input, our_input), (our_output, their_output) = os.pipe(), os.pipe()
        pid = _fork()
        if not pid:
            _do_piped(work, their_input, their_output)
        super().__init__(pid)
        os.close(their_input)
        os.close(their_output)
        self.stdin, self.stdout = os.fdopen(our_input, "wb"), os.fdopen(our_output, "rb")

    def communicate(self) -> None:
        """Close the pipes and wait for the end."""
        with suppress(BrokenPipeError):  # something was not read
            self.stdin.close()
        self.stdout.close()
        self.wait()


def _do_piped(work: Callable[[], object], given: int, written: int) -> None:
    code = RAISED
    try:
        os.dup2(given, 0)
        os.dup2(written, 1)
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in [int(entry.name) for entry in Path("/dev/fd").iterdir()]:
            if number > 2:
                os.dup2(nothing, number)  # not closed: an object of this process may still close it
        sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
    finally:
        os._exit(code)


class CopiesOfThis:
    """A starter of processes with models (``app.service.reader.starting``) that copies this process."""

    def start(self) -> Any:
        from mha_viz.app.service.reader.__main__ import serve  # imports the libraries

        return Piped(serve)

    def prepare(self) -> None:
        """Do nothing: a copy needs no preparation."""

    def close(self) -> None:
        """Do nothing: no process waits."""


def copy_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start processes with models as copies of this one, which have the libraries already."""
    from mha_viz.app.service.reader import starting

    for kind in (starting.CopyStarter, starting.SpareStarter):
        monkeypatch.setattr(kind, "start", CopiesOfThis.start)
        monkeypatch.setattr(kind, "prepare", CopiesOfThis.prepare)


def copy_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do the work of child processes in copies of this one.

    A copy is confined all the same, but not limited.
    """
    from mha_viz.process import children

    def started(command: Sequence[str], **_settings: object) -> Piped:
        *writable, module, _ = command[command.index("-c") + 2 :]

        def work() -> None:
            os.environ |= children.FOLDER_SETTINGS
            sys.argv = [module, *writable]
            children.serve(importlib.import_module(module).work)

        return Piped(work)

    monkeypatch.setattr(children, "subprocess", SimpleNamespace(PIPE=subprocess.PIPE, Popen=started))
