"""Everything in a chart besides its marks: grid lines, labels, titles, notes, the legend, and colour scales."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from mha_viz.drawing.marks import Anchor, Cells, Mark, Polyline
from mha_viz.figures.chart_axes import Axis
from mha_viz.figures.chart_layout import ROW, SWATCH, Box, Item, is_below, letters_of_legend, spot
from mha_viz.figures.chart_marks import LABEL, dashes, hexadecimal, shaded
from mha_viz.figures.chart_text import Block, text_marks, width
from mha_viz.figures.theme import Theme

SLANT = 50  # rotation of names without room side by side, degrees
AWAY = 6  # pixels from an axis to its labels
TITLE_AWAY = 30  # pixels from an axis to its title
LEVELS = 64  # shades of a colour scale
HANG = 24  # pixels of the lower margin below a horizontal colour scale, for its numbers
ANCHORS: dict[str, Anchor] = {"left": "start", "center": "middle", "right": "end"}
BLOCKS: dict[str, Block] = {"top": "top", "bottom": "bottom"}


def grid(axis: Axis, name: str, other: Axis) -> Iterator[Mark]:
    """Lines at the ticks, and at zero, as far as the chart has them."""
    layout = axis.layout
    lines = {place: layout.gridcolor for place, _ in axis.ticks()} if layout.showgrid is not False else {}
    if (
        layout.zerolinecolor
        and layout.zeroline is not False
        and min(axis.low, axis.high) < 0 < max(axis.low, axis.high)
    ):
        lines[axis.place(0.0)] = layout.zerolinecolor
    if layout.visible is False:
        return
    for place, colour in lines.items():
        if colour:
            stroke, opacity = hexadecimal(colour)
            ends = ((place, other.start), (place, other.end)) if name[0] == "x" else (
                (other.start, place), (other.end, place)
            )  # fmt: skip
            yield Polyline(ends, None, stroke, 1.0, opacity)


def labels(axis: Axis, name: str, other: Axis, theme: Theme) -> Iterator[Mark]:
    """The labels along an axis, and its title."""
    layout = axis.layout
    if layout.visible is False:
        return
    size, colour = float(layout.tickfont.size or LABEL), layout.tickfont.color or theme.ink
    ticks = axis.ticks() if layout.showticklabels is not False else []
    edges = sorted((other.start, other.end))
    if name[0] == "y":
        for place, text in ticks:
            yield from text_marks(text, edges[0] - AWAY, place, size, colour, "end")
        if layout.title.text:
            x = edges[0] - TITLE_AWAY - max((width(text, size) for _, text in ticks), default=0.0)
            yield from text_marks(layout.title.text, x, sum((axis.start, axis.end)) / 2, LABEL, theme.ink, "middle",
                                  turn=90)  # fmt: skip
        return
    is_above = layout.side == "top"
    y = edges[0] - AWAY if is_above else edges[1] + AWAY
    turn = _turn(ticks, size, layout.tickangle)
    for place, text in ticks:
        if turn:
            yield from text_marks(text, place, y, size, colour, "start" if is_above else "end", turn=turn)
        else:
            yield from text_marks(text, place, y, size, colour, "middle", "bottom" if is_above else "top")
    if layout.title.text:
        far = max((width(text, size) for _, text in ticks), default=0.0) if turn else size
        y = y - far - AWAY if is_above else y + far + AWAY
        middle = sum((axis.start, axis.end)) / 2
        yield from text_marks(layout.title.text, middle, y, LABEL, theme.ink, "middle", "bottom" if is_above else "top")


def _turn(ticks: Sequence[tuple[float, str]], size: float, angle: float | None) -> float:
    """The rotation of the labels of a horizontal axis, in degrees anticlockwise: as set, or a fixed angle if they are
    crowded."""
    if angle is not None:
        return -float(angle)
    places = sorted(place for place, _ in ticks)
    room = min((b - a for a, b in pairwise(places)), default=np.inf)
    return SLANT if any(width(text, size) > room - 4 for _, text in ticks) else 0.0


def notes(chart: Any, axes: dict[str, Axis], inner: Box, theme: Theme) -> Iterator[Mark]:
    """The title, and notes such as the titles of parts."""
    title = chart.layout.title
    if title.text:
        yield from text_marks(title.text, 4, 4, float(title.font.size or LABEL), theme.ink, "start", "top")
    for note in chart.layout.annotations:
        x = spot(note.x, "x", note.xref, axes, inner)
        y = spot(note.y, "y", note.yref, axes, inner)
        anchor = ANCHORS.get(note.xanchor or "center", "middle")
        block = BLOCKS.get(note.yanchor or "", "middle")
        size = float(note.font.size or LABEL)
        yield from text_marks(note.text, x, y, size, note.font.color or theme.ink, anchor, block)


def legend_marks(chart: Any, items: Sequence[Item], inner: Box, high: float, theme: Theme) -> Iterator[Mark]:
    """The entries of the legend, each after a piece of its line or a square of its colour."""
    if not items:
        return
    rows, size = items[-1].row + 1, letters_of_legend(chart)
    above = inner.top - ((chart.layout.legend.y or 1) - 1) * inner.height - rows * ROW
    top = high - rows * ROW if is_below(chart) else above
    for trace, x, row in items:
        y = top + (row + 0.5) * ROW
        yield from _swatch(trace, x, y, theme)
        yield from text_marks(trace.name, x + SWATCH, y, size, theme.ink)


def _swatch(trace: Any, x: float, y: float, theme: Theme) -> Iterator[Mark]:
    if trace.type == "scatter" and "lines" in (trace.mode or "lines") and trace.line.width != 0:
        stroke, opacity = hexadecimal(trace.line.color or theme.heads[0])
        broad = float(trace.line.width or 2)
        yield Polyline(((x, y), (x + SWATCH - 6, y)), None, stroke, broad, opacity, dashes(trace.line.dash, broad))
        return
    colour = trace.fillcolor if trace.type == "scatter" and trace.fill else trace.marker.color
    fill, opacity = hexadecimal(colour if isinstance(colour, str) else theme.heads[0])
    half, middle = 5, x + 7
    square = ((-half, -half), (half, -half), (half, half), (-half, half))
    strength = 1.0 if trace.type == "scatter" or trace.marker.opacity is None else float(trace.marker.opacity)
    yield Polyline(tuple((middle + dx, y + dy) for dx, dy in square), fill, opacity=opacity * strength)


def colour_bar(trace: Any, inner: Box, high: float, theme: Theme) -> Iterator[Mark]:
    """The colour scale of a heatmap with its numbers: on the right or, if it is horizontal, below."""
    if trace.type != "heatmap" or trace.showscale is False:
        return
    bar = trace.colorbar
    thick, lies = float(bar.thickness or 10), bar.orientation == "h"
    values = np.linspace(float(trace.zmin), float(trace.zmax), 1 + min(4, int(bar.nticks or 5) - 1))
    shades = shaded(trace.colorscale, (np.arange(LEVELS) + 0.5) / LEVELS)
    if lies:
        box = Box(inner.left, high - HANG - thick, float(bar.len or inner.width), thick)
        yield Cells(*box, shades[None])
    else:
        box = Box(inner.right + 12, inner.top, thick, inner.height)
        yield Cells(*box, shades[::-1, None])
    for share, value in zip(np.linspace(0, 1, len(values)), values, strict=True):
        text = f"{value:.2g}".replace("-", "−")
        if lies:
            yield from text_marks(text, box.left + share * box.width, box.bottom + 3, LABEL, theme.ink, "middle", "top")
        else:
            yield from text_marks(text, box.right + 4, box.bottom - share * box.height, LABEL, theme.ink)
    if bar.title.text and lies:
        yield from text_marks(bar.title.text, box.right + 12, box.top + thick / 2, LABEL, theme.ink)
