"""Searches by head, in child processes: one at a time, with bounds; what they found is kept for a while.

A result holds sentences of the corpus. That of an uploaded file is under the digest of its content, and pages show it
to visitors who have that file alone.
"""

from __future__ import annotations

import json
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
LISTED = 20  # sentences of a result
RESULT_BYTES = 20_000_000
GRACE = 10.0  # seconds in which a search that is stopped hands over what it found
RULES = Rules(
    one="search",
    many="searches",
    stop="Stop it in the card of its head, or wait until it is done.",
    places=8,
    forgotten=lambda: 75.0 if catalog.hosted() else 600.0,
)


class Wanted(NamedTuple):
    """A search: ``conditions`` in the order of :class:`mha_viz.analysis.links.Conditions`."""

    corpus: str  # model and digest
    head: Head
    conditions: tuple[str, ...]


def wanted(model: catalog.Model, digest: str, head: Head, conditions: tuple[str, ...]) -> Wanted:
    """The search of a head in the corpus with this digest."""
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
        """What was found, as :func:`mha_viz.analysis.links.packed`; None where nothing is kept."""
        return self._results.get(search)

    def under_way(self, search: Wanted) -> Job | None:
        """The search that runs or waits now."""
        return self._desk.under_way(search)

    def stopping(self, search: Wanted) -> bool:
        """True from the stop of a search until what it found is kept."""
        return self._desk.stopping(search)

    def failed(self, search: Wanted) -> MhaVizError | None:
        """Why the last search of this kind came to nothing, if it did."""
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
        }
        data = json.dumps(order).encode() + b"\n" + source.data
        result = json.loads(apart.run(CHILD, data, _bounds(folder), job.tell, cancelled=job.stopped))
        if result is None:
            raise Cancelled("The search was stopped before anything was read.", "Start it again.")
        self._results.put(search, result)


def _bounds(folder: Path) -> apart.Bounds:
    """All cores on one's own machine; for strangers half of them, and five minutes."""
    if not catalog.hosted():
        return apart.Bounds(threads=0, grace=GRACE, what="The search", answer_bytes=10**9)
    weights = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    threads = max(1, (os.cpu_count() or 1) // 2)
    return apart.Bounds(300, 3_000 + 3 * weights // 10**6, threads, GRACE, "The search", "Search in a shorter corpus.")


@Once
def searches() -> Searches:
    """The one desk of this process."""
    return Searches()
