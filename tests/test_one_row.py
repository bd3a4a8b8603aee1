"""A quantity, a measure per head and a verb are each added in one place, and found everywhere: tests/one_row.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.app
@pytest.mark.skipif(sys.platform == "win32", reason="a copy of a process needs fork")
def test_what_is_added_in_one_place_is_found_everywhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.one_row", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "found"
