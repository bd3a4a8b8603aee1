"""A quantity, a measure per head and a verb are each added in one place, and found everywhere: tests/one_row.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.app
def test_what_is_added_in_one_place_is_found_everywhere(tmp_path: Path) -> None:
    added = tmp_path / "added"  # Python imports this module at the start of a process: of those with models, too
    added.mkdir()
    (added / "sitecustomize.py").write_text("from tests import one_row\n\none_row.add()\n", "utf-8")
    find = "import pathlib, sys; from tests import one_row; one_row.find(pathlib.Path(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", find, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (added, ROOT)))},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
