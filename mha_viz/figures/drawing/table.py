"""The numbers behind a chart: rows of named columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

Value = str | int | float | None  # None means that there is no number


class Table(NamedTuple):
    """A table whose ``rows`` have a value for each of ``columns``. ``about``: facts about the measurement, by name."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    about: Mapping[str, str]
