"""Align two texts: find which word of one corresponds to which word of the other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from mha_viz.text.tokens import Token, TokenizedText


class Alignment(NamedTuple):
    """For each unit of a first text, the index of the corresponding unit of a second text, or None.

    Units are words and special tokens, as in :meth:`TokenizedText.by_words`. ``matches`` pairs units only if both are
    the same characters of one text, or the same word. ``pairs`` also pairs units if a run of words was replaced by
    another of the same length.
    """

    matches: tuple[int | None, ...]
    pairs: tuple[int | None, ...]


def align(a: TokenizedText, b: TokenizedText) -> Alignment:
    """Find the units of ``b`` that correspond to those of ``a``.

    If the typed text is the same, units are paired by character spans; otherwise by words in order (ignoring case), as
    many as possible.
    """
    units, other_units = a.by_words().tokens, b.by_words().tokens
    matches = _align_words(_normalize(a.by_words()), _normalize(b.by_words()))
    if (a.text, a.pair) == (b.text, b.pair):
        matches = _align_spans(units, other_units, matches)
        return Alignment(tuple(matches), tuple(matches))
    return Alignment(tuple(matches), tuple(_pair_gaps(units, other_units, matches)))


def _normalize(words: TokenizedText) -> list[str]:
    """Return the words without case, and one value for all special tokens, so that [CLS] corresponds to <s>."""
    return ["\0" if special else t.text.casefold() for t, special in zip(words.tokens, words.special, strict=True)]


def _align_words(a: Sequence[str], b: Sequence[str]) -> list[int | None]:
    """Return for each word of ``a`` its partner in ``b``, by a longest common subsequence.

    A common beginning and a common end are always kept.
    """
    min_length = min(len(a), len(b))
    prefix = next((i for i in range(min_length) if a[i] != b[i]), min_length)
    suffix = next((i for i in range(min_length - prefix) if a[-1 - i] != b[-1 - i]), min_length - prefix)
    partners = _align_subsequence(a[prefix : len(a) - suffix], b[prefix : len(b) - suffix])
    middle = [None if j is None else prefix + j for j in partners]
    return [*range(prefix), *middle, *range(len(b) - suffix, len(b))]


def _align_subsequence(a: Sequence[str], b: Sequence[str]) -> list[int | None]:
    """Return partners by a longest common subsequence, with one integer of len(a) bits per row (Hyyrö 2004).

    Unlike with difflib, the time does not depend on how repetitive the text is.
    """
    positions: dict[str, int] = {}
    for i, word in enumerate(a):
        positions[word] = positions.get(word, 0) | 1 << i
    mask = (1 << len(a)) - 1
    rows = [mask]  # after j words of b: bit i is 0 if word i of a lengthens the subsequence by one
    for word in b:
        matches = rows[-1] & positions.get(word, 0)
        rows.append(((rows[-1] + matches) | (rows[-1] - matches)) & mask)
    partners: list[int | None] = [None] * len(a)
    i, j = len(a), len(b)
    while i and j:
        if rows[j] >> (i - 1) & 1:
            i -= 1
        elif rows[j - 1] >> (i - 1) & 1:
            i, j = i - 1, j - 1
            partners[i] = j
        else:
            j -= 1
    return partners


def _align_spans(units: Sequence[Token], other_units: Sequence[Token], matches: list[int | None]) -> list[int | None]:
    """Return for each unit the first of ``other_units`` that shares a character with it.

    Units that were not typed keep their partner in ``matches``.
    """
    partners: list[int | None] = []
    spans = [
        (j, t.segment, t.start, t.end) for j, t in enumerate(other_units) if t.start is not None and t.end is not None
    ]
    position = 0
    for i, token in enumerate(units):
        if token.start is None or token.end is None:
            partners.append(matches[i])
            continue
        while position < len(spans) and (spans[position][1], spans[position][3]) <= (token.segment, token.start):
            position += 1
        overlaps = position < len(spans) and spans[position][1] == token.segment and spans[position][2] < token.end
        partners.append(spans[position][0] if overlaps else None)
    return partners


def _pair_gaps(units: Sequence[Token], other_units: Sequence[Token], matches: Sequence[int | None]) -> list[int | None]:
    """Return ``matches``, and also pair the words between two partners if both texts have equally many there."""
    pairs = list(matches)
    anchors = [(i, j) for i, j in enumerate(matches) if j is not None]
    for (i, j), (i_end, j_end) in pairwise([(-1, -1), *anchors, (len(units), len(other_units))]):
        gap, other_gap = range(i + 1, i_end), range(j + 1, j_end)
        if len(gap) == len(other_gap) and not any(
            t.special for t in (*units[i + 1 : i_end], *other_units[j + 1 : j_end])
        ):
            pairs[i + 1 : i_end] = other_gap
    return pairs
