"""Figures for notebooks and scripts, displayed in Jupyter and saved in any format.

>>> import mha_viz as mv
>>> a = mv.load("minilm").encode("The animal didn't cross the street because it was too tired.")
>>> a.links(layer=3, head=1, pin="q10").save("links.svg")
"""

from __future__ import annotations

from mha_viz.exports import figure_suffixes as suffixes
from mha_viz.figure.bundle import archive
from mha_viz.figure.figure import Figure, Page
from mha_viz.figure.kinds import chart, compare, difference, grid, heatmap, links, over_image
from mha_viz.figure.publication import publication, publish

__all__ = [
    "Figure",
    "Page",
    "archive",
    "chart",
    "compare",
    "difference",
    "grid",
    "heatmap",
    "links",
    "over_image",
    "publication",
    "publish",
    "suffixes",
]
