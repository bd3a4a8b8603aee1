"""An export on the command line that is killed with -9, or meets a full disk, leaves what was there."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import until

ROOT = Path(__file__).resolve().parent.parent
BEFORE = "what was there"
LONG = "cat sat mat " * 60
pytestmark = [
    pytest.mark.app,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither kill -9 nor a limit to a file"),
]

# What runs the command with room for files of 20 kB, once for each file.
FULL = """
import resource, sys
from mha_viz.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
print(*(main(["figure", "grid", sys.argv[1], "--out", out]) for out in sys.argv[2:]))
"""
# What kills it when the file is to have its name.
NAMELESS = """
import os, pathlib, signal, sys
from mha_viz.cli import main
pathlib.Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize(("suffix", "old"), [(".csv", BEFORE), (".json", None)])
def test_a_reading_that_is_killed_half_written(tmp_path: Path, suffix: str, old: str | None) -> None:
    out = tmp_path / f"heads{suffix}"
    if old is not None:
        out.write_text(old)
    command = [sys.executable, "-m", "mha_viz.cli", "attention", LONG, "--out", str(out)]
    with subprocess.Popen(command, cwd=ROOT) as export:
        until(lambda: export.poll() is not None or _begun(tmp_path))
        export.kill()
    assert export.returncode == -signal.SIGKILL, "It ended before it was killed."
    assert (out.read_text() if out.exists() else None) == old


def _begun(folder: Path) -> bool:
    """True when something has reached the disk under a name that is not the asked one."""
    return any(part.stat().st_size for part in folder.glob(".*.part"))


def test_a_figure_on_a_full_disk(tmp_path: Path) -> None:
    outs = [tmp_path / f"grid{suffix}" for suffix in (".svg", ".csv")]
    for out in outs:
        out.write_text(BEFORE)
    command = [sys.executable, "-c", FULL, LONG[:120], *map(str, outs)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["2", "2"]
    assert done.stderr.count("cannot be written: file too large") == 2
    assert sorted(tmp_path.iterdir()) == sorted(outs)
    assert [out.read_text() for out in outs] == [BEFORE, BEFORE]


def test_a_figure_that_is_killed_before_it_has_its_name(tmp_path: Path) -> None:
    """All its bytes are on the disk; the one step that is left, a rename, is whole or has not been."""
    out = tmp_path / "heatmap.json"
    out.write_text(BEFORE)
    command = [sys.executable, "-c", NAMELESS, "figure", "heatmap", "The cat sat.", "--head", "L3H1", "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL
    assert _begun(tmp_path)
    assert out.read_text() == BEFORE
