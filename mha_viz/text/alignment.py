"""Which word of one text corresponds to which word of another."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from mha_viz.text.tokens import Token, TokenizedText


class Alignment(NamedTuple):
    """Which unit of a second text corresponds to each unit of a first one: an index, or None. Units are words and
    special tokens, as in :meth:`TokenizedText.by_words`.

    ``same``: only if both are the same characters of one text, or the same word. ``place``: also if a run of words was
    replaced by another of the same length.
    """

    same: tuple[int | None, ...]
    place: tuple[int | None, ...]


def align(a: TokenizedText, b: TokenizedText) -> Alignment:
    """The units of ``b`` that correspond to those of ``a``: by character spans if the typed text is the same, otherwise
    by words in order (ignoring case), as many as possible."""
    first, second = a.by_words().tokens, b.by_words().tokens
    same = _in_order(_alike(a.by_words()), _alike(b.by_words()))
    if (a.text, a.pair) == (b.text, b.pair):
        same = _by_span(first, second, same)
        return Alignment(tuple(same), tuple(same))
    return Alignment(tuple(same), tuple(_replaced(first, second, same)))


def _alike(words: TokenizedText) -> list[str]:
    """The words without case; all special tokens are alike: [CLS] corresponds to <s>."""
    return ["\0" if special else t.text.casefold() for t, special in zip(words.tokens, words.special, strict=True)]


def _in_order(a: Sequence[str], b: Sequence[str]) -> list[int | None]:
    """For each of ``a`` its partner in ``b``: by a longest common subsequence that keeps a common beginning and end."""
    shorter = min(len(a), len(b))
    begin = next((i for i in range(shorter) if a[i] != b[i]), shorter)
    end = next((i for i in range(shorter - begin) if a[-1 - i] != b[-1 - i]), shorter - begin)
    inner = _common(a[begin : len(a) - end], b[begin : len(b) - end])
    middle = [None if j is None else begin + j for j in inner]
    return [*range(begin), *middle, *range(len(b) - end, len(b))]


def _common(a: Sequence[str], b: Sequence[str]) -> list[int | None]:
    """Partners by a longest common subsequence, with one integer of len(a) bits per row (Hyyrö 2004): unlike with
    difflib, the time does not depend on how repetitive the text is."""
    where: dict[str, int] = {}
    for i, word in enumerate(a):
        where[word] = where.get(word, 0) | 1 << i
    whole = (1 << len(a)) - 1
    rows = [whole]  # after j words of b: bit i is 0 if word i of a lengthens the subsequence by one
    for word in b:
        matches = rows[-1] & where.get(word, 0)
        rows.append(((rows[-1] + matches) | (rows[-1] - matches)) & whole)
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


def _by_span(first: Sequence[Token], second: Sequence[Token], same: list[int | None]) -> list[int | None]:
    """The first unit of ``second`` that shares a character with each unit of ``first``; ``same`` for units that were
    not typed."""
    partners: list[int | None] = []
    typed = [(j, t.segment, t.start, t.end) for j, t in enumerate(second) if t.start is not None and t.end is not None]
    at = 0
    for i, token in enumerate(first):
        if token.start is None or token.end is None:
            partners.append(same[i])
            continue
        while at < len(typed) and (typed[at][1], typed[at][3]) <= (token.segment, token.start):
            at += 1
        meets = at < len(typed) and typed[at][1] == token.segment and typed[at][2] < token.end
        partners.append(typed[at][0] if meets else None)
    return partners


def _replaced(first: Sequence[Token], second: Sequence[Token], same: Sequence[int | None]) -> list[int | None]:
    """``same``, and the words between two partners if both texts have equally many there."""
    place = list(same)
    held = [(i, j) for i, j in enumerate(same) if j is not None]
    for (i, j), (i_end, j_end) in pairwise([(-1, -1), *held, (len(first), len(second))]):
        ours, theirs = range(i + 1, i_end), range(j + 1, j_end)
        if len(ours) == len(theirs) and not any(t.special for t in (*first[i + 1 : i_end], *second[j + 1 : j_end])):
            place[i + 1 : i_end] = theirs
    return place
