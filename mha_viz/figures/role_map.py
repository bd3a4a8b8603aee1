"""Charts of what heads do: the map of roles, and the profile of one head (Plotly)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from mha_viz.analysis.findings import Finding
from mha_viz.attention import Head
from mha_viz.figures.caption import both
from mha_viz.figures.charts import go
from mha_viz.figures.role_words import COLOURS, by_head, described, short
from mha_viz.figures.theme import Theme, grid_colour, paper, readable
from mha_viz.numerals import signed

CELL, TOP, LEFT, RIGHT = (60, 40), 30, 30, 4  # pixels
LETTERS = 6  # of a role in its cell, so that it fits on a phone
FAINTEST = 0.18  # opacity of a role without a gain, or that a simple rule matches


def role_map(
    findings: Sequence[Finding],
    shape: tuple[int, int],
    chosen: Head | None,
    theme: Theme,
) -> go.Figure:
    """Layers × heads, coloured by the role that people look for most; the larger its gain, the stronger the colour, and
    faint if a simple rule does as well. Small squares mark further kinds of roles. A cell's ``customdata`` is the
    head's name."""
    roles = by_head(findings)
    every = [Head(layer, head) for layer in range(shape[0]) for head in range(shape[1])]
    marks = [
        trace
        for role in COLOURS
        if any(f.role == role for f in findings)
        for trace in _of_role(role, roles, shape, theme)
    ]
    cells = {
        "type": "scatter",
        "x": [head.head for head in every],
        "y": [head.layer for head in every],
        "mode": "text+markers",
        "text": [_cell(roles.get(head, [])) for head in every],
        "textfont": {"size": 11, "color": [_ink(roles.get(head), theme) for head in every]},
        "marker": {"symbol": "square", "size": 30, "opacity": 0},
        "customdata": [str(head) for head in every],
        "hovertext": [_hover(head, roles.get(head, [])) for head in every],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "showlegend": False,
    }
    return go.Figure([*marks, cells], {**_sheet(theme, shape), **_ring(chosen, theme)})


def _ring(chosen: Head | None, theme: Theme) -> dict[str, Any]:
    """The frame around the cell of the chosen head, for the layout."""
    if chosen is None:
        return {}
    box = {"x0": chosen.head - 0.5, "x1": chosen.head + 0.5, "y0": chosen.layer - 0.5, "y1": chosen.layer + 0.5}
    return {"shapes": [{"type": "rect", "line": {"color": theme.accent, "width": 3}, **box}]}


def _of_role(
    role: str, roles: dict[Head, list[Finding]], shape: tuple[int, int], theme: Theme
) -> tuple[dict[str, Any], ...]:
    """The cells whose main role is this one, and small squares on heads that have it beside another."""
    strength = np.full(shape, np.nan)
    for head, findings in roles.items():
        if findings[0].role == role:
            strength[head] = _strength(findings[0])
    scale = [[0, theme.paper], [1, theme.heads[COLOURS[role]]]]
    beside = [head for head, findings in roles.items() if role in {f.role for f in findings} - {findings[0].role}]
    silent = {"hoverinfo": "skip"}
    colours = {"zmin": 0, "zmax": 1, "colorscale": scale, "showscale": False, "xgap": 2, "ygap": 2}
    dots = {"type": "scatter", "mode": "markers"}
    return (
        {"type": "heatmap", "z": strength, **colours, **silent},
        {**dots, "x": [None], "y": [None], "name": role, "marker": _square(theme, role, 12)},
        {
            **dots,
            **silent,
            "x": [head.head + 0.4 - 0.13 * list(COLOURS).index(role) for head in beside],
            "y": [head.layer + 0.34 for head in beside],
            "marker": {**_square(theme, role, 7), "line": {"width": 1, "color": theme.paper}},
            "showlegend": False,
        },
    )


def _strength(finding: Finding) -> float:
    if finding.beats_upos is False:
        return FAINTEST
    return FAINTEST + (1 - FAINTEST) * min(1.0, max(0.0, finding.gain))


def _square(theme: Theme, role: str, size: int) -> dict[str, Any]:
    return {"symbol": "square", "size": size, "color": theme.heads[COLOURS[role]]}


def _cell(findings: Sequence[Finding]) -> str:
    if not findings:
        return "·"
    more = len({(f.role, short(f)) for f in findings}) - 1
    name = short(findings[0])
    cut = name if len(name) <= LETTERS else f"{name[: LETTERS - 1]}…"
    return escape(cut) + (f"<br>+{more}" if more else "")


def _ink(findings: Sequence[Finding] | None, theme: Theme) -> str:
    """Black or white for text on a coloured cell, whichever reads better."""
    if not findings:
        return theme.muted
    empty, full = (_channels(c) for c in (theme.paper, theme.heads[COLOURS[findings[0].role]]))
    mixed = empty + (full - empty) * _strength(findings[0])
    return readable("#" + "".join(f"{round(c):02x}" for c in mixed))


def _channels(colour: str) -> np.ndarray:
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)], float)


def _hover(head: Head, findings: Sequence[Finding]) -> str:
    lines = [f"<b>{both(head)}</b>", *(_folded(described(f)) for f in findings[:4])]
    if len(findings) > 4:
        lines.append(f"and {len(findings) - 4} more")
    return "<br>".join(lines if findings else [*lines, "no role found"])


def _folded(text: str, width: int = 70) -> str:
    words, lines = escape(text).split(), [""]
    for word in words:
        lines = [*lines[:-1], f"{lines[-1]} {word}".strip()] if len(lines[-1]) + len(word) < width else [*lines, word]
    return "<br>".join(lines)


def _sheet(theme: Theme, shape: tuple[int, int]) -> dict[str, Any]:
    layers, heads = shape
    width, height = CELL if heads <= 12 and layers <= 12 else (58, 30)
    width = max(width, 420 // heads)  # the legend needs this much
    ticks = {
        "showgrid": False,
        "zeroline": False,
        "ticks": "",
        "tickfont": {"size": 11, "color": theme.muted},
        "fixedrange": True,
    }
    return {
        "width": LEFT + width * heads + RIGHT,
        "height": TOP + height * layers + 50,
        "margin": {"l": LEFT, "r": RIGHT, "t": TOP, "b": 50},
        **paper(theme),
        "xaxis": {
            **ticks,
            "side": "top",
            "tickvals": list(range(heads)),
            "ticktext": [f"H{h}" for h in range(heads)],
            "range": [-0.5, heads - 0.5],
        },
        "yaxis": {
            **ticks,
            "tickvals": list(range(layers)),
            "ticktext": [f"L{layer}" for layer in range(layers)],
            "range": [layers - 0.5, -0.5],
        },
        "legend": {
            "orientation": "h",
            "y": 0,
            "yref": "container",
            "yanchor": "bottom",
            "x": 0,
            "itemclick": False,
            "itemdoubleclick": False,
        },
    }


def offsets(mass: Sequence[float], maxima: Sequence[float], places: Sequence[int], theme: Theme) -> go.Figure:
    """Where a head looks: mean weight, and share of the largest weights, at each distance from the token itself."""
    names = [signed(place) if place else "itself" for place in places]
    mean = {"type": "bar", "x": names, "y": list(mass), "name": "mean weight", "marker": {"color": theme.heads[0]}}
    largest = {"type": "bar", "x": names, "y": list(maxima), "marker": {"color": theme.heads[1]}}
    largest |= {"name": "share of the largest weights"}
    return go.Figure([mean, largest], _bars(theme, legend=True))


def scores(table: Any, step: int, title: str, theme: Theme) -> go.Figure:
    """The accuracy of every head over the steps of training, with the best at the end emphasised and named, and the
    baseline. The step axis is logarithmic and shows step + 1, because it has no zero."""
    last = table[table["step"] == table["step"].max()]
    best = last.loc[last["accuracy"].idxmax()]
    strong = (best["layer"], best["head"])
    traces = [
        _course(layer, head, of_head, (layer, head) == strong, theme)
        for (layer, head), of_head in table.groupby(["layer", "head"])
    ]
    baseline = float(last["baseline"].iloc[0])
    across = {"x0": 0, "x1": 1, "xref": "x domain", "yref": "y", "y0": baseline, "y1": baseline}
    upright = {"x0": step + 1, "x1": step + 1, "xref": "x", "y0": 0, "y1": 1, "yref": "y domain"}
    shapes = [
        {"type": "line", **across, "line": {"dash": "dot", "width": 1, "color": theme.heads[1]}},
        {"type": "line", **upright, "line": {"width": 1, "color": theme.accent}},
    ]
    name = both(Head(*map(int, strong)))
    changes = {
        "height": 190,
        "margin": {"l": 40, "r": 26, "t": 26, "b": 24},
        "title": {"text": f"{escape(title)} · <b>{name}</b>", "font": {"size": 13}, "x": 0, "y": 0.97},
        "xaxis": {
            "type": "log",
            "fixedrange": True,
            "gridcolor": grid_colour(theme),
            "tickvals": [place + 1 for place in PLACES],
            "ticktext": [f"{place:,}" for place in PLACES],
        },
        "yaxis": {"range": [0, 1.03], "tickformat": ".0%", "gridcolor": grid_colour(theme), "fixedrange": True},
        "hovermode": "closest",
    }
    return go.Figure(traces, {**_bars(theme, legend=False), **changes, "shapes": shapes})


def _course(layer: int, head: int, of_head: Any, is_strong: bool, theme: Theme) -> dict[str, Any]:
    """The accuracy of one head over the steps of training."""
    return {
        "type": "scatter",
        "x": of_head["step"].to_numpy() + 1,
        "y": of_head["accuracy"],
        "mode": "lines",
        "name": both(Head(int(layer), int(head))),
        "line": {"width": 3 if is_strong else 1, "color": theme.heads[0] if is_strong else theme.muted},
        "customdata": of_head["step"],
        "hovertemplate": "step %{customdata:,}: %{y:.0%}",
        "zorder": int(is_strong),
    }


PLACES = (0, 10, 30, 100, 300, 1000, 3000, 10000)  # steps of training that are named below the scores


def shares(names: Sequence[str], values: Sequence[float], theme: Theme) -> go.Figure:
    """Shares of a total as bars."""
    bars = {"type": "bar", "x": list(map(escape, names)), "y": list(values), "marker": {"color": theme.heads[4]}}
    return go.Figure([bars], _bars(theme, legend=False))


def against_rules(
    names: Sequence[str], score: Sequence[float], rules: Mapping[str, Sequence[float]], theme: Theme
) -> go.Figure:
    """One bar per name for the score of its best head, with a mark for the score of each of the ``rules``."""
    places = list(range(len(names)))
    bars = {"type": "bar", "y": places, "x": list(score), "orientation": "h", "name": "best head"}
    traces = [{**bars, "marker": {"color": theme.heads[0]}}]
    for colour, (rule, values) in enumerate(rules.items(), 1):
        marker = {"color": theme.heads[colour], "size": 8, "symbol": "square"}
        marks = {"type": "scatter", "y": places, "x": list(values), "mode": "markers"}
        traces.append({**marks, "name": rule, "marker": marker})
    ticks = {"tickvals": places, "ticktext": list(map(escape, names))}
    layout = {
        "height": 70 + 20 * len(names),
        "margin": {"l": 190, "r": 16, "t": 30, "b": 30},
        **paper(theme, 12),
        "xaxis": {"range": [0, 1], "tickformat": ".0%", "gridcolor": grid_colour(theme)},
        "yaxis": {**ticks, "range": [len(names) - 0.5, -0.5], "showgrid": False},
        "bargap": 0.35,
        "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0},
    }
    return go.Figure(traces, layout)


def _bars(theme: Theme, legend: bool) -> dict[str, Any]:
    """The layout of small bar charts of shares."""
    return {
        "height": 230,
        "margin": {"l": 40, "r": 10, "t": 30 if legend else 10, "b": 30},
        **paper(theme, 12),
        "yaxis": {"range": [0, 1], "gridcolor": grid_colour(theme), "fixedrange": True},
        "xaxis": {"fixedrange": True, "type": "category"},
        "bargap": 0.25,
        "showlegend": legend,
        "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0},
    }
