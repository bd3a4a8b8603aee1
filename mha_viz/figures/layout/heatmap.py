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

MAX_LABEL_WIDTH = 96  # maximum width of labels, pixels
MAX_MEASURED_CHARACTERS = 40  # maximum number of characters of a token that are measured
MAX_CELL = 84  # maximum size of a cell of a single matrix, pixels: otherwise five tokens would fill a page
PIN_ADVICE = " With a pin, the part around it is drawn with all labels."
MIN_LABELLED_CELL = 9  # minimum cell size at which every row and column has its label, pixels
MIN_HAIRLINE_CELL = 10  # minimum cell size with lines between cells
MIN_FRAMED_CELL = 6  # minimum cell size at which pinned cells have a frame, which would hide smaller cells
FRAME, HALO, TICK = 1.5, 3.5, 4  # pixels: a frame, the paper around it, and a tick next to small cells
MIN_MARKED_CELL = 4  # minimum cell size at which cells below 0 are marked with a minus in the grey theme
MIN_MARKED_SHARE = 0.1  # smaller shares of the largest difference are hardly visible and get no minus
DARK_SHARE = 0.52  # share of the largest difference from which a cell is nearer to the ink than to the paper
GAP = 11  # gap between a colour scale and its legend, pixels
SHADES = slice(None, None, 5)  # the shades on a printed colour scale, of 256: 0, 5, …, 255
FOOT = 26  # room below a matrix for the names of the axes and the colour scale, pixels


class Matrix(NamedTuple):
    """A matrix to draw: ``pixels`` [row, column, rgb] with its axes and the pinned tokens.

    ``d``: the numbers of a difference or of a signed quantity, [row, column], whose sign is marked.
    """

    pixels: Pixels
    axes: Axes
    focus: Focus | None
    d: npt.NDArray[np.float32] | None = None


class Room(NamedTuple):
    """The room that drawings of equal size reserve: the width of labels, and the number of rows and of columns."""

    label: float
    units: int


def heatmap(attention: Attention, head: Head, view: View | None = None, size: Size | None = None) -> Drawing:
    """Draw one head's matrix. Raises UnknownHead."""
    view, size = (view or View()).of([attention]), size or Size()
    theme = THEMES[size.look]
    axes = list_units(attention, view)
    block = build_block(attention, head, view, axes)
    whole_matrix = Matrix(
        colour_cells(block, view.scale, theme), axes, find_focus(axes, view), block.w if block.signed else None
    )
    footer = draw_footer(caption.mention_ablated([(attention, head)]), size.pixels, theme.ink)
    has_lines, max_height = not size.transparent, size.max_height - FOOT - footer[1]
    page = (size.pixels, max_height)
    matrix, notes = _excerpt_matrix(whole_matrix, block.w, page)
    marks, layout = draw_matrix(matrix, size.pixels, theme, has_lines, MAX_CELL, height=max_height)
    marks += draw_matrix_foot(layout, theme, scale_colours([block], theme), describe_range(view.scale, [block]))
    drawing = Drawing(
        layout.width,
        layout.height + FOOT,
        centre_marks(marks, layout, size.pixels),
        background=None if size.transparent else theme.paper,
        notes=(*note_faint_cells(view, [block]), *notes, *note_missing_labels(layout, page, [axes], PIN_ADVICE)),
        **caption.write_texts(attention, (head,), view, [block], "heatmap"),
    )
    return make_sheet(drawing, size, footer)


def _excerpt_matrix(matrix: Matrix, w: Weights, page: tuple[float, float]) -> tuple[Matrix, tuple[Note, ...]]:
    """Cut the matrix to the part around a pinned token that has room for all labels; also return a note on the rest.

    Return the matrix itself if nothing is pinned, or if the ``page`` (width, height) has room for a label at each row.
    ``w``: the weights [row, column].
    """
    label = measure_label_room(matrix.axes)
    max_tokens = max(1, int((min(page) - label) // MIN_LABELLED_CELL))
    if matrix.focus is None or max(w.shape) <= max_tokens:
        return matrix, ()
    remedy = f"{_advise_raising(page, label, w.shape)} or lower font_pt"
    (excerpt,), notes = cut_excerpt_around(w.astype(np.float64), matrix.focus, max_tokens, f"For all of them, {remedy}")
    cells = np.ix_(*excerpt)
    d = None if matrix.d is None else matrix.d[cells]
    return Matrix(matrix.pixels[cells], excerpt.axes(matrix.axes), excerpt.place_focus(matrix.focus), d), notes


def draw_matrix(
    matrix: Matrix,
    width: float,
    theme: Theme,
    has_lines: bool = True,
    max_cell: float = math.inf,
    room: Room | None = None,
    height: float = UNLIMITED,
    has_row_labels: bool = True,
) -> tuple[tuple[Mark, ...], HeatmapLayout]:
    """Draw a matrix with labels in at most ``width`` × ``height`` pixels, if cells of 2 pixels fit.

    Cells have at most ``max_cell`` pixels.
    """
    rows, cols = matrix.axes
    label, min_units = room or Room(measure_label_room(matrix.axes), 0)
    row_label_room = label if has_row_labels else 0
    layout = heatmap_layout(
        width, max(min_units, len(rows)), max(min_units, len(cols)), row_label_room, height, max_cell, label
    )
    if not rows or not cols:
        return (), layout
    marks: list[Mark] = [
        CellPicture(layout.left, layout.top, len(cols) * layout.cell, len(rows) * layout.cell, matrix.pixels)
    ]
    marks += draw_hairlines(layout, len(rows), len(cols), theme) if has_lines else ()
    marks += draw_minuses(matrix, layout, theme)
    marks += _draw_frame(matrix, layout, theme, has_halo=has_lines)
    for is_row in (True, False) if has_row_labels else (False,):
        marks += _draw_axis_labels(matrix, layout, theme, is_row)
    return tuple(marks), layout


def centre_marks(marks: tuple[Mark, ...], layout: HeatmapLayout, width: float) -> tuple[Mark, ...]:
    """Centre a matrix in ``width`` pixels if its cells have the largest allowed size."""
    return shift_marks(marks, (width - layout.width) / 2, 0) if layout.cell == MAX_CELL else marks


def measure_label_room(axes: Axes) -> float:
    """Return the room for labels on both axes."""
    return min(MAX_LABEL_WIDTH, measure_widest(axes, LABEL_SIZE) + 12)


LABEL_SIZE = 13


def measure_widest(axes: Axes, size: float) -> int:
    """Return the width in pixels of the widest token."""
    texts = {u.drawn[:MAX_MEASURED_CHARACTERS] for side in axes for u in side}
    return math.ceil(max((fonts.width(text, size) for text in texts), default=0))


def draw_hairlines(layout: HeatmapLayout, rows: int, cols: int, theme: Theme) -> list[Mark]:
    """Return lines of one pixel between cells, if the cells are large enough."""
    left, top, cell = layout.left, layout.top, layout.cell
    if cell < MIN_HAIRLINE_CELL:
        return []
    vertical = [Rect(left + c * cell - 0.5, top, 1, rows * cell, fill=theme.paper) for c in range(1, cols)]
    horizontal = [Rect(left, top + r * cell - 0.5, cols * cell, 1, fill=theme.paper) for r in range(1, rows)]
    return [*vertical, *horizontal]


def draw_minuses(matrix: Matrix, layout: HeatmapLayout, theme: Theme) -> list[Mark]:
    """Return a minus in every cell that is clearly below 0, for the grey theme.

    In that theme, both ends of the scale look the same.
    """
    if not theme.has_minus or matrix.d is None or layout.cell < MIN_MARKED_CELL:
        return []
    d, cell = matrix.d.astype(np.float64), layout.cell
    max_size, thickness = float(np.abs(d).max(initial=0)), max(1.0, cell * 0.1)
    return [
        Rect(
            layout.left + (c + 0.25) * cell,
            layout.top + (r + 0.5) * cell - thickness / 2,
            cell * 0.5,
            thickness,
            fill=theme.paper if d[r, c] < -DARK_SHARE * max_size else theme.ink,
        )
        for r, c in zip(*np.nonzero((d < 0) & (d <= -MIN_MARKED_SHARE * max_size)), strict=True)
    ]


def _draw_frame(matrix: Matrix, layout: HeatmapLayout, theme: Theme, has_halo: bool) -> list[Mark]:
    """Return a frame around the pinned row, column or cell.

    Small cells, which a frame would hide, get a tick next to their row and above their column. Other cells do not fade,
    because their colour is their number. ``has_halo``: paper around the frame makes it visible on every colour.
    """
    if matrix.focus is None:
        return []
    (row, col), (left, top, cell) = matrix.focus, (layout.left, layout.top, layout.cell)
    x, frame_width = (left, len(matrix.axes.cols) * cell) if col is None else (left + col * cell, cell)
    y, frame_height = (top, len(matrix.axes.rows) * cell) if row is None else (top + row * cell, cell)
    if cell >= MIN_FRAMED_CELL:
        lines = [(theme.paper, HALO)] * has_halo + [(theme.accent, FRAME)]
        return [Rect(x, y, frame_width, frame_height, stroke=colour, stroke_width=width) for colour, width in lines]
    row_ticks = [Rect(left - TICK - 1, y, TICK, frame_height, fill=theme.accent)] if row is not None else []
    column_ticks = [Rect(x, top - TICK - 1, frame_width, TICK, fill=theme.accent)] if col is not None else []
    return [*row_ticks, *column_ticks]


def compute_label_step(layout: HeatmapLayout) -> tuple[float, int]:
    """Return the font size of labels, and the step from one labelled row or column to the next."""
    size = max(9 if layout.cell < 10 else 10, min(LABEL_SIZE, layout.cell - 1))  # as in browser/heatmap.js
    return size, math.ceil(size / layout.cell)


def describe_thinning(layout: HeatmapLayout) -> str:
    """Return a sentence about labels that are left out; empty if none is."""
    _, interval = compute_label_step(layout)
    return "" if layout.width == layout.left else describe_label_step(interval)  # nothing is drawn


def note_missing_labels(
    layout: HeatmapLayout, page: tuple[float, float], all_axes: Sequence[Axes], pin_advice: str = "", min_units: int = 0
) -> tuple[Note, ...]:
    """Return a note on labels that are left out, if any, with a remedy.

    ``page``: the width and height of the matrices, each with room for ``min_units`` rows and columns; ``all_axes``:
    their axes; ``pin_advice``: a sentence on the effect of a pin.
    """
    sentence = describe_thinning(layout)
    if not sentence:
        return ()
    sides = [[axes.rows for axes in all_axes], [axes.cols for axes in all_axes]]
    counts = [max(min_units, max(map(len, side))) for side in sides]
    word_counts = [max(sum(not unit.special for unit in axis) for axis in side) for side in sides]
    if min_units:
        word_counts = [max(word_counts)] * 2
    remedies = [_advise_raising(page, layout.top, counts), "lower font_pt"]
    if word_counts != counts and not _advise_raising(page, layout.top, word_counts):
        remedies.append("hide special tokens")
    remedy_list = f"{', '.join(remedies[:-1])} or {remedies[-1]}"
    return (Note(f"{sentence[0].upper()}{sentence[1:]}.", f"For all of them, {remedy_list}.{pin_advice}"),)


def _advise_raising(page: tuple[float, float], label: float, counts: Sequence[int]) -> str:
    """Name the settings to raise so that all rows and columns, of which there are ``counts``, have labels."""
    rows, cols = counts
    requirements = zip(("width_mm", "max_height_mm"), page, (cols, rows), strict=True)
    too_small = [name for name, room, count in requirements if room - label < MIN_LABELLED_CELL * count]
    return f"raise {' and '.join(too_small)}" if too_small else ""


def _draw_axis_labels(matrix: Matrix, layout: HeatmapLayout, theme: Theme, is_row: bool) -> list[Mark]:
    units = matrix.axes.rows if is_row else matrix.axes.cols
    pinned = None if matrix.focus is None else (matrix.focus.row if is_row else matrix.focus.col)
    size, interval = compute_label_step(layout)
    marks: list[Mark] = []
    for i in sorted(choose_labelled(len(units), interval, pinned)):
        unit = units[i]
        middle = (layout.top if is_row else layout.left) + (i + 0.5) * layout.cell
        colour = theme.accent if pinned == i else theme.muted if unit.special else theme.ink
        weight: FontWeight = 600 if pinned == i else 400
        x, y = (layout.left - 6, middle) if is_row else (middle, layout.top - 6)
        text = Text(x, y, unit.drawn, size, colour, weight, "end" if is_row else "start", 0 if is_row else 90)
        marks += draw_label(text, MAX_LABEL_WIDTH - 6, layout.cell)
        if interval > 1:  # a tick shows the row to which the label belongs
            x, y, tick_width, tick_height = (
                (layout.left - 5, middle - 0.5, 4, 1) if is_row else (middle - 0.5, layout.top - 5, 1, 4)
            )
            marks.append(Rect(x, y, tick_width, tick_height, fill=theme.muted))
    return marks


def choose_labelled(count: int, step: int, pinned: int | None) -> set[int]:
    """Choose the rows or columns, of ``count``, that get a label: every ``step``-th.

    A pinned row or column replaces labelled neighbours that are too near to it.
    """
    regular_indices = {i for i in range(0, count, step) if pinned is None or abs(i - pinned) >= step}
    return regular_indices if pinned is None else {pinned, *regular_indices}


def draw_matrix_foot(layout: HeatmapLayout, theme: Theme, ramp: tuple[str, ...], range_text: str) -> tuple[Mark, ...]:
    """Return the marks below a matrix.

    These are the colour scale with its range, and the names of the axes or a remark on missing labels.
    """
    y = layout.height + FOOT / 2 + 2
    names, thinning_note = "rows: from (query)   columns: to (key)", describe_thinning(layout)
    text_width = fonts.width(range_text, 11)
    for text in filter(None, (f"{names}   {thinning_note}".rstrip(), thinning_note)):
        bar_width = min(90.0, layout.width - fonts.width(text, 11) - text_width - GAP - 24)
        if bar_width >= 24:
            return (
                Text(0, y, text, 11, theme.muted),
                *draw_scale_bar(layout.width, y, bar_width, theme, ramp, range_text),
            )
    bar_width = min(90.0, max(24.0, layout.width - text_width - 8))  # too narrow for both: the scale is more important
    return draw_scale_bar(layout.width, y, bar_width, theme, ramp, range_text)


def draw_scale_bar(
    right: float, y: float, bar_width: float, theme: Theme, ramp: tuple[str, ...] | Pixels, range_text: str
) -> tuple[Mark, ...]:
    """Draw a colour scale followed by its range in words, which ends at ``right``.

    ``ramp``: its stops, or its colours [line, position, rgb].
    """
    x = right - fonts.width(range_text, 11) - GAP - bar_width
    colours = palette(ramp)[None, SHADES] if isinstance(ramp, tuple) else ramp
    height = 8 if len(colours) == 1 else 14
    return (
        CellPicture(x, y - height / 2, bar_width, height, colours),
        Text(right, y, range_text, 11, theme.muted, anchor="end"),
    )
