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
from mha_viz.analysis.profile import HEADINGS, REMAKE, lines_of
from mha_viz.attention import Head
from mha_viz.errors import CorpusError

Habits = Mapping[str | int, npt.NDArray[np.float64]]  # by an offset or one of SHARES: [head], its mean share
SHARES: Mapping[str, tuple[str, ...]] = {"delimiter": ("cls", "sep", "punctuation"), "entropy": ("normalised",)}


def read_habits(folder: Path) -> Habits:
    """The habits that the profile in a folder states, with the heads in the order L0H0, L0H1, …; empty without its
    tables. Raises CorpusError if it is damaged."""
    habits: defaultdict[str | int, dict[Head, float]] = defaultdict(dict)
    try:
        for line in _table(folder, "position"):
            habits[int(line["offset"])][_head(line)] = float(line["mass"])
        for table, shares in SHARES.items():
            for line in _table(folder, table):
                for share in shares:
                    habits[share][_head(line)] = float(line[share])
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise CorpusError(f"{folder} holds no habits that can be read: {error}.", REMAKE) from error
    return {what: np.array([of_heads[head] for head in sorted(of_heads)]) for what, of_heads in habits.items()}


@cache
def given_habits(model: str) -> Habits:
    """The habits of the heads of a model that comes with the app, from its first shipped profile; none of others."""
    return next((habits for folder in given_folders(model) if (habits := read_habits(folder))), {})


def _table(folder: Path, table: str) -> list[dict[str, str]]:
    return [dict(zip(HEADINGS[table], line, strict=True)) for line in lines_of(folder, table)]


def _head(line: Mapping[str, str]) -> Head:
    return Head(int(line["layer"]), int(line["head"]))
