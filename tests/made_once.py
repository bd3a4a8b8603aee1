"""Folders that several workers need, made by one of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest


def make_once(places: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return the folder of this name, which ``make`` fills unless another worker of this run has done so.

    The folder is read only. Workers that come at the same moment both make it, so that none waits for another, and the
    first one's is used.
    """
    of_this_process = places.getbasetemp()
    folder = (of_this_process.parent if "PYTEST_XDIST_WORKER" in os.environ else of_this_process) / name
    if not folder.exists():
        make(mine := places.mktemp("made") / name)
        with suppress(OSError):  # the other one is there
            mine.rename(folder)
    return folder
