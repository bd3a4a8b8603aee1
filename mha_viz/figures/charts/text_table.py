"""A table of texts as a chart, for pages that show it and offer it as a file."""

from __future__ import annotations

from collections.abc import Sequence

from mha_viz.figures.charts.chart import Axis, Cells, Chart, Margin, Plot, width
from mha_viz.figures.drawing.theme import Theme

FONT_SIZE, ROW, PADDING = 12, 26, 24  # pixels: size of letters, height of a row, horizontal padding


def draw_text_table(rows: Sequence[str], columns: Sequence[str], cells: Sequence[Sequence[str]], theme: Theme) -> Chart:
    """Draw ``cells`` [row, column] with the names of rows and columns.

    Names may contain indices (``<sub>``) and line breaks. Every second row is shaded.
    """
    left = PADDING + max(width(name, FONT_SIZE) for name in rows)
    texts = [text for row in (columns, *cells) for text in row]
    column_width = PADDING + max(width(text, FONT_SIZE) for text in texts)
    shades = [[number % 2] * len(columns) for number in range(len(rows))]
    x = Axis(positions=list(range(len(columns))), names=columns, is_above=True, grid=False)
    y = Axis(positions=list(range(len(rows))), names=rows, is_reversed=True, grid=False)
    return Chart(
        theme,
        [Cells(shades, 0, 1, (theme.paper, theme.ramp[0]), cells)],
        [Plot(x, y)],
        width=left + column_width * len(columns) + 10,
        height=50 + ROW * len(rows) + 10,
        margin=Margin(left, 10, 50, 10),
        font_size=FONT_SIZE,
    )
