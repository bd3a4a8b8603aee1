"""The geometry of figures, laid out in pixels of the screen.

It is a port of the layouts in ``browser/geometry.js``; ``tests/golden/figures.json`` checks that the two agree. A file
is laid out in pixels of the screen and then scaled to points as a whole (:func:`make_sheet`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from mha_viz.errors import SettingError, shorten_value
from mha_viz.figures.drawing import fonts
from mha_viz.figures.drawing.marks import POINTS_PER_MM, Drawing, Mark, Note, Text, shift_marks

NARROW_MM, COLUMN_MM, TWO_COLUMNS_MM = 77.0, 85.0, 178.0  # a column of ACL, of most other venues, two columns
PAGE_MM = 220.0  # A4 with margins of 25 mm, less 27 mm for a caption
SMALLEST_PT = 5.0  # the smallest letters that are readable in print
LABEL_PIXELS = 13  # the size of ordinary labels on screen
EDGE = 4  # margin on every side of a file, pixels: letters extend slightly beyond their boxes
FOOTER_LETTERS, FOOTER_LINE, MOST_FOOTER_LINES = (
    11,
    16,
    2,
)  # of a sentence below a drawing: pixels of letters and of a line; maximum number of lines
UNLIMITED = 100_000  # no limit: a file may be as high as necessary

LOOKS: tuple[Literal["light", "dark", "grey"], ...] = ("light", "dark", "grey")
LIMITS = {"width_mm": (20, 2000), "font_pt": (3, 40), "max_height_mm": (20, 10_000)}  # minimum and maximum value


@dataclass(frozen=True)
class Size:
    """The format of a figure.

    ``width_mm``: 77 or 85 fits one column, 178 two; by default as :func:`draw_fitted` says. ``font_pt``: the size of
    its
    labels. ``look``: light, dark, or grey for print without colour. ``transparent``: no background. ``max_height_mm``:
    220 leaves room for a caption on A4.

    Crowded labels are up to a quarter smaller. Links that would be higher than ``max_height_mm`` are set in columns, or
    show a window around the pinned token. A heatmap without room for the label of every token shows such a window, too;
    if no token is pinned, it shows every cell and leaves labels out.

    Raises SettingError for sizes that no page has.
    """

    width_mm: float | None = None
    font_pt: float = 8.0
    look: Literal["light", "dark", "grey"] = "light"
    transparent: bool = False
    max_height_mm: float = PAGE_MM

    def __post_init__(self) -> None:
        for name, (low, high) in LIMITS.items():
            value = getattr(self, name)
            if name == "width_mm" and value is None:
                continue
            if not isinstance(value, int | float) or not low <= value <= high:
                stated = repr(shorten_value(value)) if isinstance(value, str) else shorten_value(value)
                raise SettingError(f"{name} is {stated}.", f"Expected a number from {low} to {high}.")
        if self.look not in LOOKS:
            raise SettingError(f"look is {shorten_value(self.look)!r}.", "Expected light, dark or grey.")

    @property
    def scale(self) -> float:
        """Points per pixel of the screen's layout: labels of 13 px become ``font_pt`` high."""
        return self.font_pt / LABEL_PIXELS

    @property
    def points(self) -> float:
        """The width of the sheet in points."""
        return (TWO_COLUMNS_MM if self.width_mm is None else self.width_mm) * POINTS_PER_MM

    @property
    def pixels(self) -> float:
        """The width available to a drawing, in pixels of the screen: the width of the sheet without its margins."""
        return self.points / self.scale - 2 * EDGE

    @property
    def tallest(self) -> float:
        """The height available to a drawing, in the same pixels."""
        return self.max_height_mm * POINTS_PER_MM / self.scale - 2 * EDGE


def draw_fitted(make: Callable[[Size], Drawing], size: Size) -> Drawing:
    """Draw a single map at the width that ``size`` states, or else one column wide.

    If one column leaves something out that two columns show, the map is two columns wide, and a note says so.
    """
    if size.width_mm is not None:
        return make(size)
    narrow = make(replace(size, width_mm=NARROW_MM))
    wide = narrow if not narrow.notes else make(replace(size, width_mm=TWO_COLUMNS_MM))
    if narrow.notes == wide.notes:
        return narrow
    widths = f"The figure is {TWO_COLUMNS_MM:g} mm wide, because {NARROW_MM:g} mm are too narrow for this text. "
    return replace(wide, notes=(Note("", f"{widths}Give width_mm to choose."), *wide.notes))


def wrap_text(text: str, width: float, size: float, most: int, weight: int = 400) -> list[str]:
    """Break a text at spaces into at most ``most`` lines; the last line is cut if it is too long."""
    lines: list[str] = []
    for word in text.split():
        if lines and fonts.width(f"{lines[-1]} {word}", size, weight) <= width:
            lines[-1] += f" {word}"
        elif len(lines) < most:
            lines.append(word)
        else:
            lines[-1] += f" {word}"
    return [fonts.cut_text(line, size, width, weight) for line in lines]


def draw_footer(words: str, width: float, colour: str) -> tuple[tuple[Mark, ...], float]:
    """Return the marks of a short centred sentence below a drawing of this width, and its height.

    Without words there are no marks.
    """
    lines = wrap_text(words, width, FOOTER_LETTERS, MOST_FOOTER_LINES)
    marks = [
        Text(width / 2, FOOTER_LINE * (i + 0.5), line, FOOTER_LETTERS, colour, anchor="middle")
        for i, line in enumerate(lines)
    ]
    return tuple(marks), FOOTER_LINE * len(lines)


def make_sheet(drawing: Drawing, size: Size, footer: tuple[tuple[Mark, ...], float] = ((), 0.0)) -> Drawing:
    """Convert a drawing from the screen's pixels to points, exactly as wide as requested.

    ``footer`` is that of :func:`draw_footer`. Long texts have more columns than fit at the requested size of type: they
    are scaled down as a whole. Notes say if the drawing is too high for its page or its letters are too small to read.
    """
    complete = replace(
        drawing,
        width=drawing.width + 2 * EDGE,
        height=drawing.height + footer[1] + 2 * EDGE,
        marks=(*shift_marks(drawing.marks, EDGE, EDGE), *shift_marks(footer[0], EDGE, EDGE + drawing.height)),
    )
    scaled = replace(complete.scaled(min(size.scale, size.points / complete.width)), width=size.points)
    return replace(scaled, notes=(*scaled.notes, *_list_problems(scaled, size)))


def _list_problems(drawn: Drawing, size: Size) -> list[Note]:
    """Return notes on the problems of a drawing, in points, on paper."""
    notes = []
    high = drawn.height / POINTS_PER_MM
    if high > size.max_height_mm + 0.5:
        advice = f"The figure is {high:.0f} mm high; {size.max_height_mm:g} mm fit. "
        notes.append(Note("", f"{advice}Give fewer heads or more columns, or raise max_height_mm."))
    smallest = min((mark.size for mark in drawn.marks if isinstance(mark, Text)), default=SMALLEST_PT)
    if round(smallest, 1) < SMALLEST_PT:
        advice = f"The smallest letters have {smallest:.1f} pt; less than {SMALLEST_PT:g} pt is hard to read in print."
        notes.append(Note("", f"{advice} Raise font_pt or width_mm."))
    return notes


class GridLayout(NamedTuple):
    """The layout of all heads: layers down, heads across.

    ``step`` is the distance between neighbouring cells, ``size`` a cell's side.
    """

    left: float
    top: float
    step: float
    size: float
    width: float
    height: float


def grid_layout(width: float, layers: int, heads: int, height: float = UNLIMITED, largest: float = 80) -> GridLayout:
    """Lay out a grid as ``computeGridLayout`` does: cells with a step of 20 to ``largest`` pixels."""
    left, top = 30, 22
    fit = min((width - left) / heads, max(45, (height - top) / layers))
    step = max(20, min(largest, math.floor(fit)))
    gap = 4 if step >= 30 else 3
    return GridLayout(left, top, step, step - gap, left + heads * step, top + layers * step)


class LinksLayout(NamedTuple):
    """Queries in a left column, keys in a right one, ``row_height`` apart; lines lead from ``left`` to ``right``.

    Behind the keys, whose column is ``column`` wide, there is room for ``written`` numbers, ``wide`` each, of letters
    of size ``digits``. Where numbers stand behind the queries, lines start after them.
    """

    row_height: float
    left: float
    right: float
    column: float
    width: float
    height: float
    digits: float
    wide: float
    written: int


class Spacing(NamedTuple):
    """The spacing of the tokens of a link diagram, in pixels.

    Rows are ``least`` to ``most`` apart. Letters are as high as a row minus its ``leading``, but at most ``letters``.
    The room for tokens is measured with letters of size ``measured``.
    """

    least: int
    most: int
    leading: int
    letters: int
    measured: int


ON_SCREEN = Spacing(17, 34, 6, 16, 15)
ON_PAPER = Spacing(15, 34, 2, LABEL_PIXELS, LABEL_PIXELS)  # the requested size, however crowded


def links_layout(
    width: float,
    rows: int,
    cols: int,
    label: float,
    height: float = UNLIMITED,
    spacing: Spacing = ON_SCREEN,
    numbers: tuple[float, int] = (3.2, 1),
) -> LinksLayout:
    """Lay out links as ``computeLinksLayout`` does.

    ``label``: the width of the widest token; ``numbers``: the width of a number, in heights of its letters, and how
    many may stand behind a token.
    """
    most = max(rows, cols, 1)
    row_height = max(spacing.least, min(spacing.most, math.floor(height / most)))
    digits = max(9, min(12, row_height - 6))
    wide, written = numbers[0] * digits, numbers[1]
    behind = math.ceil(wide * written) + 6
    column = max(40, min(label, math.floor(width * 0.38) - behind))
    return LinksLayout(
        row_height, column + 8, width - behind - column - 8, column, width, row_height * most, digits, wide, written
    )


class HeatmapLayout(NamedTuple):
    """Square cells with labels above and to the left."""

    cell: float
    left: float
    top: float
    width: float
    height: float


def heatmap_layout(
    width: float,
    rows: int,
    cols: int,
    label: float,
    height: float = UNLIMITED,
    largest: float = 44,
    above: float | None = None,
) -> HeatmapLayout:
    """Lay out a heatmap as ``computeHeatmapLayout`` does.

    ``label``: the room for the labels on both axes; ``above``: the room for the labels of columns if it differs;
    ``largest``: the greatest size of a cell, which may be raised so that a file becomes as wide as requested.
    """
    top = label if above is None else above
    fit = max(2.0, min(largest, (width - label) / max(cols, 1), (height - top) / max(rows, 1)))
    cell = math.floor(fit) if fit >= 4 else math.floor(fit * 2) / 2
    return HeatmapLayout(cell, label, top, label + cell * cols, top + cell * rows)


def control_distance(left: float, right: float) -> float:
    """Return the distance of a link's control points from its ends."""
    return (right - left) * 0.42
