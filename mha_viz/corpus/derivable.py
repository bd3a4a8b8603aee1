"""Whether a sentence can be one of the built-in grammar (:mod:`mha_viz.corpus.grammar`).

Its words are matched with the ways in which those of the grammar combine, for one tense at a time. What a verb or an
adjective goes with, and which entity a pronoun can mean, is not looked at: a sentence that is refused is none of the
grammar; of those that are taken, some are none either. A masked word stands for any.
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

MOST = 64  # words of the longest sentence that is looked at; those of the grammar have at most half as many
MASK = "[mask]"
NUMBERS = SINGULAR, PLURAL = 0, 1
BE, DO = {True: ("was", "were"), False: ("is", "are")}, {True: ("did", "did"), False: ("does", "do")}

Ends = frozenset[int]
Matcher = Callable[[Sequence[str], int], Ends]
"""Find where a part of a sentence can end if it begins at a place among the words."""


def is_derivable(forms: Sequence[str]) -> bool:
    """Whether words, "n't" and "'s" apart, can be a sentence of the grammar; a full stop may be missing."""
    words = [form.casefold().replace("’", "'") for form in forms[: MOST + 1]]
    return len(words) <= MOST and any(len(words) in _sentence(past)(words, 0) for past in (True, False))


def _one(*words: str) -> Matcher:
    """One of these words, or a masked one."""
    choices = {MASK, *(word.casefold() for word in words)}
    return lambda forms, at: frozenset({at + 1} if at < len(forms) and forms[at] in choices else ())


def _any(*parts: Matcher) -> Matcher:
    return lambda forms, at: frozenset(chain.from_iterable(part(forms, at) for part in parts))


def _then(*parts: Matcher) -> Matcher:
    def ends(forms: Sequence[str], at: int) -> Ends:
        reached = frozenset({at})
        for part in parts:
            reached = _ends(part, forms, reached)
        return reached

    return ends


def _ends(part: Matcher, forms: Sequence[str], begins: Ends) -> Ends:
    """Where a part can end that begins at one of these places."""
    return frozenset(chain.from_iterable(part(forms, begin) for begin in begins))


_NOTHING: Matcher = _then()


def _maybe(*parts: Matcher) -> Matcher:
    return _any(_NOTHING, _then(*parts))


def _pronoun(case: str, *numbers: int) -> Matcher:
    return _one(*(forms[CASES[case]] for subject, forms in PRONOUNS.items() if (subject == "they") in numbers))


def _noun_phrase(*numbers: int) -> Matcher:
    """A noun phrase without what may follow its noun. It begins with a determiner, a possessive pronoun or a name, and
    each can be the possessor of the next, as in "the king 's old dog"."""
    adjective = _maybe(_one(*chain(*(words for lists in ADJECTIVES.values() for words in lists))))
    nouns = [_one(*(noun.singular for noun in NOUNS)), _one(*(noun.plural for noun in NOUNS))]
    determiners = [_one("the", "a", "an", "this"), _one("the", "some", "these")]
    owned = [_then(adjective, adjective, noun) for noun in nouns]
    first = [_then(_any(determiners[n], _pronoun("possessive", *NUMBERS)), owned[n]) for n in NUMBERS]
    first[SINGULAR] = _any(first[SINGULAR], _one(*chain(*NAMES.values())))

    def ends(forms: Sequence[str], at: int) -> Ends:
        reached = _any(*(first[n] for n in numbers))(forms, at)
        owners = _any(*first)(forms, at)
        while after := _ends(_one("'s", "'"), forms, owners):
            reached |= _ends(_any(*(owned[n] for n in numbers)), forms, after)
            owners = _ends(_any(*owned), forms, after)
        return reached

    return ends


def _verb(verbs: Iterable[Verb], number: int, past: bool) -> Matcher:
    """A verb in each form that agrees with its subject."""
    listed = [*verbs]
    base = _one(*(verb.base for verb in listed))
    going = _then(_one(BE[past][number]), _one(*(verb.ing for verb in listed if not verb.static)))
    denied = _then(_one(DO[past][number]), _one("not", "n't"), base)
    plain = _then(_maybe(_one(*OFTEN)), base if number else _one(*(verb.s for verb in listed)))
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
    more = _maybe(_any(because, _then(comma, _one("and", "but"))), clause)
    reported = _any(*(_then(long[n], _verb(TELLING, n, past)) for n in NUMBERS))
    types = _then(opening, more), _then(because, clause, comma, clause), _then(reported, _one("that"), clause)
    return _then(_any(*types), _maybe(_one(".")))
