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

NARROW_MM, COLUMN_MM, TWO_COLUMNS_MM = 77.0, 85.0, 178.0  # one column at ACL and at most other venues; two columns
PAGE_MM = 220.0  # A4 with margins of 25 mm, less 27 mm for a caption
MIN_PT = 5.0  # the smallest font size that is readable in print
LABEL_PIXELS = 13  # the size of ordinary labels on screen
EDGE = 4  # margin on every side of a file, pixels: letters extend slightly beyond their boxes
FOOTER_FONT_SIZE, FOOTER_LINE = 11, 16  # font size and line height of a sentence below a drawing, pixels
MAX_FOOTER_LINES = 2
UNLIMITED = 100_000  # no limit: a file may be as high as necessary

LOOKS: tuple[Literal["light", "dark", "grey"], ...] = ("light", "dark", "grey")
LIMITS = {"width_mm": (20, 2000), "font_pt": (3, 40), "max_height_mm": (20, 10_000)}  # minimum and maximum value


@dataclass(frozen=True)
class Size:
    """The format of a figure.

    ``width_mm``: 77 or 85 fits one column, 178 two; for the default, see :func:`draw_fitted`. ``font_pt``: the size of
    labels. ``look``: light, dark, or grey for print without colour. ``transparent``: no background. ``max_height_mm``:
    220 leaves room for a caption on A4.

    Crowded labels are up to a quarter smaller. Links that would be higher than ``max_height_mm`` are set in columns, or
    show a window around the pinned token. A heatmap without room for the label of every token shows such a window, too;
    if no token is pinned, it shows every cell and leaves labels out.

    Raises SettingError for values out of range.
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
                stated_value = repr(shorten_value(value)) if isinstance(value, str) else shorten_value(value)
                raise SettingError(f"{name} is {stated_value}.", f"Expected a number from {low} to {high}.")
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
    def max_height(self) -> float:
        """The height available to a drawing, in pixels of the screen."""
        return self.max_height_mm * POINTS_PER_MM / self.scale - 2 * EDGE


def draw_fitted(draw: Callable[[Size], Drawing], size: Size) -> Drawing:
    """Draw a single map at the width that ``size`` states, or else one column wide.

    If one column leaves something out that two columns show, the map is two columns wide, and a note says so.
    """
    if size.width_mm is not None:
        return draw(size)
    narrow_drawing = draw(replace(size, width_mm=NARROW_MM))
    wide_drawing = narrow_drawing if not narrow_drawing.notes else draw(replace(size, width_mm=TWO_COLUMNS_MM))
    if narrow_drawing.notes == wide_drawing.notes:
        return narrow_drawing
    widths = f"The figure is {TWO_COLUMNS_MM:g} mm wide, because {NARROW_MM:g} mm are too narrow for this text. "
    return replace(wide_drawing, notes=(Note("", f"{widths}Give width_mm to choose."), *wide_drawing.notes))


def wrap_text(text: str, width: float, size: float, max_lines: int, weight: int = 400) -> list[str]:
    """Break a text at spaces into at most ``max_lines`` lines; the last line is cut if it is too long."""
    lines: list[str] = []
    for word in text.split():
        if lines and fonts.width(f"{lines[-1]} {word}", size, weight) <= width:
            lines[-1] += f" {word}"
        elif len(lines) < max_lines:
            lines.append(word)
        else:
            lines[-1] += f" {word}"
    return [fonts.cut_text(line, size, width, weight) for line in lines]


def draw_footer(sentence: str, width: float, colour: str) -> tuple[tuple[Mark, ...], float]:
    """Return the marks of a short centred sentence below a drawing of this width, and its height.

    An empty sentence has no marks.
    """
    lines = wrap_text(sentence, width, FOOTER_FONT_SIZE, MAX_FOOTER_LINES)
    marks = [
        Text(width / 2, FOOTER_LINE * (i + 0.5), line, FOOTER_FONT_SIZE, colour, anchor="middle")
        for i, line in enumerate(lines)
    ]
    return tuple(marks), FOOTER_LINE * len(lines)


def make_sheet(drawing: Drawing, size: Size, footer: tuple[tuple[Mark, ...], float] = ((), 0.0)) -> Drawing:
    """Convert a drawing from the screen's pixels to points, exactly as wide as requested.

    ``footer`` comes from :func:`draw_footer`. A drawing with more columns than fit at the requested font size is scaled
    down as a whole. Notes say if the drawing is too high for its page or its letters are too small to read.
    """
    sheet = replace(
        drawing,
        width=drawing.width + 2 * EDGE,
        height=drawing.height + footer[1] + 2 * EDGE,
        marks=(*shift_marks(drawing.marks, EDGE, EDGE), *shift_marks(footer[0], EDGE, EDGE + drawing.height)),
    )
    scaled_sheet = replace(sheet.scaled(min(size.scale, size.points / sheet.width)), width=size.points)
    return replace(scaled_sheet, notes=(*scaled_sheet.notes, *_list_problems(scaled_sheet, size)))


def _list_problems(drawing: Drawing, size: Size) -> list[Note]:
    """Return notes on the problems that a drawing, in points, has on paper."""
    notes = []
    height_mm = drawing.height / POINTS_PER_MM
    if height_mm > size.max_height_mm + 0.5:
        advice = f"The figure is {height_mm:.0f} mm high; at most {size.max_height_mm:g} mm fit. "
        notes.append(Note("", f"{advice}Give fewer heads or more columns, or raise max_height_mm."))
    min_font_size = min((mark.size for mark in drawing.marks if isinstance(mark, Text)), default=MIN_PT)
    if round(min_font_size, 1) < MIN_PT:
        advice = f"The smallest letters are {min_font_size:.1f} pt; less than {MIN_PT:g} pt is hard to read in print."
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


def grid_layout(width: float, layers: int, heads: int, height: float = UNLIMITED, max_step: float = 80) -> GridLayout:
    """Lay out a grid like ``computeGridLayout`` in the browser: cells with a step of 20 to ``max_step`` pixels."""
    left, top = 30, 22
    fitting_step = min((width - left) / heads, max(45, (height - top) / layers))
    step = max(20, min(max_step, math.floor(fitting_step)))
    gap = 4 if step >= 30 else 3
    return GridLayout(left, top, step, step - gap, left + heads * step, top + layers * step)


class LinksLayout(NamedTuple):
    """Queries in a left column, keys in a right one, ``row_height`` apart; lines lead from ``left`` to ``right``.

    Keys have a column of ``column_width``, and behind each there is room for ``numbers_per_token`` numbers of
    ``number_width`` and font size ``number_size``. Where numbers stand behind the queries, lines start after them.
    """

    row_height: float
    left: float
    right: float
    column_width: float
    width: float
    height: float
    number_size: float
    number_width: float
    numbers_per_token: int


class Spacing(NamedTuple):
    """The spacing of the tokens of a link diagram, in pixels.

    Rows are ``min_row`` to ``max_row`` apart. The font size is a row minus its ``leading``, but at most
    ``max_font_size``. The room for tokens is measured at ``measured_font_size``.
    """

    min_row: int
    max_row: int
    leading: int
    max_font_size: int
    measured_font_size: int


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
    """Lay out links like ``computeLinksLayout`` in the browser.

    ``label``: the width of the widest token; ``numbers``: the width of a number, in units of its font size, and the
    maximum count of numbers behind a token.
    """
    row_count = max(rows, cols, 1)
    row_height = max(spacing.min_row, min(spacing.max_row, math.floor(height / row_count)))
    number_size = max(9, min(12, row_height - 6))
    number_width, numbers_per_token = numbers[0] * number_size, numbers[1]
    number_room = math.ceil(number_width * numbers_per_token) + 6
    column_width = max(40, min(label, math.floor(width * 0.38) - number_room))
    return LinksLayout(
        row_height,
        column_width + 8,
        width - number_room - column_width - 8,
        column_width,
        width,
        row_height * row_count,
        number_size,
        number_width,
        numbers_per_token,
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
    max_cell: float = 44,
    column_label: float | None = None,
) -> HeatmapLayout:
    """Lay out a heatmap like ``computeHeatmapLayout`` in the browser.

    ``label``: the room for the labels on both axes; ``column_label``: the room for the labels of columns if it differs;
    ``max_cell``: the maximum size of a cell, which may be raised so that a file becomes as wide as requested.
    """
    top = label if column_label is None else column_label
    fitting_cell = max(2.0, min(max_cell, (width - label) / max(cols, 1), (height - top) / max(rows, 1)))
    cell = math.floor(fitting_cell) if fitting_cell >= 4 else math.floor(fitting_cell * 2) / 2
    return HeatmapLayout(cell, label, top, label + cell * cols, top + cell * rows)


def control_distance(left: float, right: float) -> float:
    """Return the distance of a link's control points from its ends."""
    return (right - left) * 0.42
