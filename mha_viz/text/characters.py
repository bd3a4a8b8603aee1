"""Characters: those that no tokenizer or page can process, punctuation, and visible forms."""

from __future__ import annotations

import unicodedata

from mha_viz.errors import TextError


def clean(text: str) -> str:
    """The text with characters that no tokenizer or page can process (lone surrogates, NUL) replaced by U+FFFD.

    One character stays one character, so that spans still refer to the typed text. Raises TextError for a value that is
    not a string.
    """
    if not isinstance(text, str):
        raise TextError(f"{str(text)[:40]!r} is {type(text).__name__}, not text.", "Give a string.")
    if text.isascii() and "\0" not in text:
        return text
    return "".join("\ufffd" if c == "\0" or "\ud800" <= c <= "\udfff" else c for c in text)


def is_punctuation(text: str) -> bool:
    """True if every character is Unicode punctuation (category P*); False for empty text."""
    return bool(text) and all(unicodedata.category(c).startswith("P") for c in text)


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
