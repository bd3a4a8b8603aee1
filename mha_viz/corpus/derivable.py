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
    BECAUSE,
    BESIDE,
    CASES,
    GIVING,
    HOW,
    NAMES,
    NOUNS,
    OFTEN,
    PRONOUNS,
    STATES,
    TELLING,
    VERBS,
    VERY,
    WHERE,
    Verb,
)

MOST = 64  # longer sentences are rejected; the grammar's have at most half as many words
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
    words = [form.casefold().replace("’", "'") for form in forms[: MOST + 1]]
    return len(words) <= MOST and any(len(words) in _sentence(past)(words, 0) for past in (True, False))


def _one(*words: str) -> Matcher:
    """Match one of these words, or a masked word."""
    choices = {MASK, *(word.casefold() for word in words)}
    return lambda forms, start: frozenset({start + 1} if start < len(forms) and forms[start] in choices else ())


def _any(*parts: Matcher) -> Matcher:
    return lambda forms, start: frozenset(chain.from_iterable(part(forms, start) for part in parts))


def _then(*parts: Matcher) -> Matcher:
    def ends(forms: Sequence[str], start: int) -> Ends:
        reached = frozenset({start})
        for part in parts:
            reached = _ends(part, forms, reached)
        return reached

    return ends


def _ends(part: Matcher, forms: Sequence[str], begins: Ends) -> Ends:
    """Return where ``part`` can end if it begins at one of these positions."""
    return frozenset(chain.from_iterable(part(forms, begin) for begin in begins))


_NOTHING: Matcher = _then()


def _maybe(*parts: Matcher) -> Matcher:
    return _any(_NOTHING, _then(*parts))


def _pronoun(case: str, *numbers: int) -> Matcher:
    return _one(*(forms[CASES[case]] for subject, forms in PRONOUNS.items() if (subject == "they") in numbers))


def _noun_phrase(*numbers: int) -> Matcher:
    """Match a noun phrase without modifiers after its noun.

    It begins with a determiner, a possessive pronoun or a name. A phrase can be the possessor of the next one, as in
    "the king 's old dog".
    """
    adjective = _maybe(_one(*chain(*(words for lists in ADJECTIVES.values() for words in lists))))
    nouns = [_one(*(noun.singular for noun in NOUNS)), _one(*(noun.plural for noun in NOUNS))]
    determiners = [_one("the", "a", "an", "this"), _one("the", "some", "these")]
    owned = [_then(adjective, adjective, noun) for noun in nouns]
    first_phrases = [_then(_any(determiners[n], _pronoun("possessive", *NUMBERS)), owned[n]) for n in NUMBERS]
    first_phrases[SINGULAR] = _any(first_phrases[SINGULAR], _one(*chain(*NAMES.values())))

    def ends(forms: Sequence[str], start: int) -> Ends:
        reached = _any(*(first_phrases[n] for n in numbers))(forms, start)
        owners = _any(*first_phrases)(forms, start)
        while next_starts := _ends(_one("'s", "'"), forms, owners):
            reached |= _ends(_any(*(owned[n] for n in numbers)), forms, next_starts)
            owners = _ends(_any(*owned), forms, next_starts)
        return reached

    return ends


def _verb(verbs: Iterable[Verb], number: int, past: bool) -> Matcher:
    """Match a verb in each form that agrees with its subject."""
    forms = [*verbs]
    base = _one(*(verb.base for verb in forms))
    going = _then(_one(BE[past][number]), _one(*(verb.ing for verb in forms if not verb.static)))
    denied = _then(_one(DO[past][number]), _one("not", "n't"), base)
    plain = _then(_maybe(_one(*OFTEN)), base if number else _one(*(verb.s for verb in forms)))
    return _any(going, denied) if past else _any(going, denied, plain)


@cache
def _sentence(past: bool) -> Matcher:
    phrases, phrase = [_noun_phrase(number) for number in NUMBERS], _noun_phrase(*NUMBERS)
    pronouns = _any(_pronoun("accusative", *NUMBERS), _pronoun("reflexive", *NUMBERS))
    subjects = [_any(phrases[n], _pronoun("nominative", n)) for n in NUMBERS]

    def predicate(number: int, objects: Matcher, *after: Matcher) -> Matcher:
        state = _then(_one(BE[past][number]), _maybe(_one(*VERY)), _one(*chain(*STATES.values())))
        giving = _then(_verb(GIVING, number, past), _any(phrase, pronouns), phrase)
        return _any(state, giving, _then(_verb(VERBS, number, past), _maybe(objects), *after))

    of_object = _then(_one("whom", "that"), _any(*(_then(subjects[n], _verb(VERBS, n, past)) for n in NUMBERS)))
    of_subject = [_then(_one("who", "that"), predicate(n, _any(phrase, pronouns))) for n in NUMBERS]
    near = _then(_one("with", *BESIDE), phrase)
    long = [_then(phrases[n], _maybe(_any(near, of_subject[n], of_object))) for n in NUMBERS]
    adverbial = _maybe(_any(_one(*HOW), _then(_one(*WHERE), phrase)))
    clause = _any(
        *(
            _then(_any(long[n], _pronoun("nominative", n)), predicate(n, _any(*long, pronouns), adverbial))
            for n in NUMBERS
        )
    )
    because, comma = _one(*BECAUSE), _one(",")
    opening = _then(_maybe(_one(*BESIDE), phrase, comma), clause)
    second_clause = _maybe(_any(because, _then(comma, _one("and", "but"))), clause)
    reported = _any(*(_then(long[n], _verb(TELLING, n, past)) for n in NUMBERS))
    types = _then(opening, second_clause), _then(because, clause, comma, clause), _then(reported, _one("that"), clause)
    return _then(_any(*types), _maybe(_one(".")))
