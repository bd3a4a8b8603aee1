"""Write a reading, a figure, or the numbers behind a figure to a file.

A reading (``write(attention, "heads.npz")``) can be opened again.
"""

from __future__ import annotations

from typing import Any

from mha_viz.figures.drawing.marks import Drawing
from mha_viz.figures.files import formats as _formats  # noqa: F401  (importing registers the formats)
from mha_viz.figures.files.figure_numbers import (
    DifferenceNumbers,
    FigureNumbers,
    PanelNumbers,
    encode_shown,
    figure_suffixes,
    shown_suffixes,
)
from mha_viz.figures.files.registry import (
    check_place,
    describe,
    drawing_bytes,
    drawing_suffixes,
    suffixes,
    to_bytes,
    write,
    write_bytes,
    write_drawing,
    write_stream,
    writer,
)
from mha_viz.figures.files.saved_readings import load_attention

__all__ = [
    "DifferenceNumbers",
    "FigureNumbers",
    "PanelNumbers",
    "check_place",
    "describe",
    "draw",
    "drawing_bytes",
    "drawing_suffixes",
    "encode_shown",
    "figure_suffixes",
    "load_attention",
    "measure_axes",
    "shown_suffixes",
    "suffixes",
    "to_bytes",
    "write",
    "write_bytes",
    "write_drawing",
    "write_stream",
    "writer",
]


def draw(drawing: Drawing, ax: Any = None) -> Any:
    """Draw on matplotlib Axes (``figures.files.axes.draw``; matplotlib is imported in the first call)."""
    from mha_viz.figures.files.axes import draw as draw_on

    return draw_on(drawing, ax)


def measure_axes(ax: Any) -> tuple[float, float]:
    """Return width and height of matplotlib Axes, in points (``figures.files.axes.measure_axes``)."""
    from mha_viz.figures.files.axes import measure_axes as measure

    return measure(ax)
