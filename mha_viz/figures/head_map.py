"""Charts of how similar heads are: every head as a point in the plane, and the matrix of divergences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape

import numpy as np

from mha_viz.analysis.distance import LN2, FloatMatrix, Map
from mha_viz.attention import Head
from mha_viz.figures.caption import both
from mha_viz.figures.chart import Axis, Cells, Chart, Legend, Margin, Plot, Points, SeriesTexts
from mha_viz.figures.theme import Theme, ink_on, palette

# Plotly's own camera button saves a format that a paper can use.
CONFIG = {"toImageButtonOptions": {"format": "svg", "filename": "mha_viz"}, "displaylogo": False}
# Two quick clicks on two marks stay two, and are not Plotly's double click, which takes the choice back.
CLICKED = {**CONFIG, "doubleClickDelay": 0}
ABOVE = 36  # pixels for Plotly's buttons


def scatter(
    heads: Sequence[Head], drawn: Map, chosen: int, close: Sequence[int], theme: Theme, standing: bool = False
) -> Chart:
    """Every head at its position on the map, coloured by layer; the chosen one and those most similar to it are
    circled.

    The label of a point is the head's name. ``standing`` turns the map upright, for a page that is higher than it is
    wide.
    """
    points = drawn.points[:, ::-1] if standing else drawn.points  # the map is widest from left to right
    layers = sorted({head.layer for head in heads})
    series = []
    for place, layer in enumerate(layers):
        of_layer = [i for i, head in enumerate(heads) if head.layer == layer]
        # Along the ramp, from the input to the output, without its faintest end.
        r, g, b = palette(theme.ramp)[70 + round(185 * place / max(1, len(layers) - 1))]
        colour = f"#{r:02x}{g:02x}{b:02x}"
        ring = [4 if i == chosen else 2 if i in close else 0 for i in of_layer]
        texts, size = [str(heads[i].head) for i in of_layer], 16 if standing else 19
        words: SeriesTexts = {
            "labels": [str(heads[i]) for i in of_layer],
            "name": f"layer {layer}",
            "hover": "%{hovertext}",
        }
        words["hints"] = [escape(both(heads[i])) for i in of_layer]
        text = (texts, 9, ink_on(colour))
        x, y = points[of_layer].T
        series.append(Points(x, y, size, colour, ring, theme.heads[1], False, False, *text, **words))
    axis = Axis(is_shown=False, is_fixed=False)
    margin = Margin(30, 10, ABOVE, 64 if standing else 40)
    plots = [Plot(axis, replace(axis, square=True))]
    return Chart(theme, series, plots, height=640, margin=margin, legend=Legend(is_below=True))


def matrix(heads: Sequence[Head], distances: FloatMatrix, theme: Theme) -> Chart:
    """The divergence of every two heads, in percent of ln 2; the scale always runs from 0 to 100."""
    names = [both(head) for head in heads]
    labels = np.array([[f"{a} and {b}" for b in names] for a in names])
    at = [i for i, head in enumerate(heads) if head.head == 0]
    x = Axis(at=at, names=[f"L{heads[i].layer}" for i in at], grid=False, is_fixed=False, toward="left")
    y = replace(x, is_reversed=True, square=True, toward="top")
    hover, shares = "%{customdata}: %{z:.1f}%", 100 * distances / LN2
    cells = Cells(shares, 0, 100, theme.ramp[::-1], scale_at="below", unit="%", labels=labels, hover=hover)
    return Chart(theme, [cells], [Plot(x, y)], height=620, margin=Margin(30, 10, ABOVE, 84))
