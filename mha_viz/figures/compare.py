"""Heads side by side on one colour scale, and the signed difference of two of them, as static figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz import fonts
from mha_viz.attention import Attention, Head
from mha_viz.drawing import Drawing, Mark, Text, moved
from mha_viz.errors import SettingError
from mha_viz.figures import caption
from mha_viz.figures.heatmap import FOOT, Matrix, foot, matrix_marks, scale_bar
from mha_viz.figures.layout import Size, sheet
from mha_viz.figures.links import TOP, link_marks, strand
from mha_viz.figures.theme import THEMES, Theme, palette
from mha_viz.figures.view import Axes, Block, Focus, Unit, View, block, focus, number, shades, span, units
from mha_viz.text import TokenizedText, align

MOST = 16  # panels in one figure
GAP = 28  # between panels, pixels
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
) -> Drawing:
    """Panels in rows of ``columns`` (as many as fit), all on one scale.

    ``scale="head"`` means up to the largest weight of all panels here; "row" is refused, for it is no shared scale.
    The pin counts tokens of the first panel; the others hold the word that stands for it, where there is one.
    Raises SettingError, UnknownHead.
    """
    view, size = view or View(), size or Size()
    _check(panels, view, kind, columns)
    theme = THEMES[size.look]
    parts = [block(p.attention, p.head, view, units(p.attention.text, view)) for p in panels]
    top = max(part.top for part in parts)
    across = columns or max(1, min(len(panels), int((size.pixels + GAP) // (NARROWEST[kind] + GAP))))
    width = (max(size.pixels, across * 80 + (across - 1) * GAP) - (across - 1) * GAP) / across
    marks, y = _rows([_panel(panels, p, view, top, width, theme, kind) for p in panels], across, width)
    words = f"one scale{' of opacity' if kind == 'links' else ''}, {span(view.scale, top)}"
    ramp = (theme.paper, theme.ink) if kind == "links" else theme.ramp
    total = across * width + (across - 1) * GAP
    marks += scale_bar(total, y + FOOT / 2, 90, theme, ramp, words)
    drawn = Drawing(
        total,
        y + FOOT,
        tuple(marks),
        background=None if size.transparent else theme.paper,
        **_words(
            panels,
            view,
            parts,
            "compare",
            f"{'Opacity' if kind == 'links' else 'Colour'}, for all panels: {span(view.scale, top)}.",
        ),
    )
    return sheet(drawn, size)


def _check(panels: Sequence[Panel], view: View, kind: str, columns: int | None) -> None:
    if not 1 <= len(panels) <= MOST:
        raise SettingError(f"{len(panels)} heads were given.", f"A comparison shows 1 to {MOST}.")
    if kind not in NARROWEST:
        raise SettingError(f"kind is {str(kind)[:40]!r}.", "Expected heatmap or links.")
    if view.scale == "row":
        raise SettingError("scale is 'row', which gives each row its own.", "A comparison takes fixed, head or log.")
    if columns is not None and not 1 <= columns <= MOST:
        raise SettingError(f"columns is {columns}.", f"Expected 1 to {MOST}.")


class _Set(NamedTuple):
    marks: tuple[Mark, ...]
    height: float


def _panel(panels: Sequence[Panel], panel: Panel, view: View, top: float, width: float, theme: Theme, kind: As) -> _Set:
    attention, head, name = panel
    axes = units(attention.text, view)
    held = held_in(panels[0].attention, attention, view)
    shared = None if view.scale != "head" else top
    title = f"{caption.both(head)}  {name}".strip()
    marks: list[Mark] = [Text(0, 9, fonts.cut(title, 14, width, 600), 14, theme.ink, weight=600)]
    lines = wrapped(_whose(panels, panel), width, 11, 2)
    marks += [Text(0, 26 + 14 * i, line, 11, theme.muted) for i, line in enumerate(lines)]
    below = 22 + 14 * max(len(wrapped(_whose(panels, p), width, 11, 2)) for p in panels)  # rows begin at one height
    if kind == "links":
        drawn, spread = link_marks([strand(attention, head, view, axes, theme, shared)], axes, held, width, theme)
        height = spread.height + TOP
    else:
        part = block(attention, head, view, axes)
        matrix = Matrix(palette(theme.ramp)[shades(part.w, view.scale, shared)], axes, held)
        drawn, layout = matrix_marks(matrix, width, theme)
        height = layout.height
    return _Set((*marks, *moved(drawn, 0, below)), height + below)


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
    """The model and the sentence, where panels differ in them."""
    models = {(p.attention.model, p.attention.revision) for p in panels}
    texts = {(p.attention.text.text, p.attention.text.pair) for p in panels}
    model = panel.attention.model if len(models) > 1 else ""
    text = panel.attention.text
    said = f"“{text.text}”" + (f" and “{text.pair}”" if text.pair else "") if len(texts) > 1 else ""
    return ": ".join(s for s in (model, said) if s)


def _rows(sets: Sequence[_Set], across: int, width: float) -> tuple[list[Mark], float]:
    marks: list[Mark] = []
    y = 0.0
    for start in range(0, len(sets), across):
        row = sets[start : start + across]
        for i, one in enumerate(row):
            marks += moved(one.marks, i * (width + GAP), y)
        y += max(one.height for one in row) + 18
    return marks, y - 8


def held_in(first: Attention, other: Attention, view: View) -> Focus | None:
    """Where the pin, which counts tokens of ``first``, stands in ``other``; None where nothing stands for it."""
    axes = units(other.text, view)
    if first.text == other.text:
        return focus(axes, view)
    query, key = (_unit_for(first, other, token) for token in view.pinned)
    row, col = (_index(side, unit) for side, unit in ((axes.rows, query), (axes.cols, key)))
    asked = [token is not None for token in view.pinned]
    found = [row is not None, col is not None]
    return Focus(row, col) if any(asked) and asked == found else None


def _unit_for(first: Attention, other: Attention, token: int | None) -> tuple[int, ...] | None:
    """The pieces of ``other`` that stand for the word of a token of ``first``."""
    if token is None:
        return None
    own = next((i for i, group in enumerate(first.text.groups) if token in group), None)
    matched = None if own is None else align(first.text, other.text).same[own]
    return None if matched is None else other.text.groups[matched]


def _index(side: tuple[Unit, ...], tokens: tuple[int, ...] | None) -> int | None:
    return None if tokens is None else next((i for i, u in enumerate(side) if u.tokens[0] in tokens), None)


def difference(first: Panel, second: Panel, view: View | None = None, size: Size | None = None) -> Drawing:
    """What ``second`` gives more (orange) or less (blue) than ``first``; nothing shown where they agree.

    The scale runs to the largest difference on both sides. Raises SettingError when the rows and columns of the two
    do not correspond one to one, UnknownHead.
    """
    view, size = view or View(), size or Size()
    theme = THEMES[size.look]
    axes, d, parts = signed(first, second, view)
    top = float(np.abs(d).max(initial=0))
    held = focus(axes, view) if first.attention.text == second.attention.text else None
    matrix = Matrix(palette(theme.signed)[levels(d, top)], axes, held)
    marks, layout = matrix_marks(matrix, size.pixels, theme, lines=not size.transparent)
    words = f"−{number(top)} to +{number(top)}"
    marks += foot(layout, theme, theme.signed, words)
    scale = f"Colour: {caption.both(second.head)} minus {caption.both(first.head)}, {words}."
    drawn = Drawing(
        layout.width,
        layout.height + FOOT,
        marks,
        background=None if size.transparent else theme.paper,
        **_words((first, second), view, parts, "difference", scale),
    )
    return sheet(drawn, size)


def signed(first: Panel, second: Panel, view: View) -> Difference:
    """The signed difference, second minus first, unit by unit. Raises SettingError where units do not correspond."""
    pairs = [(units(p.attention.text, view), p) for p in (first, second)]
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
    number = "Their words differ in number. Compare two sentences of which one has some words replaced."
    if [place[i] for i in ours] != theirs:
        return number
    if view.unit == "pieces" and any(len(a.groups[i]) != len(b.groups[j]) for i, j in zip(ours, theirs, strict=True)):
        return "They are cut into different pieces. Compare them by words."
    return "" if [*map(len, units(a, view))] == [*map(len, units(b, view))] else number


def _kept(text: TokenizedText, view: View) -> list[int]:
    """The words, and the special tokens where they are kept, by their numbers."""
    return [i for i, g in enumerate(text.groups) if view.special == "keep" or not text.tokens[g[0]].special]


def _renamed(one: tuple[Unit, ...], two: tuple[Unit, ...]) -> tuple[Unit, ...]:
    return tuple(
        u if u.special or u.text.casefold() == v.text.casefold() else u._replace(text=f"{u.text} / {v.text}")
        for u, v in zip(one, two, strict=True)
    )


def levels(d: npt.NDArray[np.float32], top: float) -> npt.NDArray[np.uint8]:
    """Place of every difference on the signed scale, 0…255; 128 is no difference."""
    return np.clip(np.rint(128 + 127 * d.astype(np.float64) / (top or 1)), 0, 255).astype(np.uint8)


def _words(panels: Sequence[Panel], view: View, parts: Sequence[Block], kind: str, scale: str) -> caption.Words:
    """Caption, description and metadata of panels that may come from several readings."""
    readings = list(dict.fromkeys(caption.reading(p.attention) for p in panels))
    named = [f"{caption.both(p.head)}{f' ({p.name})' if p.name else ''}" for p in panels]
    if len(readings) == 1:
        listed = f"{', '.join(named)} of {readings[0]}"
    else:
        listed = "; ".join(f"{name} of {caption.reading(p.attention)}" for name, p in zip(named, panels, strict=True))
    first = panels[0].attention
    said = [caption.stopped(f"{caption.KINDS[kind]}: {listed}"), caption.done(view, "links"), caption.held(first, view)]
    said += [scale, caption.hidden_note(view, parts)]
    about = {
        "figure": kind,
        "model": "; ".join(dict.fromkeys(p.attention.model for p in panels)),
        "revision": "; ".join(dict.fromkeys(p.attention.revision for p in panels)),
        "text": "; ".join(dict.fromkeys(p.attention.text.text for p in panels)),
        "heads": " ".join(str(p.head) for p in panels),
        **caption.settings(view),
        "hidden": f"{caption.hidden(parts):.4f}",
    }
    return {
        "caption": " ".join(s for s in said if s),
        "alt": f"{caption.KINDS[kind]}: {', '.join(named)}.",
        "about": about,
    }
