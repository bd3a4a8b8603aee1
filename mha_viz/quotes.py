"""Write user text and names into sentences.

A text appears on one line, with visible characters, of bounded length and without broken emoji. Also: lists of names,
and suggestions for misspelled names.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

__all__ = ["did_you_mean", "join_names", "make_printable", "quote", "shorten"]

MAX_QUOTED = 60
MIN_SIMILARITY = 0.6  # minimum similarity of a suggestion: difflib's ratio, from 0 to 1
_REPLACEMENT = "\ufffd"
# Characters that join two symbols into one, and the letters of a flag such as Scotland's. They are invisible, but part
# of the symbol.
_JOINED_SYMBOLS = re.compile("(?<=\\S)[\u200c\u200d](?=\\S)|(?<=\U0001f3f4)[\U000e0020-\U000e007e]{1,8}\U000e007f")
_JOINER = "\u200d"
_SKIN_TONES = range(0x1F3FB, 0x1F400)
_FLAG_LETTERS = "".join(map(chr, range(0x1F1E6, 0x1F200)))
_TAGS = range(0xE0020, 0xE0080)
_MAX_SYMBOL = 16  # maximum characters of an emoji, or of a letter with its accents


def quote(text: str, max_length: int = MAX_QUOTED) -> str:
    """Return a text in quotation marks, cut to ``max_length`` characters.

    U+FFFD replaces characters that cannot be shown.
    """
    return f"“{make_printable(shorten(text, max_length), _REPLACEMENT)}”"


def make_printable(text: str, replacement: str) -> str:
    """Replace line breaks, control characters and marks that change the writing direction by ``replacement``.

    Other blanks, such as a no-break space, become plain ones.
    """
    joined_indices = {index for match in _JOINED_SYMBOLS.finditer(text) for index in range(*match.span())}
    return "".join(
        c if c.isprintable() or index in joined_indices else " " if unicodedata.category(c) == "Zs" else replacement
        for index, c in enumerate(text)
    )


def shorten(text: str, max_length: int) -> str:
    """Shorten a text to ``max_length`` characters; an ellipsis replaces the end, and no symbol is cut in two."""
    if len(text) <= max_length:
        return text
    end = max_length - 1
    for _ in range(_MAX_SYMBOL):
        if end < 2 or not (_is_continuation(text[end]) or text[end - 1] == _JOINER):
            break
        end -= 1
    flag_letters = end - len(text[:end].rstrip(_FLAG_LETTERS))  # two are a flag
    return f"{text[: end - flag_letters % 2].rstrip()}…"


def did_you_mean(name: str, names: Iterable[str], min_similarity: float = MIN_SIMILARITY) -> str:
    """Return a question with the most similar of the names, ignoring case; empty if none is similar."""
    originals = {candidate.lower(): candidate for candidate in names}
    match = get_close_matches(name[:100].lower(), originals, 1, min_similarity)
    return f"Did you mean {originals[match[0]]}?" if match else ""


def _is_continuation(c: str) -> bool:
    """Return whether a character belongs to the symbol before it."""
    return c == _JOINER or ord(c) in _SKIN_TONES or ord(c) in _TAGS or unicodedata.category(c) in ("Mn", "Me")


def join_names(names: Sequence[str]) -> str:
    """Join names: "a", "a and b", "a, b and c"; "" for none."""
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)
