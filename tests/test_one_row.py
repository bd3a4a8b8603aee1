"""A quantity, a measure per head and a verb are each added in one place, and found everywhere: tests/one_row.py."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from tests.copies import Copy

OURS = ("mha_viz", "pages", "tests")


@pytest.mark.app
@pytest.mark.skipif(sys.platform == "win32", reason="a copy of a process needs fork")
def test_what_is_added_in_one_place_is_found_everywhere(tmp_path: Path) -> None:
    adding = Copy(lambda: add_and_find(tmp_path), tmp_path / "log")
    assert adding.wait() == 0, adding.log.read_text("utf-8")
    assert adding.log.read_text("utf-8").splitlines()[-1] == "found"


def add_and_find(folder: Path) -> int:
    """In a copy of this process, which has the libraries: it imports the package anew."""
    for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
        del sys.modules[name]
    code: int = importlib.import_module("tests.one_row").main(folder)
    return code
