"""A training in a process of its own, so that it takes neither the interpreter nor the threads of those who read.

The child uses one thread (matrices of the lab are too small for two) and steps back behind other work; the process of
the app keeps its own settings of torch, and does not even import it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import IO

from mha_viz.errors import Cancelled, MhaVizError
from mha_viz.training.record import Result, Settings, check, from_bytes

PATIENCE = 0.2  # seconds between two looks at whether anybody still waits
LONGEST = 300  # seconds that a run may take on a busy machine
PACKAGE = Path(__file__).resolve().parent.parent


class RunFailed(MhaVizError):
    """A training ended without a result."""


def run(settings: Settings, progress: Callable[[float], None], cancelled: Callable[[], bool]) -> Result:
    """Run an experiment in a child process; ``progress`` gets the share that is done. Raises SettingError, Cancelled,
    RunFailed."""
    check(settings)
    with _started() as child:
        watcher = threading.Thread(target=_watch, args=(child, cancelled), daemon=True)
        watcher.start()
        try:
            data = _talk(child, settings, progress)
        finally:
            child.kill()
    if data is None and cancelled():
        raise Cancelled("The training was stopped.", "Run it again.")
    if data is None:
        raise RunFailed("The training ended without a result.", "Run it again; fewer steps take less time.")
    return from_bytes(data)


def _started() -> subprocess.Popen[bytes]:
    paths = [str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        [sys.executable, "-m", "mha_viz.training.experiments", "--apart"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)},
    )


def _watch(child: subprocess.Popen[bytes], cancelled: Callable[[], bool]) -> None:
    """End the child when nobody waits any more, or after :data:`LONGEST` seconds."""
    for _ in range(int(LONGEST / PATIENCE)):
        try:
            child.wait(PATIENCE)
            return
        except subprocess.TimeoutExpired:
            if cancelled():
                break
    child.kill()


def _talk(child: subprocess.Popen[bytes], settings: Settings, progress: Callable[[float], None]) -> bytes | None:
    """Hand over the settings, follow the progress, take the result; None when the child ended before."""
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        with child.stdin as said:
            said.write(json.dumps(asdict(settings)).encode())
        return _heard(child.stdout, progress)
    except (OSError, ValueError):
        return None


def _heard(said: IO[bytes], progress: Callable[[float], None]) -> bytes | None:
    for line in said:
        told = json.loads(line)
        if isinstance(told, int):
            data = said.read(told)
            return data if len(data) == told else None
        progress(told[0] / told[1])
    return None
