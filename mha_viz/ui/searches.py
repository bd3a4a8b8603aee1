"""Searches by head in child processes: one at a time, with limits; their results are cached for a while.

A result contains sentences of the corpus. The key of a result for an uploaded file contains the digest of its content,
and pages show it only to visitors who have that file.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from mha_viz.attention import Head
from mha_viz.corpus.uploads import Source
from mha_viz.errors import Cancelled, MhaVizError, ModelUnreachable
from mha_viz.models import catalog, hub
from mha_viz.process import apart
from mha_viz.ui import profiles
from mha_viz.ui.jobs import Desk, Job, Rules
from mha_viz.ui.shelves import Once, Shelf

CHILD = "mha_viz.study.search_child"
LISTED = 20  # sentences per result
RESULT_BYTES = 20_000_000
GRACE = 10.0  # seconds in which a stopped search can hand over its results
RULES = Rules(
    one="search",
    many="searches",
    stop="Stop it in the card of its head, or wait until it is done.",
    places=8,
    forgotten=lambda: 75.0 if catalog.hosted() else 600.0,
)


class Wanted(NamedTuple):
    """A search; ``conditions`` are in the order of :class:`mha_viz.analysis.links.Conditions`."""

    corpus: str  # model and digest
    head: Head
    conditions: tuple[str, ...]


def wanted(model: catalog.Model, digest: str, head: Head, conditions: tuple[str, ...]) -> Wanted:
    """The search of a head's links in the corpus with this digest."""
    return Wanted(profiles.key(model, digest), head, conditions)


class Searches:
    """The process-wide desk of searches, and their results."""

    def __init__(self) -> None:
        self._desk: Desk[Wanted] = Desk(RULES)
        self._results: Shelf[Wanted, dict[str, Any]] = Shelf(RESULT_BYTES, lambda result: len(str(result)))

    def start(self, model: catalog.Model, source: Source, search: Wanted) -> Job:
        """Begin a search, or join the same one. Raises Busy."""
        name = f"{model.label} {search.head} in {source.name}"
        return self._desk.order(search, name, lambda job: self._search(model, source, search, job))

    def result(self, search: Wanted) -> dict[str, Any] | None:
        """The result, as :func:`mha_viz.analysis.links.packed`; None if none is cached."""
        return self._results.get(search)

    def under_way(self, search: Wanted) -> Job | None:
        """The search that runs or waits now."""
        return self._desk.under_way(search)

    def stopping(self, search: Wanted) -> bool:
        """True from the stop of a search until its results are stored."""
        return self._desk.stopping(search)

    def failed(self, search: Wanted) -> MhaVizError | None:
        """Why the last search of this kind failed, if it did."""
        job = self._desk.failed(search)
        return job.error if job else None

    def _search(self, model: catalog.Model, source: Source, search: Wanted, job: Job) -> None:
        folder = hub.local_folder(model)
        if folder is None:
            raise ModelUnreachable(f"The files of {model.label} are not on this machine.", "Open the model in Explore.")
        order = {
            "folder": str(folder),
            "name": model.name,
            "revision": hub.BUNDLE_SHA256.get(model.path, "")[:12],
            "head": list(search.head),
            "conditions": list(search.conditions),
            "most": LISTED,
            "data": source.data,
        }
        result = apart.run(CHILD, order, _bounds(folder), job.tell, cancelled=job.stopped)
        if result is None:
            raise Cancelled("The search was stopped before anything was read.", "Start it again.")
        self._results.put(search, result)


def _bounds(folder: Path) -> apart.Bounds:
    """All cores on one's own machine; on a public server half of them, and five minutes."""
    if not catalog.hosted():
        return apart.Bounds(threads=0, grace=GRACE, what="The search", answer_bytes=10**9)
    weights = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    threads = max(1, (os.cpu_count() or 1) // 2)
    return apart.Bounds(300, 3_000 + 3 * weights // 10**6, threads, GRACE, "The search", "Search in a shorter corpus.")


@Once
def searches() -> Searches:
    """The only desk of this process."""
    return Searches()
