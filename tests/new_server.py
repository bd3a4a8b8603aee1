"""Imitate a restart of the server: forget all jobs and results."""

from __future__ import annotations

from mha_viz.app.lab import trainings
from mha_viz.app.service import jobs, studies


def restart_server(*kept: str) -> None:
    """Forget everything except the jobs of the kinds ``kept``, whose results take long to compute.

    Running jobs are stopped, so that no process continues during later tests.
    """
    for kind in jobs.KINDS.keys() - set(kept):
        for entry in [entry for queue in jobs.QUEUES[kind]._results for entry in queue._entries]:
            entry.job._last_polls.clear()
            assert entry.job.is_stopped()
        jobs.QUEUES[kind].clear()
    studies.get_server_state.clear()
    trainings.load_paces.clear()
