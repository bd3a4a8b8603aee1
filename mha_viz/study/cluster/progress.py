"""The progress of work on a cluster: how fast it is, who does it, and which workers were lost."""

from __future__ import annotations

import time
from collections import Counter, deque
from typing import TYPE_CHECKING, Any, cast

from mha_viz.study.run import Progress

if TYPE_CHECKING:
    from distributed import Client

RATE_SECONDS = 60


class Workers:
    """The workers of a cluster, and how many of them were lost since they were first asked for."""

    def __init__(self, client: Client) -> None:
        self._client = cast(Any, client)  # Dask's own types are incomplete
        self._present = {*self._client.nthreads()}
        self._lost = 0

    def lost(self) -> int:
        """How many workers are gone without having retired."""
        present = {*self._client.nthreads()}
        self._lost += sum(not self._retired(address) for address in self._present - present)
        self._present = present
        return self._lost

    def _retired(self, address: str) -> bool:
        """Whether the scheduler let a worker that is gone retire, after moving its results elsewhere."""
        events = [event for _, event in self._client.get_events(address) if isinstance(event, dict)]
        return any(event.get("action") == "retired" or event.get("expected") for event in events)


class Reporter:
    """The progress of a study of ``total`` sentences. The rate is that of the last RATE_SECONDS, because results read
    from the folder arrive much faster than those measured after them."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._by_worker: Counter[str] = Counter()
        self._recent = deque([(time.monotonic(), 0)])  # time and how many were done then

    def add(self, worker: str, sentences: int, lost: int) -> Progress:
        """The progress after a worker has done this many more sentences, with so many workers lost in all."""
        self._by_worker[worker] += sentences
        done, now = self._by_worker.total(), time.monotonic()
        self._recent.append((now, done))
        while len(self._recent) > 2 and self._recent[1][0] < now - RATE_SECONDS:
            self._recent.popleft()
        began, before = self._recent[0]
        rate = (done - before) / max(1e-9, now - began)
        left = (self._total - done) / rate if rate else None
        return Progress(done, self._total, rate, left, dict(self._by_worker), lost)
