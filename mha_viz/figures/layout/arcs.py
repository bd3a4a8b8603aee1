"""A sentence with arcs: gold annotation above the words, further links of a head below them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

from mha_viz.figures.drawing import fonts
from mha_viz.figures.drawing.marks import Curve, Drawing, Mark, Rect, Text
from mha_viz.figures.drawing.theme import Theme
from mha_viz.figures.layout.links import horizontal_line

ArcKind = Literal["hit", "miss", "extra"]

WORD_SIZE, LABEL_SIZE = 12.0, 8.0  # font sizes, points
GAP = 13.0  # between words
ARC_STEP = 13.0  # height of an arc over one word
ARC_OFFSET = 2.5  # offset from a word's middle, so that arcs to the left and to the right do not meet
KIND_LABELS: dict[ArcKind, str] = {
    "hit": "annotated link; the head agrees",
    "miss": "annotated link; the head points elsewhere",
    "extra": "the head points here; the annotation does not",
}


class Span(NamedTuple):
    """One arc between two words, by their index; ``label`` is written at its top."""

    start: int
    end: int
    label: str
    kind: ArcKind


def choose_arc_colour(kind: ArcKind, theme: Theme) -> str:
    """Return the colour of a kind of arc.

    Hits and misses differ in hue; without colour, they differ in strength, and misses are dashed. Extras are below the
    words.
    """
    return {"hit": theme.heads[2], "miss": theme.muted, "extra": theme.heads[1]}[kind]


def draw_sentence(words: Sequence[str], spans: Sequence[Span], theme: Theme, alt: str) -> Drawing:
    """Draw the sentence on one line, with gold arcs above it and the head's other arcs below."""
    middles, width = _place_words(words)
    upper_heights = _arc_heights([span for span in spans if span.kind != "extra"], middles)
    lower_heights = _arc_heights([span for span in spans if span.kind == "extra"], middles)
    top = max(upper_heights.values(), default=0) + LABEL_SIZE + 8
    marks: list[Mark] = []
    for span in sorted(upper_heights, key=lambda s: s.kind == "hit"):
        marks += _draw_arc(span, upper_heights[span], middles, top, -1, theme)
    for span, height in lower_heights.items():
        marks += _draw_arc(span, height, middles, top + WORD_SIZE + 8, 1, theme)
    for word, x in zip(words, middles, strict=True):
        marks.append(Text(x, top + WORD_SIZE / 2 + 4, word, WORD_SIZE, theme.ink, anchor="middle"))
    bottom = top + WORD_SIZE + 8 + (max(lower_heights.values()) + LABEL_SIZE + 6 if lower_heights else 0)
    kinds = [kind for kind in KIND_LABELS if any(span.kind == kind for span in spans)]
    for i, kind in enumerate(kinds):
        y = bottom + 14 + 13 * i
        marks += [
            horizontal_line(2, y, 30, choose_arc_colour(kind, theme), *_arc_stroke(kind)),
            Text(36, y, KIND_LABELS[kind], LABEL_SIZE + 1, theme.muted),
        ]
    return Drawing(max(width, 300), bottom + 14 + 13 * len(kinds), tuple(marks), None, alt=alt)


def _arc_stroke(kind: ArcKind) -> tuple[float, tuple[int, ...]]:
    """Return the line width of an arc, and its dashes."""
    return 1.8 if kind in ("hit", "extra") else 1.1, (4, 2) if kind == "miss" else ()


def _arc_heights(spans: Sequence[Span], middles: Sequence[float]) -> dict[Span, float]:
    """Return the height of each arc: short arcs are lowest, and no two labels overlap."""
    heights: dict[Span, float] = {}
    labels: list[tuple[float, float, float]] = []  # left, right, height
    for span in sorted(spans, key=lambda s: (abs(s.end - s.start), s.start)):
        half_width = fonts.width(span.label, LABEL_SIZE) / 2 + 2
        middle = (middles[span.start] + middles[span.end]) / 2
        height = ARC_STEP * math.pow(abs(span.end - span.start), 0.8) + 6
        while any(
            left < middle + half_width and right > middle - half_width and abs(height - other) < LABEL_SIZE + 1
            for left, right, other in labels
        ):
            height += 3
        labels += [(middle - half_width, middle + half_width, height)] if span.label else []
        heights[span] = height
    return heights


def _place_words(words: Sequence[str]) -> tuple[list[float], float]:
    """Return the middle of each word, and the width of the line."""
    middles, x = [], 8.0
    for word in words:
        width = max(fonts.width(word, WORD_SIZE), 12.0)
        middles.append(x + width / 2)
        x += width + GAP
    return middles, x - GAP + 8


def _draw_arc(
    span: Span, height: float, middles: Sequence[float], y: float, direction: int, theme: Theme
) -> list[Mark]:
    """Draw an arc from the word ``start`` (with a small square) to the word ``end``; ``direction`` −1 is upward."""
    sign = 1 if span.end > span.start else -1
    x, x_end = middles[span.start] + ARC_OFFSET * sign, middles[span.end] - ARC_OFFSET * sign
    # A Bézier curve reaches three quarters of the height of its control points.
    control_y = y + direction * height * 4 / 3
    colour = choose_arc_colour(span.kind, theme)
    is_strong = span.kind in ("hit", "extra")
    width, dash = _arc_stroke(span.kind)
    arc = Curve(((x, y), (x, control_y), (x_end, control_y), (x_end, y)), colour, width, 1 if is_strong else 0.75, dash)
    label = Text(
        (x + x_end) / 2,
        y + direction * (height + LABEL_SIZE / 2 + 1.5),
        span.label,
        LABEL_SIZE,
        colour if is_strong else theme.muted,
        anchor="middle",
    )
    return [arc, Rect(x - 2, y - 2, 4, 4, fill=colour), label]
