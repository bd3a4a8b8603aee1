"""A chart of a page as a static drawing: the part of Plotly's layout that the charts use, in the same pixels.

Anything that is not implemented here, such as a kind of trace or a symbol that no chart uses yet, raises an error, so
that no file silently lacks a part.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from mha_viz.drawing.marks import Drawing, Mark, moved
from mha_viz.errors import ExportError
from mha_viz.figures.chart_axes import Axis
from mha_viz.figures.chart_furniture import colour_bar, grid, labels, legend_marks, notes
from mha_viz.figures.chart_layout import all_axes, corners, inner_box, legend, names_of, partner
from mha_viz.figures.chart_marks import LABEL, Place, bars, cell_texts, cells, scatter, shape
from mha_viz.figures.layout import Size, sheet
from mha_viz.figures.theme import Theme

NARROWEST = 620  # the least width in pixels: below it, labels would overlap; as on a phone, where charts scroll
KINDS = ("heatmap", "bar", "scatter")
SYMBOLS = (None, "circle", "square")


def drawing(chart: Any, theme: Theme, size: Size, caption: str, alt: str) -> Drawing:
    """The chart as marks in points, with the width of ``size``. Raises ExportError for what cannot be drawn."""
    for trace in chart.data:
        _check(trace)
    wide = float(chart.layout.width or max(NARROWEST, size.pixels))
    items = legend(chart, wide)
    inner, high = inner_box(chart, wide, items)
    axes = all_axes(chart, inner)
    marks = (
        *(mark for name in axes for mark in grid(axes[name], name, partner(axes, name))),
        *_traces(chart, axes, theme),
        *(shape(given, corners(given, axes, inner)) for given in chart.layout.shapes),
        *(mark for name in axes for mark in labels(axes[name], name, partner(axes, name), theme)),
        *notes(chart, axes, inner, theme),
        *legend_marks(chart, items, inner, high, theme),
        *(mark for trace in chart.data for mark in colour_bar(trace, inner, high, theme)),
    )
    background = None if size.transparent else theme.paper
    aside = max(0.0, size.pixels - wide) / 2  # a chart with a fixed width is centred
    placed = moved(marks, aside, 0)
    return sheet(Drawing(wide + 2 * aside, high, placed, background, caption, alt, {"figure": "chart"}), size)


def _check(trace: Any) -> None:
    """Raise ExportError for a trace that would lose something in the file."""
    if trace.type not in KINDS:
        raise ExportError(f"A chart of the kind {trace.type!r} cannot be written.", f"Known: {', '.join(KINDS)}.")
    if trace.type == "heatmap":
        return
    if trace.error_x.array is not None or trace.error_y.array is not None:
        raise ExportError("Error bars cannot be written.", "Draw them as lines.")
    if trace.type == "scatter" and trace.marker.symbol not in SYMBOLS:
        raise ExportError(f"The symbol {trace.marker.symbol!r} cannot be written.", "Known: circle, square.")


def _traces(chart: Any, axes: dict[str, Axis], theme: Theme) -> Iterator[Mark]:
    """The marks between the axes, in the order of the traces; bars between the same axes are placed together."""
    drawn = set()
    for before, trace in pairwise((None, *chart.data)):
        place = Place(*(axes[name] for name in names_of(trace)))
        if trace.type == "heatmap":
            yield from cells(trace, place)
            yield from cell_texts(trace, place, float(chart.layout.font.size or LABEL))
        elif trace.type == "scatter":
            yield from scatter(trace, before, place, theme)
        elif names_of(trace) not in drawn:
            drawn.add(names_of(trace))
            those = [one for one in chart.data if one.type == "bar" and names_of(one) == names_of(trace)]
            yield from bars(those, place, chart.layout.bargap, theme)
