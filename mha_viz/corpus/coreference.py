"""Coreference chains from the brackets of ``Entity=`` in CoNLL-U, as in GUM."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from mha_viz.corpus.limits import MAX_BRACKETS
from mha_viz.corpus.rows import WordLine
from mha_viz.corpus.treebank import Mention, Sentence

# The pattern matches in linear time: once a match begins it never fails, so no character is scanned from two starting
# points; only white space and single brackets are skipped. Text that no bracket closes matches too, without the last
# group.
ENTITY_PARTS = re.compile(r"\(([^()\s-]+)(?:-[^()]*)?(\))?|([^()\s]+)(\))?")  # chain, ")" at once; other text, ")"


class _Open(NamedTuple):
    number: int  # the bracket's place among the opening brackets of the document
    chain: str
    sentence: int
    start: int
    line: int


class Brackets:
    """Parses ``Entity=`` over the sentences of a document: "(7-person-…" opens, "7)" closes, "(7)" does both."""

    def __init__(self, left_out: list[str]) -> None:
        self._left_out = left_out
        self.any_mentions = False
        self._start_document()

    def _start_document(self) -> None:
        self._opened = 0
        self._open: dict[str, list[_Open]] = {}  # by chain; the last one opened is closed first
        self._mentions: dict[int, list[Mention]] = {}  # by sentence
        self.broken = False

    def read(self, rows: Sequence[WordLine], sentence: int) -> None:
        if self.broken or not any(row.entity for row in rows):
            return
        heads = _SpanHeads([row.head - 1 if row.head else -1 for row in rows])
        for index, row in enumerate(rows):
            heads.end_at(index)
            parts = ENTITY_PARTS.findall(row.entity)
            if len(parts) > MAX_BRACKETS:
                self.fail(f"line {row.line}: {len(parts):,} brackets on one word, of which {MAX_BRACKETS} are read")
                return
            for chain, single, closed, closing in parts:
                if chain:
                    self._opened += 1
                    opened = _Open(self._opened, chain, sentence, index, row.line)
                    if single:
                        self._add_mention(opened, heads, sentence)
                    else:
                        self._open.setdefault(chain, []).append(opened)
                elif closing:
                    self._close(closed.partition("-")[0], heads, sentence, row.line)

    def _close(self, chain: str, heads: _SpanHeads, sentence: int, line: int) -> None:
        if self._open.get(chain):
            self._add_mention(self._open[chain].pop(), heads, sentence)
        else:
            self.fail(f"line {line}: Entity={chain[:20]}) closes what was never opened")

    def _add_mention(self, opened: _Open, heads: _SpanHeads, sentence: int) -> None:
        if opened.sentence != sentence:
            self.fail(f"line {opened.line}: Entity=({opened.chain[:20]} closes in another sentence")
            return
        chain, _, part = opened.chain.partition("[")
        if part and not part.startswith("1/"):  # a discontinuous mention is represented by its first part
            return
        mention = Mention(chain, opened.start, heads.end + 1, heads.head_from(opened.start))
        self._mentions.setdefault(sentence, []).append(mention)

    def fail(self, reason: str) -> None:
        if not self.broken:
            self._left_out.append(f"{reason}: the coreference of this document is left out.")
        self.broken = True

    def close(self, sentences: list[Sentence]) -> None:
        """End the document: add its mentions to their sentences, unless a bracket is still open."""
        first = min((stack[0] for stack in self._open.values() if stack), default=None)
        if first and not self.broken:
            self.fail(f"line {first.line}: Entity=({first.chain[:20]} never closes")
        for number, mentions in self._mentions.items() if not self.broken else ():
            old = sentences[number]
            sentences[number] = Sentence(old.words, tuple(sorted(mentions, key=_sort_key)), old.document, old.line)
            self.any_mentions = True
        self._start_document()


class _SpanHeads:
    """The head word of each span of a sentence: the first word whose head is outside the span.

    ``heads`` are indices, −1 for none. The end of the span moves from word to word; a word is *waiting* while its head
    is beyond the end, so no span has to be scanned word by word.
    """

    def __init__(self, heads: Sequence[int]) -> None:
        self._heads = heads
        self._first_headed_before = _first_headed_before(heads)
        self._earlier: list[list[int]] = [[] for _ in heads]  # the dependents that precede each word
        for word, head in enumerate(heads):
            if head > word:
                self._earlier[head].append(word)
        self._waiting: list[int] = []  # words up to the end whose heads are beyond it, ascending
        self.end = -1

    def end_at(self, end: int) -> None:
        """Move the end of the spans to the next word."""
        for word in self._earlier[end]:
            del self._waiting[bisect_left(self._waiting, word)]
        if self._heads[end] > end:
            self._waiting.append(end)
        self.end = end

    def head_from(self, start: int) -> int:
        """The head of the span from ``start`` to the end."""
        place = bisect_left(self._waiting, start)
        return min([self._first_headed_before[start], *self._waiting[place : place + 1]])


def _first_headed_before(heads: Sequence[int]) -> list[int]:
    """For each word: the first word from there on that has no head, or whose head is before the starting word."""
    first = [0] * len(heads)
    later: list[int] = []  # candidates, the nearest last; a word is dropped once its head is not before the start
    for start in reversed(range(len(heads))):
        later.append(start)
        while later and heads[later[-1]] >= start:
            later.pop()
        first[start] = later[-1] if later else len(heads)
    return first


def _sort_key(mention: Mention) -> tuple[int, int]:
    return mention.start, -mention.end
