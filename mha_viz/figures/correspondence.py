"""The panels of a comparison, and which of their tokens correspond: what a pin holds in each, and whether two of them
have the same rows and columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mha_viz.attention import Attention, Head
from mha_viz.figures.view import Focus, Unit, View, focus, units
from mha_viz.text import TokenizedText, align

NUMBER = "Their words differ in number. Compare two sentences that differ only in words replaced one for one."


class Panel(NamedTuple):
    """One head of one reading, with the name that a user gave it, if any."""

    attention: Attention
    head: Head
    name: str = ""


def held_by_panels(
    panels: Sequence[Panel], view: View, pin_of: int = 0, diff: tuple[int, int] | None = None
) -> list[Focus | None]:
    """The held tokens of each panel."""
    pinned = panels[pin_of].attention
    two = [panels[i].attention for i in diff or ()]
    if two and mismatch(two[0], two[1], view):
        two = []
    subtracted = {attention.key for attention in two}
    order = [panel.attention.key for panel in panels]  # the page aligns each reading with those that come after it
    return [
        focus(units(pinned, view), view)  # units of both are in the same order
        if {pinned.key, panel.attention.key} <= subtracted
        else held_in(pinned, panel.attention, view, order.index(panel.attention.key) < order.index(pinned.key))
        for panel in panels
    ]


def held_in(first: Attention, other: Attention, view: View, back: bool = False) -> Focus | None:
    """The position in ``other`` of the pin, which counts tokens of ``first``; None if nothing corresponds to it.

    There may be several equally good alignments; ``back`` uses that of ``other`` to ``first``.
    """
    axes = units(other, view)
    sides = texts(first, other)
    if all(ours == theirs for ours, theirs in sides):
        return focus(axes, view)
    query, key = (_unit_for(*side, token, back) for side, token in zip(sides, view.pinned, strict=True))
    row, col = (_index(side, unit) for side, unit in ((axes.rows, query), (axes.cols, key)))
    pinned = [token is not None for token in view.pinned]
    present = [row is not None, col is not None]
    return Focus(row, col) if any(pinned) and pinned == present else None


def pin_in(panels: Sequence[Panel], number: int, view: View, pin_of: int) -> str:
    """The pin, which counts tokens of panel ``pin_of``, counted in tokens of panel ``number``; empty if nothing
    corresponds to it."""
    axes, held = units(panels[number].attention, view), held_by_panels(panels, view, pin_of)[number]
    if held is None:
        return ""
    query = "" if held.row is None else f"q{axes.rows[held.row].tokens[0]}"
    return query if held.col is None else f"{query}k{axes.cols[held.col].tokens[0]}"


def texts(first: Attention, other: Attention) -> tuple[tuple[TokenizedText, TokenizedText], ...]:
    """The texts of the rows of two readings, and those of their columns."""
    return (first.queries, other.queries), (first.keys, other.keys)


def _unit_for(first: TokenizedText, other: TokenizedText, token: int | None, back: bool) -> tuple[int, ...] | None:
    """The pieces of ``other`` that correspond to the word of a token of ``first``."""
    unit = next((i for i, group in enumerate(first.groups) if token in group), None)
    if unit is None:
        return None
    if back:
        same = align(other, first).same
        matched = same.index(unit) if unit in same else None
    else:
        matched = align(first, other).same[unit]
    return None if matched is None else other.groups[matched]


def _index(side: tuple[Unit, ...], tokens: tuple[int, ...] | None) -> int | None:
    return None if tokens is None else next((i for i, u in enumerate(side) if u.tokens[0] in tokens), None)


def mismatch(first: Attention, second: Attention, view: View) -> str:
    """Why the units of two readings do not correspond one to one; empty if they do."""
    if first.quantity != second.quantity:
        return f"One holds {first.quantity}s, the other {second.quantity}s. Compare two of the same quantity."
    if first.is_cross != second.is_cross:
        return "One leads from one text to another, the other from a text to itself. Compare two of the same kind."
    sides = texts(first, second) if first.is_cross else texts(first, second)[:1]
    reason = next((reason for side in sides if (reason := _unlike(*side, view))), "")
    same_shape = [*map(len, units(first, view))] == [*map(len, units(second, view))]
    return reason or ("" if same_shape else NUMBER)


def _unlike(a: TokenizedText, b: TokenizedText, view: View) -> str:
    """Why the units of two texts do not correspond one to one; empty if they do."""
    place = align(a, b).place
    ours, theirs = (_shown_units(text, view) for text in (a, b))
    if [place[i] for i in ours] != theirs:
        return NUMBER
    if view.unit == "pieces" and not _cut_the_same(a, b, list(zip(ours, theirs, strict=True))):
        return "They are cut into different pieces. Compare them by words."
    return ""


def _cut_the_same(a: TokenizedText, b: TokenizedText, partners: Sequence[tuple[int, int]]) -> bool:
    """Whether pieces of words can be subtracted: equally many, and with the same characters if the words are the
    same."""
    same_text = (a.text, a.pair) == (b.text, b.pair)
    ours, theirs = a.by_words().tokens, b.by_words().tokens
    for i, j in partners:
        pieces = [(a.tokens[s], b.tokens[t]) for s, t in zip(a.groups[i], b.groups[j], strict=False)]
        if len(a.groups[i]) != len(b.groups[j]):
            return False
        if same_text and any((s.start, s.end) != (t.start, t.end) for s, t in pieces):
            return False
        replaced = ours[i].special or not same_word(ours[i].text, theirs[j].text)
        if not same_text and not replaced and not all(same_word(s.text, t.text) for s, t in pieces):
            return False
    return True


def same_word(one: str, two: str) -> bool:
    return one.casefold() == two.casefold()


def _shown_units(text: TokenizedText, view: View) -> list[int]:
    """The words, and the special tokens if they are kept, by number."""
    return [i for i, g in enumerate(text.groups) if view.special == "keep" or not text.tokens[g[0]].special]
