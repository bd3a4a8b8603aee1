"""The desk for trainings: one runs at a time, a few may wait, and one that no page polls any more stops."""

from __future__ import annotations

from time import perf_counter

from mha_viz.errors import RunFailed
from mha_viz.training import apart, estimate
from mha_viz.training.lab import check
from mha_viz.training.record import Result, Settings, size
from mha_viz.ui.jobs import Desk, Job, Rules
from mha_viz.ui.shelves import Once, Shelf

FORGOTTEN = 5.0  # seconds without polling after which a visitor counts as gone
CACHE_BYTES = 64 * 1024 * 1024  # bytes of finished results…
AT_REST = 8 * 1024 * 1024  # …and of those that stay when all visitors have left
RULES = Rules(
    one="training",
    many="trainings",
    stop="Stop it first, or wait until it is done; another of your tabs may show it.",
    places=6,
    forgotten=lambda: FORGOTTEN,
    failure=RunFailed,
)


class Trainings:
    """The process-wide desk. Visitors who ask for the same run share it."""

    def __init__(self) -> None:
        self._desk: Desk[Settings] = Desk(RULES)
        self._done: Shelf[Settings, Result] = Shelf(CACHE_BYTES, size, AT_REST)
        self._pace: float | None = None

    def result(self, settings: Settings) -> Result | None:
        """The result with these settings, if this server has computed it lately."""
        return self._done.get(settings)

    def under_way(self, settings: Settings) -> Job | None:
        """The run with these settings that runs or waits now, unless this visitor has left it."""
        training = self._desk.under_way(settings)
        return None if training is None or training.left else training

    def seconds(self, settings: Settings) -> float:
        """About how many seconds a run with these settings takes: estimated from the last run here, or else from a tiny
        measurement."""
        if self._pace is None:
            self._pace = estimate.pace()
        return self._pace * estimate.work(settings)

    def before(self, training: Job) -> int:
        """The number of runs ahead of this one."""
        return self._desk.before(training)

    def start(self, settings: Settings) -> Job:
        """Begin a run, or join the one that is under way. Raises SettingError, and Busy if this visitor has another one
        or too many are waiting."""
        check(settings)

        def work(job: Job) -> None:
            begin = perf_counter()
            self._done.put(settings, apart.run(settings, job.tell, job.stopped))
            self._pace = (perf_counter() - begin) / estimate.work(settings)

        name = f"experiment {settings.experiment}, {settings.steps:,} steps, seed {settings.seed}"
        return self._desk.order(settings, name, work)


@Once
def trainings() -> Trainings:
    """The only desk of this process."""
    return Trainings()
