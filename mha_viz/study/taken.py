"""What was measured of sentences whose heads were switched off, case by case."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mha_viz.analysis.effects import Numbers
from mha_viz.files import arrays_in
from mha_viz.study.sums import write


@dataclass
class Taken:
    """For each case its values [variant], its document and the number of its sentence; how many sentences were read,
    and how many words or sentences were left out. ``unsaved``: why results of shards could not be saved, and how
    many. ``whole`` is False after an addition that was interrupted."""

    cases: list[Numbers] = field(default_factory=list)
    units: list[tuple[str, int]] = field(default_factory=list)
    read: int = 0
    left_out: int = 0
    unsaved: Counter[str] = field(default_factory=Counter)
    whole: bool = True

    def add(self, later: Taken) -> None:
        """Add what was measured of later sentences."""
        before, self.whole = self.whole, False
        self.cases += later.cases
        self.units += later.units
        self.read += later.read
        self.left_out += later.left_out
        self.unsaved.update(later.unsaved)
        self.whole = before

    def save(self, path: Path, key: str) -> None:
        """Write it to one file atomically. ``key`` identifies what it depends on. Raises OSError."""
        facts = {"key": key, "units": self.units, "read": self.read, "left_out": self.left_out}
        write({"cases": np.array(self.cases)}, facts, path)


def read_taken(path: Path, key: str) -> Taken | None:
    """What :meth:`Taken.save` wrote under the same key; None if there is no file, or no complete one."""
    try:
        arrays = arrays_in(path)
        facts = json.loads(str(arrays["facts"]))
        units = [(document, number) for document, number in facts["units"]]
        return Taken([*arrays["cases"]], units, facts["read"], facts["left_out"]) if facts["key"] == key else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
