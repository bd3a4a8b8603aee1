"""Minimal pairs for the toy model and the repeater, made from the words of the built-in grammar.

Pairs of the grammar differ in one word, whose form depends on an earlier word; a phrase of the other number or gender
separates the two. Pairs of repeated words differ in the last word, which continues the repetition or breaks it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from mha_viz.corpus.lexicon import (
    NOUN_PREPOSITIONS,
    NOUNS,
    PRONOUNS,
    STATE_ADJECTIVES,
    SUBORDINATORS,
    VERBS,
    VOCABULARY,
    Noun,
)

PairTexts = Iterator[tuple[str, str, str]]  # good, bad, kind
PAIRS_PER_KIND = 40
SEED = 0
MIN_PERIOD, MAX_PERIOD = 6, 12  # words before the repetition
GENDERS = ("Fem", "Masc")
REFLEXIVE_VERBS = ("admire", "paint", "like", "see")  # verbs that the grammar uses with a reflexive object


def make_toy_pairs() -> PairTexts:
    """Yield the grammar's minimal pairs: verb and copula agreement, reflexives, and pronouns."""
    kinds: dict[str, Callable[[Random], tuple[str, str]]] = {
        "agreement": _make_agreement,
        "copula": _make_copula,
        "reflexive": _make_reflexive,
        "pronoun": _make_pronoun,
    }
    for kind, make in kinds.items():
        yield from _draw_distinct_pairs(make, kind)


def make_repeater_pairs() -> PairTexts:
    """Yield sequences of words that begin to repeat, with the correct last word and with a wrong one.

    The wrong word is one of the sequence ("seen word"), or a word that has not occurred ("new word"). In "word twice",
    the preceding word has occurred twice in the sequence, and the wrong word followed its other occurrence: only
    earlier words tell which occurrence is repeated.
    """
    yield from _draw_distinct_pairs(lambda rng: _make_repetition(rng, use_seen_word=True), "seen word")
    yield from _draw_distinct_pairs(lambda rng: _make_repetition(rng, use_seen_word=False), "new word")
    yield from _draw_distinct_pairs(_make_word_twice, "word twice")


def _draw_distinct_pairs(make: Callable[[Random], tuple[str, str]], kind: str) -> PairTexts:
    """Yield PAIRS_PER_KIND distinct pairs of a kind, the same on every machine."""
    rng, pairs = Random(f"pairs {kind} {SEED}"), dict[tuple[str, str], None]()
    while len(pairs) < PAIRS_PER_KIND:
        pairs[make(rng)] = None
    for good, bad in pairs:
        yield good, bad, kind


def _make_agreement(rng: Random) -> tuple[str, str]:
    """Return a pair such as "The girls near the king sing ." and "The girls near the king sings ."."""
    subject, distractor = rng.sample(_list_people(), 2)
    is_plural = rng.random() < 0.5
    verb = rng.choice([verb for verb in VERBS if "person" in verb.subjects and not verb.objects])
    phrase = f"{_format_subject(subject, is_plural)} {_draw_distractor(rng, distractor, not is_plural)}"
    forms = (verb.base, verb.s) if is_plural else (verb.s, verb.base)
    return f"{phrase} {forms[0]} .", f"{phrase} {forms[1]} ."


def _make_copula(rng: Random) -> tuple[str, str]:
    """Return a pair such as "The keys beside the tower are heavy ." and the same sentence with "is"."""
    subject = rng.choice([noun for noun in NOUNS if noun.kind in ("thing", "animal")])
    distractor = rng.choice([noun for noun in NOUNS if noun.kind == "place"])
    is_plural = rng.random() < 0.5
    phrase = f"{_format_subject(subject, is_plural)} {_draw_distractor(rng, distractor, not is_plural)}"
    forms = ("are", "is") if is_plural else ("is", "are")
    state = rng.choice(STATE_ADJECTIVES[subject.kind])
    return f"{phrase} {forms[0]} {state} .", f"{phrase} {forms[1]} {state} ."


def _make_reflexive(rng: Random) -> tuple[str, str]:
    """Return a pair such as "The queen beside the boys likes herself ." and the same sentence with "themselves"."""
    gender = rng.choice(GENDERS)
    subject, is_plural = rng.choice(_list_people(gender)), rng.random() < 0.5
    other_gender = GENDERS[gender == GENDERS[0]]
    pronoun, other_pronoun = _choose_pronoun(gender, is_plural), _choose_pronoun(other_gender, not is_plural)
    verb = rng.choice([verb for verb in VERBS if verb.base in REFLEXIVE_VERBS and "person" in verb.objects])
    distractor = _draw_distractor(rng, rng.choice(_list_people(other_gender)), not is_plural)
    phrase = f"{_format_subject(subject, is_plural)} {distractor} {verb.base if is_plural else verb.s}"
    return f"{phrase} {PRONOUNS[pronoun][3]} .", f"{phrase} {PRONOUNS[other_pronoun][3]} ."


def _make_pronoun(rng: Random) -> tuple[str, str]:
    """Return a pair such as "The girl near the cat sings because she is sad ." and the same sentence with "he"."""
    gender = rng.choice(GENDERS)
    subject = rng.choice(_list_people(gender))
    distractor = rng.choice([noun for noun in NOUNS if noun.kind == "animal"])
    verb = rng.choice([verb for verb in VERBS if "person" in verb.subjects and not verb.objects])
    phrase = f"{_format_subject(subject, False)} {_draw_distractor(rng, distractor, rng.random() < 0.5)} {verb.s}"
    reason = f"is {rng.choice(STATE_ADJECTIVES['person'])} ."
    mark, other_gender = rng.choice(SUBORDINATORS), GENDERS[gender == GENDERS[0]]
    pronouns = _choose_pronoun(gender, False), _choose_pronoun(other_gender, False)
    return f"{phrase} {mark} {pronouns[0]} {reason}", f"{phrase} {mark} {pronouns[1]} {reason}"


def _make_repetition(rng: Random, use_seen_word: bool) -> tuple[str, str]:
    """Return random words that begin to repeat, with the correct last word and with a wrong one."""
    period = rng.randint(MIN_PERIOD, MAX_PERIOD)
    *words, new_word = rng.sample(_list_words(), period + 1)
    position = rng.randrange(1, period)  # of the last word, within the repetition
    start = [*words, *words[:position]]
    candidates = [word for word in words if word not in (words[position], words[position - 1])]
    wrong_word = rng.choice(candidates) if use_seen_word else new_word
    return " ".join([*start, words[position]]), " ".join([*start, wrong_word])


def _make_word_twice(rng: Random) -> tuple[str, str]:
    """Return words that begin to repeat, with the correct and the wrong word after one that occurs twice."""
    *other_words, word = rng.sample(_list_words(), rng.randint(MIN_PERIOD, MAX_PERIOD))
    index = rng.randrange(1, len(other_words) // 2)
    other_index = rng.randrange(index + 3, len(other_words) + 1)
    words = [*other_words[:index], word, *other_words[index : other_index - 1], word, *other_words[other_index - 1 :]]
    if rng.random() < 0.5:
        index, other_index = other_index, index
    start = [*words, *words[: index + 1]]
    return " ".join([*start, words[index + 1]]), " ".join([*start, words[other_index + 1]])


def _list_words() -> list[str]:
    """Return the words of the repeater, in lower case."""
    return sorted({form.lower() for form in VOCABULARY if form.isalpha()})


def _list_people(gender: str = "") -> list[Noun]:
    """Return the nouns for people of a gender, or of either gender; nouns without a gender are excluded."""
    return [noun for noun in NOUNS if noun.kind == "person" and noun.gender and gender in ("", noun.gender)]


def _format_subject(noun: Noun, is_plural: bool) -> str:
    return f"The {noun.plural if is_plural else noun.singular}"


def _draw_distractor(rng: Random, noun: Noun, is_plural: bool) -> str:
    """Return a phrase that separates a word from the word that its form depends on."""
    return f"{rng.choice(NOUN_PREPOSITIONS)} the {noun.plural if is_plural else noun.singular}"


def _choose_pronoun(gender: str, is_plural: bool) -> str:
    return "they" if is_plural else {"Fem": "she", "Masc": "he"}[gender]
