"""One worker thread that serves visitors in turn, so that whoever asks for much waits for it alone."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from mha_viz.errors import Busy, Cancelled

V = TypeVar("V")

PLACES, PER_VISITOR = 64, 16  # requests that may wait, of all visitors and of one
WINDOW = 60.0  # seconds over which the work for a visitor is added up
SHARE = 30.0  # seconds of work for one visitor within WINDOW, while others use the worker too
_FULL = ("Too many requests are waiting for this server.", "Wait a few seconds and press Enter again.")
_REPLACED = ("A newer request from the same tab took its place.", "Ask again.")


class _Waiting(NamedTuple):
    """A request that waits, and where its result goes."""

    future: Future[Any]
    work: Callable[[], Any]


class _Done(NamedTuple):
    """Work that ended: when, for whom, and the seconds that count."""

    ended: float
    visitor: str
    tab: Hashable
    seconds: float


class Turns:
    """A worker and its queues, one for each visitor. Thread-safe.

    The worker takes one request of each visitor in turn, first of those for whom it worked the fewest seconds lately,
    and of a visitor's tabs likewise: behind one address, many people may be one visitor. Of each tab one request waits:
    a newer one replaces it. Work for nobody in particular, such as jobs in the background, has a queue of its own and
    no bound on its time.
    """

    def __init__(self, name: str) -> None:
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._queues: OrderedDict[str, OrderedDict[Hashable, _Waiting]] = OrderedDict()  # by visitor, then by tab
        self._done: deque[_Done] = deque()  # within WINDOW

    def submit(self, work: Callable[[], V], visitor: str = "", tab: str = "") -> Future[V]:
        """Queue work and return its Future.

        Args:
            work: what the worker calls.
            visitor: who asks; "" for nobody in particular.
            tab: of that visitor; "" if every request counts for itself.

        Raises Busy if too many requests wait, or if the visitor has used up their share of the worker's time.
        """
        future: Future[V] = Future()
        with self._lock:
            self._forget()
            self._check_share(visitor)
            queue = self._queues.get(visitor, OrderedDict())
            replaced = queue.pop(tab, None) if tab else None
            is_full = sum(map(len, self._queues.values())) >= PLACES or (bool(visitor) and len(queue) >= PER_VISITOR)
            if replaced is None and is_full:
                raise Busy(*_FULL)
            queue[tab or object()] = _Waiting(future, work)
            self._queues[visitor] = queue
        if replaced is not None and replaced.future.set_running_or_notify_cancel():
            replaced.future.set_exception(Cancelled(*_REPLACED))
        self._worker.submit(self._serve_next)
        return future

    def _forget(self) -> None:
        """Forget requests that were cancelled, and work that ended before WINDOW."""
        while self._done and self._done[0].ended < time.monotonic() - WINDOW:
            self._done.popleft()
        for visitor, queue in list(self._queues.items()):
            for tab in [tab for tab, waiting in queue.items() if waiting.future.cancelled()]:
                del queue[tab]
            if not queue:
                del self._queues[visitor]

    def _seconds(self, visitor: str, tab: Hashable = None) -> float:
        """The seconds of work for a visitor within WINDOW, or for one of their tabs."""
        return sum(done.seconds for done in self._done if done.visitor == visitor and tab in (None, done.tab))

    def _check_share(self, visitor: str) -> None:
        """Raise Busy if the visitor has had SHARE seconds of work within WINDOW while others used the worker."""
        others = {*(done.visitor for done in self._done), *self._queues} - {visitor, ""}
        if not (visitor and others and (used := self._seconds(visitor)) >= SHARE):
            return
        oldest = next(done.ended for done in self._done if done.visitor == visitor and done.seconds)
        raise Busy(
            f"The model has worked for you for {used:.0f} of the last {WINDOW:.0f} seconds, and others use it too.",
            f"Wait {max(1.0, oldest + WINDOW - time.monotonic()):.0f} seconds and press Enter again.",
        )

    def _serve_next(self) -> None:
        with self._lock:
            self._forget()
            visitor, tab, waiting = self._take()
        if waiting is None:  # what this call was for has been cancelled or replaced
            return
        began = time.monotonic()
        try:
            result = waiting.work()
        except BaseException as error:
            waiting.future.set_exception(error)
        else:
            waiting.future.set_result(result)
        finally:
            ended = time.monotonic()
            with self._lock:
                # The first work for a visitor may load a model, which says nothing about how much they ask for.
                is_first = all(done.visitor != visitor for done in self._done)
                self._done.append(_Done(ended, visitor, tab, 0.0 if is_first else ended - began))

    def _take(self) -> tuple[str, Hashable, _Waiting | None]:
        """Take a request of the visitor whose turn it is, who is last in line after that. Whole seconds count: those
        who asked for little are served in the order in which they came."""
        while self._queues:
            visitor = min(self._queues, key=lambda who: int(self._seconds(who)) if who else 0)
            queue = self._queues.pop(visitor)
            tab = min(queue, key=lambda one: int(self._seconds(visitor, one)))
            waiting = queue.pop(tab)
            if queue:
                self._queues[visitor] = queue
            if waiting.future.set_running_or_notify_cancel():
                return visitor, tab, waiting
        return "", "", None
