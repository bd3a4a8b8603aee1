"""Tokens, words, and the way back to what was typed.

A tokenizer gives *pieces* with character spans. This module groups pieces into words, gives each piece
the text a person should see for it, and keeps the map both ways. It knows no tokenizer library.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from mha_viz.errors import TextError

__all__ = [
    "Alignment",
    "Cut",
    "Piece",
    "Token",
    "TokenizedText",
    "WordPieces",
    "align",
    "clean",
    "from_names",
    "is_punctuation",
    "tokenized",
    "visible",
]

APOSTROPHES = frozenset("'’ʼ＇")


class Piece(NamedTuple):
    """What a tokenizer says of one piece: its name, its span, and the tokenizer's own word number."""

    name: str
    start: int
    end: int
    word: int | None  # None for [CLS], [SEP] and their like
    segment: int
    known: bool = True  # False when the tokenizer has no piece for it: [UNK]


@dataclass(frozen=True, slots=True)
class Token:
    """One unit of attention: a piece, or a word after :meth:`Attention.by_words`.

    ``start`` and ``end`` count characters (Unicode code points) of the typed sentence that ``segment``
    names (0: the sentence, 1: the second one); both are None for tokens that the model added.
    ``word`` numbers the words of both sentences in order; None marks a special token. ``known`` is False
    for what the tokenizer has no piece for: the model reads [UNK] there.
    """

    text: str
    word: int | None
    segment: int
    start: int | None
    end: int | None
    known: bool = True

    @property
    def special(self) -> bool:
        """True for [CLS], [SEP] and their like: delimiters, not part of any word."""
        return self.word is None


@dataclass(frozen=True, slots=True)
class Cut:
    """What did not fit: the text has ``pieces`` pieces (at least, when ``more``), the model reads ``limit``.

    ``kept`` holds, for each of the two sentences, the number of characters that were read.
    """

    pieces: int
    limit: int
    kept: tuple[int, int]
    more: bool = False


@dataclass(frozen=True)
class TokenizedText:
    """Typed text as a model read it: ``tokens`` in order, with the way back into ``text`` and ``pair``.

    ``given``: the words, where the text was given as words; empty where the tokenizer looked for them itself.
    """

    text: str
    pair: str
    tokens: tuple[Token, ...]
    cut: Cut | None = None
    unit: Literal["pieces", "words"] = "pieces"
    given: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Token indices of each unit in order: the pieces of a word together, each special token alone."""
        groups: list[list[int]] = []
        for index, token in enumerate(self.tokens):
            if groups and token.word is not None and token.word == self.tokens[groups[-1][-1]].word:
                groups[-1].append(index)
            else:
                groups.append([index])
        return tuple(tuple(group) for group in groups)

    def typed(self, token: Token) -> str:
        """The characters that ``token`` was read from; empty for tokens that the model added."""
        return (self.text, self.pair)[token.segment][token.start : token.end] if token.start is not None else ""

    def by_words(self) -> TokenizedText:
        """The same text with one token a word; special tokens stay. ``groups`` of self maps back."""
        return replace(self, tokens=tuple(self._word(g) for g in self.groups), unit="words")

    def without_special(self) -> TokenizedText:
        """The same text without its special tokens."""
        return replace(self, tokens=tuple(t for t in self.tokens if not t.special))

    def _word(self, group: tuple[int, ...]) -> Token:
        first = self.tokens[group[0]]
        spans = [(t.start, t.end) for t in (self.tokens[i] for i in group) if t.start is not None and t.end is not None]
        if len(group) == 1 or not spans:
            return first
        typed = (self.text, self.pair)[first.segment]
        start, end = _without_blanks(typed, spans[0][0], max(end for _, end in spans))
        in_vocabulary = all(self.tokens[i].known for i in group)
        return Token(visible(typed[start:end]), first.word, first.segment, start, end, in_vocabulary)


@dataclass(frozen=True)
class WordPieces:
    """A sentence given as words (``forms``), as a model reads it. Each other tuple has one entry for each piece:
    ``names`` are the tokenizer's own, ``words`` number the given ones (None for special tokens), ``spans`` point into
    ``text``, which is the words with one blank between them, ``known`` is as in Piece."""

    forms: tuple[str, ...]
    names: tuple[str, ...]
    ids: tuple[int, ...]
    types: tuple[int, ...]
    words: tuple[int | None, ...]
    spans: tuple[tuple[int, int], ...]
    known: tuple[bool, ...]

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def text(self) -> str:
        """The words with one blank between them."""
        return " ".join(self.forms)

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The same, a piece at a time."""
        each = zip(self.names, self.spans, self.words, self.known, strict=True)
        return tuple(Piece(name, *span, word, 0, in_vocabulary) for name, span, word, in_vocabulary in each)

    @cached_property
    def punctuation(self) -> tuple[bool, ...]:
        """Which pieces are punctuation only."""
        each = zip(self.words, self.spans, strict=True)
        return tuple(word is not None and is_punctuation(self.text[slice(*span)].strip()) for word, span in each)

    def tokenized(self) -> TokenizedText:
        """The same as a text with tokens, whose words are the given ones."""
        tokens = []
        for i, piece in enumerate(self.pieces):
            start, end = (piece.start, piece.end) if piece.end > piece.start else (None, None)
            tokens.append(Token(_shown(self.pieces, i, (self.text, "")), piece.word, 0, start, end, piece.known))
        return TokenizedText(self.text, "", tuple(tokens), given=self.forms)


class Alignment(NamedTuple):
    """Which unit of a second text stands for each unit of a first one: an index, or None. Units are words and special
    tokens, as in :meth:`TokenizedText.by_words`.

    ``same``: where both are the same characters of one text, or the same word. ``place``: there, and where a run of
    words was replaced by another of the same length.
    """

    same: tuple[int | None, ...]
    place: tuple[int | None, ...]


def align(a: TokenizedText, b: TokenizedText) -> Alignment:
    """The units of ``b`` that correspond to those of ``a``: by character spans in the same typed text, else by words
    in order (capital letters aside), as many as can be."""
    first, second = a.by_words().tokens, b.by_words().tokens
    same = _in_order([_alike(t) for t in first], [_alike(t) for t in second])
    if (a.text, a.pair) == (b.text, b.pair):
        same = _by_span(first, second, same)
        return Alignment(tuple(same), tuple(same))
    return Alignment(tuple(same), tuple(_replaced(first, second, same)))


def _alike(token: Token) -> str:
    return "\0" if token.special else token.text.casefold()  # [CLS] stands where <s> stands


def _in_order(a: Sequence[str], b: Sequence[str]) -> list[int | None]:
    """For each of ``a`` its partner in ``b``: a longest common subsequence that keeps what both begin and end with."""
    shorter = min(len(a), len(b))
    begin = next((i for i in range(shorter) if a[i] != b[i]), shorter)
    end = next((i for i in range(shorter - begin) if a[-1 - i] != b[-1 - i]), shorter - begin)
    inner = _common(a[begin : len(a) - end], b[begin : len(b) - end])
    middle = [None if j is None else begin + j for j in inner]
    return [*range(begin), *middle, *range(len(b) - end, len(b))]


def _common(a: Sequence[str], b: Sequence[str]) -> list[int | None]:
    """Partners by a longest common subsequence, one integer of len(a) bits a row (Hyyrö 2004): time does not depend
    on how repetitive the text is, which it does in difflib."""
    where: dict[str, int] = {}
    for i, word in enumerate(a):
        where[word] = where.get(word, 0) | 1 << i
    whole = (1 << len(a)) - 1
    rows = [whole]  # after j words of b: bit i is 0 where word i of a makes the subsequence one longer
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
    """The first unit of ``second`` that shares a character with each of ``first``; ``same`` for what was not typed."""
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
    """``same``, and words between two partners where both texts have equally many."""
    place = list(same)
    held = [(i, j) for i, j in enumerate(same) if j is not None]
    for (i, j), (i_end, j_end) in pairwise([(-1, -1), *held, (len(first), len(second))]):
        ours, theirs = range(i + 1, i_end), range(j + 1, j_end)
        if len(ours) == len(theirs) and not any(t.special for t in (*first[i + 1 : i_end], *second[j + 1 : j_end])):
            place[i + 1 : i_end] = theirs
    return place


# ---- From a file or from another process ----------------------------------------------------------------


def parse_text(fields: Any) -> TokenizedText:
    """The text that ``dataclasses.asdict`` took apart, also after JSON.

    Raises TextError for anything else: every token's span must lie in the sentence that it names.
    """
    _expect(_is(fields, dict) and set(fields) == set(TokenizedText.__dataclass_fields__), "a text", fields)
    typed = fields["text"], fields["pair"]
    _expect(all(_is(sentence, str) for sentence in typed), "two sentences", typed)
    given, tokens = fields["given"], fields["tokens"]
    _expect(_is(given, list, tuple) and all(_is(word, str) for word in given), "a list of words", given)
    _expect(fields["unit"] in ("pieces", "words"), "pieces or words", fields["unit"])
    _expect(_is(tokens, list, tuple), "a list of tokens", tokens)
    cut = None if fields["cut"] is None else _parse_cut(fields["cut"])
    read = tuple(_parse_token(token, typed) for token in tokens)
    return TokenizedText(*typed, read, cut, fields["unit"], tuple(given))


def _parse_cut(fields: Any) -> Cut:
    _expect(_is(fields, dict) and set(fields) == {"pieces", "limit", "kept", "more"}, "what was cut", fields)
    lengths = fields["kept"]
    _expect(_is(lengths, list, tuple) and len(lengths) == 2, "two numbers of characters", lengths)
    numbers = (fields["pieces"], fields["limit"], *lengths)
    _expect(all(_is(number, int) and number >= 0 for number in numbers), "numbers from 0", numbers)
    _expect(_is(fields["more"], bool), "true or false", fields["more"])
    return Cut(fields["pieces"], fields["limit"], (lengths[0], lengths[1]), fields["more"])


def _parse_token(fields: Any, typed: tuple[str, str]) -> Token:
    names = {"text", "word", "segment", "start", "end", "known"}
    _expect(_is(fields, dict) and set(fields) == names, "a token", fields)
    _expect(_is(fields["text"], str) and _is(fields["known"], bool), "a token", fields)
    word = fields["word"]
    _expect(word is None or (_is(word, int) and word >= 0), "the number of a word", word)
    _expect(_is(fields["segment"], int) and fields["segment"] in (0, 1), "sentence 0 or 1", fields)
    start, end = fields["start"], fields["end"]
    if (start, end) != (None, None):
        _expect(_is(start, int) and _is(end, int), "a span", fields)
        _expect(0 <= start <= end <= len(typed[fields["segment"]]), "a span in its sentence", fields)
    return Token(**fields)


def _is(value: object, *kinds: type) -> bool:
    """True for exactly these types: a bool is not a number here."""
    return type(value) in kinds


def _expect(holds: bool, what: str, given: object) -> None:
    if not holds:
        raise TextError(f"{str(given)[:60]!r} was read where {what} was expected.")


# ---- Characters ---------------------------------------------------------------------------------------------


def clean(text: str) -> str:
    """The text with what no tokenizer or page can carry (lone surrogates, NUL) replaced by U+FFFD.

    One character stays one character, so that spans still point into what was typed. Raises TextError for what is no
    text at all.
    """
    if not isinstance(text, str):
        raise TextError(f"{str(text)[:40]!r} is {type(text).__name__}, not text.", "Give a string.")
    if text.isascii() and "\0" not in text:
        return text
    return "".join("\ufffd" if c == "\0" or "\ud800" <= c <= "\udfff" else c for c in text)


def is_punctuation(text: str) -> bool:
    """True when every character is Unicode punctuation (category P*); False for empty text."""
    return bool(text) and all(unicodedata.category(c).startswith("P") for c in text)


def visible(text: str) -> str:
    """The text as a person can see it: white space at the ends dropped, invisible characters named."""
    shown = text.strip()
    if shown and not all(unicodedata.category(c) in ("Cf", "Cc", "Mn", "Zs") for c in shown):
        return shown
    return " ".join(f"U+{ord(c):04X}" for c in shown or text)


def tokenized(text: str, pair: str, pieces: Sequence[Piece], cut: Cut | None = None) -> TokenizedText:
    """Tokens with words and display text from the pieces of a tokenizer.

    Words are the tokenizer's own, corrected so that one white-space-or-punctuation word is one word:
    "didn't" is whole although BERT cuts it in three, and "tired." gives its full stop away although
    SentencePiece keeps them together. An apostrophe belongs to a word only between two letters or digits;
    every other punctuation mark, underscore and leading apostrophe included, is a word of its own or, where
    several are one piece, of that piece.
    """
    typed = (text, pair)
    trimmed = [_trim(p, typed[p.segment]) for p in pieces]
    words = _words(trimmed, typed)
    tokens = []
    for i, (piece, word) in enumerate(zip(trimmed, words, strict=True)):
        start, end = (piece.start, piece.end) if piece.end > piece.start else (None, None)
        tokens.append(Token(_shown(trimmed, i, typed), word, piece.segment, start, end, piece.known))
    return TokenizedText(text, pair, tuple(tokens), cut)


SPECIAL_NAMES = re.compile(r"\[(CLS|SEP|PAD)\]|</?s>|<pad>|<bos>|<eos>|<\|endoftext\|>|<\|im_(start|end)\|>")
BLANKS = "Ġ▁"  # before a piece that begins a word, in byte-level and SentencePiece vocabularies


def from_names(names: Sequence[str], second_from: int | None = None) -> TokenizedText:
    """A text from the names that a tokenizer gives its pieces ("##ing", "Ġthe", "▁the"), with the marks resolved.

    What was typed is not known, so the text is put together from the pieces: words with one blank between them.
    ``second_from`` is the index of the first piece of a second sentence.
    """
    typed = ["", ""]
    pieces: list[Piece] = []
    word = -1
    blanks = any(name[:1] in BLANKS for name in names if name)  # how this vocabulary marks the beginning of a word
    for i, name in enumerate(names):
        segment = int(second_from is not None and i >= second_from)
        if SPECIAL_NAMES.fullmatch(name):
            pieces.append(Piece(name, 0, 0, None, segment))
            continue
        shown, glued = _unmarked(name, blanks)
        shown = clean(shown) or "\ufffd"
        glued = glued and bool(pieces) and pieces[-1].word is not None and pieces[-1].segment == segment
        word += not glued
        typed[segment] += "" if glued or not typed[segment] else " "
        start = len(typed[segment])
        typed[segment] += shown
        pieces.append(Piece(name, start, len(typed[segment]), word, segment))
    return tokenized(typed[0], typed[1], pieces)


def _unmarked(name: str, blanks: bool) -> tuple[str, bool]:
    """A piece's text without the tokenizer's mark, and whether it goes on the word before it."""
    if name.startswith("##") and len(name) > 2:
        return name[2:], True
    if blanks:
        return name.lstrip(BLANKS) or " ", name[:1] not in BLANKS
    return name, False


def _trim(piece: Piece, typed: str) -> Piece:
    """Without the leading blank that byte-level tokenizers put inside a span; a piece that is a blank keeps it."""
    start, end = piece.start, piece.end
    if start == end and piece.word is not None and start > 0 and typed[start - 1].isspace():
        start -= 1  # RoBERTa's "Ġ" alone: its tokenizer has trimmed the blank away
    start, end = _without_blanks(typed, start, end)
    return piece if start == piece.start else piece._replace(start=start)


def _without_blanks(typed: str, start: int, end: int) -> tuple[int, int]:
    """The span without leading blanks, at least one character long."""
    while start < end - 1 and typed[start].isspace():
        start += 1
    return start, end


def _words(pieces: Sequence[Piece], typed: tuple[str, str]) -> list[int | None]:
    words: list[int | None] = []
    count = -1
    previous: Piece | None = None
    for piece in pieces:
        if piece.word is None:
            words.append(None)
            previous = None
            continue
        if previous is None or _starts_word(previous, piece, typed[piece.segment]):
            count += 1
        words.append(count)
        previous = piece
    return words


def _starts_word(previous: Piece, piece: Piece, typed: str) -> bool:
    if piece.segment != previous.segment:
        return True
    if piece.start < previous.end:  # several byte pieces of one character, or an overlap
        return False
    if not typed[previous.start : previous.end].strip():  # a blank piece leads into the word that follows it
        return False
    if typed[previous.end : piece.start].strip() != typed[previous.end : piece.start] or (
        typed[previous.end : piece.start].isspace()
    ):
        return True
    if _inside_contraction(previous, piece, typed):
        return False
    written, before = typed[piece.start : piece.end], typed[previous.start : previous.end]
    if (
        is_punctuation(written) or is_punctuation(before) or written.isspace()
    ):  # Llama's "▁" alone leads into the next word
        return True
    return piece.word != previous.word


def _inside_contraction(previous: Piece, piece: Piece, typed: str) -> bool:
    """True when the two pieces meet at an apostrophe that stands between letters: didn|'|t, didn|'t."""
    if previous.end != piece.start:
        return False
    for at in (piece.start, piece.start - 1):
        if typed[at] in APOSTROPHES and 0 < at < len(typed) - 1:
            return _in_word(typed[at - 1]) and _in_word(typed[at + 1])
    return False


def _in_word(character: str) -> bool:
    return character.isalnum() or unicodedata.category(character).startswith("M")


def _shown(pieces: Sequence[Piece], index: int, typed: tuple[str, str]) -> str:
    piece = pieces[index]
    if piece.end <= piece.start:
        return piece.name
    written = visible(typed[piece.segment][piece.start : piece.end])
    part = 1  # byte-level pieces of one character share its span: number them
    while index >= part and pieces[index - part][1:3] == piece[1:3] and pieces[index - part].segment == piece.segment:
        part += 1
    return written if part == 1 else f"{written}·{part}"
