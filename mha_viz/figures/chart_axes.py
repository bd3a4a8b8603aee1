"""The axes of a chart in a file: the positions of values, and the labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mha_viz.figures.chart import Axis, Bars, Chart, Letter
from mha_viz.numerals import MINUS

EDGE = 0.05  # share of the span, left free on both sides of lines
TICKS = 6  # the most ticks, unless the chart sets a number
NICE = (1, 2, 5, 10)  # steps between ticks, times a power of ten


@dataclass(frozen=True)
class Scale:
    """An axis with its ends ``low`` and ``high`` as numbers (for a logarithmic axis, their logarithms), at the pixels
    ``start`` and ``end``. ``names``: those of positions that are names, in order."""

    axis: Axis
    low: float
    high: float
    names: tuple[str, ...] = ()
    start: float = 0
    end: float = 1

    def number(self, value: Any) -> float:
        """A value as a number along the axis; NaN for values without a position."""
        if isinstance(value, str):
            return float(self.names.index(value)) if value in self.names else math.nan
        if value is None or (self.axis.is_log and not value > 0):
            return math.nan
        return math.log10(value) if self.axis.is_log else float(value)

    def at(self, value: Any) -> float:
        """The pixel position of a value."""
        return self.place(self.number(value))

    def place(self, number: float) -> float:
        """The pixel position of a number along the axis."""
        return self.start + (number - self.low) / (self.high - self.low) * (self.end - self.start)

    def span(self, ends: tuple[float, float] | None) -> tuple[float, float]:
        """The pixel positions of two values, or of the ends of the axis."""
        return (self.start, self.end) if ends is None else (self.at(ends[0]), self.at(ends[1]))

    def ticks(self) -> list[tuple[float, str]]:
        """Numbers along the axis with their labels, of those between its ends."""
        values: Sequence[Any] | None = self.axis.at
        if values is not None:
            texts = self.axis.names or [_written(value, self.axis.form) for value in values]
            pairs = [(self.number(value), text) for value, text in zip(values, texts, strict=True)]
        elif self.names:
            pairs = [(float(number), name) for number, name in enumerate(self.names)]
        else:
            pairs = [(number, _written(number, self.axis.form)) for number in self._round_numbers()]
        low, high = sorted((self.low, self.high))
        room = 1e-6 * (high - low)
        return [(number, text) for number, text in pairs if low - room <= number <= high + room]

    def _round_numbers(self) -> list[float]:
        """Round numbers between the ends."""
        low, high = sorted((self.low, self.high))
        step = self.axis.every
        if not step:
            rough = (high - low) / max(1, self.axis.most or TICKS)
            power = 10.0 ** math.floor(math.log10(rough))
            step = next(step * power for step in NICE if step * power >= rough * (1 - 1e-9))
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        return [round(i * step, 10) for i in range(first, last + 1)]


def scale(chart: Chart, number: int, letter: Letter) -> Scale:
    """The horizontal or vertical axis of a plot, as long as what is drawn along it needs. If the ends would be equal,
    they are set one apart."""
    axis = getattr(chart.plots[number], letter)
    plots = {number, *(i for i, plot in enumerate(chart.plots) if letter == "x" and plot.x.same_as == number)}
    plots |= {axis.same_as} if axis.same_as is not None else set()
    series = [one for one in chart.series if one.plot in plots]
    values = [value for one in series for value in one.along(letter)]
    names = tuple(dict.fromkeys(value for value in values if isinstance(value, str)))
    has_room = any(one.takes_room(letter) for one in series)
    from_zero = axis.from_zero or any(isinstance(one, Bars) and not one.takes_room(letter) for one in series)
    low, high = axis.range or ((-0.5, len(names) - 0.5) if names else _ends(axis, values, has_room, from_zero))
    return Scale(axis, *((high, low) if axis.is_reversed else (low, high)), names)


def _ends(axis: Axis, values: Sequence[Any], has_room: bool, from_zero: bool) -> tuple[float, float]:
    numbers = np.array([value for value in values if value is not None], float)
    numbers = numbers[np.isfinite(numbers)]
    if axis.is_log:
        numbers = np.log10(numbers[numbers > 0])
    low, high = (float(numbers.min()), float(numbers.max())) if len(numbers) else (0.0, 1.0)
    if from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    if has_room:
        return low - 0.5, high + 0.5
    edge = EDGE * (high - low)
    return (low if from_zero and low == 0 else low - edge), (high if from_zero and high == 0 else high + edge)


def _written(value: float, form: str | None) -> str:
    text = f"{value:{form}}" if form else f"{value:,.10f}".rstrip("0").rstrip(".")
    return text.replace("-", MINUS)
