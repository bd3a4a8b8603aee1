"""Parts of the charts of Inside a head: tokens and heads along an axis, numbers as cells, and the layout."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from mha_viz.attention.trace import Array, Trace
from mha_viz.figures.charts import go
from mha_viz.figures.plots import Plots
from mha_viz.figures.theme import Theme, colorscale, paper

POOLED = 96  # rows and columns of a large matrix
LETTERS = 12  # characters of a token's label


def token_name(trace: Trace, token: int) -> str:
    """A token for a hover text: Plotly reads its labels as HTML."""
    return f"“{_token_label(trace, token)}” ({token})"


def _token_label(trace: Trace, token: int) -> str:
    text = trace.text.tokens[token].text
    return escape(text if len(text) <= LETTERS else text[: LETTERS - 1] + "…")


def token_axis(trace: Trace, tokens: Sequence[int], marked: Sequence[int]) -> dict[str, Any]:
    """Ticks by position, not by text, so that repeated tokens stay separate. Marked tokens are bold."""
    names = [f"<b>{_token_label(trace, t)}</b>" if t in marked else _token_label(trace, t) for t in tokens]
    return {"tickvals": list(range(len(names))), "ticktext": names, "showgrid": False, "zeroline": False}


def along(plots: Plots, tokens: Sequence[int], *axes: str) -> None:
    """Stores in the chart which tokens each axis shows, so that the browser can mark them in all charts."""
    plots.layout(meta={"tokens": [int(token) for token in tokens], "axes": list(axes)})


def head_axis(heads: int, per_head: int, shared: int = 1) -> dict[str, Any]:
    """At most eight heads by name, each in the middle of its ``per_head`` columns; if ``shared`` heads have the same
    columns, the first and the last of them: "H0–H3"."""
    every = range(0, heads, -(-heads // 8))
    middle = [h * per_head + (per_head - 1) / 2 for h in every]
    return {
        "tickvals": middle,
        "ticktext": [f"H{h}" if shared == 1 else f"H{h * shared}–H{(h + 1) * shared - 1}" for h in every],
        "showgrid": False,
        "zeroline": False,
        "tickangle": 0,
    }


def pooled(matrix: Array, heads: int) -> tuple[Array, int]:
    """[rows, h · d_k] reduced to root mean squares of blocks, none of which contains columns of two heads; and the
    number of columns per head."""
    d_k = matrix.shape[1] // heads
    wide = next(w for w in range(1, d_k + 1) if d_k % w == 0 and (heads * d_k // w <= POOLED or w == d_k))
    high = -(-len(matrix) // POOLED)
    squares = np.add.reduceat(matrix.astype(np.float64) ** 2, np.arange(0, len(matrix), high), axis=0)
    squares = np.add.reduceat(squares, np.arange(0, matrix.shape[1], wide), axis=1)
    sizes = np.minimum(high, len(matrix) - np.arange(0, len(matrix), high))[:, None] * wide
    return np.sqrt(squares / sizes).astype(np.float32), d_k // wide


def colour_limit(numbers: Array) -> float:
    """The end of the colour scale: these vectors have a few outliers, which would otherwise hide all other numbers."""
    return max(1e-6, float(np.percentile(np.abs(numbers), 99)))


def signed_cells(numbers: Array, limit: float, theme: Theme, bar: bool = False) -> dict[str, Any]:
    """Numbers as cells, blue below zero and orange above, strongest at ``limit``."""
    return {
        "type": "heatmap",
        "z": numbers,
        "zmin": -limit,
        "zmax": limit,
        "colorscale": colorscale(theme.signed),
        "showscale": bar,
        "colorbar": colour_bar(),
        "hovertemplate": "row %{y}, column %{x}: %{z:.3f}<extra></extra>",
    }


def signed_bars(numbers: Array, theme: Theme) -> dict[str, Any]:
    """A bar for each number of a vector, blue below zero and orange above."""
    colours = [theme.signed[5] if number > 0 else theme.signed[1] for number in numbers]
    hover = "number %{x}: %{y:.3f}<extra></extra>"
    return {"type": "bar", "y": numbers, "marker": {"color": colours}, "hovertemplate": hover}


def sized_cells(cells: Array, theme: Theme) -> dict[str, Any]:
    """Sizes, which start at 0, as cells of one hue."""
    colours = {"zmin": 0, "zmax": float(np.percentile(cells, 99.5)), "colorscale": colorscale(theme.ramp)}
    return {"type": "heatmap", "z": cells, **colours, "showscale": False, "hoverinfo": "skip"}


def bars_rightward(numbers: Array, colours: str | Sequence[str], labels: Sequence[str], digits: int) -> dict[str, Any]:
    """Horizontal bars, one below the other, each with its label at its end."""
    return {
        "type": "bar",
        "x": numbers,
        "y": list(range(len(numbers))),
        "orientation": "h",
        "marker": {"color": colours},
        "text": labels,
        "textposition": "outside",
        "cliponaxis": False,
        "hovertemplate": f"%{{x:.{digits}f}}<extra></extra>",
    }


def head_colour(theme: Theme, head: int) -> str:
    """The colour that a head has on every page."""
    return theme.heads[head % len(theme.heads)]


def head_line(theme: Theme, head: int) -> dict[str, Any]:
    """A frame around what belongs to a head."""
    return {"color": head_colour(theme, head), "width": 3}


def colour_bar() -> dict[str, Any]:
    """A narrow colour scale."""
    return {"thickness": 9, "outlinewidth": 0, "nticks": 5}


def finished(plots: Plots, theme: Theme, height: int, top: int = 10, left: int = 10, legend: bool = False) -> go.Figure:
    """The chart with its size in pixels, its margins and one size of type."""
    plots.layout(
        height=height,
        margin={"l": left, "r": 10, "t": top, "b": 40},
        **paper(theme),
        showlegend=legend,
        legend={"orientation": "h", "y": 1.07, "yanchor": "bottom", "x": 0, "itemclick": False},
    )
    plain: dict[str, Any] = {"fixedrange": True, "ticks": "", "tickfont": {"size": 12}, "title": {"font": {"size": 13}}}
    plots.x(**plain)
    plots.y(**plain)
    plots.notes(font={"size": 13})
    return plots.chart()
