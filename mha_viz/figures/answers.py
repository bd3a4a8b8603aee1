"""Charts of a model's answers with heads off: its words, and how they change head by head (Plotly)."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.removal import Removal
from mha_viz.attention import Head
from mha_viz.attention.answers import Answer
from mha_viz.figures.caption import both
from mha_viz.figures.charts import go
from mha_viz.figures.effects import numbered_axis
from mha_viz.figures.theme import Theme, colorscale, grid_colour, paper
from mha_viz.numerals import decimal, percent

ROW = 30  # pixels per word
Numbers = npt.NDArray[np.float64]


def word_bars(answer: Answer, is_changed: bool, theme: Theme) -> go.Figure:
    """The probabilities of words before and, if heads are off, after; the first word at the top."""
    names = [f"{place} {word}" for place, word in enumerate(answer.words)]  # keeps equal names separate
    traces = list[dict[str, Any]]()
    series = [("after", answer.after, theme.heads[1])] if is_changed else []
    for name, values, colour in (("before", answer.before, theme.heads[0]), *series):  # the first one at the top
        traces.append(
            {
                "type": "bar",
                "y": names,
                "x": values,
                "orientation": "h",
                "name": name,
                "marker": {"color": colour},
                "text": [percent(value) for value in values],
                "textposition": "outside",
                "constraintext": "none",  # narrow bars keep letters of the normal size
                "textfont": {"size": 11, "color": theme.muted},
                "cliponaxis": False,
                "customdata": [escape(word) for word in answer.words],
                "hovertemplate": f"%{{customdata}} {name}: %{{x:.4f}}<extra></extra>",
            }
        )
    top = max(answer.before.max(), answer.after.max() if is_changed else 0)
    layout: dict[str, Any] = {
        "height": 60 + (ROW if is_changed else 24) * len(names),
        "margin": {"l": 110, "r": 20, "t": 30, "b": 10},
        **paper(theme, 13),
        "xaxis": {"range": [0, 1.15 * top], "showgrid": False, "showticklabels": False, "fixedrange": True},
        "yaxis": {
            "autorange": "reversed",
            "tickvals": names,
            "ticktext": [_marked(word, word == answer.question.word) for word in answer.words],
            "fixedrange": True,
        },
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"},
        "showlegend": is_changed,
        "bargap": 0.25,
    }
    return go.Figure(traces, layout)


def _marked(word: str, is_followed: bool) -> str:
    text = escape(word if len(word) <= 14 else f"{word[:13]}…")
    return f"<b>{text}</b>" if is_followed else text


def removal_curve(removal: Removal, what: str, unit: str, theme: Theme) -> go.Figure:
    """The effect on ``what``, "sentence" or "answer", in thousandths, as ``unit`` says, while one more head is off at
    each step; the first step at which another word is the answer is marked."""
    values = 1000 * (removal.answer if what == "answer" else removal.sentence)
    names = ["no head", *(both(head) for head in removal.order)]
    trace = {
        "type": "scatter",
        "x": list(range(len(values))),
        "y": values,
        "mode": "lines+markers",
        "line": {"color": theme.heads[0], "width": 2},
        "marker": {"size": 5},
        "customdata": names,
        "hovertemplate": f"%{{x}} off, the last one %{{customdata}}: %{{y:,.1f}} {escape(unit)}<extra></extra>",
    }
    layout: dict[str, Any] = {
        "height": 280,
        "margin": {"l": 60, "r": 15, "t": 15, "b": 45},
        **paper(theme, 12),
        "xaxis": {
            "title": "heads that are off",
            "gridcolor": grid_colour(theme),
            "zeroline": False,
            "fixedrange": True,
        },
        "yaxis": {
            "title": unit,
            "rangemode": "tozero",
            "gridcolor": grid_colour(theme),
            "fixedrange": True,
            "nticks": 6,
        },
        "showlegend": False,
        **_first_change(removal.first_change, len(values), theme),
    }
    return go.Figure([trace], layout)


def _first_change(first: int | None, steps: int, theme: Theme) -> dict[str, Any]:
    """A line with a label at the first step at which another word is the answer."""
    if first is None:
        return {}
    line = {"color": theme.heads[1], "dash": "dash", "width": 1.5}
    note = {"text": f"another answer from {first} on", "x": first, "y": 1, "yref": "paper", "showarrow": False}
    side = {"xanchor": "left" if first < steps / 2 else "right", "font": {"size": 12, "color": theme.heads[1]}}
    upright = {"x0": first, "x1": first, "xref": "x", "y0": 0, "y1": 1, "yref": "y domain"}
    return {"shapes": [{"type": "line", **upright, "line": line}], "annotations": [{**note, **side}]}


def looks_and_effects(looks: Numbers, effects: Numbers, title: str, unit: str, theme: Theme) -> go.Figure:
    """Every head as a point: how specialised its attention looks, ``looks`` [layer, head], against how much it matters,
    ``effects`` [layer, head], drawn in thousandths, as ``unit`` says. A point's ``customdata`` is the head's name."""
    layers, heads = effects.shape
    traces = list[dict[str, Any]]()
    for layer in range(layers):
        every = [Head(layer, head) for head in range(heads)]
        traces.append(
            {
                "type": "scatter",
                "x": looks[layer],
                "y": 1000 * effects[layer],
                "mode": "markers",
                "name": f"layer {layer}",
                "marker": {"size": 10, "color": theme.heads[layer % len(theme.heads)], "line": {"width": 0}},
                "customdata": [str(head) for head in every],
                "hovertext": [both(head) for head in every],
                "hovertemplate": f"<b>%{{hovertext}}</b><br>%{{x:.2f}}; %{{y:,.2f}} {escape(unit)}<extra></extra>",
            }
        )
    layout: dict[str, Any] = {
        "height": 380,
        "margin": {"l": 60, "r": 15, "t": 10, "b": 45},
        **paper(theme, 12),
        "xaxis": {**_axis(title, theme), "range": _padded(looks)},
        "yaxis": {**_axis(unit, theme), "range": _padded(1000 * np.append(effects, 0)), "nticks": 6},
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"},
    }
    return go.Figure(traces, layout)


def _padded(values: Numbers) -> list[float]:
    """The range of an axis on which every point is whole."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    room = 0.06 * ((high - low) or 1)
    return [low - room, high + room]


def _axis(title: str, theme: Theme) -> dict[str, Any]:
    return {"title": title, "gridcolor": grid_colour(theme), "zeroline": False, "fixedrange": True}


def signed_grid(values: Numbers, unit: str, theme: Theme) -> go.Figure:
    """One signed number for each head, ``values`` [layer, head]; 0 has the colour of the paper."""
    layers, heads = values.shape
    limit = float(np.abs(values).max()) or 1.0
    names = [[both(Head(layer, head)) for head in range(heads)] for layer in range(layers)]
    trace = {
        "type": "heatmap",
        "z": values,
        "zmin": -limit,
        "zmax": limit,
        "colorscale": colorscale(theme.signed),
        "text": [[decimal(value) for value in row] for row in values],
        "texttemplate": "%{text}",
        "customdata": names,
        "hovertemplate": f"<b>%{{customdata}}</b><br>%{{z:.4f}} {escape(unit)}<extra></extra>",
        "xgap": 2,
        "ygap": 2,
        "showscale": False,
    }
    layout: dict[str, Any] = {
        "width": 60 + 60 * heads,
        "height": 50 + 36 * layers,
        "margin": {"l": 45, "r": 10, "t": 35, "b": 10},
        **paper(theme, 12),
        "xaxis": {**numbered_axis("H", heads, theme), "side": "top"},
        "yaxis": {**numbered_axis("L", layers, theme), "autorange": "reversed"},
    }
    return go.Figure([trace], layout)
