"""Downloads of models: all visitors who ask for the same model share its download."""

from __future__ import annotations

from mha_viz.app.service.caches import model_service
from mha_viz.app.service.jobs import KINDS, Job, queue_of
from mha_viz.errors import Cancelled
from mha_viz.model_names import quote_model
from mha_viz.models.getting.catalog import Model
from mha_viz.models.getting.hub import fetch
from mha_viz.models.getting.refusals import hub_error

KIND = "download"


def start(model: Model) -> Job:
    """Begin the download of a model, or join the one that is under way.

    Raises Busy if too many are waiting, and on a public server if this visitor is already waiting for another model.
    """
    return queue_of(KIND).submit(model, quote_model(model.name), lambda job: _fetch(model, job))


def waits(job: Job) -> bool:
    """Return True while other downloads are ahead of it."""
    return queue_of(KIND).before(job) >= KINDS[KIND].workers


def _fetch(model: Model, job: Job) -> None:
    def tell(done: int, total: int) -> None:
        if job.stopped():
            raise Cancelled(f"The download of {quote_model(model.name)} was stopped.", "Nothing was kept.")
        job.tell(min(1.0, done / total) if total else 0.0, total)

    try:
        fetch(model, tell)
    except Exception as error:
        answer = hub_error(error, model)
        model_service().fail(model, answer)  # a page that runs next may have seen nothing of this job
        raise answer from error
