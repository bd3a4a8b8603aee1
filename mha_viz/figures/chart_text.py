"""Text of a chart as marks: Plotly reads it as HTML, of which the charts use bold, italics, indices and line breaks."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from html import unescape
from typing import Literal, NamedTuple

from mha_viz.drawing import fonts
from mha_viz.drawing.marks import Anchor, Strength, Text

TextAnchor = Literal["top", "middle", "bottom"]  # Plotly's names for the part of a text that is at its position
TAGS = re.compile(r"(</?b>|</?i>|</?sub>)")
BREAK = re.compile(r"<br ?/?>")
INDEX = 0.7  # share of the size by which indices are lower
LEADING = 1.25  # share of the size from line to line
BEFORE = {"start": 0.0, "middle": 0.5, "end": 1.0}  # the share of a line that is before its anchor
ABOVE = {"top": 0.0, "middle": 0.5, "bottom": 1.0}  # the share of a block that is above its position


class Stretch(NamedTuple):
    """A stretch of a line with uniform style."""

    text: str
    weight: Strength
    is_index: bool


def lines(html: str) -> list[list[Stretch]]:
    """The lines of a text, each in stretches. Any other tags remain as text."""
    return [list(_runs(line)) for line in BREAK.split(html)]


def _runs(line: str) -> Iterator[Stretch]:
    weight: Strength = 400
    is_index = False
    for part in TAGS.split(line):
        if TAGS.fullmatch(part):
            opens = not part.startswith("</")
            if "sub" in part:
                is_index = opens
            elif "b" in part:
                weight = 600 if opens else 400
        elif part:
            yield Stretch(unescape(part), weight, is_index)


def without_markup(html: str) -> str:
    """The words of a text without markup, on one line."""
    return " ".join("".join(run.text for run in line) for line in lines(html))


def width(html: str, size: float) -> float:
    """The width of the widest line, in the unit of ``size``."""
    return max((sum(_advance(run, size) for run in line) for line in lines(html)), default=0.0)


def _advance(run: Stretch, size: float) -> float:
    return fonts.width(run.text, size * (INDEX if run.is_index else 1), run.weight)


def text_marks(
    html: str,
    x: float,
    y: float,
    size: float,
    colour: str,
    anchor: Anchor = "start",
    block: TextAnchor = "middle",
    turn: float = 0,
) -> Iterator[Text]:
    """The marks of a text at (x, y): ``anchor`` says which part of its lines is at that point, ``block`` which part of
    its height; ``turn`` rotates it, in degrees anticlockwise."""
    rows = lines(html)
    first = (0.5 - ABOVE[block] * len(rows)) * LEADING * size
    across, down = math.cos(math.radians(turn)), -math.sin(math.radians(turn))
    for number, row in enumerate(rows):
        along = -BEFORE[anchor] * sum(_advance(run, size) for run in row)
        for run in row:
            below = first + number * LEADING * size + (0.25 * size if run.is_index else 0)
            place = (x + along * across - below * down, y + along * down + below * across)
            yield Text(*place, run.text, size * (INDEX if run.is_index else 1), colour, run.weight, turn=turn)
            along += _advance(run, size)
