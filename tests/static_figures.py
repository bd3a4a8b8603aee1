"""Draw one static figure of every kind."""

from __future__ import annotations

from mha_viz.attention import Head
from mha_viz.figures.drawing.marks import Drawing
from mha_viz.figures.layout import Size
from mha_viz.figures.layout.compare import compare
from mha_viz.figures.layout.difference import difference
from mha_viz.figures.layout.grid import grid
from mha_viz.figures.layout.heatmap import heatmap
from mha_viz.figures.layout.links import links
from mha_viz.figures.layout.panels import Panel
from mha_viz.figures.layout.view import View
from tests.readings import reading

H = Head(1, 2)


def figures() -> dict[str, Drawing]:
    one, two = reading(seed=1), reading(seed=2)
    return {
        "heatmap": heatmap(one, H, View(pin="q1")),
        "links": links(one, [H, Head(1, 0)], View(pin="q2")),
        "grid": grid(one),
        "compare": compare([Panel(one, H, "first"), Panel(two, H)]),
        "difference": difference(Panel(one, H), Panel(two, H)),
        "dark": heatmap(one, H, None, Size(85, 7, look="dark")),
        "transparent": links(one, [H], None, Size(transparent=True)),
    }


FIGURES = figures()
