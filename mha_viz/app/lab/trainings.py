"""Start trainings in the lab, find them, and estimate how long they take."""

from __future__ import annotations

from time import perf_counter

from mha_viz.app.service.caches import Once
from mha_viz.app.service.jobs import Job, get_queue
from mha_viz.lab import estimate, lab
from mha_viz.lab.lab import check_settings
from mha_viz.lab.record import Result, Settings

KIND = "training"


@Once
def load_paces() -> list[float]:
    """Return a list with one number: the seconds per unit of work in the last run on this server.

    Before the first run, it is measured on a tiny run.
    """
    return [estimate.measure_pace()]


def estimate_seconds(settings: Settings) -> float:
    """Estimate how many seconds a run with these settings takes, from the pace of the last run on this server."""
    return load_paces()[-1] * estimate.estimate_seconds(settings)


def start(settings: Settings) -> Job:
    """Start a run, or join the running job with equal settings.

    Raises SettingError, and Busy if this visitor has another run or too many are waiting.
    """
    check_settings(settings)

    def work(job: Job) -> Result:
        begin = perf_counter()
        result = lab.run(settings, job.report_progress, job.is_stopped)
        load_paces()[:] = [(perf_counter() - begin) / estimate.estimate_seconds(settings)]
        return result

    name = f"experiment {settings.experiment}, {settings.steps:,} steps, seed {settings.seed}"
    return get_queue(KIND).submit(settings, name, work)


def find_result(settings: Settings) -> Result | None:
    """Return the cached result of a run with these settings; None if there is none."""
    result: Result | None = get_queue(KIND).results.get(settings)
    return result


def find_running(settings: Settings) -> Job | None:
    """Return the job that runs or waits with these settings; None if there is none.

    A job from which this visitor has withdrawn does not count.
    """
    training = get_queue(KIND).find_running(settings)
    return None if training is None or training.is_cancelled else training
