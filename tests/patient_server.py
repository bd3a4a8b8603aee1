"""``python -m tests.patient_server``: run a server whose behaviour does not depend on the speed of the machine.

It waits long for a slow Hub, keeps the training of a visitor whose tab polls late, and can pause long work for tests
of unfinished work: see AppServer.held.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mha_viz.app.service import jobs
from mha_viz.app.service.jobs import Job
from mha_viz.app.service.reader import starting
from mha_viz.app.serving.start import main
from mha_viz.files.assets import HOME_VARIABLE
from mha_viz.models.getting import hub
from mha_viz.process import children
from tests.app_server import HELD

_thread_state = threading.local()  # ``child``: the child process of the thread
_start_child, _report_progress = children._start_child, Job.report_progress


@contextmanager
def _start_and_record_child(module: str, bounds: children.Bounds) -> Iterator[subprocess.Popen[bytes]]:
    with _start_child(module, bounds) as child:
        _thread_state.child = child
        try:
            yield child
        finally:
            _thread_state.child = None


def _report_and_pause(self: Job, fraction: float, size: int = 0) -> None:
    """Report the progress, and pause until work is no longer held or the job is stopped."""
    _report_progress(self, fraction, size)
    file, child = Path(os.environ[HOME_VARIABLE], HELD), getattr(_thread_state, "child", None)
    if not file.exists():
        return
    if child:
        child.send_signal(signal.SIGSTOP)
    while file.exists() and not self.is_stopped():
        time.sleep(0.05)
    if child:
        child.send_signal(signal.SIGCONT)


if __name__ == "__main__":
    hub.METADATA_SECONDS = hub.STALL_SECONDS = hub.SPARE_SECONDS = 600.0
    starting.SPARE_SECONDS = math.inf  # tests never wait for a spare process
    jobs.KINDS = {**jobs.KINDS, "training": jobs.KINDS["training"]._replace(timeout_s=600.0)}
    children._start_child = _start_and_record_child
    Job.report_progress = _report_and_pause  # type: ignore[method-assign]
    main(prog_name="tests.patient_server")
