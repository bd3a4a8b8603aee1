"""Run searches and samplings of a head's links in child processes, one at a time of each kind, with limits.

Results are cached for a while. They contain sentences of the corpus. The key of a result for an uploaded file therefore
contains the digest of the file's content, and pages show the result only to visitors who have that file.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from mha_viz.app.service import profiles
from mha_viz.app.service.jobs import Job, get_queue
from mha_viz.attention import Head
from mha_viz.corpus.uploads import StudyCorpus
from mha_viz.errors import Cancelled, ModelUnreachable
from mha_viz.models.getting import catalog, hub
from mha_viz.process import children

CHILD_MODULE = "mha_viz.study.head_child"
MAX_LISTED = 20  # sentences per search
SUBJECTS = {"search": "The search", "groups": "The sampling of links"}  # subjects of sentences in messages
GRACE_S = 10.0  # seconds for a stopped search to hand over its results


class LinkRequest(NamedTuple):
    """A search or sampling of a head's links, as a key for jobs and results.

    Attributes:
        kind: the kind of job, which also names the work of the child process.
        corpus: the key of model and corpus (``profiles.make_key``).
        head: the head.
        conditions: the conditions of a search, in the order of :class:`mha_viz.analysis.links.Conditions`.
    """

    kind: str
    corpus: str
    head: Head
    conditions: tuple[str, ...] = ()


def make_link_request(
    kind: str, model: catalog.Model, digest: str, head: Head, conditions: tuple[str, ...] = ()
) -> LinkRequest:
    """Return the key for a search or sampling of a head's links in the corpus with this digest."""
    return LinkRequest(kind, profiles.make_key(model, digest), head, conditions)


def start(model: catalog.Model, corpus: StudyCorpus, request: LinkRequest) -> Job:
    """Start the job, or join it if it is running or waiting. The child process packs its result. Raises Busy."""
    name = f"{model.label} {request.head} in {corpus.name}"
    return get_queue(request.kind).submit(request, name, lambda job: _run_child(model, corpus, request, job))


def _run_child(model: catalog.Model, corpus: StudyCorpus, request: LinkRequest, job: Job) -> dict[str, Any]:
    folder = hub.find_local_folder(model)
    if folder is None:
        raise ModelUnreachable(f"The files of {model.label} are not on this machine.", "Open the model in Explore.")
    child_request = {
        "kind": request.kind,
        "folder": str(folder),
        "name": model.name,
        "revision": hub.BUNDLE_SHA256.get(model.path, "")[:12],
        "head": list(request.head),
        "conditions": list(request.conditions),
        "most": MAX_LISTED,
        "data": corpus.data,
    }
    result: dict[str, Any] | None = children.run(
        CHILD_MODULE,
        child_request,
        _make_bounds(folder, SUBJECTS[request.kind]),
        job.report_progress,
        cancelled=job.is_stopped,
    )
    if result is None:
        raise Cancelled(f"{SUBJECTS[request.kind]} was stopped before anything was read.", "Start it again.")
    return result


def _make_bounds(folder: Path, subject: str) -> children.Bounds:
    """Return the limits of the child process.

    On the visitor's own machine: all cores and no time limit. On a public server: half of the cores and five minutes.
    """
    if not catalog.is_hosted():
        return children.Bounds(threads=0, grace_s=GRACE_S, subject=subject, answer_bytes=10**9)
    weight_bytes = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    threads = max(1, (os.cpu_count() or 1) // 2)
    megabytes, remedy = 3_000 + 3 * weight_bytes // 10**6, "Choose a shorter corpus."
    return children.Bounds(300, megabytes, threads, GRACE_S, subject, remedy)
