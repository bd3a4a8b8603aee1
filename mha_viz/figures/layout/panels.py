"""The panels of a comparison: the correspondence of their tokens, and their packet for the browser.

Layout of the packet: a little-endian uint32 with the length of the header, the header (JSON, UTF-8, padded to four
bytes), then one packet for each distinct reading in the layout of :mod:`mha_viz.figures.layout.packet`, with the heads
of its panels only. The header's ``sizes`` are the sizes of these packets in bytes. A head takes 2 · n² bytes, once even
if several panels show it: 0.5 MB for the longest text, 8.4 MB for sixteen heads. The same panels give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Sequence
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np

from mha_viz.analysis.distance import divergence
from mha_viz.attention import Attention, Head
from mha_viz.errors import SettingError
from mha_viz.figures.drawing.theme import THEMES
from mha_viz.figures.layout.caption import list_applied_steps
from mha_viz.figures.layout.packet import OpenHead, Overview, _build_header, _join_packet, collect_axis_tokens, quantise
from mha_viz.figures.layout.view import Focus, Unit, View, find_focus, list_units
from mha_viz.model_names import format_revision, label_model
from mha_viz.text import Alignment, TokenizedText, align, clean
from mha_viz.view.quantities import QUANTITIES

MAX_PANELS = 16  # maximum number of panels in one figure
UNEQUAL_LENGTHS = "Their words differ in number. Compare two sentences of equal length that differ only in some words."


class Panel(NamedTuple):
    """One head of one reading; ``name`` is the user's name for it, if any."""

    attention: Attention
    head: Head
    name: str = ""


def find_pins(
    panels: Sequence[Panel], view: View, pin_of: int = 0, diff: tuple[int, int] | None = None
) -> list[Focus | None]:
    """Return the pinned tokens of each panel. The pin counts tokens of panel ``pin_of``.

    If the readings of ``diff`` have the same units, replaced words correspond, too; otherwise only equal words do.
    """
    origin = panels[pin_of].attention
    readings = [panels[i].attention for i in diff or ()]
    if readings and explain_mismatch(readings[0], readings[1], view):
        readings = []
    difference_keys = {attention.key for attention in readings}
    keys = [panel.attention.key for panel in panels]  # the page aligns each reading with later ones
    return [
        find_focus(list_units(origin, view), view)  # the units of both readings are in the same order
        if {origin.key, panel.attention.key} <= difference_keys
        else transfer_pin(origin, panel.attention, view, keys.index(panel.attention.key) < keys.index(origin.key))
        for panel in panels
    ]


def transfer_pin(first: Attention, other: Attention, view: View, is_reversed: bool = False) -> Focus | None:
    """Return the position in ``other`` of the pin, which counts tokens of ``first``; None if nothing corresponds to it.

    There may be several equally good alignments; ``is_reversed``: use the alignment of ``other`` to ``first``.
    """
    axes = list_units(other, view)
    sides = pair_axis_texts(first, other)
    if all(text == other_text for text, other_text in sides):
        return find_focus(axes, view)
    query, key = (_find_unit(*side, token, is_reversed) for side, token in zip(sides, view.pinned, strict=True))
    row, col = (_find_index(side, unit) for side, unit in ((axes.rows, query), (axes.cols, key)))
    has_pin = [token is not None for token in view.pinned]
    has_position = [row is not None, col is not None]
    return Focus(row, col) if any(has_pin) and has_pin == has_position else None


def convert_pin(panels: Sequence[Panel], number: int, view: View, pin_of: int) -> str:
    """Convert the pin, which counts tokens of panel ``pin_of``, to tokens of panel ``number``.

    The result is empty if nothing corresponds.
    """
    axes, focus = list_units(panels[number].attention, view), find_pins(panels, view, pin_of)[number]
    if focus is None:
        return ""
    query = "" if focus.row is None else f"q{axes.rows[focus.row].tokens[0]}"
    return query if focus.col is None else f"{query}k{axes.cols[focus.col].tokens[0]}"


def choose_difference_pin(panels: Sequence[Panel], diff: tuple[int, int], pin_of: int, view: View) -> tuple[int, str]:
    """Convert the pin of a comparison for the difference of two of its panels.

    Return the index of its panel among the two, and the pin.
    """
    origin = panels[pin_of].attention
    for side, number in enumerate(diff):
        if panels[number].attention.key == origin.key:
            return side, view.pin
    return 0, convert_pin(panels, diff[0], view, pin_of)


def pair_axis_texts(first: Attention, other: Attention) -> tuple[tuple[TokenizedText, TokenizedText], ...]:
    """Return the pair of texts on the rows of two readings, and the pair on their columns."""
    return (first.queries, other.queries), (first.keys, other.keys)


def _find_unit(
    first: TokenizedText, other: TokenizedText, token: int | None, is_reversed: bool
) -> tuple[int, ...] | None:
    """Return the subwords of ``other`` that correspond to the word of a token of ``first``."""
    unit = next((i for i, group in enumerate(first.groups) if token in group), None)
    if unit is None:
        return None
    if is_reversed:
        partners = align(other, first).matches
        partner = partners.index(unit) if unit in partners else None
    else:
        partner = align(first, other).matches[unit]
    return None if partner is None else other.groups[partner]


def _find_index(side: tuple[Unit, ...], tokens: tuple[int, ...] | None) -> int | None:
    return None if tokens is None else next((i for i, u in enumerate(side) if u.tokens[0] in tokens), None)


def explain_mismatch(first: Attention, second: Attention, view: View) -> str:
    """Explain why the units of two readings do not correspond one to one; empty if they do."""
    if first.quantity != second.quantity:
        return f"One holds {first.quantity}s, the other {second.quantity}s. Compare two of the same quantity."
    if first.is_cross != second.is_cross:
        return "One leads from one text to another, the other from a text to itself. Compare two of the same kind."
    sides = pair_axis_texts(first, second) if first.is_cross else pair_axis_texts(first, second)[:1]
    reason = next((reason for side in sides if (reason := _explain_text_mismatch(*side, view))), "")
    has_same_shape = [*map(len, list_units(first, view))] == [*map(len, list_units(second, view))]
    return reason or ("" if has_same_shape else UNEQUAL_LENGTHS)


def _explain_text_mismatch(a: TokenizedText, b: TokenizedText, view: View) -> str:
    """Explain why the units of two texts do not correspond one to one; empty if they do."""
    positions = align(a, b).pairs
    a_units, b_units = (_list_shown_units(text, view) for text in (a, b))
    if [positions[i] for i in a_units] != b_units:
        return UNEQUAL_LENGTHS
    if view.unit == "pieces" and not _has_same_subwords(a, b, list(zip(a_units, b_units, strict=True))):
        return "Their words are split differently. Compare them by words."
    return ""


def _has_same_subwords(a: TokenizedText, b: TokenizedText, partners: Sequence[tuple[int, int]]) -> bool:
    """Return whether subwords can be subtracted.

    Corresponding words must have equally many subwords, with the same characters if the words are the same.
    """
    has_same_text = (a.text, a.pair) == (b.text, b.pair)
    a_words, b_words = a.by_words().tokens, b.by_words().tokens
    for i, j in partners:
        pieces = [(a.tokens[s], b.tokens[t]) for s, t in zip(a.groups[i], b.groups[j], strict=False)]
        if len(a.groups[i]) != len(b.groups[j]):
            return False
        if has_same_text and any((s.start, s.end) != (t.start, t.end) for s, t in pieces):
            return False
        is_replaced = a_words[i].special or not is_same_word(a_words[i].text, b_words[j].text)
        if not has_same_text and not is_replaced and not all(is_same_word(s.text, t.text) for s, t in pieces):
            return False
    return True


def is_same_word(first: str, second: str) -> bool:
    """Return whether two words are equal, ignoring case."""
    return first.casefold() == second.casefold()


def _list_shown_units(text: TokenizedText, view: View) -> list[int]:
    """Return the indices of the words, and of the special tokens if they are shown."""
    return [i for i, g in enumerate(text.groups) if view.special == "keep" or not text.tokens[g[0]].special]


# ---- Packets for the browser ----------------------------------------------------------------------------------


UnitName = Literal["pieces", "words"]
Partners = list[int | None]

# The fields of a reading's header that are needed to draw a panel.
PANEL_FIELDS = (
    "key", "model", "cited", "layers", "heads", "n", "tokens", "segments", "special", "groups", "words", "full",
    "signed", "request", "numbers", "layer_numbers",
)  # fmt: skip


class _Reading(NamedTuple):
    """One reading with the heads that its panels show, without repetition, in order of layer and head."""

    attention: Attention
    heads: tuple[Head, ...]


class _Pair(NamedTuple):
    """The correspondence of two readings.

    Attributes:
        rows, columns: the partners of the first's words and special tokens in the second; None where nothing
            corresponds.
        unit: the unit in which both have the same rows and columns, or None.
    """

    rows: Alignment
    columns: Alignment
    unit: UnitName | None


def pack_comparison(
    panels: Sequence[Panel], *, editable: bool | Sequence[int] = False, is_standalone: bool = False
) -> bytes:
    """Return the bytes for up to 16 panels.

    ``editable``: whether the user may rename, move and remove these panels; if some panels of a list cannot be shown,
    the index of each panel in that list. ``is_standalone``: for a page without a server. Raises SettingError,
    UnknownHead.
    """
    if len(panels) > MAX_PANELS:
        raise SettingError(f"{len(panels)} heads were given.", f"A comparison shows up to {MAX_PANELS}.")
    readings_by_key = _group_readings(panels)
    numbers = {key: number for number, key in enumerate(readings_by_key)}
    reading_numbers = [numbers[panel.attention.key] for panel in panels]
    readings = list(readings_by_key.values())
    pairs = {
        (i, j): _align_readings(readings[i].attention, readings[j].attention)
        for i, j in combinations(range(len(readings)), 2)
    }
    packets = [_pack_reading(reading, is_standalone) for reading in readings]
    header = {
        "editable": editable is not False,
        "panels": [
            _panel_header(panel, reading_numbers[i], _source_index(editable, i)) for i, panel in enumerate(panels)
        ],
        "sizes": [len(p) for p in packets],
        **_build_tables(
            [reading.attention.queries for reading in readings], {ij: pair.rows for ij, pair in pairs.items()}
        ),
        "compared": [[_common_unit(pairs, i, j) for j in range(len(readings))] for i in range(len(readings))],
        "divergence": _compute_divergences(panels, reading_numbers, readings, pairs),
        "themes": {name: theme._asdict() for name, theme in THEMES.items()},
    }
    if any(reading.attention.is_cross for reading in readings):
        keys = [reading.attention.keys for reading in readings]
        header |= {"columns": _build_tables(keys, {ij: pair.columns for ij, pair in pairs.items()})}
    return _join_packet({"key": _compute_key(header, packets), **header}, packets)


def set_initial_state(packet: bytes, **start: str) -> bytes:
    """Set the initial state of a packet's panels, which the URL can override.

    ``start``: a difference (``diff``, "0-1"), a pinned word (``pin``, "q3"), and special tokens (``special``).
    """
    (length,) = struct.unpack("<I", packet[:4])
    header = json.loads(packet[4 : 4 + length])
    return _join_packet({**header, "start": start}, [packet[4 + length :]])


def _group_readings(panels: Sequence[Panel]) -> dict[str, _Reading]:
    """Return distinct readings by their keys, in the order of their first panels."""
    readings: dict[str, _Reading] = {}
    for attention, head, _ in panels:
        _ = attention[head]  # raises UnknownHead
        earlier = readings[attention.key].heads if attention.key in readings else ()
        readings[attention.key] = _Reading(attention, tuple(sorted({*earlier, head})))
    return readings


def _panel_header(panel: Panel, reading: int, source: int | None) -> dict[str, object]:
    number = panel.attention.place(panel.head)
    fields: dict[str, object] = {"reading": reading, "head": number, "name": clean(panel.name)}
    return fields if source is None else {**fields, "source": source}


def _source_index(editable: bool | Sequence[int], panel: int) -> int | None:
    if isinstance(editable, bool):
        return panel if editable else None
    return editable[panel]


def _pack_reading(reading: _Reading, is_standalone: bool) -> bytes:
    """Pack one reading: its heads in full, and the fields of its text that are needed for words, labels and spans."""
    attention, heads = reading
    special = attention.keys.special
    header = _build_header(attention, heads, OpenHead(), Overview([], {}, b""), is_standalone)
    fields: dict[str, object] = {
        "label": label_model(attention.model),
        "revision": format_revision(attention.model, attention.revision),
        "steps": clean(list_applied_steps(attention)),
    }
    fields |= _typed_fields(attention.queries)
    fields |= (
        {"keys": {**collect_axis_tokens(attention.keys), **_typed_fields(attention.keys)}} if attention.is_cross else {}
    )
    signed = QUANTITIES[attention.quantity].is_signed
    parts = quantise(np.stack([attention[head] for head in heads]), special, signed=signed)
    return _join_packet({**{name: header[name] for name in PANEL_FIELDS if name in header}, **fields}, parts)


def _typed_fields(text: TokenizedText) -> dict[str, object]:
    """Return the typed text, and the span of each token in it."""
    spans = [None if t.start is None or t.end is None else [t.start, t.end] for t in text.tokens]
    return {"text": text.text, "pair": text.pair, "spans": spans}


# ---- Correspondence -----------------------------------------------------------------------------------


def _align_readings(first: Attention, second: Attention) -> _Pair:
    rows = align(first.queries, second.queries)
    columns = align(first.keys, second.keys) if first.is_cross or second.is_cross else rows
    units: tuple[UnitName, ...] = ("pieces", "words")
    unit = next((unit for unit in units if not explain_mismatch(first, second, View(unit=unit))), None)
    return _Pair(rows, columns, unit)


def _build_tables(texts: Sequence[TokenizedText], alignments: dict[tuple[int, int], Alignment]) -> dict[str, object]:
    """Return the partners of words in other readings: in "aligned", of equal words only; in "place", of all words."""
    return {
        "aligned": _build_table(texts, {ij: list(alignment.matches) for ij, alignment in alignments.items()}),
        "place": _build_table(texts, {ij: list(alignment.pairs) for ij, alignment in alignments.items()}),
    }


def _build_table(
    texts: Sequence[TokenizedText], partners: dict[tuple[int, int], Partners]
) -> list[list[Partners | None]]:
    """Return the partners of the first's units in the second, [reading, reading]; None on the diagonal."""
    table: list[list[Partners | None]] = [[None] * len(texts) for _ in texts]
    for (i, j), forward in partners.items():
        inverse: Partners = [None] * len(texts[j].groups)
        for a, b in reversed(list(enumerate(forward))):  # the first of several units with the same partner
            if b is not None:
                inverse[b] = a
        table[i][j], table[j][i] = forward, inverse
    return table


def _common_unit(pairs: dict[tuple[int, int], _Pair], i: int, j: int) -> UnitName | None:
    return "pieces" if i == j else pairs[min(i, j), max(i, j)].unit


def _compute_divergences(
    panels: Sequence[Panel],
    reading_numbers: Sequence[int],
    readings: Sequence[_Reading],
    pairs: dict[tuple[int, int], _Pair],
) -> list[list[float | None]]:
    """Return the Jensen–Shannon divergence of panels [panel, panel], in nats.

    It is the mean over rows; None where rows do not correspond.
    """
    by_words = {
        i: reading.attention.only(reading.heads).by_words()
        for i, reading in enumerate(readings)
        if any(i in ij and pair.unit == "words" for ij, pair in pairs.items())
    }
    table: list[list[float | None]] = [[0.0] * len(panels) for _ in panels]
    for p, q in combinations(range(len(panels)), 2):
        # The divergence is defined for shares only.
        are_shares = all(QUANTITIES[panels[x].attention.quantity].is_share for x in (p, q))
        unit = _common_unit(pairs, reading_numbers[p], reading_numbers[q]) if are_shares else None
        matrices = [
            panels[x].attention[panels[x].head]
            if unit == "pieces"
            else by_words[reading_numbers[x]].weights[0, readings[reading_numbers[x]].heads.index(panels[x].head)]
            for x in (p, q)
            if unit
        ]
        table[p][q] = table[q][p] = round(divergence(*matrices), 5) if unit else None
    return table


def _compute_key(header: dict[str, object], packets: Sequence[bytes]) -> str:
    """Return a key that is equal for equal panels, so that a browser can keep their drawing."""
    digest = hashlib.blake2b(json.dumps(header).encode(), digest_size=12)
    for packet in packets:
        digest.update(packet)
    return digest.hexdigest()
