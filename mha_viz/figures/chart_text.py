"""Text of a chart as marks: Plotly reads it as HTML, of which our charts use bold, italics, indices and line breaks."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from html import unescape
from typing import Literal, NamedTuple

from mha_viz.drawing import fonts
from mha_viz.drawing.marks import Anchor, Strength, Text

Block = Literal["top", "middle", "bottom"]  # the part of a text that stands at its place
TAGS = re.compile(r"(</?b>|</?i>|</?sub>)")
BREAK = re.compile(r"<br ?/?>")
INDEX = 0.7  # of the size, for letters that stand lower
LEADING = 1.25  # of the size, from line to line
BEFORE = {"start": 0.0, "middle": 0.5, "end": 1.0}  # the share of a line that stands before its anchor
ABOVE = {"top": 0.0, "middle": 0.5, "bottom": 1.0}  # the share of a block that stands above its place


class Stretch(NamedTuple):
    """A stretch of a line that is set alike."""

    text: str
    weight: Strength
    is_index: bool


def lines(html: str) -> list[list[Stretch]]:
    """The lines of a text, each in stretches. What else looks like a tag stays as it is."""
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
    """The words of a text alone, on one line."""
    return " ".join("".join(run.text for run in line) for line in lines(html))


def width(html: str, size: float) -> float:
    """How wide the widest line is, in the unit of ``size``."""
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
    block: Block = "middle",
    turn: float = 0,
) -> Iterator[Text]:
    """The marks of a text at (x, y): ``anchor`` says which part of its lines stands there, ``block`` which part of its
    height; ``turn`` rotates it, degrees anticlockwise."""
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
