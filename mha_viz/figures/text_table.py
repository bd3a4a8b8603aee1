"""A table of texts as a chart, for pages that show it and offer it as a file (Plotly)."""

from __future__ import annotations

from collections.abc import Sequence

from mha_viz.figures.chart_text import width
from mha_viz.figures.charts import go
from mha_viz.figures.theme import Theme, paper

LETTERS, ROW, BESIDE = 12, 26, 24  # pixels: size of letters, height of a row, padding


def text_table(rows: Sequence[str], columns: Sequence[str], cells: Sequence[Sequence[str]], theme: Theme) -> go.Figure:
    """``cells`` [row, column] under their columns and beside their rows; names may contain indices (``<sub>``) and line
    breaks. Every second row is shaded."""
    left = BESIDE + max(width(name, LETTERS) for name in rows)
    texts = [text for line in (columns, *cells) for text in line]
    column = BESIDE + max(width(text, LETTERS) for text in texts)
    figure = go.Figure()
    figure.add_heatmap(
        z=[[number % 2] * len(columns) for number in range(len(rows))],
        zmin=0,
        zmax=1,
        colorscale=[[0, theme.paper], [1, theme.ramp[0]]],
        text=[list(line) for line in cells],
        texttemplate="%{text}",
        hoverinfo="skip",
        showscale=False,
    )
    figure.update_layout(
        width=left + column * len(columns) + 10,
        height=50 + ROW * len(rows) + 10,
        margin={"l": left, "r": 10, "t": 50, "b": 10},
        **paper(theme, LETTERS),
        xaxis={"tickvals": list(range(len(columns))), "ticktext": list(columns), "side": "top", "showgrid": False},
        yaxis={"tickvals": list(range(len(rows))), "ticktext": list(rows), "autorange": "reversed", "showgrid": False},
    )
    return figure
