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
FOOT = 22  # room below a grid for the names of the axes and the colour scale, pixels
LABEL_WIDTH = 44  # the width of the label "L11H11", pixels
MAX_ASPECT_RATIO = 1.15  # maximum height per width of a grid with more layers than heads


def grid(
    attention: Attention, view: View | None = None, size: Size | None = None, heads: Sequence[Head] = ()
) -> Drawing:
    """Draw every head at a glance, or only ``heads``, which must be the same in all their layers."""
    view, size = (view or View()).of([attention]), size or Size()
    theme = THEMES[size.look]
    axes = list_units(attention, view)
    drawn_heads = heads or attention.every_head()
    footer = draw_footer(caption.mention_ablated([(attention, head) for head in drawn_heads]), size.pixels, theme.ink)
    layers, numbers = (sorted({*indices}) for indices in zip(*drawn_heads, strict=True))
    height = size.pixels if len(numbers) >= len(layers) else MAX_ASPECT_RATIO * size.pixels / len(layers)
    layout = grid_layout(size.pixels, len(layers), len(numbers), height)
    blocks = [[build_block(attention, Head(layer, head), view, axes) for head in numbers] for layer in layers]
    marks = draw_grid_marks(
        blocks, layout, view.scale, theme, *name_rows_and_columns(attention, layers, numbers, layout)
    )
    all_blocks = [block for row in blocks for block in row]
    marks += draw_grid_foot(attention, layout, theme, all_blocks, view.scale, scale_colours(all_blocks, theme))
    drawing = Drawing(
        layout.width,
        layout.height + FOOT,
        tuple(marks),
        background=None if size.transparent else theme.paper,
        notes=note_faint_cells(view, all_blocks),
        **caption.write_texts(
            attention,
            () if len(drawn_heads) == attention.layers * attention.heads else drawn_heads,
            view,
            all_blocks,
            "grid",
        ),
    )
    return make_sheet(drawing, size, footer)


def draw_grid_marks(
    blocks: Sequence[Sequence[Block]],
    layout: GridLayout,
    scale: str,
    theme: Theme,
    rows: Sequence[str],
    columns: Sequence[str],
) -> list[Mark]:
    """Return the small pictures of ``blocks`` [layer][head], with the names of ``rows`` and ``columns``."""
    marks: list[Mark] = []
    for row_index, (name, row) in enumerate(zip(rows, blocks, strict=True)):
        y = layout.top + row_index * layout.step
        marks.append(draw_row_name(layout, row_index, name, theme))
        for head, block in enumerate(row):
            pixels = colour_cells(block._replace(w=_pool_block(block)), scale, theme)
            if block.w.size:
                marks.append(CellPicture(layout.left + head * layout.step, y, layout.size, layout.size, pixels))
    return [*marks, *draw_column_names(layout, columns, theme)]


def name_rows_and_columns(
    attention: Attention, layers: Sequence[int], numbers: Sequence[int], layout: GridLayout
) -> tuple[list[str], list[str]]:
    """Return the names of rows and of columns, by their numbers in the model.

    Rows are layers and columns are heads. Columns have no names if the quantity has one map per layer; rows have none
    if the heads of the reading were selected, and columns then have names only if there is room.
    """
    if _has_kept_heads(attention):
        names = [str(find_model_head(attention.made, Head(0, number))) for number in numbers]
        return [""] * len(layers), names if layout.step >= LABEL_WIDTH else []
    rows = [f"L{find_model_head(attention.made, Head(layer, 0)).layer}" for layer in layers]
    return rows, [] if QUANTITIES[attention.quantity].of_layers else [*map(str, numbers)]


def _has_kept_heads(attention: Attention) -> bool:
    return any(step.row.name == ONLY for step in attention.made)


def draw_row_name(layout: GridLayout, row: int, name: str, theme: Theme) -> Text:
    """Return the label of a row."""
    y = layout.top + row * layout.step + layout.size / 2
    return Text(layout.left - 8, y, name, 11, theme.muted, anchor="end")


def draw_column_names(layout: GridLayout, names: Sequence[str], theme: Theme) -> list[Text]:
    """Return the labels above the columns."""
    middles = [layout.left + column * layout.step + layout.size / 2 for column in range(len(names))]
    return [
        Text(x, layout.top / 2, name, 11, theme.muted, anchor="middle") for x, name in zip(middles, names, strict=True)
    ]


def draw_grid_foot(
    attention: Attention,
    layout: GridLayout,
    theme: Theme,
    blocks: Sequence[Block],
    scale: str,
    ramp: tuple[str, ...] | Pixels,
) -> list[Mark]:
    """Return the marks below all maps: the names of the axes, and the colour scale ``ramp`` with its range."""
    y = layout.height + FOOT / 2
    rows = "" if _has_kept_heads(attention) else "rows: layers"
    columns = "" if QUANTITIES[attention.quantity].of_layers else "columns: heads"
    axes = Text(0, y, "   ".join(filter(None, (rows, columns))), 11, theme.muted)
    legend = describe_span(attention, scale, blocks)
    return [axes, *draw_scale_bar(layout.width, y, 60, theme, ramp, legend)]


def describe_span(attention: Attention, scale: str, blocks: Sequence[Block]) -> str:
    """Return the range of the colours in words."""
    if scale != "head":
        return describe_range(scale, blocks)
    owner = "layer" if QUANTITIES[attention.quantity].of_layers else "head"
    return f"0 to {'±' * any(block.signed for block in blocks)}each {owner}'s largest"


def _pool_block(block: Block) -> Weights:
    """Pool as :func:`pool_matrix`; of signed numbers, take the largest in absolute value."""
    largest_positive = pool_matrix(block.w, MAX_CELLS)
    if not block.signed:
        return largest_positive
    largest_negative = pool_matrix(-block.w, MAX_CELLS)
    return np.where(largest_positive >= largest_negative, largest_positive, -largest_negative)


def pool_matrix(w: Weights, max_size: int) -> Weights:
    """Reduce the matrix to at most ``max_size`` rows and columns by taking the largest weight of each block."""
    if w.size == 0 or max(w.shape) <= max_size:
        return w
    steps = [math.ceil(n / max_size) for n in w.shape]
    pooled_rows: Weights = np.maximum.reduceat(w, np.arange(0, w.shape[0], steps[0]), axis=0)
    return np.maximum.reduceat(pooled_rows, np.arange(0, w.shape[1], steps[1]), axis=1)
