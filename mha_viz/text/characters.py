"""Replace characters that cannot be processed, classify the others, and make invisible text visible."""

from __future__ import annotations

import unicodedata

from mha_viz.errors import TextError, shorten_value

LINE_CHARACTERS = frozenset("\t\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029")  # white space that is a word of its own
SKIN_TONES = range(0x1F3FB, 0x1F400)  # skin tones, which are part of an emoji


def clean(text: str) -> str:
    """Replace characters that no tokenizer or page can process (lone surrogates, NUL) by U+FFFD.

    One character stays one character, so that spans still refer to the typed text. Raises TextError for a value that is
    not a string.
    """
    if not isinstance(text, str):
        raise TextError(f"{shorten_value(text)!r} is {type(text).__name__}, not text.", "Give a string.")
    if text.isascii() and "\0" not in text:
        return text
    return "".join("\ufffd" if c == "\0" or "\ud800" <= c <= "\udfff" else c for c in text)


def is_punctuation(text: str) -> bool:
    """Return True if every character is Unicode punctuation (category P*); False for empty text."""
    return bool(text) and all(unicodedata.category(c).startswith("P") for c in text)


def is_accent(character: str) -> bool:
    """Return True for marks that belong to a letter: accents and vowel signs (category M*)."""
    return unicodedata.category(character).startswith("M")


def is_word_character(character: str) -> bool:
    """Return True for letters, digits and the marks that belong to a letter."""
    return character.isalnum() or is_accent(character)


def is_attached(character: str) -> bool:
    """Return True for characters that belong to the one before: accents, joiners, variation selectors, skin tones."""
    return is_accent(character) or unicodedata.category(character) == "Cf" or ord(character) in SKIN_TONES


def is_emoji(character: str) -> bool:
    """Return True for emoji and other symbols (category So). Adjacent ones form one word."""
    return unicodedata.category(character) == "So"


def is_sign(text: str) -> bool:
    """Return True if every character is punctuation or a sign such as + or $; False for empty text."""
    return bool(text) and all(unicodedata.category(c)[0] in "PS" and not is_emoji(c) for c in text)


def make_visible(text: str) -> str:
    """Return the text in visible form: without white space at the ends, and with names for invisible characters."""
    trimmed = text.strip()
    if trimmed and not all(unicodedata.category(c) in ("Cf", "Cc", "Mn", "Zs") for c in trimmed):
        return trimmed
    return " ".join(f"U+{ord(c):04X}" for c in trimmed or text)


def strip_blanks(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the span without leading white space; a span of white space alone is unchanged."""
    trimmed = text[start:end].lstrip()
    return (end - len(trimmed), end) if trimmed else (start, end)
