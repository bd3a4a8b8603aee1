"""Read the numbers of a figure's cells, and the colours of a printed scale."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mha_viz.figures import Figure
from mha_viz.figures.charts.chart import COLUMNS
from mha_viz.figures.drawing.table import Table
from mha_viz.figures.files import DifferenceNumbers, PanelNumbers

Colours = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.float64]


def pick_bar_colour(colours: Colours, share: float) -> Numbers:
    """Return the colour at a share of the printed scale, [place, rgb]."""
    places = np.arange(len(colours))
    at = min(max(share, 0.0), 1.0) * (len(colours) - 1)
    return np.array([np.interp(at, places, channel) for channel in colours.T])


def list_numbers(figure: Figure) -> list[Numbers]:
    """Return the matrices that a figure writes into its CSV, in the order of its pictures."""
    numbers = figure.numbers()
    if isinstance(numbers, DifferenceNumbers):
        return [numbers.difference.astype(float)]
    if isinstance(numbers, Table):
        return _list_matrices(numbers)
    every = numbers.panels if isinstance(numbers, PanelNumbers) else [numbers]
    return [matrix.astype(float) for shown in every for matrix in shown.weights]


def _list_matrices(table: Table) -> list[Numbers]:
    """Return the matrices of a table.

    The table of a head has rows and columns; that of a chart has x and y, with the first row at the bottom.
    """
    is_chart = table.columns == COLUMNS
    found: dict[Any, dict[tuple[int, int], float]] = {}
    for *which, row, column, value in table.rows:
        place = (-int(column), int(row)) if is_chart else (int(row), int(column))  # type: ignore[arg-type]
        found.setdefault(tuple(which), {})[place] = float(value)  # type: ignore[arg-type]
    return [
        np.array([[cells[r, c] for c in sorted({c for _, c in cells})] for r in sorted({r for r, _ in cells})])
        for cells in found.values()
    ]
