"""95 % intervals of accuracies and means: by bootstrap over documents, or Wilson's if a corpus names no documents.

The cases of one document are not independent of each other, so whole documents are drawn with replacement. Such draws
vary too little where there are few documents: below MANY documents with a case the interval is the widest of bootstrap,
Student's t over documents and Wilson's of as many independent cases as would vary so; below FEW it is Wilson's of all
cases, and speaks of these documents alone. Wilson's takes its place, too, where every case is right, or none, so that
all draws are alike. For the difference of two accuracies over the same cases, Newcombe's, which is made of Wilson's of
all cases, takes its place; for means, which may be skewed, the bootstrap-t interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.analysis.reduce import Counts, FloatSums

DRAWS, SEED = 2000, 0
LEVELS = (2.5, 97.5)  # percentiles of the draws
Z = 1.959963984540054  # the 97.5 % quantile of the normal distribution
ROUNDING = 1e-9  # a share of a variance; less is the rounding of its sums
CELLS = 16_000_000  # the most counts of all documents; beyond that, some documents are counted and drawn together
FEWEST_BLOCKS = 32
FEW, MANY = 5, 60  # documents
T = (  # 97.5 % quantiles of Student's t for 1 to MANY - 2 degrees of freedom (Fisher & Yates 1963, table III)
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262),
    *(2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093),
    *(2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045),
    *(2.042, 2.040, 2.037, 2.035, 2.032, 2.030, 2.028, 2.026, 2.024, 2.023),
    *(2.021, 2.020, 2.018, 2.017, 2.015, 2.014, 2.013, 2.012, 2.011, 2.010),
    *(2.009, 2.008, 2.007, 2.006, 2.005, 2.004, 2.003, 2.002, 2.002),
)

LowAndHigh = npt.NDArray[np.float64]  # [low and high, head]


class Interval(NamedTuple):
    """A 95 % interval."""

    low: float
    high: float


def wilson(correct: float, n: float) -> Interval:
    """The 95 % interval of a share (Wilson 1927); 0 to 1 if there is no case."""
    if n == 0:
        return Interval(0.0, 1.0)
    share, spread = correct / n, Z * Z / n
    centre = (share + spread / 2) / (1 + spread)
    half = Z / (1 + spread) * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    return Interval(centre - half if correct > 0 else 0.0, centre + half if correct < n else 1.0)


def newcombe(both: int, one: int, other: int, neither: int) -> Interval:
    """The 95 % interval of the difference of two shares of the same cases, ``one`` minus ``other`` (Newcombe 1998,
    Statistics in Medicine 17, 2635–2650, method 10). In this many cases both, one alone, the other alone, or neither is
    right; −1 to 1 if there is no case."""
    n = both + one + other + neither
    if n == 0:
        return Interval(-1.0, 1.0)
    rights = both + one, both + other
    (low, high), (other_low, other_high) = (wilson(right, n) for right in rights)
    share, other_share = (right / n for right in rights)
    alike = both * neither - one * other
    spread = math.sqrt(math.prod(right * (n - right) for right in rights))
    phi = (max(alike - n / 2, 0) if alike > 0 else alike) / spread if spread else 0.0

    def half(of_one: float, of_other: float) -> float:
        return math.sqrt(max(0.0, of_one**2 - 2 * phi * of_one * of_other + of_other**2))

    difference = share - other_share
    return Interval(
        difference - half(share - low, other_high - other_share),
        difference + half(high - share, other_share - other_low),
    )


class Documents:
    """The documents of a corpus: ``numbers`` [sentence], from 0 in the order of the file, and their ``count``. If the
    corpus names no documents, there is one without a name."""

    def __init__(self, names: Sequence[str], most: int | None = None) -> None:
        """``most``: if there are more documents than this, neighbouring ones get the same number."""
        order = {name: number for number, name in enumerate(dict.fromkeys(names))}
        self.numbers = np.array([order[name] for name in names], np.intp)
        self.count = max(1, len(order))
        if most is not None and self.count > most:
            self.numbers, self.count = self.numbers * most // self.count, most

    @classmethod
    def numbered(cls, numbers: Sequence[int], count: int) -> Documents:
        """``count`` documents, with the document ``numbers`` of some sentences."""
        documents = cls(())
        documents.numbers, documents.count = np.array(numbers, np.intp), max(1, count)
        return documents

    @cached_property
    def draws(self) -> FloatSums:
        """[draw, document]: how often each document is drawn; the same draws for the same number of documents."""
        drawn = np.random.default_rng(SEED).integers(0, self.count, (DRAWS, self.count))
        drawn += np.arange(DRAWS)[:, None] * self.count
        counts = np.bincount(drawn.ravel(), minlength=DRAWS * self.count)
        return counts.reshape(DRAWS, self.count).astype(np.float64)

    def interval(self, correct: Counts, n: Counts) -> LowAndHigh:
        """[low and high, head] for the accuracies of heads. ``correct`` [document, head], ``n`` [document]."""
        documents, right = with_cases(n), correct.sum(axis=0)
        of_cases = _wilsons(right, np.full(len(right), n.sum()))
        if documents < FEW:
            return of_cases
        if documents >= MANY:
            return np.where((right == 0) | (right == n.sum()), of_cases, self.drawn(correct, n))
        left_out = _left_out(correct, n)
        as_independent = _as_independent(left_out, int(n.sum()))
        return np.clip(_widest(self.drawn(correct, n), as_independent, _student(left_out)), 0, 1)

    def of_difference(self, outcomes: Counts) -> Interval:
        """The interval of the difference of two accuracies over the same cases, for which the same documents are drawn.
        ``outcomes`` [document, outcome]: in how many cases both are right, the one alone, the other alone, neither."""
        net, n = (outcomes[:, 1] - outcomes[:, 2])[:, None], outcomes.sum(axis=1)
        as_cases = newcombe(*outcomes.sum(axis=0).tolist())
        documents = with_cases(n)
        if documents < FEW or abs(net.sum()) == n.sum():
            return as_cases
        bounds = self.drawn(net, n)
        if documents < MANY:
            bounds = np.clip(_widest(bounds, np.array(as_cases)[:, None], _student(_left_out(net, n))), -1, 1)
        return Interval(*map(float, bounds[:, 0]))

    def of_means(self, sums: FloatSums, n: Counts | FloatSums) -> LowAndHigh:
        """[low and high, column] for the means of values with these ``sums`` [document, column]; NaN if only one
        document has a value. Below MANY documents it is the widest of bootstrap, Student's t and, from FEW documents
        on, bootstrap-t."""
        documents = with_cases(n)
        if documents < 2:
            return np.full((2, sums.shape[1]), np.nan)
        drawn = self.drawn(sums, n)
        if documents >= MANY:
            return drawn
        bounds = _widest(drawn, _student(_left_out(sums, n)))
        return bounds if documents < FEW else _widest(bounds, self._bootstrap_t(sums, n))

    def _bootstrap_t(self, sums: FloatSums, n: Counts | FloatSums) -> LowAndHigh:
        """The bootstrap-t interval (Efron & Tibshirani 1993, section 12.5): how many of its own standard errors the
        mean of each draw lies from that of all documents. A draw of documents that do not vary tells nothing and counts
        as 0. Of skewed values, the mean of a few documents lies below the truth together with its standard error."""
        mean = sums.sum(axis=0) / n.sum()
        deviations = sums - mean * n[:, None]
        draws = self.draws[self.draws @ n > 0]
        drawn = (draws @ n)[:, None]
        shifts = draws @ deviations / drawn  # [draw, column]
        squares = draws @ deviations**2 - 2 * shifts * (draws @ (deviations * n[:, None]))
        variances = (squares + shifts**2 * (draws @ n**2)[:, None]) / drawn**2
        variance = (deviations**2).sum(axis=0) / n.sum() ** 2
        errors = np.sqrt(np.maximum(variances, 0))
        away = np.divide(shifts, errors, out=np.zeros_like(shifts), where=variances > ROUNDING * variance)
        bounds: LowAndHigh = mean - np.sqrt(variance) * np.percentile(away, LEVELS, axis=0)[::-1]
        return bounds

    def drawn(self, sums: FloatSums | Counts, n: Counts | FloatSums) -> LowAndHigh:
        """The percentiles of the means of draws; those without a case are left out."""
        drawn = self.draws @ n  # [draw]
        means = (self.draws @ sums)[drawn > 0] / drawn[drawn > 0, None]
        bounds: LowAndHigh = np.percentile(means, LEVELS, axis=0)
        return bounds


class _LeftOut(NamedTuple):
    """Ratios of sums over documents, how they vary, and Student's t for so many documents."""

    means: FloatSums  # [head]
    variances: FloatSums  # [head]
    t: float


def _left_out(sums: FloatSums | Counts, n: Counts | FloatSums) -> _LeftOut:
    """At least two, at most MANY - 1 documents with a case.

    The variance adds the squared changes of the ratio when one document is left out (Bell & McCaffrey 2002, Survey
    Methodology 28, 169-181): large documents draw the ratio to themselves, so that deviations from it say too little.
    """
    sums, n = sums[n > 0], n[n > 0]
    means = sums.sum(axis=0) / n.sum()
    without = (sums.sum(axis=0) - sums) / (n.sum() - n)[:, None]  # [document, head]
    return _LeftOut(means, ((without - means) ** 2).sum(axis=0), T[len(n) - 2])


def _student(left_out: _LeftOut) -> LowAndHigh:
    """Student's t interval of ratios of sums over documents."""
    half = left_out.t * np.sqrt(left_out.variances)
    return np.array([left_out.means - half, left_out.means + half])


def _as_independent(left_out: _LeftOut, n: int) -> LowAndHigh:
    """Wilson's interval of as many independent cases as would vary so, at most ``n``, times (Z / t)².

    Student's t is symmetric and too short near 0 and 1, where a few documents vary less than the next ones might; the
    number of cases is that of Korn & Graubard 1998 (Survey Methodology 24, 193-201), Wilson's interval of it is among
    those that Franco, Little, Louis & Slud 2019 compare (J. Surv. Stat. Methodol. 7, 334-364). It is ``n`` if documents
    do not vary, or less than independent cases would.
    """
    shares, variances, t = left_out
    alike = np.full(shares.shape, float(n))
    cases = np.minimum(np.divide(shares * (1 - shares), variances, out=alike, where=variances > 0), n) * (Z / t) ** 2
    return _wilsons(shares * cases, cases)


def _wilsons(correct: FloatSums | Counts, n: FloatSums | Counts) -> LowAndHigh:
    """Wilson's interval for each head. ``correct`` and ``n`` [head]."""
    return np.array([wilson(*share) for share in zip(correct.tolist(), n.tolist(), strict=True)], np.float64).T


def _widest(*bounds: LowAndHigh) -> LowAndHigh:
    """The lowest of the lower ends and the highest of the higher ones."""
    return np.array([np.min([low for low, _ in bounds], axis=0), np.max([high for _, high in bounds], axis=0)])


def with_cases(n: Counts | FloatSums) -> int:
    """In how many documents there is a case. ``n`` [document]."""
    return int(np.count_nonzero(n))


def most_documents(cells: int) -> int:
    """How many documents can have separate counts, if each has ``cells`` of them."""
    return max(FEWEST_BLOCKS, CELLS // max(1, cells))
