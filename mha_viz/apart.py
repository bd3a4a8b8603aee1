"""Work in a process of its own, so that it takes neither the interpreter nor the memory of those who read.

The caller names a module that ends in ``if __name__ == "__main__": serve(work)`` and hands it bytes; it gets progress
and bytes. The child steps back behind other work, is bounded in time, memory and threads, and never outlives the
process that began it: it watches its standard input, which closes when that process ends in whatever way. Only bytes
pass, as JSON or as the caller packs them; nothing is ever unpickled.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

from mha_viz import errors, process
from mha_viz.errors import Cancelled, Failed, MhaVizError, TooLarge, TooSlow

PATIENCE = 0.1  # seconds between two looks at whether anybody still waits
NICE = 10  # what is read comes first
ORPHAN_GRACE = 5.0  # seconds that a child has to put its things in order once nobody waits for it
PACKAGE = Path(__file__).resolve().parent
THREAD_SETTINGS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")

Tell = Callable[[float], None]  # takes the share that is done
Stop = Callable[[], bool]  # True when nobody waits any more
Work = Callable[[bytes, Tell, Stop], bytes]


class Bounds(NamedTuple):
    """What a child may take: ``seconds`` by the clock, ``megabytes`` (10^6 bytes) of memory beyond the files that it
    maps, 0 for any; ``threads``, 0 for one a core. ``grace``: seconds to keep what is done after a stop. ``what`` and
    ``less`` are the words of an error: what did not end, and what to do about it."""

    seconds: float = math.inf
    megabytes: int = 0
    threads: int = 1
    grace: float = 0.0
    what: str = "The work"
    less: str = "Give it less to do."


# ---- The process that waits -------------------------------------------------------------------------------------


def run(
    module: str,
    order: bytes,
    bounds: Bounds,
    progress: Tell = lambda _: None,
    cancelled: Stop = lambda: False,
) -> bytes:
    """What the ``work`` of a module makes of an order, in a child process that is gone when this returns.

    Raises Cancelled soon after ``cancelled`` says so, TooSlow and TooLarge at the bounds, the MhaVizError that the
    work raised, and Failed when the child ends in another way.
    """
    with _started(module, bounds) as child:
        watch = _Watch(child, bounds, cancelled)
        try:
            answer = _heard(child, _headed(order), progress)
        finally:
            watch.end()
    if answer is None or "result" not in answer:
        _explain(answer, watch.ended_by or _signalled(child.returncode), bounds)
    result: bytes = answer["result"]
    return result


@contextlib.contextmanager
def _started(module: str, bounds: Bounds) -> Iterator[subprocess.Popen[bytes]]:
    """The child; afterwards it is gone, and so are its pipes."""
    path = os.pathsep.join(filter(None, [str(PACKAGE.parent), os.environ.get("PYTHONPATH")]))
    threads = dict.fromkeys(THREAD_SETTINGS, str(bounds.threads)) if bounds.threads else {}
    child = subprocess.Popen(
        [sys.executable, "-P", "-c", _START, module, json.dumps(_limits(bounds))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**process.SETTINGS, **os.environ, **threads, "PYTHONPATH": path},
    )
    try:
        yield child
    finally:
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            with contextlib.suppress(OSError):  # an order that was not read
                pipe.close()  # type: ignore[union-attr]


# Set before a library takes seconds and memory. Where the system has no such bounds (on Windows) the clock of the
# waiting process remains.
_START = f"""
import json, os, runpy, sys
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
    except (ValueError, OSError):  # less is allowed already
        pass
try:
    runpy.run_module(module, run_name="__main__", alter_sys=True)
except MemoryError:
    os.abort()  # is told as such
"""


def _limits(bounds: Bounds) -> dict[str, tuple[int, int]]:
    """The limits of a child, soft and hard, by their names in ``resource``. Memory is what the process may write to:
    address space is no measure, for numeric libraries reserve gigabytes of it."""
    limits = {"RLIMIT_CORE": (0, 0)}
    if bounds.megabytes:
        limits["RLIMIT_DATA"] = (bounds.megabytes * 10**6,) * 2
    if not math.isinf(bounds.seconds):  # also ends an orphan that is held up inside a library; the second, unheard
        seconds = math.ceil(bounds.seconds) * (bounds.threads or os.cpu_count() or 1) + 1
        limits["RLIMIT_CPU"] = (seconds, seconds + 5)
    return limits


class _Watch:
    """Ends a child when nobody waits any more, or when its time is over; ``ended_by`` says which of the two."""

    def __init__(self, child: subprocess.Popen[bytes], bounds: Bounds, cancelled: Stop) -> None:
        self.ended_by: type[MhaVizError] | None = None
        self._child, self._bounds, self._cancelled = child, bounds, cancelled
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True, name="apart")
        self._thread.start()

    def end(self) -> None:
        """There is nothing more to watch."""
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        deadline = time.monotonic() + self._bounds.seconds
        while not self._over.wait(PATIENCE):
            if self._cancelled():
                self.ended_by = Cancelled
            elif time.monotonic() > deadline:
                self.ended_by = TooSlow
            if self.ended_by:
                self._child.terminate()
                self._over.wait(self._bounds.grace)
                self._child.kill()
                return


def _headed(order: bytes) -> bytes:
    return json.dumps({"bytes": len(order)}).encode() + b"\n" + order


def _heard(child: subprocess.Popen[bytes], order: bytes, progress: Tell) -> dict[str, Any] | None:
    """Hand over the order, follow the progress, take the answer; None when the child ends before."""
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        child.stdin.write(order)
        child.stdin.flush()
        for line in child.stdout:
            heard = json.loads(line)
            if isinstance(heard, dict):
                return _with_result(heard, child.stdout)
            progress(heard)
    except (OSError, ValueError):  # a pipe that broke, a line that was cut
        pass
    return None


def _with_result(heard: dict[str, Any], pipe: IO[bytes]) -> dict[str, Any] | None:
    if "bytes" not in heard:
        return heard
    result = pipe.read(heard["bytes"])
    return {"result": result} if len(result) == heard["bytes"] else None


def _explain(answer: dict[str, Any] | None, ended_by: type[MhaVizError] | None, bounds: Bounds) -> NoReturn:
    """Raise what there is instead of a result."""
    if ended_by is Cancelled:
        raise Cancelled(*(answer or {}).get("error", ("", f"{bounds.what} was stopped.", "Start it again."))[1:])
    if ended_by is TooSlow:
        raise TooSlow(f"{bounds.what} took longer than {bounds.seconds:.0f} s.", bounds.less)
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


def _signalled(code: int | None) -> type[MhaVizError] | None:
    """What a signal says that was not ours: the bound on the time of the processor, or a library without memory."""
    if not hasattr(signal, "SIGXCPU") or code is None or code >= 0:
        return None
    return {signal.SIGXCPU: TooSlow, signal.SIGABRT: TooLarge}.get(signal.Signals(-code))


# ---- The child --------------------------------------------------------------------------------------------------


def serve(work: Work) -> None:
    """Do one piece of work for the process that began this one, and answer it. Everything that this process prints
    goes to standard error; a fault is told without the words that were being read."""
    out, sys.stdout = sys.stdout.buffer, sys.stderr
    lock, stop = threading.Lock(), threading.Event()
    _stoppable(stop)
    header = json.loads(sys.stdin.buffer.readline())
    order = sys.stdin.buffer.read(header["bytes"])
    threading.Thread(target=_orphaned, args=(stop,), daemon=True).start()

    def say(line: object, data: bytes = b"") -> None:
        with lock:
            out.write(json.dumps(line).encode() + b"\n" + data)
            out.flush()

    try:
        result = work(order, say, stop.is_set)
        say({"bytes": len(result)}, result)
    except BaseException as error:
        with contextlib.suppress(OSError):  # nobody is there to hear it
            say({"error": _told(error)})
    os._exit(0)  # the answer has gone out: nothing to tidy up, and large libraries take long to end


def _stoppable(stop: threading.Event) -> None:
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal reaches the whole group; the server decides


def _orphaned(stop: threading.Event) -> None:
    """End this process soon after its standard input closes, which nobody writes to any more."""
    while os.read(0, 1):
        pass
    stop.set()
    time.sleep(ORPHAN_GRACE)
    os._exit(1)


def _told(error: BaseException) -> tuple[str, str, str]:
    """Class, problem and remedy. Of a fault of ours the log gets the place, and no text."""
    if isinstance(error, MhaVizError):
        return type(error).__name__, error.problem, error.remedy
    if isinstance(error, MemoryError) or "allocate memory" in str(error):
        return TooLarge.__name__, "", ""
    traceback.print_tb(error.__traceback__)
    print(type(error).__name__, file=sys.stderr)
    return Failed.__name__, type(error).__name__, ""
