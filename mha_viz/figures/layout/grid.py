"""All heads as one static figure: layers down, heads across, one small picture per head.

The layout is that of ``browser/explorer/overview.js``. Long texts are max-pooled, so that a thin line stays visible.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mha_viz.attention import Attention, Head, Weights
from mha_viz.attention.steps import ONLY, find_model_head
from mha_viz.figures.drawing.marks import CellPicture, Drawing, Mark, Pixels, Text
from mha_viz.figures.drawing.theme import THEMES, Theme
from mha_viz.figures.layout import GridLayout, Size, caption, draw_footer, grid_layout, make_sheet
from mha_viz.figures.layout.heatmap import draw_scale_bar
from mha_viz.figures.layout.view import (
    Block,
    View,
    build_block,
    colour_cells,
    describe_range,
    list_units,
    note_faint_cells,
    scale_colours,
)
from mha_viz.view.quantities import QUANTITIES

MAX_CELLS = 96  # maximum number of rows and columns of one small picture
FOOT = 22
LABEL_WIDTH = 44  # the pixels that the label "L11H11" needs
TALLEST = 1.15  # maximum height, in widths, of a grid with more layers than heads


def grid(
    attention: Attention, view: View | None = None, size: Size | None = None, heads: Sequence[Head] = ()
) -> Drawing:
    """Draw every head at a glance, or only ``heads``, which must be the same in all their layers."""
    view, size = (view or View()).of([attention]), size or Size()
    theme = THEMES[size.look]
    axes = list_units(attention, view)
    drawn = heads or attention.every_head()
    footer = draw_footer(caption.mention_ablated([(attention, head) for head in drawn]), size.pixels, theme.ink)
    layers, numbers = (sorted({*places}) for places in zip(*drawn, strict=True))
    height = size.pixels if len(numbers) >= len(layers) else TALLEST * size.pixels / len(layers)
    layout = grid_layout(size.pixels, len(layers), len(numbers), height)
    parts = [[build_block(attention, Head(layer, head), view, axes) for head in numbers] for layer in layers]
    marks = draw_grid_marks(
        parts, layout, view.scale, theme, *name_rows_and_columns(attention, layers, numbers, layout)
    )
    blocks = [part for row in parts for part in row]
    marks += draw_grid_foot(attention, layout, theme, blocks, view.scale, scale_colours(blocks, theme))
    drawing = Drawing(
        layout.width,
        layout.height + FOOT,
        tuple(marks),
        background=None if size.transparent else theme.paper,
        notes=note_faint_cells(view, blocks),
        **caption.write_words(
            attention, () if len(drawn) == attention.layers * attention.heads else drawn, view, blocks, "grid"
        ),
    )
    return make_sheet(drawing, size, footer)


def draw_grid_marks(
    parts: Sequence[Sequence[Block]],
    layout: GridLayout,
    scale: str,
    theme: Theme,
    rows: Sequence[str],
    columns: Sequence[str],
) -> list[Mark]:
    """Return the small pictures of ``parts`` [layer][head], with the names of ``rows`` and ``columns``."""
    marks: list[Mark] = []
    for place, (name, row) in enumerate(zip(rows, parts, strict=True)):
        y = layout.top + place * layout.step
        marks.append(draw_row_name(layout, place, name, theme))
        for head, part in enumerate(row):
            pixels = colour_cells(part._replace(w=_pool_block(part)), scale, theme)
            if part.w.size:
                marks.append(CellPicture(layout.left + head * layout.step, y, layout.size, layout.size, pixels))
    return [*marks, *draw_column_names(layout, columns, theme)]


def name_rows_and_columns(
    attention: Attention, layers: Sequence[int], numbers: Sequence[int], layout: GridLayout
) -> tuple[list[str], list[str]]:
    """Return the names of rows and of columns, by their numbers in the model.

    They are layers and heads; only layers for a quantity with one map per layer; and only heads, if there is room, for
    a reading whose heads were selected.
    """
    if _has_kept_heads(attention):
        names = [str(find_model_head(attention.made, Head(0, number))) for number in numbers]
        return [""] * len(layers), names if layout.step >= LABEL_WIDTH else []
    rows = [f"L{find_model_head(attention.made, Head(layer, 0)).layer}" for layer in layers]
    return rows, [] if QUANTITIES[attention.quantity].of_layers else [*map(str, numbers)]


def _has_kept_heads(attention: Attention) -> bool:
    return any(step.row.name == ONLY for step in attention.made)


def draw_row_name(layout: GridLayout, place: int, name: str, theme: Theme) -> Text:
    """Return the label of the row at this ``place``."""
    y = layout.top + place * layout.step + layout.size / 2
    return Text(layout.left - 8, y, name, 11, theme.muted, anchor="end")


def draw_column_names(layout: GridLayout, names: Sequence[str], theme: Theme) -> list[Text]:
    """Return the names of columns above them."""
    places = [layout.left + place * layout.step + layout.size / 2 for place in range(len(names))]
    return [
        Text(x, layout.top / 2, name, 11, theme.muted, anchor="middle") for x, name in zip(places, names, strict=True)
    ]


def draw_grid_foot(
    attention: Attention,
    layout: GridLayout,
    theme: Theme,
    parts: Sequence[Block],
    scale: str,
    ramp: tuple[str, ...] | Pixels,
) -> list[Mark]:
    """Return the marks below all maps: the names of the axes, and the colour scale ``ramp`` with its range."""
    y = layout.height + FOOT / 2
    rows = "" if _has_kept_heads(attention) else "rows: layers"
    columns = "" if QUANTITIES[attention.quantity].of_layers else "columns: heads"
    axes = Text(0, y, "   ".join(filter(None, (rows, columns))), 11, theme.muted)
    words = describe_span(attention, scale, parts)
    return [axes, *draw_scale_bar(layout.width, y, 60, theme, ramp, words)]


def describe_span(attention: Attention, scale: str, parts: Sequence[Block]) -> str:
    """Return the range of the colours in words."""
    if scale != "head":
        return describe_range(scale, parts)
    whose = "layer" if QUANTITIES[attention.quantity].of_layers else "head"
    return f"0 to {'±' * any(part.signed for part in parts)}each {whose}'s largest"


def _pool_block(part: Block) -> Weights:
    """Pool as :func:`pool_matrix`; of signed numbers, take the largest in absolute value."""
    largest = pool_matrix(part.w, MAX_CELLS)
    if not part.signed:
        return largest
    least = pool_matrix(-part.w, MAX_CELLS)
    return np.where(largest >= least, largest, -least)


def pool_matrix(w: Weights, most: int) -> Weights:
    """Reduce the matrix to at most ``most`` rows and columns by taking the largest weight of each block."""
    if w.size == 0 or max(w.shape) <= most:
        return w
    steps = [math.ceil(n / most) for n in w.shape]
    down: Weights = np.maximum.reduceat(w, np.arange(0, w.shape[0], steps[0]), axis=0)
    return np.maximum.reduceat(down, np.arange(0, w.shape[1], steps[1]), axis=1)
