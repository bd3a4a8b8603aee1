"""Read coreference chains from the brackets of ``Entity=`` in CoNLL-U, as in GUM and CorefUD."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from mha_viz.corpus.limits import MAX_BRACKETS
from mha_viz.corpus.rows import EntityCell
from mha_viz.corpus.treebank import Mention, Sentence
from mha_viz.numerals import counted

MAX_REPORTED = 5  # problems of a document that are reported with their line; further ones are only counted
# The pattern matches in linear time. Once a match begins it never fails, so no character is scanned from two starting
# points; only white space and single brackets are skipped. The groups are the fields of an opening bracket, or other
# text, each with the ")" that follows, if any.
ENTITY_PARTS = re.compile(r"\(([^()]+)(\))?|([^()\s]+)(\))?")


class _OpenBracket(NamedTuple):
    """An opening bracket that is not closed yet."""

    number: int  # of the bracket, among the opening brackets of the document
    chain: str
    sentence: int
    start: int
    line: int


class BracketParser:
    """Parses ``Entity=`` over the sentences of a document: "(7-person-…" opens, "7)" closes, "(7)" does both.

    If a bracket cannot be read, only its mention is left out; the reason is added to ``left_out``.
    """

    def __init__(self, left_out: list[str]) -> None:
        self._left_out = left_out
        self.has_mentions = False
        self._start_document()

    def _start_document(self) -> None:
        self._opening_count = self._problem_count = 0
        self._open_brackets: dict[str, list[_OpenBracket]] = {}  # by chain; the last one opened is closed first
        self._mentions: dict[int, list[Mention]] = {}  # by sentence

    def read(
        self, cells: Sequence[EntityCell], heads: Sequence[int] | None, sentence: int, chain_field: int | None
    ) -> None:
        """Read the brackets of a sentence.

        ``heads`` is the index of each word's head, −1 for none; it is None if the sentence has no valid tree.
        ``chain_field`` is the position of the chain among the fields of a bracket, None if it is not known.
        """
        if cells and (chain_field is None or heads is None):
            reason = (
                "a sentence without a tree" if chain_field is not None else "# global.Entity names neither GRP nor eid"
            )
            self._record_problem(f"line {cells[0].line}: {reason}: its mentions are left out.")
            return
        span_heads = _SpanHeads(heads or ())
        for cell in cells:
            span_heads.move_to(cell.end - 1)
            parts = ENTITY_PARTS.findall(cell.text)
            if len(parts) > MAX_BRACKETS:
                self._record_problem(
                    f"line {cell.line}: {len(parts):,} brackets on one word: at most {MAX_BRACKETS} are read."
                )
            for opening, is_closed, closing, is_closing in parts[:MAX_BRACKETS]:
                fields = [field.strip() for field in (opening or closing).split("-")]
                position = chain_field or 0  # a closing bracket may have the chain alone
                chain = fields[position] if len(fields) > position else "" if opening else fields[-1]
                if opening and not chain:
                    self._report_bracket(cell.line, f"({opening}", "names no chain")
                elif opening:
                    self._opening_count += 1
                    bracket = _OpenBracket(self._opening_count, chain, sentence, cell.start, cell.line)
                    if is_closed:
                        self._add_mention(bracket, span_heads, sentence)
                    else:
                        self._open_brackets.setdefault(chain, []).append(bracket)
                elif is_closing and self._open_brackets.get(chain):
                    self._add_mention(self._open_brackets[chain].pop(), span_heads, sentence)
                elif is_closing:
                    self._report_bracket(cell.line, f"{closing})", "closes a mention that was never opened")

    def _add_mention(self, bracket: _OpenBracket, heads: _SpanHeads, sentence: int) -> None:
        if bracket.sentence != sentence:
            self._report_bracket(bracket.line, f"({bracket.chain}", "closes in another sentence")
            return
        chain, _, part = bracket.chain.partition("[")
        if part and not part.startswith("1/"):  # a discontinuous mention is represented by its first part
            return
        if bracket.start > heads.end:  # the mention has only empty nodes, which no model reads
            return
        mention = Mention(chain, bracket.start, heads.end + 1, heads.find_head(bracket.start))
        self._mentions.setdefault(sentence, []).append(mention)

    def _report_bracket(self, line: int, bracket: str, reason: str) -> None:
        self._record_problem(f"line {line}: Entity={bracket[:20]} {reason}: the mention is left out.")

    def _record_problem(self, problem: str) -> None:
        self._problem_count += 1
        if self._problem_count <= MAX_REPORTED:
            self._left_out.append(problem)

    def close(self, sentences: list[Sentence]) -> None:
        """End the document: add its mentions to their sentences."""
        for bracket in sorted(bracket for stack in self._open_brackets.values() for bracket in stack):
            self._report_bracket(bracket.line, f"({bracket.chain}", "never closes")
        if self._problem_count > MAX_REPORTED:
            unreported = counted(self._problem_count - MAX_REPORTED, "problem")
            self._left_out.append(f"{sentences[-1].document or 'this file'}: {unreported} more of this kind.")
        for number, mentions in self._mentions.items():
            sentence = sentences[number]
            sorted_mentions = tuple(sorted(mentions, key=lambda mention: (mention.start, -mention.end)))
            sentences[number] = Sentence(sentence.words, sorted_mentions, sentence.document, sentence.line)
            self.has_mentions = True
        self._start_document()


class _SpanHeads:
    """Finds the head word of a span: the first word whose head is outside the span.

    ``heads`` are indices, −1 for none. The end of the span moves from word to word. A word is *waiting* while its head
    is beyond the end, so that no span has to be scanned word by word.
    """

    def __init__(self, heads: Sequence[int]) -> None:
        self._heads = heads
        self._first_left_headed = _find_left_headed(heads)
        self._earlier_dependents: list[list[int]] = [[] for _ in heads]  # by word; dependents that precede it
        for word, head in enumerate(heads):
            if head > word:
                self._earlier_dependents[head].append(word)
        self._waiting: list[int] = []  # words up to the end whose heads are beyond it, ascending
        self.end = -1

    def move_to(self, last: int) -> None:
        """Move the end of the spans forward to the word ``last``."""
        for end in range(self.end + 1, last + 1):
            for word in self._earlier_dependents[end]:
                del self._waiting[bisect_left(self._waiting, word)]
            if self._heads[end] > end:
                self._waiting.append(end)
        self.end = last

    def find_head(self, start: int) -> int:
        """Return the head of the span from ``start`` to the current end."""
        index = bisect_left(self._waiting, start)
        return min([self._first_left_headed[start], *self._waiting[index : index + 1]])


def _find_left_headed(heads: Sequence[int]) -> list[int]:
    """Return, for each start index, the first word at or after it whose head is before it or missing."""
    left_headed = [0] * len(heads)
    candidates: list[int] = []  # in reverse order; a word is dropped once its head is not before the start
    for start in reversed(range(len(heads))):
        candidates.append(start)
        while candidates and heads[candidates[-1]] >= start:
            candidates.pop()
        left_headed[start] = candidates[-1] if candidates else len(heads)
    return left_headed
