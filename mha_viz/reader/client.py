"""The server's side of the reader process, which is started with the first request and again after it has ended."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from mha_viz import process
from mha_viz.attention import called
from mha_viz.errors import ReadingFailed
from mha_viz.process import messages
from mha_viz.process.apart import ONE_AT_IMPORT
from mha_viz.process.messages import Array, Json
from mha_viz.reader import verbs
from mha_viz.reader.verbs import CODEC

if TYPE_CHECKING:
    from mha_viz.reader.models import Models

P = ParamSpec("P")
T = TypeVar("T")

LOAD_SECONDS = 180.0  # for a model on a slow disk, including the import of the libraries
READ_SECONDS = 60.0  # for the longest text
DATA_BYTES = (
    8_000_000_000  # of memory, where the system supports a limit: a model of 2 GB, its packed copy, and a reserve
)
# Waiting threads sleep instead of spinning, which takes ten times as much time when pages need the cores.
WAITING = {"OMP_WAIT_POLICY": "PASSIVE"}
SPARE_SECONDS = 20.0  # after a process has begun: until then the first visitors need the cores

_TOO_LONG = "Choose another model, or a shorter text."
_ENDED = "Try again; a smaller model or a shorter text needs less memory."


class Reader:
    """A process with loaded models that answers one request at a time. Thread-safe.

    Every request raises what the model raises, and ReadingFailed if the process ends or misses the deadline; the next
    request then starts a new process. After SPARE_SECONDS, another process has imported the libraries by then and takes
    the place of the one that ended. On Linux, a process has no network and writes to a temporary folder alone.
    """

    starts = 0  # of all readers of this process

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._spare: subprocess.Popen[bytes] | None = None
        self._began = 0.0  # time.monotonic() when a process last began that was not spare
        self._folder = ""
        self._loaded = frozenset[str]()  # names of the loaded models

    def ask(self, verb: Callable[Concatenate[Models, P], T], *values: P.args, **named: P.kwargs) -> T:
        """What a verb of ``reader.verbs`` gives for these values, of which the first is the request or the name of a
        model, if it needs one."""
        packed, arrays = CODEC.pack((values, named))
        message = {"verb": verb.__name__, "values": packed}
        heading, arrays = self._received(verbs.model_of(*values), message, arrays)
        result: T = CODEC.parse(heading["value"], arrays)
        return result

    @property
    def loaded(self) -> frozenset[str]:
        """The names of the loaded models."""
        return self._loaded

    def rest(self) -> None:
        """Return free memory to the system, to be called when there are no visitors. Does nothing if no process
        runs."""
        if self._loaded:
            self.ask(verbs.rest)

    def close(self) -> None:
        """End the process, and the spare one; the next request starts another."""
        with self._lock:
            self._end()
            self._process, self._spare = self._spare, None
            self._end()

    def _received(self, model: str, message: Json, arrays: Sequence[Array]) -> tuple[Json, list[Array]]:
        with self._lock:
            try:
                heading, answer = self._answered(model, message, arrays)
            except EOFError:  # the process may have been killed since the last request: try once more
                heading, answer = self._answered(model, message, arrays, again=True)
            if time.monotonic() - self._began > SPARE_SECONDS:
                self._spare = self._spare if _runs(self._spare) else self._started()
        if "error" in heading:
            raise messages.error_of(heading)
        return heading, answer

    def _answered(
        self, model: str, message: Json, arrays: Sequence[Array], again: bool = False
    ) -> tuple[Json, list[Array]]:
        """The answer to a message. Its model is loaded first, with a separate deadline, unless the process already
        holds it with the current files."""
        answer: tuple[Json, list[Array]] = {}, []
        if model:
            load: Json = {"verb": verbs.load.__name__, "values": CODEC.pack(((model,), {}))[0]}
            answer = self._exchange(model, load, [], LOAD_SECONDS, again)
        if message["verb"] != verbs.load.__name__ and "error" not in answer[0]:
            answer = self._exchange(model, message, arrays, READ_SECONDS, again)
        self._loaded = frozenset(answer[0].pop("loaded"))
        return answer

    def _exchange(
        self, model: str, message: Json, arrays: Sequence[Array], seconds: float, again: bool
    ) -> tuple[Json, list[Array]]:
        """Send a message and receive its answer. Raises ReadingFailed, or EOFError if the process ended and a new one
        may succeed, but not if this is the second attempt (``again``)."""
        is_new, process = self._running()
        timed_out = threading.Event()
        watch = threading.Timer(seconds, _stop, (process, timed_out))
        watch.daemon = True
        watch.start()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            messages.send(process.stdin, message, arrays)
            return messages.receive(process.stdout)
        except (OSError, EOFError, ValueError) as error:
            self._end()
            if timed_out.is_set() or is_new or again:
                raise _failure(model, timed_out.is_set(), seconds) from error
            raise EOFError from error
        finally:
            watch.cancel()

    def _running(self) -> tuple[bool, subprocess.Popen[bytes]]:
        """Whether the process has just been started, and the process itself."""
        if self._process is not None and _runs(self._process):
            return False, self._process
        self._end()
        spare, self._spare = self._spare, None
        if spare is not None and _runs(spare):
            self._process = spare  # and the next spare one begins at once
        else:
            self._process, self._began = self._started(), time.monotonic()
        Reader.starts += 1
        return True, self._process

    def _started(self) -> subprocess.Popen[bytes]:
        """A new process, which imports the libraries and then waits for a request."""
        if not self._folder:
            with suppress(OSError):  # there is nowhere to write: then neither can the process
                self._folder = tempfile.mkdtemp(prefix="mha_viz-")
                weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        command, environment = process.python("-c", _START, *filter(None, [self._folder]), str(DATA_BYTES))
        place = {"TMPDIR": self._folder} if self._folder else {}
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**process.SETTINGS, **WAITING, **environment, **ONE_AT_IMPORT, **place},
        )

    def _end(self) -> None:
        process, self._process = self._process, None
        self._loaded = frozenset()
        if process is not None:
            process.kill()
            process.communicate()


# The limit is set before a library can allocate memory. If memory runs out, the system kills this process rather than
# the server, which then starts another. transformers would import scipy (37 MB) for losses that are not used here.
# Libraries create a million objects that stay: looking for garbage among them would take a fifth of the import time.
_START = """
import gc, os, sys
gc.disable()
limit = int(sys.argv.pop())
try:
    import resource
    resource.setrlimit(resource.RLIMIT_DATA, (limit,) * 2)
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("500")
except (ImportError, OSError, ValueError):
    pass
sys.modules["scipy"] = None
from mha_viz.reader.__main__ import main
main()
"""


def _runs(process: subprocess.Popen[bytes] | None) -> bool:
    return process is not None and process.poll() is None


def _stop(process: subprocess.Popen[bytes], timed_out: threading.Event) -> None:
    timed_out.set()
    process.kill()


def _failure(model: str, timed_out: bool, seconds: float) -> ReadingFailed:
    if timed_out:
        return ReadingFailed(f"{called(model)} took longer than {seconds:.0f} s and was stopped.", _TOO_LONG)
    return ReadingFailed(f"The process that runs {called(model)} ended.", _ENDED)
