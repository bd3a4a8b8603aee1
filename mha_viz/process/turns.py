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


class Turns:
    """A worker and its queues, one for each visitor. Thread-safe.

    The worker takes one request of each visitor in turn, first of those for whom it worked the fewest seconds lately,
    and of a visitor's tabs likewise: behind one address, or without cookies, many people are one visitor. Of each tab
    one request waits: a newer one replaces it. Work for nobody in particular, such as jobs in the background, has a
    queue of its own and no bound on its time.
    """

    def __init__(self, name: str) -> None:
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._queues: OrderedDict[str, OrderedDict[Hashable, _Waiting]] = OrderedDict()  # by visitor, then by tab
        self._worked = _Worked()

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
            self._forget_cancelled()
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

    def _forget_cancelled(self) -> None:
        for visitor, queue in list(self._queues.items()):
            for tab in [tab for tab, waiting in queue.items() if waiting.future.cancelled()]:
                del queue[tab]
            if not queue:
                del self._queues[visitor]

    def _check_share(self, visitor: str) -> None:
        """Raise Busy if the visitor has had SHARE seconds of work within WINDOW while others used the worker."""
        now = time.monotonic()
        self._worked.forget(now - WINDOW)
        others = {*self._worked.visitors, *self._queues} - {visitor, ""}
        used = self._worked.seconds(visitor)
        if visitor and others and used >= SHARE:
            free = self._worked.oldest(visitor) + WINDOW - now
            raise Busy(
                f"The model has worked for you for {used:.0f} of the last {WINDOW:.0f} seconds, and others use it too.",
                f"Wait {max(1.0, free):.0f} seconds and press Enter again.",
            )

    def _serve_next(self) -> None:
        with self._lock:
            self._worked.forget(time.monotonic() - WINDOW)
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
                self._worked.add(_Done(ended, visitor, tab, ended - began))

    def _take(self) -> tuple[str, Hashable, _Waiting | None]:
        """Take a request of the visitor whose turn it is, who is last in line after that. Whole seconds count: those
        who asked for little are served in the order in which they came."""
        while self._queues:
            visitor = min(self._queues, key=lambda who: int(self._worked.seconds(who)) if who else 0)
            queue = self._queues.pop(visitor)
            tab = min(queue, key=lambda one: int(self._worked.seconds(visitor, one)))
            waiting = queue.pop(tab)
            if queue:
                self._queues[visitor] = queue
            if waiting.future.set_running_or_notify_cancel():
                return visitor, tab, waiting
        return "", "", None


class _Done(NamedTuple):
    """Work that ended: when, for whom, and after how many seconds."""

    ended: float
    visitor: str
    tab: Hashable
    seconds: float


class _Worked:
    """The seconds of work for each visitor, and for each of their tabs."""

    def __init__(self) -> None:
        self._done: deque[_Done] = deque()
        self._seconds: dict[tuple[str, Hashable], tuple[int, float]] = {}  # with the count, which has no rounding

    @property
    def visitors(self) -> set[str]:
        """For whom it worked."""
        return {visitor for visitor, _ in self._seconds}

    def seconds(self, visitor: str, tab: Hashable = None) -> float:
        """The seconds for a visitor, or for one tab."""
        return self._seconds.get((visitor, tab), (0, 0.0))[1]

    def oldest(self, visitor: str) -> float:
        """When the oldest work for a visitor ended."""
        return next(done.ended for done in self._done if done.visitor == visitor)

    def add(self, done: _Done) -> None:
        """Add work that ended."""
        self._done.append(done)
        self._change(done, 1)

    def forget(self, before: float) -> None:
        """Forget the work that ended earlier."""
        while self._done and self._done[0].ended < before:
            self._change(self._done.popleft(), -1)

    def _change(self, done: _Done, by: int) -> None:
        for key in ((done.visitor, None), (done.visitor, done.tab)):
            count, seconds = self._seconds.get(key, (0, 0.0))
            self._seconds[key] = count + by, seconds + by * done.seconds
            if count + by == 0:
                del self._seconds[key]
