"""Rules that heads may follow. A rule gives the tokens that each token of a text attends to, its targets.

``RULES`` has a row for each rule: its name in words, its kind, the annotation that it needs, and the function that
marks its targets. :func:`make_matrices` distributes attention evenly over the targets of each token; :func:`predict`
mixes rules by shares.
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

Marks = npt.NDArray[np.bool_]  # [query, key], the targets of each token; also [word, word] or [token]
Places = npt.NDArray[np.intp]
Numbers = npt.NDArray[np.float64]

MAX_OFFSET = 3  # greatest distance in tokens of a rule for one position
WINDOW_WIDTHS = (2, 5)  # widths in tokens of rules for all positions on either side
ANY_DISTANCE = 1 << 30
CLS, SEP, PUNCTUATION, FUNCTION, CONTENT = CLASSES = ("[CLS]", "[SEP]", "punctuation", "function", "content")
CONTENT_TAGS = frozenset({"NOUN", "PROPN", "VERB", "ADJ", "ADV", "NUM", "INTJ"})
FUNCTION_TAGS = frozenset({"ADP", "AUX", "CCONJ", "DET", "PART", "PRON", "SCONJ"})
FULL_STOPS = frozenset(".!?…。！？")
EVERYWHERE = "everywhere"
FLOOR = 1e-9  # least share of "everywhere" during a fit, so that no key has probability 0
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
RELATIONS = (  # relations of Universal Dependencies, without subtypes
    *("acl", "advcl", "advmod", "amod", "appos", "aux", "case", "cc", "ccomp", "clf", "compound"),
    *("conj", "cop", "csubj", "dep", "det", "discourse", "dislocated", "expl", "fixed", "flat"),
    *("goeswith", "iobj", "list", "mark", "nmod", "nsubj", "nummod", "obj", "obl", "orphan"),
    *("parataxis", "punct", "reparandum", "vocative", "xcomp"),
)


@dataclass(frozen=True)
class RuleText:
    """A sentence as rules see it: its annotated words, and the tokens of the model.

    If ``causal``, tokens do not see later tokens.
    """

    sentence: Sentence
    pieces: WordPieces
    causal: bool = False

    def __len__(self) -> int:
        return len(self.pieces.ids)

    @cached_property
    def word_numbers(self) -> Places:
        """[token]: the number of its word, −1 for special tokens."""
        return np.array([-1 if word is None else word for word in self.pieces.words], np.intp)

    @cached_property
    def is_ordinary(self) -> Marks:
        """[token]: False for special tokens."""
        return self.word_numbers >= 0

    @cached_property
    def forms(self) -> tuple[str, ...]:
        """The case-folded form of each word."""
        return tuple(form.casefold() for form in self.pieces.forms)

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """The part of speech of each word; empty if it is not annotated."""
        return tuple(word.upos.strip("_") for word in self.sentence.words)

    @cached_property
    def offsets(self) -> Places:
        """[query, key]: the distance from query to key in tokens; negative if the key comes first."""
        places = np.arange(len(self))
        return places - places[:, None]

    @cached_property
    def no_targets(self) -> Marks:
        """[query, key]: all False, for a rule without targets."""
        return np.zeros((len(self), len(self)), bool)

    @cached_property
    def is_visible(self) -> Marks:
        """[query, key]: whether the query may attend to the key."""
        all_pairs = np.ones((len(self), len(self)), bool)
        return np.tril(all_pairs) if self.causal else all_pairs

    @cached_property
    def classes(self) -> Places:
        """[token]: the index of its class in CLASSES.

        A special token at the beginning of the text is [CLS], any other is [SEP]. A word is punctuation by its form, a
        function word by its part of speech, and otherwise content.
        """
        word_classes = [self._find_class(number) for number in range(len(self.forms))]
        return np.array(
            [
                word_classes[word] if word >= 0 else CLASSES.index(CLS if place == 0 else SEP)
                for place, word in enumerate(self.word_numbers)
            ],
            np.intp,
        )

    def _find_class(self, number: int) -> int:
        """Return the index in CLASSES of a word."""
        if is_punctuation(self.forms[number]):
            return CLASSES.index(PUNCTUATION)
        return CLASSES.index(FUNCTION if self.tags[number] in FUNCTION_TAGS else CONTENT)

    @cached_property
    def heads(self) -> Places:
        """[word]: its head in the tree, −1 for the root and for words without a head."""
        return np.array([-1 if word.head is None else word.head for word in self.sentence.words], np.intp)

    @cached_property
    def relations(self) -> tuple[str, ...]:
        """The relation of each word to its head, without its subtype."""
        return tuple(word.base for word in self.sentence.words)

    @cached_property
    def head_marks(self) -> Marks:
        """[word, word]: whether the second is the head of the first."""
        head_marks: Marks = self.heads[:, None] == np.arange(len(self.heads))
        return head_marks

    def expand_words(self, marks: Marks) -> Marks:
        """Expand [word, word] to [query, key] of tokens: every token of a word attends to all tokens of its targets."""
        if not marks.any():
            return self.no_targets
        are_words = self.is_ordinary[:, None] & self.is_ordinary
        expanded: Marks = marks[self.word_numbers[:, None], self.word_numbers] & are_words
        return expanded

    def mark_words(self, numbers: Sequence[int]) -> Marks:
        """Return [query, key], where every token attends to the words with these numbers."""
        is_chosen = np.zeros(len(self.forms) + 1, bool)  # the last entry is for special tokens, whose word is −1
        is_chosen[[*numbers]] = True
        return np.broadcast_to(is_chosen[self.word_numbers], (len(self), len(self)))

    @cached_property
    def words_by_tag(self) -> Mapping[str, Sequence[int]]:
        """The numbers of the words with each part of speech."""
        numbers: dict[str, list[int]] = {}
        for number, tag in enumerate(self.tags):
            numbers.setdefault(tag, []).append(number)
        return numbers


MarkTargets = Callable[[RuleText], Marks]


class AttentionRule(NamedTuple):
    """A rule that a head may follow.

    Attributes:
        name: its name in words.
        kind: its kind.
        needs: the annotation that it needs, one of NEEDS.
        mark: marks the targets of each token, [query, key]; :func:`mark_visible` drops those that are not visible.
    """

    name: str
    kind: str
    needs: str
    mark: MarkTargets


def _make_offset_rule(offset: int) -> AttentionRule:
    """Return the rule for the token at one offset."""
    distance = abs(offset)
    side = "before" if offset < 0 else "after"
    name = "the same token" if not offset else f"the token {side}" if distance == 1 else f"{distance} tokens {side}"
    return AttentionRule(name, "position", NO_ANNOTATION, lambda text: np.eye(len(text), k=offset, dtype=bool))


def _make_range_rule(name: str, first: int, last: int) -> AttentionRule:
    """Return a rule for the ordinary tokens in a range of offsets, without the token itself."""

    def mark(text: RuleText) -> Marks:
        offsets = text.offsets
        marks: Marks = (offsets >= first) & (offsets <= last) & (offsets != 0) & text.is_ordinary
        return marks

    return AttentionRule(name, "position", NO_ANNOTATION, mark)


def _mark_equal(values: Sequence[str]) -> Marks:
    """Return [word, word], True for other words with the same value. An empty value equals no other."""
    array = np.array(values, object)
    marks: Marks = (array[:, None] == array) & (array != "") & ~np.eye(len(array), dtype=bool)
    return marks


def _make_special_targets(token_class: int) -> MarkTargets:
    """Return a function that marks the special tokens of a class: the one at the beginning, or all others."""

    def mark(text: RuleText) -> Marks:
        return np.broadcast_to(text.classes == token_class, (len(text), len(text)))

    return mark


def _mark_last_stop(text: RuleText) -> Marks:
    """Mark the last full stop of the text."""
    stops = [number for number, form in enumerate(text.forms) if form and not set(form) - FULL_STOPS]
    return text.mark_words(stops[-1:])


def _mark_induction_targets(text: RuleText) -> Marks:
    """Mark, for each token, the token after its last earlier occurrence; nothing unless the text is causal."""
    marks = np.zeros((len(text), len(text)), bool)
    last_places: dict[int, int] = {}
    for place, piece in enumerate(text.pieces.ids):
        if piece in last_places:
            marks[place, last_places[piece] + 1] = True
        last_places[piece] = place
    return marks if text.causal else np.zeros_like(marks)


def _make_form_rule(name: str, is_target: Callable[[str], bool]) -> AttentionRule:
    """Return a rule for the words whose form meets a condition."""

    def mark(text: RuleText) -> Marks:
        return text.mark_words([number for number, form in enumerate(text.forms) if is_target(form)])

    return AttentionRule(name, "form", NO_ANNOTATION, mark)


def _make_tag_rule(name: str, tags: frozenset[str]) -> AttentionRule:
    """Return a rule for the words with these parts of speech."""

    def mark(text: RuleText) -> Marks:
        return text.mark_words([number for tag in tags for number in text.words_by_tag.get(tag, ())])

    return AttentionRule(name, "part of speech", TAGS, mark)


def _make_nearest_rule(noun: str, tags: frozenset[str], side: str) -> AttentionRule:
    """Return a rule for the nearest word on one side with these parts of speech."""

    def mark(text: RuleText) -> Marks:
        targets = np.flatnonzero([tag in tags for tag in text.tags])
        words = np.arange(len(text.tags))
        nearest = np.searchsorted(targets, words) - 1 if side == "before" else np.searchsorted(targets, words, "right")
        has_target = (nearest >= 0) & (nearest < len(targets))
        marks = np.zeros((len(words), len(words)), bool)
        marks[words[has_target], targets[nearest[has_target]]] = True
        return text.expand_words(marks)

    return AttentionRule(f"the nearest {noun} {side}", "part of speech", TAGS, mark)


def _mark_siblings(text: RuleText) -> Marks:
    """Mark the other dependents of a word's head."""
    marks = (text.heads[:, None] == text.heads) & (text.heads >= 0)[:, None] & ~np.eye(len(text.heads), dtype=bool)
    return text.expand_words(marks)


def _make_relation_rules(relation: str) -> tuple[AttentionRule, AttentionRule]:
    """Return two rules for a relation: from a dependent to its head, and from a head to its dependents."""

    def mark(text: RuleText, is_reversed: bool) -> Marks:
        """Mark the head of each dependent of this relation or, if ``is_reversed``, the dependents of each head."""
        if relation not in text.relations:
            return text.no_targets
        has_relation = np.array([word == relation for word in text.relations], bool)
        edges = text.head_marks & has_relation[:, None]  # [word, word]
        return text.expand_words(edges.T if is_reversed else edges)

    return (
        AttentionRule(f"its head, as {relation}", "syntax", TREES, partial(mark, is_reversed=False)),
        AttentionRule(f"its {relation}", "syntax", TREES, partial(mark, is_reversed=True)),
    )


def _mark_mentions(text: RuleText) -> Marks:
    """Return [word, word], True for the head words of other mentions of the same chain."""
    marks = np.zeros((len(text.forms), len(text.forms)), bool)
    chains: dict[str, list[int]] = {}
    for mention in text.sentence.mentions:
        chains.setdefault(mention.chain, []).append(mention.word)
    for words in chains.values():
        marks[np.ix_(words, words)] = True
    return marks & ~np.eye(len(marks), dtype=bool)


def _mark_antecedent(text: RuleText) -> Marks:
    """Mark the nearest earlier mention of the same chain."""
    mentions = np.tril(_mark_mentions(text))  # earlier ones
    antecedents = np.zeros_like(mentions)
    for word in np.flatnonzero(mentions.any(axis=1)):
        antecedents[word, np.flatnonzero(mentions[word])[-1]] = True
    return text.expand_words(antecedents)


VERBS, NOUNS = frozenset({"VERB"}), frozenset({"NOUN", "PROPN"})
NEAR_WORDS = (("noun", NOUNS), ("verb", VERBS), ("content word", CONTENT_TAGS))

RULES: tuple[AttentionRule, ...] = (
    *(_make_offset_rule(k) for k in sorted(range(-MAX_OFFSET, MAX_OFFSET + 1), key=lambda k: (abs(k), k))),
    *(_make_range_rule(f"the {width} tokens on either side", -width, width) for width in WINDOW_WIDTHS),
    _make_range_rule(f"the {WINDOW_WIDTHS[1]} tokens before", -WINDOW_WIDTHS[1], -1),
    _make_range_rule(f"the {WINDOW_WIDTHS[1]} tokens after", 1, WINDOW_WIDTHS[1]),
    _make_range_rule("all tokens before", -ANY_DISTANCE, -1),
    _make_range_rule("all tokens after", 1, ANY_DISTANCE),
    AttentionRule("[CLS]", "special", NO_ANNOTATION, _make_special_targets(CLASSES.index(CLS))),
    AttentionRule("[SEP]", "special", NO_ANNOTATION, _make_special_targets(CLASSES.index(SEP))),
    _make_form_rule("punctuation", is_punctuation),
    _make_form_rule("commas", lambda form: form in (",", "，", "、")),
    AttentionRule("the last full stop", "form", NO_ANNOTATION, _mark_last_stop),
    AttentionRule(
        "the first word", "position", NO_ANNOTATION, lambda text: text.mark_words(range(len(text.forms))[:1])
    ),
    AttentionRule(
        "the rest of its own word",
        "form",
        NO_ANNOTATION,
        lambda text: text.expand_words(np.eye(len(text.forms), dtype=bool)) & ~np.eye(len(text), dtype=bool),
    ),
    AttentionRule(
        "the same form elsewhere", "form", NO_ANNOTATION, lambda text: text.expand_words(_mark_equal(text.forms))
    ),
    AttentionRule(
        "all words", "even", NO_ANNOTATION, lambda text: np.broadcast_to(text.is_ordinary, (len(text), len(text)))
    ),
    AttentionRule(EVERYWHERE, "even", NO_ANNOTATION, lambda text: np.ones((len(text), len(text)), bool)),
    AttentionRule("what followed this token last time", "form", NO_ANNOTATION, _mark_induction_targets),
    *(_make_tag_rule(name, frozenset({tag})) for tag, name in TAG_NAMES.items()),
    _make_tag_rule("content words", CONTENT_TAGS),
    _make_tag_rule("function words", FUNCTION_TAGS),
    *(_make_nearest_rule(noun, tags, side) for noun, tags in NEAR_WORDS for side in ("before", "after")),
    AttentionRule(
        "the same part of speech", "part of speech", TAGS, lambda text: text.expand_words(_mark_equal(text.tags))
    ),
    AttentionRule("its head", "syntax", TREES, lambda text: text.expand_words(text.head_marks)),
    AttentionRule("its dependents", "syntax", TREES, lambda text: text.expand_words(text.head_marks.T)),
    AttentionRule("its siblings", "syntax", TREES, _mark_siblings),
    *(rule for relation in RELATIONS for rule in _make_relation_rules(relation)),
    AttentionRule("its antecedent", "coreference", CHAINS, _mark_antecedent),
    AttentionRule("its other mentions", "coreference", CHAINS, lambda text: text.expand_words(_mark_mentions(text))),
)
NAMES = tuple(rule.name for rule in RULES)
UNIFORM_RULE = NAMES.index(EVERYWHERE)  # the index of the rule for uniform attention


def mark_visible(rule: AttentionRule, text: RuleText) -> Marks:
    """Return [query, key], the visible targets of each token."""
    return rule.mark(text) & text.is_visible


def make_matrix(rule: AttentionRule, text: RuleText) -> Numbers:
    """Return R[query, key], equal shares of the visible targets of each token.

    Rows sum to 1; a row is zero where the rule does not apply.
    """
    marks = mark_visible(rule, text)
    counts = marks.sum(axis=1, keepdims=True)
    shares: Numbers = marks / np.maximum(counts, 1)
    return shares


def make_matrices(text: RuleText, numbers: Iterable[int] = range(len(RULES))) -> Numbers:
    """Return [rule, query, key], the matrix (:func:`make_matrix`) of each rule with these numbers in RULES."""
    marks = np.stack([RULES[number].mark(text) for number in numbers]) & text.is_visible
    counts = marks.sum(axis=2, keepdims=True)
    shares: Numbers = marks / np.maximum(counts, 1)
    return shares


def predict(shares: Numbers, text: RuleText) -> Numbers:
    """Return P [head, query, key] for a text from shares [class, head, rule]; 0 where a key is not visible."""
    return next(iter_predictions([shares], text))


def iter_predictions(mixtures: Sequence[Numbers], text: RuleText) -> Iterator[Numbers]:
    """Yield the prediction (:func:`predict`) of each of several mixtures. Each rule is applied only once."""
    used_rules = [np.union1d(np.flatnonzero(shares.any(axis=(0, 1))), UNIFORM_RULE) for shares in mixtures]
    numbers = np.unique(np.concatenate(used_rules))
    rules = make_matrices(text, numbers)  # [rule, query, key]
    uniform = rules[numbers == UNIFORM_RULE][0]
    for shares, rule_numbers in zip(mixtures, used_rules, strict=True):
        used_matrices, used_shares = rules[np.searchsorted(numbers, rule_numbers)], shares[:, :, rule_numbers]
        applies = used_matrices.any(axis=2).astype(float)  # [rule, query]
        result = np.empty((shares.shape[1], *uniform.shape))
        for token_class in np.unique(text.classes):
            queries = np.flatnonzero(text.classes == token_class)
            total = used_shares[token_class] @ applies[:, queries]  # [head, query]
            cells = np.tensordot(used_shares[token_class], used_matrices[:, queries], axes=1)
            result[:, queries] = np.where(
                total[..., None] > 0, cells / np.maximum(total, FLOOR)[..., None], uniform[queries]
            )
        yield result
