"""Rules that heads may follow: each says, for every token of a text, which tokens are looked at.

``RULES`` has a row for each: its name in words, its kind, the annotation that it needs, and the function that marks its
targets. :func:`matrices` spreads them evenly over the targets of each token; :func:`prediction` mixes them by shares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.corpus.treebank import Sentence
from mha_viz.text import WordPieces, is_punctuation

Marks = npt.NDArray[np.bool_]  # [query, key]: the targets of each token; or of words, or [token]
Places = npt.NDArray[np.intp]
Numbers = npt.NDArray[np.float64]

FURTHEST = 3  # tokens that a rule of position looks back or ahead
NEARBY = (2, 5)  # tokens on either side that a rule of position takes together
ANY = 1 << 30
CLS, SEP, PUNCTUATION, FUNCTION, CONTENT = CLASSES = ("[CLS]", "[SEP]", "punctuation", "function", "content")
CONTENT_TAGS = frozenset({"NOUN", "PROPN", "VERB", "ADJ", "ADV", "NUM", "INTJ"})
FUNCTION_TAGS = frozenset({"ADP", "AUX", "CCONJ", "DET", "PART", "PRON", "SCONJ"})
STOPS = frozenset(".!?…。！？")
EVERYWHERE = "everywhere"
FLOOR = 1e-9  # the least share of "everywhere" during a fit, so that nothing is impossible
NO_ANNOTATION, TAGS, TREES, CHAINS = NEEDS = ("", "parts of speech", "trees", "chains")
TAG_NAMES = {
    "ADJ": "adjectives",
    "ADP": "prepositions",
    "ADV": "adverbs",
    "AUX": "auxiliaries",
    "CCONJ": "coordinating conjunctions",
    "DET": "determiners",
    "INTJ": "interjections",
    "NOUN": "nouns",
    "NUM": "numerals",
    "PART": "particles",
    "PRON": "pronouns",
    "PROPN": "proper nouns",
    "SCONJ": "subordinating conjunctions",
    "SYM": "symbols",
    "VERB": "verbs",
    "X": "other words",
}
RELATIONS = (  # of Universal Dependencies, without subtypes
    *("acl", "advcl", "advmod", "amod", "appos", "aux", "case", "cc", "ccomp", "clf", "compound"),
    *("conj", "cop", "csubj", "dep", "det", "discourse", "dislocated", "expl", "fixed", "flat"),
    *("goeswith", "iobj", "list", "mark", "nmod", "nsubj", "nummod", "obj", "obl", "orphan"),
    *("parataxis", "punct", "reparandum", "vocative", "xcomp"),
)


@dataclass(frozen=True)
class RuleText:
    """A sentence as rules see it: its words with what is annotated, and the pieces of the model. ``causal``: tokens see
    none after them."""

    sentence: Sentence
    pieces: WordPieces
    causal: bool = False

    def __len__(self) -> int:
        return len(self.pieces.ids)

    @cached_property
    def word(self) -> Places:
        """[token]: the number of its word, −1 for special tokens."""
        return np.array([-1 if word is None else word for word in self.pieces.words], np.intp)

    @cached_property
    def ordinary(self) -> Marks:
        """[token]: False for special tokens."""
        return self.word >= 0

    @cached_property
    def forms(self) -> tuple[str, ...]:
        """The words without differences of case."""
        return tuple(form.casefold() for form in self.pieces.forms)

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """The part of speech of each word; empty where it is not annotated."""
        return tuple(word.upos.strip("_") for word in self.sentence.words)

    @cached_property
    def far(self) -> Places:
        """[query, key]: how many tokens after the query the key is."""
        places = np.arange(len(self))
        return places - places[:, None]

    @cached_property
    def nothing(self) -> Marks:
        """[query, key]: no token looks at any."""
        return np.zeros((len(self), len(self)), bool)

    @cached_property
    def visible(self) -> Marks:
        """[query, key]: which tokens each one may look at."""
        everything = np.ones((len(self), len(self)), bool)
        return np.tril(everything) if self.causal else everything

    @cached_property
    def classes(self) -> Places:
        """[token]: the place of its class in CLASSES. The first of the special tokens at the beginning is [CLS], any
        other is [SEP]. A word is punctuation by its form, a function word by its part of speech, and content if neither
        is known."""
        kinds = [self._class(number) for number in range(len(self.forms))]
        return np.array(
            [
                kinds[word] if word >= 0 else CLASSES.index(CLS if place == 0 else SEP)
                for place, word in enumerate(self.word)
            ],
            np.intp,
        )

    def _class(self, number: int) -> int:
        if is_punctuation(self.forms[number]):
            return CLASSES.index(PUNCTUATION)
        return CLASSES.index(FUNCTION if self.tags[number] in FUNCTION_TAGS else CONTENT)

    @cached_property
    def heads(self) -> Places:
        """[word]: its head in the tree, −1 for the root and for words without one."""
        return np.array([-1 if word.head is None else word.head for word in self.sentence.words], np.intp)

    @cached_property
    def relations(self) -> tuple[str, ...]:
        """The relation of each word to its head, without subtype."""
        return tuple(word.base for word in self.sentence.words)

    @cached_property
    def below(self) -> Marks:
        """[word, word]: whether the second is the head of the first."""
        below: Marks = self.heads[:, None] == np.arange(len(self.heads))
        return below

    def of_words(self, marks: Marks) -> Marks:
        """[query, key] of tokens from [word, word]: every piece of a word looks at all pieces of its targets."""
        if not marks.any():
            return self.nothing
        among = self.ordinary[:, None] & self.ordinary
        spread: Marks = marks[self.word[:, None], self.word] & among
        return spread

    def at_words(self, chosen: Sequence[int]) -> Marks:
        """[query, key]: every token looks at the chosen words, given by their numbers."""
        marked = np.zeros(len(self.forms) + 1, bool)  # the last is for special tokens, whose word is −1
        marked[[*chosen]] = True
        return np.broadcast_to(marked[self.word], (len(self), len(self)))

    @cached_property
    def tagged(self) -> Mapping[str, Sequence[int]]:
        """For each part of speech the numbers of its words."""
        places: dict[str, list[int]] = {}
        for number, tag in enumerate(self.tags):
            places.setdefault(tag, []).append(number)
        return places


Targets = Callable[[RuleText], Marks]


class AttentionRule(NamedTuple):
    """A rule: its name in words; its kind; what has to be annotated, one of NEEDS; and the tokens that it looks at,
    [query, key], of which those that are not visible are dropped."""

    name: str
    kind: str
    needs: str
    targets: Targets


def _offset(by: int) -> AttentionRule:
    far = abs(by)
    side = "before" if by < 0 else "after"
    name = "the same token" if not by else f"the token {side}" if far == 1 else f"{far} tokens {side}"
    return AttentionRule(name, "position", NO_ANNOTATION, lambda text: np.eye(len(text), k=by, dtype=bool))


def _within(name: str, first: int, last: int) -> AttentionRule:
    """The ordinary tokens from one distance to another, without the token itself."""

    def targets(text: RuleText) -> Marks:
        far = text.far
        marks: Marks = (far >= first) & (far <= last) & (far != 0) & text.ordinary
        return marks

    return AttentionRule(name, "position", NO_ANNOTATION, targets)


def _same(values: Sequence[str]) -> Marks:
    """[word, word]: other words with the same value; an empty one is like no other."""
    each = np.array(values, object)
    marks: Marks = (each[:, None] == each) & (each != "") & ~np.eye(len(each), dtype=bool)
    return marks


def _special(place: int) -> Targets:
    """The special token at the beginning, or those at other places."""

    def targets(text: RuleText) -> Marks:
        return np.broadcast_to(text.classes == place, (len(text), len(text)))

    return targets


def _last_stop(text: RuleText) -> Marks:
    stops = [number for number, form in enumerate(text.forms) if form and not set(form) - STOPS]
    return text.at_words(stops[-1:])


def _followed(text: RuleText) -> Marks:
    """For each token, the one after its last earlier occurrence."""
    marks = np.zeros((len(text), len(text)), bool)
    last: dict[int, int] = {}
    for place, piece in enumerate(text.pieces.ids):
        if piece in last:
            marks[place, last[piece] + 1] = True
        last[piece] = place
    return marks if text.causal else np.zeros_like(marks)


def _of_form(name: str, holds: Callable[[str], bool]) -> AttentionRule:
    def targets(text: RuleText) -> Marks:
        return text.at_words([number for number, form in enumerate(text.forms) if holds(form)])

    return AttentionRule(name, "form", NO_ANNOTATION, targets)


def _of_tags(name: str, tags: frozenset[str]) -> AttentionRule:
    def targets(text: RuleText) -> Marks:
        return text.at_words([number for tag in tags for number in text.tagged.get(tag, ())])

    return AttentionRule(name, "part of speech", TAGS, targets)


def _nearest(what: str, tags: frozenset[str], side: str) -> AttentionRule:
    def targets(text: RuleText) -> Marks:
        places = np.flatnonzero([tag in tags for tag in text.tags])
        words = np.arange(len(text.tags))
        number = np.searchsorted(places, words) - 1 if side == "before" else np.searchsorted(places, words, "right")
        exists = (number >= 0) & (number < len(places))
        marks = np.zeros((len(words), len(words)), bool)
        marks[words[exists], places[number[exists]]] = True
        return text.of_words(marks)

    return AttentionRule(f"the nearest {what} {side}", "part of speech", TAGS, targets)


def _siblings(text: RuleText) -> Marks:
    marks = (text.heads[:, None] == text.heads) & (text.heads >= 0)[:, None] & ~np.eye(len(text.heads), dtype=bool)
    return text.of_words(marks)


def _by_relation(relation: str) -> tuple[AttentionRule, AttentionRule]:
    def targets(text: RuleText, turned: bool) -> Marks:
        """From a dependent of this relation to its head, or the other way."""
        if relation not in text.relations:
            return text.nothing
        named = text.below & np.array([word == relation for word in text.relations], bool)[:, None]  # [word, word]
        return text.of_words(named.T if turned else named)

    return (
        AttentionRule(f"its head, as {relation}", "syntax", TREES, partial(targets, turned=False)),
        AttentionRule(f"its {relation}", "syntax", TREES, partial(targets, turned=True)),
    )


def _mentions(text: RuleText) -> Marks:
    """[word, word]: the head words of mentions of one chain."""
    marks = np.zeros((len(text.forms), len(text.forms)), bool)
    chains: dict[str, list[int]] = {}
    for mention in text.sentence.mentions:
        chains.setdefault(mention.chain, []).append(mention.word)
    for words in chains.values():
        marks[np.ix_(words, words)] = True
    return marks & ~np.eye(len(marks), dtype=bool)


def _antecedent(text: RuleText) -> Marks:
    before = np.tril(_mentions(text))
    nearest = np.zeros_like(before)
    for word in np.flatnonzero(before.any(axis=1)):
        nearest[word, np.flatnonzero(before[word])[-1]] = True
    return text.of_words(nearest)


VERBS, NOUNS = frozenset({"VERB"}), frozenset({"NOUN", "PROPN"})
NEAR = (("noun", NOUNS), ("verb", VERBS), ("content word", CONTENT_TAGS))

RULES: tuple[AttentionRule, ...] = (
    *(_offset(by) for by in sorted(range(-FURTHEST, FURTHEST + 1), key=lambda by: (abs(by), by))),
    *(_within(f"the {far} tokens on either side", -far, far) for far in NEARBY),
    _within(f"the {NEARBY[1]} tokens before", -NEARBY[1], -1),
    _within(f"the {NEARBY[1]} tokens after", 1, NEARBY[1]),
    _within("all tokens before", -ANY, -1),
    _within("all tokens after", 1, ANY),
    AttentionRule("[CLS]", "special", NO_ANNOTATION, _special(CLASSES.index(CLS))),
    AttentionRule("[SEP]", "special", NO_ANNOTATION, _special(CLASSES.index(SEP))),
    _of_form("punctuation", is_punctuation),
    _of_form("commas", lambda form: form in (",", "，", "、")),
    AttentionRule("the last full stop", "form", NO_ANNOTATION, _last_stop),
    AttentionRule("the first word", "position", NO_ANNOTATION, lambda text: text.at_words(range(len(text.forms))[:1])),
    AttentionRule(
        "the rest of its own word",
        "form",
        NO_ANNOTATION,
        lambda text: text.of_words(np.eye(len(text.forms), dtype=bool)) & ~np.eye(len(text), dtype=bool),
    ),
    AttentionRule("the same form elsewhere", "form", NO_ANNOTATION, lambda text: text.of_words(_same(text.forms))),
    AttentionRule(
        "all words", "even", NO_ANNOTATION, lambda text: np.broadcast_to(text.ordinary, (len(text), len(text)))
    ),
    AttentionRule(EVERYWHERE, "even", NO_ANNOTATION, lambda text: np.ones((len(text), len(text)), bool)),
    AttentionRule("what followed this token last time", "form", NO_ANNOTATION, _followed),
    *(_of_tags(name, frozenset({tag})) for tag, name in TAG_NAMES.items()),
    _of_tags("content words", CONTENT_TAGS),
    _of_tags("function words", FUNCTION_TAGS),
    *(_nearest(what, tags, side) for what, tags in NEAR for side in ("before", "after")),
    AttentionRule("the same part of speech", "part of speech", TAGS, lambda text: text.of_words(_same(text.tags))),
    AttentionRule("its head", "syntax", TREES, lambda text: text.of_words(text.below)),
    AttentionRule("its dependents", "syntax", TREES, lambda text: text.of_words(text.below.T)),
    AttentionRule("its siblings", "syntax", TREES, _siblings),
    *(rule for relation in RELATIONS for rule in _by_relation(relation)),
    AttentionRule("its antecedent", "coreference", CHAINS, _antecedent),
    AttentionRule("its other mentions", "coreference", CHAINS, lambda text: text.of_words(_mentions(text))),
)
NAMES = tuple(rule.name for rule in RULES)
EVEN = NAMES.index(EVERYWHERE)


def marked(rule: AttentionRule, text: RuleText) -> Marks:
    """[query, key]: the visible targets of each token."""
    return rule.targets(text) & text.visible


def matrix(rule: AttentionRule, text: RuleText) -> Numbers:
    """R[query, key]: the visible targets of each token, with equal shares that sum to 1; a row of zeros where the rule
    does not apply."""
    marks = marked(rule, text)
    counts = marks.sum(axis=1, keepdims=True)
    shares: Numbers = marks / np.maximum(counts, 1)
    return shares


def matrices(text: RuleText, numbers: Iterable[int] = range(len(RULES))) -> Numbers:
    """[rule, query, key]: :func:`matrix` of the rules with these numbers in RULES."""
    marks = np.stack([RULES[number].targets(text) for number in numbers]) & text.visible
    counts = marks.sum(axis=2, keepdims=True)
    shares: Numbers = marks / np.maximum(counts, 1)
    return shares


def prediction(shares: Numbers, text: RuleText) -> Numbers:
    """P [head, query, key] for a text from shares [class, head, rule]; 0 where a key is not visible."""
    return next(predictions([shares], text))


def predictions(several: Sequence[Numbers], text: RuleText) -> Iterator[Numbers]:
    """:func:`prediction` from each of several shares; a rule is applied to the text once for all of them."""
    used = [np.union1d(np.flatnonzero(shares.any(axis=(0, 1))), EVEN) for shares in several]
    numbers = np.unique(np.concatenate(used))
    rules = matrices(text, numbers)  # [rule, query, key]
    even = rules[numbers == EVEN][0]
    for shares, some in zip(several, used, strict=True):
        applied, of_applied = rules[np.searchsorted(numbers, some)], shares[:, :, some]
        applies = applied.any(axis=2).astype(float)  # [rule, query]
        result = np.empty((shares.shape[1], *even.shape))
        for number in np.unique(text.classes):
            at = np.flatnonzero(text.classes == number)
            total = of_applied[number] @ applies[:, at]  # [head, query]
            cells = np.tensordot(of_applied[number], applied[:, at], axes=1)
            result[:, at] = np.where(total[..., None] > 0, cells / np.maximum(total, FLOOR)[..., None], even[at])
        yield result
