"""The roles of heads, and the evidence that each of them needs.

A head has a *syntactic* role for a relation and direction if the lower end of the 95 % interval of its accuracy lies
ten points or more above the best fixed offset (Voita et al. 2019, section 5.2.1: ten points), in at least a hundred
cases. It has the role *coreference* if it beats the better baseline by ten points. *Position*, *delimiter* and *broad*
roles have a threshold (Clark et al. 2019, section 3). One head can have several roles, and most have none.

A role whose rule is met over all sentences of a corpus is a candidate; candidates of two corpora are *established*
(:mod:`mha_viz.analysis.established`). One corpus alone *suggests* a role: for syntax, if head and direction gain ten
points on the sentences with even numbers and meet the rule on the odd ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.coreference import AGREEMENT, THIRD_PERSON, TYPES
from mha_viz.analysis.intervals import Documents, Interval, LowAndHigh, with_cases
from mha_viz.analysis.metrics import BOTH, OFFSETS, ON_DELIMITERS, POSITIONS, on_delimiters, share
from mha_viz.analysis.reduce import Counts, Running
from mha_viz.analysis.syntax import DIRECTIONS, SIDES, Gold, Relations, best_offset, best_upos

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
    """The best rule by part of speech for a relation and direction, or agreement for pronouns: its score on a head's
    cases, and whether the head gets more right."""

    name: str
    score: float
    beaten: bool


class Role(NamedTuple):
    """One role of a head. ``head`` counts through all layers. ``detail``: "nsubj dep_to_head", "third_person",
    "previous", "sep". ``score`` against ``baseline`` on ``n`` cases; the interval is None if the score is not a share
    of cases. ``rule`` is for syntax and coreference; ``untrained``: the score of the best untrained head, NaN if none
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

    @property
    def gain(self) -> float:
        """Score minus baseline."""
        return self.score - self.baseline


class Choice(NamedTuple):
    """The head and direction that do best for a relation on the even sentences, and how they do on the odd ones.

    Counts are pairs (even, odd). ``offset`` and ``upos`` count the odd cases that the best fixed offset and the best
    nearest part of speech get right.
    """

    row: int
    direction: int
    head: int
    n: tuple[int, int]
    correct: tuple[int, int]
    offset: int
    upos: int


@dataclass(frozen=True, eq=False)
class SyntaxCounts:
    """How many cases of the relations of a corpus the heads of a model get right.

    ``cases`` [document, half, direction, row]; ``correct`` [document, half, direction, relation, head] by full
    relation; ``untrained`` [half, direction, row, head], None if no untrained model was measured.
    """

    relations: Relations
    gold: Gold
    documents: Documents
    cases: Counts
    correct: npt.NDArray[np.int32]
    untrained: Counts | None = None

    @cached_property
    def by_row(self) -> Counts:
        """[half, direction, row, head]: correct answers of all documents."""
        added = self.correct.sum(axis=0, dtype=np.int64)
        by_row: Counts = np.einsum("hdrk,rt->hdtk", added, self.relations.member)
        return by_row

    @cached_property
    def intervals(self) -> LowAndHigh:
        """[direction, row, low and high, head] over all sentences; NaN if there are too few cases for a role."""
        n = self.gold.n.sum(axis=0)
        bounds = np.full((*n.shape, 2, self.correct.shape[-1]), np.nan)
        for direction, row in np.argwhere(n >= CASES):
            bounds[direction, row] = self.interval(int(direction), int(row), ALL)
        return bounds

    def interval(self, direction: int, row: int, halves: slice) -> LowAndHigh:
        """[low and high, head] of the accuracies in one row of the tables."""
        members = np.flatnonzero(self.relations.member[:, row])
        correct = self.correct[:, halves, direction][:, :, members].sum(axis=(1, 2), dtype=np.int64)
        return self.documents.interval(correct, self.cases[:, halves, direction, row].sum(axis=1))

    def documents_with_cases(self, direction: int, row: int, halves: slice) -> int:
        """How many documents the cases of one row of the tables come from."""
        return with_cases(self.cases[:, halves, direction, row].sum(axis=1))


def _gains(correct: int, baseline: int, n: int) -> bool:
    """Whether the gain is ten points over the baseline, counted in whole cases: 60 of 100 against 50 are ten."""
    return n > 0 and round(1 / GAIN) * (int(correct) - int(baseline)) >= int(n)


def choose(relations: Relations, gold: Gold, correct: Counts) -> Iterator[Choice]:
    """The choice for every row that has a case among the even sentences. ``correct`` is [half, direction, row,
    head]."""
    for at in range(len(relations.rows)):
        even = share(correct[0, :, at], gold.n[0, :, at, None])  # [direction, head]
        if np.isnan(even).all():
            continue
        direction, head = np.unravel_index(np.nanargmax(even), even.shape)
        yield Choice(
            at,
            int(direction),
            int(head),
            (int(gold.n[0, direction, at]), int(gold.n[1, direction, at])),
            (int(correct[0, direction, at, head]), int(correct[1, direction, at, head])),
            int(gold.offset[1, direction, at].max(initial=0)),
            int(gold.upos[1, direction, at].max(initial=0)),
        )


def suggested_syntax(counts: SyntaxCounts) -> Iterator[Role]:
    """For every head and relation the direction with the best score on the even sentences, if it gains ten points there
    and meets the rule on the odd ones."""
    for at in named_rows(counts.relations):
        even = share(counts.by_row[0, :, at], counts.gold.n[0, :, at, None])  # [direction, head]
        best = np.nan_to_num(even, nan=-1).argmax(axis=0)
        for direction in range(len(DIRECTIONS)):
            chosen = [head for head in _gaining(counts, direction, at, EVEN) if best[head] == direction]
            yield from _meeting(counts, direction, at, chosen, ODD)


def candidate_syntax(counts: SyntaxCounts) -> Iterator[Role]:
    """Every head, relation and direction that meets the rule over all sentences."""
    for at in named_rows(counts.relations):
        for direction in range(len(DIRECTIONS)):
            yield from _meeting(counts, direction, at, _gaining(counts, direction, at, ALL), ALL)


def named_rows(relations: Relations) -> list[int]:
    """The rows after which roles are named: among relations with the same cases, the shorter name."""
    rows = enumerate(relations.rows)
    return [at for at, row in rows if row.level == "base" or (row.level == "full" and ":" in row.relation)]


def _gaining(counts: SyntaxCounts, direction: int, at: int, halves: slice) -> list[int]:
    """The heads that beat the best fixed offset by ten points."""
    n, offset = counts.gold.n[halves, direction, at].sum(), counts.gold.offset[halves, direction, at].sum(axis=0).max()
    correct = counts.by_row[halves, direction, at].sum(axis=0)
    return [head for head, right in enumerate(correct.tolist()) if _gains(right, offset, n)]


def _meeting(counts: SyntaxCounts, direction: int, at: int, heads: Sequence[int], halves: slice) -> Iterator[Role]:
    """Those of the heads whose interval is ten points or more above the best fixed offset."""
    n = int(counts.gold.n[halves, direction, at].sum())
    if not heads or n < CASES:
        return
    bounds = counts.interval(direction, at, halves)
    offset = best_offset(counts.gold.offset[halves, direction, at].sum(axis=0))[1] / n
    side, tag, right_by_rule = best_upos(counts.gold.upos[halves, direction, at].sum(axis=0))
    name = f"nearest {counts.relations.upos[tag]} to the {SIDES[side]}"
    detail = f"{counts.relations.rows[at].relation} {DIRECTIONS[direction]}"
    documents = counts.documents_with_cases(direction, at, halves)
    untrained = math.nan
    if counts.untrained is not None:
        untrained = int(counts.untrained[halves, direction, at].sum(axis=0).max()) / n
    for head in heads:
        interval = Interval(*map(float, bounds[:, head]))
        if interval.low - offset >= GAIN - ROUNDING:
            right = int(counts.by_row[halves, direction, at, head].sum())
            rule = Rule(name, right_by_rule / n, right > right_by_rule)
            yield Role(head, "syntax", detail, right / n, offset, n, interval, rule, untrained, documents)


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
    untrained = math.nan if control is None else int(control["correct"][:, :, at].sum(axis=(0, 1)).max()) / cases
    for head in (head for head in range(len(right)) if _gains(right[head], better, cases)):
        scores = int(right[head]) / cases, better / cases, cases
        interval = Interval(*map(float, bounds[:, head]))
        rule = Rule(AGREEMENT, by_rule / cases, bool(right[head] > by_rule))
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
