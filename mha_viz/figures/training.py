"""Charts of a training run: what each head looks at, how alike heads are, and how that changes (Plotly).

Steps are recorded densely at first and sparsely later; curves give every recorded step the same room, so that the
effect of the first update is visible.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.figures.charts import go
from mha_viz.figures.frames import Matrix
from mha_viz.figures.theme import Theme, colorscale, grid_colour, paper
from mha_viz.numerals import decimal

LN2 = 0.6931
LABELLED = 8  # the most heads whose cells have room for their numbers
RELATION_COLOURS = (1, 2)  # indices into Theme.heads

Array = npt.NDArray[Any]


class Line(NamedTuple):
    """One curve over the recorded steps. ``colour``: an index into ``Theme.heads``, None for a faint curve."""

    name: str
    values: Array
    colour: int | None = None
    bold: bool = False
    dash: str = "solid"


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
    """Curves over the recorded steps; the step in view, number ``at``, is marked."""
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
            "gridcolor": grid_colour(theme), "zerolinecolor": grid_colour(theme), "fixedrange": True,
            "ticks": "", **(_decades(lines) if log else {"range": list(bounds) if bounds else None, "nticks": 6}),
        },
        legend={"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "font": {"size": 12}},
    )  # fmt: skip
    return go.Figure(drawn, layout)  # all at once: Plotly takes ten times as long to check what is added one by one


def _decades(lines: Sequence[Line]) -> dict[str, Any]:
    """A logarithmic axis with round numbers: powers of ten, and 2 and 5 if they are few."""
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
    """The recorded steps that are labelled on the axis: the first two, the last, and some in between."""
    every = max(1, round((len(steps) - 1) / 6))
    chosen = {0, 1, *range(every, len(steps) - every // 2 - 1, every), len(steps) - 1}
    return sorted(i for i in chosen if i < len(steps))


# ---- Runs compared --------------------------------------------------------------------------------------


def accuracies(
    names: Sequence[str], shares: Array, labels: Sequence[str], chance: float, theme: Theme, ordered: bool
) -> go.Figure:
    """Accuracy, ``shares`` [training, label], of every training of a result: curves if the trainings are ``ordered``,
    otherwise bars. ``chance`` is the accuracy of a guess."""
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
    """Accuracy while heads are removed: the least important first, the most important first, and in random orders
    [order, removed + 1] as a mean and a band that contains four fifths of them."""
    gone = list(range(len(least)))
    low, high = np.quantile(chance, (0.1, 0.9), axis=0)
    blue, orange, grey = theme.heads[0], theme.heads[1], theme.muted
    figure = go.Figure()
    figure.add_scatter(x=gone, y=high, mode="lines", line={"width": 0}, hoverinfo="skip", showlegend=False)
    figure.add_scatter(
        x=gone, y=low, mode="lines", line={"width": 0}, fill="tonexty", fillcolor=grid_colour(theme), hoverinfo="skip",
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
    figure.update_yaxes(gridcolor=grid_colour(theme), fixedrange=True, zeroline=False)
    return figure


# ---- One step ------------------------------------------------------------------------------------------


def likeness(matrix: Matrix, at: int, theme: Theme) -> go.Figure:
    """Every two heads compared at the recorded step number ``at``, in the colours of the player."""
    values = matrix.values[at].astype(np.float64)
    names = [f"H{head}" for head in range(len(values))]
    stops = theme.ramp if matrix.colours == "share" else theme.signed
    figure = go.Figure()
    figure.add_heatmap(
        z=values,
        zmin=matrix.low,
        zmax=matrix.high,
        colorscale=colorscale(stops[::-1]),
        text=[[decimal(value) for value in row] for row in values],
        texttemplate="%{text}" if len(names) <= LABELLED else None,
        xgap=1,
        ygap=1,
        showscale=False,
    )
    axis = {"tickvals": list(range(len(names))), "ticktext": names, "showgrid": False}
    side = 80 + max(260, 30 * len(names))
    figure.update_layout(
        width=side,
        height=side,
        margin={"l": 40, "r": 40, "t": 40, "b": 40},
        **paper(theme, 12),
        xaxis={**axis, "side": "top"},
        yaxis={**axis, "autorange": "reversed"},
    )
    return figure


def gradients(norms: Array, theme: Theme) -> go.Figure:
    """The norm of the gradient that arrives at each head, ``norms`` [head]."""
    figure = go.Figure()
    figure.add_bar(
        x=[float(norm) for norm in norms],
        y=[f"H{head}" for head in range(len(norms))],
        orientation="h",
        marker={"color": [theme.heads[head % len(theme.heads)] for head in range(len(norms))]},
        text=[f"{norm:.2g}" for norm in norms],
    )
    figure.update_layout(
        **paper(theme, 12), height=70 + 26 * len(norms), margin={"l": 46, "r": 60, "t": 10, "b": 40}, bargap=0.3
    )
    figure.update_xaxes(rangemode="tozero", gridcolor=grid_colour(theme), title={"text": "norm", "standoff": 4})
    figure.update_yaxes(autorange="reversed")
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
            "gridcolor": grid_colour(theme),
            "fixedrange": True,
            "zeroline": False,
        },
        "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "font": {"size": 12}},
    }


def _colour(theme: Theme, number: int | None) -> str:
    return grid_colour(theme, 0.55) if number is None else theme.heads[number % len(theme.heads)]
