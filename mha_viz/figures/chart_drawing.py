"""A chart as a drawing for files: the marks of its series, with labels, titles, legend and colour scales around them.

Margins are as wide as the chart says or, if labels need more, wider.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from mha_viz.drawing.marks import Anchor, CellPicture, Drawing, Mark, Polyline, Rect, moved
from mha_viz.figures.chart import Band, Bars, Cells, Chart, Line, Points, Series
from mha_viz.figures.chart_axes import Scale, scale
from mha_viz.figures.chart_marks import PlotPlace, dashes, each, frame_mark, marks, shaded
from mha_viz.figures.chart_text import LEADING, TextAnchor, lines, text_marks, width
from mha_viz.figures.layout import Size, sheet
from mha_viz.numerals import MINUS

NARROWEST = 620  # the least width in pixels: below it, labels would overlap; as on a phone, where charts scroll
ROW, SWATCH, SPACE = 20, 22, 18  # pixels in a legend
SLANT = 50  # rotation of names without room side by side, degrees
AWAY = 6  # pixels from an axis to its labels, and from these to its title
LEVELS = 64  # shades of a colour scale
THICK, BROAD, HANG, ASIDE = 10, 240, 24, 62  # pixels of a colour scale: itself; below it; room at the right
GRID = 0.25  # opacity of grid lines
BLOCKS: dict[bool, TextAnchor] = {True: "bottom", False: "top"}  # whether it is above its position
ANCHORS: dict[str, Anchor] = {"left": "start", "center": "middle", "right": "end"}


class Box(NamedTuple):
    """The area of the plots, in pixels."""

    left: float
    top: float
    right: float
    bottom: float


class Entry(NamedTuple):
    """One entry of the legend: its series and its position."""

    series: Series
    x: float
    row: int


def drawing(chart: Chart, size: Size, caption: str, alt: str) -> Drawing:
    """The chart as marks in points, with the width of ``size``."""
    wide = float(chart.width or max(NARROWEST, size.pixels))
    entries = _legend(chart, wide)
    box, high = _area(chart, wide, entries)
    places, muted = _places(chart, box), chart.theme.muted
    drawn = (
        *(mark for x, y, _ in places for mark in (*_grid(x, y, True, muted), *_grid(y, x, False, muted))),
        *(mark for series in chart.series for mark in marks(series, places[series.plot])),
        *(frame_mark(frame, places[frame.plot]) for frame in chart.frames),
        *(mark for place in places for mark in (*_along_x(place), *_along_y(place))),
        *_titles(chart, places, box),
        *_legend_marks(chart, entries, box, high),
        *(mark for series in chart.series if isinstance(series, Cells) for mark in _colours(series, chart, box, high)),
    )
    aside = max(0.0, size.pixels - wide) / 2  # a chart with a fixed width is centred
    background = None if size.transparent else chart.theme.paper
    return sheet(
        Drawing(wide + 2 * aside, high, moved(drawn, aside, 0), background, caption, alt, {"figure": "chart"}), size
    )


# ---- Room -------------------------------------------------------------------------------------------------


def _area(chart: Chart, wide: float, entries: Sequence[Entry]) -> tuple[Box, float]:
    """The area of the plots and the height of the whole: what does not fit into a margin makes the chart higher, or
    its plots narrower."""
    margin, inside = chart.margin, chart.height - chart.margin.top - chart.margin.below
    has_scale = any(isinstance(series, Cells) and series.scale_at == "right" for series in chart.series)
    of_rows = [_room_beside(scale(chart, i, "y"), chart) for i, plot in enumerate(chart.plots) if plot.across[0] == 0]
    left = max(margin.left, 0, *of_rows)
    box = Box(left, 0, wide - margin.right - (ASIDE if has_scale else 0), inside)
    scales = [place.x for place, plot in zip(_places(chart, box), chart.plots, strict=True) if plot.up[0] < 0.01]
    below = max(margin.below, *(_room_below(one, chart) for one in scales if not one.axis.is_above), 0)
    top, rows = margin.top, entries[-1].row + 1 if entries else 0
    if chart.legend is not None and chart.legend.is_below:
        below += ROW * max(0, rows - 1)
    elif chart.legend is not None and rows:
        top = max(top, ROW * rows + (chart.legend.up - 1) * inside + 4)
    return Box(left, top, box.right, top + inside), top + inside + below


def _places(chart: Chart, box: Box) -> list[PlotPlace]:
    """The axes of every plot."""
    places = []
    for number, plot in enumerate(chart.plots):
        (a, b), (c, d) = plot.across, plot.up
        wide, high = box.right - box.left, box.bottom - box.top
        x = replace(scale(chart, number, "x"), start=box.left + a * wide, end=box.left + b * wide)
        y = replace(scale(chart, number, "y"), start=box.bottom - c * high, end=box.bottom - d * high)
        x, y = _squared(x, y) if plot.y.square else (x, y)
        places.append(PlotPlace(x, y, chart))
    return places


def _squared(x: Scale, y: Scale) -> Iterator[Scale]:
    """The two axes with units of the same length: the longer one is shortened."""
    unit = min(abs((one.end - one.start) / (one.high - one.low)) for one in (x, y))
    for one in (x, y):
        length = math.copysign(unit * (one.high - one.low), one.end - one.start)
        share = {"left": 0.0, "top": 1.0}.get(one.axis.toward or "", 0.5)
        start = one.start + (one.end - one.start - length) * share
        yield replace(one, start=start, end=start + length)


def _room_beside(y: Scale, chart: Chart) -> float:
    """The pixels that the labels and the title of a vertical axis need."""
    if not y.axis.is_shown:
        return 0
    widest = _widest(y, chart)
    return (AWAY + widest if widest else 0) + (AWAY + LEADING * chart.letters if y.axis.title else 0)


def _room_below(x: Scale, chart: Chart) -> float:
    """The pixels that the labels and the title of a horizontal axis need."""
    if not x.axis.is_shown:
        return 0
    return AWAY + _height(x, chart) + (AWAY + LEADING * chart.letters if x.axis.title else 0)


def _labels(one: Scale) -> list[tuple[float, str]]:
    """The pixel positions of labels, and their texts."""
    return [(one.place(number), text) for number, text in one.ticks()] if one.axis.has_labels else []


def _size(chart: Chart) -> float:
    return chart.label_letters or chart.letters


def _widest(one: Scale, chart: Chart) -> float:
    return max((width(text, _size(chart)) for _, text in _labels(one)), default=0.0)


def _height(x: Scale, chart: Chart) -> float:
    """The height of the labels of a horizontal axis."""
    turn = math.radians(_turn(x, chart))
    rows = max((len(lines(text)) for _, text in _labels(x)), default=0)
    return _widest(x, chart) * abs(math.sin(turn)) + rows * LEADING * _size(chart) * math.cos(turn)


def _turn(x: Scale, chart: Chart) -> float:
    """The rotation of the labels of a horizontal axis, in degrees anticlockwise: as set, or a fixed angle if they are
    crowded."""
    if x.axis.angle is not None:
        return -x.axis.angle
    labels = _labels(x)
    room = min((b - a for a, b in pairwise(sorted(place for place, _ in labels))), default=math.inf)
    return SLANT if any(width(text, _size(chart)) > room - 4 for _, text in labels) else 0.0


# ---- Axes and titles --------------------------------------------------------------------------------------


def _grid(one: Scale, other: Scale, is_across: bool, muted: str) -> Iterator[Mark]:
    """Lines at the labels, and at zero, as far as the axis has them."""
    axis = one.axis
    drawn = {number: (muted, GRID) for number, _ in one.ticks()} if axis.grid else {}
    if axis.zero and min(one.low, one.high) < 0 < max(one.low, one.high):
        drawn[0.0] = (axis.zero, 1.0)
    for number, (colour, opacity) in drawn.items() if axis.is_shown else ():
        place = one.place(number)
        ends = ((place, other.start), (place, other.end)) if is_across else ((other.start, place), (other.end, place))
        yield Polyline(ends, None, colour, 1.0, opacity)


def _along_y(place: PlotPlace) -> Iterator[Mark]:
    """The labels of a vertical axis, and its title."""
    x, y, chart = place
    if not y.axis.is_shown:
        return
    right = min(x.start, x.end) - AWAY
    for at, text in _labels(y):
        yield from text_marks(text, right, at, _size(chart), _ink(chart), "end")
    if y.axis.title:
        middle = right - _widest(y, chart) - AWAY - chart.letters / 2
        yield from text_marks(
            y.axis.title, middle, (y.start + y.end) / 2, chart.letters, chart.theme.ink, "middle", turn=90
        )


def _along_x(place: PlotPlace) -> Iterator[Mark]:
    """The labels of a horizontal axis, and its title."""
    x, y, chart = place
    if not x.axis.is_shown:
        return
    is_above, turn = x.axis.is_above, _turn(x, chart)
    sign, block = -1 if is_above else 1, BLOCKS[is_above]
    edge = (min(y.start, y.end) if is_above else max(y.start, y.end)) + sign * AWAY
    for at, text in _labels(x):
        if turn:
            yield from text_marks(text, at, edge, _size(chart), _ink(chart), "start" if is_above else "end", turn=turn)
        else:
            yield from text_marks(text, at, edge, _size(chart), _ink(chart), "middle", block)
    if x.axis.title:
        far = edge + sign * (_height(x, chart) + AWAY)
        yield from text_marks(x.axis.title, (x.start + x.end) / 2, far, chart.letters, chart.theme.ink, "middle", block)


def _ink(chart: Chart) -> str:
    return chart.theme.muted if chart.has_faint_labels else chart.theme.ink


def _titles(chart: Chart, places: Sequence[PlotPlace], box: Box) -> Iterator[Mark]:
    """The titles of the chart and of its plots, and the remarks."""
    size, ink = chart.title_letters or chart.letters, chart.theme.ink
    if chart.title:
        yield from text_marks(chart.title, 4, 4, size, ink, "start", "top")
    for plot, (x, y, _) in zip(chart.plots, places, strict=True):
        at, anchor = (box.left, "left") if chart.titles_left else ((x.start + x.end) / 2, "center")
        if plot.title:
            yield from text_marks(plot.title, at, min(y.start, y.end) - 2, size, ink, ANCHORS[anchor], "bottom")
    for one in chart.remarks:
        at = places[0].x.at(one.x) + {"left": 4, "right": -4}.get(one.anchor, 0)
        yield from text_marks(
            one.text, at, box.top, one.letters or size, one.colour, ANCHORS[one.anchor], BLOCKS[not one.is_inside]
        )


# ---- Legend and colour scales -----------------------------------------------------------------------------


def _legend(chart: Chart, wide: float) -> list[Entry]:
    """The entries of the legend in rows, from left to right; none if it would have only one, unless the chart wants
    that."""
    named = [one for one in chart.series if one.name and one.in_legend is not False]
    if chart.legend is None or (len(named) < 2 and not any(one.in_legend for one in named)):
        return []
    entries, x, row = list[Entry](), chart.margin.left, 0
    for series in named:
        room = SWATCH + width(series.name, chart.letters) + SPACE
        if x > chart.margin.left and x + room > wide:
            x, row = chart.margin.left, row + 1
        entries.append(Entry(series, x, row))
        x += room
    return entries


def _legend_marks(chart: Chart, entries: Sequence[Entry], box: Box, high: float) -> Iterator[Mark]:
    """The entries of the legend, each after a piece of its line or a square of its colour."""
    if chart.legend is None or not entries:
        return
    rows = entries[-1].row + 1
    bottom = high if chart.legend.is_below else box.top - (chart.legend.up - 1) * (box.bottom - box.top)
    for series, x, row in entries:
        y = bottom + (row - rows + 0.5) * ROW
        yield _swatch(series, x, y)
        yield from text_marks(series.name, x + SWATCH, y, chart.letters, chart.theme.ink)


def _swatch(series: Series, x: float, y: float) -> Mark:
    if isinstance(series, Line):
        look = (series.colour, series.width, series.opacity, dashes(series.dash, series.width))
        return Polyline(((x, y), (x + SWATCH - 6, y)), None, *look)
    colour, opacity = (series.colour, 1.0) if isinstance(series, Points) else ("", 1.0)
    if isinstance(series, Bars):
        colour, opacity = each(series.colours, 1)[0], series.opacity
    if isinstance(series, Band):
        colour, opacity = series.colour, series.opacity
    return Rect(x + 2, y - 5, 10, 10, colour, opacity=opacity)


def _colours(cells: Cells, chart: Chart, box: Box, high: float) -> Iterator[Mark]:
    """The colour scale of cells with its numbers: at the right or below."""
    shades = shaded(cells.scale, (np.arange(LEVELS) + 0.5) / LEVELS)
    values = [(share, f"{cells.low + share * (cells.high - cells.low):.2g}") for share in np.linspace(0, 1, 5)]
    size, ink = _size(chart), chart.theme.ink
    if cells.scale_at == "right":
        yield CellPicture(box.right + 12, box.top, THICK, box.bottom - box.top, shades[::-1, None])
        for share, text in values:
            y = box.bottom - share * (box.bottom - box.top)
            yield from text_marks(text.replace("-", MINUS), box.right + 16 + THICK, y, size, ink)
    elif cells.scale_at == "below":
        top = high - HANG - THICK
        yield CellPicture(box.left, top, BROAD, THICK, shades[None])
        for share, text in values:
            yield from text_marks(
                text.replace("-", MINUS), box.left + share * BROAD, top + THICK + 3, size, ink, "middle", "top"
            )
        yield from text_marks(cells.unit, box.left + BROAD + 12, top + THICK / 2, size, ink)
