"""Parts of the charts of Inside a head: tokens and heads along an axis, numbers as cells and as bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from mha_viz.attention.trace import Floats, Trace
from mha_viz.figures.chart import Axis, Bars, Cells, Chart, Margin, Plot, Series, one_below_another
from mha_viz.figures.theme import Theme

POOLED = 96  # rows and columns of a large matrix
LETTERS = 12  # characters of a token's label


def token_name(trace: Trace, token: int) -> str:
    """A token for a hover text: Plotly reads its labels as HTML."""
    return f"“{_token_label(trace, token)}” ({token})"


def _token_label(trace: Trace, token: int) -> str:
    text = trace.text.tokens[token].drawn
    return escape(text if len(text) <= LETTERS else text[: LETTERS - 1] + "…")


def token_axis(trace: Trace, tokens: Sequence[int], marked: Sequence[int], **properties: Any) -> Axis:
    """Ticks by position, not by text, so that repeated tokens stay separate. Marked tokens are bold."""
    names = [f"<b>{_token_label(trace, t)}</b>" if t in marked else _token_label(trace, t) for t in tokens]
    return Axis(at=list(range(len(names))), names=names, tokens=tokens, **{"grid": False, "zero": "", **properties})


def number_axis(theme: Theme, most: int, **properties: Any) -> Axis:
    """A vertical axis with lines at numbers, of which 0 has the strongest."""
    return Axis(grid=True, zero=theme.muted, most=most, **properties)


def head_axis(heads: int, per_head: int, shared: int = 1, **properties: Any) -> Axis:
    """At most eight heads by name, each in the middle of its ``per_head`` columns; if ``shared`` heads have the same
    columns, the first and the last of them: "H0–H3"."""
    every = range(0, heads, -(-heads // 8))
    names = [f"H{h}" if shared == 1 else f"H{h * shared}–H{(h + 1) * shared - 1}" for h in every]
    middle = [h * per_head + (per_head - 1) / 2 for h in every]
    return Axis(at=middle, names=names, grid=False, zero="", angle=0, **properties)


def pooled(matrix: Floats, heads: int) -> tuple[Floats, int]:
    """[rows, h · d_k] reduced to root mean squares of blocks, none of which contains columns of two heads; and the
    number of columns per head."""
    d_k = matrix.shape[1] // heads
    wide = next(w for w in range(1, d_k + 1) if d_k % w == 0 and (heads * d_k // w <= POOLED or w == d_k))
    high = -(-len(matrix) // POOLED)
    squares = np.add.reduceat(matrix.astype(np.float64) ** 2, np.arange(0, len(matrix), high), axis=0)
    squares = np.add.reduceat(squares, np.arange(0, matrix.shape[1], wide), axis=1)
    sizes = np.minimum(high, len(matrix) - np.arange(0, len(matrix), high))[:, None] * wide
    return np.sqrt(squares / sizes).astype(np.float32), d_k // wide


def colour_limit(numbers: Floats) -> float:
    """The end of the colour scale: these vectors have a few outliers, which would otherwise hide all other numbers."""
    return max(1e-6, float(np.percentile(np.abs(numbers), 99)))


def signed_cells(numbers: Floats, limit: float, theme: Theme, with_scale: bool = False, **properties: Any) -> Cells:
    """Numbers as cells, blue below zero and orange above, strongest at ``limit``."""
    usual = {"hover": "row %{y}, column %{x}: %{z:.3f}", **properties}
    return Cells(numbers, -limit, limit, theme.signed, scale_at="right" if with_scale else "", **usual)


def signed_bars(numbers: Floats, theme: Theme, plot: int) -> Bars:
    """A bar for each number of a vector, blue below zero and orange above."""
    colours = [theme.signed[5] if number > 0 else theme.signed[1] for number in numbers]
    return Bars(range(len(numbers)), numbers, colours, hover="number %{x}: %{y:.3f}", plot=plot)


def vectors_one_below_another(
    trace: Trace, rows: Mapping[str, Floats], theme: Theme, height: int, gap: float, limits: Sequence[float] = ()
) -> Chart:
    """Vectors of d_k numbers under their titles, with one horizontal axis; ``limits``: the ends of the vertical ones,
    if they are not left to each vector."""
    last, plots = len(rows) - 1, list[Plot]()
    for row, (title, up) in enumerate(zip(rows, one_below_another(len(rows), gap), strict=True)):
        x = Axis(same_as=last, has_labels=False) if row < last else Axis(title=f"i, from 0 to {trace.d_k - 1}")
        ends = (-limits[row], limits[row]) if limits else None
        plots.append(Plot(x, number_axis(theme, 4, range=ends), title, up=up))
    series = [signed_bars(numbers, theme, row) for row, numbers in enumerate(rows.values())]
    return chart_of(theme, series, plots, height, top=34, left=45, titles_left=True)


def sized_cells(cells: Floats, theme: Theme, plot: int = 0) -> Cells:
    """Sizes, which start at 0, as cells of one hue."""
    return Cells(cells, 0, float(np.percentile(cells, 99.5)), theme.ramp, hover="", plot=plot)


def bars_rightward(
    numbers: Floats, colours: str | Sequence[str], texts: Sequence[str], digits: int, plot: int = 0
) -> Bars:
    """Horizontal bars, one below the other, each with its text at its end."""
    at, hover = list(range(len(numbers))), f"%{{x:.{digits}f}}"
    return Bars(at, numbers, colours, lies=True, texts=texts, hover=hover, plot=plot)


def head_colour(theme: Theme, head: int) -> str:
    """The colour that a head has on every page."""
    return theme.heads[head % len(theme.heads)]


def chart_of(
    theme: Theme,
    series: Sequence[Series],
    plots: Sequence[Plot],
    height: int,
    top: int = 10,
    left: int = 10,
    **properties: Any,
) -> Chart:
    """A chart of Inside a head, with its margins and one size of type."""
    margin = Margin(left, 10, top, 40)
    return Chart(theme, series, plots, height, margin, label_letters=12, title_letters=13, **properties)
