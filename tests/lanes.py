"""How much of what can be multiplied is run, and which modules are in the lane for every save.

`make test` guards each behaviour once; `make test-all` (pytest's option ``--all``) multiplies: every hostile text
through every module, every step of every family, every order of every two controls.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")

everything = False  # set by conftest.py before any test module is imported


def some(cases: Sequence[T], *chosen: T) -> list[T]:
    """The ``chosen`` ones of ``cases``; all of them with ``--all``."""
    assert all(case in cases for case in chosen), chosen
    return list(cases if everything else chosen)


def covering(first: Iterable[T], second: Iterable[U]) -> list[tuple[T, U]]:
    """Pairs in which each value of both occurs; with ``--all`` every pair."""
    rows, columns = list(first), list(second)
    if everything:
        return [(row, column) for row in rows for column in columns]
    longer = max(len(rows), len(columns))
    return [(rows[i % len(rows)], columns[i % len(columns)]) for i in range(longer)]
