"""Recognise the language of a text by its function words, for languages with Latin letters; detect other scripts.

The lists are short: the most frequent articles, pronouns, prepositions, conjunctions and auxiliaries of each language.
Those of English are in :mod:`mha_viz.text.english`. A form that is also an English content word, an abbreviation or a
first name ("die", "war", "UN") is not evidence for a language. Neither is a particle inside a name ("Oscar de la Hoya")
or at the beginning of one ("Los Angeles"), unless the text begins with it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from mha_viz.text import english

ENGLISH = "en"
MIN_WORDS = 2  # different function words that a language other than English needs
MIN_RATIO = 2  # such a language needs this many times as many function words as English
LANGUAGES: Mapping[str, frozenset[str]] = MappingProxyType({
    ENGLISH: english.FUNCTION_WORDS,
    "de": english.split_words(
        "der die das den dem des ein eine einen einem einer und oder aber weil dass daß wenn als ob ich du er sie "
        "es wir ihr ihn ihm ihnen mich mir dich sich mein meine sein seine seiner ihre ihren nicht kein keine ist "
        "sind war waren bin bist wird werden wurde hat haben hatte kann konnte muss soll will auf aus bei mit "
        "nach von vom vor zu zum zur für über unter durch gegen ohne um im am auch noch nur schon sehr so wie was "
        "wer wo hier dort da dann denn doch man in an so her hin"
    ),
    "fr": english.split_words(
        "le la les l un une des du de et ou mais que qui quoi dont où je tu il elle nous vous ils elles me te se "
        "lui leur mon ma mes ton ta tes son sa ses notre votre ne pas plus est sont était étaient suis es a ont "
        "avait sera être avoir dans sur sous avec sans pour par chez entre vers parce quand comme si ce cet cette "
        "ces au aux en y très aussi"
    ),
    "es": english.split_words(
        "el la los las un una unos unas y o pero porque que quien cuando donde como si yo tú él ella nosotros "
        "ellos ellas me te se lo le les mi mis tu tus su sus no es son era eran está están estaba estaban ha han "
        "había fue ser de del al a en con sin por para sobre entre hasta desde muy más también ya este esta estos "
        "ese esa"
    ),
    "it": english.split_words(
        "il lo la gli le un uno una e o ma perché che chi quando dove come se io tu lui lei noi voi loro mi ti si "
        "ci mio mia suo sua non è sono era erano ha hanno aveva di del della dei delle da dal in nel nella con su "
        "sul sulla per tra fra molto anche più questo questa quello quella al alla"
    ),
    "pt": english.split_words(
        "o a os as um uma e ou mas porque que quem quando onde como se eu tu ele ela nós eles elas me te lhe meu "
        "minha seu sua não é são era eram está estava foi ser tem tinha de do da dos das em no na nos nas com sem "
        "por para pelo pela sobre entre até muito mais também já este esta esse essa ao à"
    ),
    "nl": english.split_words(
        "de het een en of maar omdat dat die wie wat waar wanneer als ik jij je hij zij ze wij we jullie hem haar "
        "hun mijn zijn niet geen is was waren ben heeft hebben had wordt werd kan moet zal op in uit bij met na "
        "van voor naar te om over onder door tegen zonder ook nog al zeer zo hier daar dan er"
    ),
})  # fmt: skip

# Particles in names of people and places.
PARTICLES = english.split_words(
    "de du des del della di da do dos das la le les los las el al von van der den ter zu y e"
)
# Forms that are no evidence for a language, because English text has them.
AMBIGUOUS_FORMS = english.split_words(
    "die war hat man den bin hut mit um im her bald wand "
    "l un des ma son ton ses tes pas plus sur par pour sans est si tu te ce au en y a on "
    "o con sin era mi fan per al ha come fra io che do as no os com mas um com dos e i u "
    "hem ben met door van dan over onder na hun kan als we te om op of had was is in"
)


def split_apostrophes(word: str) -> list[str]:
    """Split a word at its apostrophes, in lower case: "qu'il" has two parts."""
    return word.casefold().replace("’", "'").split("'")


def detect_language(words: Sequence[str]) -> str:
    """Return the code of the language of a text, judged by its function words; empty if it is unclear.

    A language other than English needs at least MIN_WORDS different words that are evidence for it, and at least
    MIN_RATIO times as many as English alone has. English needs more words of its own than the best other language has.
    ``words`` are in order, without punctuation.
    """
    parts = {part for word in words for part in split_apostrophes(word)}
    evidence = {part for i in range(len(words)) if not _is_in_name(words, i) for part in _find_evidence(words[i])}
    matches = {code: evidence & function_words - LANGUAGES[ENGLISH] for code, function_words in LANGUAGES.items()}
    winner = max(matches, key=lambda code: len(matches[code]))
    english_words = parts & LANGUAGES[ENGLISH] - LANGUAGES[winner] if matches[winner] else parts & LANGUAGES[ENGLISH]
    if len(matches[winner]) >= MIN_WORDS and len(matches[winner]) >= MIN_RATIO * len(english_words):
        return winner
    return ENGLISH if len(english_words) > len(matches[winner]) else ""


def _is_in_name(words: Sequence[str], index: int) -> bool:
    """Return whether a word is part of a name, as "de" and "la" are in "Oscar de la Hoya", and "Los" in "Los Angeles".

    The word and those around it must be PARTICLES, up to a capitalised word on either side. The word itself may be the
    capitalised word on the left, except at the beginning of the text.
    """
    right_word = next((word for word in words[index + 1 :] if _is_not_particle(word)), "")
    left_word = next((word for word in words[index::-1] if _is_not_particle(word) or word[:1].isupper()), "")
    is_opening = index == 0 and words[index][:1].isupper()
    is_particle = words[index].casefold() in PARTICLES
    return is_particle and not is_opening and right_word[:1].isupper() and left_word[:1].isupper()


def _is_not_particle(word: str) -> bool:
    """Return whether a word is not a lower-case particle; a capitalised one can begin a name, as in "Los Angeles"."""
    return word[:1].isupper() or word not in PARTICLES


def is_function_word(word: str, language: str = ENGLISH) -> bool:
    """Return whether a word is a function word of a language, contracted or not.

    Function words are articles, pronouns, prepositions, conjunctions, particles and auxiliaries. If ``language`` is
    empty, those of any language count. In English text, PARTICLES of names, such as "de" and "van", count as well.
    """
    if language == ENGLISH:
        return english.is_closed_class(word) or word in PARTICLES
    if not language:
        return is_function_word(word) or any(
            part in words for part in _find_evidence(word) for words in LANGUAGES.values()
        )
    return any(part in LANGUAGES[language] for part in split_apostrophes(word))


def _find_evidence(word: str) -> set[str]:
    return {*split_apostrophes(word)} - AMBIGUOUS_FORMS


def has_other_letters(words: Sequence[str]) -> bool:
    """Return whether a word has letters of a script other than Latin. A single Greek letter is a symbol, as in "µm"."""
    for word in words:
        letters = [letter for letter in unicodedata.normalize("NFKC", word) if letter.isalpha()]
        names = [unicodedata.name(letter, "LATIN") for letter in letters]
        other_names = [name for name in names if "LATIN" not in name and not name.startswith("MODIFIER LETTER")]
        if len(other_names) > 1 or (other_names and "GREEK" not in other_names[0]):
            return True
    return False
