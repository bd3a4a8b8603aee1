"""Pictures of what each head of a layer reads, and each layer: heads work in parallel, layers one after another."""

from __future__ import annotations

from collections.abc import Iterator

from mha_viz.figures.drawing.marks import Curve, Drawing, Mark, Rect, Text, moved
from mha_viz.figures.drawing.theme import Theme

COUNT = 4  # heads, and layers
WIDE, HIGH = 44, 30  # width and height of a box
ROW = 44  # distance between heads
MIDDLE = 100  # the height at which x enters
HEADS = "Four heads read the same x in parallel, and W_O joins them."
LAYERS = "Each of four layers reads the output of the one before."


def parallel(theme: Theme) -> tuple[Drawing, Drawing]:
    """Return the two drawings, without a background; each fits a phone."""
    heads, layers = tuple(_heads(theme)), moved(tuple(_layers(theme)), -390, 0)
    return Drawing(302, 220, heads, None, alt=HEADS), Drawing(324, 220, layers, None, alt=LAYERS)


def _heads(theme: Theme) -> Iterator[Mark]:
    yield from _box(1, MIDDLE, "x", theme.muted, theme)
    yield from _box(256, MIDDLE, "W_O", theme.muted, theme)
    for head in range(COUNT):
        y, colour = MIDDLE + ROW * (head - (COUNT - 1) / 2), theme.heads[head]
        yield _line((1 + WIDE, MIDDLE), (128, y), colour)
        yield _line((128 + WIDE, y), (256, MIDDLE), colour)
        yield from _box(128, y, f"H{head}", colour, theme)
    yield Text(150, 204, "heads: the same x, in parallel", 13, theme.ink, anchor="middle")


def _layers(theme: Theme) -> Iterator[Mark]:
    yield from _box(392, MIDDLE, "x", theme.muted, theme)
    for layer in range(COUNT):
        left, colour = 464 + 68 * layer, theme.accent
        yield _line((left - (28 if layer == 0 else 24), MIDDLE), (left, MIDDLE), colour)
        yield from _box(left, MIDDLE, f"L{layer}", colour, theme)
    yield Text(556, 204, "layers: each waits for the one before", 13, theme.ink, anchor="middle")


def _line(start: tuple[float, float], end: tuple[float, float], colour: str) -> Curve:
    (x, y), (u, v) = start, end
    return Curve((start, ((x + u) / 2, y), ((x + u) / 2, v), end), colour, 2.5)


def _box(left: float, middle: float, name: str, colour: str, theme: Theme) -> Iterator[Mark]:
    yield Rect(left, middle - HIGH / 2, WIDE, HIGH, None, colour, 1.5)
    letter, _, low = name.partition("_")
    middle_x = left + WIDE / 2 - (4 if low else 0)
    yield Text(middle_x, middle, letter, 13, theme.ink, anchor="middle")
    if low:
        yield Text(middle_x + 7, middle + 4, low, 9, theme.ink)
