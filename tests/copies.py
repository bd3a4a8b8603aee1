"""Fork this process, which has already imported all libraries; a new Python process would take seconds to do so.

Copies are for behaviour that is visible only from outside a process, such as its end by a signal, and for processes
that answer a test's questions, but not for tests of the start of a process.
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

STOP_SIGNALS = {signal.SIGINT, signal.SIGTERM}
EXIT_RAISED = 70  # the exit code of a copy whose work raised an exception


def _fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python 3.12 warns of other threads, which are idle here
        return os.fork()


class _Child:
    """A child process of this one."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        """Return the exit code, or minus the number of the signal that ended it; None while it runs."""
        with self._lock:
            if self.returncode is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                self.returncode = os.waitstatus_to_exitcode(status) if pid else None
            return self.returncode

    def wait(self) -> int:
        """Wait for the process to end, and return the exit code."""
        while (code := self.poll()) is None:
            time.sleep(0.002)
        return code

    def terminate(self) -> None:
        """Ask the process to end, with SIGTERM, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> int:
        """Kill the process with SIGKILL unless it has ended, and return the exit code."""
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
        # Without this, a signal before `_work_and_exit` could let the copy continue with the tests as a second worker.
        allowed = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
        pid = _fork()
        if not pid:
            _work_and_exit(work, log, allowed)
        signal.pthread_sigmask(signal.SIG_SETMASK, allowed)
        super().__init__(pid)


def _work_and_exit(work: Callable[[], int], log: Path, allowed: set[Any]) -> None:
    """Do the work in the copy and end the copy, so that it does not continue with the test."""
    code = EXIT_RAISED
    try:
        with log.open("w", buffering=1) as output:
            sys.stdout = sys.stderr = output
            try:
                signal.pthread_sigmask(signal.SIG_SETMASK, allowed)
                code = work()
            except BaseException:
                traceback.print_exc()
    finally:
        os._exit(code)


# ---- Copies with pipes --------------------------------------------------------------------------------------------


class Piped(_Child):
    """A copy of this process that does ``work``, with pipes for standard input and output.

    It has no other open files of this process, and can replace a ``subprocess.Popen``.
    """

    def __init__(self, work: Callable[[], object]) -> None:
        (their_input, our_input), (our_output, their_output) = os.pipe(), os.pipe()
        pid = _fork()
        if not pid:
            _work_piped_and_exit(work, their_input, their_output)
        super().__init__(pid)
        os.close(their_input)
        os.close(their_output)
        self.stdin, self.stdout = os.fdopen(our_input, "wb"), os.fdopen(our_output, "rb")

    def communicate(self) -> None:
        """Close the pipes and wait for the end."""
        with suppress(BrokenPipeError):  # the child did not read everything
            self.stdin.close()
        self.stdout.close()
        self.wait()


def _work_piped_and_exit(work: Callable[[], object], input_: int, output: int) -> None:
    code = EXIT_RAISED
    try:
        os.dup2(input_, 0)
        os.dup2(output, 1)
        null = os.open(os.devnull, os.O_RDWR)
        for number in [int(entry.name) for entry in Path("/dev/fd").iterdir()]:
            if number > 2:
                os.dup2(null, number)  # not closed, because a copied object may close it later
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
        """Do nothing: there is no spare process."""


def copy_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start processes with models as copies of this one, which has imported the libraries."""
    from mha_viz.app.service.reader import starting

    for kind in (starting.CopyStarter, starting.SpareStarter):
        monkeypatch.setattr(kind, "start", CopiesOfThis.start)
        monkeypatch.setattr(kind, "prepare", CopiesOfThis.prepare)


def copy_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do the work of child processes in copies of this one, which are confined but have no resource limits."""
    from mha_viz.process import children

    def start(command: Sequence[str], **_settings: object) -> Piped:
        *writable, module, _ = command[command.index("-c") + 2 :]

        def work() -> None:
            os.environ |= children.FOLDER_SETTINGS
            sys.argv = [module, *writable]
            children.serve(importlib.import_module(module).work)

        return Piped(work)

    monkeypatch.setattr(children, "subprocess", SimpleNamespace(PIPE=subprocess.PIPE, Popen=start))
