"""Work in a child process, so that it takes neither the interpreter nor the memory of the app.

The caller names a module that ends in ``if __name__ == "__main__": serve(work)`` and sends it an order; it receives
progress and a result. The child runs at low priority, is limited in time, memory and threads, and never outlives its
parent: it watches its standard input, which closes when the parent ends for any reason. It writes only where it is
told to and has no network, unless that is its work, if the system can see to it (``process.confined``). Orders and
results are plain values (``process.messages``): numbers, texts, bytes and arrays, alone or in lists and dicts; nothing
is unpickled.
"""

from __future__ import annotations

import contextlib
import gc
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

from mha_viz import errors, process
from mha_viz.errors import Cancelled, Failed, MhaVizError, TooLarge, TooSlow
from mha_viz.process import log, messages
from mha_viz.process.confined import confine
from mha_viz.process.messages import Array, Codec, Json
from mha_viz.process.orphans import end_with_parent, watched

POLL_SECONDS = 0.1  # seconds between two checks whether the work is cancelled
FULL_BYTES = 2**20  # below the limit of memory: less than Python asks for at a time
NICE = 10  # niceness, because the app has priority
THREAD_SETTINGS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")

# numpy's library would begin its threads while it is imported, before the process is confined.
ONE_AT_IMPORT = MappingProxyType({"OPENBLAS_NUM_THREADS": "1"})
# When its optimisers are first used, torch sees to a folder for compiled code, although nothing is compiled: one that
# exists, because a confined process can make none.
FOLDERS = MappingProxyType({"TORCHINDUCTOR_CACHE_DIR": sys.prefix})

Tell = Callable[[float], None]  # takes the fraction that is done
Stop = Callable[[], bool]  # True when the work is cancelled
Work = Callable[[Any, Tell, Stop], Any]
_CODEC = Codec()


class Bounds(NamedTuple):
    """The limits of a child: ``seconds`` of wall time; ``megabytes`` (10^6 bytes) of memory besides mapped files, 0 for
    no limit; ``threads``, 0 for one per core. ``grace``: seconds to save work after a stop. ``what`` and ``less`` are
    parts of error messages: the name of the work, and what to do about it. ``answer_bytes``: of the result, which the
    parent holds in its own memory; ``writable``: the folders that the child may write to."""

    seconds: float = math.inf
    megabytes: int = 0
    threads: int = 1
    grace: float = 0.0
    what: str = "The work"
    less: str = "Give it less to do."
    answer_bytes: int = 100_000_000
    writable: tuple[str, ...] = ()


# ---- The process that waits -------------------------------------------------------------------------------------


def run(
    module: str,
    order: object,
    bounds: Bounds,
    progress: Tell = lambda _: None,
    cancelled: Stop = lambda: False,
) -> Any:
    """The result of a module's ``work`` on ``order``, from a child process that has ended when this returns.

    Raises Cancelled soon after ``cancelled`` returns True, TooSlow and TooLarge at the limits, the MhaVizError that the
    work raised, and Failed when the child ends for another reason.
    """
    with _started(module, bounds) as child:
        watchdog = _Watchdog(child, bounds, cancelled)
        try:
            answer = _converse(child, order, progress, bounds.answer_bytes)
        finally:
            watchdog.end()
    if answer is None or "value" not in answer:
        _raise_failure(answer, watchdog.ended_by or _from_signal(child.returncode), bounds)
    return answer["value"]


@contextlib.contextmanager
def _started(module: str, bounds: Bounds) -> Iterator[subprocess.Popen[bytes]]:
    """Start a child; on exit, end it and close its pipes."""
    command, environment = process.python("-c", _START, *bounds.writable, module, json.dumps(_limits(bounds)))
    threads = dict.fromkeys(THREAD_SETTINGS, str(bounds.threads)) if bounds.threads else {}
    threads |= ONE_AT_IMPORT
    child = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**process.SETTINGS, **environment, **threads, **FOLDERS},
    )
    try:
        with watched(child):
            yield child
    finally:
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            with contextlib.suppress(OSError):  # the child did not read its request
                pipe.close()  # type: ignore[union-attr]


# The limits are set before any library is imported. On systems without them (Windows) only the parent's clock limits
# the child. Garbage collection is off while libraries are imported, because their objects stay: it would take a fifth
# of the import time.
_START = f"""
import gc, json, os, runpy, sys
gc.disable()
limits, module = json.loads(sys.argv.pop()), sys.argv.pop()
if hasattr(os, "nice"):
    os.nice({NICE})
try:
    import resource
except ImportError:
    limits = {{}}
for name, limit in limits.items():
    try:
        resource.setrlimit(getattr(resource, name), limit)
    except (ValueError, OSError):  # the limit is lower already
        pass
try:
    runpy.run_module(module, run_name="__main__", alter_sys=True)
except MemoryError:
    os.abort()  # reported as such
"""


def _limits(bounds: Bounds) -> dict[str, tuple[int, int]]:
    """The soft and hard limits of a child by their names in ``resource``. Memory means writable memory: numeric
    libraries reserve gigabytes of address space that they never use."""
    limits = {"RLIMIT_CORE": (0, 0)}
    if bounds.megabytes:
        limits["RLIMIT_DATA"] = (bounds.megabytes * 10**6,) * 2
    if not math.isinf(bounds.seconds):  # this also ends an orphan that hangs inside a library; a hard limit always does
        seconds = math.ceil(bounds.seconds) * (bounds.threads or os.cpu_count() or 1) + 1
        limits["RLIMIT_CPU"] = (seconds, seconds + 5)
    return limits


def _is_full(pid: int, megabytes: int) -> bool:
    """Whether a process gets no more of the memory that it may have. Python then may try for ever to raise the error
    that says so, because it needs memory for that (``exception_unwind`` of ceval.c). False where no system tells."""
    try:
        status = Path(f"/proc/{pid}/status").read_text("ascii") if megabytes else ""
    except OSError:  # another system, or the process has ended
        return False
    _, _, written = status.partition("VmData:")
    return bool(written) and int(written.split()[0]) * 1024 > megabytes * 10**6 - FULL_BYTES


class _Watchdog:
    """Ends a child when it is cancelled, has used its memory up or its time is over; ``ended_by`` gives the reason."""

    def __init__(self, child: subprocess.Popen[bytes], bounds: Bounds, cancelled: Stop) -> None:
        self.ended_by: type[MhaVizError] | None = None
        self._child, self._bounds, self._cancelled = child, bounds, cancelled
        self._finished = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="apart")
        self._thread.start()

    def end(self) -> None:
        """Stop watching."""
        self._finished.set()
        self._thread.join()

    def _watch(self) -> None:
        deadline, was_full = time.monotonic() + self._bounds.seconds, False
        while not self._finished.wait(POLL_SECONDS):
            is_full = _is_full(self._child.pid, self._bounds.megabytes)
            if self._cancelled():
                self.ended_by = Cancelled
            elif was_full and is_full:
                self.ended_by = TooLarge
            elif time.monotonic() > deadline:
                self.ended_by = TooSlow
            was_full = is_full
            if self.ended_by:
                self._child.terminate()
                self._finished.wait(self._bounds.grace)
                self._child.kill()
                return


def _converse(child: subprocess.Popen[bytes], order: object, progress: Tell, most: int) -> Json | None:
    """Send the order, report the progress and return the answer, whose value is not read if it has more than ``most``
    bytes; None if the child ends early."""
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        packed, arrays = _CODEC.pack(order)
        messages.send(child.stdin, {"order": packed}, arrays)
        while "done" in (received := messages.receive(child.stdout, most))[0]:
            progress(received[0]["done"])
        heading, arrays = received
        return {"value": _CODEC.parse(heading["value"], arrays)} if "value" in heading else heading
    except OverflowError as error:
        return {"bytes": error.args[0]}
    except (OSError, EOFError, ValueError):  # a broken pipe or a truncated message
        return None


def _raise_failure(answer: Json | None, ended_by: type[MhaVizError] | None, bounds: Bounds) -> NoReturn:
    """Raise the error that explains why there is no result."""
    if ended_by is Cancelled:
        raise Cancelled(*(answer or {}).get("error", ("", f"{bounds.what} was stopped.", "Start it again."))[1:])
    if ended_by is TooSlow:
        raise TooSlow(f"{bounds.what} took longer than {bounds.seconds:.0f} s.", bounds.less)
    if answer and answer.get("bytes", 0) > bounds.answer_bytes:
        size, limit = answer["bytes"] / 1e6, bounds.answer_bytes / 1e6
        raise TooLarge(f"{bounds.what} has a result of {size:,.0f} MB; at most {limit:,.0f} are accepted.", bounds.less)
    if ended_by is TooLarge or (answer and answer["error"][0] == TooLarge.__name__):
        most = f"more than {bounds.megabytes:,} MB of memory" if bounds.megabytes else "more memory than there is"
        raise TooLarge(f"{bounds.what} needed {most}.", bounds.less)
    if answer is None:
        raise Failed(f"{bounds.what} ended without a result.", "Try again.")
    kind, problem, remedy = answer["error"]
    if kind == Failed.__name__:
        raise Failed(f"{bounds.what} failed: {problem}.", "Try again.")
    error_type: Any = getattr(errors, kind, Failed)
    raise error_type(problem, remedy)


def _from_signal(code: int | None) -> type[MhaVizError] | None:
    """The error that a signal from the system stands for: the limit on processor time, or a library out of memory."""
    if not hasattr(signal, "SIGXCPU") or code is None or code >= 0:
        return None
    return {signal.SIGXCPU: TooSlow, signal.SIGABRT: TooLarge}.get(signal.Signals(-code))


# ---- The child --------------------------------------------------------------------------------------------------


def serve(work: Work, network: bool = False) -> None:
    """Confine this process, which keeps its network if ``network``, do one piece of work for the parent process and
    send the result. Everything that this process prints goes to standard error; an unexpected error is reported without
    the text that was being processed."""
    gc.enable()
    confine(sys.argv[1:], network)  # what is imported is this program's own; what is read from here on may be anybody's
    out, sys.stdout = sys.stdout.buffer, sys.stderr
    lock, stop = threading.Lock(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group; the server decides
    heading, arrays = messages.receive(sys.stdin.buffer)
    order = _CODEC.parse(heading["order"], arrays)
    end_with_parent(stop)

    def send(heading: Json, arrays: Sequence[Array] = ()) -> None:
        with lock:
            messages.send(out, heading, arrays)

    try:
        value, arrays = _CODEC.pack(work(order, lambda done: send({"done": done}), stop.is_set))
        send({"value": value}, arrays)
    except BaseException as error:
        with contextlib.suppress(OSError):  # the parent has ended
            send({"error": _describe(error)})
    os._exit(0)  # the answer is sent; a regular exit takes long with large libraries


def _describe(error: BaseException) -> tuple[str, str, str]:
    """The class, problem and remedy of an error. For an unexpected error only the location is logged, not the text."""
    if isinstance(error, MhaVizError):
        return type(error).__name__, error.problem, error.remedy
    if process.lacks_memory(error):
        return TooLarge.__name__, "", ""
    print(log.as_line(log.raised(error)), file=sys.stderr)
    return Failed.__name__, type(error).__name__, ""
