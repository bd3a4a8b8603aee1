"""Download models. All visitors who ask for the same model share its download."""

from __future__ import annotations

from mha_viz.app.service.caches import get_model_service
from mha_viz.app.service.jobs import KINDS, Job, get_queue
from mha_viz.errors import Cancelled
from mha_viz.model_names import quote_model
from mha_viz.models.getting.catalog import Model
from mha_viz.models.getting.hub import fetch
from mha_viz.models.getting.refusals import explain_error

JOB_KIND = "download"


def start(model: Model) -> Job:
    """Start downloading a model, or join the running download.

    Raises Busy if too many downloads are waiting or, on a public server, if this visitor is already waiting for another
    model.
    """
    return get_queue(JOB_KIND).submit(model, quote_model(model.name), lambda job: _fetch(model, job))


def is_waiting(job: Job) -> bool:
    """Return whether the job is waiting for other downloads."""
    return get_queue(JOB_KIND).count_ahead(job) >= KINDS[JOB_KIND].workers


def _fetch(model: Model, job: Job) -> None:
    def report(bytes_done: int, total_bytes: int) -> None:
        if job.is_stopped():
            raise Cancelled(f"The download of {quote_model(model.name)} was stopped.", "Nothing was kept.")
        job.report_progress(min(1.0, bytes_done / total_bytes) if total_bytes else 0.0, total_bytes)

    try:
        fetch(model, report)
    except Exception as error:
        model_error = explain_error(error, model)
        get_model_service().note_failure(model, model_error)  # shown by later runs of a page, which lack this job
        raise model_error from error
