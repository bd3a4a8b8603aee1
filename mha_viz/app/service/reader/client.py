"""The server's side of the process that runs models.

The process is started at the first request, and again at the next request after it has ended.
"""

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
from mha_viz.model_names import shorten_name
from mha_viz.models.getting import budget
from mha_viz.process import messages
from mha_viz.process.messages import Array, Json

if TYPE_CHECKING:
    from mha_viz.app.service.reader.models import Models

P = ParamSpec("P")
T = TypeVar("T")

READ_SECONDS = 60.0  # enough for the longest text

_TIME_REMEDY = "Choose another model, or a shorter text."


class Reader:
    """A process that holds models and answers one request at a time. Thread-safe.

    Every request raises the model's errors, and ReadingFailed if the process ends or exceeds the deadline. The next
    request then starts a new process, which need not import the libraries again (``app.service.reader.starting``). On
    Linux, the process has no network and can write only to a temporary folder.
    """

    starts = 0  # number of process starts, over all readers of the server

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: Process | None = None
        self._starter = starting.make_starter()
        self._loaded_models = frozenset[str]()  # names of the loaded models

    def ask(self, verb: Callable[Concatenate[Models, P], T], *arguments: P.args, **options: P.kwargs) -> T:
        """Call a verb of ``app.service.reader.verbs`` in the process and return its result.

        The first of the ``arguments`` is the request, or the name of the model, if the verb needs one.
        """
        packed_arguments, arrays = CODEC.pack((arguments, options))
        message = {"verb": verb.__name__, "values": packed_arguments}
        model = verbs.find_model_name(*arguments)
        with self._lock:
            try:
                heading, answer = self._load_and_ask(model, message, arrays)
            except EOFError:  # the process may have been killed since the last request: try once more
                heading, answer = self._load_and_ask(model, message, arrays, is_retry=True)
            if used_folder := heading.pop("used", ""):  # recorded here, because a confined process cannot
                budget.record_use(Path(used_folder))
            with suppress(OSError):  # no spare process can start now, but the answer has arrived
                self._starter.prepare()
        if "error" in heading:
            raise messages.parse_error(heading)
        result: T = CODEC.parse(heading["value"], answer)
        return result

    @property
    def loaded_models(self) -> frozenset[str]:
        """The names of the loaded models."""
        return self._loaded_models

    def free_memory(self) -> None:
        """Make the process, if there is one, return free memory to the system.

        Call this when there are no visitors.
        """
        if self._loaded_models:
            self.ask(verbs.free_memory)

    def close(self) -> None:
        """End the process and its prepared replacement; the next request starts another."""
        with self._lock:
            self._end()
            self._starter.close()

    def _load_and_ask(
        self, model: str, message: Json, arrays: Sequence[Array], is_retry: bool = False
    ) -> tuple[Json, list[Array]]:
        """Load the model if necessary, send a message and return the answer.

        Loading has a deadline of its own. It does nothing if the process already holds the model with the current
        files.
        """
        answer: tuple[Json, list[Array]] = {}, []
        if model:
            load: Json = {"verb": verbs.load.__name__, "values": CODEC.pack(((model,), {}))[0]}
            answer = self._exchange(model, load, [], LOAD_SECONDS, is_retry)
        if message["verb"] != verbs.load.__name__ and "error" not in answer[0]:
            answer = self._exchange(model, message, arrays, READ_SECONDS, is_retry)
        self._loaded_models = frozenset(answer[0].pop("loaded"))
        return answer

    def _exchange(
        self, model: str, message: Json, arrays: Sequence[Array], seconds: float, is_retry: bool
    ) -> tuple[Json, list[Array]]:
        """Send a message and return the answer.

        Raises ReadingFailed, or EOFError if the process ended and another attempt with a new process may succeed. On
        the second attempt (``is_retry``) it never raises EOFError.
        """
        try:
            is_new, process = self._ensure_process()
        except OSError as error:
            raise _make_failure(model, isinstance(error, TimeoutError), LOAD_SECONDS) from error
        timed_out = threading.Event()
        timer = threading.Timer(seconds, _stop, (process, timed_out))
        timer.daemon = True
        timer.start()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            messages.send(process.stdin, message, arrays)
            return messages.receive(process.stdout)
        except (OSError, EOFError, ValueError) as error:
            self._end()
            if timed_out.is_set() or is_new or is_retry:
                raise _make_failure(model, timed_out.is_set(), seconds) from error
            raise EOFError from error
        finally:
            timer.cancel()

    def _ensure_process(self) -> tuple[bool, Process]:
        """Start the process if necessary; return whether it was just started, and the process.

        Raises OSError if none can be started.
        """
        if self._process is not None and self._process.poll() is None:
            return False, self._process
        self._end()
        self._process = self._starter.start()
        Reader.starts += 1
        return True, self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        self._loaded_models = frozenset()
        if process is not None:
            process.kill()
            process.communicate()


def _stop(process: Process, timed_out: threading.Event) -> None:
    timed_out.set()
    process.kill()


def _make_failure(model: str, timed_out: bool, seconds: float) -> ReadingFailed:
    if timed_out:
        return ReadingFailed(f"{shorten_name(model)} took longer than {seconds:.0f} s and was stopped.", _TIME_REMEDY)
    return ReadingFailed(f"The process that runs {shorten_name(model)} stopped.", verbs.MEMORY_REMEDY)
