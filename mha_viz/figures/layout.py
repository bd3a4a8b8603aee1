"""Where things stand in a picture: the geometry of the screen, in its pixels, for files.

A port of the layouts in ``browser/geometry.js``; ``tests/golden/figures.json`` holds the two together.
A file is laid out in the screen's pixels and then scaled to points as a whole (:func:`sheet`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from mha_viz.drawing.marks import POINTS_PER_MM, Drawing, moved
from mha_viz.errors import SettingError

ONE_COLUMN_MM, TWO_COLUMN_MM = 85.0, 178.0  # of a two-column page
LABEL_PIXELS = 13  # the size of ordinary labels on screen
EDGE = 4  # free on every side of a file, pixels: letters stand out of their places a little
TALL = 100_000  # a file may be as high as it needs

LOOKS = ("light", "dark")


@dataclass(frozen=True)
class Size:
    """How a figure is set: ``width_mm`` (85 fits one column, 178 two), ``font_pt`` of its labels, light or dark
    ``look``, ``transparent`` without a background.

    Raises SettingError for sizes that no page has.
    """

    width_mm: float = TWO_COLUMN_MM
    font_pt: float = 8.0
    look: Literal["light", "dark"] = "light"
    transparent: bool = False

    def __post_init__(self) -> None:
        for name, low, high in (("width_mm", 20, 2000), ("font_pt", 3, 40)):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not low <= value <= high:
                raise SettingError(f"{name} is {str(value)[:40]}.", f"Expected a number from {low} to {high}.")
        if self.look not in LOOKS:
            raise SettingError(f"look is {str(self.look)[:40]!r}.", "Expected light or dark.")

    @property
    def scale(self) -> float:
        """Points a pixel of the screen's layout: labels of 13 px come out ``font_pt`` high."""
        return self.font_pt / LABEL_PIXELS

    @property
    def pixels(self) -> float:
        """The width that a drawing may have, in the screen's pixels: the sheet's without its edges."""
        return self.width_mm * POINTS_PER_MM / self.scale - 2 * EDGE


def sheet(drawing: Drawing, size: Size) -> Drawing:
    """A drawing in the screen's pixels as one in points, exactly as wide as asked for.

    Long texts have more columns than fit at the asked size of type: they are scaled down as a whole.
    """
    wide = size.width_mm * POINTS_PER_MM
    whole = replace(
        drawing,
        width=drawing.width + 2 * EDGE,
        height=drawing.height + 2 * EDGE,
        marks=moved(drawing.marks, EDGE, EDGE),
    )
    return replace(whole.scaled(min(size.scale, wide / whole.width)), width=wide)


class GridLayout(NamedTuple):
    """All heads: layers down, heads across. ``step`` is the distance of two cells, ``size`` a cell's side."""

    left: float
    top: float
    step: float
    size: float
    width: float
    height: float


def grid_layout(width: float, layers: int, heads: int, height: float = TALL, largest: float = 80) -> GridLayout:
    """As ``gridLayout``; ``largest`` bounds a cell's step, which a file may raise."""
    left, top = 30, 22
    fit = min((width - left) / heads, max(45, (height - top) / layers))
    step = max(20, min(largest, math.floor(fit)))
    gap = 4 if step >= 30 else 3
    return GridLayout(left, top, step, step - gap, left + heads * step, top + layers * step)


class LinksLayout(NamedTuple):
    """Queries in a left column, keys in a right one, ``row_height`` apart."""

    row_height: float
    left: float
    right: float
    column: float
    width: float
    height: float


def links_layout(width: float, rows: int, cols: int, label: float, height: float = TALL) -> LinksLayout:
    """As ``linksLayout``. ``label``: the width of the widest token."""
    most = max(rows, cols, 1)
    row_height = max(17, min(34, math.floor(height / most)))
    column = max(40, min(label, math.floor(width * 0.34)))
    return LinksLayout(row_height, column + 8, width - column - 8, column, width, row_height * most)


class HeatmapLayout(NamedTuple):
    """Square cells under and beside their labels."""

    cell: float
    left: float
    top: float
    width: float
    height: float


def heatmap_layout(
    width: float, rows: int, cols: int, label: float, height: float = TALL, largest: float = 44
) -> HeatmapLayout:
    """As ``heatmapLayout``. ``label``: the room of the labels on both sides; ``largest`` bounds a cell, which a file
    may raise to come out as wide as it was asked to be."""
    fits = max(2.0, min(largest, (width - label) / max(cols, 1), (height - label) / max(rows, 1)))
    cell = math.floor(fits) if fits >= 4 else math.floor(fits * 2) / 2
    return HeatmapLayout(cell, label, label, label + cell * cols, label + cell * rows)


def bend(left: float, right: float) -> float:
    """How far the control points of a link stand from its ends."""
    return (right - left) * 0.42
