"""Pieces grouped into words, and the way back to the typed text."""

from __future__ import annotations

from collections.abc import Sequence

from mha_viz.text.pieces import WHOLE, Piece, Spelling, drawn_texts, number_words, read_names, read_offsets, set_places
from mha_viz.text.tokens import Cut, Token, TokenizedText


def tokenized(text: str, pair: str, pieces: Sequence[Piece], cut: Cut | None = None) -> TokenizedText:
    """Tokens with words (:func:`number_words`) and drawn texts (:func:`drawn_texts`) from a tokenizer's pieces."""
    typed = (text, pair)
    standing = set_places(pieces, typed)
    words = number_words(standing, typed)
    tokens = []
    for piece, word, drawn in zip(standing, words, drawn_texts(standing, words, typed), strict=True):
        start, end = (piece.start, piece.end) if piece.end > piece.start else (None, None)
        tokens.append(Token(drawn, word, piece.segment, start, end, piece.in_vocabulary))
    return TokenizedText(text, pair, tuple(tokens), cut)


def from_names(names: Sequence[str], second_from: int | None = None, marks: bool = True) -> TokenizedText:
    """A text from the names that a tokenizer gives its pieces ("##ing", "Ġthe", "▁the"), with their marks read.

    The typed text is what the names spell; where these have no blanks, words are separated by single spaces.
    ``second_from``: the index of the first piece of a second sentence. Without ``marks``, names are shown as they are,
    each a word of its own.
    """
    typed, pieces = read_names(names, Spelling.of(names) if marks else WHOLE, second_from)
    return tokenized(*typed, pieces)


def from_offsets(
    names: Sequence[str], offsets: Sequence[tuple[int, int]], typed: tuple[str, str], second_from: int | None = None
) -> TokenizedText:
    """Return the same of a text, and of a second one or "", in which the span of each piece is known; a piece without
    one was added by the tokenizer."""
    return tokenized(*typed, read_offsets(names, offsets, typed, second_from))
