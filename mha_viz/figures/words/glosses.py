"""Glosses of relations and other roles in plain words, with examples, and the search for roles by plain words."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from types import MappingProxyType
from typing import NamedTuple


class Gloss(NamedTuple):
    """A role in plain words.

    Attributes:
        name: "subject".
        link: "subject → its verb".
        example: "the *dog* _barks_": the first word of the link is marked with asterisks, the second with underscores.
            Each head of a bundled model that has the role attends accordingly in it (tests/test_gloss_sentences.py).
        words: further words that a person may search for.
    """

    name: str
    link: str
    example: str
    words: tuple[str, ...] = ()


def _make_gloss(name: str, link: str, example: str, words: str) -> Gloss:
    return Gloss(name, link, example, tuple(words.split()))


def _relation_gloss(name: str, head: str, example: str, words: str) -> Gloss:
    return _make_gloss(name, f"{name} → {head}", example, words)


# Universal Dependencies 2, https://universaldependencies.org/u/dep/. The dependent comes first, then its head.
RELATIONS = MappingProxyType(
    {
        "acl": _relation_gloss("clause about a noun", "that noun", "a _reason_ to *leave*", "adnominal clause"),
        "acl:relcl": _relation_gloss(
            "relative clause", "the noun it describes", "the _man_ who *sleeps*", "who which that"
        ),
        "advcl": _relation_gloss(
            "adverbial clause", "the main verb", "we _left_ when it *rained*", "when because if although"
        ),
        "advcl:relcl": _relation_gloss(
            "relative clause about a clause", "that clause", "he _won_, which *surprised* us", "which"
        ),
        "advmod": _relation_gloss("adverb", "the word it modifies", "she _runs_ *fast*", "modifier adverbial manner"),
        "amod": _relation_gloss("adjective", "its noun", "a *red* _house_", "modifier adjectival"),
        "appos": _relation_gloss("apposition", "the noun it renames", "_Sam_, my *brother*", "appositive renaming"),
        "aux": _relation_gloss("auxiliary", "its verb", "she *has* _left_", "helping verb has will can modal"),
        "aux:pass": _relation_gloss("passive auxiliary", "its verb", "it *was* _built_", "was been passive"),
        "case": _relation_gloss(
            "preposition", "its noun", "they live *in* the _house_", "adposition postposition of with"
        ),
        "cc": _relation_gloss("conjunction", "the word it introduces", "tea *and* _milk_", "coordinating and or but"),
        "cc:preconj": _relation_gloss(
            "first half of a double conjunction",
            "the first joined word",
            "*both* _tea_ and milk",
            "both either neither",
        ),
        "ccomp": _relation_gloss(
            "clause as object", "its verb", "she _says_ he *left*", "that complement clausal reported"
        ),
        "clf": _relation_gloss("classifier", "its noun or number", "three *sheets* of _paper_", "counter measure word"),
        "compound": _relation_gloss("first noun of a compound", "its last noun", "*phone* _book_", "noun compounds"),
        "compound:prt": _relation_gloss("verb particle", "its verb", "_shut_ *down*", "phrasal verbs up off"),
        "conj": _relation_gloss(
            "joined word", "the first of the list", "_tea_ and *milk*", "conjunct coordination coordinated and"
        ),
        "cop": _relation_gloss("form of “be”", "its predicate", "she *is* _happy_", "copula linking verb be am are"),
        "csubj": _relation_gloss("clause as subject", "its verb", "what she *said* _matters_", "clausal subject"),
        "csubj:outer": _relation_gloss(
            "clause as subject of a clause", "that clause", "to *wait* is what _helps_", "outer"
        ),
        "csubj:pass": _relation_gloss("clause as passive subject", "its verb", "that he *left* was _known_", "passive"),
        "dep": _relation_gloss(
            "unclear link", "its head", "a link that the annotators could not name", "unspecified other"
        ),
        "det": _relation_gloss("determiner", "its noun", "*the* _dog_", "article the a this every"),
        "det:predet": _relation_gloss(
            "word before the article", "its noun", "*all* the _dogs_", "predeterminer all both such"
        ),
        "discourse": _relation_gloss("interjection", "the clause", "*well*, I _think_ so", "oh yes please discourse"),
        "dislocated": _relation_gloss(
            "phrase moved to the edge", "its verb", "this *film*, I _like_ it", "topic dislocation"
        ),
        "expl": _relation_gloss(
            "empty “it” or “there”", "its verb", "*there* _is_ a way", "expletive dummy there pleonastic"
        ),
        "fixed": _relation_gloss(
            "rest of a fixed phrase", "its first word", "_because_ *of*", "idiom multiword expression"
        ),
        "flat": _relation_gloss("rest of a name", "its first word", "_New_ *York*", "names title dates"),
        "goeswith": _relation_gloss("second half of a split word", "its first half", "_with_ *out*", "typo spelling"),
        "iobj": _relation_gloss("indirect object", "its verb", "she _gave_ *me* a book", "recipient dative"),
        "list": _relation_gloss(
            "later item of a list", "the first item", "_name_, *address*, phone", "enumeration items"
        ),
        "mark": _relation_gloss(
            "word that opens a clause",
            "the clause's verb",
            "*because* it _rained_",
            "marker subordinating subordinator that to if whether",
        ),
        "nmod": _relation_gloss(
            "noun with a preposition",
            "the noun it modifies",
            "the _king_ of *France*",
            "nominal modifier of prepositional phrase",
        ),
        "nmod:desc": _relation_gloss("descriptive noun", "the name it goes with", "*Professor* _Smith_", "title"),
        "nmod:poss": _relation_gloss(
            "possessor", "what is possessed", "*her* _book_", "possessive genitive my his their whose"
        ),
        "nmod:unmarked": _relation_gloss("noun without a preposition", "the noun it modifies", "_page_ *5*", "bare"),
        "nsubj": _relation_gloss("subject", "its verb", "the *dog* _barks_", "subjects nominal who does agent"),
        "nsubj:outer": _relation_gloss(
            "subject of a whole clause", "that clause", "the *problem* is that it _rains_", "outer"
        ),
        "nsubj:pass": _relation_gloss("passive subject", "its verb", "the *house* was _built_", "passive"),
        "nummod": _relation_gloss("number", "its noun", "*three* _dogs_", "numeral numeric count"),
        "obj": _relation_gloss("object", "its verb", "she _reads_ *books*", "direct objects accusative"),
        "obl": _relation_gloss(
            "phrase with a preposition",
            "its verb",
            "she _sat_ on the *chair*",
            "oblique prepositional adverbial where when place time",
        ),
        "obl:agent": _relation_gloss("doer in the passive", "its verb", "_built_ by the *city*", "agent by passive"),
        "obl:unmarked": _relation_gloss(
            "time or measure without a preposition", "its verb", "we _left_ *yesterday*", "oblique time measure"
        ),
        "orphan": _relation_gloss(
            "word left by an omitted verb", "the word that stands in", "I drink tea, _you_ *milk*", "ellipsis gapping"
        ),
        "parataxis": _relation_gloss(
            "clause set beside another",
            "the main clause",
            "let’s _go_, it’s *late*",
            "side by side insertion aside said",
        ),
        "punct": _relation_gloss(
            "punctuation", "its clause or phrase", "she _left_ *.*", "comma commas period stop quote"
        ),
        "reparandum": _relation_gloss(
            "slip of the tongue", "its correction", "go to the *left* _right_", "disfluency repair"
        ),
        "root": _relation_gloss("main word", "the sentence", "the dog *barks*", "root predicate"),
        "vocative": _relation_gloss("person spoken to", "the clause", "*Sam*, _come_ here", "address"),
        "xcomp": _relation_gloss(
            "verb without a subject of its own",
            "the verb above it",
            "she _wants_ to *leave*",
            "open complement infinitive to",
        ),
    }
)
# Other roles than relations; the keys are their details in a profile.
PATTERNS = MappingProxyType(
    {
        "third_person": _make_gloss(
            "pronoun",
            "pronoun → what it refers to",
            "_Anna_ called because *she* was late",
            "pronouns coreference antecedent anaphor it he she they refer refers",
        ),
        "previous": _make_gloss(
            "previous token", "token → the one before", "_the_ *dog*", "before word left position last"
        ),
        "next": _make_gloss(
            "next token", "token → the one after", "*the* _dog_ barks", "after following word right position"
        ),
        "same": _make_gloss("same token", "token → itself", "*dog*", "itself self word position diagonal"),
        "cls": _make_gloss("[CLS]", "any token → [CLS]", "_[CLS]_ the *dog*", "start first delimiter special"),
        "sep": _make_gloss("[SEP]", "any token → [SEP]", "the *dog* _[SEP]_", "end delimiter special"),
        "both": _make_gloss(
            "both special tokens",
            "any token → [CLS] or [SEP]",
            "_[CLS]_ the *dog* [SEP]",
            "delimiter special cls sep together start end",
        ),
        "punctuation": _make_gloss(
            "punctuation marks",
            "any token → commas and full stops",
            "the *dog* barks _._",
            "comma commas full stop period delimiter dot",
        ),
        "entropy": _make_gloss(
            "broad", "any token → many tokens", "", "everywhere evenly average uniform entropy wide"
        ),
    }
)
# Roles on repeated random tokens (analysis/repeats.py). They are not in profiles and cannot be searched for.
REPEATED = MappingProxyType(
    {
        "induction": _make_gloss("induction", "token → what followed it last time", "", ""),
        "duplicate": _make_gloss("duplicate token", "token → its first occurrence", "", ""),
        "sink": _make_gloss("first token", "any token → the first token", "", ""),
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
AGREEMENT = "agreement"  # the simple rule that coreference roles are compared with
# Words without meaning for a search.
_STOP_WORDS = re.compile(
    r"\b(a|an|the|heads?|that|for|of|to|at|in|on|its|their|is|are|do|does|find|me|looks?|looking|attends?|attending|links?"
    r"|linking|between|from|with|and|tokens?|words?|one|what|s)\b"
)


def find_gloss(detail: str) -> Gloss | None:
    """Return the gloss of a relation or of another role's detail ("sep").

    A relation is given as "nsubj", "nmod:poss" or "nsubj dep_to_head". A subtype without its own gloss has the gloss of
    its relation. The result is None for relations that do not occur in the bundled treebanks.
    """
    name = detail.partition(" ")[0]
    return PATTERNS.get(name) or REPEATED.get(name) or RELATIONS.get(name) or RELATIONS.get(name.partition(":")[0])


def label_relation(relation: str) -> str:
    """Return "subject (nsubj)"; the relation alone if it has no gloss."""
    gloss = find_gloss(relation)
    return f"{gloss.name} ({relation})" if gloss else relation


def describe_link(detail: str) -> str:
    """Describe how a head attends.

    "subject → its verb" for "nsubj dep_to_head", "its verb → subject" for "nsubj head_row", "subject ← its verb, more
    than any other word" for "nsubj head_to_dep". Relations without a gloss are between a dependent and its head; other
    roles without a gloss give "".
    """
    gloss, direction = find_gloss(detail), detail.partition(" ")[2]
    forward = gloss.link if gloss else "dependent → its head" if direction else ""
    first, _, second = forward.partition(" → ")
    by_direction = {"head_row": f"{second} → {first}", "head_to_dep": f"{first} ← {second}, more than any other word"}
    return by_direction.get(direction, forward)


def label_link(detail: str) -> str:
    """Return "its verb → subject (nsubj)" for "nsubj head_row"."""
    return f"{describe_link(detail)} ({detail.partition(' ')[0]})"


def explain_relation(detail: str) -> str:
    """Return "subject → its verb, as “dog” → “barks” in “the dog barks”", in the direction in which a head attends.

    A relation without a direction has "and" instead of the arrow. The result is "" if there is no gloss.
    """
    gloss = find_gloss(detail)
    if gloss is None:
        return ""
    name, _, direction = detail.partition(" ")
    arrow = {"dep_to_head": " → ", "head_row": " → ", "head_to_dep": " ← "}.get(direction, " and ")
    arrow = " → " if name in PATTERNS else arrow
    description = describe_link(detail) if arrow != " and " else gloss.link.replace(" → ", arrow)
    marked_words = re.findall(r"\*([^*]+)\*", gloss.example) + re.findall(r"_([^_]+)_", gloss.example)
    if not marked_words:
        return description
    words = arrow.join(f"“{word}”" for word in (marked_words[::-1] if direction == "head_row" else marked_words))
    return f"{description}, as {words} in “{re.sub('[*_]', '', gloss.example)}”"


def describe_rule(rule: str) -> str:
    """Return a simple rule with its parts of speech in words.

    "nearest noun or name to the right" for "nearest NOUN or PROPN to the right"; "rule of agreement" for "agreement".
    """
    rule_name = re.sub(r"[^ ,]+", lambda word: PARTS_OF_SPEECH.get(word[0], word[0]), rule)
    return f"rule of {rule_name}" if rule == AGREEMENT else rule_name


_PLAIN_RULES = MappingProxyType(
    {
        "everywhere": "evenly",
        "its head": "the word it depends on",
        "its dependents": "the words that depend on it",
        "its siblings": "the words that depend on the same word",
        "its antecedent": "what it refers to",
        "its other mentions": "the same person or thing elsewhere",
    }
)


def simplify_rule(rule: str) -> str:
    """Return a rule of a recipe for readers who know no labels.

    "its subject" for "its nsubj", "the word it depends on as subject" for "its head, as nsubj".
    """
    prefix, _, relation = rule.rpartition(" ")
    gloss = RELATIONS.get(relation)
    if gloss is None or prefix not in ("its", "its head, as"):
        return _PLAIN_RULES.get(rule, rule)
    return f"its {gloss.name}" if prefix == "its" else f"the word it depends on as {gloss.name}"


RULE_WORDS = MappingProxyType(  # further words that a person may search for
    {
        "the same token": "word itself self diagonal",
        "the token before": "previous word preceding last one back",
        "the token after": "next word following one ahead",
        "[CLS]": "special sink first",
        "[SEP]": "special separator sink last",
        "punctuation": "mark marks comma stop",
        "commas": "punctuation mark marks",
        "the last full stop": "period end of sentence punctuation",
        "the first word": "beginning of sentence",
        "the rest of its own word": "pieces piece subword",
        "the same form elsewhere": "word token repeated again twice identical",
        "everywhere": "even evenly broad uniform all",
        "what followed this token last time": "induction word next after",
        "its head": "syntax tree parent governor",
        "its dependents": "syntax tree children dependent",
        "its siblings": "syntax tree sibling",
        "its antecedent": "pronoun coreference refers",
        "its other mentions": "coreference same mention",
    }
)


def find_roles(typed: str) -> tuple[str, ...]:
    """Return the relations and details that match the typed words, best first.

    Examples of typed words are "subject", "looks at commas" and "word before".

    A complete name ("nsubj", "object") comes first. Others must share the most words with the typed text; among them,
    roles whose whole name was typed come first, then those that share the most stop words. The result is empty if
    nothing matches. If no word is known, the last one may be the beginning of a word: "prep".
    """
    all_words, words = (re.findall(r"[\w:]+", text) for text in (typed.lower(), _STOP_WORDS.sub(" ", typed.lower())))
    phrase = " ".join(words)
    candidates, completions = [], set[str]()
    for order, (detail, gloss) in enumerate((*PATTERNS.items(), *RELATIONS.items())):
        name = re.findall(r"\w+", gloss.name.lower())
        names = {detail, " ".join(name)}
        terms = {detail, *name, *gloss.words, *detail.split(":")}
        hits = _count_hits(words, terms)
        completions |= {term for term in terms if words and len(words[-1]) > 2 and term.startswith(words[-1])}
        if hits:
            is_exact = phrase in names or phrase.rstrip("s") in names
            is_named = _count_hits(words, name) >= len(name)
            candidates.append((not is_exact, -hits, not is_named, -_count_hits(all_words, gloss.words), order, detail))
    if completions and not candidates:
        return find_roles(" ".join((*words[:-1], min(completions, key=lambda term: (len(term), term)))))
    best_key = min((entry[1] for entry in candidates), default=0)
    return tuple(entry[-1] for entry in sorted(candidates) if not entry[0] or entry[1] == best_key)


def find_rules(typed: str, rules: Iterable[str]) -> tuple[str, ...]:
    """Return the rules of recipes, by name, that match all typed words but stop words.

    Examples of typed words are "looks at full stops" and "same word".
    """
    words = re.findall(r"[\w:]+", _STOP_WORDS.sub(" ", typed.lower()))
    matches = [rule for rule in rules if words and _count_hits(words, _rule_terms(rule)) == len(words)]
    return tuple(sorted(matches, key=lambda rule: len(re.findall(r"\w+", rule.lower()))))


def _rule_terms(rule: str) -> set[str]:
    return {*re.findall(r"\w+", rule.lower()), *RULE_WORDS.get(rule, "").split()}


def _count_hits(words: Iterable[str], terms: Collection[str]) -> int:
    """Return how many of the words are among the terms."""
    return sum(any(_is_match(word, term) for term in terms) for word in words)


def _is_match(word: str, term: str) -> bool:
    """Return whether two words are equal but for a plural s."""
    return word == term or (len(term) > 2 and word == f"{term}s")
