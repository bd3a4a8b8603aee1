"""Choose the best rule by parts of speech: the nearest word on one side whose part of speech is in a set.

A rule is chosen for each relation on the sentences with even numbers of the whole corpus, once for dependents, which
look for their head, and once for heads, which look for their dependents. The counts do not depend on the set: they
record the side of the gold word, its part of speech, and the parts of speech of the words in between. So the counts of
parts of a corpus can be added, and every set is evaluated from them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.corpus.treebank import Sentence

if TYPE_CHECKING:
    from mha_viz.analysis.syntax import RelationRow, Relations

SIDES = ("left", "right")
SEEKERS = ("dependent", "head")  # the word that looks for the other; two of the DIRECTIONS are from the dependent
MAX_TAGS = 62  # a rule names only this many of the most frequent tags
TAG_ORDER = (  # order of parts of speech in the name of a rule; others follow by name
    *("NOUN", "PROPN", "PRON", "NUM", "SYM", "VERB", "AUX", "ADJ", "ADV", "DET"),
    *("ADP", "PART", "CCONJ", "SCONJ", "INTJ", "PUNCT", "X"),
)

Indices = npt.NDArray[np.intp]


class GoldPath(NamedTuple):
    """A path from a word to the gold word.

    Attributes:
        seeker: which word looks for the other, an index of SEEKERS.
        relation: the relation between the words.
        side: the side of the gold word, an index of SIDES.
        tag: the gold word's part of speech.
        tags_between: the parts of speech of the words in between.
    """

    seeker: int
    relation: str
    side: int
    tag: str
    tags_between: frozenset[str]


class NearestRule(NamedTuple):
    """The nearest word on a side (an index of SIDES) whose part of speech is one of ``tags``.

    Without tags there is no such word.
    """

    side: int
    tags: tuple[str, ...]

    @property
    def name(self) -> str:
        """The rule as tables name it: "right NOUN PROPN"."""
        return " ".join((SIDES[self.side], *self.tags)) if self.tags else ""

    @property
    def in_words(self) -> str:
        """The rule as a table of roles names it: "nearest NOUN, PROPN or ADV to the right"."""
        tags = " or ".join(filter(None, (", ".join(self.tags[:-1]), *self.tags[-1:])))
        return f"nearest {tags} to the {SIDES[self.side]}" if self.tags else ""


NO_RULE = NearestRule(0, ())
RulesByRow = Mapping[tuple[int, "RelationRow"], NearestRule]  # by an index of SEEKERS and a row of the tables


def count_paths(sentences: Iterable[Sentence]) -> Counter[GoldPath]:
    """Count how often each path to a gold word occurs."""
    counts: Counter[GoldPath] = Counter()
    for sentence in sentences:
        tags = [word.upos for word in sentence.words]
        for place, word in enumerate(sentence.words):
            if word.head is None:
                continue
            tags_between = frozenset(tags[min(place, word.head) + 1 : max(place, word.head)])
            side = int(word.head > place)
            counts[GoldPath(0, word.relation, side, tags[word.head], tags_between)] += 1
            counts[GoldPath(1, word.relation, 1 - side, tags[place], tags_between)] += 1
    return counts


def choose_rules(counts: Mapping[GoldPath, int], relations: Relations) -> RulesByRow:
    """Choose the rule of every row of the tables from counts on the sentences with even numbers.

    The part of speech that gains most is added until none gains. Of equal gains, the first by name is added; of equal
    sides, the left is chosen.
    """
    tag_counts: Counter[str] = Counter()
    for path, count in counts.items():
        tag_counts[path.tag] += count
    tags = sorted(sorted(tag_counts, key=lambda tag: (-tag_counts[tag], tag))[:MAX_TAGS])
    bits = {tag: 1 << number for number, tag in enumerate(tags)}
    paths = [(path, count) for path, count in counts.items() if path.tag in bits]
    groups: dict[tuple[int, int, str], list[tuple[int, int, int]]] = {}
    for path, count in paths:
        between_bits = sum(bits.get(tag, 0) for tag in path.tags_between)
        groups.setdefault((path.seeker, path.side, path.relation), []).append((bits[path.tag], between_bits, count))
    arrays = {key: np.array(group, np.int64) for key, group in groups.items()}
    rules: dict[tuple[int, RelationRow], NearestRule] = {}
    for column, row in enumerate(relations.rows):
        names = [relations.names[name] for name in np.flatnonzero(relations.member[:, column])]
        for seeker in range(len(SEEKERS)):
            best_rule, most_correct = NO_RULE, 0
            for side in range(len(SIDES)):
                parts = [arrays[key] for name in names if (key := (seeker, side, name)) in arrays]
                tag_bits, correct = _select_forward(np.concatenate(parts), len(tags)) if parts else (0, 0)
                if correct > most_correct:
                    best_rule = NearestRule(side, sort_tags(tag for tag in tags if tag_bits & bits[tag]))
                    most_correct = correct
            rules[seeker, row] = best_rule
    return rules


def _select_forward(paths: npt.NDArray[np.int64], tag_count: int) -> tuple[int, int]:
    """Select parts of speech by forward selection. Return them as bits, and the number of cases that they get right.

    ``paths`` is [path, (gold tag, tags in between, count)], with tags as bits.
    """
    gold_bits, between_bits, count = paths.T
    tag_bits, correct = 0, 0
    while True:
        sets = [tag_bits | 1 << tag for tag in range(tag_count)]
        counts = [int(count[(gold_bits & tag_set != 0) & (between_bits & tag_set == 0)].sum()) for tag_set in sets]
        best = int(np.argmax(counts)) if counts else 0
        if not counts or counts[best] <= correct:
            return tag_bits, correct
        tag_bits, correct = sets[best], counts[best]


def sort_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Sort parts of speech into TAG_ORDER, in which a rule names them."""
    ranks = {tag: rank for rank, tag in enumerate(TAG_ORDER)}
    return tuple(sorted(tags, key=lambda tag: (ranks.get(tag, len(TAG_ORDER)), tag)))


def find_nearest_words(is_target: Sequence[bool] | npt.NDArray[np.bool_], side: int) -> Indices:
    """Return [word], for each word the nearest target on a side (an index of SIDES), −1 if there is none.

    ``is_target`` is [word].
    """
    targets, words = np.flatnonzero(is_target), np.arange(len(is_target))
    if not targets.size:
        return np.full(len(words), -1, np.intp)
    if side:
        indices = np.searchsorted(targets, words, "right")
        return np.where(indices < len(targets), targets[np.minimum(indices, len(targets) - 1)], -1)
    indices = np.searchsorted(targets, words, "left") - 1
    return np.where(indices >= 0, targets[np.maximum(indices, 0)], -1)
