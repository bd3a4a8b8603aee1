"""The roles of heads, and the evidence that each of them needs.

A head has a *syntactic* role for a relation and direction if the lower end of the 95 % interval of its accuracy lies
ten points or more above the best fixed offset (Voita et al. 2019, section 5.2.1: ten points), in at least a hundred
cases. It has the role *coreference* if it beats the better baseline by ten points. *Position*, *delimiter* and *broad*
roles have a threshold (Clark et al. 2019, section 3). One head can have several roles, and most have none. Punctuation
is no relation of syntax here, as in Clark et al. 2019: it is in the tables, and names no role.

Beside each role of syntax stands the best rule that is told the parts of speech (:mod:`mha_viz.analysis.nearest`). By
the 95 % interval of the difference over the same documents, the head *beats* it (the lower end is above 0), *equals*
it (the upper end is not below 0), or is *below* it.

A role whose rule is met over all sentences of a corpus is a candidate; candidates of two corpora are *established*
(:mod:`mha_viz.analysis.shipped`). One corpus alone *suggests* a role: for syntax, if head and direction gain ten
points on the sentences with even numbers and meet the rule on the odd ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.coreference import AGREEMENT, THIRD_PERSON, TYPES, BesideAgreement
from mha_viz.analysis.findings import BEATS, BELOW, EQUALS
from mha_viz.analysis.intervals import Documents, Interval, LowAndHigh, with_cases
from mha_viz.analysis.metrics import BOTH, OFFSETS, ON_DELIMITERS, POSITIONS, on_delimiters, share
from mha_viz.analysis.nearest import SIDES, NearestRule, ordered
from mha_viz.analysis.reduce import Counts, FloatSums, Running
from mha_viz.analysis.syntax import CHOICES, DIRECTIONS, Gold, Relations, base_of, best_offset

GAIN = 0.10  # points over the baseline
CASES = 100  # cases at least
MASS, SHARE = 0.5, 0.9  # position: mean weight (Clark), share of maxima (Voita)
DELIMITER = 0.6
BROAD = 0.78
ROLES = ("syntax", "coreference", "position", "delimiter", "broad")
ESTABLISHED, SUGGESTED = "established", "suggested"
EVEN, ODD, ALL = slice(0, 1), slice(1, 2), slice(0, 2)  # names of the halves
ROUNDING = 1e-12


class Rule(NamedTuple):
    """The best rule by parts of speech for a relation and direction, or agreement for pronouns: its score on a head's
    cases, and the 95 % interval of how much more the head gets right."""

    name: str
    score: float
    interval: Interval

    @property
    def state(self) -> str:
        """One of STATES: what the head does to the rule."""
        return BEATS if self.interval.low > 0 else EQUALS if self.interval.high >= 0 else BELOW


class Choice(NamedTuple):
    """How a head chooses among words of the gold word's part of speech, on the ``n`` cases in which it points to one of
    them (the share ``kind`` of all that have two or more): the share that are right, and of the nearest of them on the
    better side, with the 95 % interval of the difference; NaN where there is no such case. ``random``: the share that a
    random one of them would get right."""

    kind: float
    n: int
    right: float
    nearest: float
    interval: Interval
    side: str
    random: float
    documents: int


class Role(NamedTuple):
    """One role of a head. ``head`` counts through all layers. ``detail``: "nsubj dep_to_head", "third_person",
    "previous", "sep". ``score`` against ``baseline`` on ``n`` cases; the interval is None if the score is not a share
    of cases. ``rule`` is for syntax and coreference, ``choice`` for syntax; ``untrained``: the score of the best
    untrained head, NaN if none
    was measured; ``documents``: how many the cases come from, None for a score over tokens."""

    head: int
    role: str
    detail: str
    score: float
    baseline: float
    n: int
    interval: Interval | None = None
    rule: Rule | None = None
    untrained: float = math.nan
    documents: int | None = None
    choice: Choice | None = None

    @property
    def gain(self) -> float:
        """Score minus baseline."""
        return self.score - self.baseline


class Best(NamedTuple):
    """The head and direction that do best for a relation on the even sentences, and how they do on the odd ones.

    Counts are pairs (even, odd). ``offset`` and ``upos`` count the odd cases that the best fixed offset and the rule by
    parts of speech get right.
    """

    row: int
    direction: int
    head: int
    n: tuple[int, int]
    correct: tuple[int, int]
    offset: int
    upos: int


@dataclass(frozen=True, eq=False)
class CorrectCounts:
    """How many cases of the relations of a corpus the heads of a model get right: all that names a role of syntax.

    ``cases`` [document, half, direction, row]; ``correct`` [document, half, direction, relation, head] by full
    relation.
    """

    relations: Relations
    gold: Gold
    documents: Documents
    cases: Counts
    correct: npt.NDArray[np.int32]

    @cached_property
    def by_row(self) -> Counts:
        """[half, direction, row, head]: correct answers of all documents."""
        added = self.correct.sum(axis=0, dtype=np.int64)
        by_row: Counts = np.einsum("hdrk,rt->hdtk", added, self.relations.member)
        return by_row

    @cached_property
    def intervals(self) -> LowAndHigh:
        """Compute :meth:`interval` of all rows: [direction, row, low and high, head] over all sentences."""
        return self._of_all_rows(self.interval)

    def _of_all_rows(self, interval: Callable[[int, int, slice], LowAndHigh]) -> LowAndHigh:
        """Compute an interval of every direction and row; NaN where there are too few cases for a role."""
        n = self.gold.n.sum(axis=0)
        bounds = np.full((*n.shape, 2, self.correct.shape[-1]), np.nan)
        for direction, row in np.argwhere(n >= CASES):
            bounds[direction, row] = interval(int(direction), int(row), ALL)
        return bounds

    def interval(self, direction: int, row: int, halves: slice) -> LowAndHigh:
        """[low and high, head] of the accuracies in one row of the tables."""
        members = np.flatnonzero(self.relations.member[:, row])
        correct = self.correct[:, halves, direction][:, :, members].sum(axis=(1, 2), dtype=np.int64)
        return self.documents.interval(correct, self.cases[:, halves, direction, row].sum(axis=1))

    def documents_with_cases(self, direction: int, row: int, halves: slice) -> int:
        """How many documents the cases of one row of the tables come from."""
        return with_cases(self.cases[:, halves, direction, row].sum(axis=1))


@dataclass(frozen=True, eq=False)
class SyntaxCounts(CorrectCounts):
    """Add to the counts of :class:`CorrectCounts` what stands beside a role.

    ``both``, ``kinds`` and ``choices`` as in :class:`mha_viz.analysis.syntax.Syntax`; ``ruled`` [document, half,
    direction, row]: what the rule by parts of speech gets right; ``named`` [seeker, side, row, part of speech]: what
    the rule names; ``untrained`` [half, direction, row, head], None if no untrained model was measured.
    """

    ruled: Counts
    both: Counts
    kinds: Counts
    choices: FloatSums
    named: npt.NDArray[np.bool_]
    untrained: Counts | None = None

    def rule(self, direction: int, row: int) -> NearestRule:
        """Return the rule by parts of speech for one row of the tables."""
        side, tags = np.nonzero(self.named[int(DIRECTIONS[direction] == "head_row"), :, row])
        return NearestRule(int(side[0]) if side.size else 0, ordered(self.relations.upos[tag] for tag in tags))

    def against_rule(self, direction: int, row: int, halves: slice) -> LowAndHigh:
        """Compute [low and high, head] of how much more often the heads are right than the rule by parts of speech."""
        members = np.flatnonzero(self.relations.member[:, row])
        correct = self.correct[:, halves, direction][:, :, members].sum(axis=(1, 2), dtype=np.int64)
        by_rule, n = (counts[:, halves, direction, row].sum(axis=1) for counts in (self.ruled, self.cases))
        both = self.both[halves, direction, row].sum(axis=0)
        alone, by_rule_alone = correct.sum(axis=0) - both, by_rule.sum() - both
        outcomes = np.stack((both, alone, by_rule_alone, n.sum() - both - alone - by_rule_alone))
        return self.documents.of_net(correct - by_rule[:, None], n, outcomes)

    @cached_property
    def intervals_against_rule(self) -> LowAndHigh:
        """Compute :meth:`against_rule` of all rows: [direction, row, low and high, head] over all sentences."""
        return self._of_all_rows(self.against_rule)

    def choices_of(self, direction: int, base: int) -> list[Choice]:
        """Measure how each head chooses among words of one kind, over all sentences."""
        even = dict(zip(CHOICES, self.choices[0, direction, base].T, strict=True))  # by name: [head]
        every = dict(zip(CHOICES, self.choices[:, direction, base].sum(axis=0).T, strict=True))
        n, right = every["kind"], every["right"]
        is_right = even["nearest_right"] > even["nearest_left"]  # [head]: the better side
        nearest = np.where(is_right, every["nearest_right"], every["nearest_left"])
        both = np.where(is_right, every["both_right"], every["both_left"])
        kinds, rights, *beside = np.moveaxis(self.kinds[:, direction, base].astype(np.int64), 2, 0)  # [document, head]
        outcomes = np.stack((both, right - both, nearest - both, n - right - nearest + both)).astype(np.int64)
        bounds = self.documents.of_net(rights - np.where(is_right, beside[1], beside[0]), kinds, outcomes)
        scores = (share(part, n) for part in (right, nearest, every["random"]))
        kind, documents = share(n, self.gold.kinds[:, direction, base].sum()), np.count_nonzero(kinds, axis=0)
        right_share, near_share, random = scores
        return [
            Choice(
                *(float(kind[head]), int(n[head]), float(right_share[head]), float(near_share[head])),
                Interval(*map(float, bounds[:, head])),
                SIDES[int(is_right[head])],
                float(random[head]),
                int(documents[head]),
            )
            for head in range(len(n))
        ]


def _gains(correct: int, baseline: int, n: int) -> bool:
    """Whether the gain is ten points over the baseline, counted in whole cases: 60 of 100 against 50 are ten."""
    return n > 0 and round(1 / GAIN) * (int(correct) - int(baseline)) >= int(n)


def choose(counts: SyntaxCounts) -> Iterator[Best]:
    """Yield the best for every row that has a case among the even sentences."""
    gold, correct = counts.gold, counts.by_row
    for at in range(len(counts.relations.rows)):
        even = share(correct[0, :, at], gold.n[0, :, at, None])  # [direction, head]
        if np.isnan(even).all():
            continue
        direction, head = np.unravel_index(np.nanargmax(even), even.shape)
        yield Best(
            at,
            int(direction),
            int(head),
            (int(gold.n[0, direction, at]), int(gold.n[1, direction, at])),
            (int(correct[0, direction, at, head]), int(correct[1, direction, at, head])),
            int(gold.offset[1, direction, at].max(initial=0)),
            int(counts.ruled[:, 1, direction, at].sum()),
        )


def suggested_syntax(counts: SyntaxCounts) -> Iterator[Role]:
    """For every head and relation the direction with the best score on the even sentences, if it gains ten points there
    and meets the rule on the odd ones."""
    for meeting in suggested_heads(counts):
        yield from _roles(counts, meeting, ODD)


def candidate_syntax(counts: SyntaxCounts) -> Iterator[Role]:
    """Every head, relation and direction that meets the rule over all sentences."""
    for meeting in candidate_heads(counts):
        yield from _roles(counts, meeting, ALL)


class Meeting(NamedTuple):
    """The heads that meet the rule for one row of the tables and a direction, each with the interval of its
    accuracy."""

    direction: int
    row: int
    heads: Mapping[int, Interval]


def suggested_heads(counts: CorrectCounts) -> Iterator[Meeting]:
    """The heads of :func:`suggested_syntax`."""
    for at in named_rows(counts.relations):
        even = share(counts.by_row[0, :, at], counts.gold.n[0, :, at, None])  # [direction, head]
        best = np.nan_to_num(even, nan=-1).argmax(axis=0)
        for direction in range(len(DIRECTIONS)):
            chosen = [head for head in _gaining(counts, direction, at, EVEN) if best[head] == direction]
            yield _meeting(counts, direction, at, chosen, ODD)


def candidate_heads(counts: CorrectCounts) -> Iterator[Meeting]:
    """The heads of :func:`candidate_syntax`."""
    for at in named_rows(counts.relations):
        for direction in range(len(DIRECTIONS)):
            yield _meeting(counts, direction, at, _gaining(counts, direction, at, ALL), ALL)


def detail_of(relations: Relations, direction: int, row: int) -> str:
    """What a role of syntax is named by: "nsubj dep_to_head"."""
    return f"{relations.rows[row].relation} {DIRECTIONS[direction]}"


def named_rows(relations: Relations) -> list[int]:
    """The rows after which roles are named: among relations with the same cases, the shorter name; without
    punctuation."""
    rows = [(at, row) for at, row in enumerate(relations.rows) if base_of(row.relation) != "punct"]
    return [at for at, row in rows if row.level == "base" or (row.level == "full" and ":" in row.relation)]


def _gaining(counts: CorrectCounts, direction: int, at: int, halves: slice) -> list[int]:
    """The heads that beat the best fixed offset by ten points."""
    n, offset = counts.gold.n[halves, direction, at].sum(), counts.gold.offset[halves, direction, at].sum(axis=0).max()
    correct = counts.by_row[halves, direction, at].sum(axis=0)
    return [head for head, right in enumerate(correct.tolist()) if _gains(right, offset, n)]


def _meeting(counts: CorrectCounts, direction: int, at: int, heads: Sequence[int], halves: slice) -> Meeting:
    """Those of the heads whose interval is ten points or more above the best fixed offset."""
    n = int(counts.gold.n[halves, direction, at].sum())
    if not heads or n < CASES:
        return Meeting(direction, at, {})
    bounds = counts.interval(direction, at, halves)
    offset = best_offset(counts.gold.offset[halves, direction, at].sum(axis=0))[1] / n
    intervals = {head: Interval(*map(float, bounds[:, head])) for head in heads}
    return Meeting(direction, at, {head: one for head, one in intervals.items() if one.low - offset >= GAIN - ROUNDING})


def _roles(counts: SyntaxCounts, meeting: Meeting, halves: slice) -> Iterator[Role]:
    """The roles of heads that meet the rule."""
    direction, at, heads = meeting
    if not heads:
        return
    n = int(counts.gold.n[halves, direction, at].sum())
    offset = best_offset(counts.gold.offset[halves, direction, at].sum(axis=0))[1] / n
    rule, by_rule = counts.rule(direction, at), int(counts.ruled[:, halves, direction, at].sum())
    documents = counts.documents_with_cases(direction, at, halves)
    untrained = math.nan
    if counts.untrained is not None:
        untrained = int(counts.untrained[halves, direction, at].sum(axis=0).max()) / n
    chosen = counts.choices_of(direction, counts.relations.base_of_row(at))
    against, detail = counts.against_rule(direction, at, halves), detail_of(counts.relations, direction, at)
    for head, interval in heads.items():
        right = int(counts.by_row[halves, direction, at, head].sum())
        beside = Rule(rule.in_words, by_rule / n, Interval(*map(float, against[:, head])))
        yield Role(head, "syntax", detail, right / n, offset, n, interval, beside, untrained, documents, chosen[head])


def coreferential(sums: Running, documents: Documents, control: Running | None) -> Iterator[Role]:
    """Heads that beat the better baseline by ten points on third-person pronouns, each beside the rule of agreement.
    ``sums`` and ``control`` are the sums of :class:`mha_viz.analysis.coreference.Coreference` with trained and
    untrained weights."""
    at = TYPES.index(THIRD_PERSON)
    n, correct, baseline = (sums[name][:, :, at].sum(axis=1) for name in ("n", "correct", "baseline"))  # [document, …]
    cases, better, right = int(n.sum()), int(baseline.sum(axis=0).max()), correct.sum(axis=0)
    if cases < CASES:
        return
    bounds, by_rule = documents.interval(correct, n), int(sums["agreement"].sum())
    against = documents.of_net(*BesideAgreement.of(sums))
    untrained = math.nan if control is None else int(control["correct"][:, :, at].sum(axis=(0, 1)).max()) / cases
    for head in (head for head in range(len(right)) if _gains(right[head], better, cases)):
        scores = int(right[head]) / cases, better / cases, cases
        interval = Interval(*map(float, bounds[:, head]))
        rule = Rule(AGREEMENT, by_rule / cases, Interval(*map(float, against[:, head])))
        yield Role(head, "coreference", THIRD_PERSON, *scores, interval, rule, untrained, with_cases(n))


def positional(
    sums: Running, of_documents: Running, documents: Documents, control: Running | None = None
) -> Iterator[Role]:
    """Heads whose mean weight on the previous, same or next token is above 0.5, or whose largest weight is there in
    nine rows of ten: a share with an interval, from the counts ``of_documents`` (``metrics.maxima_of_documents``). The
    baseline is uniform attention."""
    mass, maxima = share(sums["mass"], sums["mass_rows"]), share(sums["maxima"], sums["maxima_rows"])
    even = share(sums["even_mass"], sums["mass_rows"])
    for place, (offset, detail) in enumerate(POSITIONS.items()):
        at = OFFSETS.index(offset)
        right, rows = of_documents["maxima"][:, :, place], of_documents["rows"][:, place]
        for head in range(len(mass)):
            if mass[head, at] > MASS:
                n, untrained = int(sums["mass_rows"][at]), _most(control, "mass", "mass_rows", at)
                scores = float(mass[head, at]), float(even[at]), n
                yield Role(head, "position", detail, *scores, untrained=untrained)
            elif maxima[head, at] >= SHARE:
                n, untrained = int(sums["maxima_rows"][at]), _most(control, "maxima", "maxima_rows", at)
                interval = Interval(*map(float, documents.interval(right[:, [head]], rows)[:, 0]))
                scores = float(maxima[head, at]), float(even[at]), n
                yield Role(head, "position", detail, *scores, interval, None, untrained, with_cases(rows))


def _most(control: Running | None, total: str, rows: str, at: int) -> float:
    """The highest score of an untrained head; NaN if none was measured."""
    return math.nan if control is None else float(share(control[total], control[rows])[:, at].max())


def delimiting(sums: Running, control: Running | None = None) -> Iterator[Role]:
    """Heads that give more than 0.6 of their attention to [CLS], to [SEP], to punctuation or, if to neither alone, to
    both special tokens together; the baseline is uniform attention."""
    mass, even = on_delimiters(sums)
    untrained = np.full(len(even), np.nan) if control is None else on_delimiters(control)[0].max(axis=0)
    above = mass > DELIMITER  # [head, detail]
    above[:, ON_DELIMITERS.index(BOTH)] &= ~above[:, :2].any(axis=1)
    for at, detail in enumerate(ON_DELIMITERS):
        for head in np.flatnonzero(above[:, at]):
            scores = float(mass[head, at]), float(even[at]), int(sums["rows"])
            yield Role(int(head), "delimiter", detail, *scores, untrained=float(untrained[at]))


def broad(sums: Running, control: Running | None = None) -> Iterator[Role]:
    """Heads whose normalised entropy is at least 0.78; the baseline is the mean of the model's heads."""
    normalised = share(sums["normalised"], sums["sentences"])
    untrained = math.nan if control is None else float(share(control["normalised"], control["sentences"]).max())
    for head in np.flatnonzero(normalised >= BROAD):
        scores = float(normalised[head]), float(normalised.mean()), int(sums["rows"])
        yield Role(int(head), "broad", "entropy", *scores, untrained=untrained)
