"""The label of a row or column, in one line, or in two for an unknown word: [UNK] with the typed word beneath.

``browser/ink.js`` draws the same.
"""

from __future__ import annotations

from dataclasses import replace

from mha_viz.figures.drawing import fonts
from mha_viz.figures.drawing.marks import Text
from mha_viz.text import UNKNOWN

TWO_LINE_ROOM = 18  # minimum number of pixels of a row or column with room for two lines
FIRST_LINE, SECOND_LINE = 0.5, 0.8  # maximum size of the first line, per room; size of the second, per first


def draw_label(text: Text, width: float, room: float) -> list[Text]:
    """Return a label cut to ``width``; an unknown word has two lines if ``room``, the height of its row, allows."""
    typed_word = text.text.removeprefix(f"{UNKNOWN} ")
    if typed_word == text.text or room < TWO_LINE_ROOM:
        return [_cut_label(text, width)]
    first_size = min(text.size, FIRST_LINE * room)
    second_size = SECOND_LINE * first_size
    lines = ((UNKNOWN, first_size, -second_size / 2), (typed_word, second_size, first_size / 2))
    return [
        _cut_label(_shift_line(replace(text, text=words, size=size), offset), width) for words, size, offset in lines
    ]


def _cut_label(text: Text, width: float) -> Text:
    return replace(text, text=fonts.cut_text(text.text, text.size, width, text.weight))


def _shift_line(text: Text, offset: float) -> Text:
    """Move a text down, or to the right if it is read upwards."""
    return replace(text, x=text.x + offset) if text.turn else replace(text, y=text.y + offset)
