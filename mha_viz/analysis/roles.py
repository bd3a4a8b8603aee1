"""What a head may be called, and on what evidence.

A head is *syntactic* for a relation, or *coreferential*, when it beats its baseline by ten points (Voita et al. 2019)
on sentences that were not used to choose anything: the direction is chosen on the sentences with even numbers, and
the score is that of the odd ones. *Position*, *delimiter* and *broad* heads go by a threshold (Clark et al. 2019,
section 3). One head can have several roles, and most have none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.coreference import TYPES
from mha_viz.analysis.patterns import DELIMITERS, OFFSETS, POSITIONS
from mha_viz.analysis.reduce import Counts, Running
from mha_viz.analysis.syntax import DIRECTIONS, Gold, Relations

GAIN = 0.10  # over the baseline
CASES = 100  # at least, among the sentences that the score is reported on
MASS, SHARE = 0.5, 0.9  # position: mean weight (Clark), share of maxima (Voita)
DELIMITER = 0.6
BROAD = 0.78
ROLES = ("syntax", "coreference", "position", "delimiter", "broad")

Accuracies = npt.NDArray[np.float64]


class Interval(NamedTuple):
    """A 95 % interval."""

    low: float
    high: float


class Role(NamedTuple):
    """One reason to call a head something. ``head`` counts through all layers. ``detail``: "nsubj dep_to_head",
    "third_person", "previous", "sep". ``score`` against ``baseline`` on ``n`` cases; the interval is None where the
    score is no share of cases."""

    head: int
    role: str
    detail: str
    score: float
    baseline: float
    n: int
    interval: Interval | None = None

    @property
    def gain(self) -> float:
        """Score minus baseline."""
        return self.score - self.baseline


class Choice(NamedTuple):
    """The head and direction that do best for a relation on the even sentences, and how they do on the odd ones.

    Counts are pairs (even, odd). ``offset`` and ``upos`` count what the best fixed offset and the best nearest part of
    speech get right of the odd ones."""

    row: int
    direction: int
    head: int
    n: tuple[int, int]
    correct: tuple[int, int]
    offset: int
    upos: int


def wilson(correct: int, n: int) -> Interval:
    """The 95 % interval of a share (Wilson 1927); 0 to 1 without a case."""
    if n == 0:
        return Interval(0.0, 1.0)
    z = 1.959963984540054
    share, spread = correct / n, z * z / n
    centre = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    return Interval(max(0.0, centre - half), min(1.0, centre + half))


def share(correct: npt.ArrayLike, n: npt.ArrayLike) -> Accuracies:
    """``correct / n``, NaN where there is no case."""
    whole = np.asarray(n, np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares: Accuracies = np.asarray(correct, np.float64) / np.where(whole == 0, np.nan, whole)
    return shares


def _gains(correct: int, baseline: int, n: int) -> bool:
    """Ten points over the baseline, counted in whole cases: 60 of 100 against 50 are ten."""
    return n > 0 and round(1 / GAIN) * (int(correct) - int(baseline)) >= int(n)


def choose(relations: Relations, gold: Gold, correct: Counts) -> Iterator[Choice]:
    """The choice of every row that has a case among the even sentences. ``correct`` is [half, direction, row, head]."""
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


def syntactic(relations: Relations, gold: Gold, correct: Counts) -> Iterator[Role]:
    """Every head and relation whose best direction on the even sentences beats the best fixed offset by ten points on
    the odd ones, with the interval above it. Of relations that mean the same cases, the shorter."""
    for at, row in enumerate(relations.rows):
        if row.level == "agg" or (row.level == "full" and ":" not in row.relation):
            continue
        even, odd = (share(correct[half, :, at], gold.n[half, :, at, None]) for half in (0, 1))
        offsets = share(gold.offset[:, :, at].max(axis=2), gold.n[:, :, at])  # [half, direction]
        if np.isnan(even).all():
            continue
        for head, direction in enumerate(np.nanargmax(np.nan_to_num(even, nan=-1), axis=0)):
            n = int(gold.n[1, direction, at])
            interval = wilson(int(correct[1, direction, at, head]), n)
            gains = _gains(correct[1, direction, at, head], gold.offset[1, direction, at].max(), n)
            role = Role(
                head,
                "syntax",
                f"{row.relation} {DIRECTIONS[direction]}",
                float(odd[direction, head]),
                float(offsets[1, direction]),
                n,
                interval,
            )
            if n >= CASES and gains and interval.low > role.baseline:
                yield role


def coreferential(n: Counts, correct: Counts, baseline: Counts) -> Iterator[Role]:
    """Heads that beat the better baseline by ten points on the third-person pronouns of the odd sentences."""
    at = TYPES.index("third_person")
    cases, better = int(n[1, at]), int(baseline[1, at].max())
    for head, right in enumerate(map(int, correct[1, at])):
        if cases >= CASES and _gains(right, better, cases):
            scores = right / cases, better / cases, cases
            yield Role(head, "coreference", "third_person", *scores, wilson(right, cases))


def positional(sums: Running) -> Iterator[Role]:
    """Heads whose mean weight on the previous, same or next token is above 0.5, or whose largest weight lies there in
    nine rows of ten. The baseline is a head that spreads its attention evenly."""
    mass = share(sums["mass"], sums["mass_rows"])
    maxima = share(sums["maxima"], sums["maxima_rows"])
    even = share(sums["even_mass"], sums["mass_rows"])
    for offset, detail in POSITIONS.items():
        at = OFFSETS.index(offset)
        for head in range(len(mass)):
            if mass[head, at] > MASS:
                yield Role(head, "position", detail, float(mass[head, at]), float(even[at]), int(sums["mass_rows"][at]))
            elif maxima[head, at] >= SHARE:
                n = int(sums["maxima_rows"][at])
                interval = wilson(int(sums["maxima"][head, at]), n)
                yield Role(head, "position", detail, float(maxima[head, at]), float(even[at]), n, interval)


def delimiting(sums: Running) -> Iterator[Role]:
    """Heads that give more than 0.6 to [CLS], to [SEP] or to punctuation; evenly spread attention is the baseline."""
    mass, even = share(sums["delimiter"], sums["rows"]), share(sums["even_delimiter"], sums["rows"])
    for at, detail in enumerate(DELIMITERS):
        for head in np.flatnonzero(mass[:, at] > DELIMITER):
            yield Role(int(head), "delimiter", detail, float(mass[head, at]), float(even[at]), int(sums["rows"]))


def broad(sums: Running) -> Iterator[Role]:
    """Heads whose normalised entropy is at least 0.78; the baseline is the mean of the model's heads."""
    normalised = share(sums["normalised"], sums["sentences"])
    for head in np.flatnonzero(normalised >= BROAD):
        yield Role(int(head), "broad", "entropy", float(normalised[head]), float(normalised.mean()), int(sums["rows"]))
