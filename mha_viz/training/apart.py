"""A training in a process of its own: one thread, for matrices of the lab are too small for two."""

from __future__ import annotations

import json
from dataclasses import asdict

from mha_viz import apart
from mha_viz.training.record import Result, Settings, check, from_bytes

CHILD = "mha_viz.training.experiments"
BOUNDS = apart.Bounds(
    seconds=300, megabytes=2_000, what="The training", less="Fewer steps or a smaller d_model take less."
)


def run(settings: Settings, progress: apart.Tell, cancelled: apart.Stop) -> Result:
    """Run an experiment in a child process; ``progress`` gets the share that is done. Raises SettingError, Cancelled,
    and Failed when the child process ends without a result."""
    check(settings)
    return from_bytes(apart.run(CHILD, json.dumps(asdict(settings)).encode(), BOUNDS, progress, cancelled))
