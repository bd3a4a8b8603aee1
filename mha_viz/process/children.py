"""Run work in a child process, which leaves the app's interpreter and memory free.

The caller names a module that ends in ``if __name__ == "__main__": serve(work)`` and sends it an order. The caller
receives progress and a result. The child runs at low priority, with limited time, memory and threads. It never outlives
its parent: it watches its standard input, which closes when the parent ends for any reason. If the system supports it,
the child can write only to the given folders, and it has no network unless its work needs it (``process.confinement``).
Orders and results are plain values (``process.messages``): numbers, texts, bytes and arrays, alone or in lists and
dicts. Nothing is unpickled.
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
from mha_viz.process.confinement import confine
from mha_viz.process.messages import Array, Codec, Json
from mha_viz.process.orphans import end_with_parent, watch_child

POLL_SECONDS = 0.1  # seconds between two checks of the child
MIN_FREE_BYTES = 2**20  # a child with less memory left has run out of it: Python allocates larger blocks
NICE = 10  # the niceness of children: the app has priority
THREAD_SETTINGS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")

# OpenBLAS would start its threads while NumPy is imported, before the process is confined.
IMPORT_THREADS = MappingProxyType({"OPENBLAS_NUM_THREADS": "1"})
# When its optimisers are first used, torch makes a folder for compiled code, although nothing is compiled. Name an
# existing folder, because a confined process cannot make folders.
FOLDER_SETTINGS = MappingProxyType({"TORCHINDUCTOR_CACHE_DIR": sys.prefix})

ReportProgress = Callable[[float], None]  # called with the completed fraction
IsCancelled = Callable[[], bool]  # returns whether the work is cancelled
Work = Callable[[Any, ReportProgress, IsCancelled], Any]
_CODEC = Codec()


class Bounds(NamedTuple):
    """The limits of a child process.

    Attributes:
        seconds: wall time.
        megabytes: memory besides mapped files, in units of 10^6 bytes; 0 for no limit.
        threads: number of threads; 0 for one per core.
        grace_s: seconds in which a stopped child can save its work.
        subject: the subject of error messages.
        remedy: the advice of errors about limits.
        answer_bytes: maximum size of the result, which the parent holds in its own memory.
        writable: the folders that the child may write to.
    """

    seconds: float = math.inf
    megabytes: int = 0
    threads: int = 1
    grace_s: float = 0.0
    subject: str = "The work"
    remedy: str = "Give it a smaller input."
    answer_bytes: int = 100_000_000
    writable: tuple[str, ...] = ()


# ---- The parent process -----------------------------------------------------------------------------------------


def run(
    module: str,
    order: object,
    bounds: Bounds,
    progress: ReportProgress = lambda _: None,
    cancelled: IsCancelled = lambda: False,
) -> Any:
    """Run a module's ``work`` on ``order`` in a child process and return the result after the child has ended.

    Raises Cancelled soon after ``cancelled`` returns True, TooSlow and TooLarge if the child exceeds its limits, the
    MhaVizError that the work raised, and Failed if the child ends for another reason.
    """
    with _start_child(module, bounds) as child:
        watchdog = _Watchdog(child, bounds, cancelled)
        try:
            answer = _exchange_messages(child, order, progress, bounds.answer_bytes)
        finally:
            watchdog.end()
    if answer is None or "value" not in answer:
        _raise_failure(answer, watchdog.end_reason or _find_signal_error(child.returncode), bounds)
    return answer["value"]


@contextlib.contextmanager
def _start_child(module: str, bounds: Bounds) -> Iterator[subprocess.Popen[bytes]]:
    """Start a child; on exit, end it and close its pipes."""
    command, environment = process.build_python_command(
        "-c", _START_CODE, *bounds.writable, module, json.dumps(_compute_limits(bounds))
    )
    threads = dict.fromkeys(THREAD_SETTINGS, str(bounds.threads)) if bounds.threads else {}
    threads |= IMPORT_THREADS
    child = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**process.SETTINGS, **environment, **threads, **FOLDER_SETTINGS},
    )
    try:
        with watch_child(child):
            yield child
    finally:
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            with contextlib.suppress(OSError):  # the child has not read its order
                pipe.close()  # type: ignore[union-attr]


# The limits are set before any library is imported. On systems without them (Windows) only the parent's clock limits
# the child. Garbage collection is off while libraries are imported: their objects stay, and collecting would take a
# fifth of the import time.
_START_CODE = f"""
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
    os.abort()  # the parent reports that memory ran out
"""


def _compute_limits(bounds: Bounds) -> dict[str, tuple[int, int]]:
    """Return the soft and hard limits of a child, by their names in ``resource``.

    Memory means writable memory, because numeric libraries reserve gigabytes of address space that they never use.
    """
    limits = {"RLIMIT_CORE": (0, 0)}
    if bounds.megabytes:
        limits["RLIMIT_DATA"] = (bounds.megabytes * 10**6,) * 2
    if not math.isinf(bounds.seconds):  # the hard limit also ends an orphan that hangs inside a library
        seconds = math.ceil(bounds.seconds) * (bounds.threads or os.cpu_count() or 1) + 1
        limits["RLIMIT_CPU"] = (seconds, seconds + 5)
    return limits


def _is_out_of_memory(pid: int, megabytes: int) -> bool:
    """Return whether a process has used up its memory limit; False on systems where this is unknown.

    Python may then try for ever to raise MemoryError, because raising it needs memory (``exception_unwind`` of
    ceval.c).
    """
    try:
        status = Path(f"/proc/{pid}/status").read_text("ascii") if megabytes else ""
    except OSError:  # another system, or the process has ended
        return False
    _, _, data_size = status.partition("VmData:")
    return bool(data_size) and int(data_size.split()[0]) * 1024 > megabytes * 10**6 - MIN_FREE_BYTES


class _Watchdog:
    """Ends a child that is cancelled, has used up its memory or has run out of time.

    Attributes:
        end_reason: the class of the error to raise; None if the child was not ended.
    """

    def __init__(self, child: subprocess.Popen[bytes], bounds: Bounds, cancelled: IsCancelled) -> None:
        self.end_reason: type[MhaVizError] | None = None
        self._child, self._bounds, self._cancelled = child, bounds, cancelled
        self._stop_event = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True, name="child")
        self._thread.start()

    def end(self) -> None:
        """Stop watching and wait for the watching thread."""
        self._stop_event.set()
        self._thread.join()

    def _watch(self) -> None:
        """Watch the child until it ends or must be ended."""
        deadline, was_full = time.monotonic() + self._bounds.seconds, False
        while not self._stop_event.wait(POLL_SECONDS):
            is_full = _is_out_of_memory(self._child.pid, self._bounds.megabytes)
            if self._cancelled():
                self.end_reason = Cancelled
            elif was_full and is_full:
                self.end_reason = TooLarge
            elif time.monotonic() > deadline:
                self.end_reason = TooSlow
            was_full = is_full
            if self.end_reason:
                self._child.terminate()
                self._stop_event.wait(self._bounds.grace_s)
                self._child.kill()
                return


def _exchange_messages(
    child: subprocess.Popen[bytes], order: object, progress: ReportProgress, max_bytes: int
) -> Json | None:
    """Send the order, report progress and return the answer; None if the child ends early.

    The result is not read if it has more than ``max_bytes`` bytes; the answer then is its size, ``{"bytes": size}``.
    """
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        packed_order, arrays = _CODEC.pack(order)
        messages.send(child.stdin, {"order": packed_order}, arrays)
        while "done" in (message := messages.receive(child.stdout, max_bytes))[0]:
            progress(message[0]["done"])
        header, arrays = message
        return {"value": _CODEC.parse(header["value"], arrays)} if "value" in header else header
    except OverflowError as error:
        return {"bytes": error.args[0]}
    except (OSError, EOFError, ValueError):  # a broken pipe or a truncated message
        return None


def _raise_failure(answer: Json | None, end_reason: type[MhaVizError] | None, bounds: Bounds) -> NoReturn:
    """Raise the error that explains why there is no result."""
    if end_reason is Cancelled:
        raise Cancelled(*(answer or {}).get("error", ("", f"{bounds.subject} was stopped.", "Start it again."))[1:])
    if end_reason is TooSlow:
        raise TooSlow(f"{bounds.subject} took longer than {bounds.seconds:.0f} s.", bounds.remedy)
    if answer and answer.get("bytes", 0) > bounds.answer_bytes:
        size, limit = answer["bytes"] / 1e6, bounds.answer_bytes / 1e6
        raise TooLarge(
            f"{bounds.subject} has a result of {size:,.0f} MB; at most {limit:,.0f} are accepted.", bounds.remedy
        )
    if end_reason is TooLarge or (answer and answer["error"][0] == TooLarge.__name__):
        amount = f"more than {bounds.megabytes:,} MB of memory" if bounds.megabytes else "more memory than there is"
        raise TooLarge(f"{bounds.subject} needed {amount}.", bounds.remedy)
    if answer is None:
        raise Failed(f"{bounds.subject} ended without a result.", "Try again.")
    kind, problem, remedy = answer["error"]
    if kind == Failed.__name__:
        raise Failed(f"{bounds.subject} failed: {problem}.", "Try again.")
    error_type: Any = getattr(errors, kind, Failed)
    raise error_type(problem, remedy)


def _find_signal_error(code: int | None) -> type[MhaVizError] | None:
    """Return the error class for the signal that ended a child: the limit on CPU time, or a library out of memory."""
    if not hasattr(signal, "SIGXCPU") or code is None or code >= 0:
        return None
    return {signal.SIGXCPU: TooSlow, signal.SIGABRT: TooLarge}.get(signal.Signals(-code))


# ---- The child --------------------------------------------------------------------------------------------------


def serve(work: Work, network: bool = False) -> None:
    """Confine this process, carry out one order of the parent process, and send the result.

    ``network`` says whether the process keeps its network. Everything that it prints goes to standard error. An
    unexpected error is reported without the text that was being processed.
    """
    gc.enable()
    confine(sys.argv[1:], network)  # after the imports, which are trusted, and before reading any input
    output, sys.stdout = sys.stdout.buffer, sys.stderr
    lock, stop = threading.Lock(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    # Ctrl-C reaches the whole process group; the parent decides what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    header, arrays = messages.receive(sys.stdin.buffer)
    order = _CODEC.parse(header["order"], arrays)
    end_with_parent(stop)

    def send(header: Json, arrays: Sequence[Array] = ()) -> None:
        with lock:
            try:
                messages.send(output, header, arrays)
            except OSError:  # the parent has ended: stop the work, which then saves its results
                stop.set()

    try:
        value, arrays = _CODEC.pack(work(order, lambda done: send({"done": done}), stop.is_set))
        send({"value": value}, arrays)
    except BaseException as error:
        send({"error": _describe_error(error)})
    os._exit(0)  # a regular exit takes long with large libraries


def _describe_error(error: BaseException) -> tuple[str, str, str]:
    """Return the class name, problem and remedy of an error.

    The location of an unexpected error is logged, without its message.
    """
    if isinstance(error, MhaVizError):
        return type(error).__name__, error.problem, error.remedy
    if process.is_out_of_memory(error):
        return TooLarge.__name__, "", ""
    print(log.format_line(log.describe_error(error)), file=sys.stderr)
    return Failed.__name__, type(error).__name__, ""
