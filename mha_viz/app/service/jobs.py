"""Work that visitors submit and then poll: who waits for it, who submitted it, when it stops, and its results, which
all visitors share. A new kind of work is a row of KINDS.

One visitor has one place in a queue, in however many tabs, and may join what others have submitted. Work that no tab
polls stops after a while; a page that runs again rejoins its work. The threads of a queue end with the process,
whatever they are waiting for.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from mha_viz.app.service import profiles
from mha_viz.app.service.caches import BoundedCache, Once
from mha_viz.app.service.visitors import NOBODY, session, visitor
from mha_viz.errors import Busy, Cancelled, Failed, MhaVizError, RunFailed, StudyFailed
from mha_viz.models.getting import catalog
from mha_viz.process.messages import size_of
from mha_viz.process.steps import Steps, completed

_LOG = logging.getLogger(__name__)
K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


class Rules(NamedTuple):
    """The rules of one queue: ``one`` and ``many`` name what is submitted there in singular and plural, ``stop`` says
    what a visitor can do about their own job; ``places`` jobs may wait or run, ``workers`` of them at once. A visitor
    who has not polled for ``forgotten`` seconds counts as gone; on one's own machine, where other pages may be open
    meanwhile, for ``at_home`` seconds, if that is not 0. ``several_at_home``: a visitor there may have more jobs than
    one. ``one_per_tab``: a tab that submits another leaves its previous job, for pages that submit by themselves.
    ``failure`` is the error of a job that failed unexpectedly. Results of at most ``cached`` bytes, by ``size``, are
    cached, and of ``at_rest`` bytes when all visitors have left."""

    one: str
    many: str
    stop: str = "Stop it, or wait until it is done."
    places: int = 16
    forgotten: float = 10.0
    at_home: float = 0.0
    workers: int = 1
    failure: type[Failed] = Failed
    several_at_home: bool = False
    one_per_tab: bool = False
    cached: int = 16_000_000
    at_rest: int = 0
    size: Callable[[Any], int] = size_of

    def longest_silence(self) -> float:
        """After how many seconds without polling a visitor counts as gone."""
        return self.forgotten if catalog.hosted() else self.at_home or self.forgotten


HIDDEN = 75.0  # a hidden tab polls once a minute
# By kind of work. Downloads run to their end on one's own machine.
KINDS: Mapping[str, Rules] = MappingProxyType(
    {
        "download": Rules(
            "download", "downloads", "Wait until it is finished, or cancel it.",
            places=8, forgotten=90.0, at_home=math.inf, workers=2, several_at_home=True,
        ),
        "file": Rules(
            "file", "files", "Wait until it is read, then choose this one again.",
            forgotten=5.0, workers=2, one_per_tab=True, cached=60_000_000,
        ),
        "study": Rules(
            "study", "studies", "Stop it on the Roles page, or wait until it is done.",
            places=8, forgotten=HIDDEN, at_home=600.0, failure=StudyFailed, cached=200_000_000, size=profiles.size,
        ),
        "pointers": Rules(
            "reading of the built-in sentences", "readings of the built-in sentences",
            "Stop it in the card of its head, or wait until it is done.", one_per_tab=True, cached=200_000_000,
        ),
        "search": Rules(
            "search", "searches", "Stop it in the card of its head, or wait until it is done.",
            places=8, forgotten=HIDDEN, at_home=600.0, cached=20_000_000,
        ),
        "groups": Rules(
            "sampling of links", "samplings of links", "Stop it in the card of its head, or wait until it is done.",
            places=8, forgotten=HIDDEN, at_home=600.0, cached=20_000_000,
        ),
        "repeats": Rules(
            "measurement of a causal model", "measurements of causal models",
            "Stop it on the Roles page, or wait until it is done.", places=8, forgotten=20.0, one_per_tab=True,
        ),
        "training": Rules(
            "training", "trainings", "Stop it first, or wait until it is done; another of your tabs may show it.",
            places=6, forgotten=5.0, failure=RunFailed, cached=64 * 1024 * 1024, at_rest=8 * 1024 * 1024,
        ),
        "each_head": Rules("study of effects", "studies of effects", one_per_tab=True),
    }
)  # fmt: skip


class Job:
    """A job, under way or done. ``fraction`` is the share that is done, ``size`` the amount of work, 0 if unknown;
    ``error`` says why it failed."""

    def __init__(self, rules: Rules, name: str, on_stop: Callable[[], None] = lambda: None) -> None:
        self.name = name
        self.owner = visitor()
        self.fraction = 0.0
        self.size = 0
        self.error: MhaVizError | None = None
        self.begun = False  # False while it waits for a worker
        self._rules = rules
        self._on_stop = on_stop
        self._over = threading.Event()
        self._stopped = False
        self._start = 0.0  # when a worker began, on the monotonic clock
        self._seen: dict[tuple[str, str], float] = {}  # when each visitor last polled, by tab
        self._gone: set[str] = set()  # visitors who pressed Stop
        self.join()

    def begin(self) -> None:
        """Note that a worker starts on it."""
        self.begun, self._start = True, time.monotonic()

    @property
    def seconds_left(self) -> float | None:
        """The remaining time, estimated from the share that is done; None while that is too little."""
        if not 0 < self.fraction <= 1:
            return None
        return (time.monotonic() - self._start) * (1 - self.fraction) / self.fraction

    def join(self) -> None:
        """Let this visitor wait for it, even after pressing Stop before."""
        self._gone.discard(visitor())
        self.look()

    def look(self) -> None:
        """Note that this visitor is still waiting for it."""
        if not self.left:
            self._seen[visitor(), session()] = time.monotonic()

    def leave(self) -> None:
        """Stop waiting in this tab; other tabs of the same visitor may go on."""
        self._seen.pop((visitor(), session()), None)

    def let_go(self) -> None:
        """Stop waiting in all tabs of this visitor; the work stops if nobody else waits."""
        self._gone.add(visitor())
        for place in [place for place in list(self._seen) if place[0] == visitor()]:
            self._seen.pop(place, None)
        if self.stopped():
            self._on_stop()

    @property
    def left(self) -> bool:
        """True if this visitor has stopped waiting."""
        return visitor() in self._gone

    @property
    def finished(self) -> bool:
        """True if it has ended, with or without a result."""
        return self._over.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait up to ``seconds`` for the end; True if it has ended."""
        return self._over.wait(seconds)

    def tell(self, fraction: float, size: int = 0) -> None:
        """Report the share that is done, and of how much."""
        self.fraction, self.size = fraction, size

    def stopped(self) -> bool:
        """Return True once nobody was waiting for it: it then ends, and anyone who still wants it must submit it
        again."""
        self._stopped = self._stopped or not self._waiting_visitors()
        return self._stopped

    def check(self) -> None:
        """Raise Cancelled once nobody was waiting for it."""
        if self.stopped():
            raise Cancelled("Cancelled: no open page was waiting for the result.", "Open the page again.")

    def _waiting_visitors(self) -> set[str]:
        now, longest = time.monotonic(), self._rules.longest_silence()
        return {who for (who, _), seen in list(self._seen.items()) if now - seen < longest}

    def belongs_to(self, who: str) -> bool:
        """Return True while it takes up this visitor's place in the queue."""
        return self.owner == who != NOBODY and not self.stopped() and who in self._waiting_visitors()

    def finish(self, error: MhaVizError | None) -> None:
        """Record the end, and its ``error`` if it failed."""
        self.error = error
        self._over.set()


def in_steps(steps: Callable[[], Steps[R]]) -> Callable[[Job], R]:
    """Return the work of a job that is done in steps, between which it can be stopped."""

    def work(job: Job) -> R:
        def tell(done: float) -> None:
            job.tell(done)
            job.check()

        job.check()
        return completed(steps(), tell)

    return work


class _QueuedJob(NamedTuple, Generic[K, R]):
    key: K
    job: Job
    work: Callable[[Job], R]


class JobQueue(Generic[K, R]):
    """Jobs by key, first come, first served, as many at a time as there are workers, and their ``results``. A job
    that is stopped while it waits leaves the queue at once."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._changed = threading.Condition()  # guards the jobs too
        self.results = BoundedCache[K, R](rules.cached, rules.size, rules.at_rest)
        self._entries: list[_QueuedJob[K, R]] = []  # in the order of arrival, including those that run
        self._failed = BoundedCache[K, Job](rules.places, lambda _: 1)
        for _ in range(rules.workers):
            threading.Thread(target=self._serve, daemon=True, name=rules.one).start()

    def submit(self, key: K, name: str, work: Callable[[Job], R]) -> Job:
        """Begin this work, or join the same work under way. ``work`` must end soon after ``job.stopped()``.

        Raises Busy if this visitor already has the allowed number of other jobs, or if too many are waiting.
        """
        with self._changed:
            if self._rules.one_per_tab:
                for other in self._entries:
                    if other.key != key:
                        other.job.leave()
            self._drop_stopped()
            job = self.under_way(key)
            if job is None:
                self._check_place()
                job = Job(self._rules, name, self._leave_stopped)
                self._entries.append(_QueuedJob(key, job, work))
                self._changed.notify()
            job.join()
            return job

    def _check_place(self) -> None:
        rules, who = self._rules, visitor()
        live = [entry.job for entry in self._entries if not entry.job.stopped()]
        mine = [job for job in live if job.belongs_to(who)]
        if mine and not (rules.several_at_home and not catalog.hosted()):
            raise Busy(f"You already have a {rules.one} running: {mine[0].name}.", rules.stop)
        if len(live) >= rules.places:
            raise Busy(f"Too many {rules.many} are waiting on this server.", "Try again in a few minutes.")

    def under_way(self, key: K) -> Job | None:
        """Return the job that runs or waits now and was not stopped, by any visitor."""
        job = self._last(key)
        return None if job is None or job.stopped() else job

    def stopping(self, key: K) -> bool:
        """Return True from the stop of a job until it has saved what it had done."""
        job = self._last(key)
        return job is not None and job.stopped()

    def left(self, key: K) -> bool:
        """Return True when this visitor stopped the last job of this kind."""
        job = self._last(key) or self.failed(key)
        return job is not None and job.left

    def _last(self, key: K) -> Job | None:
        return next((entry.job for entry in reversed(list(self._entries)) if entry.key == key), None)

    def before(self, job: Job) -> int:
        """Return the number of jobs ahead of this one."""
        jobs = [entry.job for entry in list(self._entries)]
        return jobs.index(job) if job in jobs else 0

    def failed(self, key: K) -> Job | None:
        """Return the last job under this key that failed, if it is still recorded."""
        return self._failed.get(key)

    def _leave_stopped(self) -> None:
        with self._changed:
            self._drop_stopped()

    def _drop_stopped(self) -> None:
        """Remove the jobs that were stopped while they waited."""
        for entry in [entry for entry in self._entries if not entry.job.begun and entry.job.stopped()]:
            self._close(entry, Cancelled(f"The {self._rules.one} was stopped before it began.", "Start it again."))

    def _serve(self) -> None:
        while True:
            self._run(self._next())

    def _next(self) -> _QueuedJob[K, R]:
        """Return the job that has waited longest, marked as begun; blocks until there is one."""
        with self._changed:
            while True:
                self._drop_stopped()
                entry = next((entry for entry in self._entries if not entry.job.begun), None)
                if entry is not None:
                    entry.job.begin()
                    return entry
                self._changed.wait()

    def _run(self, entry: _QueuedJob[K, R]) -> None:
        error: MhaVizError | None = None
        try:
            self.results.put(entry.key, entry.work(entry.job))
        except MhaVizError as raised:
            error = raised
        except Exception as raised:  # a fault of the program or the machine: the page reports it, the server lives on
            _LOG.exception("A %s failed", self._rules.one)
            why = "" if catalog.hosted() else f": {type(raised).__name__}: {str(raised)[:200]}"
            error = self._rules.failure(f"The {self._rules.one} failed{why}.", "Try again.")
        with self._changed:
            self._close(entry, error)

    def _close(self, entry: _QueuedJob[K, R], error: MhaVizError | None) -> None:
        """Remove a job from the queue."""
        if error is None:
            self._failed.drop(entry.key)
        else:
            entry.job.error = error
            self._failed.put(entry.key, entry.job)
        self._entries = [other for other in self._entries if other is not entry]
        entry.job.finish(error)


def _new_queue(kind: str) -> JobQueue[Any, Any]:
    return JobQueue(KINDS[kind])


QUEUES: Mapping[str, Once[JobQueue[Any, Any]]] = MappingProxyType(
    {kind: Once(partial(_new_queue, kind)) for kind in KINDS}
)


def queue_of(kind: str) -> JobQueue[Any, Any]:
    """Return this process's only queue of one of KINDS."""
    return QUEUES[kind]()


class Task(NamedTuple, Generic[R]):
    """Work of one of ``jobs.KINDS`` in steps, by its key; ``name`` says what it is about, ``words`` what is done
    meanwhile."""

    kind: str
    key: Hashable
    name: str
    words: str
    steps: Callable[[], Steps[R]]

    def stored(self) -> R | None:
        """Return the result, if it is cached."""
        result: R | None = queue_of(self.kind).results.get(self.key)
        return result

    def begin(self) -> Job:
        """Begin the work, or join it. Raises Busy."""
        return queue_of(self.kind).submit(self.key, self.name, in_steps(self.steps))

    @property
    def left(self) -> bool:
        """True if this visitor stopped it."""
        return queue_of(self.kind).left(self.key)
