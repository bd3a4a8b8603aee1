"""Illustrations of the inputs of heads and layers: heads work in parallel, layers one after another."""

from __future__ import annotations

from collections.abc import Iterator

from mha_viz.figures.drawing.marks import Curve, Drawing, Mark, Rect, Text, shift_marks
from mha_viz.figures.drawing.theme import Theme

COUNT = 4  # heads, and layers
BOX_WIDTH, BOX_HEIGHT = 44, 30  # width and height of a box
ROW_STEP = 44  # distance between heads
MIDDLE = 100  # the height at which x enters
HEADS_ALT = "Four heads read the same x in parallel, and W_O joins them."
LAYERS_ALT = "Each of four layers reads the output of the one before."


def draw_parallel(theme: Theme) -> tuple[Drawing, Drawing]:
    """Return the two drawings, without a background; each fits a phone."""
    heads, layers = tuple(_head_marks(theme)), shift_marks(tuple(_layer_marks(theme)), -390, 0)
    return Drawing(302, 220, heads, None, alt=HEADS_ALT), Drawing(324, 220, layers, None, alt=LAYERS_ALT)


def _head_marks(theme: Theme) -> Iterator[Mark]:
    yield from _box_marks(1, MIDDLE, "x", theme.muted, theme)
    yield from _box_marks(256, MIDDLE, "W_O", theme.muted, theme)
    for head in range(COUNT):
        y, colour = MIDDLE + ROW_STEP * (head - (COUNT - 1) / 2), theme.heads[head]
        yield _connect((1 + BOX_WIDTH, MIDDLE), (128, y), colour)
        yield _connect((128 + BOX_WIDTH, y), (256, MIDDLE), colour)
        yield from _box_marks(128, y, f"H{head}", colour, theme)
    yield Text(150, 204, "heads: the same x, in parallel", 13, theme.ink, anchor="middle")


def _layer_marks(theme: Theme) -> Iterator[Mark]:
    yield from _box_marks(392, MIDDLE, "x", theme.muted, theme)
    for layer in range(COUNT):
        left, colour = 464 + 68 * layer, theme.accent
        yield _connect((left - (28 if layer == 0 else 24), MIDDLE), (left, MIDDLE), colour)
        yield from _box_marks(left, MIDDLE, f"L{layer}", colour, theme)
    yield Text(556, 204, "layers: each waits for the one before", 13, theme.ink, anchor="middle")


def _connect(start: tuple[float, float], end: tuple[float, float], colour: str) -> Curve:
    (x, y), (u, v) = start, end
    return Curve((start, ((x + u) / 2, y), ((x + u) / 2, v), end), colour, 2.5)


def _box_marks(left: float, middle: float, name: str, colour: str, theme: Theme) -> Iterator[Mark]:
    yield Rect(left, middle - BOX_HEIGHT / 2, BOX_WIDTH, BOX_HEIGHT, None, colour, 1.5)
    letter, _, subscript = name.partition("_")
    middle_x = left + BOX_WIDTH / 2 - (4 if subscript else 0)
    yield Text(middle_x, middle, letter, 13, theme.ink, anchor="middle")
    if subscript:
        yield Text(middle_x + 7, middle + 4, subscript, 9, theme.ink)
