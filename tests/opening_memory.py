"""Measure how much memory opening a model takes.

``python -m tests.opening_memory FOLDER DTYPE SMALL`` prints the maximum growth of its resident memory in bytes, and the
bytes of the weights. Linux only.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mha_viz.models.reading.loading import from_folder

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def resident(name: str) -> int:
    """Return the current ("VmRSS") or the maximum ("VmHWM") resident memory in bytes."""
    (line,) = (line for line in STATUS.read_text("ascii").splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


def main(folder: Path, dtype: str, small: Path) -> None:
    """Open a small model first, which imports everything, and then the model in ``folder``."""
    from_folder(small, dtype=dtype)
    CLEAR.write_text("5", "ascii")  # reset the maximum to the current value
    start = resident("VmRSS")
    model = from_folder(folder, dtype=dtype)
    print(resident("VmHWM") - start, model.bytes)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
