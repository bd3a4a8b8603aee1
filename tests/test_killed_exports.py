"""An export on the command line that is killed with SIGKILL, or meets a full disk, leaves the old file unchanged."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from mha_viz.cli import main
from tests.copies import Copy
from tests.waiting import until

BEFORE = "what was there"
LONG = "cat sat mat " * 60
pytestmark = [
    pytest.mark.app,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither kill -9 nor a limit to a file"),
]


@pytest.mark.parametrize(("suffix", "old"), [(".csv", BEFORE), (".json", None)])
def test_a_reading_that_is_killed_half_written(tmp_path: Path, suffix: str, old: str | None) -> None:
    folder = tmp_path / "asked"
    folder.mkdir()
    out = folder / f"heads{suffix}"
    if old is not None:
        out.write_text(old)
    export = Copy(lambda: main(["attention", LONG, "--out", str(out)]), tmp_path / "log")
    until(lambda: export.poll() is not None or _begun(folder))
    assert export.kill() == -signal.SIGKILL, "It ended before it was killed."
    assert (out.read_text() if out.exists() else None) == old


def _begun(folder: Path) -> bool:
    """True if something has been written to the disk under a temporary name."""
    return any(part.stat().st_size for part in folder.glob(".*.part"))


def test_a_figure_on_a_full_disk(tmp_path: Path) -> None:
    folder = tmp_path / "asked"
    folder.mkdir()
    outs = [folder / f"grid{suffix}" for suffix in (".svg", ".csv")]
    for out in outs:
        out.write_text(BEFORE)

    def export() -> int:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))  # of each file
        codes = [main(["figure", "grid", LONG[:120], "--out", str(out)]) for out in outs]
        return 0 if codes == [2, 2] else 1

    exporting = Copy(export, tmp_path / "log")
    assert exporting.wait() == 0
    assert exporting.log.read_text().count("cannot be written: file too large") == 2
    assert sorted(folder.iterdir()) == sorted(outs)
    assert [out.read_text() for out in outs] == [BEFORE, BEFORE]


def test_a_figure_that_is_killed_before_it_has_its_name(tmp_path: Path) -> None:
    """All its bytes are on the disk; only the rename remains, which is atomic."""
    folder = tmp_path / "asked"
    folder.mkdir()
    out = folder / "heatmap.json"
    out.write_text(BEFORE)

    def export() -> int:
        Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign,assignment]
        return main(["figure", "heatmap", "The cat sat.", "--head", "L3H1", "--out", str(out)])

    assert Copy(export, tmp_path / "log").wait() == -signal.SIGKILL
    assert _begun(folder)
    assert out.read_text() == BEFORE
