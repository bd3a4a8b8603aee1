"""Look up colours of a printed scale, and the numbers of a figure's cells."""

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
    """Return the colour at a share of the printed scale, whose ``colours`` are [step, rgb]."""
    steps = np.arange(len(colours))
    position = min(max(share, 0.0), 1.0) * (len(colours) - 1)
    return np.array([np.interp(position, steps, channel) for channel in colours.T])


def list_numbers(figure: Figure) -> list[Numbers]:
    """Return the matrices that a figure writes into its CSV, in the order of its pictures."""
    numbers = figure.numbers()
    if isinstance(numbers, DifferenceNumbers):
        return [numbers.difference.astype(float)]
    if isinstance(numbers, Table):
        return _list_matrices(numbers)
    panels = numbers.panels if isinstance(numbers, PanelNumbers) else [numbers]
    return [matrix.astype(float) for shown in panels for matrix in shown.weights]


def _list_matrices(table: Table) -> list[Numbers]:
    """Return the matrices of a table.

    Tables of heads have rows and columns; tables of charts have x and y, with the first row at the bottom.
    """
    is_chart = table.columns == COLUMNS
    matrices: dict[Any, dict[tuple[int, int], float]] = {}
    for *names, row, column, value in table.rows:
        place = (-int(column), int(row)) if is_chart else (int(row), int(column))  # type: ignore[arg-type]
        matrices.setdefault(tuple(names), {})[place] = float(value)  # type: ignore[arg-type]
    return [
        np.array([[cells[r, c] for c in sorted({c for _, c in cells})] for r in sorted({r for r, _ in cells})])
        for cells in matrices.values()
    ]
