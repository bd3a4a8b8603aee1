"""The label of a row or column, in one line or as [UNK] with what was typed beneath; so does ``browser/ink.js``."""

from __future__ import annotations

from dataclasses import replace

from mha_viz.figures.drawing import fonts
from mha_viz.figures.drawing.marks import Text
from mha_viz.text import UNKNOWN

LEAST = 18  # pixels of a row, or a column, with room for two lines
FIRST, SECOND = 0.5, 0.8  # the size of the first line, at most this share of the room; that of the second, of the first


def label(text: Text, width: float, room: float) -> list[Text]:
    """A label cut to a ``width``; in two lines if it is that of an unknown word and its row has the ``room``."""
    typed = text.text.removeprefix(f"{UNKNOWN} ")
    if typed == text.text or room < LEAST:
        return [_cut(text, width)]
    first = min(text.size, FIRST * room)
    second = SECOND * first
    lines = ((UNKNOWN, first, -second / 2), (typed, second, first / 2))
    return [_cut(_lowered(replace(text, text=words, size=size), by), width) for words, size, by in lines]


def _cut(text: Text, width: float) -> Text:
    return replace(text, text=fonts.cut(text.text, text.size, width, text.weight))


def _lowered(text: Text, by: float) -> Text:
    """The text moved down, or to the right if it is read upwards."""
    return replace(text, x=text.x + by) if text.turn else replace(text, y=text.y + by)
