"""How much memory this process takes to open a model. Linux only."""

from __future__ import annotations

from pathlib import Path

from mha_viz.models.loading import from_folder

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def resident(name: str) -> int:
    """VmRSS, what is in memory now, or VmHWM, the most so far, in bytes."""
    (line,) = (line for line in STATUS.read_text("ascii").splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


def main(folder: Path, dtype: str, small: Path) -> int:
    """Open a small model first, which imports everything, and then the model in ``folder``. Prints the bytes by which
    resident memory grows at most, and those of the weights; returns 0."""
    from_folder(small, dtype=dtype)
    CLEAR.write_text("5", "ascii")  # the most so far begins at what is in memory now
    before = resident("VmRSS")
    model = from_folder(folder, dtype=dtype)
    print(resident("VmHWM") - before, model.bytes)
    return 0
