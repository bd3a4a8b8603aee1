"""Minimal pairs: a text, and the same text with one word replaced."""

from __future__ import annotations

import re

from mha_viz.corpus.lexicon import NAMES, NOUNS, Noun

MINIMAL_PAIR = ("The animal didn't cross the street because it was too tired.", "tired", "wide")
PRONOUNS = {"it": "she", "he": "she", "she": "he", "they": "it", "him": "her", "her": "him", "his": "her"}
WORD = re.compile(r"(?<![\w\[<])\w+(?![\w\]>])")  # not [MASK] or <mask>


def replace_word(text: str) -> str:
    """Return the text with one word replaced.

    In the first example this is “tired”, which decides what “it” is. In other texts it is the first pronoun. If there
    is none, the first noun or name of the built-in grammar is replaced by another of the same kind; else the last word,
    by a pronoun.
    """
    if text == MINIMAL_PAIR[0]:
        return text.replace(*MINIMAL_PAIR[1:])
    words = list(WORD.finditer(text))
    candidates = (
        word for replacements in (PRONOUNS, GRAMMAR_PAIRS) for word in words if word[0].lower() in replacements
    )
    word = next(candidates, words[-1] if words else None)
    if word is None:
        return text
    replacement = (PRONOUNS | GRAMMAR_PAIRS).get(word[0].lower(), "it")
    return text[: word.start()] + (replacement.capitalize() if word[0].istitle() else replacement) + text[word.end() :]


def _pair_grammar_words() -> dict[str, str]:
    """Map each noun and name of the grammar to another of the same kind, if possible of the other gender."""
    noun_pairs = [(noun, _find_partner(noun)) for noun in NOUNS]
    forms = [(word[form], other[form]) for word, other in noun_pairs for form in (0, 1)]  # singular, plural
    names = [*zip(NAMES["Fem"], NAMES["Masc"], strict=True), *zip(NAMES["Masc"], NAMES["Fem"], strict=True)]
    return {word.lower(): other for word, other in (*forms, *names)}


def _find_partner(noun: Noun) -> Noun:
    genders = {"Fem": "Masc", "Masc": "Fem"}
    same_kind = [other for other in NOUNS if (other.kind, other.gender) == (noun.kind, noun.gender)]
    other_gender = [other for other in NOUNS if (other.kind, other.gender) == (noun.kind, genders.get(noun.gender))]
    return (other_gender or [*same_kind[1:], same_kind[0]])[same_kind.index(noun)]


GRAMMAR_PAIRS = _pair_grammar_words()
