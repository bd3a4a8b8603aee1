"""The types: pieces of a tokenizer, tokens, and a text as a model read it; and its characters: those that no tokenizer
or page can process, punctuation, and visible forms."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

from mha_viz.errors import TextError, shorten_value

UNKNOWN = "[UNK]"  # what the model reads where the tokenizer has no piece


class Piece(NamedTuple):
    """One piece according to the tokenizer: its name, its span, and the tokenizer's own word number."""

    name: str
    start: int
    end: int
    word: int | None  # None for [CLS], [SEP] and similar tokens
    segment: int
    in_vocabulary: bool = True  # False if the tokenizer has no piece for it: [UNK]


@dataclass(frozen=True, slots=True)
class Token:
    """One unit of attention: a piece, or a word after :meth:`Attention.by_words`.

    ``text`` is what is drawn, listed and exported: of a piece that continues its word with "##" before it, whatever the
    tokenizer (:func:`drawn_texts`); what was typed there is :meth:`TokenizedText.typed`.
    ``start`` and ``end`` count characters (Unicode code points) of the typed sentence that ``segment`` names (0: the
    sentence, 1: the second one); both are None for tokens that the model added. ``word`` numbers the words of both
    sentences in order; None marks a special token. ``known`` is False if the tokenizer has no piece for it: the model
    reads [UNK] there.
    """

    text: str
    word: int | None
    segment: int
    start: int | None
    end: int | None
    known: bool = True

    @property
    def special(self) -> bool:
        """True for [CLS], [SEP] and similar tokens: delimiters, not part of any word."""
        return self.word is None

    @property
    def drawn(self) -> str:
        """The text in drawings and on pages: [UNK] before what was typed, if that is what the model reads."""
        return self.text if self.known or self.text == UNKNOWN else f"{UNKNOWN} {self.text}"


@dataclass(frozen=True, slots=True)
class Cut:
    """What was cut: the text has ``pieces`` pieces (at least, when ``more``), the model reads ``limit``.

    ``kept`` holds, for each of the two sentences, the number of characters that were read.
    """

    pieces: int
    limit: int
    kept: tuple[int, int]
    more: bool = False


@dataclass(frozen=True)
class TokenizedText:
    """Typed text as a model read it: ``tokens`` in order, with the way back into ``text`` and ``pair``.

    ``given``: the words, if the text was given as words; empty if the tokenizer split the text.
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
        """The token indices of each unit in order: the pieces of a word together, each special token alone."""
        groups: list[list[int]] = []
        for index, token in enumerate(self.tokens):
            if groups and token.word is not None and token.word == self.tokens[groups[-1][-1]].word:
                groups[-1].append(index)
            else:
                groups.append([index])
        return tuple(tuple(group) for group in groups)

    @cached_property
    def special(self) -> tuple[bool, ...]:
        """Whether each token is special."""
        return tuple(token.special for token in self.tokens)

    def typed(self, token: Token) -> str:
        """The characters that ``token`` was read from; empty for tokens that the model added."""
        return (self.text, self.pair)[token.segment][token.start : token.end] if token.start is not None else ""

    def by_words(self) -> TokenizedText:
        """The same text with one token per word; special tokens stay. The ``groups`` of this text map back to its
        tokens."""
        return self._by_words

    @cached_property
    def _by_words(self) -> TokenizedText:
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
        start, end = without_blanks(typed, spans[0][0], max(end for _, end in spans))
        in_vocabulary = all(self.tokens[i].known for i in group)
        return Token(visible(typed[start:end]), first.word, first.segment, start, end, in_vocabulary)


@dataclass(frozen=True)
class WordPieces:
    """A sentence given as words (``forms``), as a model reads it. Each other tuple has one entry for each piece:
    ``names`` are those of the tokenizer, ``words`` number the given ones (None for special tokens), ``spans`` refer to
    ``text``, which is the words separated by single spaces, ``in_vocabulary`` is as in Piece."""

    forms: tuple[str, ...]
    names: tuple[str, ...]
    ids: tuple[int, ...]
    types: tuple[int, ...]
    words: tuple[int | None, ...]
    spans: tuple[tuple[int, int], ...]
    in_vocabulary: tuple[bool, ...]

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def text(self) -> str:
        """The words, separated by single spaces."""
        return " ".join(self.forms)

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The same as a tuple of pieces."""
        each = zip(self.names, self.spans, self.words, self.in_vocabulary, strict=True)
        return tuple(Piece(name, *span, word, 0, in_vocabulary) for name, span, word, in_vocabulary in each)

    @cached_property
    def punctuation(self) -> tuple[bool, ...]:
        """Whether each piece consists of punctuation only."""
        each = zip(self.words, self.spans, strict=True)
        return tuple(word is not None and is_punctuation(self.text[slice(*span)].strip()) for word, span in each)

    def tokenized(self) -> TokenizedText:
        """The same as a text with tokens, whose words are the given ones."""
        tokens = []
        texts = drawn_texts(self.pieces, self.words, (self.text, ""))
        for piece, text in zip(self.pieces, texts, strict=True):
            start, end = (piece.start, piece.end) if piece.end > piece.start else (None, None)
            tokens.append(Token(text, piece.word, 0, start, end, piece.in_vocabulary))
        return TokenizedText(self.text, "", tuple(tokens), given=self.forms)


CONTINUES = "##"  # before the text of a piece that continues its word
BLANKS = "Ġ▁ "  # prefixes of a piece that begins a word: of byte-level and SentencePiece vocabularies, and decoded


def drawn_texts(pieces: Sequence[Piece], words: Sequence[int | None], typed: tuple[str, str]) -> tuple[str, ...]:
    """The text of each piece as it is drawn; ``words`` are their word numbers. A piece that continues its word has "##"
    before it, the mark of WordPiece, also where the tokenizer marks the pieces that begin words instead ("Ġ", "▁"):
    otherwise "ord" or "ina" would read as words. WordPiece's own pieces have the mark where their names have it: "did",
    "'", "t" have none."""
    marks_beginnings = any(piece.name[:1] in BLANKS for piece in pieces if piece.name)
    texts = []
    for i, piece in enumerate(pieces):
        continues = i > 0 and words[i] is not None and words[i] == words[i - 1] and _continues(pieces, i, typed)
        is_marked = piece.name.startswith(CONTINUES) or (marks_beginnings and piece.name[:1] not in BLANKS)
        is_marked |= not marks_beginnings and _is_in_letters(pieces[i - 1], piece, typed)
        texts.append(f"{CONTINUES if continues and is_marked else ''}{_written(pieces, i, typed)}")
    return tuple(texts)


def _continues(pieces: Sequence[Piece], index: int, typed: tuple[str, str]) -> bool:
    """Whether something that is no blank of the same word comes before the piece: Llama's "▁" alone begins a word."""
    before = pieces[index - 1]
    return before.end <= before.start or bool(typed[before.segment][before.start : before.end].strip())


def _is_in_letters(before: Piece, piece: Piece, typed: tuple[str, str]) -> bool:
    """Whether two pieces meet between letters or digits, as WordPiece's never do without its mark: of a vocabulary
    that marks beginnings in a text of one word."""
    text, at = typed[piece.segment], piece.start
    return before.end == at and 0 < at < len(text) and is_in_word(text[at - 1]) and is_in_word(text[at])


def _written(pieces: Sequence[Piece], index: int, typed: tuple[str, str]) -> str:
    """Return what was typed where a piece stands, or the name of a piece that was not typed."""
    piece = pieces[index]
    if piece.end <= piece.start:
        return piece.name
    written = visible(typed[piece.segment][piece.start : piece.end])
    part = 1  # byte-level pieces of one character share its span: number them
    while index >= part and pieces[index - part][1:3] == piece[1:3] and pieces[index - part].segment == piece.segment:
        part += 1
    return written if part == 1 else f"{written}·{part}"


def clean(text: str) -> str:
    """The text with characters that no tokenizer or page can process (lone surrogates, NUL) replaced by U+FFFD.

    One character stays one character, so that spans still refer to the typed text. Raises TextError for a value that is
    not a string.
    """
    if not isinstance(text, str):
        raise TextError(f"{shorten_value(text)!r} is {type(text).__name__}, not text.", "Give a string.")
    if text.isascii() and "\0" not in text:
        return text
    return "".join("\ufffd" if c == "\0" or "\ud800" <= c <= "\udfff" else c for c in text)


def is_punctuation(text: str) -> bool:
    """True if every character is Unicode punctuation (category P*); False for empty text."""
    return bool(text) and all(unicodedata.category(c).startswith("P") for c in text)


def is_in_word(character: str) -> bool:
    """True for letters, digits and the marks that belong to a letter."""
    return character.isalnum() or unicodedata.category(character).startswith("M")


def visible(text: str) -> str:
    """The text in visible form: white space at the ends is dropped, invisible characters are named."""
    shown = text.strip()
    if shown and not all(unicodedata.category(c) in ("Cf", "Cc", "Mn", "Zs") for c in shown):
        return shown
    return " ".join(f"U+{ord(c):04X}" for c in shown or text)


def without_blanks(typed: str, start: int, end: int) -> tuple[int, int]:
    """The span without leading spaces, at least one character long."""
    while start < end - 1 and typed[start].isspace():
        start += 1
    return start, end
