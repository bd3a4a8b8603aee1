"""What each head does in most texts: its means over the corpus of a profile, beside which one text is unusual or not.

They are the shares of the tables ``position``, ``delimiter`` and ``entropy`` (:mod:`mha_viz.analysis.metrics`), over
pieces; read without pandas.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from mha_viz.analysis.given import given_folders
from mha_viz.analysis.profile import HEADINGS, REMAKE, lines_of
from mha_viz.attention import Head
from mha_viz.errors import CorpusError

Habits = Mapping[tuple[str | int, Head], float]  # the mean share, by an offset or one of SHARES, and head
SHARES: Mapping[str, tuple[str, ...]] = {"delimiter": ("cls", "sep", "punctuation"), "entropy": ("normalised",)}


def read_habits(folder: Path) -> Habits:
    """The habits that the profile in a folder states; empty without its tables. Raises CorpusError if it is damaged."""
    habits: dict[tuple[str | int, Head], float] = {}
    try:
        for line in _table(folder, "position"):
            habits[int(line["offset"]), _head(line)] = float(line["mass"])
        for table, shares in SHARES.items():
            for line in _table(folder, table):
                habits.update({(share, _head(line)): float(line[share]) for share in shares})
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise CorpusError(f"{folder} holds no habits that can be read: {error}.", REMAKE) from error
    return habits


@cache
def given_habits(model: str) -> Habits:
    """The habits of the heads of a model that comes with the app, from its first shipped profile; none of others."""
    return next((habits for folder in given_folders(model) if (habits := read_habits(folder))), {})


def _table(folder: Path, table: str) -> list[dict[str, str]]:
    return [dict(zip(HEADINGS[table], line, strict=True)) for line in lines_of(folder, table)]


def _head(line: Mapping[str, str]) -> Head:
    return Head(int(line["layer"]), int(line["head"]))
