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

    The worker takes one request of each visitor in turn. Of each tab one request waits: a newer one replaces it. Work
    for nobody in particular, such as jobs in the background, has a queue of its own and no bound on its time.
    """

    def __init__(self, name: str) -> None:
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._queues: OrderedDict[str, OrderedDict[Hashable, _Waiting]] = OrderedDict()  # by visitor, then by tab
        self._worked: dict[str, deque[tuple[float, float]]] = {}  # by visitor: when work ended, and its seconds

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
        for who, done in list(self._worked.items()):
            while done and done[0][0] < now - WINDOW:
                done.popleft()
            if not done:
                del self._worked[who]
        mine = self._worked.get(visitor, deque())
        others = {*self._worked, *self._queues} - {visitor, ""}
        used = sum(seconds for _, seconds in mine)
        if visitor and others and used >= SHARE:
            free = mine[0][0] + WINDOW - now
            raise Busy(
                f"The model has worked for you for {used:.0f} of the last {WINDOW:.0f} seconds, and others use it too.",
                f"Wait {max(1.0, free):.0f} seconds and press Enter again.",
            )

    def _serve_next(self) -> None:
        with self._lock:
            visitor, waiting = self._take()
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
                self._worked.setdefault(visitor, deque()).append((ended, ended - began))

    def _take(self) -> tuple[str, _Waiting | None]:
        """Take the oldest request of the visitor whose turn it is, who is last in line after that."""
        while self._queues:
            visitor, queue = self._queues.popitem(last=False)
            _, waiting = queue.popitem(last=False)
            if queue:
                self._queues[visitor] = queue
            if waiting.future.set_running_or_notify_cancel():
                return visitor, waiting
        return "", None
