"""Draw a chart for files: the marks of its series, with labels, titles, legend and colour scales around them.

Margins are widened if the labels do not fit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np

from mha_viz.figures.charts.chart import (
    LEADING,
    Axis,
    Band,
    Bars,
    Cells,
    Chart,
    Direction,
    Frame,
    Line,
    Points,
    Series,
    TextAnchor,
    iter_text_marks,
    split_lines,
    width,
)
from mha_viz.figures.drawing.marks import Anchor, CellPicture, Drawing, Mark, Pixels, Polyline, Rect, shift_marks
from mha_viz.figures.drawing.theme import choose_ink
from mha_viz.figures.layout import Size, make_sheet
from mha_viz.numerals import MINUS

EDGE = 0.05  # share of the span that stays free on both sides of lines
TICKS = 6  # maximum number of ticks, unless the chart sets a number
ROUND_STEPS = (1, 2, 5, 10)  # round steps between ticks, times a power of ten


@dataclass(frozen=True)
class Scale:
    """An axis that maps values to pixels.

    ``low`` and ``high`` are its ends as numbers (for a logarithmic axis, their logarithms), at the pixels ``start`` and
    ``end``. ``names``: the names of positions, in order, if positions are names.
    """

    axis: Axis
    low: float
    high: float
    names: tuple[str, ...] = ()
    start: float = 0
    end: float = 1

    def to_number(self, value: Any) -> float:
        """Convert a value to a number along the axis; NaN for values without a position."""
        if isinstance(value, str):
            return float(self.names.index(value)) if value in self.names else math.nan
        if value is None or (self.axis.is_log and not value > 0):
            return math.nan
        return math.log10(value) if self.axis.is_log else float(value)

    def locate(self, value: Any) -> float:
        """Return the pixel position of a value."""
        return self.to_pixels(self.to_number(value))

    def to_pixels(self, number: float) -> float:
        """Return the pixel position of a number along the axis."""
        return self.start + (number - self.low) / (self.high - self.low) * (self.end - self.start)

    def locate_span(self, ends: tuple[float, float] | None) -> tuple[float, float]:
        """Return the pixel positions of two values, or of the ends of the axis."""
        return (self.start, self.end) if ends is None else (self.locate(ends[0]), self.locate(ends[1]))

    def ticks(self) -> list[tuple[float, str]]:
        """Return the numbers with labels between the ends of the axis, and their labels."""
        values: Sequence[Any] | None = self.axis.positions
        if values is not None:
            texts = self.axis.names or [_format_tick(value, self.axis.tick_format) for value in values]
            pairs = [(self.to_number(value), text) for value, text in zip(values, texts, strict=True)]
        elif self.names:
            pairs = [(float(number), name) for number, name in enumerate(self.names)]
        else:
            pairs = [(number, _format_tick(number, self.axis.tick_format)) for number in self._round_numbers()]
        low, high = sorted((self.low, self.high))
        tolerance = 1e-6 * (high - low)
        return [(number, text) for number, text in pairs if low - tolerance <= number <= high + tolerance]

    def _round_numbers(self) -> list[float]:
        """Return round numbers between the ends."""
        low, high = sorted((self.low, self.high))
        step = self.axis.tick_step
        if not step:
            min_step = (high - low) / max(1, self.axis.max_ticks or TICKS)
            power = 10.0 ** math.floor(math.log10(min_step))
            step = next(step * power for step in ROUND_STEPS if step * power >= min_step * (1 - 1e-9))
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        return [round(i * step, 10) for i in range(first, last + 1)]


def build_scale(chart: Chart, number: int, direction: Direction) -> Scale:
    """Return the horizontal or vertical axis of a plot, long enough for its series.

    If the ends would be equal, they are set one unit apart.
    """
    axis = getattr(chart.plots[number], direction)
    plots = {number, *(i for i, plot in enumerate(chart.plots) if direction == "x" and plot.x.same_x_as == number)}
    plots |= {axis.same_x_as} if axis.same_x_as is not None else set()
    series = [s for s in chart.series if s.plot in plots]
    values = [value for s in series for value in s.coordinates(direction)]
    names = tuple(dict.fromkeys(value for value in values if isinstance(value, str)))
    has_extent = any(s.has_extent(direction) for s in series)
    from_zero = axis.from_zero or any(isinstance(s, Bars) and not s.has_extent(direction) for s in series)
    low, high = axis.range or ((-0.5, len(names) - 0.5) if names else _find_ends(axis, values, has_extent, from_zero))
    return Scale(axis, *((high, low) if axis.is_reversed else (low, high)), names)


def _find_ends(axis: Axis, values: Sequence[Any], has_extent: bool, from_zero: bool) -> tuple[float, float]:
    numbers = np.array([value for value in values if value is not None], float)
    numbers = numbers[np.isfinite(numbers)]
    if axis.is_log:
        numbers = np.log10(numbers[numbers > 0])
    low, high = (float(numbers.min()), float(numbers.max())) if len(numbers) else (0.0, 1.0)
    if from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    if has_extent:
        return low - 0.5, high + 0.5
    edge = EDGE * (high - low)
    return (low if from_zero and low == 0 else low - edge), (high if from_zero and high == 0 else high + edge)


def _format_tick(value: float, tick_format: str | None) -> str:
    text = f"{value:{tick_format}}" if tick_format else f"{value:,.10f}".rstrip("0").rstrip(".")
    return text.replace("-", MINUS)


CORNERS = 20  # corners of the polygon that approximates a circle
DASHES: dict[str, tuple[float, ...]] = {"solid": (), "dot": (2, 3), "dash": (8, 4)}  # lengths in line widths
BAR_FONT_SIZE = 11  # of the texts at the ends of bars


class PlacedPlot(NamedTuple):
    """The axes of a plot in pixels, and its chart."""

    x: Scale
    y: Scale
    chart: Chart


@singledispatch
def draw_series(series: Series, plot: PlacedPlot) -> Iterator[Mark]:
    """Yield the marks of a series."""
    raise TypeError(f"{type(series).__name__} is not a series of a chart")


def compute_dashes(name: str, width: float) -> tuple[float, ...]:
    """Return the lengths of dashes and gaps of a line."""
    return tuple(length * max(1.0, width) for length in DASHES[name])


def repeat_value(value: Any, count: int) -> list[Any]:
    """Return a list with a value for each of ``count`` marks. A text or a single number is repeated."""
    return [value] * count if isinstance(value, str) or np.ndim(value) == 0 else list(value)


# ---- Cells ------------------------------------------------------------------------------------------------


@draw_series.register
def _(cells: Cells, plot: PlacedPlot) -> Iterator[Mark]:
    values = np.array(cells.values, float)
    colours = interpolate_colours(cells.scale, (values - cells.low) / (cells.high - cells.low))
    ys, xs = ([s.to_pixels(i - 0.5) for i in range(n + 1)] for s, n in zip((plot.y, plot.x), values.shape, strict=True))
    if cells.gap or np.isnan(values).any():
        yield from _draw_separate_cells(colours, np.isnan(values), xs, ys, cells.gap)
    else:
        oriented_colours = colours[:: 1 if ys[0] < ys[-1] else -1, :: 1 if xs[0] < xs[-1] else -1]
        box = (min(xs), min(ys), abs(xs[-1] - xs[0]), abs(ys[-1] - ys[0]))
        yield CellPicture(*box, np.ascontiguousarray(oriented_colours))
    for (row, column), text in np.ndenumerate(np.array(cells.texts if cells.texts is not None else [[]], object)):
        ink, centre = choose_ink(_to_hex(colours[row, column])), (plot.x.to_pixels(column), plot.y.to_pixels(row))
        yield from iter_text_marks(str(text), *centre, plot.chart.font_size, ink, "middle")


def _draw_separate_cells(
    colours: Pixels, is_empty: Any, xs: Sequence[float], ys: Sequence[float], gap: float
) -> Iterator[Rect]:
    for row, column in np.argwhere(~is_empty).tolist():
        (x, right), (y, bottom) = sorted(xs[column : column + 2]), sorted(ys[row : row + 2])
        box = (x + gap / 2, y + gap / 2, max(0.1, right - x - gap), max(0.1, bottom - y - gap))
        yield Rect(*box, _to_hex(colours[row, column]))


def _to_hex(rgb: Pixels) -> str:
    return "#" + bytes(rgb.tolist()).hex()


def interpolate_colours(scale: Sequence[str], shares: Any) -> Pixels:
    """Interpolate the colours of a scale at shares of its length, […, rgb]. Shares outside 0 to 1 are clipped."""
    stops = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in scale], float)
    positions = np.clip(np.nan_to_num(shares), 0, 1) * (len(scale) - 1)
    channels = [np.rint(np.interp(positions, np.arange(len(scale)), stops[:, i])) for i in range(3)]
    return np.stack(channels, axis=-1).astype(np.uint8)


# ---- Bars -------------------------------------------------------------------------------------------------


@draw_series.register
def _(bars: Bars, plot: PlacedPlot) -> Iterator[Mark]:
    position_axis, length_axis = (plot.y, plot.x) if bars.is_horizontal else (plot.x, plot.y)
    shares = _compute_bar_room(
        [s for s in plot.chart.series if isinstance(s, Bars) and s.plot == bars.plot], bars, position_axis
    )
    centres = [position_axis.to_number(value) for value in bars.positions]
    room = 1 - plot.chart.bar_gap
    texts = repeat_value("" if bars.texts is None else bars.texts, len(centres))
    colours = repeat_value(bars.colours, len(centres))
    for centre, value, colour, text in zip(centres, bars.lengths, colours, texts, strict=True):
        length = length_axis.to_number(value)
        if math.isnan(length):
            continue
        a, b = sorted(position_axis.to_pixels(centre + room * (share - 0.5)) for share in shares)
        c, d = sorted((length_axis.to_pixels(0.0), length_axis.to_pixels(length)))
        box = (c, a, d - c, b - a) if bars.is_horizontal else (a, c, b - a, d - c)
        yield Rect(*box, fill=colour, opacity=bars.opacity)
        if text:
            yield from iter_text_marks(
                text, d + 3, (a + b) / 2, BAR_FONT_SIZE, bars.text_colour or plot.chart.theme.ink
            )


def _compute_bar_room(all_bars: Sequence[Bars], bars: Bars, axis: Scale) -> tuple[float, float]:
    """Return the start and end of a series' bars, as shares of the width available at each position.

    Bars at the same position are drawn side by side.
    """
    bar_positions = [axis.to_number(value) for b in all_bars for value in b.positions]
    if len(set(bar_positions)) == len(bar_positions):
        return 0, 1
    index = all_bars.index(bars)
    return index / len(all_bars), (index + 1) / len(all_bars)


# ---- Lines and points -------------------------------------------------------------------------------------


def _pixel_positions(x: Any, y: Any, plot: PlacedPlot) -> list[tuple[float, float]]:
    return [(plot.x.locate(a), plot.y.locate(b)) for a, b in zip(x, y, strict=True)]


@draw_series.register
def _(line: Line, plot: PlacedPlot) -> Iterator[Mark]:
    spots = _pixel_positions(line.x, line.y, plot)
    for is_drawn, group in groupby(spots, lambda spot: not any(map(math.isnan, spot))):
        stretch = tuple(group)
        if is_drawn and len(stretch) > 1:
            yield Polyline(stretch, None, line.colour, line.width, line.opacity, compute_dashes(line.dash, line.width))
    if line.point:
        yield from (_draw_point(spot, line.point, line.colour) for spot in spots if not any(map(math.isnan, spot)))


@draw_series.register
def _(band: Band, plot: PlacedPlot) -> Iterator[Mark]:
    upper_points, lower_points = _pixel_positions(band.x, band.high, plot), _pixel_positions(band.x, band.low, plot)
    yield Polyline((*upper_points, *reversed(lower_points)), band.colour, opacity=band.opacity)


@draw_series.register
def _(points: Points, plot: PlacedPlot) -> Iterator[Mark]:
    spots = _pixel_positions(points.x, points.y, plot)
    visible_indices = [i for i, spot in enumerate(spots) if not any(map(math.isnan, spot))]
    rings, inks = repeat_value(points.ring, len(spots)), repeat_value(points.inks, len(spots))
    for i in visible_indices if not points.is_hidden else []:
        yield _draw_point(spots[i], points.size, points.colour, rings[i], points.ring_colour, points.is_square)
    for i in visible_indices if points.texts is not None else []:
        yield from iter_text_marks(points.texts[i], *spots[i], points.font_size, inks[i], "middle")  # type: ignore[index]


def _draw_point(
    centre: tuple[float, float],
    size: float,
    colour: str,
    ring: float = 0,
    ring_colour: str = "",
    is_square: bool = False,
) -> Polyline:
    angles = np.arange(CORNERS) * 2 * math.pi / CORNERS
    corners = [(math.cos(angle), math.sin(angle)) for angle in angles]
    if is_square:
        corners = [(-1, -1), (1, -1), (1, 1), (-1, 1)]
    outline = tuple((centre[0] + size / 2 * dx, centre[1] + size / 2 * dy) for dx, dy in corners)
    return Polyline(outline, colour, ring_colour if ring else None, float(ring))


def draw_frame(frame: Frame, plot: PlacedPlot) -> Mark:
    """Return the mark of a frame or a line of a chart."""
    (x0, x1), (y0, y1) = plot.x.locate_span(frame.x), plot.y.locate_span(frame.y)
    if x0 == x1 or y0 == y1:
        pattern = compute_dashes(frame.dash, frame.width)
        return Polyline(((x0, y0), (x1, y1)), None, frame.colour, frame.width, frame.opacity, pattern)
    corners = ((x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0))
    return Polyline(corners, frame.fill or None, frame.colour, frame.width, frame.opacity)


MIN_WIDTH = 620  # minimum width in pixels, to keep labels from overlapping; on a phone, charts scroll
ROW, SWATCH, SPACE = 20, 22, 18  # pixels in a legend: height of a row, width of a swatch, space between entries
SLANT = 50  # rotation of names that do not fit side by side, degrees
LABEL_GAP = 6  # pixels from an axis to its labels, and from the labels to its title
LEVELS = 64  # shades of a colour scale
# Pixels of a colour scale: thickness, length, room below it and beside it.
SCALE_THICKNESS, SCALE_LENGTH, SCALE_BOTTOM, SCALE_ROOM = 10, 240, 24, 62
GRID = 0.25  # opacity of grid lines
BLOCK_SIDES: dict[bool, TextAnchor] = {True: "bottom", False: "top"}  # by whether the text is above its position
ANCHORS: dict[str, Anchor] = {"left": "start", "center": "middle", "right": "end"}


class Box(NamedTuple):
    """The area of the plots, in pixels."""

    left: float
    top: float
    right: float
    bottom: float


class LegendEntry(NamedTuple):
    """One entry of the legend: its series and its position."""

    series: Series
    x: float
    row: int


def draw_chart(chart: Chart, size: Size, caption: str, alt: str) -> Drawing:
    """Draw the chart as marks in points, with the width of ``size``."""
    width = float(chart.width or max(MIN_WIDTH, size.pixels))
    entries = _lay_out_legend(chart, width)
    box, height = _compute_area(chart, width, entries)
    plots, muted = _place_plots(chart, box), chart.theme.muted
    marks = (
        *(
            mark
            for x, y, _ in plots
            for mark in (*_draw_grid_lines(x, y, True, muted), *_draw_grid_lines(y, x, False, muted))
        ),
        *(mark for series in chart.series for mark in draw_series(series, plots[series.plot])),
        *(draw_frame(frame, plots[frame.plot]) for frame in chart.frames),
        *(mark for plot in plots for mark in (*_draw_x_axis(plot), *_draw_y_axis(plot))),
        *_draw_titles(chart, plots, box),
        *_draw_legend(chart, entries, box, height),
        *(
            mark
            for series in chart.series
            if isinstance(series, Cells)
            for mark in _draw_colour_scale(series, chart, box, height)
        ),
    )
    side_margin = max(0.0, size.pixels - width) / 2  # a chart with a fixed width is centred
    background = None if size.transparent else chart.theme.paper
    return make_sheet(
        Drawing(
            width + 2 * side_margin,
            height,
            shift_marks(marks, side_margin, 0),
            background,
            caption,
            alt,
            {"figure": "chart"},
        ),
        size,
    )


# ---- Layout -----------------------------------------------------------------------------------------------


def _compute_area(chart: Chart, width: float, entries: Sequence[LegendEntry]) -> tuple[Box, float]:
    """Return the area of the plots and the height of the whole chart.

    Labels that do not fit into a margin make the chart higher, or its plots narrower.
    """
    margin, inner_height = chart.margin, chart.height - chart.margin.top - chart.margin.bottom
    has_scale = any(isinstance(series, Cells) and series.scale_at == "right" for series in chart.series)
    leftmost_plots = [i for i, plot in enumerate(chart.plots) if plot.x_span[0] == 0]
    left = max(margin.left, 0, *(_measure_left_room(build_scale(chart, i, "y"), chart) for i in leftmost_plots))
    box = Box(left, 0, width - margin.right - (SCALE_ROOM if has_scale else 0), inner_height)
    scales = [p.x for p, plot in zip(_place_plots(chart, box), chart.plots, strict=True) if plot.y_span[0] < 0.01]
    bottom = max(margin.bottom, *(_measure_bottom_room(x, chart) for x in scales if not x.axis.is_above), 0)
    top, rows = margin.top, entries[-1].row + 1 if entries else 0
    if chart.legend is not None and chart.legend.is_below:
        bottom += ROW * max(0, rows - 1)
    elif chart.legend is not None and rows:
        top = max(top, ROW * rows + (chart.legend.y - 1) * inner_height + 4)
    return Box(left, top, box.right, top + inner_height), top + inner_height + bottom


def _place_plots(chart: Chart, box: Box) -> list[PlacedPlot]:
    """Convert the axes of every plot to pixels."""
    placed_plots = []
    for number, plot in enumerate(chart.plots):
        (a, b), (c, d) = plot.x_span, plot.y_span
        width, height = box.right - box.left, box.bottom - box.top
        x = replace(build_scale(chart, number, "x"), start=box.left + a * width, end=box.left + b * width)
        y = replace(build_scale(chart, number, "y"), start=box.bottom - c * height, end=box.bottom - d * height)
        x, y = _equalise_units(x, y) if plot.y.has_equal_units else (x, y)
        placed_plots.append(PlacedPlot(x, y, chart))
    return placed_plots


def _equalise_units(x: Scale, y: Scale) -> Iterator[Scale]:
    """Yield the two axes with units of the same length: the longer axis is shortened."""
    unit = min(abs((s.end - s.start) / (s.high - s.low)) for s in (x, y))
    for s in (x, y):
        length = math.copysign(unit * (s.high - s.low), s.end - s.start)
        share = {"left": 0.0, "top": 1.0}.get(s.axis.anchor_side or "", 0.5)
        start = s.start + (s.end - s.start - length) * share
        yield replace(s, start=start, end=start + length)


def _measure_left_room(y: Scale, chart: Chart) -> float:
    """Return the pixels that the labels and the title of a vertical axis need."""
    if not y.axis.is_shown:
        return 0
    widest = _measure_widest(y, chart)
    return (LABEL_GAP + widest if widest else 0) + (LABEL_GAP + LEADING * chart.font_size if y.axis.title else 0)


def _measure_bottom_room(x: Scale, chart: Chart) -> float:
    """Return the pixels that the labels and the title of a horizontal axis need."""
    if not x.axis.is_shown:
        return 0
    return LABEL_GAP + _measure_label_height(x, chart) + (LABEL_GAP + LEADING * chart.font_size if x.axis.title else 0)


def _place_labels(scale: Scale) -> list[tuple[float, str]]:
    """Return the pixel positions of labels, and their texts."""
    return [(scale.to_pixels(number), text) for number, text in scale.ticks()] if scale.axis.has_labels else []


def _get_label_size(chart: Chart) -> float:
    return chart.label_font_size or chart.font_size


def _measure_widest(scale: Scale, chart: Chart) -> float:
    return max((width(text, _get_label_size(chart)) for _, text in _place_labels(scale)), default=0.0)


def _measure_label_height(x: Scale, chart: Chart) -> float:
    """Return the height of the labels of a horizontal axis."""
    turn = math.radians(_get_label_rotation(x, chart))
    rows = max((len(split_lines(text)) for _, text in _place_labels(x)), default=0)
    return _measure_widest(x, chart) * abs(math.sin(turn)) + rows * LEADING * _get_label_size(chart) * math.cos(turn)


def _get_label_rotation(x: Scale, chart: Chart) -> float:
    """Return the rotation of the labels of a horizontal axis, in degrees anticlockwise.

    Unless the axis sets it, labels are rotated only if they are crowded.
    """
    if x.axis.angle is not None:
        return -x.axis.angle
    labels = _place_labels(x)
    room = min((b - a for a, b in pairwise(sorted(position for position, _ in labels))), default=math.inf)
    return SLANT if any(width(text, _get_label_size(chart)) > room - 4 for _, text in labels) else 0.0


# ---- Axes and titles --------------------------------------------------------------------------------------


def _draw_grid_lines(scale: Scale, other_scale: Scale, is_vertical: bool, muted: str) -> Iterator[Mark]:
    """Yield lines at the labels, and at zero, if the axis has them."""
    axis = scale.axis
    lines = {number: (muted, GRID) for number, _ in scale.ticks()} if axis.grid else {}
    if axis.zero_colour and min(scale.low, scale.high) < 0 < max(scale.low, scale.high):
        lines[0.0] = (axis.zero_colour, 1.0)
    for number, (colour, opacity) in lines.items() if axis.is_shown else ():
        position = scale.to_pixels(number)
        ends = (
            ((position, other_scale.start), (position, other_scale.end))
            if is_vertical
            else ((other_scale.start, position), (other_scale.end, position))
        )
        yield Polyline(ends, None, colour, 1.0, opacity)


def _draw_y_axis(plot: PlacedPlot) -> Iterator[Mark]:
    """Yield the labels of a vertical axis, and its title."""
    x, y, chart = plot
    if not y.axis.is_shown:
        return
    right = min(x.start, x.end) - LABEL_GAP
    for y_label, text in _place_labels(y):
        yield from iter_text_marks(text, right, y_label, _get_label_size(chart), _get_label_colour(chart), "end")
    if y.axis.title:
        middle = right - _measure_widest(y, chart) - LABEL_GAP - chart.font_size / 2
        yield from iter_text_marks(
            y.axis.title, middle, (y.start + y.end) / 2, chart.font_size, chart.theme.ink, "middle", turn=90
        )


def _draw_x_axis(plot: PlacedPlot) -> Iterator[Mark]:
    """Yield the labels of a horizontal axis, and its title."""
    x, y, chart = plot
    if not x.axis.is_shown:
        return
    is_above, turn = x.axis.is_above, _get_label_rotation(x, chart)
    sign, block = -1 if is_above else 1, BLOCK_SIDES[is_above]
    edge = (min(y.start, y.end) if is_above else max(y.start, y.end)) + sign * LABEL_GAP
    for x_label, text in _place_labels(x):
        if turn:
            yield from iter_text_marks(
                text,
                x_label,
                edge,
                _get_label_size(chart),
                _get_label_colour(chart),
                "start" if is_above else "end",
                turn=turn,
            )
        else:
            yield from iter_text_marks(
                text, x_label, edge, _get_label_size(chart), _get_label_colour(chart), "middle", block
            )
    if x.axis.title:
        title_y = edge + sign * (_measure_label_height(x, chart) + LABEL_GAP)
        yield from iter_text_marks(
            x.axis.title, (x.start + x.end) / 2, title_y, chart.font_size, chart.theme.ink, "middle", block
        )


def _get_label_colour(chart: Chart) -> str:
    return chart.theme.muted if chart.has_faint_labels else chart.theme.ink


def _draw_titles(chart: Chart, placed_plots: Sequence[PlacedPlot], box: Box) -> Iterator[Mark]:
    """Yield the titles of the chart and of its plots, and the remarks."""
    size, ink = chart.title_font_size or chart.font_size, chart.theme.ink
    if chart.title:
        yield from iter_text_marks(chart.title, 4, 4, size, ink, "start", "top")
    for plot, (x, y, _) in zip(chart.plots, placed_plots, strict=True):
        position, anchor = (box.left, "left") if chart.titles_left else ((x.start + x.end) / 2, "center")
        if plot.title:
            yield from iter_text_marks(
                plot.title, position, min(y.start, y.end) - 2, size, ink, ANCHORS[anchor], "bottom"
            )
    for remark in chart.remarks:
        position = placed_plots[0].x.locate(remark.x) + {"left": 4, "right": -4}.get(remark.anchor, 0)
        block = BLOCK_SIDES[not remark.is_inside]
        font_size, colour = remark.font_size or size, remark.colour
        yield from iter_text_marks(remark.text, position, box.top, font_size, colour, ANCHORS[remark.anchor], block)


# ---- Legend and colour scales -----------------------------------------------------------------------------


def _lay_out_legend(chart: Chart, max_width: float) -> list[LegendEntry]:
    """Lay out the entries of the legend in rows, from left to right.

    A single entry is left out, unless the series requests it.
    """
    named_series = [s for s in chart.series if s.name and s.in_legend is not False]
    if chart.legend is None or (len(named_series) < 2 and not any(s.in_legend for s in named_series)):
        return []
    entries, x, row = list[LegendEntry](), chart.margin.left, 0
    for series in named_series:
        entry_width = SWATCH + width(series.name, chart.font_size) + SPACE
        if x > chart.margin.left and x + entry_width > max_width:
            x, row = chart.margin.left, row + 1
        entries.append(LegendEntry(series, x, row))
        x += entry_width
    return entries


def _draw_legend(chart: Chart, entries: Sequence[LegendEntry], box: Box, height: float) -> Iterator[Mark]:
    """Yield the entries of the legend, each after a sample of its line, its point, or a square of its colour."""
    if chart.legend is None or not entries:
        return
    rows = entries[-1].row + 1
    bottom = height if chart.legend.is_below else box.top - (chart.legend.y - 1) * (box.bottom - box.top)
    for series, x, row in entries:
        y = bottom + (row - rows + 0.5) * ROW
        yield _draw_swatch(series, x, y)
        yield from iter_text_marks(series.name, x + SWATCH, y, chart.font_size, chart.theme.ink)


def _draw_swatch(series: Series, x: float, y: float) -> Mark:
    if isinstance(series, Line):
        style = (series.colour, series.width, series.opacity, compute_dashes(series.dash, series.width))
        return Polyline(((x, y), (x + SWATCH - 6, y)), None, *style)
    if isinstance(series, Points) and not series.is_square:
        return _draw_point((x + 7, y), 10, series.colour, 0, "")
    colour, opacity = (series.colour, 1.0) if isinstance(series, Points) else ("", 1.0)
    if isinstance(series, Bars):
        colour, opacity = repeat_value(series.colours, 1)[0], series.opacity
    if isinstance(series, Band):
        colour, opacity = series.colour, series.opacity
    return Rect(x + 2, y - 5, 10, 10, colour, opacity=opacity)


def _draw_colour_scale(cells: Cells, chart: Chart, box: Box, height: float) -> Iterator[Mark]:
    """Yield the colour scale of cells with its numbers: at the right or below."""
    shades = interpolate_colours(cells.scale, (np.arange(LEVELS) + 0.5) / LEVELS)
    labels = [(share, f"{cells.low + share * (cells.high - cells.low):.2g}") for share in np.linspace(0, 1, 5)]
    size, ink = _get_label_size(chart), chart.theme.ink
    if cells.scale_at == "right":
        yield CellPicture(box.right + 12, box.top, SCALE_THICKNESS, box.bottom - box.top, shades[::-1, None])
        for share, text in labels:
            y = box.bottom - share * (box.bottom - box.top)
            yield from iter_text_marks(text.replace("-", MINUS), box.right + 16 + SCALE_THICKNESS, y, size, ink)
    elif cells.scale_at == "below":
        top = height - SCALE_BOTTOM - SCALE_THICKNESS
        yield CellPicture(box.left, top, SCALE_LENGTH, SCALE_THICKNESS, shades[None])
        for share, text in labels:
            yield from iter_text_marks(
                text.replace("-", MINUS),
                box.left + share * SCALE_LENGTH,
                top + SCALE_THICKNESS + 3,
                size,
                ink,
                "middle",
                "top",
            )
        yield from iter_text_marks(cells.unit, box.left + SCALE_LENGTH + 12, top + SCALE_THICKNESS / 2, size, ink)
