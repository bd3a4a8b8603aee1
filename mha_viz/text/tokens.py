"""The types: tokens, and a text as a model read it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from mha_viz.text.characters import is_punctuation, visible, without_blanks
from mha_viz.text.pieces import UNKNOWN, Piece, drawn_texts, set_places


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
        pieces = [Piece(name, *span, word, 0, known) for name, span, word, known in each]
        return tuple(set_places(pieces, (self.text, "")))

    @cached_property
    def punctuation(self) -> tuple[bool, ...]:
        """Whether each piece consists of punctuation only."""
        each = ((piece.word, self.text[piece.start : piece.end]) for piece in self.pieces)
        return tuple(word is not None and is_punctuation(text.strip()) for word, text in each)

    def tokenized(self) -> TokenizedText:
        """The same as a text with tokens, whose words are the given ones."""
        tokens = []
        texts = drawn_texts(self.pieces, self.words, (self.text, ""))
        for piece, text in zip(self.pieces, texts, strict=True):
            start, end = (piece.start, piece.end) if piece.end > piece.start else (None, None)
            tokens.append(Token(text, piece.word, 0, start, end, piece.in_vocabulary))
        return TokenizedText(self.text, "", tuple(tokens), given=self.forms)
