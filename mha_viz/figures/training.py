"""Charts of a training run: what each head looks at, how alike heads are, and how that changes (Plotly).

Steps are recorded closely at first and seldom later; curves give every recorded step the same room, so that what
happens at the first update can be seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.figures.charts import go, make_subplots
from mha_viz.figures.head_map import readable
from mha_viz.figures.theme import Theme, faint, palette, paper, scale

LN2 = 0.6931
LABELLED = 8  # maps that have room for the words beside them
SYMBOLS = ("circle-open", "square-open")  # of the word before, of the linked word
RELATION_COLOURS = (1, 2)  # places in Theme.heads

Array = npt.NDArray[Any]


class Line(NamedTuple):
    """One curve over the recorded steps. ``colour``: a place in ``Theme.heads``, None for a faint one."""

    name: str
    values: Array
    colour: int | None = None
    bold: bool = False
    dash: str = "solid"


# ---- Heads at one step ----------------------------------------------------------------------------------


def head_maps(maps: Array, words: Sequence[str], places: Array, relations: Sequence[str], theme: Theme) -> go.Figure:
    """The map of every head, ``maps`` [head, query, key], at one step; small signs mark the words to look at,
    ``places`` [word, relation]."""
    heads, n = maps.shape[:2]
    labelled = heads <= LABELLED
    columns = min(heads, 4 if labelled else 8)
    rows, side, across, down = -(-heads // columns), *((190, 10, 42) if labelled else (94, 10, 24))  # pixels
    width, height = columns * side + (columns - 1) * across, rows * side + (rows - 1) * down
    figure = make_subplots(
        rows=rows, cols=columns, subplot_titles=[f"H{h}" for h in range(heads)], horizontal_spacing=across / width,
        vertical_spacing=down / height,
    )  # fmt: skip
    labels = np.array([[f"from {escape(a)} to {escape(b)}" for b in words] for a in words])
    for h in range(heads):
        at = {"row": h // columns + 1, "col": h % columns + 1}
        figure.add_heatmap(
            z=maps[h], zmin=0, zmax=1, colorscale=scale(theme.ramp), showscale=False, customdata=labels,
            hovertemplate=f"H{h} %{{customdata}}: %{{z:.2f}}<extra></extra>", **at,
        )  # fmt: skip
        for r, relation in enumerate(relations):
            asked = np.flatnonzero(places[:, r] >= 0)
            figure.add_scatter(
                x=places[asked, r], y=asked, mode="markers", hoverinfo="skip", marker=_mark(theme, r, heads),
                name=relation, legendgroup=relation, showlegend=h == 0, **at,
            )  # fmt: skip
    axis = {"showgrid": False, "zeroline": False, "fixedrange": True, "showticklabels": False, "ticks": ""}
    figure.update_xaxes(**axis, range=[-0.5, n - 0.5])
    figure.update_yaxes(**axis, range=[n - 0.5, -0.5])
    if labelled:
        named = {"tickvals": list(range(n)), "ticktext": [escape(word) for word in words], "showticklabels": True}
        figure.update_xaxes(**named, tickfont={"size": 10, "color": theme.muted}, tickangle=0)
        figure.update_yaxes(**named, tickfont={"size": 10, "color": theme.muted}, col=1)
    figure.update_layout(
        **paper(theme, 12),
        width=width + 32,
        height=height + 72,
        margin={"l": 28, "r": 4, "t": 24, "b": 48},
        legend={"orientation": "h", "y": 0, "yref": "container", "yanchor": "bottom", "x": 0, "itemclick": False},
    )
    figure.update_annotations(font={"size": 13, "color": theme.ink})
    return figure


def _mark(theme: Theme, relation: int, heads: int) -> dict[str, Any]:
    """An open sign that leaves the shade of its cell to be seen: a circle in it, or a square around it."""
    sizes, width = ((10, 14), 1.6) if heads <= LABELLED else ((5, 7), 1)
    colour = theme.heads[RELATION_COLOURS[relation]]  # of an open sign, the colour is that of its line
    return {"symbol": SYMBOLS[relation], "size": sizes[relation], "color": colour, "line": {"width": width}}


def likeness(weights: Array, divergence: Array, pulls: Array, theme: Theme) -> go.Figure:
    """Every two heads at one step, [head, head] each: cosine of weights, divergence of attention, cosine of
    gradients."""
    heads = len(weights)
    names = [f"H{h}" for h in range(heads)]
    titles = (
        "weights, cosine (1: same direction)",
        "attention, divergence (0: same rows)",
        "gradients, cosine (1: same direction)",
    )
    figure = make_subplots(rows=1, cols=3, subplot_titles=titles, horizontal_spacing=0.05)
    pair = np.array([[f"{a} and {b}" for b in names] for a in names])
    signed = {"zmin": -1, "zmax": 1, "colorscale": scale(theme.signed[::-1])}
    apart = {"zmin": 0, "zmax": LN2, "colorscale": scale(theme.ramp[::-1])}
    for number, (values, range_) in enumerate(((weights, signed), (divergence, apart), (pulls, signed)), start=1):
        figure.add_heatmap(
            z=values, x=names, y=names, showscale=False, xgap=2, ygap=2, customdata=pair, **range_,
            hovertemplate="%{customdata}: %{z:.3f}<extra></extra>", row=1, col=number,
        )  # fmt: skip
        if heads <= 8:
            stops = theme.ramp[::-1] if range_ is apart else theme.signed[::-1]
            figure.add_trace(_numbers(values, names, range_, stops), row=1, col=number)
    ticks = {
        "ticks": "",
        "tickfont": {"size": 10, "color": theme.muted},
        "fixedrange": True,
        "showgrid": False,
        "zeroline": False,
    }
    figure.update_xaxes(**ticks, type="category", nticks=min(heads, 16))
    figure.update_yaxes(**ticks, type="category", autorange="reversed", nticks=min(heads, 16))
    figure.update_layout(**paper(theme, 12), width=826, height=300, margin={"l": 34, "r": 6, "t": 28, "b": 28})
    figure.update_annotations(font={"size": 13, "color": theme.ink})
    return figure


def _numbers(values: Array, names: Sequence[str], scale: Mapping[str, Any], stops: tuple[str, ...]) -> go.Scatter:
    """The value of every cell, in black or white, whichever reads better on its shade."""
    low, high = scale["zmin"], scale["zmax"]
    places = (np.clip((values - low) / (high - low), 0, 1) * 255).round().astype(int).ravel()
    inks = [readable("#" + "".join(f"{c:02x}" for c in shade)) for shade in palette(stops)[places].tolist()]
    return go.Scatter(
        x=[name for _ in names for name in names],
        y=[name for name in names for _ in names],
        mode="text",
        text=[f"{value:.2f}" for value in values.ravel()],
        textfont={"size": 11 if len(names) <= 4 else 9, "color": inks},
        hoverinfo="skip",
        showlegend=False,
    )


# ---- Curves over steps ----------------------------------------------------------------------------------


def curves(
    steps: Sequence[int],
    lines: Sequence[Line],
    at: int,
    theme: Theme,
    bounds: tuple[float, float] | None = None,
    log: bool = False,
    digits: int = 3,
) -> go.Figure:
    """Curves over the recorded steps; the one in view, number ``at``, is marked."""
    drawn = [
        {
            "type": "scatter", "mode": "lines", "name": escape(line.name), "showlegend": line.colour is not None,
            "x": list(range(len(steps))), "y": line.values, "customdata": list(steps),
            "line": {"color": _colour(theme, line.colour), "width": 3 if line.bold else 1.4, "dash": line.dash},
            "hovertemplate": f"{escape(line.name)}, step %{{customdata}}: %{{y:.{digits}f}}<extra></extra>",
        }
        for line in lines
    ]  # fmt: skip
    mark = {"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "xref": "x", "yref": "y domain"}
    shown = _spread(steps)
    layout = dict(
        **paper(theme, 12),
        height=250,
        margin={"l": 46, "r": 8, "t": 8, "b": 34},
        shapes=[{**mark, "line": {"width": 1, "color": theme.accent, "dash": "dot"}}],
        xaxis={
            "tickvals": shown, "ticktext": [f"{steps[i]:,}" for i in shown], "range": [-0.4, len(steps) - 0.6],
            "fixedrange": True, "showgrid": False, "zeroline": False, "title": {"text": "step", "standoff": 4},
        },
        yaxis={
            "gridcolor": faint(theme), "zerolinecolor": faint(theme), "fixedrange": True,
            "ticks": "", **(_decades(lines) if log else {"range": list(bounds) if bounds else None, "nticks": 6}),
        },
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "font": {"size": 12}},
    )  # fmt: skip
    return go.Figure(drawn, layout)  # in one go: to check what is added one by one takes Plotly ten times as long


def _decades(lines: Sequence[Line]) -> dict[str, Any]:
    """A logarithmic axis with numbers that are read at once: powers of ten, and 2 and 5 where they are few."""
    values = np.concatenate([line.values for line in lines])
    values = values[values > 0] if (values > 0).any() else np.ones(1)
    low, high = np.log10(values.min()), np.log10(values.max())
    exponents = range(int(np.floor(low)) - 1, int(np.ceil(high)) + 1)
    marks = [m * 10.0**e for e in exponents for m in ((1,) if high - low > 1.5 else (1, 2, 5))]
    edge = 0.05 * max(high - low, 0.2)
    span = [low - edge, high + edge]
    return {
        "type": "log",
        "tickvals": marks,
        "ticktext": [f"{m:.10f}".rstrip("0").rstrip(".") for m in marks],
        "range": span,
    }


def _spread(steps: Sequence[int]) -> list[int]:
    """Recorded steps that are named on the axis: the first two, the last, and some between."""
    every = max(1, round((len(steps) - 1) / 6))
    chosen = {0, 1, *range(every, len(steps) - every // 2 - 1, every), len(steps) - 1}
    return sorted(i for i in chosen if i < len(steps))


# ---- Runs compared --------------------------------------------------------------------------------------


def accuracies(
    names: Sequence[str], shares: Array, labels: Sequence[str], chance: float, theme: Theme, ordered: bool
) -> go.Figure:
    """Share of right answers, ``shares`` [training, label], of every training of a run: curves where the trainings are
    ``ordered``, else bars. ``chance`` is the share that guessing gives."""
    figure = go.Figure()
    folded = [escape(name).replace(" ", "<br>", 1) for name in names]
    for number, label in enumerate(labels):
        colour = theme.heads[(*RELATION_COLOURS, 0)[number]]
        described = {"name": label, "hovertemplate": f"%{{x}}, {label}: %{{y:.1%}}<extra></extra>"}
        if ordered:
            line, marker = {"color": colour, "width": 2}, {"size": 9, "color": colour}
            figure.add_scatter(
                x=folded, y=shares[:, number], mode="lines+markers", line=line, marker=marker, **described
            )
        else:
            figure.add_bar(x=folded, y=shares[:, number], marker={"color": colour}, **described)
    figure.add_hline(y=chance, line={"width": 1, "dash": "dot", "color": theme.muted})
    figure.update_layout(**_shares(theme, 300), bargap=0.3)
    figure.update_xaxes(type="category", fixedrange=True, showgrid=False, tickangle=0)
    return figure


def removal(least: Array, most: Array, chance: Array, theme: Theme) -> go.Figure:
    """Share of right answers while heads are taken away: the least important first, the most important first, and in
    random orders [order, removed + 1] as a mean and a band that holds four fifths of them."""
    gone = list(range(len(least)))
    low, high = np.quantile(chance, (0.1, 0.9), axis=0)
    blue, orange, grey = theme.heads[0], theme.heads[1], theme.muted
    figure = go.Figure()
    figure.add_scatter(x=gone, y=high, mode="lines", line={"width": 0}, hoverinfo="skip", showlegend=False)
    figure.add_scatter(
        x=gone, y=low, mode="lines", line={"width": 0}, fill="tonexty", fillcolor=faint(theme), hoverinfo="skip",
        name="80% of random orders",
    )  # fmt: skip
    curves = ((chance.mean(axis=0), "at random", grey), (most, "most important first", orange))
    for values, name, colour in (*curves, (least, "least important first", blue)):
        figure.add_scatter(
            x=gone, y=values, mode="lines+markers", name=name, line={"color": colour, "width": 2}, marker={"size": 7},
            hovertemplate=f"{name}, %{{x}} removed: %{{y:.1%}}<extra></extra>",
        )  # fmt: skip
    figure.update_layout(**_shares(theme, 320))
    figure.update_xaxes(
        title={"text": "heads removed", "standoff": 6}, dtick=1, fixedrange=True, showgrid=False, zeroline=False
    )
    return figure


def importance(values: Array, order: Array, theme: Theme) -> go.Figure:
    """How much the loss would change with each head, in the order in which heads are removed."""
    figure = go.Figure()
    figure.add_bar(
        x=[f"H{h}" for h in order],
        y=[float(values[h]) for h in order],
        marker={"color": [theme.heads[h % len(theme.heads)] for h in order]},
        hovertemplate="%{x}: %{y:.3f}<extra></extra>",
    )
    figure.update_layout(**paper(theme, 12), height=320, margin={"l": 46, "r": 8, "t": 30, "b": 40}, bargap=0.3)
    figure.update_xaxes(type="category", fixedrange=True, title={"text": "removed, first to last", "standoff": 6})
    figure.update_yaxes(gridcolor=faint(theme), fixedrange=True, zeroline=False)
    return figure


# ---- Shared ---------------------------------------------------------------------------------------------


def _shares(theme: Theme, height: int) -> dict[str, Any]:
    return {
        **paper(theme, 12),
        "height": height,
        "margin": {"l": 46, "r": 8, "t": 30, "b": 40},
        "yaxis": {
            "range": [0, 1.04],
            "tickformat": ".0%",
            "gridcolor": faint(theme),
            "fixedrange": True,
            "zeroline": False,
        },
        "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "font": {"size": 12}},
    }


def _colour(theme: Theme, number: int | None) -> str:
    return faint(theme, 0.55) if number is None else theme.heads[number % len(theme.heads)]
