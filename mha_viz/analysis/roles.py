"""Define the roles of heads and the evidence that each of them requires.

A head has a *syntactic* role for a relation and direction if the lower end of the 95 % interval of its accuracy lies
ten points or more above the best fixed offset (Voita et al. 2019, section 5.2.1: ten points), in at least a hundred
cases. It has the role *coreference* if it beats the better baseline by ten points. *Position*, *delimiter* and *broad*
roles have a threshold (Clark et al. 2019, section 3). A head can have several roles, and most have none. As in Clark et
al. 2019, punctuation does not count as a relation of syntax: it is in the tables, but names no role.

Each role of syntax is compared with the best rule by parts of speech (:mod:`mha_viz.analysis.pos_rules`). By the 95 %
interval of the difference over the same documents, the head *beats* it (the lower end is above 0), *equals* it (the
upper end is not below 0), or is *below* it.

A role that meets its criterion over all sentences of a corpus is a candidate; candidates of two corpora are
*established* (:mod:`mha_viz.analysis.bundled_data`). A single corpus *suggests* a role: for syntax, if head and
direction gain ten points on the sentences with even numbers and meet the criterion on the odd ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.coreference import AGREEMENT, THIRD_PERSON, TYPES, AgreementComparison
from mha_viz.analysis.findings import BEATS, BELOW, EQUALS
from mha_viz.analysis.intervals import Documents, Interval, IntervalBounds, count_documents_with_cases
from mha_viz.analysis.metrics import BOTH, OFFSETS, ON_DELIMITERS, POSITIONS, average_on_delimiters, compute_share
from mha_viz.analysis.pos_rules import SIDES, NearestRule, sort_tags
from mha_viz.analysis.reduce import Counts, FloatSums, RunningSums
from mha_viz.analysis.syntax import CHOICE_COUNTS, DIRECTIONS, GoldCounts, Relations, find_best_offset, strip_subtype

MIN_GAIN = 0.10  # least gain over the baseline, as a share
MIN_CASES = 100  # minimum number of cases for a role
MASS_THRESHOLD, MAXIMA_THRESHOLD = 0.5, 0.9  # position: mean weight (Clark), share of maxima (Voita)
DELIMITER_THRESHOLD = 0.6
BROAD_THRESHOLD = 0.78
ROLES = ("syntax", "coreference", "position", "delimiter", "broad")
ESTABLISHED, SUGGESTED = "established", "suggested"
EVEN, ODD, ALL = slice(0, 1), slice(1, 2), slice(0, 2)  # slices of the axis of halves
ROUNDING = 1e-12  # a difference up to this is rounding error


class Rule(NamedTuple):
    """A simple rule that a role is compared with: the best rule by parts of speech, or agreement for pronouns.

    ``score`` is its score on a head's cases; ``interval`` is the 95 % interval of the head's score minus this one.
    """

    name: str
    score: float
    interval: Interval

    @property
    def state(self) -> str:
        """Comparison of the head with the rule, one of STATES."""
        return BEATS if self.interval.low > 0 else EQUALS if self.interval.high >= 0 else BELOW


class Choice(NamedTuple):
    """Scores of a head in cases with two or more words of the gold word's part of speech.

    Attributes:
        kind: the share of these cases in which the head points to one of them.
        n: the number of such cases.
        right: the share of the ``n`` cases that are right.
        nearest: the share that the nearest of them on the better side would get right.
        interval: the 95 % interval of the difference.
        side: the better side.
        random: the share that a random choice among them would get right.
        documents: the number of documents with such cases.

    Shares are NaN if there is no such case.
    """

    kind: float
    n: int
    right: float
    nearest: float
    interval: Interval
    side: str
    random: float
    documents: int


class Role(NamedTuple):
    """A role of a head.

    Attributes:
        head: the number of the head, counted through all layers.
        role, detail: one of ROLES, and a detail such as "nsubj dep_to_head", "third_person", "previous" or "sep".
        score, baseline: measured on ``n`` cases.
        interval: the interval of the score; None if the score is not a share of cases.
        rule: the simple rule that a role of syntax or coreference is compared with.
        untrained: the score of the best untrained head, NaN if none was measured.
        documents: the number of documents with cases, None for a score over tokens.
        choice: the choice among words of one kind, for syntax.
    """

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
        """The score minus the baseline."""
        return self.score - self.baseline


class BestHead(NamedTuple):
    """The best head and direction for a relation on the even sentences, and their scores on the odd ones.

    Counts are pairs (even, odd). ``offset`` and ``upos`` are the odd cases that the best fixed offset and the rule by
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
    """Counts of right answers of a model's heads for the relations of a corpus. Syntax roles follow from them.

    ``cases`` is [document, half, direction, row]; ``correct`` is [document, half, direction, relation, head] by full
    relation.
    """

    relations: Relations
    gold: GoldCounts
    documents: Documents
    cases: Counts
    correct: npt.NDArray[np.int32]

    @cached_property
    def correct_by_row(self) -> Counts:
        """[half, direction, row, head]: correct answers over all documents."""
        totals = self.correct.sum(axis=0, dtype=np.int64)
        correct_by_row: Counts = np.einsum("hdrk,rt->hdtk", totals, self.relations.member)
        return correct_by_row

    @cached_property
    def intervals(self) -> IntervalBounds:
        """[direction, row, low and high, head]: :meth:`interval` of all rows, over all sentences."""
        return self._compute_all_rows(self.interval)

    def _compute_all_rows(self, interval: Callable[[int, int, slice], IntervalBounds]) -> IntervalBounds:
        """Compute an interval of every direction and row; NaN where there are too few cases for a role."""
        n = self.gold.n.sum(axis=0)
        bounds = np.full((*n.shape, 2, self.correct.shape[-1]), np.nan)
        for direction, row in np.argwhere(n >= MIN_CASES):
            bounds[direction, row] = interval(int(direction), int(row), ALL)
        return bounds

    def interval(self, direction: int, row: int, halves: slice) -> IntervalBounds:
        """Return [low and high, head], the intervals of the accuracies in one row of the tables."""
        members = np.flatnonzero(self.relations.member[:, row])
        correct = self.correct[:, halves, direction][:, :, members].sum(axis=(1, 2), dtype=np.int64)
        return self.documents.interval(correct, self.cases[:, halves, direction, row].sum(axis=1))

    def documents_with_cases(self, direction: int, row: int, halves: slice) -> int:
        """Return the number of documents with cases of one row of the tables."""
        return count_documents_with_cases(self.cases[:, halves, direction, row].sum(axis=1))


@dataclass(frozen=True, eq=False)
class SyntaxCounts(CorrectCounts):
    """The counts of :class:`CorrectCounts`, and counts for comparisons with rules and untrained heads.

    Attributes:
        rule_correct: [document, half, direction, row], cases that the rule by parts of speech gets right.
        both, kinds, choices: as in :class:`mha_viz.analysis.syntax.Syntax`.
        rule_tags: [seeker, side, row, part of speech], whether the rule names the part of speech.
        untrained: [half, direction, row, head], None if no untrained model was measured.
    """

    rule_correct: Counts
    both: Counts
    kinds: Counts
    choices: FloatSums
    rule_tags: npt.NDArray[np.bool_]
    untrained: Counts | None = None

    def rule(self, direction: int, row: int) -> NearestRule:
        """Return the rule by parts of speech for one row of the tables."""
        side, tags = np.nonzero(self.rule_tags[int(DIRECTIONS[direction] == "head_row"), :, row])
        return NearestRule(int(side[0]) if side.size else 0, sort_tags(self.relations.upos[tag] for tag in tags))

    def compare_with_rule(self, direction: int, row: int, halves: slice) -> IntervalBounds:
        """Return [low and high, head], intervals of the accuracy of heads minus that of the rule by parts of speech."""
        members = np.flatnonzero(self.relations.member[:, row])
        correct = self.correct[:, halves, direction][:, :, members].sum(axis=(1, 2), dtype=np.int64)
        rule_correct, n = (counts[:, halves, direction, row].sum(axis=1) for counts in (self.rule_correct, self.cases))
        both = self.both[halves, direction, row].sum(axis=0)
        head_alone, rule_alone = correct.sum(axis=0) - both, rule_correct.sum() - both
        outcomes = np.stack((both, head_alone, rule_alone, n.sum() - both - head_alone - rule_alone))
        return self.documents.compute_net_intervals(correct - rule_correct[:, None], n, outcomes)

    @cached_property
    def rule_intervals(self) -> IntervalBounds:
        """[direction, row, low and high, head]: :meth:`compare_with_rule` of all rows, over all sentences."""
        return self._compute_all_rows(self.compare_with_rule)

    def measure_choices(self, direction: int, base: int) -> list[Choice]:
        """Measure how each head chooses among words of one kind, over all sentences."""
        even_counts = dict(zip(CHOICE_COUNTS, self.choices[0, direction, base].T, strict=True))  # by name: [head]
        totals = dict(zip(CHOICE_COUNTS, self.choices[:, direction, base].sum(axis=0).T, strict=True))
        n, right = totals["kind"], totals["right"]
        is_right_side = even_counts["nearest_right"] > even_counts["nearest_left"]  # [head]: the better side
        nearest = np.where(is_right_side, totals["nearest_right"], totals["nearest_left"])
        both = np.where(is_right_side, totals["both_right"], totals["both_left"])
        # [document, head]
        kinds, correct, *by_side = np.moveaxis(self.kinds[:, direction, base].astype(np.int64), 2, 0)
        outcomes = np.stack((both, right - both, nearest - both, n - right - nearest + both)).astype(np.int64)
        bounds = self.documents.compute_net_intervals(
            correct - np.where(is_right_side, by_side[1], by_side[0]), kinds, outcomes
        )
        scores = (compute_share(part, n) for part in (right, nearest, totals["random"]))
        kind, documents = compute_share(n, self.gold.kinds[:, direction, base].sum()), np.count_nonzero(kinds, axis=0)
        right_share, near_share, random = scores
        return [
            Choice(
                *(float(kind[head]), int(n[head]), float(right_share[head]), float(near_share[head])),
                Interval(*map(float, bounds[:, head])),
                SIDES[int(is_right_side[head])],
                float(random[head]),
                int(documents[head]),
            )
            for head in range(len(n))
        ]


def _has_gain(correct: int, baseline: int, n: int) -> bool:
    """Return True if the gain is ten points over the baseline, in whole cases: 60 of 100 against 50 are ten points."""
    return n > 0 and round(1 / MIN_GAIN) * (int(correct) - int(baseline)) >= int(n)


def iter_best_heads(counts: SyntaxCounts) -> Iterator[BestHead]:
    """Yield the best head and direction for every row that has a case among the even sentences."""
    gold, correct = counts.gold, counts.correct_by_row
    for row in range(len(counts.relations.rows)):
        accuracies = compute_share(correct[0, :, row], gold.n[0, :, row, None])  # on even sentences, [direction, head]
        if np.isnan(accuracies).all():
            continue
        direction, head = np.unravel_index(np.nanargmax(accuracies), accuracies.shape)
        yield BestHead(
            row,
            int(direction),
            int(head),
            (int(gold.n[0, direction, row]), int(gold.n[1, direction, row])),
            (int(correct[0, direction, row, head]), int(correct[1, direction, row, head])),
            int(gold.offset[1, direction, row].max(initial=0)),
            int(counts.rule_correct[:, 1, direction, row].sum()),
        )


def iter_suggested_syntax(counts: SyntaxCounts) -> Iterator[Role]:
    """Yield the syntax roles that a single corpus suggests.

    For every head and relation, the direction with the best score on the even sentences must gain ten points there and
    meet the criterion on the odd ones.
    """
    for qualified_heads in iter_suggested_heads(counts):
        yield from _iter_roles(counts, qualified_heads, ODD)


def iter_candidate_syntax(counts: SyntaxCounts) -> Iterator[Role]:
    """Yield a role for every head, relation and direction that meets the criterion over all sentences."""
    for qualified_heads in iter_candidate_heads(counts):
        yield from _iter_roles(counts, qualified_heads, ALL)


class QualifiedHeads(NamedTuple):
    """The heads that meet the criterion for a row of the tables and a direction, with intervals of their accuracies."""

    direction: int
    row: int
    heads: Mapping[int, Interval]


def iter_suggested_heads(counts: CorrectCounts) -> Iterator[QualifiedHeads]:
    """Yield the heads of :func:`iter_suggested_syntax`."""
    for row in list_named_rows(counts.relations):
        accuracies = compute_share(counts.correct_by_row[0, :, row], counts.gold.n[0, :, row, None])
        best_direction = np.nan_to_num(accuracies, nan=-1).argmax(axis=0)  # on the even sentences, [head]
        for direction in range(len(DIRECTIONS)):
            gaining_heads = [
                head for head in _list_gaining_heads(counts, direction, row, EVEN) if best_direction[head] == direction
            ]
            yield _select_qualified(counts, direction, row, gaining_heads, ODD)


def iter_candidate_heads(counts: CorrectCounts) -> Iterator[QualifiedHeads]:
    """Yield the heads of :func:`iter_candidate_syntax`."""
    for row in list_named_rows(counts.relations):
        for direction in range(len(DIRECTIONS)):
            yield _select_qualified(counts, direction, row, _list_gaining_heads(counts, direction, row, ALL), ALL)


def make_detail(relations: Relations, direction: int, row: int) -> str:
    """Return the detail of a role of syntax, such as "nsubj dep_to_head"."""
    return f"{relations.rows[row].relation} {DIRECTIONS[direction]}"


def list_named_rows(relations: Relations) -> list[int]:
    """Return the rows that can name roles, without punctuation.

    Of relations with the same cases, the shorter name is used.
    """
    rows = [(number, row) for number, row in enumerate(relations.rows) if strip_subtype(row.relation) != "punct"]
    return [number for number, row in rows if row.level == "base" or (row.level == "full" and ":" in row.relation)]


def _list_gaining_heads(counts: CorrectCounts, direction: int, row: int, halves: slice) -> list[int]:
    """Return the heads that beat the best fixed offset by ten points."""
    n = counts.gold.n[halves, direction, row].sum()
    offset = counts.gold.offset[halves, direction, row].sum(axis=0).max()
    correct = counts.correct_by_row[halves, direction, row].sum(axis=0)
    return [head for head, right in enumerate(correct.tolist()) if _has_gain(right, offset, n)]


def _select_qualified(
    counts: CorrectCounts, direction: int, row: int, heads: Sequence[int], halves: slice
) -> QualifiedHeads:
    """Select the heads whose interval lies ten points or more above the best fixed offset."""
    n = int(counts.gold.n[halves, direction, row].sum())
    if not heads or n < MIN_CASES:
        return QualifiedHeads(direction, row, {})
    bounds = counts.interval(direction, row, halves)
    offset = find_best_offset(counts.gold.offset[halves, direction, row].sum(axis=0))[1] / n
    intervals = {head: Interval(*map(float, bounds[:, head])) for head in heads}
    return QualifiedHeads(
        direction,
        row,
        {head: interval for head, interval in intervals.items() if interval.low - offset >= MIN_GAIN - ROUNDING},
    )


def _iter_roles(counts: SyntaxCounts, qualified: QualifiedHeads, halves: slice) -> Iterator[Role]:
    """Yield the roles of heads that meet the criterion."""
    direction, row, heads = qualified
    if not heads:
        return
    n = int(counts.gold.n[halves, direction, row].sum())
    offset = find_best_offset(counts.gold.offset[halves, direction, row].sum(axis=0))[1] / n
    rule, rule_correct = counts.rule(direction, row), int(counts.rule_correct[:, halves, direction, row].sum())
    documents = counts.documents_with_cases(direction, row, halves)
    untrained = math.nan
    if counts.untrained is not None:
        untrained = int(counts.untrained[halves, direction, row].sum(axis=0).max()) / n
    choices = counts.measure_choices(direction, counts.relations.find_base(row))
    rule_bounds = counts.compare_with_rule(direction, row, halves)
    detail = make_detail(counts.relations, direction, row)
    for head, interval in heads.items():
        correct = int(counts.correct_by_row[halves, direction, row, head].sum())
        comparison = Rule(rule.in_words, rule_correct / n, Interval(*map(float, rule_bounds[:, head])))
        yield Role(
            head, "syntax", detail, correct / n, offset, n, interval, comparison, untrained, documents, choices[head]
        )


def iter_coreference_roles(sums: RunningSums, documents: Documents, control: RunningSums | None) -> Iterator[Role]:
    """Yield a role for heads that beat the better baseline by ten points on third-person pronouns.

    Each is compared with the rule of agreement. ``sums`` and ``control`` are the sums of
    :class:`mha_viz.analysis.coreference.Coreference` with trained and untrained weights.
    """
    third_person = TYPES.index(THIRD_PERSON)
    # [document, …]
    n, correct, baseline = (sums[name][:, :, third_person].sum(axis=1) for name in ("n", "correct", "baseline"))
    cases, baseline_right, right = int(n.sum()), int(baseline.sum(axis=0).max()), correct.sum(axis=0)
    if cases < MIN_CASES:
        return
    bounds, rule_correct = documents.interval(correct, n), int(sums["agreement"].sum())
    rule_bounds = documents.compute_net_intervals(*AgreementComparison.from_sums(sums))
    untrained = (
        math.nan if control is None else int(control["correct"][:, :, third_person].sum(axis=(0, 1)).max()) / cases
    )
    for head in (head for head in range(len(right)) if _has_gain(right[head], baseline_right, cases)):
        scores = int(right[head]) / cases, baseline_right / cases, cases
        interval = Interval(*map(float, bounds[:, head]))
        rule = Rule(AGREEMENT, rule_correct / cases, Interval(*map(float, rule_bounds[:, head])))
        yield Role(head, "coreference", THIRD_PERSON, *scores, interval, rule, untrained, count_documents_with_cases(n))


def iter_position_roles(
    sums: RunningSums, document_sums: RunningSums, documents: Documents, control: RunningSums | None = None
) -> Iterator[Role]:
    """Yield the roles of position.

    A head has one if its mean weight on the previous, same or next token is above 0.5, or if its largest weight is
    there in nine rows of ten. The latter is a share with an interval, from ``document_sums``
    (``metrics.count_document_maxima``). The baseline is uniform attention.
    """
    mass, maxima = compute_share(sums["mass"], sums["mass_rows"]), compute_share(sums["maxima"], sums["maxima_rows"])
    uniform = compute_share(sums["even_mass"], sums["mass_rows"])
    for index, (offset, detail) in enumerate(POSITIONS.items()):
        column = OFFSETS.index(offset)
        right, rows = document_sums["maxima"][:, :, index], document_sums["rows"][:, index]
        for head in range(len(mass)):
            if mass[head, column] > MASS_THRESHOLD:
                n = int(sums["mass_rows"][column])
                untrained = _find_best_untrained(control, "mass", "mass_rows", column)
                scores = float(mass[head, column]), float(uniform[column]), n
                yield Role(head, "position", detail, *scores, untrained=untrained)
            elif maxima[head, column] >= MAXIMA_THRESHOLD:
                n = int(sums["maxima_rows"][column])
                untrained = _find_best_untrained(control, "maxima", "maxima_rows", column)
                interval = Interval(*map(float, documents.interval(right[:, [head]], rows)[:, 0]))
                scores = float(maxima[head, column]), float(uniform[column]), n
                yield Role(
                    head, "position", detail, *scores, interval, None, untrained, count_documents_with_cases(rows)
                )


def _find_best_untrained(control: RunningSums | None, total: str, rows: str, column: int) -> float:
    """Return the highest score of an untrained head; NaN if none was measured."""
    return math.nan if control is None else float(compute_share(control[total], control[rows])[:, column].max())


def iter_delimiter_roles(sums: RunningSums, control: RunningSums | None = None) -> Iterator[Role]:
    """Yield the delimiter roles, of heads with more than 0.6 of their attention on a kind of delimiter.

    The kinds are [CLS], [SEP], punctuation and, for heads that have neither [CLS] nor [SEP], both special tokens
    together. The baseline is uniform attention.
    """
    mass, uniform = average_on_delimiters(sums)
    untrained = np.full(len(uniform), np.nan) if control is None else average_on_delimiters(control)[0].max(axis=0)
    is_above = mass > DELIMITER_THRESHOLD  # [head, detail]
    is_above[:, ON_DELIMITERS.index(BOTH)] &= ~is_above[:, :2].any(axis=1)
    for column, detail in enumerate(ON_DELIMITERS):
        for head in np.flatnonzero(is_above[:, column]):
            scores = float(mass[head, column]), float(uniform[column]), int(sums["rows"])
            yield Role(int(head), "delimiter", detail, *scores, untrained=float(untrained[column]))


def iter_broad_roles(sums: RunningSums, control: RunningSums | None = None) -> Iterator[Role]:
    """Yield a role for heads whose normalised entropy is at least 0.78.

    The baseline is the mean of the model's heads.
    """
    normalised = compute_share(sums["normalised"], sums["sentences"])
    untrained = math.nan if control is None else float(compute_share(control["normalised"], control["sentences"]).max())
    for head in np.flatnonzero(normalised >= BROAD_THRESHOLD):
        scores = float(normalised[head]), float(normalised.mean()), int(sums["rows"])
        yield Role(int(head), "broad", "entropy", *scores, untrained=untrained)
