"""Types for tokenized texts, and functions that build them from pieces or restore them from stored fields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from mha_viz.errors import TextError, shorten_value
from mha_viz.text.characters import is_punctuation, make_visible, strip_blanks
from mha_viz.text.pieces import (
    UNKNOWN,
    UNMARKED,
    Piece,
    Spelling,
    adjust_spans,
    make_drawn_texts,
    number_words,
    read_names,
    read_offsets,
)


@dataclass(frozen=True, slots=True)
class Token:
    """One unit of attention: a piece, or a word after :meth:`Attention.by_words`.

    ``text`` is listed and exported. If the piece continues its word, it has "##" before it, whatever the
    tokenizer (:func:`make_drawn_texts`); :meth:`TokenizedText.typed` returns what was typed. ``start`` and ``end``
    count characters (Unicode code points) in the typed sentence that ``segment`` names: 0 is the first sentence, 1 the
    second. Both are None for tokens that the model added. ``word`` numbers the words of both sentences in
    order; None marks a special token. ``known`` is False if the tokenizer has no piece for it: the model reads [UNK].
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
        """The text in drawings and on pages. If the model reads [UNK], the typed text follows it."""
        return self.text if self.known or self.text == UNKNOWN else f"{UNKNOWN} {self.text}"


@dataclass(frozen=True, slots=True)
class Cut:
    """Truncation of a text: its length in ``pieces`` (a lower bound if ``more``) and the ``limit`` of the model.

    ``kept`` holds, for each of the two sentences, the number of characters that were read.
    """

    pieces: int
    limit: int
    kept: tuple[int, int]
    more: bool = False


@dataclass(frozen=True)
class TokenizedText:
    """A typed text as a model reads it: its ``tokens`` in order, which map back to ``text`` and ``pair``.

    ``given`` holds the words if the text was given as words; it is empty if the tokenizer split the text.
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
        """Return the characters that ``token`` was read from; empty for tokens that the model added."""
        return (self.text, self.pair)[token.segment][token.start : token.end] if token.start is not None else ""

    def by_words(self) -> TokenizedText:
        """Return the same text with one token per word; special tokens stay.

        The ``groups`` of this text map back to its tokens.
        """
        return self._by_words

    @cached_property
    def _by_words(self) -> TokenizedText:
        return replace(self, tokens=tuple(self._merge_group(g) for g in self.groups), unit="words")

    def without_special(self) -> TokenizedText:
        """Return the same text without its special tokens."""
        return replace(self, tokens=tuple(t for t in self.tokens if not t.special))

    def _merge_group(self, group: tuple[int, ...]) -> Token:
        first_token = self.tokens[group[0]]
        spans = [(t.start, t.end) for t in (self.tokens[i] for i in group) if t.start is not None and t.end is not None]
        if len(group) == 1 or not spans:
            return first_token
        text = (self.text, self.pair)[first_token.segment]
        start, end = strip_blanks(text, spans[0][0], max(end for _, end in spans))
        in_vocabulary = all(self.tokens[i].known for i in group)
        return Token(make_visible(text[start:end]), first_token.word, first_token.segment, start, end, in_vocabulary)


@dataclass(frozen=True)
class WordPieces:
    """A sentence given as words (``forms``), as a model reads it.

    All other tuples have one entry per piece. ``names`` are the tokenizer's names. ``words`` are the indices of the
    given words (None for special tokens). ``spans`` refer to ``text``, which is the words separated by single spaces.
    ``in_vocabulary`` is as in Piece.
    """

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
        """All pieces as :class:`Piece` objects."""
        fields = zip(self.names, self.spans, self.words, self.in_vocabulary, strict=True)
        pieces = [Piece(name, *span, word, 0, known) for name, span, word, known in fields]
        return tuple(adjust_spans(pieces, (self.text, "")))

    @cached_property
    def punctuation(self) -> tuple[bool, ...]:
        """Whether each piece consists of punctuation only."""
        texts = ((piece.word, self.text[piece.start : piece.end]) for piece in self.pieces)
        return tuple(word is not None and is_punctuation(text.strip()) for word, text in texts)

    def tokenized(self) -> TokenizedText:
        """Return the sentence as a text with tokens, whose words are the given words."""
        tokens = []
        texts = make_drawn_texts(self.pieces, self.words, (self.text, ""))
        for piece, text in zip(self.pieces, texts, strict=True):
            start, end = (piece.start, piece.end) if piece.end > piece.start else (None, None)
            tokens.append(Token(text, piece.word, 0, start, end, piece.in_vocabulary))
        return TokenizedText(self.text, "", tuple(tokens), given=self.forms)


def build_text(text: str, pair: str, pieces: Sequence[Piece], cut: Cut | None = None) -> TokenizedText:
    """Build a text from a tokenizer's pieces.

    Words are numbered by :func:`number_words`, and drawn texts made by :func:`make_drawn_texts`.
    """
    texts = (text, pair)
    adjusted_pieces = adjust_spans(pieces, texts)
    words = number_words(adjusted_pieces, texts)
    tokens = []
    drawn_texts = make_drawn_texts(adjusted_pieces, words, texts)
    for piece, word, drawn_text in zip(adjusted_pieces, words, drawn_texts, strict=True):
        start, end = (piece.start, piece.end) if piece.end > piece.start else (None, None)
        tokens.append(Token(drawn_text, word, piece.segment, start, end, piece.in_vocabulary))
    return TokenizedText(text, pair, tuple(tokens), cut)


def from_names(names: Sequence[str], pair_start: int | None = None, marks: bool = True) -> TokenizedText:
    """Build a text from a tokenizer's names of pieces ("##ing", "Ġthe", "▁the"), interpreting their marks.

    The typed text is decoded from the names; if these have no blanks, words are separated by single spaces.
    ``pair_start`` is the index of the first piece of a second sentence. Without ``marks``, names are shown as they
    are, each as a word of its own.
    """
    texts, pieces = read_names(names, Spelling.detect(names) if marks else UNMARKED, pair_start)
    return build_text(*texts, pieces)


def from_offsets(
    names: Sequence[str], offsets: Sequence[tuple[int, int]], texts: tuple[str, str], pair_start: int | None = None
) -> TokenizedText:
    """Build a text from pieces with known spans. The second of ``texts`` may be "".

    A piece with an empty span was added by the tokenizer. ``pair_start`` is as for :func:`from_names`.
    """
    return build_text(*texts, read_offsets(names, offsets, texts, pair_start))


def parse_text(fields: Any) -> TokenizedText:
    """Restore a text from the fields that ``dataclasses.asdict`` returns, also after JSON.

    Raises TextError for anything else: the span of every token must be in the sentence that it names.
    """
    _expect(_has_type(fields, dict) and set(fields) == set(TokenizedText.__dataclass_fields__), "a text", fields)
    sentences = fields["text"], fields["pair"]
    _expect(all(_has_type(sentence, str) for sentence in sentences), "a pair of sentences", sentences)
    words, token_fields = fields["given"], fields["tokens"]
    _expect(_has_type(words, list, tuple) and all(_has_type(word, str) for word in words), "a list of words", words)
    _expect(fields["unit"] in ("pieces", "words"), "pieces or words", fields["unit"])
    _expect(_has_type(token_fields, list, tuple), "a list of tokens", token_fields)
    cut = None if fields["cut"] is None else _parse_cut(fields["cut"])
    tokens = tuple(_parse_token(token, sentences) for token in token_fields)
    return TokenizedText(*sentences, tokens, cut, fields["unit"], tuple(words))


def _parse_cut(fields: Any) -> Cut:
    _expect(_has_type(fields, dict) and set(fields) == {"pieces", "limit", "kept", "more"}, "a truncation", fields)
    lengths = fields["kept"]
    _expect(_has_type(lengths, list, tuple) and len(lengths) == 2, "a pair of numbers of characters", lengths)
    numbers = (fields["pieces"], fields["limit"], *lengths)
    _expect(all(_has_type(number, int) and number >= 0 for number in numbers), "a list of numbers from 0", numbers)
    _expect(_has_type(fields["more"], bool), "true or false", fields["more"])
    return Cut(fields["pieces"], fields["limit"], (lengths[0], lengths[1]), fields["more"])


def _parse_token(fields: Any, sentences: tuple[str, str]) -> Token:
    names = {"text", "word", "segment", "start", "end", "known"}
    _expect(_has_type(fields, dict) and set(fields) == names, "a token", fields)
    _expect(_has_type(fields["text"], str) and _has_type(fields["known"], bool), "a token", fields)
    word = fields["word"]
    _expect(word is None or (_has_type(word, int) and word >= 0), "the number of a word", word)
    _expect(_has_type(fields["segment"], int) and fields["segment"] in (0, 1), "sentence 0 or 1", fields)
    start, end = fields["start"], fields["end"]
    if (start, end) != (None, None):
        _expect(_has_type(start, int) and _has_type(end, int), "a span", fields)
        _expect(0 <= start <= end <= len(sentences[fields["segment"]]), "a span in its sentence", fields)
    return Token(**fields)


def _has_type(value: object, *kinds: type) -> bool:
    """Return whether a value has exactly one of these types: a bool is not a number here."""
    return type(value) in kinds


def _expect(is_valid: bool, expected: str, value: object) -> None:
    if not is_valid:
        raise TextError(f"{shorten_value(value, 60)!r} was found where {expected} was expected.")
