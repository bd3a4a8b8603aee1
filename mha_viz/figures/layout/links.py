"""Token links as a static figure: queries on the left, keys on the right, one line per weight.

Width and darkness of a line are the shade of the weight on one scale for the whole figure. The layout is computed in
pixels of the screen, as in ``browser/links.js``, and scaled to points at the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mha_viz.attention import Attention, Head
from mha_viz.errors import SettingError
from mha_viz.figures.drawing import fonts
from mha_viz.figures.drawing.marks import Anchor, Curve, Drawing, FontWeight, Mark, Note, Rect, Text, shift_marks
from mha_viz.figures.drawing.theme import THEMES, Theme, palette
from mha_viz.figures.layout import (
    ON_PAPER,
    ON_SCREEN,
    UNLIMITED,
    LinksLayout,
    Size,
    Spacing,
    caption,
    control_distance,
    draw_footer,
    links_layout,
    make_sheet,
)
from mha_viz.figures.layout.excerpt import REMEDY, Excerpt, cut_excerpts
from mha_viz.figures.layout.heatmap import FOOT, Room, draw_scale_bar, measure_widest
from mha_viz.figures.layout.labels import draw_label
from mha_viz.figures.layout.view import (
    Axes,
    Block,
    Focus,
    Mask,
    Shades,
    Unit,
    View,
    build_block,
    choose_drawn_links,
    describe_few_links,
    describe_range,
    find_focus,
    is_crowded,
    link_scale,
    list_units,
    note_faint_links,
    select_links,
    shades,
)

LEVELS = 24  # number of line strengths
KEY_LINE, SWATCH = 16, 34  # in the key of heads: the height of a row, the length of a sample line, pixels
STRAND_GAP = 4  # distance between the lines of two heads that link the same tokens, pixels
TOP = 20  # room above the first tokens for the names of the columns, pixels
MIN_COLUMN, GAP = 250, 28  # minimum width of a column of a long text, and the gap between columns, pixels
MIN_NUMBERED = 0.05  # minimum share, or fraction of the largest number, that is written
NUMBER_GAP = 6  # distance from a token to the number behind it, pixels
MAX_NUMBERS = 3  # maximum number of heads whose weights are written behind a token
DARKENING = 0.7  # the exponent of a line's strength
BAR_LENGTH = 60  # the length of the scale of the lines, pixels


class Strand(NamedTuple):
    """One head in a link diagram.

    ``rule_links``: the links that the view's rule selects, which are drawn for pinned tokens; ``default_links``: the
    links that are drawn if no token is pinned; ``negative_colour``: the colour of links below 0.
    """

    head: Head
    colour: str
    dash: tuple[int, ...]
    block: Block
    rule_links: Mask
    default_links: Mask
    shade: Shades
    negative_colour: str

    def level(self, row: int, col: int) -> int:
        """Return the strength of a line, from 0 (no line) to LEVELS."""
        return math.floor(int(self.shade[row, col]) / 255 * LEVELS + 0.5)

    def is_numbered(self, row: int, col: int) -> bool:
        """Return whether the number of a link is written: only for drawn lines that are not very weak."""
        minimum = MIN_NUMBERED * (1 if self.block.is_share else self.block.top)
        return self.level(row, col) > 0 and abs(self.block.w[row, col]) >= np.float32(minimum)


def links(attention: Attention, heads: Sequence[Head], view: View | None = None, size: Size | None = None) -> Drawing:
    """Draw the links of one head, or of several, each with its colour and dashes.

    Raises UnknownHead, and SettingError without a head.
    """
    if not heads:
        raise SettingError("No head was named.", "Name one, as in L3H1.")
    view, size = (view or View()).of([attention]), size or Size()
    theme = THEMES[size.look]
    axes = list_units(attention, view)
    strands = build_strands(attention, heads, view, axes, theme)
    key_marks, key_height = draw_key(attention, strands, size.pixels, theme)
    blocks = [strand.block for strand in strands]
    range_text, few_links_text = describe_range(link_scale(view.scale), blocks), describe_few_links(axes, view)
    legends = (f"width and darkness of a line: {range_text}", range_text)
    ends = (strands[0].colour if len(strands) == 1 else theme.ink, strands[0].negative_colour)
    _, scale_height = draw_line_foot(blocks, ends, legends, few_links_text, size.pixels, theme)
    foot = key_height + scale_height
    footer = draw_footer(caption.mention_ablated([(attention, head) for head in heads]), size.pixels, theme.ink)
    focus = find_focus(axes, view)
    page = _lay_out_page(strands, axes, focus, (size.pixels, size.max_height - foot - footer[1]), theme)
    scale_marks, _ = draw_line_foot(
        blocks,
        ends,
        legends,
        f"{page.drawn_count} of {few_links_text}" if page.drawn_count is not None else few_links_text,
        size.pixels,
        theme,
    )
    drawing = Drawing(
        size.pixels,
        page.height + foot,
        (*page.marks, *shift_marks(key_marks, 0, page.height), *shift_marks(scale_marks, 0, page.height + key_height)),
        background=None if size.transparent else theme.paper,
        notes=(*note_faint_links(view, blocks, [focus] * len(blocks)), *page.notes),
        **caption.write_texts(attention, tuple(heads), view, blocks, "links"),
    )
    return make_sheet(drawing, size, footer)


def draw_line_foot(
    blocks: Sequence[Block], ends: tuple[str, str], legends: tuple[str, str], note_text: str, width: float, theme: Theme
) -> tuple[tuple[Mark, ...], float]:
    """Return the marks below a diagram and their height.

    They explain width and darkness of a line, with the second of ``legends`` if the first is too wide. ``note_text``
    describes the drawn links if only some are drawn, and stands next to or above the legend. ``ends``: the colours of
    the strongest lines above and below 0.
    """
    legend = next((text for text in legends if BAR_LENGTH + fonts.width(text, 11) + GAP <= width), legends[-1])
    bar_width = max(8.0, min(BAR_LENGTH, width - fonts.width(legend, 11) - GAP))
    is_above = bool(note_text) and fonts.width(note_text, 11) + bar_width + fonts.width(legend, 11) + 2 * GAP > width
    y, offset = FOOT / 2 + 2, KEY_LINE * is_above
    ramp = build_line_ramp(theme, ends[0], ends[1] if any(block.signed for block in blocks) else None)
    note = (Text(0, y, fonts.cut_text(note_text, 11, width), 11, theme.muted),) if note_text else ()
    return (*note, *draw_scale_bar(width, y + offset, bar_width, theme, ramp, legend)), FOOT + offset


def build_line_ramp(theme: Theme, colour: str, negative_colour: str | None = None) -> tuple[str, ...]:
    """Return the colours of lines on paper, from 0 to full strength.

    With a ``negative_colour``, they begin at full strength of negative numbers.
    """
    steps = [round(255 * compute_opacity(step / 8)) for step in range(9)]
    positive_colours, negative_colours = (
        palette((theme.paper, end or theme.paper)) for end in (colour, negative_colour)
    )
    reversed_ramp = [negative_colours[shade] for shade in steps[:0:-1]] if negative_colour else []
    return tuple("#" + bytes(rgb).hex() for rgb in (*reversed_ramp, *(positive_colours[shade] for shade in steps)))


def compute_opacity(strength: float) -> float:
    """Return the opacity of a line of a strength from 0 to 1.

    Weak lines are darker than proportional: otherwise a line of the smallest written weight would be hardly visible.
    """
    return round(float(strength**DARKENING), 3)


class LinksPage(NamedTuple):
    """A diagram on a page, with notes on omitted parts.

    ``drawn_count`` is the number of strongest links that are drawn, None if all are.
    """

    marks: tuple[Mark, ...]
    height: float
    notes: tuple[Note, ...]
    drawn_count: int | None = None


def _lay_out_page(
    strands: Sequence[Strand], axes: Axes, focus: Focus | None, page: tuple[float, float], theme: Theme
) -> LinksPage:
    """Lay out the diagram on a page of this size in pixels.

    A long text is set in columns, or cut to the part around the pinned token.
    """
    width, height = page
    mean_weights = np.abs(np.stack([s.block.w for s in strands])).astype(np.float64).mean(axis=0)  # [row, column]
    max_rows = max(1, int((height - TOP) // ON_PAPER.min_row))
    max_columns, draws_few = max(1, int((width + GAP) // (MIN_COLUMN + GAP))), focus is None and is_crowded(axes)
    excerpts, notes = cut_excerpts(mean_weights, focus, max_rows, max_columns, has_share=not draws_few)
    column_width = (width - (len(excerpts) - 1) * GAP) / len(excerpts)
    room = Room(measure_token_room(axes, ON_PAPER), max(max(map(len, excerpt), default=0) for excerpt in excerpts))
    marks: list[Mark] = []
    page_height = 0.0
    for column_index, excerpt in enumerate(excerpts):
        excerpt_strands = [_cut_strand(strand, excerpt) for strand in strands]
        pinned = excerpt.place_focus(focus)
        excerpt_marks, layout = draw_link_marks(
            excerpt_strands, excerpt.axes(axes), pinned, column_width, theme, room, height - TOP, ON_PAPER
        )
        marks += shift_marks(excerpt_marks, column_index * (column_width + GAP), 0)
        page_height = layout.height + TOP
    if not draws_few:
        return LinksPage(tuple(marks), page_height, notes)
    total = sum(int(strand.default_links.sum()) for strand in strands)
    drawn_count = sum(int(strand.default_links[np.ix_(*excerpt)].sum()) for strand in strands for excerpt in excerpts)
    if drawn_count == total:
        return LinksPage(tuple(marks), page_height, notes)
    problem = f"{total - drawn_count} of the {total} strongest links have an end in another column or beyond the last"
    notes = (*notes, Note(f"{problem} and are left out.", f"{REMEDY}."))
    return LinksPage(tuple(marks), page_height, notes, drawn_count)


def _cut_strand(strand: Strand, excerpt: Excerpt) -> Strand:
    """Restrict a head to an excerpt of its weights."""
    cells = np.ix_(*excerpt)
    block = strand.block._replace(w=strand.block.w[cells], hidden=strand.block.hidden[excerpt.rows])
    return strand._replace(
        block=block,
        rule_links=strand.rule_links[cells],
        default_links=strand.default_links[cells],
        shade=strand.shade[cells],
    )


def build_strands(
    attention: Attention, heads: Sequence[Head], view: View, axes: Axes, theme: Theme, top: float | None = None
) -> list[Strand]:
    """Build the strands of heads that are drawn together.

    ``top`` is the weight of full strength, if diagrams share a scale; by default, the largest weight of these heads.
    """
    blocks = [build_block(attention, head, view, axes) for head in heads]
    max_weight = max(block.top for block in blocks) if top is None else top
    default_links = choose_drawn_links(blocks, view.links, axes)
    strands = []
    for number, (head, block) in enumerate(zip(heads, blocks, strict=True)):
        colour = theme.signed[-2] if block.signed else theme.heads[head.head % len(theme.heads)]
        negative_colour = theme.signed[1] if block.signed else colour
        shade = shades(block.w, link_scale(view.scale), max_weight)
        dash = theme.dashes[number % len(theme.dashes)]
        rule_links = select_links(block.w, view.links)
        strands.append(Strand(head, colour, dash, block, rule_links, default_links[number], shade, negative_colour))
    return strands


def draw_link_marks(
    strands: Sequence[Strand],
    axes: Axes,
    focus: Focus | None,
    width: float,
    theme: Theme,
    room: Room | None = None,
    height: float = UNLIMITED,
    spacing: Spacing = ON_SCREEN,
) -> tuple[tuple[Mark, ...], LinksLayout]:
    """Draw lines and tokens, with exact weights behind the tokens, below a line that names the columns.

    The numbers are the weights of the pinned token or, without a pin, the weight of the strongest link to each token.
    """
    rows, cols = axes
    label, min_tokens = room or Room(measure_token_room(axes, spacing), 0)
    counts = (max(min_tokens, len(rows)), max(min_tokens, len(cols)))
    layout = links_layout(width, *counts, label, height, spacing, _measure_numbers(strands, width))
    offsets = compute_line_offsets(len(strands), layout)
    pairs = zip(strands, offsets, strict=True)
    marks: list[Mark] = [curve for s, offset in pairs for curve in draw_strand(s, focus, layout, offset)]
    marks += [
        mark
        for is_query, side in ((True, axes.rows), (False, axes.cols))
        for i, unit in enumerate(side)
        for mark in _draw_token(unit, i, is_query, strands, focus, layout, theme, spacing)
    ]
    left, right = ("from (query)", "to (key)")
    left_x = max(layout.left - 8, fonts.width(left, 11))  # short tokens leave less room than these words need
    right_x = min(layout.right + 8, layout.width - fonts.width(right, 11))
    y = TOP / 2 - 1
    return (
        Text(left_x, y, left, 11, theme.muted, anchor="end"),
        Text(right_x, y, right, 11, theme.muted),
        *shift_marks(tuple(marks), 0, TOP),
    ), layout


def draw_key(
    attention: Attention, strands: Sequence[Strand], width: float, theme: Theme
) -> tuple[tuple[Mark, ...], float]:
    """Draw a key of colours and dashes by head, or by layer of rollout; also return its height.

    Its rows are at most ``width`` wide. It is empty for a single head.
    """
    if len(strands) < 2:
        return (), 0
    marks: list[Mark] = []
    x, y = 0.0, KEY_LINE / 2 + 4
    for strand in strands:
        name = caption.name_in_model(attention, strand.head)
        entry_width = SWATCH + 6 + fonts.width(name, 11)
        if x and x + entry_width > width:
            x, y = 0.0, y + KEY_LINE
        marks.append(horizontal_line(x, y, x + SWATCH, strand.colour, 3, strand.dash))
        marks.append(Text(x + SWATCH + 6, y, name, 11, theme.muted))
        x += entry_width + 16
    return tuple(marks), y + KEY_LINE / 2


def horizontal_line(
    x: float, y: float, end: float, colour: str, width: float, dash: tuple[float, ...] = (), opacity: float = 1
) -> Curve:
    """Return a horizontal line, as in a key."""
    return Curve(((x, y), (x, y), (end, y), (end, y)), colour, width, opacity, dash)


def measure_token_room(axes: Axes, spacing: Spacing = ON_SCREEN) -> float:
    """Return the room for tokens on each side."""
    return measure_widest(axes, spacing.measured_font_size) + 8


def compute_line_offsets(heads: int, layout: LinksLayout) -> list[float]:
    """Return the vertical offset of each head's lines.

    Offsets keep lines of two heads between the same tokens from overlapping.
    """
    step = min(STRAND_GAP, layout.row_height / 2 / heads)
    return [(number - (heads - 1) / 2) * step for number in range(heads)]


def draw_strand(strand: Strand, focus: Focus | None, layout: LinksLayout, offset: float) -> list[Curve]:
    """Return the lines of one head, weak ones first, each from token to token."""
    begin, end = layout.left, layout.right
    if focus is not None and focus.row is None:  # numbers stand behind the queries: lines begin after these
        begin += layout.number_width * layout.numbers_per_token + NUMBER_GAP
    control_offset = control_distance(begin, end)
    mask = strand.default_links if focus is None else strand.rule_links
    rows, cols = (
        range(count) if index is None else [index]
        for count, index in zip(mask.shape, (None, None) if focus is None else focus, strict=True)
    )
    visible_links = [(level, r, c) for r in rows for c in cols if mask[r, c] and (level := strand.level(r, c))]
    curves = []
    for level, r, c in sorted(visible_links):
        y1, y2 = (r + 0.5) * layout.row_height + offset, (c + 0.5) * layout.row_height + offset
        strength = level / LEVELS
        colour = strand.negative_colour if strand.block.w[r, c] < 0 else strand.colour
        points = ((begin, y1), (begin + control_offset, y1), (end - control_offset, y2), (end, y2))
        curves.append(Curve(points, colour, 1 + 2.5 * strength, compute_opacity(strength), strand.dash))
    return curves


def _draw_token(
    unit: Unit,
    i: int,
    is_query: bool,
    strands: Sequence[Strand],
    focus: Focus | None,
    layout: LinksLayout,
    theme: Theme,
    spacing: Spacing,
) -> list[Mark]:
    size = max(10, min(spacing.max_font_size, layout.row_height - spacing.leading))
    pinned = None if focus is None else focus.row if is_query else focus.col
    weight: FontWeight = 600 if focus is not None and pinned == i else 400
    colour = theme.accent if weight == 600 else theme.muted if unit.special else theme.ink
    y = (i + 0.5) * layout.row_height
    x = layout.left - 8 if is_query else layout.right + 8
    anchor: Anchor = "end" if is_query else "start"
    marks: list[Mark] = [
        *draw_label(Text(x, y, unit.drawn, size, colour, weight, anchor), layout.column_width, layout.row_height)
    ]
    widths = (fonts.width(mark.text, mark.size, mark.weight) for mark in marks if isinstance(mark, Text))
    number_x = x if is_query else x + max(widths)
    for slot, (strand, row, col) in enumerate(
        _find_numbered_links(strands, is_query, i, focus)[: layout.numbers_per_token]
    ):
        left = number_x + NUMBER_GAP + slot * layout.number_width
        number = strand.block.format(float(strand.block.w[row, col]))
        marks.append(Text(left, y + 0.5, number, layout.number_size, theme.ink, weight=600))
        if len(strands) > 1:  # the colour shows the head to which the number belongs
            marks.append(Rect(left, y + layout.number_size * 0.6, layout.number_width * 0.9, 2, fill=strand.colour))
    return marks


def _find_numbered_links(
    strands: Sequence[Strand], is_query: bool, i: int, focus: Focus | None
) -> list[tuple[Strand, int, int]]:
    """Return the links whose weights are written behind token ``i`` of a side.

    These are the links of the pinned token, one for each head; without a pin, the strongest link to a key.
    """
    if focus is None:
        candidates = [
            (s, r, i) for s in strands if not is_query for r in np.flatnonzero(s.default_links[:, i]).tolist()
        ]
        weighted_links = [(abs(float(s.block.w[r, c])), (s, r, c)) for s, r, c in candidates if s.is_numbered(r, c)]
        return [max(weighted_links, key=lambda link: link[0])[1]] if weighted_links else []
    if is_query:
        cell = None if focus.col is None or focus.row is not None else (i, focus.col)
    else:
        cell = None if focus.row is None or focus.col not in (None, i) else (focus.row, i)
    return [] if cell is None else [(s, *cell) for s in strands if s.rule_links[cell] and s.is_numbered(*cell)]


def _measure_numbers(strands: Sequence[Strand], width: float) -> tuple[float, int]:
    """Return the width of a number, in units of its font size, and the maximum count of numbers behind a token."""
    number_width = 3.2 if all(strand.block.is_share for strand in strands) else 7.2
    return number_width, max(1, min(MAX_NUMBERS, len(strands), int(width * 0.2 // (number_width * 12))))
