"""Token links as a static figure: queries on the left, keys on the right, one line per weight, whose opacity is the
shade of the weight.

The layout is computed in pixels of the screen, as in ``browser/links.js``, and scaled to points at the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mha_viz.attention import Attention, Head
from mha_viz.drawing import fonts
from mha_viz.drawing.marks import Curve, Drawing, Mark, Note, Rect, Strength, Text, moved
from mha_viz.errors import SettingError
from mha_viz.figures import caption
from mha_viz.figures.excerpt import Excerpt, excerpts
from mha_viz.figures.heatmap import Room, widest
from mha_viz.figures.labels import label
from mha_viz.figures.layout import ON_PAPER, ON_SCREEN, TALL, LinksLayout, Size, Spacing, bend, links_layout, sheet
from mha_viz.figures.theme import THEMES, Theme
from mha_viz.figures.view import (
    Axes,
    Block,
    Focus,
    Mask,
    Shades,
    Unit,
    View,
    block,
    chosen,
    faint_links,
    focus,
    shades,
    units,
)

LEVELS = 24  # number of different line strengths
KEY_LINE, SWATCH = 16, 34  # in the key of heads: the height of a row, the length of a sample line, pixels
SEEN = 16  # pixels of a line between its number and the token that it reaches
BESIDE = 4  # pixels between the lines of two heads that link the same tokens
TOP = 20  # room above the first tokens for the names of the columns, pixels
NARROWEST, GAP = 250, 28  # the least width of a column of a long text, and of the gap to the next, pixels
WRITTEN = 3  # the most heads whose weights are written beside a held token
NUMBERED, SURE = 0.1, 0.25  # where nothing is held, links above this weight have a number, those of this one surely,
MOST_NUMBERED, MOST_TOKENS = 100, 128  # the strongest of a text, if it has no more tokens
CURVE = 16  # steps along a curve: a number may be on each, from the query on


class Strand(NamedTuple):
    """One head in a link diagram; ``below``: the colour of links below 0."""

    head: Head
    colour: str
    dash: tuple[int, ...]
    part: Block
    mask: Mask
    shade: Shades
    below: str


class LinkLine(NamedTuple):
    """The line of one weight, from one height to another."""

    number: str
    weight: float
    begins: float
    ends: float


class NumberPlace(NamedTuple):
    """Where the middle of a number may be: its x, and how far down its curve the number begins, is and ends, as
    shares."""

    x: float
    before: float
    at: float
    after: float


def links(attention: Attention, heads: Sequence[Head], view: View | None = None, size: Size | None = None) -> Drawing:
    """The links of one head, or of several, each with its colour and dashes. Raises UnknownHead, and SettingError
    without a head."""
    if not heads:
        raise SettingError("No head was named.", "Name one, as in L3H1.")
    view, size = (view or View()).of([attention]), size or Size()
    theme = THEMES[size.look]
    axes = units(attention, view)
    strands = [strand(attention, head, view, axes, theme, place=place) for place, head in enumerate(heads)]
    names, foot = key(attention, strands, size.pixels, theme)
    marks, high, notes = _on_page(strands, axes, focus(axes, view), (size.pixels, size.tallest - foot), theme)
    drawn = Drawing(
        size.pixels,
        high + foot,
        (*marks, *moved(names, 0, high)),
        background=None if size.transparent else theme.paper,
        notes=(*faint_links(view, [s.part for s in strands]), *notes),
        **caption.of_heads(attention, tuple(heads), view, [s.part for s in strands], "links"),
    )
    return sheet(drawn, size)


def _on_page(
    strands: Sequence[Strand], axes: Axes, held: Focus | None, page: tuple[float, float], theme: Theme
) -> tuple[list[Mark], float, tuple[Note, ...]]:
    """The diagram on a page of this size in pixels, its height, and notes on what is left out: a long text is set in
    columns, or cut to the part around the held token."""
    width, height = page
    every = np.stack([s.part.w for s in strands]).astype(np.float64).mean(axis=0)  # [row, column]
    fit = max(1, int((height - TOP) // ON_PAPER.least))
    parts, notes = excerpts(every, held, fit, max(1, int((width + GAP) // (NARROWEST + GAP))))
    column = (width - (len(parts) - 1) * GAP) / len(parts)
    room = Room(token_room(axes, ON_PAPER), max(max(map(len, part), default=0) for part in parts))
    marks: list[Mark] = []
    high, longest = 0.0, max(every.shape)
    for place, part in enumerate(parts):
        some = [_cut(strand, part) for strand in strands]
        spot = part.held(held)
        drawn, layout = link_marks(some, part.axes(axes), spot, column, theme, room, height - TOP, ON_PAPER, longest)
        marks += moved(drawn, place * (column + GAP), 0)
        high = layout.height + TOP
    return marks, high, notes


def _cut(strand: Strand, part: Excerpt) -> Strand:
    """A head with an excerpt of its weights."""
    some = np.ix_(*part)
    shown = strand.part._replace(w=strand.part.w[some], hidden=strand.part.hidden[part.rows])
    return strand._replace(part=shown, mask=strand.mask[some], shade=strand.shade[some])


def strand(
    attention: Attention,
    head: Head,
    view: View,
    axes: Axes,
    theme: Theme,
    top: float | None = None,
    place: int = 0,
) -> Strand:
    """One head as its links are drawn; ``top`` is the weight of full strength if heads share a scale, ``place`` the
    number of heads before it in the same diagram."""
    part = block(attention, head, view, axes)
    colour = theme.signed[-2] if part.signed else theme.heads[head.head % len(theme.heads)]
    dash = theme.dashes[place % len(theme.dashes)]
    below = theme.signed[1] if part.signed else colour
    return Strand(head, colour, dash, part, chosen(part.w, view.links), shades(part.w, view.scale, top), below)


def link_marks(
    strands: Sequence[Strand],
    axes: Axes,
    held: Focus | None,
    width: float,
    theme: Theme,
    room: Room | None = None,
    height: float = TALL,
    spacing: Spacing = ON_SCREEN,
    longest: int = 0,
) -> tuple[tuple[Mark, ...], LinksLayout]:
    """Lines, tokens and exact weights, next to the tokens linked to a held one or, if none is held, on the strongest
    lines of a text that is not long (``longest``: its tokens, if these are an excerpt), below a line that names the
    columns."""
    rows, cols = axes
    label, most = room or Room(token_room(axes, spacing), 0)
    layout = links_layout(width, max(most, len(rows)), max(most, len(cols)), label, height, spacing)
    beside, curved = apart(len(strands), layout), _curved(strands, held, layout)
    pairs = zip(strands, beside, strict=True)
    marks: list[Mark] = [curve for s, shift in pairs for curve in strand_curves(s, held, layout, shift, curved)]
    marks += [
        mark
        for is_query, side in ((True, axes.rows), (False, axes.cols))
        for i, unit in enumerate(side)
        for mark in _token(unit, i, is_query, strands, held, layout, theme, spacing)
    ]
    if held is None and max(longest, len(rows), len(cols)) <= MOST_TOKENS:
        marks += _numbers(_numbered(strands, layout, beside), layout, theme)
    left, right = ("from (query)", "to (key)")  # they begin at the edge: short tokens leave less room than they need
    begins = max(layout.left - 8, fonts.width(left, 11))
    ends = min(layout.right + 8, layout.width - fonts.width(right, 11))
    y = TOP / 2 - 1
    return (
        Text(begins, y, left, 11, theme.muted, anchor="end"),
        Text(ends, y, right, 11, theme.muted),
        *moved(tuple(marks), 0, TOP),
    ), layout


def key(attention: Attention, strands: Sequence[Strand], width: float, theme: Theme) -> tuple[tuple[Mark, ...], float]:
    """A key of colours and dashes by head, or by layer of rollout, in rows of at most ``width``, and its height; empty
    for a single one."""
    if len(strands) < 2:
        return (), 0
    marks: list[Mark] = []
    x, y = 0.0, KEY_LINE / 2 + 4
    for one in strands:
        name = caption.named(attention, one.head)
        needs = SWATCH + 6 + fonts.width(name, 11)
        if x and x + needs > width:
            x, y = 0.0, y + KEY_LINE
        marks.append(straight(x, y, x + SWATCH, one.colour, 3, one.dash))
        marks.append(Text(x + SWATCH + 6, y, name, 11, theme.muted))
        x += needs + 16
    return tuple(marks), y + KEY_LINE / 2


def straight(
    x: float, y: float, end: float, colour: str, width: float, dash: tuple[float, ...] = (), opacity: float = 1
) -> Curve:
    """A horizontal line, as in a key."""
    return Curve(((x, y), (x, y), (end, y), (end, y)), colour, width, opacity, dash)


def token_room(axes: Axes, spacing: Spacing = ON_SCREEN) -> float:
    """The room for tokens on each side."""
    return widest(axes, spacing.measured) + 8


def apart(heads: int, layout: LinksLayout) -> list[float]:
    """How far up or down the lines of each head are moved, so that equal links of two heads are drawn side by side."""
    step = min(BESIDE, layout.row_height / 2 / heads)
    return [(place - (heads - 1) / 2) * step for place in range(heads)]


def _curved(strands: Sequence[Strand], held: Focus | None, layout: LinksLayout) -> tuple[float, float]:
    """From where to where lines are curved: beside the tokens where numbers stand they are straight, so that each
    number is on its line and on no other one."""
    left, right = layout.left, layout.right
    beside = SEEN + (min(WRITTEN, len(strands)) * _weight_width(strands[0], layout) if strands else 0)
    if held is None or beside > (right - left) / 2 or (held.row is None) == (held.col is None):
        return left, right
    return (left + beside, right) if held.row is None else (left, right - beside)


def strand_curves(
    strand: Strand, held: Focus | None, layout: LinksLayout, shift: float, curved: tuple[float, float]
) -> list[Curve]:
    """The lines of one head, weak ones first."""
    _, colour, dash, part, mask, shade, below = strand
    (begin, end), reach = curved, bend(*curved)
    visible: list[tuple[int, int, int]] = []
    rows, cols = part.w.shape
    for r in range(rows) if held is None or held.row is None else [held.row]:
        for c in range(cols) if held is None or held.col is None else [held.col]:
            level = math.floor(int(shade[r, c]) / 255 * LEVELS + 0.5)
            if level and mask[r, c]:
                visible.append((level, r, c))
    made = []
    for level, r, c in sorted(visible):
        y1, y2 = (r + 0.5) * layout.row_height + shift, (c + 0.5) * layout.row_height + shift
        opacity = level / LEVELS
        line, wide = below if part.w[r, c] < 0 else colour, 1 + 2.5 * opacity
        made += [straight(layout.left, y1, begin, line, wide, dash, opacity)] if begin > layout.left else []
        points = ((begin, y1), (begin + reach, y1), (end - reach, y2), (end, y2))
        made.append(Curve(points, line, wide, opacity, dash))
        made += [straight(end, y2, layout.right, line, wide, dash, opacity)] if end < layout.right else []
    return made


def _token(
    unit: Unit,
    i: int,
    is_query: bool,
    strands: Sequence[Strand],
    held: Focus | None,
    layout: LinksLayout,
    theme: Theme,
    spacing: Spacing,
) -> list[Mark]:
    size = max(10, min(spacing.letters, layout.row_height - spacing.leading))
    held_here, other = (None, None) if held is None else (held if is_query else (held.col, held.row))
    reaches = held_here is None and other is not None  # the weights are written on this side
    linked = reaches and any(_at(s, is_query, i, other)[1] for s in strands)
    strong = held is None or held_here == i or linked or (held_here is None and other is None)
    weight: Strength = 600 if held is not None and held_here == i else 400
    colour = theme.accent if weight == 600 else theme.muted if unit.special or not strong else theme.ink
    y = (i + 0.5) * layout.row_height
    x = layout.left - 8 if is_query else layout.right + 8
    text = Text(x, y, unit.drawn, size, colour, weight, "end" if is_query else "start")
    return [
        *label(text, layout.column, layout.row_height),
        *(_weights(strands, is_query, i, other, y, layout, theme) if linked else ()),
    ]


def _at(strand: Strand, is_query: bool, i: int, other: int | None) -> tuple[float, bool]:
    at = (i, other) if is_query else (other, i)
    return float(strand.part.w[at]), bool(strand.mask[at]) and int(strand.shade[at]) > 2


def _numbered(strands: Sequence[Strand], layout: LinksLayout, beside: Sequence[float]) -> list[LinkLine]:
    """The links whose weights are written where nothing is held, strongest first."""
    some = []
    for (_, _, _, part, mask, shade, _), shift in zip(strands, beside, strict=True):
        shown = (part.w > NUMBERED) & mask & (shade > 5) if part.is_share else np.zeros_like(mask)
        for at in np.argwhere(shown):
            begins, ends = ((i + 0.5) * layout.row_height + shift for i in at.tolist())
            weight = float(part.w[tuple(at)])
            some.append(LinkLine(part.written(weight), weight, begins, ends))
    return sorted(some, key=lambda link: -link.weight)


def _numbers(some: Sequence[LinkLine], layout: LinksLayout, theme: Theme) -> list[Mark]:
    """Each number breaks its line at the first place from the query on where it covers no number and the fewest other
    lines of more than half its weight. Where it would cover one, it is left out, unless its link is strong or the
    strongest."""
    size = _number_size(layout)
    wide, half = size * 3.2, size * 0.7
    places = _places(layout, wide)
    marks: list[Mark] = []
    taken: list[tuple[float, float]] = []
    for rank, link in enumerate(some[:MOST_NUMBERED]):
        others = [other for other in some if other is not link and other.weight > link.weight / 2]
        spots = [(place.x, _down(link, place.at)) for place in places]
        covered = [math.inf] * len(places)
        for number, (place, (x, y)) in enumerate(zip(places, spots, strict=True)):
            if not any(abs(a - x) < wide and abs(b - y) < 2 * half for a, b in taken):
                ends = ((_down(other, place.before), _down(other, place.after)) for other in others)
                covered[number] = sum(min(two) < y + half and max(two) > y - half for two in ends)
        least = min(covered, default=math.inf)
        if least == 0 or (least < math.inf and (rank == 0 or link.weight >= SURE)):
            taken.append(spots[covered.index(least)])
            marks += _chip(link.number, *taken[-1], wide, size, theme)
    return marks


def _down(link: LinkLine, share: float) -> float:
    return link.begins + (link.ends - link.begins) * share


def _places(layout: LinksLayout, wide: float) -> list[NumberPlace]:
    """Whole steps along a curve, which all curves have at the same x (:func:`bend`)."""
    t = np.arange(CURVE + 1) / CURVE
    xs = layout.left + (layout.right - layout.left) * t * (1.26 - t * (0.78 - 0.52 * t))
    down = t * t * (3 - 2 * t)
    reach = wide / 2
    fit = np.flatnonzero((xs - reach >= layout.left + SEEN / 2) & (xs + reach <= layout.right - SEEN))
    before = np.searchsorted(xs, xs[fit] - reach, side="right") - 1
    after = np.searchsorted(xs, xs[fit] + reach)
    return [NumberPlace(*place) for place in zip(xs[fit], down[before], down[fit], down[after], strict=True)]


def _number_size(layout: LinksLayout) -> float:
    return max(9, min(12, layout.row_height - 6))


def _weight_width(strand: Strand, layout: LinksLayout) -> float:
    return _number_size(layout) * (3.2 if strand.part.is_share else 7.2)


def _chip(text: str, x: float, y: float, wide: float, size: float, theme: Theme) -> list[Mark]:
    """A number on a chip, opaque, so that no line shows through."""
    return [
        Rect(x - wide / 2, y - size * 0.7, wide, size * 1.4, fill=theme.paper),
        Text(x, y + 0.5, text, size, theme.ink, weight=600, anchor="middle"),
    ]


def _weights(
    strands: Sequence[Strand], is_query: bool, i: int, other: int | None, y: float, layout: LinksLayout, theme: Theme
) -> list[Mark]:
    """Exact weights on a chip near the end of the lines: one number per head, over the colours of their heads if there
    are several."""
    size = _number_size(layout)
    wide = _weight_width(strands[0], layout)
    marks: list[Mark] = []
    for slot, strand in enumerate(strands[:WRITTEN]):
        weight, shown = _at(strand, is_query, i, other)
        if not shown:
            continue
        from_end = SEEN + (slot + 0.5) * wide
        x = layout.left + from_end if is_query else layout.right - from_end
        marks += _chip(strand.part.written(weight), x, y, wide + 4, size, theme)
        if len(strands) > 1:
            marks.append(Rect(x - wide * 0.45, y + size * 0.6, wide * 0.9, 2, fill=strand.colour))
    return marks
