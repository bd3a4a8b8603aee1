"""The server's side of the reader process, which is started with the first request and again after it has ended."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from mha_viz.app.service.reader import starting, verbs
from mha_viz.app.service.reader.starting import LOAD_SECONDS, Process
from mha_viz.app.service.reader.verbs import CODEC
from mha_viz.errors import ReadingFailed
from mha_viz.model_names import short_name
from mha_viz.models.getting import budget
from mha_viz.process import messages
from mha_viz.process.messages import Array, Json

if TYPE_CHECKING:
    from mha_viz.app.service.reader.models import Models

P = ParamSpec("P")
T = TypeVar("T")

READ_SECONDS = 60.0  # for the longest text

_TOO_LONG = "Choose another model, or a shorter text."


class Reader:
    """A process with loaded models that answers one request at a time. Thread-safe.

    Every request raises what the model raises, and ReadingFailed if the process ends or misses the deadline; the next
    request then starts a new process, which need not import the libraries (``app.service.reader.starting``). On Linux,
    a process has no network and writes to a temporary folder alone.
    """

    starts = 0  # of all readers of this process

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: Process | None = None
        self._starter = starting.starter()
        self._loaded = frozenset[str]()  # names of the loaded models

    def ask(self, verb: Callable[Concatenate[Models, P], T], *values: P.args, **named: P.kwargs) -> T:
        """Return what a verb of ``app.service.reader.verbs`` gives for these values, of which the first is the request
        or the name of a model, if it needs one."""
        packed, arrays = CODEC.pack((values, named))
        message = {"verb": verb.__name__, "values": packed}
        model = verbs.model_of(*values)
        with self._lock:
            try:
                heading, answer = self._answered(model, message, arrays)
            except EOFError:  # the process may have been killed since the last request: try once more
                heading, answer = self._answered(model, message, arrays, again=True)
            if used := heading.pop("used", ""):  # recorded here, because a confined process cannot
                budget.record_use(Path(used))
            with suppress(OSError):  # no other process can begin now: the answer is here all the same
                self._starter.prepare()
        if "error" in heading:
            raise messages.error_of(heading)
        result: T = CODEC.parse(heading["value"], answer)
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
        """End the process, and what would replace it; the next request starts another."""
        with self._lock:
            self._end()
            self._starter.close()

    def _answered(
        self, model: str, message: Json, arrays: Sequence[Array], again: bool = False
    ) -> tuple[Json, list[Array]]:
        """Return the answer to a message. Its model is loaded first, with a separate deadline, unless the process
        already holds it with the current files."""
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
        try:
            is_new, process = self._running()
        except OSError as error:
            raise _failure(model, isinstance(error, TimeoutError), LOAD_SECONDS) from error
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

    def _running(self) -> tuple[bool, Process]:
        """Return whether the process has just been started, and the process itself. Raises OSError if none can be."""
        if self._process is not None and self._process.poll() is None:
            return False, self._process
        self._end()
        self._process = self._starter.start()
        Reader.starts += 1
        return True, self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        self._loaded = frozenset()
        if process is not None:
            process.kill()
            process.communicate()


def _stop(process: Process, timed_out: threading.Event) -> None:
    timed_out.set()
    process.kill()


def _failure(model: str, timed_out: bool, seconds: float) -> ReadingFailed:
    if timed_out:
        return ReadingFailed(f"{short_name(model)} took longer than {seconds:.0f} s and was stopped.", _TOO_LONG)
    return ReadingFailed(f"The process that runs {short_name(model)} stopped.", verbs.LESS)
