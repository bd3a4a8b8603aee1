"""The axes of a chart as Plotly would draw them: the positions of values, and the labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mha_viz.numerals import MINUS

EDGE = 0.05  # share of the span, left free on both sides of lines
TICKS = 6  # the most ticks, unless the chart sets a number
NICE = (1, 2, 5, 10)  # steps between ticks, times a power of ten


@dataclass(frozen=True)
class Axis:
    """One axis: ``low`` and ``high`` are its ends as numbers (for a logarithmic axis, their logarithms), at the pixels
    ``start`` and ``end``. ``names``: those of categories, in order."""

    layout: Any
    low: float
    high: float
    start: float
    end: float
    names: tuple[str, ...] = ()

    @property
    def is_log(self) -> bool:
        """True for a logarithmic axis."""
        return bool(self.layout.type == "log")

    def number(self, value: Any) -> float:
        """A value as a number along the axis; NaN for values without a position."""
        if isinstance(value, str):
            return float(self.names.index(value)) if value in self.names else math.nan
        if value is None:
            return math.nan
        if self.is_log:
            return math.log10(value) if value > 0 else math.nan
        return float(value)

    def at(self, value: Any) -> float:
        """The pixel position of a value."""
        return self.place(self.number(value))

    def place(self, number: float) -> float:
        """The pixel position of a number along the axis."""
        return self.start + (number - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self) -> list[tuple[float, str]]:
        """Positions in pixels with their labels."""
        values, texts = self.layout.tickvals, self.layout.ticktext
        if values is not None:
            named = texts if texts is not None else [_number(value, self.layout.tickformat) for value in values]
            pairs = [(self.at(value), str(text)) for value, text in zip(values, named, strict=False)]
        elif self.names:
            pairs = [(self.place(number), name) for number, name in enumerate(self.names)]
        else:
            pairs = [(self.place(value), _number(value, self.layout.tickformat)) for value in self._chosen()]
        first, last = sorted((self.start, self.end))
        return [(place, text) for place, text in pairs if first - 0.5 <= place <= last + 0.5]

    def _chosen(self) -> list[float]:
        """Round numbers between the ends."""
        low, high = sorted((self.low, self.high))
        step = self.layout.dtick or _step(high - low, self.layout.nticks or TICKS)
        first = math.ceil(low / step - 1e-9)
        return [round(i * step, 10) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def axis(layout: Any, values: Iterable[Any], start: float, end: float, half: float, has_bars: bool) -> Axis:
    """The axis of a chart for the ``values`` along it. ``half``: the room that marks take on each side of a value;
    ``has_bars``: whether the axis begins at zero. If the ends would be equal, they are set one apart."""
    flat = [value for some in values for value in some]
    names = tuple(dict.fromkeys(value for value in flat if isinstance(value, str)))
    low, high = _ends(layout, names, flat, half, has_bars)
    if layout.autorange == "reversed":
        low, high = high, low
    return Axis(layout, low, high, start, end, names)


def _ends(layout: Any, names: Sequence[str], values: Sequence[Any], half: float, has_bars: bool) -> tuple[float, float]:
    given = layout.range
    if given is not None and None not in given:
        return float(given[0]), float(given[1])
    if names:
        return -0.5, len(names) - 0.5
    numbers = np.array([value for value in values if value is not None], float)
    numbers = numbers[np.isfinite(numbers)]
    if layout.type == "log":
        numbers = np.log10(numbers[numbers > 0])
    low, high = (float(numbers.min()), float(numbers.max())) if len(numbers) else (0.0, 1.0)
    if has_bars or layout.rangemode == "tozero":
        low, high = min(low, 0.0), max(high, 0.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    if half:
        return low - half, high + half
    edge = EDGE * (high - low)
    from_zero = has_bars or layout.rangemode == "tozero"
    return (low if from_zero and low == 0 else low - edge), (high if from_zero and high == 0 else high + edge)


def _step(span: float, most: int) -> float:
    rough = span / max(1, most)
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in NICE if step * power >= rough * (1 - 1e-9))


def _number(value: float, form: str | None) -> str:
    text = f"{value:{form}}" if form else f"{value:,.10f}".rstrip("0").rstrip(".")
    return text.replace("-", MINUS)
