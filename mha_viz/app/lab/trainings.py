"""Trainings in the lab, and about how long they take."""

from __future__ import annotations

from time import perf_counter

from mha_viz.app.service.caches import Once
from mha_viz.app.service.jobs import Job, queue_of
from mha_viz.lab import estimate, lab
from mha_viz.lab.lab import check
from mha_viz.lab.record import Result, Settings

KIND = "training"


@Once
def paces() -> list[float]:
    """Return seconds for a unit of work: of the last run here or, before the first, of a tiny measurement; one
    number."""
    return [estimate.pace()]


def seconds(settings: Settings) -> float:
    """About how many seconds a run with these settings takes: estimated from the last run here, or else from a tiny
    measurement."""
    return paces()[-1] * estimate.work(settings)


def start(settings: Settings) -> Job:
    """Begin a run, or join the one that is under way. Raises SettingError, and Busy if this visitor has another one or
    too many are waiting."""
    check(settings)

    def work(job: Job) -> Result:
        begin = perf_counter()
        result = lab.run(settings, job.tell, job.stopped)
        paces()[:] = [(perf_counter() - begin) / estimate.work(settings)]
        return result

    name = f"experiment {settings.experiment}, {settings.steps:,} steps, seed {settings.seed}"
    return queue_of(KIND).submit(settings, name, work)


def result(settings: Settings) -> Result | None:
    """Return the result with these settings, if this server has computed it lately."""
    done: Result | None = queue_of(KIND).results.get(settings)
    return done


def under_way(settings: Settings) -> Job | None:
    """Return the run with these settings that runs or waits now, unless this visitor has left it."""
    training = queue_of(KIND).under_way(settings)
    return None if training is None or training.left else training
