"""What each head does in most texts: its means over the corpus of a profile, beside which one text is unusual or not.

They are the shares of the tables ``position``, ``delimiter`` and ``entropy`` (:mod:`mha_viz.analysis.metrics`), over
pieces; read without pandas.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.given import given_folders
from mha_viz.analysis.profile import HEADINGS, REMAKE, read_lines
from mha_viz.attention import Head
from mha_viz.errors import CorpusError

Habits = Mapping[str | int, npt.NDArray[np.float64]]  # by an offset or one of SHARES: [head], its mean share
SHARES: Mapping[str, tuple[str, ...]] = {"delimiter": ("cls", "sep", "punctuation"), "entropy": ("normalised",)}


def read_habits(folder: Path) -> Habits:
    """The habits that the profile in a folder states, with the heads in the order L0H0, L0H1, …; empty without its
    tables. Raises CorpusError if it is damaged."""
    habits: defaultdict[str | int, dict[Head, float]] = defaultdict(dict)
    try:
        tables = read_lines(folder, "position", *SHARES)
        if len(tables) <= len(SHARES):
            return {}
        for table, lines in tables.items():
            for line in (dict(zip(HEADINGS[table], cells, strict=True)) for cells in lines):
                head = Head(int(line["layer"]), int(line["head"]))
                if table == "position":
                    habits[int(line["offset"])][head] = float(line["mass"])
                for share in SHARES.get(table, ()):
                    habits[share][head] = float(line[share])
    except (OSError, ValueError) as error:
        raise CorpusError(f"{folder} holds no habits that can be read: {error}.", REMAKE) from error
    return {what: np.array([of_heads[head] for head in sorted(of_heads)]) for what, of_heads in habits.items()}


@cache
def given_habits(model: str) -> Habits:
    """The habits of the heads of a model that comes with the app, from its first shipped profile; none of others."""
    return next((habits for folder in given_folders(model) if (habits := read_habits(folder))), {})
