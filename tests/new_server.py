"""The server starts again: it has no jobs and no results in memory."""

from __future__ import annotations

from mha_viz.ui import jobs, studies
from mha_viz.ui.lab import trainings


def new_server(*kept: str) -> None:
    """Forget everything but the jobs of these kinds, for what takes long to compute."""
    for kind in jobs.KINDS.keys() - set(kept):
        jobs.QUEUES[kind].clear()
    studies.stored.clear()
    trainings.paces.clear()
