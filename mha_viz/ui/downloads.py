"""The desk for downloads: two models are downloaded at a time, and all visitors who ask for the same model share its
download."""

from __future__ import annotations

import math

from mha_viz.errors import Cancelled
from mha_viz.models.catalog import Model, hosted
from mha_viz.models.hub import fetch
from mha_viz.models.refusals import explained
from mha_viz.quotes import quoted
from mha_viz.ui.jobs import Desk, Job, Rules
from mha_viz.ui.shelves import Once

PLACES = 8
# A page polls twice a second, or once a minute in a hidden tab. On a public server, a download that no page has polled
# for this many seconds stops; on one's own machine it runs to its end, and several may be ordered.
FORGOTTEN = 90.0
RULES = Rules(
    one="download",
    many="downloads",
    stop="Wait until it is finished, or cancel it.",
    places=PLACES,
    forgotten=lambda: FORGOTTEN if hosted() else math.inf,
    workers=2,
    apiece=lambda: 1 if hosted() else PLACES,
)


@Once
def _desk() -> Desk[Model]:
    return Desk(RULES)


def start(model: Model) -> Job:
    """Begin the download of a model, or join the one that is under way.

    Raises Busy if too many are waiting, and on a public server if this visitor is already waiting for another model.
    """
    return _desk().order(model, quoted(model.name), lambda job: _fetch(model, job))


def waits(job: Job) -> bool:
    """True while other downloads are ahead of it."""
    return _desk().before(job) >= RULES.workers


def _fetch(model: Model, job: Job) -> None:
    def tell(done: int, total: int) -> None:
        if job.stopped():
            raise Cancelled(f"The download of {quoted(model.name)} was stopped.", "Nothing was kept.")
        job.tell(min(1.0, done / total) if total else 0.0, total)

    try:
        fetch(model, tell)
    except Exception as error:
        raise explained(error, model) from error
