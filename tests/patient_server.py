"""``python -m tests.patient_server``: run a server whose behaviour does not depend on the speed of the machine.

It waits long for a Hub that answers late or holds a file back, keeps the training of a visitor whose tab polls late,
and stops long work for a test that wants to meet it under way: see AppServer.held.
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

_of_thread = threading.local()  # ``child``: the process that works for it
_started, _tell = children._start_child, Job.report_progress


@contextmanager
def _started_and_noted(module: str, bounds: children.Bounds) -> Iterator[subprocess.Popen[bytes]]:
    with _started(module, bounds) as child:
        _of_thread.child = child
        try:
            yield child
        finally:
            _of_thread.child = None


def _tell_and_wait(self: Job, fraction: float, size: int = 0) -> None:
    """Report the progress, and go on when nothing is held any more, or the job is stopped."""
    _tell(self, fraction, size)
    file, child = Path(os.environ[HOME_VARIABLE], HELD), getattr(_of_thread, "child", None)
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
    starting.SPARE_SECONDS = math.inf  # no test waits for the next process with models
    jobs.KINDS = {**jobs.KINDS, "training": jobs.KINDS["training"]._replace(timeout_s=600.0)}
    children._start_child = _started_and_noted
    Job.report_progress = _tell_and_wait  # type: ignore[method-assign]
    main(prog_name="tests.patient_server")
