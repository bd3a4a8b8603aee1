"""The best rule that is told the parts of speech: the nearest word on one side whose part of speech is in a set.

For each relation it is chosen on the sentences with even numbers of the whole corpus, once for dependents, which look
for their head, and once for heads, which look for their dependents. What is counted for it does not depend on the set:
on which side the gold word is, its part of speech, and those that are passed on the way to it. So counts of parts of a
corpus add up, and every set is judged from them.
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
SEEKERS = ("dependent", "head")  # who looks for the other; the first is that of both directions that ask for the head
MOST_TAGS = 62  # a rule names none but the most frequent ones
ORDER = (  # in which a rule names its parts of speech; others follow by name
    *("NOUN", "PROPN", "PRON", "NUM", "SYM", "VERB", "AUX", "ADJ", "ADV", "DET"),
    *("ADP", "PART", "CCONJ", "SCONJ", "INTJ", "PUNCT", "X"),
)

Indices = npt.NDArray[np.intp]


class Passed(NamedTuple):
    """A way to a gold word: who looks (a place of SEEKERS), the relation, the side (a place of SIDES), the gold word's
    part of speech, and those of the words between."""

    seeker: int
    relation: str
    side: int
    tag: str
    passed: frozenset[str]


class NearestRule(NamedTuple):
    """The nearest word on a side (a place of SIDES) whose part of speech is one of ``tags``; without tags there is no
    such word."""

    side: int
    tags: tuple[str, ...]

    @property
    def name(self) -> str:
        """Name the rule as tables do: "right NOUN PROPN"."""
        return " ".join((SIDES[self.side], *self.tags)) if self.tags else ""

    @property
    def in_words(self) -> str:
        """Name the rule as a table of roles does: "nearest NOUN, PROPN or ADV to the right"."""
        listed = " or ".join(filter(None, (", ".join(self.tags[:-1]), *self.tags[-1:])))
        return f"nearest {listed} to the {SIDES[self.side]}" if self.tags else ""


NO_RULE = NearestRule(0, ())
RuleOfRows = Mapping[tuple[int, "RelationRow"], NearestRule]  # by a place of SEEKERS and a row of the tables


def tally(sentences: Iterable[Sentence]) -> Counter[Passed]:
    """Count how often each way to a gold word comes."""
    counts: Counter[Passed] = Counter()
    for sentence in sentences:
        tags = [word.upos for word in sentence.words]
        for place, word in enumerate(sentence.words):
            if word.head is None:
                continue
            passed = frozenset(tags[min(place, word.head) + 1 : max(place, word.head)])
            is_right = int(word.head > place)
            counts[Passed(0, word.relation, is_right, tags[word.head], passed)] += 1
            counts[Passed(1, word.relation, 1 - is_right, tags[place], passed)] += 1
    return counts


def choose_rules(counts: Mapping[Passed, int], relations: Relations) -> RuleOfRows:
    """Choose the rule of every row of the tables, from what was counted on the sentences with even numbers: the part of
    speech that gains most is added until none gains. Ties: the first by name; of sides the left one."""
    of_tag: Counter[str] = Counter()
    for way, count in counts.items():
        of_tag[way.tag] += count
    tags = sorted(sorted(of_tag, key=lambda tag: (-of_tag[tag], tag))[:MOST_TAGS])
    bits = {tag: 1 << number for number, tag in enumerate(tags)}
    ways = [(way, count) for way, count in counts.items() if way.tag in bits]
    groups: dict[tuple[int, int, str], list[tuple[int, int, int]]] = {}
    for way, count in ways:
        passed = sum(bits.get(tag, 0) for tag in way.passed)
        groups.setdefault((way.seeker, way.side, way.relation), []).append((bits[way.tag], passed, count))
    arrays = {key: np.array(group, np.int64) for key, group in groups.items()}
    rules: dict[tuple[int, RelationRow], NearestRule] = {}
    for at, row in enumerate(relations.rows):
        names = [relations.names[name] for name in np.flatnonzero(relations.member[:, at])]
        for seeker in range(len(SEEKERS)):
            best, most = NO_RULE, 0
            for side in range(len(SIDES)):
                parts = [arrays[key] for name in names if (key := (seeker, side, name)) in arrays]
                chosen, right = _forward(np.concatenate(parts), len(tags)) if parts else (0, 0)
                if right > most:
                    best, most = NearestRule(side, ordered(tag for tag in tags if chosen & bits[tag])), right
            rules[seeker, row] = best
    return rules


def _forward(ways: npt.NDArray[np.int64], tags: int) -> tuple[int, int]:
    """Select parts of speech (their bits) forward, and return how many cases they get right, too. ``ways``
    [way, (gold, passed, count)]."""
    gold, passed, count = ways.T
    chosen, right = 0, 0
    while True:
        sets = [chosen | 1 << tag for tag in range(tags)]
        rights = [int(count[(gold & one != 0) & (passed & one == 0)].sum()) for one in sets]
        best = int(np.argmax(rights)) if rights else 0
        if not rights or rights[best] <= right:
            return chosen, right
        chosen, right = sets[best], rights[best]


def ordered(tags: Iterable[str]) -> tuple[str, ...]:
    """Sort parts of speech into the ORDER in which a rule names them."""
    places = {tag: place for place, tag in enumerate(ORDER)}
    return tuple(sorted(tags, key=lambda tag: (places.get(tag, len(ORDER)), tag)))


def nearest_words(is_named: Sequence[bool] | npt.NDArray[np.bool_], side: int) -> Indices:
    """Find for each word the nearest one on a side that is named: [word], −1 where there is none. ``is_named``
    [word]."""
    named, words = np.flatnonzero(is_named), np.arange(len(is_named))
    if not named.size:
        return np.full(len(words), -1, np.intp)
    if side:
        at = np.searchsorted(named, words, "right")
        return np.where(at < len(named), named[np.minimum(at, len(named) - 1)], -1)
    at = np.searchsorted(named, words, "left") - 1
    return np.where(at >= 0, named[np.maximum(at, 0)], -1)
