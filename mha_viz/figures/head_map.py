"""Charts of how similar heads are: every head as a point in the plane, and the matrix of divergences (Plotly)."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from mha_viz.analysis.distance import Map, Matrix
from mha_viz.attention import Head
from mha_viz.figures.caption import both
from mha_viz.figures.charts import go
from mha_viz.figures.theme import Theme, palette, paper, readable

# Plotly's own camera button saves a format that a paper can use.
CONFIG = {"toImageButtonOptions": {"format": "svg", "filename": "mha_viz"}, "displaylogo": False}
LN2 = 0.6931


def scatter(
    heads: Sequence[Head], drawn: Map, chosen: int, close: Sequence[int], theme: Theme, standing: bool = False
) -> go.Figure:
    """Every head at its position on the map, coloured by layer; the chosen one and those most similar to it are
    circled.

    A point's ``customdata`` is the head's name. ``standing`` turns the map upright, for a page that is higher than it
    is wide.
    """
    points = drawn.points[:, ::-1] if standing else drawn.points  # the map is widest from left to right
    layers = sorted({head.layer for head in heads})
    traces = list[dict[str, Any]]()
    for layer in layers:
        of_layer = [i for i, head in enumerate(heads) if head.layer == layer]
        ring = [4 if i == chosen else 2 if i in close else 0 for i in of_layer]
        traces.append(
            {
                "type": "scatter",
                "x": points[of_layer, 0],
                "y": points[of_layer, 1],
                "mode": "markers+text",
                "name": f"layer {layer}",
                "text": [str(heads[i].head) for i in of_layer],
                "textfont": {"size": 9, "color": readable(_shade(theme, layer, len(layers)))},
                "customdata": [str(heads[i]) for i in of_layer],
                "hovertext": [escape(both(heads[i])) for i in of_layer],
                "hovertemplate": "%{hovertext}<extra></extra>",
                "marker": {
                    "size": 16 if standing else 19,
                    "color": _shade(theme, layer, len(layers)),
                    "line": {"width": ring, "color": theme.heads[1]},
                },
            }
        )
    axis = {"visible": False, "scaleanchor": "x", "scaleratio": 1}
    layout: dict[str, Any] = {
        "xaxis": {"visible": False},
        "yaxis": axis,
        "legend": {"orientation": "h", "y": 0, "yref": "container", "yanchor": "bottom", "x": 0},
        **_sheet(theme, 640, below=64 if standing else 40),
    }
    return go.Figure(traces, layout)


def matrix(heads: Sequence[Head], distances: Matrix, theme: Theme) -> go.Figure:
    """The divergence of every two heads; the scale always runs from 0 to ln 2."""
    names = [both(head) for head in heads]
    places = list(range(len(heads)))
    labelled = [i for i in places if heads[i].head == 0]
    axis = {"tickvals": labelled, "ticktext": [f"L{heads[i].layer}" for i in labelled], "showgrid": False}
    figure = go.Figure(
        go.Heatmap(
            z=distances,
            zmin=0,
            zmax=LN2,
            colorscale=[[i / (len(theme.ramp) - 1), colour] for i, colour in enumerate(theme.ramp[::-1])],
            customdata=np.array([[f"{a} and {b}" for b in names] for a in names]),
            hovertemplate="%{customdata}: %{z:.3f} nats<extra></extra>",
            colorbar={
                "title": {"text": "nats", "side": "right"},
                "orientation": "h",
                "thickness": 10,
                "lenmode": "pixels",
                "len": 240,
                "x": 0,
                "xanchor": "left",
                "y": 0,
                "yref": "container",
                "yanchor": "bottom",
                "outlinewidth": 0,
            },
        )
    )
    figure.update_layout(
        xaxis=axis | {"constrain": "domain", "constraintoward": "left"},
        yaxis=axis | {"autorange": "reversed", "scaleanchor": "x", "constrain": "domain", "constraintoward": "top"},
        **_sheet(theme, 620, below=84),
    )
    return figure


def _sheet(theme: Theme, height: int, below: int) -> dict[str, object]:
    """The layout of the chart; ``below`` is the room for what is below the drawing. A strip above it is reserved for
    Plotly's buttons."""
    return {
        "height": height,
        "margin": {"l": 30, "r": 10, "t": 36, "b": below},
        **paper(theme),
    }


def _shade(theme: Theme, layer: int, count: int) -> str:
    """The colour of a layer along the ramp, from the input to the output, without its faintest end."""
    r, g, b = palette(theme.ramp)[70 + round(185 * layer / max(1, count - 1))]
    return f"#{r:02x}{g:02x}{b:02x}"
