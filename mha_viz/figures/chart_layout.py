"""Where the parts of a chart are, in pixels: the plot area, axes and legend, at the positions that Plotly would
choose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mha_viz.figures.chart_axes import Axis, axis
from mha_viz.figures.chart_marks import LABEL, values
from mha_viz.figures.chart_text import width

HEIGHT = 450  # defaults for what a chart does not set
ROW, SWATCH, SPACE = 20, 22, 18  # pixels in a legend
BAR_ROOM = 62  # pixels of a colour scale at the right


class Box(NamedTuple):
    """A part of the sheet, in pixels."""

    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """Its right edge."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """Its lower edge."""
        return self.top + self.height

    def part(self, across: Sequence[float], down: Sequence[float]) -> Box:
        """Its part between shares of 1, from the left and from below."""
        (a, b), (c, d) = across, down
        return Box(self.left + a * self.width, self.top + (1 - d) * self.height, (b - a) * self.width,
                   (d - c) * self.height)  # fmt: skip


class Item(NamedTuple):
    """One entry of the legend: its trace and its position."""

    trace: Any
    x: float
    row: int


def inner_box(chart: Any, wide: float, items: Sequence[Item]) -> tuple[Box, float]:
    """The area for the axes, and the height of the whole: a legend that needs more than its margin makes the chart
    higher."""
    margin, high = chart.layout.margin, float(chart.layout.height or HEIGHT)
    left, top, right, below = (float(side or 0) for side in (margin.l, margin.t, margin.r, margin.b))
    scaled = [t for t in chart.data if t.type == "heatmap" and t.showscale is not False]
    standing = [t for t in scaled if t.colorbar.orientation != "h"]
    right += BAR_ROOM if standing else 0
    rows = items[-1].row + 1 if items else 0
    inside = high - top - below
    if is_below(chart):
        more = float(ROW * max(0, rows - 1))
        below += more
    else:
        over = ((chart.layout.legend.y or 1) - 1) * inside
        more = max(0.0, rows * ROW + over + 4 - top) if rows else 0.0
        top += more
    return Box(left, top, wide - left - right, inside), high + more


def all_axes(chart: Any, inner: Box) -> dict[str, Axis]:
    """Every axis along which something is drawn, by Plotly's names: "x", "y2"."""
    used = dict.fromkeys(name for trace in chart.data for name in names_of(trace))
    root = {name: _settings(chart, name).matches or name for name in used}
    axes: dict[str, Axis] = {}
    for name in used:
        layout = _settings(chart, name)
        box = (
            inner.part(layout.domain or (0, 1), (0, 1))
            if name[0] == "x"
            else inner.part((0, 1), layout.domain or (0, 1))
        )
        ends = (box.left, box.right) if name[0] == "x" else (box.bottom, box.top)
        those = [trace for trace in chart.data if root[name] in {root[other] for other in names_of(trace)}]
        counted = any(_counts(trace, name[0]) for trace in those)
        has_bars = any(trace.type == "bar" and not _counts(trace, name[0]) for trace in those)
        places = (_along(trace, name[0]) for trace in those)
        axes[name] = axis(layout, places, *ends, 0.5 if counted else 0.0, has_bars)
    return _squared(axes)


def names_of(trace: Any) -> tuple[str, str]:
    return trace.xaxis or "x", trace.yaxis or "y"


def _settings(chart: Any, name: str) -> Any:
    return chart.layout[f"{name[0]}axis{name[1:]}"]


def _counts(trace: Any, letter: str) -> bool:
    """True if the marks of a trace take room along an axis: cells, and the feet of bars."""
    return trace.type == "heatmap" or (trace.type == "bar" and (letter == "y") is (trace.orientation == "h"))


def _along(trace: Any, letter: str) -> Iterable[Any]:
    if trace.type == "heatmap":
        return range(np.shape(trace.z)["yx".index(letter)])
    return values(trace, letter)


def _squared(axes: dict[str, Axis]) -> dict[str, Axis]:
    """If a unit must be as long vertically as horizontally, the longer axis is shortened."""
    for name, given in list(axes.items()):
        anchor = given.layout.scaleanchor
        if not anchor:
            continue
        other = axes[anchor]
        unit = min(abs((one.end - one.start) / (one.high - one.low)) for one in (given, other))
        for key, one in ((name, given), (anchor, other)):
            length = unit * abs(one.high - one.low) * (1 if one.end > one.start else -1)
            toward = {"left": 0.0, "top": 1.0, "right": 1.0, "bottom": 0.0}.get(one.layout.constraintoward or "", 0.5)
            start = one.start + (one.end - one.start - length) * toward
            axes[key] = Axis(one.layout, one.low, one.high, start, start + length, one.names)
    return axes


def partner(axes: dict[str, Axis], name: str) -> Axis:
    """The axis that this one is attached to."""
    anchor = axes[name].layout.anchor
    letter = "y" if name[0] == "x" else "x"
    return axes.get(anchor) or axes.get(letter + name[1:]) or next(a for n, a in axes.items() if n[0] == letter)


def corners(given: Any, axes: dict[str, Axis], inner: Box) -> tuple[float, float, float, float]:
    """The two corners of a shape: x, y, x, y."""
    x0, x1 = (spot(value, "x", given.xref, axes, inner) for value in (given.x0, given.x1))
    y0, y1 = (spot(value, "y", given.yref, axes, inner) for value in (given.y0, given.y1))
    return x0, y0, x1, y1


def spot(value: Any, letter: str, reference: str | None, axes: dict[str, Axis], inner: Box) -> float:
    """A position in pixels from a value along an axis, a share of its length, or a share of the area for all axes."""
    if reference == "paper":
        share = float(value)
        return inner.left + share * inner.width if letter == "x" else inner.bottom - share * inner.height
    name, _, is_share = (reference or letter).partition(" ")
    one = axes[name]
    return one.start + float(value) * (one.end - one.start) if is_share else one.at(value)


# ---- The legend -----------------------------------------------------------------------------------------------


def is_below(chart: Any) -> bool:
    """True if the legend is at the lower edge of the sheet."""
    return bool(chart.layout.legend.yref == "container")


def legend(chart: Any, wide: float) -> list[Item]:
    """The entries of the legend in rows, from left to right; none if the chart shows no legend."""
    named = [t for t in chart.data if t.type != "heatmap" and t.name and t.showlegend is not False]
    shown = chart.layout.showlegend
    if shown is False or (shown is None and len(named) < 2):
        return []
    first, size = float(chart.layout.margin.l or 0), letters_of_legend(chart)
    items, x, row = [], first, 0
    for trace in named:
        room = SWATCH + width(trace.name, size) + SPACE
        if x > first and x + room > wide:
            x, row = first, row + 1
        items.append(Item(trace, x, row))
        x += room
    return items


def letters_of_legend(chart: Any) -> float:
    """The size of the legend's letters, in pixels."""
    return float(chart.layout.legend.font.size or chart.layout.font.size or LABEL)
