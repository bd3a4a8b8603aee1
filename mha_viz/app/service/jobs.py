"""Run work that visitors submit and then poll.

A queue knows who submitted a job and who waits for it, decides when it stops, and keeps its results, which all visitors
share. A new kind of work is a row of KINDS.

A visitor has one place in a queue, however many tabs are open, and may join a job that others have submitted. A job
that no tab polls stops after a while; a page that runs again rejoins its job. The worker threads end with the process,
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
from mha_viz.app.service.visitors import NOBODY, get_session, get_visitor
from mha_viz.errors import Busy, Cancelled, Failed, MhaVizError, RunFailed, StudyFailed
from mha_viz.models.getting import catalog
from mha_viz.process.messages import estimate_size
from mha_viz.process.steps import Steps, run_steps

_LOG = logging.getLogger(__name__)
K = TypeVar("K", bound=Hashable)
R = TypeVar("R")


class QueueRules(NamedTuple):
    """The rules of a queue.

    Attributes:
        singular: what a job is called.
        plural: what several jobs are called.
        stop_advice: the advice to visitors who must wait for their own job, or stop it, before they submit another.
        max_jobs: at most this many jobs may wait or run.
        timeout_s: seconds without polling after which a visitor counts as gone.
        local_timeout_s: the timeout on the visitor's own machine, where other pages may be open meanwhile; 0 to use
            ``timeout_s``.
        workers: at most this many jobs run at once.
        failure: the error that is reported when a job fails unexpectedly.
        allows_several_locally: whether a visitor on their own machine may have several jobs.
        is_one_per_tab: whether a tab that submits another job leaves its previous one; for pages that submit jobs
            without a click.
        cache_bytes: maximum bytes of cached results.
        idle_bytes: maximum bytes of results that stay cached after all visitors have left.
        size: returns the size of a result in bytes.
    """

    singular: str
    plural: str
    stop_advice: str = "Stop it, or wait until it is done."
    max_jobs: int = 16
    timeout_s: float = 10.0
    local_timeout_s: float = 0.0
    workers: int = 1
    failure: type[Failed] = Failed
    allows_several_locally: bool = False
    is_one_per_tab: bool = False
    cache_bytes: int = 16_000_000
    idle_bytes: int = 0
    size: Callable[[Any], int] = estimate_size

    def get_timeout(self) -> float:
        """Return the seconds without polling after which a visitor counts as gone."""
        return self.timeout_s if catalog.is_hosted() else self.local_timeout_s or self.timeout_s


HIDDEN_TAB_S = 75.0  # a hidden tab polls once a minute
# The rules of each kind of work. On the visitor's own machine, downloads never time out.
KINDS: Mapping[str, QueueRules] = MappingProxyType(
    {
        "download": QueueRules(
            "download", "downloads", "Wait until it is finished, or cancel it.",
            max_jobs=8, timeout_s=90.0, local_timeout_s=math.inf, workers=2, allows_several_locally=True,
        ),
        "file": QueueRules(
            "file", "files", "Wait until it is read, then choose this one again.",
            timeout_s=5.0, workers=2, is_one_per_tab=True, cache_bytes=60_000_000,
        ),
        "study": QueueRules(
            "study", "studies", "Stop it on the Roles page, or wait until it is done.",
            max_jobs=8, timeout_s=HIDDEN_TAB_S, local_timeout_s=600.0, failure=StudyFailed,
            cache_bytes=200_000_000, size=profiles.count_bytes,
        ),
        "pointers": QueueRules(
            "reading of the built-in sentences", "readings of the built-in sentences",
            "Stop it in the card of its head, or wait until it is done.", is_one_per_tab=True, cache_bytes=200_000_000,
        ),
        "search": QueueRules(
            "search", "searches", "Stop it in the card of its head, or wait until it is done.",
            max_jobs=8, timeout_s=HIDDEN_TAB_S, local_timeout_s=600.0, cache_bytes=20_000_000,
        ),
        "groups": QueueRules(
            "sampling of links", "samplings of links", "Stop it in the card of its head, or wait until it is done.",
            max_jobs=8, timeout_s=HIDDEN_TAB_S, local_timeout_s=600.0, cache_bytes=20_000_000,
        ),
        "repeats": QueueRules(
            "measurement of a causal model", "measurements of causal models",
            "Stop it on the Roles page, or wait until it is done.", max_jobs=8, timeout_s=20.0, is_one_per_tab=True,
        ),
        "training": QueueRules(
            "training", "trainings", "Stop it first, or wait until it is done; another of your tabs may show it.",
            max_jobs=6, timeout_s=5.0, failure=RunFailed, cache_bytes=64 * 1024 * 1024, idle_bytes=8 * 1024 * 1024,
        ),
        "each_head": QueueRules("study of effects", "studies of effects", is_one_per_tab=True),
    }
)  # fmt: skip


class Job:
    """A job that waits, runs or has ended.

    Attributes:
        name: what the job is about, for messages.
        owner: the visitor who submitted it.
        fraction: the share that is done.
        size: the amount of work, such as the bytes of a download; 0 if unknown.
        error: why it failed; None otherwise.
        has_begun: False while the job waits for a worker.
    """

    def __init__(self, rules: QueueRules, name: str, on_stop: Callable[[], None] = lambda: None) -> None:
        self.name = name
        self.owner = get_visitor()
        self.fraction = 0.0
        self.size = 0
        self.error: MhaVizError | None = None
        self.has_begun = False
        self._rules = rules
        self._on_stop = on_stop
        self._has_ended = threading.Event()
        self._was_stopped = False
        self._start = 0.0  # when a worker began, on the monotonic clock
        self._last_polls: dict[tuple[str, str], float] = {}  # when each visitor last polled, by tab
        self._withdrawn_visitors: set[str] = set()  # visitors who pressed Stop
        self.join()

    def begin(self) -> None:
        """Record that a worker has started the job."""
        self.has_begun, self._start = True, time.monotonic()

    @property
    def seconds_left(self) -> float | None:
        """The remaining time, estimated from the share that is done; None before the first progress report."""
        if not 0 < self.fraction <= 1:
            return None
        return (time.monotonic() - self._start) * (1 - self.fraction) / self.fraction

    def join(self) -> None:
        """Let this visitor wait for the job, even if they pressed Stop earlier."""
        self._withdrawn_visitors.discard(get_visitor())
        self.heartbeat()

    def heartbeat(self) -> None:
        """Record that this visitor is still waiting."""
        if not self.is_cancelled:
            self._last_polls[get_visitor(), get_session()] = time.monotonic()

    def leave(self) -> None:
        """Stop waiting in this tab; the visitor's other tabs may go on waiting."""
        self._last_polls.pop((get_visitor(), get_session()), None)

    def cancel(self) -> None:
        """Withdraw this visitor from the job in all tabs; stop the job if nobody else is waiting."""
        self._withdrawn_visitors.add(get_visitor())
        for tab in [tab for tab in list(self._last_polls) if tab[0] == get_visitor()]:
            self._last_polls.pop(tab, None)
        if self.is_stopped():
            self._on_stop()

    @property
    def is_cancelled(self) -> bool:
        """Whether this visitor has withdrawn."""
        return get_visitor() in self._withdrawn_visitors

    @property
    def is_finished(self) -> bool:
        """Whether the job has ended, with or without a result."""
        return self._has_ended.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait up to ``seconds`` for the end; return whether the job has ended."""
        return self._has_ended.wait(seconds)

    def report_progress(self, fraction: float, size: int = 0) -> None:
        """Report the share of the work that is done, and the amount of work."""
        self.fraction, self.size = fraction, size

    def is_stopped(self) -> bool:
        """Return whether the job must stop, because at some point nobody was waiting for it.

        This cannot be undone: a visitor who still wants the result must submit the job again.
        """
        self._was_stopped = self._was_stopped or not self._list_waiting_visitors()
        return self._was_stopped

    def raise_if_stopped(self) -> None:
        """Raise Cancelled if the job must stop."""
        if self.is_stopped():
            raise Cancelled("Cancelled: no open page was waiting for the result.", "Reload the page.")

    def _list_waiting_visitors(self) -> set[str]:
        now, timeout = time.monotonic(), self._rules.get_timeout()
        return {visitor for (visitor, _), last_poll in list(self._last_polls.items()) if now - last_poll < timeout}

    def belongs_to(self, visitor: str) -> bool:
        """Return whether the job takes up this visitor's place in the queue."""
        return self.owner == visitor != NOBODY and not self.is_stopped() and visitor in self._list_waiting_visitors()

    def finish(self, error: MhaVizError | None) -> None:
        """Mark the job as ended, and record its ``error`` if it failed."""
        self.error = error
        self._has_ended.set()


def run_in_steps(steps: Callable[[], Steps[R]]) -> Callable[[Job], R]:
    """Return the work of a job that computes in ``steps``; the job can be stopped between them."""

    def work(job: Job) -> R:
        def report(fraction: float) -> None:
            job.report_progress(fraction)
            job.raise_if_stopped()

        job.raise_if_stopped()
        return run_steps(steps(), report)

    return work


class _QueuedJob(NamedTuple, Generic[K, R]):
    """A job that waits or runs, with its key and its work."""

    key: K
    job: Job
    work: Callable[[Job], R]


class JobQueue(Generic[K, R]):
    """A queue of jobs, identified by keys, and their ``results``.

    Jobs start in the order of submission, one per worker. A job that is stopped while it waits leaves the queue
    immediately.
    """

    def __init__(self, rules: QueueRules) -> None:
        self._rules = rules
        self._changed = threading.Condition()  # also guards the jobs
        self.results = BoundedCache[K, R](rules.cache_bytes, rules.size, rules.idle_bytes)
        self._entries: list[_QueuedJob[K, R]] = []  # in the order of arrival, including those that run
        self._failed_jobs = BoundedCache[K, Job](rules.max_jobs, lambda _: 1)
        for _ in range(rules.workers):
            threading.Thread(target=self._serve, daemon=True, name=rules.singular).start()

    def submit(self, key: K, name: str, work: Callable[[Job], R]) -> Job:
        """Submit a job, or join the job that is already running or waiting under this key.

        ``work`` must end soon after ``job.is_stopped()`` returns True.

        Raises Busy if this visitor already has the allowed number of other jobs, or if too many are waiting.
        """
        with self._changed:
            if self._rules.is_one_per_tab:
                for other in self._entries:
                    if other.key != key:
                        other.job.leave()
            self._drop_stopped()
            job = self.find_running(key)
            if job is None:
                self._check_limits()
                job = Job(self._rules, name, self._lock_and_drop_stopped)
                self._entries.append(_QueuedJob(key, job, work))
                self._changed.notify()
            job.join()
            return job

    def _check_limits(self) -> None:
        """Raise Busy if this visitor or the queue has as many jobs as are allowed."""
        rules, visitor = self._rules, get_visitor()
        active_jobs = [entry.job for entry in self._entries if not entry.job.is_stopped()]
        own_jobs = [job for job in active_jobs if job.belongs_to(visitor)]
        if own_jobs and not (rules.allows_several_locally and not catalog.is_hosted()):
            raise Busy(f"You already have a {rules.singular} running: {own_jobs[0].name}.", rules.stop_advice)
        if len(active_jobs) >= rules.max_jobs:
            raise Busy(f"Too many {rules.plural} are waiting on this server.", "Try again in a few minutes.")

    def find_running(self, key: K) -> Job | None:
        """Return the running or waiting job under this key; None if there is none or it was stopped.

        Any visitor may have submitted it.
        """
        job = self._find_last(key)
        return None if job is None or job.is_stopped() else job

    def is_stopping(self, key: K) -> bool:
        """Return whether the job under this key was stopped and is still saving its intermediate results."""
        job = self._find_last(key)
        return job is not None and job.is_stopped()

    def is_cancelled(self, key: K) -> bool:
        """Return whether this visitor has withdrawn from the last job under this key."""
        job = self._find_last(key) or self.find_failed(key)
        return job is not None and job.is_cancelled

    def _find_last(self, key: K) -> Job | None:
        return next((entry.job for entry in reversed(list(self._entries)) if entry.key == key), None)

    def count_ahead(self, job: Job) -> int:
        """Return the number of jobs ahead of this one."""
        jobs = [entry.job for entry in list(self._entries)]
        return jobs.index(job) if job in jobs else 0

    def find_failed(self, key: K) -> Job | None:
        """Return the last job under this key if it failed and is still recorded."""
        return self._failed_jobs.get(key)

    def _lock_and_drop_stopped(self) -> None:
        with self._changed:
            self._drop_stopped()

    def _drop_stopped(self) -> None:
        """Remove jobs that were stopped while they waited for a worker."""
        for entry in [entry for entry in self._entries if not entry.job.has_begun and entry.job.is_stopped()]:
            self._close(entry, Cancelled(f"The {self._rules.singular} was stopped before it began.", "Start it again."))

    def _serve(self) -> None:
        while True:
            self._run(self._take_next())

    def _take_next(self) -> _QueuedJob[K, R]:
        """Wait for a job and return the one that has waited longest, marked as begun."""
        with self._changed:
            while True:
                self._drop_stopped()
                entry = next((entry for entry in self._entries if not entry.job.has_begun), None)
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
        except Exception as raised:  # a bug or a hardware fault: report it and keep the server running
            _LOG.exception("A %s failed", self._rules.singular)
            detail = "" if catalog.is_hosted() else f": {type(raised).__name__}: {str(raised)[:200]}"
            error = self._rules.failure(f"The {self._rules.singular} failed{detail}.", "Try again.")
        with self._changed:
            self._close(entry, error)

    def _close(self, entry: _QueuedJob[K, R], error: MhaVizError | None) -> None:
        """Remove a job from the queue and record how it ended."""
        if error is None:
            self._failed_jobs.drop(entry.key)
        else:
            entry.job.error = error
            self._failed_jobs.put(entry.key, entry.job)
        self._entries = [other for other in self._entries if other is not entry]
        entry.job.finish(error)


def _make_queue(kind: str) -> JobQueue[Any, Any]:
    return JobQueue(KINDS[kind])


QUEUES: Mapping[str, Once[JobQueue[Any, Any]]] = MappingProxyType(
    {kind: Once(partial(_make_queue, kind)) for kind in KINDS}
)


def get_queue(kind: str) -> JobQueue[Any, Any]:
    """Return the queue for one of KINDS; there is only one per process."""
    return QUEUES[kind]()


class Task(NamedTuple, Generic[R]):
    """A job in steps that a page can ask for.

    Attributes:
        kind: one of ``jobs.KINDS``.
        key: the key of the job in its queue.
        name: what the job is about.
        label: the text that the page shows while the job runs.
        steps: creates the steps.
    """

    kind: str
    key: Hashable
    name: str
    label: str
    steps: Callable[[], Steps[R]]

    def find_result(self) -> R | None:
        """Return the cached result; None if there is none."""
        result: R | None = get_queue(self.kind).results.get(self.key)
        return result

    def begin(self) -> Job:
        """Submit the job, or join it if it is running or waiting. Raises Busy."""
        return get_queue(self.kind).submit(self.key, self.name, run_in_steps(self.steps))

    @property
    def is_cancelled(self) -> bool:
        """Whether this visitor has withdrawn from the job."""
        return get_queue(self.kind).is_cancelled(self.key)
