"""A worker thread that serves visitors in turn, so that one visitor's many requests delay only that visitor."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Container, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar

from mha_viz.errors import Busy, Cancelled
from mha_viz.numerals import counted

V = TypeVar("V")

MAX_WAITING, MAX_WAITING_PER_VISITOR = 64, 16  # maximum waiting requests, in all and of one visitor
WINDOW_SECONDS = 60.0  # seconds over which the work for a visitor is summed
MAX_SECONDS_PER_VISITOR = 30.0  # of work for one visitor within WINDOW_SECONDS, while others use the worker too
_FULL_MESSAGE = ("Too many requests are waiting for this server.", "Wait a few seconds and press Enter again.")
_REPLACED_MESSAGE = ("A newer request from the same tab replaced this one.", "Ask again.")


class _WaitingRequest(NamedTuple):
    """A waiting request: the future of its result, its work, and the length of its text."""

    future: Future[Any]
    work: Callable[[], Any]
    characters: int


class _FinishedWork(NamedTuple):
    """Finished work: when it ended, its visitor, the seconds charged for it, and the length of its text."""

    end: float
    visitor: str
    seconds: float
    characters: int


class _FairClock:
    """Decides which client is served next, so that all waiting clients get the same amount of time.

    The clients are visitors, or the tabs of one visitor.

    This is the virtual clock and the start tags of start-time fair queueing (Goyal, Vin and Cheng 1996, section 2). The
    clock shows the start tag of the work that was served last. After work of s seconds, a client's next start tag is s
    seconds later, but no earlier than the clock when they next arrive. So a client who asks for less than their share
    starts at once, and nobody can save up time.
    """

    def __init__(self) -> None:
        self._now = 0.0
        self._starts: dict[Hashable, float] = {}

    def arrive(self, client: Hashable) -> None:
        """Record that a client begins to wait."""
        self._starts[client] = max(self._now, self._starts.get(client, 0.0))

    def __contains__(self, client: Hashable) -> bool:
        return client in self._starts

    def get_start(self, client: Hashable) -> float:
        """Return the start tag of a waiting client, in seconds."""
        return self._starts[client]

    def charge(self, client: Hashable, seconds: float) -> None:
        """Charge the seconds of finished work to the client that waited for it."""
        self._now = max(self._now, self._starts[client])
        self._starts[client] += seconds

    def forget(self, waiting_clients: Container[Hashable]) -> None:
        """Forget the start tags of clients that are not waiting, except tags in the future."""
        self._starts = {
            client: start for client, start in self._starts.items() if start > self._now or client in waiting_clients
        }


class FairWorker:
    """A worker with a queue for each visitor. Thread-safe.

    The worker gives the same time to all waiting visitors, and likewise to all tabs of a visitor, because many people
    behind one address may count as one visitor. The next visitor is the one whose work would end first if all were
    served at once, so of two visitors who have used equal time, the one with the shorter text is served first. Each tab
    has one waiting request, and a newer request replaces it. Work for no particular visitor, such as background jobs,
    has a queue and the share of one visitor, but no limit on its time.
    """

    def __init__(self, name: str) -> None:
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._lock = threading.Lock()
        # By visitor, then by tab.
        self._queues: OrderedDict[str, OrderedDict[Hashable, _WaitingRequest]] = OrderedDict()
        self._finished_work: deque[_FinishedWork] = deque()  # within the last WINDOW_SECONDS
        self._visitors = _FairClock()
        self._tabs: dict[str, _FairClock] = {}  # by visitor; cleared when the queues are empty

    def submit(self, work: Callable[[], V], visitor: str = "", tab: str = "", characters: int = 0) -> Future[V]:
        """Queue work and return its Future.

        Args:
            work: what the worker calls.
            visitor: who asks; "" for no particular visitor.
            tab: the visitor's tab; "" if requests do not replace each other.
            characters: the length of the text that the work is about.

        Raises Busy if too many requests wait, or if the visitor has used up their share of the worker's time.
        """
        future: Future[V] = Future()
        with self._lock:
            self._drop_old_entries()
            self._check_share(visitor)
            queue = self._queues.get(visitor, OrderedDict())
            replaced_request = queue.pop(tab, None) if tab else None
            is_full = sum(map(len, self._queues.values())) >= MAX_WAITING or (
                bool(visitor) and len(queue) >= MAX_WAITING_PER_VISITOR
            )
            if replaced_request is None and is_full:
                raise Busy(*_FULL_MESSAGE)
            tab_key = tab or object()
            if visitor not in self._queues:
                self._visitors.arrive(visitor)
            if replaced_request is None:
                self._tabs.setdefault(visitor, _FairClock()).arrive(tab_key)
            queue[tab_key] = _WaitingRequest(future, work, characters)
            self._queues[visitor] = queue
        if replaced_request is not None and replaced_request.future.set_running_or_notify_cancel():
            replaced_request.future.set_exception(Cancelled(*_REPLACED_MESSAGE))
        self._worker.submit(self._serve_next)
        return future

    def _drop_old_entries(self) -> None:
        """Forget cancelled requests and work that ended more than WINDOW_SECONDS ago."""
        while self._finished_work and self._finished_work[0].end < time.monotonic() - WINDOW_SECONDS:
            self._finished_work.popleft()
        for visitor, queue in list(self._queues.items()):
            for tab in [tab for tab, request in queue.items() if request.future.cancelled()]:
                del queue[tab]
            if not queue:
                del self._queues[visitor]

    def _check_share(self, visitor: str) -> None:
        """Raise Busy if the visitor has used up MAX_SECONDS_PER_VISITOR and others use the worker, too."""
        others = {*(item.visitor for item in self._finished_work), *self._queues} - {visitor, ""}
        if not (visitor and others):
            return
        own_work = [item for item in self._finished_work if item.visitor == visitor]
        used_seconds = sum(item.seconds for item in own_work)
        if used_seconds < MAX_SECONDS_PER_VISITOR:
            return
        sums = accumulate(item.seconds for item in own_work)
        end = next(
            i.end for i, used in zip(own_work, sums, strict=True) if used_seconds - used < MAX_SECONDS_PER_VISITOR
        )
        wait = counted(max(1, math.ceil(end + WINDOW_SECONDS - time.monotonic())), "second")
        raise Busy(
            f"The model has worked for you for {used_seconds:.0f} of the last {WINDOW_SECONDS:.0f} seconds, and others "
            "use it too.",
            f"Wait {wait} and press Enter again.",
        )

    def _serve_next(self) -> None:
        """Do the work of the next request, set its result, and charge its time."""
        with self._lock:
            self._drop_old_entries()
            visitor, tab, request = self._pop_next()
        if request is None:  # the request was cancelled or replaced
            return
        start = time.monotonic()
        try:
            result = request.work()
        except BaseException as error:
            request.future.set_exception(error)
        else:
            request.future.set_result(result)
        finally:
            end = time.monotonic()
            with self._lock:
                # The first work for a visitor may load a model, whose time must not be charged to the visitor.
                is_first = all(item.visitor != visitor for item in self._finished_work)
                seconds = self._estimate_rate() * request.characters if is_first else end - start
                self._finished_work.append(
                    _FinishedWork(end, visitor, 0.0 if is_first else seconds, request.characters)
                )
                self._charge(visitor, tab, seconds)

    def _charge(self, visitor: str, tab: Hashable, seconds: float) -> None:
        """Charge the seconds of finished work to a visitor and a tab."""
        if not self._queues:  # nobody else was waiting
            self._visitors, self._tabs = _FairClock(), {}
            return
        self._visitors.charge(visitor, seconds)
        self._tabs[visitor].charge(tab, seconds)
        self._visitors.forget(self._queues)
        self._tabs[visitor].forget(self._queues.get(visitor, ()))
        for name in [name for name in self._tabs if name not in self._visitors]:
            del self._tabs[name]

    def _estimate_rate(self) -> float:
        """Return the seconds per character of text, estimated from the work within WINDOW_SECONDS."""
        timed_work = [item for item in self._finished_work if item.seconds and item.characters]
        return sum(item.seconds for item in timed_work) / max(1, sum(item.characters for item in timed_work))

    def _pop_next(self) -> tuple[str, Hashable, _WaitingRequest | None]:
        """Remove and return a request of the visitor whose turn it is, and put that visitor last in line."""
        while self._queues:
            rate = self._estimate_rate()
            visitor = min(
                self._queues, key=lambda name: self._visitors.get_start(name) + self._choose_tab(name, rate)[1]
            )
            tab, _ = self._choose_tab(visitor, rate)
            queue = self._queues.pop(visitor)
            request = queue.pop(tab)
            if queue:
                self._queues[visitor] = queue
            if request.future.set_running_or_notify_cancel():
                return visitor, tab, request
        return "", "", None

    def _choose_tab(self, visitor: str, rate: float) -> tuple[Hashable, float]:
        """Return the tab of a visitor whose turn it is, and the seconds that its request will take at this rate."""
        seconds = {tab: rate * request.characters for tab, request in self._queues[visitor].items()}
        return min(seconds.items(), key=lambda item: self._tabs[visitor].get_start(item[0]) + item[1])
