"""What a chart draws between its axes, as marks of a file."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import singledispatch
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from mha_viz.drawing.marks import CellPicture, Mark, Pixels, Polyline, Rect
from mha_viz.figures.chart import Band, Bars, Cells, Chart, Frame, Line, Points, Series
from mha_viz.figures.chart_axes import Scale
from mha_viz.figures.chart_text import text_marks
from mha_viz.figures.theme import ink_on

CORNERS = 20  # of the polygon that is drawn as a circle
DASHES: dict[str, tuple[float, ...]] = {"solid": (), "dot": (2, 3), "dash": (8, 4)}  # in line widths
AT_BARS = 11  # the size of letters at the ends of bars


class PlotPlace(NamedTuple):
    """The axes of a plot, and the chart that it is part of."""

    x: Scale
    y: Scale
    chart: Chart


@singledispatch
def marks(series: Series, place: PlotPlace) -> Iterator[Mark]:
    """The marks of a series."""
    raise TypeError(f"{type(series).__name__} is not a series of a chart")


def dashes(name: str, width: float) -> tuple[float, ...]:
    """The lengths of dashes and gaps of a line."""
    return tuple(length * max(1.0, width) for length in DASHES[name])


def each(value: Any, count: int) -> list[Any]:
    """One value for each of ``count`` marks; one that is no sequence, or a text, applies to all."""
    return [value] * count if isinstance(value, str) or np.ndim(value) == 0 else list(value)


# ---- Cells ------------------------------------------------------------------------------------------------


@marks.register
def _(cells: Cells, place: PlotPlace) -> Iterator[Mark]:
    values = np.array(cells.values, float)
    colours = shaded(cells.scale, (values - cells.low) / (cells.high - cells.low))
    ys, xs = ([s.place(i - 0.5) for i in range(n + 1)] for s, n in zip((place.y, place.x), values.shape, strict=True))
    if cells.gap or np.isnan(values).any():
        yield from _apart(colours, np.isnan(values), xs, ys, cells.gap)
    else:
        upright = colours[:: 1 if ys[0] < ys[-1] else -1, :: 1 if xs[0] < xs[-1] else -1]
        box = (min(xs), min(ys), abs(xs[-1] - xs[0]), abs(ys[-1] - ys[0]))
        yield CellPicture(*box, np.ascontiguousarray(upright))
    for (row, column), text in np.ndenumerate(np.array(cells.texts if cells.texts is not None else [[]], object)):
        ink, at = ink_on(_hexadecimal(colours[row, column])), (place.x.place(column), place.y.place(row))
        yield from text_marks(str(text), *at, place.chart.letters, ink, "middle")


def _apart(colours: Pixels, empty: Any, xs: Sequence[float], ys: Sequence[float], gap: float) -> Iterator[Rect]:
    for row, column in np.argwhere(~empty).tolist():
        (x, right), (y, bottom) = sorted(xs[column : column + 2]), sorted(ys[row : row + 2])
        box = (x + gap / 2, y + gap / 2, max(0.1, right - x - gap), max(0.1, bottom - y - gap))
        yield Rect(*box, _hexadecimal(colours[row, column]))


def _hexadecimal(rgb: Pixels) -> str:
    return "#" + bytes(rgb.tolist()).hex()


def shaded(scale: Sequence[str], shares: Any) -> Pixels:
    """[…, rgb]: the colours of a scale at shares of its length; shares outside have the colour of the nearer end."""
    stops = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in scale], float)
    at = np.clip(np.nan_to_num(shares), 0, 1) * (len(scale) - 1)
    channels = [np.rint(np.interp(at, np.arange(len(scale)), stops[:, i])) for i in range(3)]
    return np.stack(channels, axis=-1).astype(np.uint8)


# ---- Bars -------------------------------------------------------------------------------------------------


@marks.register
def _(bars: Bars, place: PlotPlace) -> Iterator[Mark]:
    along, across = (place.y, place.x) if bars.lies else (place.x, place.y)
    ends = _feet([one for one in place.chart.series if isinstance(one, Bars) and one.plot == bars.plot], bars, along)
    feet = [along.number(value) for value in bars.at]
    room = 1 - place.chart.bar_gap
    texts = each("" if bars.texts is None else bars.texts, len(feet))
    for foot, value, colour, text in zip(feet, bars.lengths, each(bars.colours, len(feet)), texts, strict=True):
        length = across.number(value)
        if math.isnan(length):
            continue
        a, b = sorted(along.place(foot + room * (share - 0.5)) for share in ends)
        c, d = sorted((across.place(0.0), across.place(length)))
        box = (c, a, d - c, b - a) if bars.lies else (a, c, b - a, d - c)
        yield Rect(*box, fill=colour, opacity=bars.opacity)
        if text:
            yield from text_marks(text, d + 3, (a + b) / 2, AT_BARS, bars.text_colour or place.chart.theme.ink)


def _feet(every: Sequence[Bars], bars: Bars, along: Scale) -> tuple[float, float]:
    """The part of the room at its positions that a series takes: bars at the same position stand side by side."""
    feet = [along.number(value) for one in every for value in one.at]
    if len(set(feet)) == len(feet):
        return 0, 1
    number = every.index(bars)
    return number / len(every), (number + 1) / len(every)


# ---- Lines and points -------------------------------------------------------------------------------------


def _spots(x: Any, y: Any, place: PlotPlace) -> list[tuple[float, float]]:
    return [(place.x.at(a), place.y.at(b)) for a, b in zip(x, y, strict=True)]


@marks.register
def _(line: Line, place: PlotPlace) -> Iterator[Mark]:
    spots = _spots(line.x, line.y, place)
    for is_drawn, some in groupby(spots, lambda spot: not any(map(math.isnan, spot))):
        stretch = tuple(some)
        if is_drawn and len(stretch) > 1:
            yield Polyline(stretch, None, line.colour, line.width, line.opacity, dashes(line.dash, line.width))
    if line.point:
        yield from (_point(spot, line.point, line.colour) for spot in spots if not any(map(math.isnan, spot)))


@marks.register
def _(band: Band, place: PlotPlace) -> Iterator[Mark]:
    upper, lower = _spots(band.x, band.high, place), _spots(band.x, band.low, place)
    yield Polyline((*upper, *reversed(lower)), band.colour, opacity=band.opacity)


@marks.register
def _(points: Points, place: PlotPlace) -> Iterator[Mark]:
    spots = _spots(points.x, points.y, place)
    drawn = [i for i, spot in enumerate(spots) if not any(map(math.isnan, spot))]
    rings, inks = each(points.ring, len(spots)), each(points.inks, len(spots))
    for i in drawn if not points.is_hidden else []:
        yield _point(spots[i], points.size, points.colour, rings[i], points.ring_colour, points.is_square)
    for i in drawn if points.texts is not None else []:
        yield from text_marks(points.texts[i], *spots[i], points.letters, inks[i], "middle")  # type: ignore[index]


def _point(
    at: tuple[float, float], size: float, colour: str, ring: float = 0, ring_colour: str = "", is_square: bool = False
) -> Polyline:
    angles = np.arange(CORNERS) * 2 * math.pi / CORNERS
    corners = [(math.cos(angle), math.sin(angle)) for angle in angles]
    if is_square:
        corners = [(-1, -1), (1, -1), (1, 1), (-1, 1)]
    outline = tuple((at[0] + size / 2 * dx, at[1] + size / 2 * dy) for dx, dy in corners)
    return Polyline(outline, colour, ring_colour if ring else None, float(ring))


def frame_mark(frame: Frame, place: PlotPlace) -> Mark:
    """A frame or a line of a chart."""
    (x0, x1), (y0, y1) = place.x.span(frame.x), place.y.span(frame.y)
    if x0 == x1 or y0 == y1:
        pattern = dashes(frame.dash, frame.width)
        return Polyline(((x0, y0), (x1, y1)), None, frame.colour, frame.width, frame.opacity, pattern)
    corners = ((x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0))
    return Polyline(corners, frame.fill or None, frame.colour, frame.width, frame.opacity)
