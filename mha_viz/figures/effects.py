"""Charts of the effects of switching heads off: one number per head, and one per token (Plotly)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from mha_viz.attention import Head
from mha_viz.figures.caption import both
from mha_viz.figures.charts import go
from mha_viz.figures.theme import Theme, grid_colour, palette, paper, readable
from mha_viz.numerals import three_digits

TOP, LEFT, RIGHT, BELOW = 30, 30, 4, 10  # pixels
LABELS = 24  # names of heads below a chart, as many as fit on a phone
FIXED = {"fixedrange": True}  # an axis that cannot be dragged
Numbers = npt.NDArray[np.float64]


def head_grid(
    values: Numbers,
    unit: str,
    off: Collection[Head],
    theme: Theme,
    written: Callable[[float], str] | None = None,
) -> go.Figure:
    """One number for each head, ``values`` [layer, head], as it is ``written`` (in thousandths by default); the larger,
    the stronger its colour. Cells with NaN are empty. Heads that are off are framed. A cell's ``customdata`` is the
    head's name; ``unit`` appears in its hover text: a number of thousandths where they are written so."""
    layers, heads = values.shape
    top = float(np.nanmax(values, initial=0.0)) or 1.0
    traces = [_colours(values, top, theme), _numbers(values, top, unit, off, theme, written or in_thousandths)]
    return go.Figure(traces, _layout(layers, heads, off, theme))


def token_bars(tokens: Sequence[str], values: Numbers, theme: Theme) -> go.Figure:
    """One bar for each token, in thousandths."""
    names = [f"{place} {token}" for place, token in enumerate(tokens)]  # keeps equal tokens separate
    trace = {
        "type": "bar",
        "x": names,
        "y": 1000 * values,
        "marker": {"color": theme.heads[0]},
        "customdata": [escape(token) for token in tokens],
        "hovertemplate": "%{customdata}: %{y:,.1f} thousandths<extra></extra>",
    }
    layout: dict[str, Any] = {
        "height": 250,
        "margin": {"l": 50, "r": 10, "t": 10, "b": 70},
        **paper(theme, 12),
        "xaxis": {
            "tickvals": names,
            "ticktext": [escape(token[:14]) for token in tokens],
            "tickangle": -45,
            "fixedrange": True,
        },
        "yaxis": {
            "title": "thousandths",
            "rangemode": "tozero",
            "gridcolor": grid_colour(theme),
            "fixedrange": True,
            "nticks": 5,
        },
        "bargap": 0.3,
        "showlegend": False,
    }
    return go.Figure([trace], layout)


def ranked_bars(heads: Sequence[Head], effects: Numbers, random: Numbers, unit: str, theme: Theme) -> go.Figure:
    """A bar per head in the given order, ``effects`` [head], and beside it the median of the same after removing random
    directions, ``random`` [head, draw], with a line from the smallest to the largest draw. All are drawn in
    thousandths, as ``unit`` says. A bar's ``customdata`` is the head's name."""
    places, every = range(1, len(heads) + 1), -(-len(heads) // LABELS)
    bars = {
        "type": "bar",
        "x": [*places],
        "y": 1000 * effects,
        "name": "without the head",
        "marker": {"color": theme.heads[0]},
        "customdata": [str(head) for head in heads],
        "hovertext": [both(head) for head in heads],
        "hovertemplate": f"<b>%{{hovertext}}</b>, number %{{x}}<br>%{{y:,.2f}} {escape(unit)}<extra></extra>",
    }
    names = {"tickvals": [*places[::every]], "ticktext": [str(head) for head in heads[::every]], "tickangle": -90}
    layout: dict[str, Any] = {
        "height": 340,
        "margin": {"l": 60, "r": 15, "t": 10, "b": 70},
        **paper(theme, 12),
        "xaxis": {**names, **FIXED, "showgrid": False, "range": [0.4, len(heads) + 0.6]},
        "yaxis": {"title": unit, "rangemode": "tozero", "gridcolor": grid_colour(theme), "nticks": 6, **FIXED},
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"},
        "bargap": 0.25,
    }
    return go.Figure([bars, *_draws(places, 1000 * random, unit, theme)], layout)


def _draws(places: Sequence[int], random: Numbers, unit: str, theme: Theme) -> list[dict[str, Any]]:
    """For each head's draws, [head, draw], a line over their range and a point at their median."""
    least, middle, most = random.min(1), np.median(random, axis=1), random.max(1)
    ranges = {
        "type": "scatter",
        "x": [x for place in places for x in (place, place, None)],
        "y": [y for low, high in zip(least, most, strict=True) for y in (low, high, None)],
        "name": f"random directions: range of {random.shape[1]} draws",
        "mode": "lines",
        "line": {"color": theme.ink, "width": 1.2},
        "hoverinfo": "skip",
    }
    medians = {
        "type": "scatter",
        "x": [*places],
        "y": middle,
        "name": "their median",
        "mode": "markers",
        "marker": {"color": theme.ink, "size": 4},
        "hovertext": [f"{low:,.2f} to {high:,.2f}" for low, high in zip(least, most, strict=True)],
        "hovertemplate": f"random directions, %{{hovertext}} {escape(unit)}<extra></extra>",
    }
    return [ranges, medians]


def in_thousandths(value: float) -> str:
    """A number for a cell in thousandths, with up to two significant digits: "79", "2.1", "0.4"; empty for NaN."""
    thousandths = 1000 * value
    return "" if np.isnan(value) else f"{thousandths:,.0f}" if thousandths >= 9.95 else f"{thousandths:.1f}"


def _colours(values: Numbers, top: float, theme: Theme) -> dict[str, Any]:
    """The coloured squares; ``top`` gets the strongest colour."""
    return {
        "type": "heatmap",
        "z": values,
        "zmin": 0,
        "zmax": top,
        "colorscale": [[step / (len(theme.ramp) - 1), colour] for step, colour in enumerate(theme.ramp)],
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
        "hoverinfo": "skip",
    }


def _numbers(
    values: Numbers, top: float, unit: str, off: Collection[Head], theme: Theme, written: Callable[[float], str]
) -> dict[str, Any]:
    """The number on each square, with its hover text and the data that a click on it sends."""
    layers, heads = values.shape
    every = [Head(layer, head) for layer in range(layers) for head in range(heads)]
    per_unit = 1000 if written is in_thousandths else 1
    ink = [_ink(values[head] / top, theme) for head in every]
    return {
        "type": "scatter",
        "x": [head.head for head in every],
        "y": [head.layer for head in every],
        "mode": "text+markers",
        "text": ["off" if head in off else written(values[head]) for head in every],
        "textfont": {"size": 11 if heads <= 12 else 9, "color": ink},
        "marker": {"symbol": "square", "size": 28, "opacity": 0},
        "customdata": [str(head) for head in every],
        "hovertext": [_hover(head, values[head] * per_unit, unit, head in off) for head in every],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "showlegend": False,
    }


def _layout(layers: int, heads: int, off: Collection[Head], theme: Theme) -> dict[str, Any]:
    """Size, axes, and frames around heads that are off."""
    width, height = (60, 40) if heads <= 12 and layers <= 12 else (50, 28)  # pixels of a square
    return {
        "width": LEFT + width * heads + RIGHT,
        "height": TOP + height * layers + BELOW,
        "margin": {"l": LEFT, "r": RIGHT, "t": TOP, "b": BELOW},
        **paper(theme),
        "xaxis": {**numbered_axis("H", heads, theme), "side": "top", "range": [-0.5, heads - 0.5]},
        "yaxis": {**numbered_axis("L", layers, theme), "range": [layers - 0.5, -0.5]},
        "shapes": [_frame(head, theme) for head in sorted(off)],
        "showlegend": False,
    }


def numbered_axis(letter: str, places: int, theme: Theme) -> dict[str, Any]:
    """An axis of layers or heads: L0, L1, …"""
    return {
        "showgrid": False,
        "zeroline": False,
        "ticks": "",
        "fixedrange": True,
        "tickfont": {"size": 11, "color": theme.muted},
        "tickvals": list(range(places)),
        "ticktext": [f"{letter}{place}" for place in range(places)],
    }


def _hover(head: Head, value: float, unit: str, is_off: bool) -> str:
    number = "" if np.isnan(value) else f"<br>{three_digits(value)} {escape(unit)}"
    return f"<b>{both(head)}</b>{' is off' if is_off else ''}{number}"


def _frame(head: Head, theme: Theme) -> dict[str, Any]:
    box = {"x0": head.head - 0.47, "x1": head.head + 0.47, "y0": head.layer - 0.45, "y1": head.layer + 0.45}
    return {"type": "rect", "line": {"color": theme.accent, "width": 2.5}, **box}


def _ink(strength: float, theme: Theme) -> str:
    """Black or white for text on the colour of a cell, whichever reads better."""
    if np.isnan(strength):
        return theme.muted
    red, green, blue = palette(theme.ramp)[round(255 * strength)]
    return readable(f"#{red:02x}{green:02x}{blue:02x}")
