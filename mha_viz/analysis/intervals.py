"""95 % intervals of accuracies and means: by bootstrap over documents, or Wilson's if a corpus names no documents.

The cases of one document are not independent of each other, so whole documents are drawn with replacement. Such draws
vary too little where there are few documents: up to MANY documents with a case the interval is the widest of bootstrap,
Student's t over documents and Wilson's of as many independent cases as would vary so; from there to ENOUGH documents
each end goes evenly from that of the widest to that of the bootstrap, so that one more document never narrows it at
once; below FEW it is Wilson's of all cases, and speaks of these documents alone. Wilson's takes the bootstrap's place,
too, where every case is right, or none, so that all draws are alike. For the difference of two accuracies over the same
cases, Newcombe's, which is made of Wilson's of all cases, takes its place; for means, which may be skewed, the
bootstrap-t interval.
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
FEW, MANY, ENOUGH = 5, 60, 120  # documents
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
        """[low and high, head] for the accuracies of heads. ``correct`` [document, head], ``n`` [document] or
        [document, head]."""
        by_head = _by_head(n)
        right, cases, documents = correct.sum(axis=0), by_head.sum(axis=0), np.count_nonzero(by_head, axis=0)
        of_cases = _wilsons(right, np.broadcast_to(cases, right.shape))
        drawn = np.where((right == 0) | (right == cases), of_cases, self.drawn(correct, n))
        left_out = _left_out(correct, by_head)
        widest = _widest(drawn, _as_independent(left_out, cases), _student(left_out))
        return np.where(documents < FEW, of_cases, np.clip(_between(widest, drawn, documents), 0, 1))

    def of_difference(self, outcomes: Counts) -> Interval:
        """The interval of the difference of two accuracies over the same cases, for which the same documents are drawn.
        ``outcomes`` [document, outcome]: in how many cases both are right, the one alone, the other alone, neither."""
        net, totals = (outcomes[:, 1] - outcomes[:, 2])[:, None], outcomes.sum(axis=0)[:, None]
        return Interval(*map(float, self.of_net(net, outcomes.sum(axis=1), totals)[:, 0]))

    def of_net(self, net: Counts, n: Counts, outcomes: Counts) -> LowAndHigh:
        """[low and high, head] for the differences of two accuracies over the same cases. ``net`` [document, head]: how
        many more cases the one gets right; ``n`` [document] or [document, head]; ``outcomes`` [outcome, head], of all
        documents: in how many cases both are right, the one alone, the other alone, neither."""
        by_head = _by_head(n)
        documents = np.count_nonzero(by_head, axis=0)
        as_cases = np.array([newcombe(*counts) for counts in outcomes.T.tolist()], np.float64).T
        drawn = self.drawn(net, n)
        widest = _widest(drawn, as_cases, _student(_left_out(net, by_head)))
        bounds = np.clip(_between(widest, drawn, documents), -1, 1)
        return np.where((documents < FEW) | (abs(net.sum(axis=0)) == by_head.sum(axis=0)), as_cases, bounds)

    def of_means(self, sums: FloatSums, n: Counts | FloatSums) -> LowAndHigh:
        """[low and high, column] for the means of values with these ``sums`` [document, column]; NaN if only one
        document has a value. The widest is that of bootstrap, Student's t and, from FEW documents on, bootstrap-t."""
        documents = with_cases(n)
        if documents < 2:
            return np.full((2, sums.shape[1]), np.nan)
        drawn = self.drawn(sums, n)
        if documents >= ENOUGH:
            return drawn
        widest = _widest(drawn, _student(_left_out(sums, _by_head(n))))
        if documents >= FEW:
            widest = _widest(widest, self._bootstrap_t(sums, n))
        return _between(widest, drawn, documents)

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
        """The percentiles of the means of draws; those without a case are left out. ``sums`` [document, head], ``n``
        [document] or [document, head]; 0 for a head without any case."""
        drawn = self.draws @ _by_head(n)  # [draw, 1 or head]
        means = np.full((DRAWS, sums.shape[1]), np.nan)
        np.divide(self.draws @ sums, drawn, out=means, where=drawn > 0)
        means[:, ~(drawn > 0).any(axis=0).repeat(means.shape[1] // drawn.shape[1])] = 0
        percentiles = np.nanpercentile if np.isnan(means).any() else np.percentile
        bounds: LowAndHigh = percentiles(means, LEVELS, axis=0)
        return bounds


class _LeftOut(NamedTuple):
    """Ratios of sums over documents, how they vary, and Student's t for so many documents."""

    means: FloatSums  # [head]
    variances: FloatSums  # [head]
    t: FloatSums  # [1 or head]


def _left_out(sums: FloatSums | Counts, n: Counts | FloatSums) -> _LeftOut:
    """``sums`` [document, head], ``n`` [document, 1 or head].

    The variance adds the squared changes of the ratio when one document is left out (Bell & McCaffrey 2002, Survey
    Methodology 28, 169-181): large documents draw the ratio to themselves, so that deviations from it say too little.
    A document without a case changes nothing, nor is anything left without the only one.
    """
    total, cases = sums.sum(axis=0), n.sum(axis=0)
    means = total / np.where(cases == 0, 1, cases)
    without = np.broadcast_to(means, sums.shape).copy()  # [document, head]
    np.divide(total - sums, cases - n, out=without, where=cases - n > 0)
    quantiles = [student_t(max(1, documents - 1)) for documents in np.count_nonzero(n, axis=0).tolist()]
    return _LeftOut(means, ((without - means) ** 2).sum(axis=0), np.array(quantiles))


def student_t(freedom: int) -> float:
    """The 97.5 % quantile of Student's t for these degrees of freedom, 1 or more; beyond the table by the expansion of
    Abramowitz & Stegun 1964, 26.7.5, which is then exact to eight digits."""
    if freedom <= len(T):
        return T[freedom - 1]
    terms = (
        (Z**3 + Z) / 4,
        (5 * Z**5 + 16 * Z**3 + 3 * Z) / 96,
        (3 * Z**7 + 19 * Z**5 + 17 * Z**3 - 15 * Z) / 384,
        (79 * Z**9 + 776 * Z**7 + 1482 * Z**5 - 1920 * Z**3 - 945 * Z) / 92160,
    )
    return Z + sum(term / float(freedom) ** power for power, term in enumerate(terms, 1))


def _student(left_out: _LeftOut) -> LowAndHigh:
    """Student's t interval of ratios of sums over documents."""
    half = left_out.t * np.sqrt(left_out.variances)
    return np.array([left_out.means - half, left_out.means + half])


def _as_independent(left_out: _LeftOut, n: Counts | FloatSums) -> LowAndHigh:
    """Wilson's interval of as many independent cases as would vary so, at most ``n`` [1 or head], times (Z / t)².

    Student's t is symmetric and too short near 0 and 1, where a few documents vary less than the next ones might; the
    number of cases is that of Korn & Graubard 1998 (Survey Methodology 24, 193-201), Wilson's interval of it is among
    those that Franco, Little, Louis & Slud 2019 compare (J. Surv. Stat. Methodol. 7, 334-364). It is ``n`` if documents
    do not vary, or less than independent cases would.
    """
    shares, variances, t = left_out
    alike = np.broadcast_to(n, shares.shape).astype(np.float64)
    cases = np.minimum(np.divide(shares * (1 - shares), variances, out=alike, where=variances > 0), n) * (Z / t) ** 2
    return _wilsons(shares * cases, cases)


def _wilsons(correct: FloatSums | Counts, n: FloatSums | Counts) -> LowAndHigh:
    """Wilson's interval for each head. ``correct`` and ``n`` [head]."""
    return np.array([wilson(*share) for share in zip(correct.tolist(), n.tolist(), strict=True)], np.float64).T


def _widest(*bounds: LowAndHigh) -> LowAndHigh:
    """The lowest of the lower ends and the highest of the higher ones."""
    return np.array([np.min([low for low, _ in bounds], axis=0), np.max([high for _, high in bounds], axis=0)])


def _between(widest: LowAndHigh, drawn: LowAndHigh, documents: Counts | int) -> LowAndHigh:
    """The widest up to MANY documents, the draws from ENOUGH on, and evenly from one to the other in between.
    ``documents`` [1 or head]: how many have a case."""
    share: FloatSums = np.clip((ENOUGH - documents) / (ENOUGH - MANY), 0, 1)
    return share * widest + (1 - share) * drawn


def _by_head(n: Counts | FloatSums) -> Counts | FloatSums:
    """[document, 1 or head]."""
    return n[:, None] if n.ndim == 1 else n


def with_cases(n: Counts | FloatSums) -> int:
    """In how many documents there is a case. ``n`` [document]."""
    return int(np.count_nonzero(n))


def most_documents(cells: int) -> int:
    """How many documents can have separate counts, if each has ``cells`` of them."""
    return max(FEWEST_BLOCKS, CELLS // max(1, cells))
