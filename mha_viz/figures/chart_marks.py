"""What a chart draws between its axes, as marks: bars, cells, lines, points, and shapes on top of them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from mha_viz.drawing.marks import Cells, Mark, Pixels, Polyline, Rect
from mha_viz.figures.chart_axes import Axis
from mha_viz.figures.chart_text import text_marks
from mha_viz.figures.theme import Theme, readable

CORNERS = 20  # of the polygon that is drawn as a circle
DASHES: dict[str, tuple[float, ...]] = {"dot": (2, 3), "dash": (8, 4)}  # in line widths
BAR_GAP = 0.2
LINE = 2.0
POINT = 6.0
LABEL = 12.0  # the size of letters if a chart does not set one
_RGBA = re.compile(r"rgba?\((\d+), ?(\d+), ?(\d+)(?:, ?([\d.]+))?\)")


class Place(NamedTuple):
    """The two axes of a plot."""

    x: Axis
    y: Axis


def hexadecimal(colour: str) -> tuple[str, float]:
    """A colour as "#rrggbb", and its opacity."""
    match = _RGBA.fullmatch(colour)
    if match is None:
        return colour, 1.0
    red, green, blue = (int(match[i]) for i in (1, 2, 3))
    return f"#{red:02x}{green:02x}{blue:02x}", float(match[4] or 1)


def dashes(name: str | None, width: float) -> tuple[float, ...]:
    """The lengths of dashes and gaps of a line."""
    return tuple(length * max(1.0, width) for length in DASHES.get(name or "", ()))


def each(value: Any, count: int, default: Any) -> list[Any]:
    """One value for each of ``count`` marks: a list has one for each, any other value applies to all."""
    if isinstance(value, list | tuple | np.ndarray):
        return list(value)
    return [default if value is None else value] * count


def values(trace: Any, letter: str) -> Sequence[Any]:
    """The numbers or names of a trace along an axis; marks without any are counted from 0."""
    given: Sequence[Any] | None = getattr(trace, letter)
    if given is not None:
        return given
    return range(len(getattr(trace, "y" if letter == "x" else "x")))


# ---- Cells ------------------------------------------------------------------------------------------------


def cells(trace: Any, place: Place) -> Iterator[Mark]:
    """A heatmap. Cells without a number are left out."""
    z, colours = np.array(trace.z, float), _of_cells(trace)
    rows, columns = z.shape
    xs, ys = _edges(place.x, columns), _edges(place.y, rows)
    if trace.xgap or trace.ygap or np.isnan(z).any():
        yield from _apart(colours, np.isnan(z), xs, ys, float(trace.xgap or 0), float(trace.ygap or 0))
        return
    colours = colours[:, ::-1] if xs[0] > xs[-1] else colours
    colours = colours[::-1] if ys[0] > ys[-1] else colours
    x, y = min(xs[0], xs[-1]), min(ys[0], ys[-1])
    yield Cells(x, y, abs(xs[-1] - xs[0]), abs(ys[-1] - ys[0]), np.ascontiguousarray(colours))


def cell_texts(trace: Any, place: Place, size: float) -> Iterator[Mark]:
    """The texts in the cells of a heatmap, if any, in a colour that reads well on each."""
    if not trace.texttemplate:
        return
    colours = _of_cells(trace)
    for row, line in enumerate(trace.text):
        for column, text in enumerate(line):
            ink = readable(f"#{bytes(colours[row, column].tolist()).hex()}")
            yield from text_marks(str(text), place.x.place(column), place.y.place(row), size, ink, "middle")


def _of_cells(trace: Any) -> Pixels:
    """The colour of each cell."""
    low, high = float(trace.zmin), float(trace.zmax)
    return shaded(trace.colorscale, (np.array(trace.z, float) - low) / (high - low))


def _edges(axis: Axis, count: int) -> list[float]:
    return [axis.place(i - 0.5) for i in range(count + 1)]


def _apart(
    colours: Pixels, empty: Any, xs: Sequence[float], ys: Sequence[float], dx: float, dy: float
) -> Iterator[Rect]:
    for row, column in np.argwhere(~empty).tolist():
        (x, right), (y, bottom) = sorted(xs[column : column + 2]), sorted(ys[row : row + 2])
        fill = "#" + bytes(colours[row, column].tolist()).hex()
        yield Rect(x + dx / 2, y + dy / 2, max(0.1, right - x - dx), max(0.1, bottom - y - dy), fill)


def shaded(scale: Sequence[Sequence[Any]], shares: Any) -> Pixels:
    """[…, rgb]: the colours of a scale at shares of its length; shares outside have the colour of the nearer end."""
    stops = np.array([stop for stop, _ in scale], float)
    ends = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for _, colour in scale], float)
    inside = np.clip(np.nan_to_num(shares), 0, 1)
    return np.stack([np.rint(np.interp(inside, stops, ends[:, i])) for i in range(3)], axis=-1).astype(np.uint8)


# ---- Bars -------------------------------------------------------------------------------------------------


def bars(traces: Sequence[Any], place: Place, gap: float | None, theme: Theme) -> Iterator[Mark]:
    """All bars between two axes: those at the same position are drawn side by side."""
    lies = traces[0].orientation == "h"
    along, across = (place.y, place.x) if lies else (place.x, place.y)
    places = [[along.number(value) for value in values(trace, "y" if lies else "x")] for trace in traces]
    together = len({value for some in places for value in some}) < sum(map(len, places))
    count = len(traces) if together else 1
    room = 1 - (BAR_GAP if gap is None else gap)
    for number, (trace, at) in enumerate(zip(traces, places, strict=True)):
        first = -room / 2 + (number if together else 0) * room / count
        lengths = [across.number(value) for value in values(trace, "x" if lies else "y")]
        colours = each(trace.marker.color, len(at), theme.heads[0])
        opacity = float(trace.opacity or 1) * float(1 if trace.marker.opacity is None else trace.marker.opacity)
        labels = each(trace.text, len(at), "")
        for value, length, colour, label in zip(at, lengths, colours, labels, strict=True):
            if math.isnan(length):
                continue
            a, b = sorted((along.place(value + first), along.place(value + first + room / count)))
            c, d = sorted((across.place(0.0), across.place(length)))
            fill, alpha = hexadecimal(colour)
            box = (c, a, d - c, b - a) if lies else (a, c, b - a, d - c)
            yield Rect(*box, fill=fill, opacity=opacity * alpha)
            if label:
                yield from text_marks(str(label), d + 3, (a + b) / 2, LABEL, theme.ink)


# ---- Lines and points -------------------------------------------------------------------------------------


def scatter(trace: Any, before: Any, place: Place, theme: Theme) -> Iterator[Mark]:
    """Lines, points and texts, as far as the trace has them, and the filled area between it and the trace ``before``
    it."""
    points = [(place.x.at(x), place.y.at(y)) for x, y in zip(trace.x, trace.y, strict=True)]
    mode = trace.mode or "lines"
    if trace.fill == "tonexty" and before is not None:
        other = [(place.x.at(x), place.y.at(y)) for x, y in zip(before.x, before.y, strict=True)]
        fill, opacity = hexadecimal(trace.fillcolor)
        yield Polyline((*points, *reversed(other)), fill, opacity=opacity)
    width = LINE if trace.line.width is None else float(trace.line.width)
    if "lines" in mode and width:
        stroke, opacity = hexadecimal(trace.line.color or theme.heads[0])
        for drawn, some in groupby(points, lambda point: not any(map(math.isnan, point))):
            stretch = tuple(some)
            if drawn and len(stretch) > 1:
                yield Polyline(stretch, None, stroke, width, opacity, dashes(trace.line.dash, width))
    if "markers" in mode and trace.marker.opacity != 0:
        yield from _points(trace.marker, points, theme)
    if "text" in mode:
        yield from _texts(trace, points, theme)


def _points(marker: Any, points: Sequence[tuple[float, float]], theme: Theme) -> Iterator[Mark]:
    sizes = each(marker.size, len(points), POINT)
    colours = each(marker.color, len(points), theme.heads[0])
    rings = each(marker.line.width, len(points), 0)
    for (x, y), size, colour, ring in zip(points, sizes, colours, rings, strict=True):
        if math.isnan(x) or math.isnan(y):
            continue
        fill, opacity = hexadecimal(colour)
        stroke = marker.line.color if ring else None
        corners = [(size / 2 * math.cos(t), size / 2 * math.sin(t)) for t in np.arange(CORNERS) * 2 * math.pi / CORNERS]
        if marker.symbol == "square":
            corners = [(size / 2 * i, size / 2 * j) for i, j in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
        outline = tuple((x + dx, y + dy) for dx, dy in corners)
        yield Polyline(outline, fill, stroke, float(ring), opacity)


def _texts(trace: Any, points: Sequence[tuple[float, float]], theme: Theme) -> Iterator[Mark]:
    font = trace.textfont
    sizes, colours = each(font.size, len(points), LABEL), each(font.color, len(points), theme.ink)
    for (x, y), text, size, colour in zip(points, trace.text, sizes, colours, strict=True):
        if text and not math.isnan(x) and not math.isnan(y):
            yield from text_marks(str(text), x, y, size, colour, "middle")


# ---- Shapes -----------------------------------------------------------------------------------------------


def shape(given: Any, box: tuple[float, float, float, float]) -> Mark:
    """A frame or a line in a chart; ``box`` contains its two corners in pixels."""
    x0, y0, x1, y1 = box
    width = LINE if given.line.width is None else float(given.line.width)
    stroke, opacity = hexadecimal(given.line.color or "#000000")
    if given.type == "line":
        return Polyline(((x0, y0), (x1, y1)), None, stroke, width, opacity, dashes(given.line.dash, width))
    fill = hexadecimal(given.fillcolor)[0] if given.fillcolor else None
    corners = ((x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0))
    return Polyline(corners, fill, stroke, width, opacity * float(1 if given.opacity is None else given.opacity))
