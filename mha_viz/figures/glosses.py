"""What each relation and each other role means in plain words, with an example, and which roles a search in plain words
means."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import NamedTuple


class Gloss(NamedTuple):
    """A role in plain words: ``name`` ("subject"), ``link`` ("subject → its verb"), an ``example`` whose linked words
    are marked with asterisks ("the *dog* *barks*"), and further ``words`` that a person may search for."""

    name: str
    link: str
    example: str
    words: tuple[str, ...] = ()


def _pattern(name: str, link: str, example: str, words: str) -> Gloss:
    return Gloss(name, link, example, tuple(words.split()))


def _relation(name: str, head: str, example: str, words: str) -> Gloss:
    return _pattern(name, f"{name} → {head}", example, words)


# Universal Dependencies 2, https://universaldependencies.org/u/dep/. The dependent comes first, then its head.
RELATIONS = MappingProxyType(
    {
        "acl": _relation("clause about a noun", "that noun", "a *reason* to *leave*", "adnominal clause"),
        "acl:relcl": _relation("relative clause", "the noun it describes", "the *man* who *sleeps*", "who which that"),
        "advcl": _relation(
            "adverbial clause", "the main verb", "we *left* when it *rained*", "when because if although"
        ),
        "advcl:relcl": _relation(
            "relative clause about a clause", "that clause", "he *won*, which *surprised* us", "which"
        ),
        "advmod": _relation("adverb", "the word it modifies", "she *runs* *fast*", "modifier adverbial manner"),
        "amod": _relation("adjective", "its noun", "a *red* *house*", "modifier adjectival"),
        "appos": _relation("apposition", "the noun it renames", "*Sam*, my *brother*", "appositive renaming"),
        "aux": _relation("auxiliary", "its verb", "she *has* *left*", "helping verb has will can modal"),
        "aux:pass": _relation("passive auxiliary", "its verb", "it *was* *built*", "was been passive"),
        "case": _relation("preposition", "its noun", "*in* the *house*", "adposition postposition of with"),
        "cc": _relation("conjunction", "the word it introduces", "tea *and* *milk*", "coordinating and or but"),
        "cc:preconj": _relation(
            "first half of a double conjunction",
            "the first joined word",
            "*both* *tea* and milk",
            "both either neither",
        ),
        "ccomp": _relation("clause as object", "its verb", "she *says* he *left*", "that complement clausal reported"),
        "clf": _relation("classifier", "its noun or number", "three *sheets* of *paper*", "counter measure word"),
        "compound": _relation("first noun of a compound", "its last noun", "*phone* *book*", "noun compounds"),
        "compound:prt": _relation("verb particle", "its verb", "*shut* *down*", "phrasal verbs up off"),
        "conj": _relation(
            "joined word", "the first of the list", "*tea* and *milk*", "conjunct coordination coordinated and"
        ),
        "cop": _relation("form of “be”", "what is said", "she *is* *happy*", "copula linking verb be am are"),
        "csubj": _relation("clause as subject", "its verb", "what she *said* *matters*", "clausal subject"),
        "csubj:outer": _relation("clause as subject of a clause", "that clause", "to *wait* is what *helps*", "outer"),
        "csubj:pass": _relation("clause as passive subject", "its verb", "that he *left* was *known*", "passive"),
        "dep": _relation("unclear link", "its head", "a link that the annotators could not name", "unspecified other"),
        "det": _relation("determiner", "its noun", "*the* *dog*", "article the a this every"),
        "det:predet": _relation(
            "word before the article", "its noun", "*all* the *dogs*", "predeterminer all both such"
        ),
        "discourse": _relation("interjection", "the clause", "*well*, I *think* so", "oh yes please discourse"),
        "dislocated": _relation(
            "phrase moved to the edge", "its verb", "this *film*, I *like* it", "topic dislocation"
        ),
        "expl": _relation(
            "empty “it” or “there”", "its verb", "*there* *is* a way", "expletive dummy there pleonastic"
        ),
        "fixed": _relation("rest of a fixed phrase", "its first word", "*because* *of*", "idiom multiword expression"),
        "flat": _relation("rest of a name", "its first word", "*New* *York*", "names title dates"),
        "goeswith": _relation("second half of a split word", "its first half", "*with* *out*", "typo spelling"),
        "iobj": _relation("indirect object", "its verb", "she *gave* *me* a book", "recipient dative"),
        "list": _relation("later item of a list", "the first item", "*name*, *address*, phone", "enumeration items"),
        "mark": _relation(
            "word that opens a clause",
            "the clause's verb",
            "*because* it *rained*",
            "marker subordinating subordinator that to if whether",
        ),
        "nmod": _relation(
            "noun with a preposition",
            "the noun it modifies",
            "the *roof* of the *house*",
            "nominal modifier of prepositional phrase",
        ),
        "nmod:desc": _relation("descriptive noun", "the name it goes with", "*Professor* *Smith*", "title"),
        "nmod:poss": _relation(
            "possessor", "what is possessed", "*her* *book*", "possessive genitive my his their whose"
        ),
        "nmod:unmarked": _relation("noun without a preposition", "the noun it modifies", "*page* *5*", "bare"),
        "nsubj": _relation("subject", "its verb", "the *dog* *barks*", "subjects nominal who does agent"),
        "nsubj:outer": _relation(
            "subject of a whole clause", "that clause", "the *problem* is that it *rains*", "outer"
        ),
        "nsubj:pass": _relation("passive subject", "its verb", "the *house* was *built*", "passive"),
        "nummod": _relation("number", "its noun", "*three* *dogs*", "numeral numeric count"),
        "obj": _relation("object", "its verb", "she *reads* a *book*", "direct objects accusative"),
        "obl": _relation(
            "phrase with a preposition",
            "its verb",
            "she *sat* on the *chair*",
            "oblique prepositional adverbial where when place time",
        ),
        "obl:agent": _relation("doer in the passive", "its verb", "*built* by the *city*", "agent by passive"),
        "obl:unmarked": _relation(
            "time or measure without a preposition", "its verb", "we *left* *yesterday*", "oblique time measure"
        ),
        "orphan": _relation(
            "word left by an omitted verb", "the word that stands in", "*I* tea, you *milk*", "ellipsis gapping"
        ),
        "parataxis": _relation(
            "clause set beside another",
            "the main clause",
            "let’s *go*, it’s *late*",
            "side by side insertion aside said",
        ),
        "punct": _relation("punctuation", "its clause or phrase", "she *left* *.*", "comma commas period stop quote"),
        "reparandum": _relation(
            "slip of the tongue", "its correction", "go to the *left* *right*", "disfluency repair"
        ),
        "root": _relation("main word", "the sentence", "the dog *barks*", "root predicate"),
        "vocative": _relation("person spoken to", "the clause", "*Sam*, *come* here", "address"),
        "xcomp": _relation(
            "verb without a subject of its own",
            "the verb above it",
            "she *wants* to *leave*",
            "open complement infinitive to",
        ),
    }
)
# The other roles, by their details in a profile.
PATTERNS = MappingProxyType(
    {
        "third_person": _pattern(
            "pronoun",
            "pronoun → what it refers to",
            "the *dog* barked because *it* was cold",
            "pronouns coreference antecedent anaphor it he she they refer refers",
        ),
        "previous": _pattern(
            "previous token", "token → the one before", "*the* *dog*", "before word left position last"
        ),
        "next": _pattern("next token", "token → the one after", "*the* *dog*", "after following word right position"),
        "same": _pattern("same token", "token → itself", "*dog*", "itself self word position diagonal"),
        "cls": _pattern("[CLS]", "any token → [CLS]", "*[CLS]* the *dog*", "start first delimiter special"),
        "sep": _pattern("[SEP]", "any token → [SEP]", "the *dog* *[SEP]*", "end delimiter special"),
        "punctuation": _pattern(
            "punctuation marks",
            "any token → commas and full stops",
            "the *dog* barks *.*",
            "comma commas full stop period delimiter dot",
        ),
        "entropy": _pattern("broad", "any token → many tokens", "", "everywhere evenly average uniform entropy wide"),
    }
)
# The universal parts of speech, https://universaldependencies.org/u/pos/.
PARTS_OF_SPEECH = MappingProxyType(
    {
        "ADJ": "adjective",
        "ADP": "preposition",
        "ADV": "adverb",
        "AUX": "auxiliary",
        "CCONJ": "coordinating conjunction",
        "DET": "determiner",
        "INTJ": "interjection",
        "NOUN": "noun",
        "NUM": "number",
        "PART": "particle",
        "PRON": "pronoun",
        "PROPN": "name",
        "PUNCT": "punctuation mark",
        "SCONJ": "subordinating conjunction",
        "SYM": "symbol",
        "VERB": "verb",
        "X": "other word",
    }
)
# Words that occur in any question and carry no meaning.
_EMPTY = re.compile(
    r"\b(a|an|the|heads?|that|for|of|to|at|in|on|its|their|is|are|do|does|find|me|looks?|looking|attends?|attending|links?"
    r"|linking|between|from|with|and|tokens?|one|what|s)\b"
)


def gloss(detail: str) -> Gloss | None:
    """The gloss of a relation ("nsubj", "nmod:poss", also "nsubj dep_to_head") or of another role's detail ("sep").

    A subtype without a gloss of its own has that of its relation; None for relations that the shipped treebanks do not
    have.
    """
    name = detail.partition(" ")[0]
    return PATTERNS.get(name) or RELATIONS.get(name) or RELATIONS.get(name.partition(":")[0])


def labelled(relation: str) -> str:
    """ "subject (nsubj)"; the relation alone if it has no gloss."""
    meaning = gloss(relation)
    return f"{meaning.name} ({relation})" if meaning else relation


def linked(relation: str) -> str:
    """ "subject → its verb (nsubj)"; the relation alone if it has no gloss."""
    meaning = gloss(relation)
    return f"{meaning.link} ({relation})" if meaning else relation


def explained(detail: str) -> str:
    """ "subject → its verb, as “dog” and “barks” in “the dog barks”"; "" if there is no gloss."""
    meaning = gloss(detail)
    if meaning is None:
        return ""
    marked = [f"“{word}”" for word in re.findall(r"\*([^*]+)\*", meaning.example)]
    where = f", as {' and '.join(marked)} in “{meaning.example.replace('*', '')}”" if marked else ""
    return f"{meaning.link}{where}"


def rule_in_words(rule: str) -> str:
    """ "nearest noun to the right" for "nearest NOUN to the right": a rule with its part of speech in words."""
    return " ".join(PARTS_OF_SPEECH.get(word, word) for word in rule.split(" "))


def asked_for(typed: str) -> tuple[str, ...]:
    """The relations and details that the typed words mean, best first: "subject", "looks at commas", "word before".

    A complete name ("nsubj", "object") comes first, then those that share most words with the question; empty if none
    do.
    """
    words = re.findall(r"[\w:]+", _EMPTY.sub(" ", typed.lower()))
    phrase = " ".join(words)
    ranked = []
    for order, (detail, meaning) in enumerate((*PATTERNS.items(), *RELATIONS.items())):
        name = re.findall(r"\w+", meaning.name.lower())
        names = {detail, " ".join(name)}
        terms = {detail, *name, *meaning.words, *detail.split(":")}
        hits = sum(any(_alike(word, term) for term in terms) for word in words)
        if hits:
            exact = phrase in names or phrase.rstrip("s") in names
            ranked.append((not exact, -hits, order, detail))
    most = min((entry[1] for entry in ranked), default=0)
    return tuple(entry[-1] for entry in sorted(ranked) if not entry[0] or entry[1] == most)


def _alike(word: str, term: str) -> bool:
    """Equal but for a plural s."""
    return word == term or (len(term) > 2 and word == f"{term}s")
