"""Syntax: every head, relation and direction, and the rules compared with them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from tests.brute.annotated import Sentence
from tests.brute.model import Reading
from tests.brute.statistics import Count, find_best, sum_to_words

DIRECTIONS = ("dep_to_head", "head_to_dep", "head_row")
SIDES = ("left", "right")
OFFSETS = tuple(o for o in range(-10, 11) if o)


def list_groups(relation: str) -> list[tuple[str, str]]:
    """Return (level, name) of every row of the tables that a relation counts in."""
    base = relation.split(":")[0]
    groups_of_relation = [("full", relation), ("base", base), ("agg", "all")]
    return groups_of_relation if base == "punct" else [*groups_of_relation, ("agg", "all without punct")]


class Question(NamedTuple):
    """One case: ``asked`` is the word whose argmax is taken, ``right`` the correct words."""

    group: tuple[str, str]
    direction: str
    asked: int
    right: frozenset[int]


def questions(sentence: Sentence) -> list[Question]:
    """Return the cases of a sentence in all groups and directions."""
    if len(sentence.forms) < 2:
        return []
    questions = []
    dependents: dict[tuple[tuple[str, str], int], set[int]] = defaultdict(set)
    for d, (h, relation) in enumerate(zip(sentence.heads, sentence.relations, strict=True)):
        if h < 0:
            continue
        for group in list_groups(relation):
            questions.append(Question(group, "dep_to_head", d, frozenset({h})))
            questions.append(Question(group, "head_to_dep", d, frozenset({h})))
            dependents[group, h].add(d)
    questions += [Question(g, "head_row", h, frozenset(words)) for (g, h), words in dependents.items()]
    return questions


def answer(w: Any, question: Question) -> int:
    """Return the word that a head's weights [from word, to word] choose."""
    others = [j for j in range(len(w)) if j != question.asked]
    if question.direction == "head_to_dep":
        return find_best([w[j, question.asked] for j in range(len(w))], others)
    return find_best(w[question.asked], others)


Key = tuple[tuple[str, str], str, Any]  # group, direction, and a head or the option of a baseline


def syntax(sentences: Sequence[tuple[Sentence, Reading]]) -> dict[Key, Count]:
    """Count the cases and the right answers of each group, direction and head."""
    counts: dict[Key, list[int]] = defaultdict(lambda: [0, 0])
    for sentence, reading in sentences:
        for number, a in enumerate(reading.attention):
            w = sum_to_words(a, reading.words)
            for question in questions(sentence):
                count = counts[question.group, question.direction, number]
                count[0] += 1
                count[1] += answer(w, question) in question.right
    return {key: (n, right) for key, (n, right) in counts.items()}


def _shift(sentence: Sentence, word: int, offset: int) -> int | None:
    return word + offset if 0 <= word + offset < len(sentence.forms) else None


def find_nearest(sentence: Sentence, word: int, side: str, tags: Iterable[str]) -> int | None:
    """Return the nearest word on a side of ``word`` that has one of these parts of speech."""
    places = range(word - 1, -1, -1) if side == "left" else range(word + 1, len(sentence.forms))
    return next((i for i in places if sentence.upos[i] in tags), None)


def count_by_offset(sentences: Sequence[Sentence]) -> dict[Key, Count]:
    """Count the cases and those that each offset gets right, for each group and direction."""
    return _count_guesses(sentences, OFFSETS, _shift)


SetRule = tuple[str, frozenset[str]]


def find_set_rules(sentences: Sequence[Sentence]) -> dict[tuple[tuple[str, str], str], SetRule]:
    """Return the best rule of each group and direction: a side and a set of parts of speech.

    Parts of speech are added one by one for as long as another one gets more cases right.
    """
    tags = sorted({upos for sentence in sentences for upos in sentence.upos})
    cases_of: dict[Any, list[tuple[Sentence, Question]]] = defaultdict(list)
    for sentence in sentences:
        for question in questions(sentence):
            cases_of[question.group, question.direction].append((sentence, question))
    rules: dict[Any, SetRule] = {}
    for key, cases in cases_of.items():
        best_right = 0
        for side in ("left", "right"):
            chosen: frozenset[str] = frozenset()
            right = 0
            while True:
                rights = [(_right_by_set(cases, side, chosen | {tag}), tag) for tag in tags if tag not in chosen]
                most = max((count for count, _ in rights), default=0)
                if most <= right:
                    break
                right, chosen = most, chosen | {next(tag for count, tag in rights if count == most)}
            if right > best_right:
                best_right, rules[key] = right, (side, chosen)
    return rules


def _right_by_set(cases: Sequence[tuple[Sentence, Question]], side: str, tags: frozenset[str]) -> int:
    return sum(find_nearest(sentence, question.asked, side, tags) in question.right for sentence, question in cases)


def count_by_set_rules(sentences: Sequence[Sentence], rules: Any) -> dict[tuple[tuple[str, str], str], Count]:
    """Count how many of the cases of each group and direction its rule gets right."""
    counts: dict[Any, list[int]] = defaultdict(lambda: [0, 0])
    for sentence in sentences:
        for question in questions(sentence):
            side, tags = rules.get((question.group, question.direction), ("left", ()))
            count = counts[question.group, question.direction]
            count[0] += 1
            count[1] += find_nearest(sentence, question.asked, side, tags) in question.right
    return {key: (n, right) for key, (n, right) in counts.items()}


def count_both_right(sentences: Sequence[tuple[Sentence, Reading]], rules: Any) -> dict[Key, int]:
    """Count the cases that both a head and the rule get right, for each group, direction and head."""
    counts: dict[Any, int] = defaultdict(int)
    for sentence, reading in sentences:
        for number, a in enumerate(reading.attention):
            w = sum_to_words(a, reading.words)
            for question in questions(sentence):
                side, tags = rules.get((question.group, question.direction), ("left", ()))
                by_rule = find_nearest(sentence, question.asked, side, tags) in question.right
                counts[question.group, question.direction, number] += by_rule and answer(w, question) in question.right
    return counts


class KindCase(NamedTuple):
    """One case in which a head points to a word of the right kind: the answers, and the chance of a random one."""

    right: bool
    left: bool
    right_side: bool
    chance: float


def count_kinds(sentences: Sequence[tuple[Sentence, Reading]]) -> dict[Any, tuple[int, list[KindCase]]]:
    """Count the cases with a choice, and those in which the head points to one of the candidates.

    A case has a choice if two words or more have the gold word's part of speech. The counts are for each base relation,
    direction and head.
    """
    counts: dict[Any, tuple[list[None], list[KindCase]]] = defaultdict(lambda: ([], []))
    for sentence, reading in sentences:
        for number, a in enumerate(reading.attention):
            w = sum_to_words(a, reading.words)
            for question in questions(sentence):
                if question.group[0] != "base":
                    continue
                tag = sentence.upos[min(question.right)]
                words = [i for i, upos in enumerate(sentence.upos) if upos == tag and i != question.asked]
                if len(words) < 2:
                    continue
                cases, right_kind = counts[question.group[1], question.direction, number]
                cases.append(None)
                choice = answer(w, question)
                if sentence.upos[choice] == tag:
                    left, right = (
                        find_nearest(sentence, question.asked, side, [tag]) in question.right for side in SIDES
                    )
                    chance = len(question.right.intersection(words)) / len(words)
                    right_kind.append(KindCase(choice in question.right, left, right, chance))
    return {key: (len(cases), right_kind) for key, (cases, right_kind) in counts.items()}


def _count_guesses(sentences: Sequence[Sentence], options: Sequence[Any], guess: Callable[..., int | None]) -> Any:
    counts: dict[Key, list[int]] = defaultdict(lambda: [0, 0])
    for sentence in sentences:
        for question in questions(sentence):
            for option in options:
                count = counts[question.group, question.direction, option]
                count[0] += 1
                count[1] += guess(sentence, question.asked, option) in question.right
    return {key: (n, right) for key, (n, right) in counts.items()}


def pick_best(counts: dict[Key, Count]) -> dict[tuple[tuple[str, str], str], Count]:
    """Return the count of the best option for each group and direction."""
    best_counts: dict[Any, Count] = {}
    for (group, direction, _), (n, right) in counts.items():
        old = best_counts.get((group, direction), (n, -1))
        best_counts[group, direction] = (n, max(old[1], right))
    return best_counts


def uas(sentences: Sequence[tuple[Sentence, Reading]]) -> list[Count]:
    """Count for each head the dependencies, and those in which one of the two words points to the other."""
    heads = len(sentences[0][1].attention)
    edges = [[0, 0] for _ in range(heads)]
    for sentence, reading in sentences:
        n = len(sentence.forms)
        for number in range(heads if n > 1 else 0):
            w = sum_to_words(reading.attention[number], reading.words)
            points = [find_best(w[i], [j for j in range(n) if j != i]) for i in range(n)]
            for d, (h, relation) in enumerate(zip(sentence.heads, sentence.relations, strict=True)):
                if h >= 0 and relation.split(":")[0] != "punct":
                    edges[number][0] += 1
                    edges[number][1] += points[d] == h or points[h] == d
    return [(n, right) for n, right in edges]
