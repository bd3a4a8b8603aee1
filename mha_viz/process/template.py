"""A process that has imported libraries and makes copies of itself: in milliseconds, where importing takes seconds.

A template has one thread, because a copy has no other: a lock that another thread holds would stay locked in it. If the
libraries have begun threads, it does the work itself, once. A copy has two pipes and nothing else of the process that
asks; until it writes to it, memory is shared with the template.

multiprocessing has such a process, too (``forkserver``). It has the environment, limits and ``__main__`` of the process
that asks, imports that ``__main__`` (here Streamlit) in every copy, and its copies unpickle what they do.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from mha_viz.process import log

_PID = struct.Struct("<i")
_COPY = b"c"
_NONE, _COPIED = 0, -1  # in place of the number of a copy: none could be made, or this process is the copy
_TASKS = Path("/proc/self/task")
_LEAVING = 1.0  # seconds in which a template that waits ends by itself


def possible() -> bool:
    """Whether this system has what templates need: Linux from 5.3 on, and a Python that was built for it."""
    if not (hasattr(os, "pidfd_open") and hasattr(signal, "pidfd_send_signal") and _TASKS.exists()):
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:  # an older kernel, or a container that forbids it
        return False
    return True


# ---- The process that asks ----------------------------------------------------------------------------------------


class Piped:
    """A process with a pipe for its standard input and one for its standard output, which need not be a child of this
    one: in place of a ``subprocess.Popen``."""

    def __init__(self, pid: int, handle: int, given: int, answered: int) -> None:
        self.pid = pid
        self.stdin, self.stdout = os.fdopen(given, "wb"), os.fdopen(answered, "rb")
        self._handle: int | None = handle  # a pidfd: it stands for no other process that gets the number later
        self._lock = threading.Lock()  # between its use and its end

    def poll(self) -> int | None:
        """None while it runs, otherwise 0: how it ended is known to its parent alone."""
        with self._lock:
            return 0 if self._handle is None or _ended(self._handle, 0) else None

    def wait(self) -> None:
        """Wait for its end."""
        if self._handle is not None:
            _ended(self._handle, None)

    def kill(self) -> None:
        """Kill it with SIGKILL, if it runs."""
        with self._lock:
            if self._handle is not None:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def communicate(self) -> None:
        """Close the pipes and wait for its end."""
        with suppress(BrokenPipeError):  # something was not read
            self.stdin.close()
        self.stdout.close()
        self.wait()
        with self._lock:
            handle, self._handle = self._handle, None
            if handle is not None:
                os.close(handle)


def _ended(handle: int, milliseconds: int | None) -> bool:
    """Whether the process of a pidfd ends within this time (None: however long). ``select`` would refuse numbers from
    1,024 on, which a server with many connections has."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(milliseconds))


class Template:
    """A new process from ``command``, which ends in :func:`serve_copies`."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._requests, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(command, stdin=theirs.fileno(), stdout=2, env=environment)
        except OSError:
            self._requests.close()
            raise
        finally:
            theirs.close()
        self.pid = self._process.pid

    @property
    def runs(self) -> bool:
        """Whether it can be asked for a copy."""
        return self._requests.fileno() >= 0 and self._process.poll() is None

    def copy(self, seconds: float) -> Piped:
        """A copy, or the process itself if it has threads. Raises ConnectionError if it has ended, another OSError if
        it could not make one, and TimeoutError if it is not ready within ``seconds``."""
        with ExitStack() as theirs, ExitStack() as ours:
            their_input, our_input = _pipe(theirs, ours)
            our_output, their_output = _pipe(ours, theirs)
            self._requests.settimeout(seconds)
            socket.send_fds(self._requests, [_COPY], [their_input, their_output])
            answer, handles, _, _ = socket.recv_fds(self._requests, _PID.size, 1)
            if not answer:
                raise ConnectionResetError("The template has ended.")
            (pid,) = _PID.unpack(answer)
            if pid == _NONE:
                raise BlockingIOError("The system has no room for another process.")
            ours.pop_all()
        os.set_inheritable(handles[0], False)
        if pid == self.pid:
            self._requests.close()
        return Piped(pid, handles[0], our_input, our_output)

    def close(self) -> None:
        """End it; its copies stay. It ends by itself, so that none of those that have ended is left to the system's
        first process, which may bury nobody."""
        self._requests.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_LEAVING)
        self._process.kill()
        self._process.wait()


def _pipe(first: ExitStack, second: ExitStack) -> tuple[int, int]:
    """The ends of a pipe, in the order (reading, writing) of ``os.pipe``; each is closed with its stack."""
    ends = os.pipe()
    for stack, end in zip((first, second), ends, strict=True):
        stack.callback(os.close, end)
    return ends


# ---- The template -------------------------------------------------------------------------------------------------


def serve_copies(work: Callable[[], object]) -> None:
    """Make a copy that does ``work`` with its standard input and output, whenever the other process asks for one,
    until that process closes its end."""
    requests = socket.socket(fileno=os.dup(0))
    gc.freeze()  # a copy that collects garbage would otherwise write to all objects, and share none
    while pipes := socket.recv_fds(requests, len(_COPY), 2)[1]:
        _bury()
        with_threads = len(list(_TASKS.iterdir())) > 1
        pid = os.getpid() if with_threads else _fork()
        if pid != _COPIED:
            _tell(requests, pid)
        if with_threads or pid == _COPIED:
            requests.close()
            _do(work, pipes)
        for pipe in pipes:
            os.close(pipe)
    _bury()


def _fork() -> int:
    """The number of a copy, _COPIED in the copy, _NONE if the system makes none."""
    try:
        return os.fork() or _COPIED
    except OSError:
        return _NONE


def _bury() -> None:
    """Let the system forget the copies that have ended. Not before another is asked for: until then their numbers are
    given to no other process."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _tell(requests: socket.socket, pid: int) -> None:
    if pid == _NONE:
        requests.sendall(_PID.pack(pid))
        return
    handle = os.pidfd_open(pid)
    socket.send_fds(requests, [_PID.pack(pid)], [handle])
    os.close(handle)


def _do(work: Callable[[], object], pipes: Sequence[int]) -> None:
    """Do the work with these pipes, then end the process."""
    for number, pipe in enumerate(pipes):
        os.dup2(pipe, number)
        os.close(pipe)
    try:
        work()
        os._exit(0)
    except BaseException as error:
        print(log.as_line(log.raised(error)), file=sys.stderr, flush=True)
        os._exit(1)
