"""An experiment in a child process with one thread: the lab's matrices are too small to gain from two."""

from __future__ import annotations

from dataclasses import asdict

from mha_viz.process import apart
from mha_viz.training.lab import check
from mha_viz.training.record import Result, Settings, from_bytes

CHILD = "mha_viz.training.experiments"
BOUNDS = apart.Bounds(
    seconds=300, megabytes=2_000, what="The training", less="Fewer steps or a smaller d_model take less."
)


def run(settings: Settings, progress: apart.Tell, cancelled: apart.Stop) -> Result:
    """Run an experiment in a child process; ``progress`` is called with the fraction done. Raises SettingError,
    Cancelled, and Failed."""
    check(settings)
    return from_bytes(apart.run(CHILD, asdict(settings), BOUNDS, progress, cancelled))
