"""Heads side by side on one colour scale, and the signed difference of two of them, as static figures."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz import numerals
from mha_viz.attention import Attention, Head, called
from mha_viz.drawing import fonts
from mha_viz.drawing.marks import Drawing, Mark, Note, Rect, Text, moved
from mha_viz.errors import SettingError
from mha_viz.figures import caption
from mha_viz.figures.faint import faint, faint_links
from mha_viz.figures.heatmap import (
    BESIDE,
    FAINT,
    FOOT,
    LARGEST,
    MARKED,
    Matrix,
    Room,
    centred,
    foot,
    label_room,
    matrix_marks,
    scale_bar,
    unlabelled,
)
from mha_viz.figures.layout import ON_PAPER, ON_SCREEN, TALL, HeatmapLayout, Size, Spacing, sheet
from mha_viz.figures.links import TOP, link_marks, strand, token_room
from mha_viz.figures.theme import THEMES, Theme, palette
from mha_viz.figures.view import Axes, Block, Focus, Unit, View, block, check_pin, focus, shades, span, units
from mha_viz.text import TokenizedText, align

MOST = 16  # panels in one figure
GAP = 28  # between panels, pixels
ABOVE = 68  # a panel: its title, two lines of what it is of, the gap before it
HEAD = 56  # a difference: what is minus what, and which colour is whose
NARROWEST = {"heatmap": 230, "links": 270}

As = Literal["heatmap", "links"]


class Panel(NamedTuple):
    """One head of one reading, with a name that a person gave it, if any."""

    attention: Attention
    head: Head
    name: str = ""


class Difference(NamedTuple):
    """What one head gives more than another: ``d`` [row, column], second minus first."""

    axes: Axes
    d: npt.NDArray[np.float32]
    parts: tuple[Block, Block]


def compare(
    panels: Sequence[Panel],
    view: View | None = None,
    size: Size | None = None,
    kind: As = "heatmap",
    columns: int | None = None,
    pin_of: int = 0,
    diff: tuple[int, int] | None = None,
) -> Drawing:
    """Panels in rows of ``columns``, all on one scale and with cells of one size; without ``columns`` as many stand in
    a row as fit, evenly, so that four come out two by two where three fit.

    ``scale="head"`` means up to the largest weight of all panels here; "row" is refused, for it is no shared scale, and
    so is one side of a pair. The pin counts tokens of panel ``pin_of``; the others hold the word that stands for it,
    where there is one, and the two panels that ``diff`` names, whose difference stands beside this, a word that was
    replaced as well. Raises SettingError, UnknownHead.
    """
    view, size = view or View(), size or Size()
    check(panels, view, pin_of)
    check_kind(kind, columns)
    check_diff(diff, len(panels))
    theme = THEMES[size.look]
    parts = [block(p.attention, p.head, view, units(p.attention, view)) for p in panels]
    top = max(part.top for part in parts)
    across = columns or columns_for(len(panels), size.pixels, kind)
    width = (max(size.pixels, across * 80 + (across - 1) * GAP) - (across - 1) * GAP) / across
    held = held_by_panels(panels, view, pin_of, diff)
    most_high = size.tallest / math.ceil(len(panels) / across) - ABOVE - FOOT
    plates = plates_of(panels, held, view, kind, width, theme, not size.transparent, height=most_high, spacing=ON_PAPER)
    marks, y = _rows(
        [_panel(panels, p, plate, width, theme) for p, plate in zip(panels, plates, strict=True)], width, across
    )
    hardly_seen = faint_links if kind == "links" else faint
    words = f"one scale{' of opacity' if kind == 'links' else ''}, {span(view.scale, top)}"
    ramp = (theme.paper, theme.ink) if kind == "links" else theme.ramp
    total = across * width + (across - 1) * GAP
    marks += scale_bar(total, y + FOOT / 2, 90, theme, ramp, words)
    drawn = Drawing(
        total,
        y + FOOT,
        tuple(marks),
        background=None if size.transparent else theme.paper,
        notes=(*hardly_seen(view, parts), *dict.fromkeys(note for plate in plates for note in plate.notes)),
        **_words(
            panels,
            view,
            parts,
            ("compare", kind),
            f"{'Opacity' if kind == 'links' else 'Colour'}, for all panels: {span(view.scale, top)}.",
            pin_of,
        ),
    )
    return sheet(drawn, size)


def check(panels: Sequence[Panel], view: View, pin_of: int) -> None:
    """Raises SettingError for panels that cannot stand side by side in a view."""
    if not 1 <= len(panels) <= MOST:
        raise SettingError(f"{len(panels)} heads were given.", f"A comparison shows 1 to {MOST}.")
    if any(panel.attention.is_cross for panel in panels):
        raise SettingError(
            "A comparison shows attention of a text to itself; one of these readings leads from one text to another.",
            "Draw it by itself: a.heatmap(layer, head), a.links(layer, head) or a.grid().",
        )
    if view.scale == "row":
        raise SettingError("scale is 'row', which gives each row its own.", "A comparison takes fixed, head or log.")
    if view.side != "all":
        raise SettingError(
            f"side is {view.side!r}.", "A comparison shows whole matrices; one side is of a single head."
        )
    if not _is_whole(pin_of) or not 0 <= pin_of < len(panels):
        raise SettingError(f"pin_of is {str(pin_of)[:40]!r}.", f"Expected a panel from 0 to {len(panels) - 1}.")
    check_pin(panels[pin_of].attention, view)


def check_kind(kind: str, columns: int | None) -> None:
    """Raises SettingError for a kind that panels are not drawn as, or a number of columns that no page has."""
    if not isinstance(kind, str) or kind not in NARROWEST:
        raise SettingError(f"kind is {str(kind)[:40]!r}.", "Expected heatmap or links.")
    if columns is not None and not (_is_whole(columns) and 1 <= columns <= MOST):
        raise SettingError(f"columns is {str(columns)[:40]!r}.", f"Expected a number from 1 to {MOST}.")


def check_diff(diff: tuple[int, int] | None, count: int) -> None:
    """Raises SettingError unless these are two of ``count`` panels, or none."""
    if diff is None:
        return
    named = {i for i in diff if _is_whole(i) and 0 <= i < count} if isinstance(diff, tuple | list) else ()
    if len(named) != 2 or len(diff) != 2:
        raise SettingError(f"diff is {str(diff)[:40]!r}.", f"Expected two different panels from 0 to {count - 1}.")


def _is_whole(given: object) -> bool:
    return isinstance(given, int) and not isinstance(given, bool)


def columns_for(count: int, width: float, kind: As) -> int:
    """How many of ``count`` panels stand in a row of ``width`` pixels: in as few rows as fit, and those filled evenly.
    As ``columns`` of ``browser/compare/together.js``."""
    fit = max(1, min(count, int((width + GAP) // (NARROWEST[kind] + GAP))))
    return math.ceil(count / math.ceil(count / fit))


class _Set(NamedTuple):
    marks: tuple[Mark, ...]
    height: float
    notes: tuple[Note, ...] = ()


def held_by_panels(
    panels: Sequence[Panel], view: View, pin_of: int = 0, diff: tuple[int, int] | None = None
) -> list[Focus | None]:
    """What each panel holds."""
    pinned = panels[pin_of].attention
    two = [panels[i].attention for i in diff or ()]
    if two and mismatch(two[0], two[1], view):
        two = []
    subtracted = {attention.key for attention in two}
    order = [panel.attention.key for panel in panels]  # the page aligns each reading to those that come after it
    return [
        focus(units(pinned, view), view)  # units of both stand in one order
        if {pinned.key, panel.attention.key} <= subtracted
        else held_in(pinned, panel.attention, view, order.index(panel.attention.key) < order.index(pinned.key))
        for panel in panels
    ]


def plates_of(
    panels: Sequence[Panel],
    held: Sequence[Focus | None],
    view: View,
    kind: As,
    width: float,
    theme: Theme,
    lines: bool = True,
    largest: float = math.inf,
    height: float = TALL,
    spacing: Spacing = ON_SCREEN,
) -> list[_Set]:
    """What is drawn under each panel's title. All have one layout, so that cells can be compared by place. Links are
    at most ``height`` high where their rows can be."""
    every = [units(p.attention, view) for p in panels]
    most = max(len(axes.rows) for axes in every)
    label = [token_room(axes, spacing) if kind == "links" else label_room(axes) for axes in every]
    room = Room(max(label), most)
    parts = [block(p.attention, p.head, view, axes) for p, axes in zip(panels, every, strict=True)]
    top = max(part.top for part in parts) if view.scale == "head" else None
    plates = []
    for panel, axes, part, spot in zip(panels, every, parts, held, strict=True):
        if kind == "links":
            strands = [strand(panel.attention, panel.head, view, axes, theme, top)]
            drawn, spread = link_marks(strands, axes, spot, width, theme, room, height - TOP, spacing)
            plates.append(_Set(drawn, spread.height + TOP))
        else:
            matrix = Matrix(palette(theme.ramp)[shades(part.w, view.scale, top)], axes, spot)
            drawn, layout = matrix_marks(matrix, width, theme, lines, largest, room, BESIDE)
            plates.append(_Set(drawn, layout.height, unlabelled(layout)))
    return plates


def _panel(panels: Sequence[Panel], panel: Panel, plate: _Set, width: float, theme: Theme) -> _Set:
    _, head, name = panel
    title = f"{caption.both(head)}  {name}".strip()
    marks: list[Mark] = [Text(0, 9, fonts.cut(title, 14, width, 600), 14, theme.ink, weight=600)]
    lines = wrapped(_whose(panels, panel), width, 11, 2)
    marks += [Text(0, 26 + 14 * i, line, 11, theme.muted) for i, line in enumerate(lines)]
    below = 22 + 14 * max(len(wrapped(_whose(panels, p), width, 11, 2)) for p in panels)  # rows begin at one height
    return _Set((*marks, *moved(plate.marks, 0, below)), plate.height + below)


def wrapped(text: str, width: float, size: float, most: int) -> list[str]:
    """A text in at most ``most`` lines, broken at blanks; the last is cut when more is left."""
    lines: list[str] = []
    for word in text.split():
        if lines and fonts.width(f"{lines[-1]} {word}", size) <= width:
            lines[-1] += f" {word}"
        elif len(lines) < most:
            lines.append(word)
        else:
            lines[-1] += f" {word}"
    return [fonts.cut(line, size, width) for line in lines]


def _whose(panels: Sequence[Panel], panel: Panel) -> str:
    """The model, the sentence and what was done since, where panels differ in them."""
    models = {(p.attention.model, p.attention.revision) for p in panels}
    texts = {(p.attention.text.text, p.attention.text.pair) for p in panels}
    model = called(panel.attention.model) if len(models) > 1 else ""
    text = panel.attention.text
    sentences = f"“{text.text}”" + (f" and “{text.pair}”" if text.pair else "") if len(texts) > 1 else ""
    steps = {p.attention.made for p in panels}
    done = (caption.steps(panel.attention) or "as read") if len(steps) > 1 else ""
    return ": ".join(s for s in (model, ", ".join(s for s in (sentences, done) if s)) if s)


def _rows(sets: Sequence[_Set], width: float, across: int) -> tuple[list[Mark], float]:
    marks: list[Mark] = []
    y = 0.0
    for start in range(0, len(sets), across):
        row = sets[start : start + across]
        for i, one in enumerate(row):
            marks += moved(one.marks, i * (width + GAP), y)
        y += max(one.height for one in row) + 18
    return marks, y - 8


def held_in(first: Attention, other: Attention, view: View, back: bool = False) -> Focus | None:
    """Where the pin, which counts tokens of ``first``, stands in ``other``; None where nothing stands for it.

    Texts may be aligned in several ways that are as good; ``back`` takes that of ``other`` to ``first``.
    """
    axes = units(other, view)
    if first.text == other.text:
        return focus(axes, view)
    query, key = (_unit_for(first, other, token, back) for token in view.pinned)
    row, col = (_index(side, unit) for side, unit in ((axes.rows, query), (axes.cols, key)))
    asked = [token is not None for token in view.pinned]
    present = [row is not None, col is not None]
    return Focus(row, col) if any(asked) and asked == present else None


def pin_in(panels: Sequence[Panel], number: int, view: View, pin_of: int) -> str:
    """The pin, which counts tokens of panel ``pin_of``, as it counts those of panel ``number``; empty where nothing
    stands for it."""
    axes, held = units(panels[number].attention, view), held_by_panels(panels, view, pin_of)[number]
    if held is None:
        return ""
    query = "" if held.row is None else f"q{axes.rows[held.row].tokens[0]}"
    return query if held.col is None else f"{query}k{axes.cols[held.col].tokens[0]}"


def _unit_for(first: Attention, other: Attention, token: int | None, back: bool) -> tuple[int, ...] | None:
    """The pieces of ``other`` that stand for the word of a token of ``first``."""
    unit = next((i for i, group in enumerate(first.text.groups) if token in group), None)
    if unit is None:
        return None
    if back:
        same = align(other.text, first.text).same
        matched = same.index(unit) if unit in same else None
    else:
        matched = align(first.text, other.text).same[unit]
    return None if matched is None else other.text.groups[matched]


def _index(side: tuple[Unit, ...], tokens: tuple[int, ...] | None) -> int | None:
    return None if tokens is None else next((i for i, u in enumerate(side) if u.tokens[0] in tokens), None)


def difference(
    first: Panel, second: Panel, view: View | None = None, size: Size | None = None, pin_of: int = 0
) -> Drawing:
    """What ``second`` gives more (orange) or less (blue) than ``first``; nothing shown where they agree.

    The scale runs to the largest difference on both sides. The pin counts tokens of the first, or with ``pin_of`` 1 of
    the second. Raises SettingError when the rows and columns of the two do not correspond one to one, UnknownHead.
    """
    view, size = view or View(), size or Size()
    theme = THEMES[size.look]
    check((first, second), replace(view, scale="fixed"), pin_of)
    subtracted = signed(first, second, view)
    parts, top = subtracted.parts, float(np.abs(subtracted.d).max(initial=0))
    matrix = difference_matrix(subtracted, (first, second)[pin_of], view, theme)
    lines, most_high = not size.transparent, size.tallest - FOOT - HEAD
    marks, layout = matrix_marks(matrix, size.pixels, theme, lines, LARGEST, fade=BESIDE, height=most_high)
    words = f"−{numerals.weight(top)} to +{numerals.weight(top)}"
    marks += foot(layout, theme, theme.signed, words)
    marked = f"−{numerals.weight(FAINT * top)}" if layout.cell >= MARKED and top else ""
    title = _minus(first, second, layout.width, theme, marked)
    one, two = told_apart(first, second)
    scale = f"Colour: {two} minus {one}, {words}{f'; cells from {marked} down carry a minus' if marked else ''}."
    drawn = Drawing(
        layout.width,
        title.height + layout.height + FOOT,
        centred((*title.marks, *moved(marks, 0, title.height)), layout, size.pixels),
        background=None if size.transparent else theme.paper,
        notes=(*unlabelled(layout), *_unmarked(layout)),
        **_words((first, second), view, parts, ("difference", "heatmap"), scale, pin_of),
    )
    return sheet(drawn, size)


def _minus(first: Panel, second: Panel, width: float, theme: Theme, marked: str) -> _Set:
    """What is subtracted from what, and which colour is whose, over a difference; ``marked`` is the difference from
    which on cells carry a minus, empty where they are too small for one."""
    one, two = told_apart(first, second)
    title = f"{two} minus {one}"
    marks: list[Mark] = [Text(0, 9, fonts.cut(title, 14, width, 600), 14, theme.ink, weight=600)]
    sign = f"with a minus from {marked} down" if marked else ""
    keys = [(theme.signed[-2], f"more in {two}", ""), (theme.signed[1], f"more in {one}", sign)]
    for line, (colour, words, after) in enumerate(keys):
        y = 27 + 15 * line
        marks.append(Rect(0, y - 6, 12, 12, fill=colour))
        marks += [Rect(3, y - 0.75, 6, 1.5, fill=theme.paper)] if after else []
        whole = fonts.cut(words, 11, width - 18 - (fonts.width(f", {after}", 11) if after else 0))
        marks.append(Text(18, y, f"{whole}, {after}" if after else whole, 11, theme.muted))
    return _Set(tuple(marks), HEAD)


def _unmarked(layout: HeatmapLayout) -> tuple[Note, ...]:
    """That signs are in colour alone, where cells are too small for a minus."""
    if layout.cell >= MARKED:
        return ()
    return (Note("", "Cells are too small to carry a minus: their sign is in colour alone. Raise width_mm."),)


def told_apart(first: Panel, second: Panel) -> tuple[str, str]:
    """Two panels by what tells them apart, in the order given: head, then model, then the words that differ, then what
    was done to them."""
    heads = [caption.both(panel.head) for panel in (first, second)]
    models = [panel.attention.model for panel in (first, second)]
    if heads[0] != heads[1]:
        return heads[0], heads[1]
    if models[0] != models[1]:
        return f"{heads[0]} of {called(models[0])}", f"{heads[1]} of {called(models[1])}"
    differing = [_only(a.attention.text, b.attention.text) for a, b in ((first, second), (second, first))]
    if differing[0] == differing[1]:
        differing = [caption.steps(panel.attention) or "as read" for panel in (first, second)]
    return (
        (f"{heads[0]} {differing[0]}", f"{heads[1]} {differing[1]}")
        if differing[0] != differing[1]
        else ("the first", "the second")
    )


def _only(text: TokenizedText, other: TokenizedText) -> str:
    """The words that another text lacks, or the whole text where these are many."""
    same = align(text, other).same
    words = [word.text for word, partner in zip(text.by_words().tokens, same, strict=True) if partner is None]
    return f"with “{' '.join(words)}”" if 0 < len(words) <= 3 else f"of “{text.text}”"


def difference_matrix(subtracted: Difference, pinned: Panel, view: View, theme: Theme) -> Matrix:
    """The signed difference as it is drawn. Units of both stand in one order, so what is held of either is a place."""
    pixels = palette(theme.signed)[levels(subtracted.d, float(np.abs(subtracted.d).max(initial=0)))]
    return Matrix(pixels, subtracted.axes, focus(units(pinned.attention, view), view), subtracted.d)


def signed(first: Panel, second: Panel, view: View) -> Difference:
    """The signed difference, second minus first, unit by unit. Raises SettingError where units do not correspond."""
    pairs = [(units(p.attention, view), p) for p in (first, second)]
    one, two = (axes for axes, _ in pairs)
    reason = mismatch(first.attention, second.attention, view)
    if reason:
        raise SettingError("These two readings have no common rows and columns.", reason)
    a, b = (block(p.attention, p.head, view, axes) for axes, p in pairs)
    renamed = Axes(_renamed(one.rows, two.rows), _renamed(one.cols, two.cols))
    return Difference(renamed, b.w - a.w, (a, b))


def mismatch(first: Attention, second: Attention, view: View) -> str:
    """Why the units of two readings do not correspond one to one; empty when they do."""
    a, b = first.text, second.text
    place = align(a, b).place
    ours, theirs = (_kept(text, view) for text in (a, b))
    number = "Their words differ in number. Compare two sentences that differ only in words replaced one for one."
    if first.quantity != second.quantity:
        return f"One holds {first.quantity}s, the other {second.quantity}s. Compare two of one quantity."
    if [place[i] for i in ours] != theirs:
        return number
    if view.unit == "pieces" and not _cut_the_same(a, b, list(zip(ours, theirs, strict=True))):
        return "They are cut into different pieces. Compare them by words."
    return "" if [*map(len, units(first, view))] == [*map(len, units(second, view))] else number


def _cut_the_same(a: TokenizedText, b: TokenizedText, partners: Sequence[tuple[int, int]]) -> bool:
    """Whether pieces of words can be subtracted: as many, of the same characters where the words are the same."""
    same_text = (a.text, a.pair) == (b.text, b.pair)
    ours, theirs = a.by_words().tokens, b.by_words().tokens
    for i, j in partners:
        pieces = [(a.tokens[s], b.tokens[t]) for s, t in zip(a.groups[i], b.groups[j], strict=False)]
        if len(a.groups[i]) != len(b.groups[j]):
            return False
        if same_text and any((s.start, s.end) != (t.start, t.end) for s, t in pieces):
            return False
        replaced = ours[i].special or not _alike(ours[i].text, theirs[j].text)
        if not same_text and not replaced and not all(_alike(s.text, t.text) for s, t in pieces):
            return False
    return True


def _alike(one: str, two: str) -> bool:
    return one.casefold() == two.casefold()


def _kept(text: TokenizedText, view: View) -> list[int]:
    """The words, and the special tokens where they are kept, by their numbers."""
    return [i for i, g in enumerate(text.groups) if view.special == "keep" or not text.tokens[g[0]].special]


def _renamed(one: tuple[Unit, ...], two: tuple[Unit, ...]) -> tuple[Unit, ...]:
    return tuple(
        u if u.special or _alike(u.text, v.text) else u._replace(text=f"{u.text} / {v.text}")
        for u, v in zip(one, two, strict=True)
    )


def levels(d: npt.NDArray[np.float32], top: float) -> npt.NDArray[np.uint8]:
    """Place of every difference on the signed scale, 0…255; 128 is no difference."""
    return np.clip(np.rint(128 + 127 * d.astype(np.float64) / (top or 1)), 0, 255).astype(np.uint8)


def _words(
    panels: Sequence[Panel], view: View, parts: Sequence[Block], figure: tuple[str, str], scale: str, pin_of: int
) -> caption.Words:
    """Caption, description and metadata of panels that may come from several readings. ``figure``: what it is, and as
    what its heads are drawn."""
    kind, drawn = figure
    readings = {p.attention.key: caption.reading(p.attention) for p in panels}
    named = [f"{caption.both(p.head)}{f' ({p.name})' if p.name else ''}" for p in panels]
    if len(readings) == 1:
        listed = f"{', '.join(named)} of {readings[panels[0].attention.key]}"
    else:
        listed = "; ".join(f"{name} of {caption.reading(p.attention)}" for name, p in zip(named, panels, strict=True))
    pinned = panels[pin_of].attention
    every = [panel.attention for panel in panels]
    sentences = [caption.stopped(f"{caption.KINDS[kind]}: {listed}"), caption.quantities(every)]
    sentences += [caption.done(every, view, drawn), caption.held(pinned, view), scale]
    sentences += [caption.hidden_note(every, view, parts)]
    about = {
        "figure": kind,
        **_joined([caption.identity(p.attention) for p in panels]),
        "heads": " ".join(str(p.head) for p in panels),
        **({"as": drawn} if kind == "compare" else {}),
        **caption.settings(view),
        **({"at": str(pin_of)} if view.pin and pin_of else {}),
        "hidden": f"{caption.hidden(parts):.4f}",
    }
    return {
        "caption": " ".join(s for s in sentences if s),
        "alt": f"{caption.KINDS[kind]}: {', '.join(named)}, for {caption.texts(every)}.",
        "about": about,
    }


def _joined(identities: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """What panels share once; what they differ in as a list, an entry a panel in their order, so that each head has its
    text."""
    names = dict.fromkeys(name for identity in identities for name in identity)
    every = {name: [identity.get(name, "") for identity in identities] for name in names}
    return {name: v[0] if len(set(v)) == 1 else json.dumps(v, ensure_ascii=False) for name, v in every.items()}
