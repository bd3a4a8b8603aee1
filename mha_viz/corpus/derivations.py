"""Test whether the built-in grammar (:mod:`mha_viz.corpus.grammar`) could have produced a sentence.

The words are matched against the constructions of the grammar, in one tense at a time. The test ignores which nouns a
verb or an adjective goes with, and which entity a pronoun can refer to. So a rejected sentence is certainly not from
the grammar, but some accepted sentences are not from it either. A masked word matches any word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
BE, DO = {True: ("was", "were"), False: ("is", "are")}, {True: ("did", "did"), False: ("does", "do")}

Ends = frozenset[int]
Matcher = Callable[[Sequence[str], int], Ends]
"""Returns where a part of a sentence can end if it begins at a given position of the words."""


def is_derivable(forms: Sequence[str]) -> bool:
    """Return whether words can be a sentence of the grammar.

    "n't" and "'s" are separate words. A full stop may be missing.
    """
    words = [form.casefold().replace("’", "'") for form in forms[: MAX_WORDS + 1]]
    return len(words) <= MAX_WORDS and any(len(words) in _sentence(past)(words, 0) for past in (True, False))


def _any_word(*words: str) -> Matcher:
    """Match one of these words, or a masked word."""
    choices = {MASK, *(word.casefold() for word in words)}
    return lambda forms, start: frozenset({start + 1} if start < len(forms) and forms[start] in choices else ())


def _any_of(*parts: Matcher) -> Matcher:
    return lambda forms, start: frozenset(chain.from_iterable(part(forms, start) for part in parts))


def _sequence(*parts: Matcher) -> Matcher:
    def ends(forms: Sequence[str], start: int) -> Ends:
        reached = frozenset({start})
        for part in parts:
            reached = _find_ends(part, forms, reached)
        return reached

    return ends


def _find_ends(part: Matcher, forms: Sequence[str], begins: Ends) -> Ends:
    """Return where ``part`` can end if it begins at one of these positions."""
    return frozenset(chain.from_iterable(part(forms, begin) for begin in begins))


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

    def ends(forms: Sequence[str], start: int) -> Ends:
        reached = _any_of(*(first_phrases[n] for n in numbers))(forms, start)
        possessors = _any_of(*first_phrases)(forms, start)
        while next_starts := _find_ends(_any_word("'s", "'"), forms, possessors):
            reached |= _find_ends(_any_of(*(bare_phrases[n] for n in numbers)), forms, next_starts)
            possessors = _find_ends(_any_of(*bare_phrases), forms, next_starts)
        return reached

    return ends


def _verb(verbs: Iterable[Verb], number: int, past: bool) -> Matcher:
    """Match a verb in each form that agrees with its subject."""
    forms = [*verbs]
    base = _any_word(*(verb.base for verb in forms))
    progressive = _sequence(_any_word(BE[past][number]), _any_word(*(verb.ing for verb in forms if not verb.static)))
    negated = _sequence(_any_word(DO[past][number]), _any_word("not", "n't"), base)
    simple_present = _sequence(
        _optional(_any_word(*FREQUENCY_ADVERBS)), base if number else _any_word(*(verb.s for verb in forms))
    )
    return _any_of(progressive, negated) if past else _any_of(progressive, negated, simple_present)


@cache
def _sentence(past: bool) -> Matcher:
    phrases, phrase = [_noun_phrase(number) for number in NUMBERS], _noun_phrase(*NUMBERS)
    pronouns = _any_of(_pronoun("accusative", *NUMBERS), _pronoun("reflexive", *NUMBERS))
    subjects = [_any_of(phrases[n], _pronoun("nominative", n)) for n in NUMBERS]

    def predicate(number: int, objects: Matcher, *after: Matcher) -> Matcher:
        adjectival = _sequence(
            _any_word(BE[past][number]),
            _optional(_any_word(*DEGREE_ADVERBS)),
            _any_word(*chain(*STATE_ADJECTIVES.values())),
        )
        ditransitive = _sequence(_verb(DITRANSITIVE_VERBS, number, past), _any_of(phrase, pronouns), phrase)
        return _any_of(adjectival, ditransitive, _sequence(_verb(VERBS, number, past), _optional(objects), *after))

    object_relative = _sequence(
        _any_word("whom", "that"), _any_of(*(_sequence(subjects[n], _verb(VERBS, n, past)) for n in NUMBERS))
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
    reported = _any_of(*(_sequence(long_phrases[n], _verb(REPORTING_VERBS, n, past)) for n in NUMBERS))
    types = (
        _sequence(opening, second_clause),
        _sequence(subordinator, clause, comma, clause),
        _sequence(reported, _any_word("that"), clause),
    )
    return _sequence(_any_of(*types), _optional(_any_word(".")))
