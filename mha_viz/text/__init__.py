"""Tokens, words, and how they map back to the typed text.

A tokenizer returns *pieces* (tokens) with character spans. This package groups pieces into words, gives each piece a
text to display, and keeps the mapping in both directions. It depends on no tokenizer library.
"""

from __future__ import annotations

from mha_viz.text.alignment import Alignment, align
from mha_viz.text.characters import clean, is_punctuation, make_visible
from mha_viz.text.pieces import UNKNOWN, Piece, Spelling
from mha_viz.text.tokens import Cut, Token, TokenizedText, WordPieces, build_text, from_names, from_offsets, parse_text

__all__ = [
    "UNKNOWN",
    "Alignment",
    "Cut",
    "Piece",
    "Spelling",
    "Token",
    "TokenizedText",
    "WordPieces",
    "align",
    "build_text",
    "clean",
    "from_names",
    "from_offsets",
    "is_punctuation",
    "make_visible",
    "parse_text",
]
