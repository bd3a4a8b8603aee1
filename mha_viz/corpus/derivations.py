"""Test whether the built-in grammar (:mod:`mha_viz.corpus.grammar`) could have produced a sentence.

The words are matched against the constructions of the grammar, in one tense at a time. The test ignores which nouns a
verb or an adjective goes with, and which entity a pronoun can refer to. So a rejected sentence is certainly not from
the grammar, but some accepted sentences are not from it either. A masked word matches any word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain

from mha_viz.corpus.lexicon import (
    ADJECTIVES,
    CASES,
    DEGREE_ADVERBS,
    DITRANSITIVE_VERBS,
    FREQUENCY_ADVERBS,
    MANNER_ADVERBS,
    NAMES,
    NOUN_PREPOSITIONS,
    NOUNS,
    PLACE_PREPOSITIONS,
    PRONOUNS,
    REPORTING_VERBS,
    STATE_ADJECTIVES,
    SUBORDINATORS,
    VERBS,
    Verb,
)

MAX_WORDS = 64  # longer sentences are rejected; those of the grammar have at most half as many words
MASK = "[mask]"
NUMBERS = SINGULAR, PLURAL = 0, 1
BE = {True: ("was", "were"), False: ("is", "are")}  # by is_past, then by number
DO = {True: ("did", "did"), False: ("does", "do")}

Ends = frozenset[int]
Matcher = Callable[[Sequence[str], int], Ends]
"""Returns the positions where a match can end if it begins at a given position of the words."""


def is_derivable(forms: Sequence[str]) -> bool:
    """Return whether words can be a sentence of the grammar.

    "n't" and "'s" are separate words. A full stop may be missing.
    """
    words = [form.casefold().replace("’", "'") for form in forms[: MAX_WORDS + 1]]
    return len(words) <= MAX_WORDS and any(len(words) in _sentence(is_past)(words, 0) for is_past in (True, False))


def _any_word(*words: str) -> Matcher:
    """Match one of these words, or a masked word."""
    choices = {MASK, *(word.casefold() for word in words)}
    return lambda forms, start: frozenset({start + 1} if start < len(forms) and forms[start] in choices else ())


def _any_of(*parts: Matcher) -> Matcher:
    return lambda forms, start: frozenset(chain.from_iterable(part(forms, start) for part in parts))


def _sequence(*parts: Matcher) -> Matcher:
    def match(forms: Sequence[str], start: int) -> Ends:
        ends = frozenset({start})
        for part in parts:
            ends = _find_ends(part, forms, ends)
        return ends

    return match


def _find_ends(part: Matcher, forms: Sequence[str], starts: Ends) -> Ends:
    """Return where ``part`` can end if it starts at one of these positions."""
    return frozenset(chain.from_iterable(part(forms, start) for start in starts))


_EMPTY_MATCH: Matcher = _sequence()


def _optional(*parts: Matcher) -> Matcher:
    return _any_of(_EMPTY_MATCH, _sequence(*parts))


def _pronoun(case: str, *numbers: int) -> Matcher:
    return _any_word(*(forms[CASES[case]] for subject, forms in PRONOUNS.items() if (subject == "they") in numbers))


def _noun_phrase(*numbers: int) -> Matcher:
    """Match a noun phrase without modifiers after its noun.

    It begins with a determiner, a possessive pronoun or a name. A phrase can be the possessor of the next one, as in
    "the king 's old dog".
    """
    adjective = _optional(_any_word(*chain(*(words for lists in ADJECTIVES.values() for words in lists))))
    nouns = [_any_word(*(noun.singular for noun in NOUNS)), _any_word(*(noun.plural for noun in NOUNS))]
    determiners = [_any_word("the", "a", "an", "this"), _any_word("the", "some", "these")]
    bare_phrases = [_sequence(adjective, adjective, noun) for noun in nouns]
    first_phrases = [
        _sequence(_any_of(determiners[n], _pronoun("possessive", *NUMBERS)), bare_phrases[n]) for n in NUMBERS
    ]
    first_phrases[SINGULAR] = _any_of(first_phrases[SINGULAR], _any_word(*chain(*NAMES.values())))

    def match(forms: Sequence[str], start: int) -> Ends:
        ends = _any_of(*(first_phrases[n] for n in numbers))(forms, start)
        possessors = _any_of(*first_phrases)(forms, start)
        while next_starts := _find_ends(_any_word("'s", "'"), forms, possessors):
            ends |= _find_ends(_any_of(*(bare_phrases[n] for n in numbers)), forms, next_starts)
            possessors = _find_ends(_any_of(*bare_phrases), forms, next_starts)
        return ends

    return match


def _verb(verbs: Sequence[Verb], number: int, is_past: bool) -> Matcher:
    """Match a verb in each form that agrees with its subject."""
    base = _any_word(*(verb.base for verb in verbs))
    progressive = _sequence(_any_word(BE[is_past][number]), _any_word(*(v.ing for v in verbs if not v.is_stative)))
    negated = _sequence(_any_word(DO[is_past][number]), _any_word("not", "n't"), base)
    simple_present = _sequence(
        _optional(_any_word(*FREQUENCY_ADVERBS)), base if number else _any_word(*(verb.s for verb in verbs))
    )
    return _any_of(progressive, negated) if is_past else _any_of(progressive, negated, simple_present)


@cache
def _sentence(is_past: bool) -> Matcher:
    phrases, phrase = [_noun_phrase(number) for number in NUMBERS], _noun_phrase(*NUMBERS)
    pronouns = _any_of(_pronoun("accusative", *NUMBERS), _pronoun("reflexive", *NUMBERS))
    subjects = [_any_of(phrases[n], _pronoun("nominative", n)) for n in NUMBERS]

    def predicate(number: int, objects: Matcher, *modifiers: Matcher) -> Matcher:
        adjectival = _sequence(
            _any_word(BE[is_past][number]),
            _optional(_any_word(*DEGREE_ADVERBS)),
            _any_word(*chain(*STATE_ADJECTIVES.values())),
        )
        ditransitive = _sequence(_verb(DITRANSITIVE_VERBS, number, is_past), _any_of(phrase, pronouns), phrase)
        return _any_of(
            adjectival, ditransitive, _sequence(_verb(VERBS, number, is_past), _optional(objects), *modifiers)
        )

    object_relative = _sequence(
        _any_word("whom", "that"), _any_of(*(_sequence(subjects[n], _verb(VERBS, n, is_past)) for n in NUMBERS))
    )
    subject_relatives = [_sequence(_any_word("who", "that"), predicate(n, _any_of(phrase, pronouns))) for n in NUMBERS]
    nominal_modifier = _sequence(_any_word("with", *NOUN_PREPOSITIONS), phrase)
    long_phrases = [
        _sequence(phrases[n], _optional(_any_of(nominal_modifier, subject_relatives[n], object_relative)))
        for n in NUMBERS
    ]
    adverbial = _optional(_any_of(_any_word(*MANNER_ADVERBS), _sequence(_any_word(*PLACE_PREPOSITIONS), phrase)))
    clause = _any_of(
        *(
            _sequence(
                _any_of(long_phrases[n], _pronoun("nominative", n)),
                predicate(n, _any_of(*long_phrases, pronouns), adverbial),
            )
            for n in NUMBERS
        )
    )
    subordinator, comma = _any_word(*SUBORDINATORS), _any_word(",")
    opening = _sequence(_optional(_any_word(*NOUN_PREPOSITIONS), phrase, comma), clause)
    second_clause = _optional(_any_of(subordinator, _sequence(comma, _any_word("and", "but"))), clause)
    reported = _any_of(*(_sequence(long_phrases[n], _verb(REPORTING_VERBS, n, is_past)) for n in NUMBERS))
    sentence_types = (
        _sequence(opening, second_clause),
        _sequence(subordinator, clause, comma, clause),
        _sequence(reported, _any_word("that"), clause),
    )
    return _sequence(_any_of(*sentence_types), _optional(_any_word(".")))
