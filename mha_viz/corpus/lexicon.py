"""The words of the built-in grammar and how they combine."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


def _split(words: str) -> tuple[str, ...]:
    return tuple(words.split())


class Noun(NamedTuple):
    """A noun. ``gender`` is empty for people of either gender, who appear in the plural only."""

    singular: str
    plural: str
    kind: str
    gender: str


def _add_s(word: str) -> str:
    """Return the plural of a noun, or the third-person singular of a verb."""
    if word[-3:] == "man":
        return f"{word[:-3]}men"
    if word[-1] == "y" and word[-2] not in "aeiou":
        return f"{word[:-1]}ies"
    return word + ("es" if word.endswith(("s", "x", "ch", "sh")) else "s")


def _make_nouns(kind: str, gender: str, words: str) -> tuple[Noun, ...]:
    return tuple(Noun(noun, _add_s(noun), kind, gender) for noun in words.split())


NOUNS = (
    *_make_nouns("person", "Fem", "girl queen actress mother aunt princess sister woman"),
    *_make_nouns("person", "Masc", "boy king actor father uncle prince brother man"),
    *_make_nouns("person", "", "doctor farmer neighbour sailor"),
    *_make_nouns("animal", "Neut", "animal bird cat dog horse rabbit"),
    *_make_nouns("thing", "Neut", "book letter lamp box basket key picture ring"),
    *_make_nouns("place", "Neut", "house garden street river bridge tower village castle"),
)
LIVING_KINDS = ("person", "animal")
NAMES = {
    "Fem": _split("Anna Clara Emma Julia Maria Nora"),
    "Masc": _split("David Felix Henry Oscar Peter Simon"),
}

ADJECTIVES = {  # a noun has at most one of each list, in this order
    "person": (_split("famous clever friendly proud angry"), _split("old young tall")),
    "animal": (_split("big small hungry"), _split("old black white wild")),
    "thing": (_split("big small heavy beautiful"), _split("old red blue green golden")),
    "place": (_split("big small quiet"), _split("old beautiful")),
}
STATE_ADJECTIVES = {  # the adjectives that each kind can have as predicate
    "person": _split("tired happy sad angry busy famous clever proud"),
    "animal": _split("tired hungry happy wild afraid"),
    "thing": _split("broken new heavy dirty beautiful"),
    "place": _split("dark quiet beautiful empty"),
}
FREQUENCY_ADVERBS = _split("often always still rarely sometimes")
TIME_ADVERBS = ("again", "today")
MANNER_ADVERBS = (*TIME_ADVERBS, "gladly", "quietly", "slowly")
DEGREE_ADVERBS = ("very", "too", "so")
NOUN_PREPOSITIONS = ("beside", "near", "behind")
PLACE_PREPOSITIONS = ("in", "near", "behind")
# The kinds of subjects, repeated by their relative frequencies.
ACTOR_KINDS = ("person",) * 4 + ("animal",) * 2 + ("thing",) * 2 + ("place",)
SUBORDINATORS = ("because", "while", "when", "although")


class Verb(NamedTuple):
    """A verb.

    ``objects`` lists the kinds of its object; it is empty for an intransitive verb. Stative verbs have no -ing form.
    """

    base: str
    subjects: tuple[str, ...]
    objects: tuple[str, ...]
    is_stative: bool = False

    @property
    def s(self) -> str:
        """The third-person singular, as in "she watches"."""
        return _add_s(self.base)

    @property
    def ing(self) -> str:
        """The -ing form, as in "watching"."""
        has_silent_e = self.base[-1] == "e" and self.base[-2] != "e"
        return f"{self.base.removesuffix('e') if has_silent_e else self.base}ing"


def _make_verbs(subjects: str, words: str, objects: str = "", is_stative: bool = False) -> tuple[Verb, ...]:
    return tuple(Verb(v, tuple(subjects.split()), tuple(objects.split()), is_stative) for v in words.split())


VERBS = (
    *_make_verbs("person", "sleep smile sing dance laugh wait work"),
    *_make_verbs("animal", "sleep wait rest"),
    *_make_verbs("thing", "stand disappear shine"),
    *_make_verbs("person", "help greet thank admire", "person"),
    *_make_verbs("person", "paint", "person animal thing place"),
    *_make_verbs("person", "carry clean sell", "thing"),
    *_make_verbs("person", "feed buy", "animal"),
    *_make_verbs("person animal", "watch follow", "person animal"),
    *_make_verbs("person animal", "like fear see", "person animal", is_stative=True),
    *_make_verbs("person", "like remember need see", "thing place", is_stative=True),
    *_make_verbs("animal", "cross leave reach", "place"),
    *_make_verbs("person", "cross leave reach", "place"),
    *_make_verbs("thing", "surprise please frighten", "person", is_stative=True),
    *_make_verbs("place", "please surprise", "person", is_stative=True),
)
REPORTING_VERBS = _make_verbs("person", "say think know believe hope", is_stative=True)
DITRANSITIVE_VERBS = _make_verbs("person", "give show send bring", "thing")

PRONOUNS = {  # by subject pronoun: subject, object, possessive, reflexive
    "she": ("she", "her", "her", "herself"),
    "he": ("he", "him", "his", "himself"),
    "it": ("it", "it", "its", "itself"),
    "they": ("they", "them", "their", "themselves"),
}
FEATURES = {
    "she": "Gender=Fem|Number=Sing",
    "he": "Gender=Masc|Number=Sing",
    "it": "Gender=Neut|Number=Sing",
    "they": "Number=Plur",
}
CASES = {"nominative": 0, "accusative": 1, "possessive": 2, "reflexive": 3}
GENDERS = {"Fem": "she", "Masc": "he", "Neut": "it"}
_FUNCTION_WORDS = _split("a an the this these some is are was were does do did not n't who whom that and but , . 's '")


def _collect_vocabulary() -> tuple[str, ...]:
    verbs = (*VERBS, *REPORTING_VERBS, *DITRANSITIVE_VERBS)
    forms = {form for v in verbs for form in ((v.base, v.s) if v.is_stative else (v.base, v.s, v.ing))}
    forms |= {form for noun in NOUNS for form in ((noun.singular, noun.plural) if noun.gender else (noun.plural,))}
    lists = (*NAMES.values(), *(words for lists in ADJECTIVES.values() for words in lists), *STATE_ADJECTIVES.values())
    forms |= {word for words in lists for word in words}
    forms |= {
        *FREQUENCY_ADVERBS,
        *MANNER_ADVERBS,
        *DEGREE_ADVERBS,
        "with",
        *NOUN_PREPOSITIONS,
        *PLACE_PREPOSITIONS,
        *SUBORDINATORS,
        *_FUNCTION_WORDS,
    }
    return tuple(sorted(forms | {form for row in PRONOUNS.values() for form in row}))


VOCABULARY: tuple[str, ...] = _collect_vocabulary()
"""All word forms as they occur inside a sentence; the first word of a sentence is capitalised."""


def _map_other_numbers() -> dict[str, str]:
    verbs = (*VERBS, *REPORTING_VERBS, *DITRANSITIVE_VERBS)
    pairs = {verb.base: verb.s for verb in verbs} | {"are": "is", "were": "was", "do": "does"}
    return pairs | {singular: plural for plural, singular in pairs.items()}


OTHER_NUMBER: Mapping[str, str] = MappingProxyType(_map_other_numbers())
"""The form in the other number, for each form that agrees with its subject: "is" for "are", "sing" for "sings"."""
