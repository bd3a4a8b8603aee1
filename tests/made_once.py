"""Create folders that several pytest workers share."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest


def make_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return the folder of this name, which ``make`` creates unless another worker of this run has done so.

    The folder is read-only. Workers that come at the same moment all create it, so that none waits for another; the
    first one is used.
    """
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    if not folder.exists():
        make(created := factory.mktemp("made") / name)
        with suppress(OSError):  # another worker was faster
            created.rename(folder)
    return folder
