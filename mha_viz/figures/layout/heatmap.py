"""The matrix of one head as a static figure: rows are queries, columns are keys, the first row is at the top.

The layout is computed in pixels of the screen, as in ``browser/heatmap.js``, and scaled to points at the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.attention import Attention, Head, Weights
from mha_viz.figures.drawing import fonts
from mha_viz.figures.drawing.marks import CellPicture, Drawing, FontWeight, Mark, Note, Pixels, Rect, Text, shift_marks
from mha_viz.figures.drawing.theme import THEMES, Theme, palette
from mha_viz.figures.layout import UNLIMITED, HeatmapLayout, Size, caption, draw_footer, heatmap_layout, make_sheet
from mha_viz.figures.layout.excerpt import cut_excerpt_around
from mha_viz.figures.layout.labels import draw_label
from mha_viz.figures.layout.view import (
    Axes,
    Focus,
    View,
    build_block,
    colour_cells,
    describe_label_step,
    describe_range,
    find_focus,
    list_units,
    note_faint_cells,
    scale_colours,
)

LABEL = 96  # maximum width of labels, pixels
LETTERS = 40  # measure only this many characters of a token
LARGEST = 84  # the largest cell of a single matrix, pixels: otherwise 25 cells of five tokens would fill a page
PIN_ADVICE = " With a pin, the part around it is drawn with all labels."
LABELLED = 9  # from this cell size on, every row and column has its label
HAIRLINES = 10  # from this cell size on, there are lines between cells
FRAMED = 6  # from this cell size on, pinned cells have a frame; it would hide smaller cells
FRAME, HALO, TICK = 1.5, 3.5, 4  # pixels: a frame, the paper around it, and a tick next to small cells
MARKED = 4  # from this cell size on, cells below 0 are marked with a minus in the grey theme
FAINT = 0.1  # share of the largest difference: smaller differences get no minus, because their colour is hardly visible
DEEP = 0.52  # share of the largest difference from which a cell is nearer to the ink than to the paper
GAP = 11  # gap between a colour scale and its words, pixels
SHADES = slice(None, None, 5)  # the shades on a printed colour scale, of 256: 0, 5, …, 255
FOOT = 26  # room below a matrix for the names of the axes and the colour scale, pixels


class Matrix(NamedTuple):
    """A matrix to draw: ``pixels`` [row, column, rgb] with its axes and the pinned tokens.

    A difference, and a signed quantity, also has its numbers ``d`` [row, column], whose sign is marked.
    """

    pixels: Pixels
    axes: Axes
    focus: Focus | None
    d: npt.NDArray[np.float32] | None = None


class Room(NamedTuple):
    """The room that drawings of equal size have in common: for labels this wide, and this many rows and columns."""

    label: float
    most: int


def heatmap(attention: Attention, head: Head, view: View | None = None, size: Size | None = None) -> Drawing:
    """Draw one head's matrix. Raises UnknownHead."""
    view, size = (view or View()).of([attention]), size or Size()
    theme = THEMES[size.look]
    axes = list_units(attention, view)
    part = build_block(attention, head, view, axes)
    complete = Matrix(
        colour_cells(part, view.scale, theme), axes, find_focus(axes, view), part.w if part.signed else None
    )
    footer = draw_footer(caption.mention_ablated([(attention, head)]), size.pixels, theme.ink)
    lines, most_high = not size.transparent, size.tallest - FOOT - footer[1]
    page = (size.pixels, most_high)
    matrix, notes = _excerpt_matrix(complete, part.w, page)
    marks, layout = draw_matrix(matrix, size.pixels, theme, lines, LARGEST, height=most_high)
    marks += draw_matrix_foot(layout, theme, scale_colours([part], theme), describe_range(view.scale, [part]))
    drawn = Drawing(
        layout.width,
        layout.height + FOOT,
        centre_marks(marks, layout, size.pixels),
        background=None if size.transparent else theme.paper,
        notes=(*note_faint_cells(view, [part]), *notes, *note_missing_labels(layout, page, [axes], PIN_ADVICE)),
        **caption.write_words(attention, (head,), view, [part], "heatmap"),
    )
    return make_sheet(drawn, size, footer)


def _excerpt_matrix(matrix: Matrix, w: Weights, page: tuple[float, float]) -> tuple[Matrix, tuple[Note, ...]]:
    """Return the part of the matrix around a pinned token that has room for all labels, and a note on what is left out.

    Return the matrix itself if nothing is pinned, or if a ``page`` of this width and height has room for a label at
    each row. ``w``: the weights [row, column].
    """
    label = measure_label_room(matrix.axes)
    fit = max(1, int((min(page) - label) // LABELLED))
    if matrix.focus is None or max(w.shape) <= fit:
        return matrix, ()
    remedy = f"{_advise_raising(page, label, w.shape)} or lower font_pt"
    (part,), notes = cut_excerpt_around(w.astype(np.float64), matrix.focus, fit, f"For all of them, {remedy}")
    cells = np.ix_(*part)
    d = None if matrix.d is None else matrix.d[cells]
    return Matrix(matrix.pixels[cells], part.axes(matrix.axes), part.place_focus(matrix.focus), d), notes


def draw_matrix(
    matrix: Matrix,
    width: float,
    theme: Theme,
    lines: bool = True,
    largest: float = math.inf,
    room: Room | None = None,
    height: float = UNLIMITED,
    has_row_labels: bool = True,
) -> tuple[tuple[Mark, ...], HeatmapLayout]:
    """Draw a matrix with labels in at most ``width`` × ``height`` pixels, if cells of 2 pixels fit.

    No cell exceeds ``largest``.
    """
    rows, cols = matrix.axes
    label, min_units = room or Room(measure_label_room(matrix.axes), 0)
    across = label if has_row_labels else 0
    layout = heatmap_layout(width, max(min_units, len(rows)), max(min_units, len(cols)), across, height, largest, label)
    if not rows or not cols:
        return (), layout
    marks: list[Mark] = [
        CellPicture(layout.left, layout.top, len(cols) * layout.cell, len(rows) * layout.cell, matrix.pixels)
    ]
    marks += draw_hairlines(layout, len(rows), len(cols), theme) if lines else ()
    marks += draw_minuses(matrix, layout, theme)
    marks += _draw_frame(matrix, layout, theme, has_halo=lines)
    for is_row in (True, False) if has_row_labels else (False,):
        marks += _draw_axis_labels(matrix, layout, theme, is_row)
    return tuple(marks), layout


def centre_marks(marks: tuple[Mark, ...], layout: HeatmapLayout, width: float) -> tuple[Mark, ...]:
    """Centre a matrix in ``width`` pixels if its cells have the largest allowed size."""
    return shift_marks(marks, (width - layout.width) / 2, 0) if layout.cell == LARGEST else marks


def measure_label_room(axes: Axes) -> float:
    """Return the room for labels on both axes."""
    return min(LABEL, measure_widest(axes, LABEL_SIZE) + 12)


LABEL_SIZE = 13


def measure_widest(axes: Axes, size: float) -> int:
    """Return the width in pixels of the widest token."""
    texts = {u.drawn[:LETTERS] for side in axes for u in side}
    return math.ceil(max((fonts.width(text, size) for text in texts), default=0))


def draw_hairlines(layout: HeatmapLayout, rows: int, cols: int, theme: Theme) -> list[Mark]:
    """Return lines of one pixel between cells, if these are large enough."""
    left, top, cell = layout.left, layout.top, layout.cell
    if cell < HAIRLINES:
        return []
    across = [Rect(left + c * cell - 0.5, top, 1, rows * cell, fill=theme.paper) for c in range(1, cols)]
    down = [Rect(left, top + r * cell - 0.5, cols * cell, 1, fill=theme.paper) for r in range(1, rows)]
    return [*across, *down]


def draw_minuses(matrix: Matrix, layout: HeatmapLayout, theme: Theme) -> list[Mark]:
    """Return a minus in every cell that is clearly below 0, for the grey theme.

    In that theme, both ends of the scale look the same.
    """
    if not theme.has_minus or matrix.d is None or layout.cell < MARKED:
        return []
    d, cell = matrix.d.astype(np.float64), layout.cell
    largest, thickness = float(np.abs(d).max(initial=0)), max(1.0, cell * 0.1)
    return [
        Rect(
            layout.left + (c + 0.25) * cell,
            layout.top + (r + 0.5) * cell - thickness / 2,
            cell * 0.5,
            thickness,
            fill=theme.paper if d[r, c] < -DEEP * largest else theme.ink,
        )
        for r, c in zip(*np.nonzero((d < 0) & (d <= -FAINT * largest)), strict=True)
    ]


def _draw_frame(matrix: Matrix, layout: HeatmapLayout, theme: Theme, has_halo: bool) -> list[Mark]:
    """Return a frame around the pinned row, column or cell.

    A frame would hide small cells: they get a tick next to their row and above their column. No cell fades, because its
    colour is its number. ``has_halo``: paper around the frame makes it visible on cells of every colour.
    """
    if matrix.focus is None:
        return []
    (row, col), (left, top, cell) = matrix.focus, (layout.left, layout.top, layout.cell)
    x, frame_width = (left, len(matrix.axes.cols) * cell) if col is None else (left + col * cell, cell)
    y, frame_height = (top, len(matrix.axes.rows) * cell) if row is None else (top + row * cell, cell)
    if cell >= FRAMED:
        lines = [(theme.paper, HALO)] * has_halo + [(theme.accent, FRAME)]
        return [Rect(x, y, frame_width, frame_height, stroke=colour, stroke_width=width) for colour, width in lines]
    row_ticks = [Rect(left - TICK - 1, y, TICK, frame_height, fill=theme.accent)] if row is not None else []
    column_ticks = [Rect(x, top - TICK - 1, frame_width, TICK, fill=theme.accent)] if col is not None else []
    return [*row_ticks, *column_ticks]


def compute_label_step(layout: HeatmapLayout) -> tuple[float, int]:
    """Return the size of labels, and at how many rows or columns there is one."""
    size = max(9 if layout.cell < 10 else 10, min(LABEL_SIZE, layout.cell - 1))  # as in browser/heatmap.js
    return size, math.ceil(size / layout.cell)


def describe_thinning(layout: HeatmapLayout) -> str:
    """Return a sentence about labels that are left out; empty if all are there."""
    _, interval = compute_label_step(layout)
    return "" if layout.width == layout.left else describe_label_step(interval)  # nothing is drawn


def note_missing_labels(
    layout: HeatmapLayout, page: tuple[float, float], every: Sequence[Axes], pinning: str = "", most: int = 0
) -> tuple[Note, ...]:
    """Return a note that labels are left out, if they are, with a remedy.

    ``page``: the width and height of matrices of ``every`` axes, each with room for ``most`` rows and columns;
    ``pinning``: a sentence on the effect of a pin.
    """
    sentence = describe_thinning(layout)
    if not sentence:
        return ()
    sides = [[axes.rows for axes in every], [axes.cols for axes in every]]
    counts = [max(most, max(map(len, side))) for side in sides]
    words = [max(sum(not unit.special for unit in axis) for axis in side) for side in sides]
    if most:
        words = [max(words)] * 2
    remedies = [_advise_raising(page, layout.top, counts), "lower font_pt"]
    if words != counts and not _advise_raising(page, layout.top, words):
        remedies.append("hide special tokens")
    listed = f"{', '.join(remedies[:-1])} or {remedies[-1]}"
    return (Note(f"{sentence[0].upper()}{sentence[1:]}.", f"For all of them, {listed}.{pinning}"),)


def _advise_raising(page: tuple[float, float], label: float, counts: Sequence[int]) -> str:
    """Name the settings to raise so that each of so many rows and columns has a label; empty if none."""
    rows, cols = counts
    needed = zip(("width_mm", "max_height_mm"), page, (cols, rows), strict=True)
    too_small = [name for name, room, count in needed if room - label < LABELLED * count]
    return f"raise {' and '.join(too_small)}" if too_small else ""


def _draw_axis_labels(matrix: Matrix, layout: HeatmapLayout, theme: Theme, is_row: bool) -> list[Mark]:
    side = matrix.axes.rows if is_row else matrix.axes.cols
    pinned = None if matrix.focus is None else (matrix.focus.row if is_row else matrix.focus.col)
    size, interval = compute_label_step(layout)
    marks: list[Mark] = []
    for i in sorted(choose_labelled(len(side), interval, pinned)):
        unit = side[i]
        middle = (layout.top if is_row else layout.left) + (i + 0.5) * layout.cell
        colour = theme.accent if pinned == i else theme.muted if unit.special else theme.ink
        weight: FontWeight = 600 if pinned == i else 400
        x, y = (layout.left - 6, middle) if is_row else (middle, layout.top - 6)
        text = Text(x, y, unit.drawn, size, colour, weight, "end" if is_row else "start", 0 if is_row else 90)
        marks += draw_label(text, LABEL - 6, layout.cell)
        if interval > 1:  # a tick shows the row to which the label belongs
            x, y, tick_width, tick_height = (
                (layout.left - 5, middle - 0.5, 4, 1) if is_row else (middle - 0.5, layout.top - 5, 1, 4)
            )
            marks.append(Rect(x, y, tick_width, tick_height, fill=theme.muted))
    return marks


def choose_labelled(count: int, every: int, focused: int | None) -> set[int]:
    """Return which of ``count`` rows or columns get a label: every ``every``-th.

    A pinned row or column replaces labelled neighbours that are too near to it.
    """
    regular = {i for i in range(0, count, every) if focused is None or abs(i - focused) >= every}
    return regular if focused is None else {focused, *regular}


def draw_matrix_foot(layout: HeatmapLayout, theme: Theme, ramp: tuple[str, ...], words: str) -> tuple[Mark, ...]:
    """Return the marks below a matrix.

    These are the colour scale with its range, and the names of the axes or a remark on missing labels.
    """
    y = layout.height + FOOT / 2 + 2
    names, missing = "rows: from (query)   columns: to (key)", describe_thinning(layout)
    text_width = fonts.width(words, 11)
    for text in filter(None, (f"{names}   {missing}".rstrip(), missing)):
        bar = min(90.0, layout.width - fonts.width(text, 11) - text_width - GAP - 24)
        if bar >= 24:
            return (Text(0, y, text, 11, theme.muted), *draw_scale_bar(layout.width, y, bar, theme, ramp, words))
    bar = min(90.0, max(24.0, layout.width - text_width - 8))  # too narrow for both: the scale is more important
    return draw_scale_bar(layout.width, y, bar, theme, ramp, words)


def draw_scale_bar(
    right: float, y: float, bar: float, theme: Theme, ramp: tuple[str, ...] | Pixels, words: str
) -> tuple[Mark, ...]:
    """Draw a colour scale that ends at ``right``, followed by its range in words.

    ``ramp``: its stops, or its colours [line, place, rgb].
    """
    x = right - fonts.width(words, 11) - GAP - bar
    colours = palette(ramp)[None, SHADES] if isinstance(ramp, tuple) else ramp
    height = 8 if len(colours) == 1 else 14
    return (CellPicture(x, y - height / 2, bar, height, colours), Text(right, y, words, 11, theme.muted, anchor="end"))
