"""Pieces grouped into words, and the way back to the typed text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mha_viz.text.tokens import (
    BLANKS,
    CONTINUES,
    Cut,
    Piece,
    Token,
    TokenizedText,
    clean,
    drawn_texts,
    is_in_word,
    is_punctuation,
    without_blanks,
)

APOSTROPHES = frozenset("'’ʼ＇")


def tokenized(text: str, pair: str, pieces: Sequence[Piece], cut: Cut | None = None) -> TokenizedText:
    """Tokens with words and display text from the pieces of a tokenizer.

    Words are the tokenizer's own, corrected so that one white-space-or-punctuation word is one word: "didn't" is one
    word although BERT cuts it into three pieces, and the full stop of "tired." is a separate word although
    SentencePiece keeps them together. An apostrophe belongs to a word only between two letters or digits; every other
    punctuation mark, including the underscore and a leading apostrophe, is a word of its own or, if several form one
    piece, a word together.
    """
    typed = (text, pair)
    trimmed = [_trim(p, typed[p.segment]) for p in pieces]
    words = _words(trimmed, typed)
    tokens = []
    for piece, word, drawn in zip(trimmed, words, drawn_texts(trimmed, words, typed), strict=True):
        start, end = (piece.start, piece.end) if piece.end > piece.start else (None, None)
        tokens.append(Token(drawn, word, piece.segment, start, end, piece.in_vocabulary))
    return TokenizedText(text, pair, tuple(tokens), cut)


SPECIAL_NAMES = re.compile(r"\[(CLS|SEP|PAD)\]|</?s>|<pad>|<bos>|<eos>|<\|endoftext\|>|<\|im_(start|end)\|>")


def from_names(names: Sequence[str], second_from: int | None = None, marks: bool = True) -> TokenizedText:
    """A text from the names that a tokenizer gives its pieces ("##ing", "Ġthe", "▁the"), with their marks read.

    The typed text is not known, so it is assembled from words separated by single spaces. ``second_from``: the index
    of the first piece of a second sentence. Without ``marks``, names are shown as they are, each a word of its own.
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
        shown, glued = _unmarked(name, blanks) if marks else (name, False)
        shown = clean(shown) or "\ufffd"
        glued = glued and bool(pieces) and pieces[-1].word is not None and pieces[-1].segment == segment
        word += not glued
        typed[segment] += "" if glued or not typed[segment] else " "
        start = len(typed[segment])
        typed[segment] += shown
        pieces.append(Piece(name, start, len(typed[segment]), word, segment))
    return tokenized(typed[0], typed[1], pieces)


def _unmarked(name: str, blanks: bool) -> tuple[str, bool]:
    """A piece's text without the tokenizer's mark, and whether it continues the word before it."""
    if name.startswith(CONTINUES) and len(name) > 2:
        return name[2:], True
    if blanks:
        return name.lstrip(BLANKS) or " ", name[:1] not in BLANKS
    return name, False


def _trim(piece: Piece, typed: str) -> Piece:
    """The piece without the leading space that byte-level tokenizers include in a span; a piece that is only a space
    keeps it."""
    start, end = piece.start, piece.end
    if start == end and piece.word is not None and start > 0 and typed[start - 1].isspace():
        start -= 1  # RoBERTa's "Ġ" alone, whose space its tokenizer has trimmed
    start, end = without_blanks(typed, start, end)
    return piece if start == piece.start else piece._replace(start=start)


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
    if not typed[previous.start : previous.end].strip():  # a space piece belongs to the word that follows it
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
    ):  # Llama's "▁" alone belongs to the next word
        return True
    return piece.word != previous.word


def _inside_contraction(previous: Piece, piece: Piece, typed: str) -> bool:
    """True if the two pieces meet at an apostrophe between letters: didn|'|t, didn|'t."""
    if previous.end != piece.start:
        return False
    for at in (piece.start, piece.start - 1):
        if typed[at] in APOSTROPHES and 0 < at < len(typed) - 1:
            return is_in_word(typed[at - 1]) and is_in_word(typed[at + 1])
    return False
