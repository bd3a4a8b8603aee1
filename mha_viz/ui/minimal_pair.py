"""A text and the same text with one word replaced."""

from __future__ import annotations

import re

MINIMAL_PAIR = ("The animal didn't cross the street because it was too tired.", "tired", "wide")
PRONOUNS = {"it": "she", "he": "she", "she": "he", "they": "it", "him": "her", "her": "him", "his": "her"}


def replaced(text: str) -> str:
    """A text with one word replaced: in the first example “tired”, which decides what “it” is; in others the first
    pronoun or, without one, the last word by a pronoun."""
    if text == MINIMAL_PAIR[0]:
        return text.replace(*MINIMAL_PAIR[1:])
    words = list(re.finditer(r"\w+", text))
    chosen = next((word for word in words if word[0].lower() in PRONOUNS), words[-1] if words else None)
    if chosen is None:
        return text
    other = PRONOUNS.get(chosen[0].lower(), "it")
    return text[: chosen.start()] + (other.capitalize() if chosen[0].istitle() else other) + text[chosen.end() :]
