"""Import libraries once in a template process that forks copies of itself within milliseconds.

A template has one thread, because a copy has no other: a lock that another thread holds would stay locked in it. If the
libraries have started threads, the template does the work itself, once. A copy has two pipes and inherits nothing else
of the requesting process; until it writes to memory, it shares the memory with the template.

multiprocessing has such a process too (``forkserver``), but it takes the environment, limits and ``__main__`` of the
requesting process, imports that ``__main__`` (here Streamlit) in every copy, and its copies unpickle their work.
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
_NO_COPY, _IS_COPY = 0, -1  # sent or returned instead of a PID: no copy could be made; this process is the copy
_THREADS_FOLDER = Path("/proc/self/task")
_EXIT_SECONDS = 1.0  # seconds that a waiting template has to exit by itself


def is_supported() -> bool:
    """Return whether this system supports templates: Linux 5.3 or later, with a Python that was built for it."""
    if not (hasattr(os, "pidfd_open") and hasattr(signal, "pidfd_send_signal") and _THREADS_FOLDER.exists()):
        return False
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:  # an older kernel, or a container that forbids it
        return False
    return True


# ---- The requesting process ---------------------------------------------------------------------------------------


class PipedProcess:
    """A process with pipes for its standard input and output, used in place of a ``subprocess.Popen``.

    It need not be a child of this process.
    """

    def __init__(self, pid: int, handle: int, input_pipe: int, output_pipe: int) -> None:
        self.pid = pid
        self.stdin, self.stdout = os.fdopen(input_pipe, "wb"), os.fdopen(output_pipe, "rb")
        self._handle: int | None = handle  # a pidfd, which stays valid even if the system reuses the PID
        self._lock = threading.Lock()  # the handle must not be closed while it is used

    def poll(self) -> int | None:
        """Return None while the process runs, otherwise 0: only its parent knows its exit status."""
        with self._lock:
            return 0 if self._handle is None or _has_ended(self._handle, 0) else None

    def wait(self) -> None:
        """Wait until the process has ended."""
        if self._handle is not None:
            _has_ended(self._handle, None)

    def kill(self) -> None:
        """Kill the process with SIGKILL if it is running."""
        with self._lock:
            if self._handle is not None:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def communicate(self) -> None:
        """Close the pipes and wait until the process has ended."""
        with suppress(BrokenPipeError):  # the process has not read everything
            self.stdin.close()
        self.stdout.close()
        self.wait()
        with self._lock:
            handle, self._handle = self._handle, None
            if handle is not None:
                os.close(handle)


def _has_ended(handle: int, milliseconds: int | None) -> bool:
    """Return whether the process of a pidfd ends within this time (None: without limit).

    ``select.select`` would refuse file descriptors from 1,024 on, which a server with many connections has.
    """
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(milliseconds))


class Template:
    """A new process that runs ``command``, which ends in :func:`serve_copies`."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._requests, template_end = socket.socketpair()
        try:
            self._process = subprocess.Popen(command, stdin=template_end.fileno(), stdout=2, env=environment)
        except OSError:
            self._requests.close()
            raise
        finally:
            template_end.close()
        self.pid = self._process.pid

    @property
    def is_running(self) -> bool:
        """Return whether the template can still make copies."""
        return self._requests.fileno() >= 0 and self._process.poll() is None

    def copy(self, seconds: float) -> PipedProcess:
        """Return a copy, or the template itself if it has threads.

        Raises ConnectionError if the template has ended, another OSError if it could not make a copy, and TimeoutError
        if the copy is not ready within ``seconds``.
        """
        with ExitStack() as their_ends, ExitStack() as our_ends:
            their_input, our_input = _make_pipe(their_ends, our_ends)
            our_output, their_output = _make_pipe(our_ends, their_ends)
            self._requests.settimeout(seconds)
            socket.send_fds(self._requests, [_COPY], [their_input, their_output])
            answer, handles, _, _ = socket.recv_fds(self._requests, _PID.size, 1)
            if not answer:
                raise ConnectionResetError("The template has ended.")
            (pid,) = _PID.unpack(answer)
            if pid == _NO_COPY:
                raise BlockingIOError("The system cannot start another process.")
            our_ends.pop_all()
        os.set_inheritable(handles[0], False)
        if pid == self.pid:
            self._requests.close()
        return PipedProcess(pid, handles[0], our_input, our_output)

    def close(self) -> None:
        """End the template; its copies keep running.

        The template reaps its ended copies before it exits, because the system's first process may not reap them.
        """
        self._requests.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_EXIT_SECONDS)
        self._process.kill()
        self._process.wait()


def _make_pipe(reading_stack: ExitStack, writing_stack: ExitStack) -> tuple[int, int]:
    """Make a pipe and return its ends (reading, writing) as ``os.pipe`` does; each end is closed with its stack."""
    ends = os.pipe()
    for stack, end in zip((reading_stack, writing_stack), ends, strict=True):
        stack.callback(os.close, end)
    return ends


# ---- The template -------------------------------------------------------------------------------------------------


def serve_copies(work: Callable[[], object]) -> None:
    """Fork a copy for each request, which does ``work`` with its standard input and output.

    Return when the requester closes its end.
    """
    requests = socket.socket(fileno=os.dup(0))
    gc.freeze()  # garbage collection in a copy would otherwise write to all objects, so that none could be shared
    while pipes := socket.recv_fds(requests, len(_COPY), 2)[1]:
        _reap_copies()
        has_threads = len(list(_THREADS_FOLDER.iterdir())) > 1
        pid = os.getpid() if has_threads else _fork()
        if pid != _IS_COPY:
            _send_pid(requests, pid)
        if has_threads or pid == _IS_COPY:
            requests.close()
            _run_and_exit(work, pipes)
        for pipe in pipes:
            os.close(pipe)
    _reap_copies()


def _fork() -> int:
    """Fork this process. Return the PID of the copy; _IS_COPY in the copy; _NO_COPY if the system refuses a process."""
    try:
        return os.fork() or _IS_COPY
    except OSError:
        return _NO_COPY


def _reap_copies() -> None:
    """Reap copies that have ended.

    This happens only when the next copy is requested: until then the system gives their PIDs to no other process.
    """
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _send_pid(requests: socket.socket, pid: int) -> None:
    """Send the PID of a copy, with its pidfd if there is a copy."""
    if pid == _NO_COPY:
        requests.sendall(_PID.pack(pid))
        return
    handle = os.pidfd_open(pid)
    socket.send_fds(requests, [_PID.pack(pid)], [handle])
    os.close(handle)


def _run_and_exit(work: Callable[[], object], pipes: Sequence[int]) -> None:
    """Do the work with these pipes as standard input and output, then exit."""
    for number, pipe in enumerate(pipes):
        os.dup2(pipe, number)
        os.close(pipe)
    try:
        work()
        os._exit(0)
    except BaseException as error:
        print(log.format_line(log.describe_error(error)), file=sys.stderr, flush=True)
        os._exit(1)
