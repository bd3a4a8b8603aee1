"""The numbers that a chart draws, as a table: one row per bar, cell or point."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from mha_viz.drawing.table import Table, Value
from mha_viz.figures.chart_marks import values
from mha_viz.figures.chart_text import without_markup

COLUMNS = ("part", "series", "x", "y", "value")


def numbers(chart: Any, about: Mapping[str, str]) -> Table:
    """Every number of a chart. ``part`` is the title of a part of it; ``x``, and ``y`` of a cell, are named as along
    the axis, or by the hover text. Frames, and points that only carry a text, have no number."""
    return Table(COLUMNS, tuple(row for trace in chart.data for row in _rows(chart, trace)), dict(about))


def _rows(chart: Any, trace: Any) -> Iterator[tuple[Value, ...]]:
    part = _part(chart, trace)
    if trace.type == "heatmap":
        across, down = (_names(chart, trace, letter) for letter in "xy")
        for row, line in enumerate(np.array(trace.z, float).tolist()):
            for column, value in enumerate(line):
                if not np.isnan(value):
                    yield part, "", across.get(column, column), down.get(row, row), value
        return
    if trace.marker.opacity == 0:
        return
    lies = trace.type == "bar" and trace.orientation == "h"
    at, lengths = (values(trace, letter) for letter in ("yx" if lies else "xy"))
    named = _names(chart, trace, "y" if lies else "x")
    shown = trace.customdata if trace.customdata is not None and np.ndim(trace.customdata) == 1 else at
    for place, label, value in zip(at, shown, lengths, strict=True):
        if value is not None and not (isinstance(value, float) and np.isnan(value)):
            name = named.get(place) if shown is at else label
            yield part, without_markup(trace.name or ""), _value(place if name is None else name), None, _value(value)


def _names(chart: Any, trace: Any, letter: str) -> dict[Any, str]:
    """The labels along an axis by position, if each position has one."""
    name = getattr(trace, f"{letter}axis") or letter
    layout = chart.layout[f"{letter}axis{name[1:]}"]
    if layout.tickvals is None or layout.ticktext is None:
        return {}
    return {place: without_markup(str(text)) for place, text in zip(layout.tickvals, layout.ticktext, strict=False)}


def _part(chart: Any, trace: Any) -> str:
    """The title above the part of the chart that contains a trace; subplots have their titles in order."""
    pairs = list(dict.fromkeys((one.xaxis or "x", one.yaxis or "y") for one in chart.data))
    titles = [note.text for note in chart.layout.annotations if note.yref == "paper" and note.xref == "paper"]
    at = pairs.index((trace.xaxis or "x", trace.yaxis or "y"))
    return without_markup(titles[at]) if at < len(titles) and len(pairs) > 1 else ""


def _value(value: Any) -> Value:
    """A number or a text as a plain Python object."""
    if isinstance(value, str):
        return without_markup(value)
    made: Value = value.item() if hasattr(value, "item") else value
    return made
