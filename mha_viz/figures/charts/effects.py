"""Charts with one number for each head, such as its effect."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from html import escape

import numpy as np
import numpy.typing as npt

from mha_viz.attention import Head
from mha_viz.figures.charts.chart import (
    Axis,
    Cells,
    Chart,
    Frame,
    Margin,
    Plot,
    Points,
    SeriesTexts,
)
from mha_viz.figures.drawing.theme import Theme, choose_ink, palette
from mha_viz.figures.layout.caption import format_head
from mha_viz.numerals import three_digits

TOP, LEFT, RIGHT, BOTTOM = 30, 30, 4, 10  # pixels
OFF = "off"  # the text on the square of an ablated head
Numbers = npt.NDArray[np.float64]


def draw_head_grid(
    values: Numbers,
    unit: str,
    ablated: Collection[Head],
    theme: Theme,
    format_value: Callable[[float], str] | None = None,
    pinned: Head | None = None,
    top: float = 0.0,
) -> Chart:
    """Draw one number for each head, ``values`` [layer, head]; larger numbers have stronger colours.

    ``format_value`` formats a number, by default in thousandths. The colour is strongest at the largest number, or at
    ``top`` if that is larger. Cells with NaN are empty. Ablated heads, and the ``pinned`` one, are framed, and their
    hover texts say so. The label of a cell is the head's name; ``unit`` appears in its hover text; if
    numbers are written in thousandths, it is the unit of a thousandth.
    """
    layers, heads = values.shape
    top = max(top, float(np.nanmax(values, initial=0.0))) or 1.0
    width, height = (60, 40) if heads <= 12 and layers <= 12 else (50, 28)  # pixels of a square
    states = {**({pinned: "pinned"} if pinned else {}), **dict.fromkeys(ablated, OFF)}
    texts = _label_squares(values, top, unit, states, theme, format_value or format_thousandths)
    return Chart(
        theme,
        [Cells(values, 0, top, theme.ramp, gap=2, hover=""), texts],
        [Plot(numbered_axis("H", heads, True), numbered_axis("L", layers, True))],
        width=LEFT + width * heads + RIGHT,
        height=TOP + height * layers + BOTTOM,
        margin=Margin(LEFT, RIGHT, TOP, BOTTOM),
        frames=[frame_head(head, (0.47, 0.45), theme.accent, 2.5) for head in sorted(states)],
        label_font_size=11,
        has_faint_labels=True,
    )


def format_thousandths(value: float) -> str:
    """Format a number in thousandths for a cell, with up to two significant digits.

    Examples: "79", "2.1", "0.4"; empty for NaN.
    """
    thousandths = 1000 * value
    return "" if np.isnan(value) else f"{thousandths:,.0f}" if thousandths >= 9.95 else f"{thousandths:.1f}"


def _label_squares(
    values: Numbers,
    top: float,
    unit: str,
    states: Mapping[Head, str],
    theme: Theme,
    format_value: Callable[[float], str],
) -> Points:
    """Return the numbers on the squares, with their hover texts, which state that a head is ablated or pinned.

    A click on a number sends the head's name.
    """
    layers, heads = values.shape
    all_heads = [Head(layer, head) for layer in range(layers) for head in range(heads)]
    per_unit = 1000 if format_value is format_thousandths else 1
    numbers = [_format_number(values[head], per_unit, unit, format_value) for head in all_heads]
    hints = [_hover(head, number, unit, states.get(head, "")) for head, number in zip(all_heads, numbers, strict=True)]
    texts = [OFF if states.get(head) == OFF else format_value(values[head]) for head in all_heads]
    inks = [_choose_ink(max(0.0, values[head] / top), theme) for head in all_heads]
    return place_on_squares(all_heads, texts, 11 if heads <= 12 else 9, inks, hints)


def place_on_squares(
    heads: Sequence[Head], texts: Sequence[str], font_size: int, inks: Sequence[str], hints: Sequence[str]
) -> Points:
    """Return texts on the squares of heads, which can be clicked."""
    x, y = [head.head for head in heads], [head.layer for head in heads]
    names: SeriesTexts = {"labels": list(map(str, heads)), "hints": hints, "hover": "%{hovertext}", "in_legend": False}
    return Points(x, y, 28, is_square=True, is_hidden=True, texts=texts, font_size=font_size, inks=inks, **names)


def numbered_axis(letter: str, count: int, is_exact: bool = False) -> Axis:
    """Return an axis of layers, from the top, or of heads: L0, L1, …. ``is_exact``: without padding at its ends."""
    names = [f"{letter}{number}" for number in range(count)]
    positions, is_horizontal = range(count), letter == "H"
    ends = (-0.5, count - 0.5) if is_horizontal else (count - 0.5, -0.5)
    is_reversed = not (is_exact or is_horizontal)
    return Axis(
        positions=[*positions],
        names=names,
        range=ends if is_exact else None,
        is_reversed=is_reversed,
        grid=False,
        zero_colour="",
        is_above=is_horizontal,
    )


def frame_head(head: Head, half_sizes: tuple[float, float], colour: str, width: float) -> Frame:
    """Return a frame around the square of a head; it extends ``half_sizes`` (x, y) to each side of the centre."""
    x, y = ((centre - size, centre + size) for centre, size in zip((head.head, head.layer), half_sizes, strict=True))
    return Frame(x, y, colour, width)


def _format_number(value: float, per_unit: int, unit: str, format_value: Callable[[float], str]) -> str:
    """Format a number for a hover text: with more digits than on the square if it has a unit; empty for NaN."""
    return format_value(value) if not unit or np.isnan(value) else three_digits(value * per_unit)


def _hover(head: Head, number: str, unit: str, state: str) -> str:
    number = f"<br>{number} {escape(unit)}".rstrip() if number else ""
    return f"<b>{format_head(head)}</b>{f' is {state}' if state else ''}{number}"


def _choose_ink(strength: float, theme: Theme) -> str:
    """Return black or white for text on the colour of a cell, whichever is easier to read."""
    if np.isnan(strength):
        return theme.muted
    red, green, blue = palette(theme.ramp)[round(255 * strength)]
    return choose_ink(f"#{red:02x}{green:02x}{blue:02x}")
