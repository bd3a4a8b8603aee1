"""A static figure as a list of marks, from which every file format is written.

Positions and lengths are points (1/72 inch), from the upper left corner, y downward. Colours are "#rrggbb". Marks are
drawn in order, later ones on top.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

POINTS_PER_MM = 72 / 25.4
DPI_RANGE = (10, 2400)  # minimum and maximum resolution of a picture

Anchor = Literal["start", "middle", "end"]
FontWeight = Literal[400, 600]  # regular and semi-bold
Pixels = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Text:
    """One line of text. ``y`` is the middle of its height (of the x-height, as ``dominant-baseline: central``).

    ``anchor`` is the part of the text at ``x``; ``turn`` rotates it around (x, y), degrees anticlockwise.
    """

    x: float
    y: float
    text: str
    size: float
    colour: str
    weight: FontWeight = 400
    anchor: Anchor = "start"
    turn: float = 0
    opacity: float = 1


@dataclass(frozen=True, slots=True)
class Curve:
    """A cubic Bézier line: start, two control points, end, each (x, y). A straight line has its control points on it.

    ``dash``: alternating lengths of dashes and gaps; empty for a solid line.
    """

    points: tuple[tuple[float, float], tuple[float, float], tuple[float, float], tuple[float, float]]
    colour: str
    width: float
    opacity: float = 1
    dash: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Polyline:
    """Straight lines from point to point, each (x, y). With a ``fill``, the enclosed area is filled.

    ``dash`` is as for :class:`Curve`.
    """

    points: tuple[tuple[float, float], ...]
    fill: str | None = None
    stroke: str | None = None
    stroke_width: float = 0
    opacity: float = 1
    dash: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Rect:
    """A rectangle, which may be filled, outlined, or both."""

    x: float
    y: float
    width: float
    height: float
    fill: str | None = None
    stroke: str | None = None
    stroke_width: float = 0
    opacity: float = 1


@dataclass(frozen=True, slots=True)
class CellPicture:
    """A picture of equal cells, drawn with sharp edges: ``pixels`` is [row, column, rgb]."""

    x: float
    y: float
    width: float
    height: float
    pixels: Pixels


Mark = Text | Curve | Polyline | Rect | CellPicture


class Note(NamedTuple):
    """A note on a consequence of a figure's size.

    ``caption`` tells readers what is left out, "" if nothing is; ``advice`` tells the author how to avoid that.
    """

    caption: str
    advice: str

    def __str__(self) -> str:
        return f"{self.caption} {self.advice}".strip()


@dataclass(frozen=True)
class Drawing:
    """Marks on a sheet of ``width`` × ``height`` points; ``background`` None is transparent.

    ``caption`` is the text to print below the figure; it is stored in the file together with ``about`` (names and
    values: model, revision, text, …). ``alt`` describes the picture for people who cannot see it. ``notes`` state what
    is left out or too small at this size.
    """

    width: float
    height: float
    marks: tuple[Mark, ...]
    background: str | None = "#ffffff"
    caption: str = ""
    alt: str = ""
    about: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    @property
    def full_caption(self) -> str:
        """The caption, followed by the notes on what is left out."""
        return " ".join(filter(None, (self.caption, *(note.caption for note in self.notes))))

    def scaled(self, factor: float) -> Drawing:
        """Return the same drawing with every length multiplied by ``factor``."""
        marks = tuple(_scale_mark(mark, factor) for mark in self.marks)
        return replace(self, width=self.width * factor, height=self.height * factor, marks=marks)

    def texts(self) -> tuple[str, ...]:
        """Return all texts in the drawing, in order. They determine the fonts that are needed."""
        return tuple(mark.text for mark in self.marks if isinstance(mark, Text))


def shift_marks(marks: tuple[Mark, ...], dx: float, dy: float) -> tuple[Mark, ...]:
    """Shift marks, to place one drawing inside another."""
    return tuple(_shift_mark(mark, dx, dy) for mark in marks)


def _scale_mark(mark: Mark, k: float) -> Mark:
    if isinstance(mark, Text):
        return replace(mark, x=mark.x * k, y=mark.y * k, size=mark.size * k)
    if isinstance(mark, Curve):
        p, q, r, s = ((x * k, y * k) for x, y in mark.points)
        return replace(mark, points=(p, q, r, s), width=mark.width * k, dash=tuple(length * k for length in mark.dash))
    if isinstance(mark, Polyline):
        points = tuple((x * k, y * k) for x, y in mark.points)
        dash = tuple(length * k for length in mark.dash)
        return replace(mark, points=points, stroke_width=mark.stroke_width * k, dash=dash)
    scaled = replace(mark, x=mark.x * k, y=mark.y * k, width=mark.width * k, height=mark.height * k)
    return replace(scaled, stroke_width=scaled.stroke_width * k) if isinstance(scaled, Rect) else scaled


def _shift_mark(mark: Mark, dx: float, dy: float) -> Mark:
    if isinstance(mark, Curve):
        p, q, r, s = ((x + dx, y + dy) for x, y in mark.points)
        return replace(mark, points=(p, q, r, s))
    if isinstance(mark, Polyline):
        return replace(mark, points=tuple((x + dx, y + dy) for x, y in mark.points))
    return replace(mark, x=mark.x + dx, y=mark.y + dy)
