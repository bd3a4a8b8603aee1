"""What is read of one head's links, in child processes: one at a time of each kind, with limits; results are cached for
a while.

A result contains sentences of the corpus. The key of a result for an uploaded file contains the digest of its content,
and pages show it only to visitors who have that file.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from mha_viz.app.service import profiles
from mha_viz.app.service.jobs import Job, queue_of
from mha_viz.attention import Head
from mha_viz.corpus.uploads import StudyCorpus
from mha_viz.errors import Cancelled, ModelUnreachable
from mha_viz.models.getting import catalog, hub
from mha_viz.process import apart

CHILD = "mha_viz.study.head_child"
LISTED = 20  # sentences per search
SUBJECTS = {"search": "The search", "groups": "The sampling of links"}  # in messages
GRACE = 10.0  # seconds in which a stopped search can hand over its results


class Wanted(NamedTuple):
    """``kind``: a kind of job, and the name of the work in the child; ``conditions``, of a search, are in the order of
    :class:`mha_viz.analysis.links.Conditions`."""

    kind: str
    corpus: str  # model and digest
    head: Head
    conditions: tuple[str, ...] = ()


def wanted(kind: str, model: catalog.Model, digest: str, head: Head, conditions: tuple[str, ...] = ()) -> Wanted:
    """Return what is wanted of a head's links in the corpus with this digest."""
    return Wanted(kind, profiles.key(model, digest), head, conditions)


def start(model: catalog.Model, source: StudyCorpus, what: Wanted) -> Job:
    """Begin the work, or join the same; its result is as the child packs it. Raises Busy."""
    name = f"{model.label} {what.head} in {source.name}"
    return queue_of(what.kind).submit(what, name, lambda job: _result(model, source, what, job))


def _result(model: catalog.Model, source: StudyCorpus, what: Wanted, job: Job) -> dict[str, Any]:
    folder = hub.local_folder(model)
    if folder is None:
        raise ModelUnreachable(f"The files of {model.label} are not on this machine.", "Open the model in Explore.")
    order = {
        "kind": what.kind,
        "folder": str(folder),
        "name": model.name,
        "revision": hub.BUNDLE_SHA256.get(model.path, "")[:12],
        "head": list(what.head),
        "conditions": list(what.conditions),
        "most": LISTED,
        "data": source.data,
    }
    result: dict[str, Any] | None = apart.run(
        CHILD, order, _bounds(folder, SUBJECTS[what.kind]), job.tell, cancelled=job.stopped
    )
    if result is None:
        raise Cancelled(f"{SUBJECTS[what.kind]} was stopped before anything was read.", "Start it again.")
    return result


def _bounds(folder: Path, subject: str) -> apart.Bounds:
    """Return all cores on one's own machine; on a public server half of them, and five minutes."""
    if not catalog.hosted():
        return apart.Bounds(threads=0, grace=GRACE, what=subject, answer_bytes=10**9)
    weights = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    threads = max(1, (os.cpu_count() or 1) // 2)
    return apart.Bounds(300, 3_000 + 3 * weights // 10**6, threads, GRACE, subject, "Choose a shorter corpus.")
