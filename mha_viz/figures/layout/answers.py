"""Illustrations for the answers of the training lab.

They show inputs of wide and narrow heads, gradients at W_O, and links of two heads to one word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.figures.drawing import fonts
from mha_viz.figures.drawing.marks import Curve, Drawing, Mark, Polyline, Rect, Text
from mha_viz.figures.drawing.theme import Theme
from mha_viz.numerals import decimal

Array = npt.NDArray[Any]
WIDTH = 302  # the width of each drawing, which fits a phone
HEAD_COUNT = 4  # number of heads
TOKENS = 8  # number of rows that represent all tokens
CELL, GAP = 11, 26  # points: the cell of a number, and the gap between the rows of two heads
# ∂L/∂out, and a slice of W_O for each head, [head, d_k, d_model]: invented numbers of both signs.
GRADIENT = np.array([0.9, -0.5, 0.3, -0.8])
SLICES = np.array(
    [
        [[0.9, -0.4, 0.2, -0.6], [-0.5, 0.7, 0.1, 0.3]],
        [[-0.7, 0.1, 0.8, 0.4], [0.3, 0.9, -0.6, -0.2]],
        [[0.2, 0.8, -0.3, 0.7], [-0.9, -0.1, 0.5, -0.4]],
        [[0.5, 0.4, 0.9, -0.1], [0.6, -0.8, -0.2, 0.9]],
    ]
)


class WordLink(NamedTuple):
    """A link of a head from one word to the word at ``key``, with its weight."""

    head: str
    key: int
    weight: float


def draw_widths(theme: Theme) -> tuple[Drawing, ...]:
    """Draw the inputs of wide and of narrow heads: all tokens, with their whole vectors or with chunks of them."""
    wide_text = "wide: each reads the whole vector"
    narrow_text = "narrow: each reads its own chunk"
    return tuple(
        Drawing(
            WIDTH, 176, tuple(_input_marks(theme, is_wide, words)), None, alt=f"Every head sees all n tokens. {words}."
        )
        for is_wide, words in ((True, wide_text), (False, narrow_text))
    )


def _input_marks(theme: Theme, is_wide: bool, words: str) -> Iterator[Mark]:
    left, top, chunk, height = 62, 24, 16, 104
    right, step = 176, 32
    yield Text(left + HEAD_COUNT * chunk / 2, 10, "width d", 12, theme.muted, anchor="middle")
    yield Text(right + (3 * step + chunk) / 2, 10, "d / h each", 12, theme.muted, anchor="middle")
    yield from _brace_marks(left - 10, top, height, theme)
    yield Text(20, top + height / 2 - 7, "all n", 12, theme.ink, anchor="middle")
    yield Text(20, top + height / 2 + 8, "tokens", 12, theme.ink, anchor="middle")
    for head in range(HEAD_COUNT):
        colour, x = theme.heads[head], right + step * head
        chunk_x = left + chunk * head
        fill, opacity = (theme.muted, 0.25) if is_wide else (colour, 0.7)
        yield Rect(chunk_x, top, chunk, height, fill, None, opacity=opacity)
        yield Rect(x, top, chunk, height, colour, None, opacity=0.7)
        yield Text(x + chunk / 2, top + height + 14, f"H{head}", 12, theme.ink, anchor="middle")
    for row in range(1, TOKENS):
        y = top + height * row / TOKENS
        for x, width in ((left, HEAD_COUNT * chunk), *((right + step * head, chunk) for head in range(HEAD_COUNT))):
            yield _straight_line((x, y), (x + width, y), theme.paper, 1)
    end = left + HEAD_COUNT * chunk
    yield _straight_line((end + 8, top + height / 2), (right - 14, top + height / 2), theme.muted, 1.5)
    yield Polyline(
        tuple((right - 14 + dx, top + height / 2 + dy) for dx, dy in ((0, -4), (6, 0), (0, 4))), fill=theme.muted
    )
    yield Text(WIDTH / 2, 166, words, 13, theme.ink, anchor="middle")


def _brace_marks(x: float, top: float, height: float, theme: Theme) -> Iterator[Mark]:
    yield Polyline(
        ((x + 4, top), (x, top), (x, top + height), (x + 4, top + height)), stroke=theme.muted, stroke_width=1.25
    )


def draw_gradients(theme: Theme) -> tuple[Drawing, ...]:
    """Draw the backpropagation of a gradient through W_O, for equal slices and for different ones.

    The gradient at a head's own part of the concatenation is ∂L/∂out times the head's slice. Every number is computed.
    """
    equal_text = "equal slices: equal gradients"
    different_text = "different slices: different gradients"
    return tuple(
        Drawing(
            WIDTH,
            208,
            tuple(_gradient_marks(theme, slices, words)),
            None,
            alt=f"∂L/∂out times each slice of W_O. {words}.",
        )
        for slices, words in ((np.repeat(SLICES[:1], HEAD_COUNT, axis=0), equal_text), (SLICES, different_text))
    )


def _gradient_marks(theme: Theme, slices: Array, words: str) -> Iterator[Mark]:
    top, row = 38, 2 * CELL + GAP - 12
    middle = top + (HEAD_COUNT * row - 12) / 2
    for x, heading in ((30, "∂L/∂out"), (146, "× its slice of Wₒ"), (254, "its gradient")):
        yield Text(x, 12, heading, 12, theme.muted, anchor="middle")
    yield from _cell_marks(30 - CELL / 2, middle - 2 * CELL, GRADIENT[:, None], theme)
    for head in range(HEAD_COUNT):
        y = top + row * head
        centre = y + CELL
        yield Curve(((40, middle), (76, middle), (76, centre), (114, centre)), theme.muted, 1.5)
        yield from _cell_marks(124, y, slices[head], theme)
        yield Rect(122, y - 2, 4 * CELL + 4, 2 * CELL + 4, None, theme.heads[head], 1.75)
        yield _straight_line((178, centre), (240, centre), theme.heads[head], 1.75)
        yield from _cell_marks(248, y, (slices[head] @ GRADIENT)[:, None], theme)
        yield Text(270, centre, f"H{head}", 12, theme.ink)
    yield Text(WIDTH / 2, 198, words, 13, theme.ink, anchor="middle")


def _cell_marks(left: float, top: float, values: Array, theme: Theme) -> Iterator[Mark]:
    for (row, column), value in np.ndenumerate(values):
        shade = theme.signed[round((1 - np.clip(value, -1, 1)) / 2 * (len(theme.signed) - 1))]
        yield Rect(left + CELL * column, top + CELL * row, CELL - 1, CELL - 1, shade)


def draw_links(theme: Theme, words: Sequence[str], query: int, links: Sequence[WordLink]) -> Drawing:
    """Draw one word of a sentence with links of several heads; each arc is labelled with its head and weight."""
    size, space, y, height = 14, 5, 78, 46
    lefts = np.cumsum([0, *(fonts.width(word, size) + space for word in words)])
    centres = [left + fonts.width(word, size) / 2 for left, word in zip(lefts, words, strict=False)]
    marks: list[Mark] = [
        Text(float(left), y, word, size, theme.ink, 600 if index == query else 400)
        for index, (left, word) in enumerate(zip(lefts, words, strict=False))
    ]
    for number, (head, key, weight) in enumerate(links):
        colour, (begin, end) = theme.heads[number], (centres[query], centres[key])
        top = y - 12 - 4 / 3 * height
        marks.append(Curve(((begin, y - 12), (begin, top), (end, top), (end, y - 12)), colour, 1 + 4 * weight))
        label = f"{head}  {decimal(weight)}"
        marks.append(Text((begin + end) / 2, y - 24 - height, label, 12, colour, 600, "middle"))
    link_list = ", ".join(f"{head} to “{words[key]}” ({decimal(weight)})" for head, key, weight in links)
    return Drawing(float(lefts[-1]), y + 12, tuple(marks), None, alt=f"“{words[query]}” attends by {link_list}.")


def _straight_line(start: tuple[float, float], end: tuple[float, float], colour: str, width: float) -> Curve:
    return Curve((start, start, end, end), colour, width)
