"""95 % intervals of accuracies and means, by a bootstrap over documents, or Wilson's if a corpus names no documents.

The cases of one document are not independent of each other, so whole documents are drawn with replacement. Such draws
vary too little if there are few documents. The interval therefore depends on the number of documents with a case:

* fewer than FEW: Wilson's interval of all cases, which holds for these documents only;
* up to MANY: the widest of the bootstrap, Student's t over documents, and Wilson's interval for the number of
  independent cases that would vary equally;
* from MANY to ENOUGH: each end moves linearly from the widest interval to the bootstrap interval, so that one more
  document never narrows the interval abruptly;
* ENOUGH or more: the bootstrap.

If every case is right, or none, all draws are equal, and Wilson's interval replaces the bootstrap. For the difference
of two accuracies over the same cases, Newcombe's interval, which is computed from Wilson's of all cases, takes the
place of Wilson's; for means, which may be skewed, the bootstrap-t interval does.
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
ROUNDING = 1e-9  # relative to a variance; anything smaller is rounding error
CELLS = 16_000_000  # maximum number of counts over all documents; beyond that, documents are merged into blocks
FEWEST_BLOCKS = 32  # minimum number of documents, or of blocks of them, that are counted separately
FEW, MANY, ENOUGH = 5, 60, 120  # numbers of documents at which the method changes, as described above
T_QUANTILES = (  # 97.5 % quantiles of Student's t for 1 to MANY - 2 degrees of freedom (Fisher & Yates 1963, table III)
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262),
    *(2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093),
    *(2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045),
    *(2.042, 2.040, 2.037, 2.035, 2.032, 2.030, 2.028, 2.026, 2.024, 2.023),
    *(2.021, 2.020, 2.018, 2.017, 2.015, 2.014, 2.013, 2.012, 2.011, 2.010),
    *(2.009, 2.008, 2.007, 2.006, 2.005, 2.004, 2.003, 2.002, 2.002),
)

IntervalBounds = npt.NDArray[np.float64]  # [low and high, head]


class Interval(NamedTuple):
    """A 95 % interval."""

    low: float
    high: float


def wilson_interval(correct: float, n: float) -> Interval:
    """Return the 95 % interval of a share (Wilson 1927); 0 to 1 if there is no case."""
    if n == 0:
        return Interval(0.0, 1.0)
    share, spread = correct / n, Z * Z / n
    centre = (share + spread / 2) / (1 + spread)
    half_width = Z / (1 + spread) * math.sqrt(share * (1 - share) / n + spread / (4 * n))
    return Interval(centre - half_width if correct > 0 else 0.0, centre + half_width if correct < n else 1.0)


def newcombe_interval(both: int, first_only: int, second_only: int, neither: int) -> Interval:
    """Return the 95 % interval of the difference of two shares of the same cases, the first minus the second.

    The arguments are the numbers of cases in which both are right, only the first, only the second, or neither. The
    interval is −1 to 1 if there is no case. See Newcombe 1998, Statistics in Medicine 17, 2635–2650, method 10.
    """
    n = both + first_only + second_only + neither
    if n == 0:
        return Interval(-1.0, 1.0)
    correct_counts = both + first_only, both + second_only
    (low, high), (other_low, other_high) = (wilson_interval(right, n) for right in correct_counts)
    share, other_share = (right / n for right in correct_counts)
    association = both * neither - first_only * second_only
    spread = math.sqrt(math.prod(right * (n - right) for right in correct_counts))
    phi = (max(association - n / 2, 0) if association > 0 else association) / spread if spread else 0.0

    def half_width(first: float, second: float) -> float:
        """Return the width of one side of the interval, from the one-sided widths of the intervals of both shares."""
        return math.sqrt(max(0.0, first**2 - 2 * phi * first * second + second**2))

    difference = share - other_share
    return Interval(
        difference - half_width(share - low, other_high - other_share),
        difference + half_width(high - share, other_share - other_low),
    )


class Documents:
    """The documents of a corpus, and intervals from resampling them.

    ``numbers`` [sentence] are the documents of the sentences, counted from 0 in the order of the file; ``count`` is
    their number. A corpus that names no documents has one without a name.
    """

    def __init__(self, names: Sequence[str], max_count: int | None = None) -> None:
        """Number the documents. If there are more than ``max_count``, neighbours get the same number."""
        order = {name: number for number, name in enumerate(dict.fromkeys(names))}
        self.numbers = np.array([order[name] for name in names], np.intp)
        self.count = max(1, len(order))
        if max_count is not None and self.count > max_count:
            self.numbers, self.count = self.numbers * max_count // self.count, max_count

    @classmethod
    def from_numbers(cls, numbers: Sequence[int], count: int) -> Documents:
        """Return ``count`` documents, with the document ``numbers`` of some sentences."""
        documents = cls(())
        documents.numbers, documents.count = np.array(numbers, np.intp), max(1, count)
        return documents

    @cached_property
    def draws(self) -> FloatSums:
        """[draw, document]: how often each document is drawn. Equal numbers of documents have equal draws."""
        draws = np.random.default_rng(SEED).integers(0, self.count, (DRAWS, self.count))
        draws += np.arange(DRAWS)[:, None] * self.count
        counts = np.bincount(draws.ravel(), minlength=DRAWS * self.count)
        return counts.reshape(DRAWS, self.count).astype(np.float64)

    def interval(self, correct: Counts, n: Counts) -> IntervalBounds:
        """Return [low and high, head], the intervals of the accuracies of heads.

        ``correct`` is [document, head]; ``n`` is [document] or [document, head].
        """
        head_counts = _add_head_axis(n)
        right, cases, documents = correct.sum(axis=0), head_counts.sum(axis=0), np.count_nonzero(head_counts, axis=0)
        wilson = _compute_wilson_intervals(right, np.broadcast_to(cases, right.shape))
        bootstrap = np.where((right == 0) | (right == cases), wilson, self.bootstrap(correct, n))
        jackknife = _compute_jackknife(correct, head_counts)
        widest = _find_widest(
            bootstrap, _compute_independent_intervals(jackknife, cases), _compute_student_intervals(jackknife)
        )
        return np.where(documents < FEW, wilson, np.clip(_interpolate(widest, bootstrap, documents), 0, 1))

    def compute_difference_interval(self, outcomes: Counts) -> Interval:
        """Return the interval of the difference of two accuracies over the same cases.

        Both are computed from the same draws of documents. ``outcomes`` [document, outcome] are the numbers of cases in
        which both are right, only the first, only the second, or neither.
        """
        net, totals = (outcomes[:, 1] - outcomes[:, 2])[:, None], outcomes.sum(axis=0)[:, None]
        return Interval(*map(float, self.compute_net_intervals(net, outcomes.sum(axis=1), totals)[:, 0]))

    def compute_net_intervals(self, net: Counts, n: Counts, outcomes: Counts) -> IntervalBounds:
        """Return [low and high, head], the intervals of the differences of two accuracies over the same cases.

        Args:
            net: [document, head], the right cases of the first minus those of the second.
            n: [document] or [document, head], the number of cases.
            outcomes: [outcome, head], over all documents: the cases in which both are right, only the first, only the
                second, or neither.
        """
        head_counts = _add_head_axis(n)
        documents = np.count_nonzero(head_counts, axis=0)
        newcombe = np.array([newcombe_interval(*counts) for counts in outcomes.T.tolist()], np.float64).T
        bootstrap = self.bootstrap(net, n)
        widest = _find_widest(bootstrap, newcombe, _compute_student_intervals(_compute_jackknife(net, head_counts)))
        bounds = np.clip(_interpolate(widest, bootstrap, documents), -1, 1)
        return np.where((documents < FEW) | (abs(net.sum(axis=0)) == head_counts.sum(axis=0)), newcombe, bounds)

    def compute_mean_intervals(self, sums: FloatSums, n: Counts | FloatSums) -> IntervalBounds:
        """Return [low and high, column], the intervals of means; NaN if only one document has a value.

        ``sums`` [document, column] are sums of values. The result is the widest of the bootstrap, Student's t and,
        from FEW documents on, the bootstrap-t interval, interpolated as described above.
        """
        documents = count_documents_with_cases(n)
        if documents < 2:
            return np.full((2, sums.shape[1]), np.nan)
        bootstrap = self.bootstrap(sums, n)
        if documents >= ENOUGH:
            return bootstrap
        widest = _find_widest(bootstrap, _compute_student_intervals(_compute_jackknife(sums, _add_head_axis(n))))
        if documents >= FEW:
            widest = _find_widest(widest, self._bootstrap_t(sums, n))
        return _interpolate(widest, bootstrap, documents)

    def _bootstrap_t(self, sums: FloatSums, n: Counts | FloatSums) -> IntervalBounds:
        """Return the bootstrap-t interval (Efron & Tibshirani 1993, section 12.5).

        It is based on the distance of each draw's mean from the mean of all documents, in standard errors of that draw.
        A draw of documents that do not vary says nothing and counts as 0. If values are skewed, the mean of a few
        documents tends to lie below the true mean when its standard error is small, too.
        """
        mean = sums.sum(axis=0) / n.sum()
        deviations = sums - mean * n[:, None]
        draws = self.draws[self.draws @ n > 0]
        drawn_cases = (draws @ n)[:, None]
        shifts = draws @ deviations / drawn_cases  # [draw, column]
        squares = draws @ deviations**2 - 2 * shifts * (draws @ (deviations * n[:, None]))
        variances = (squares + shifts**2 * (draws @ n**2)[:, None]) / drawn_cases**2
        variance = (deviations**2).sum(axis=0) / n.sum() ** 2
        standard_errors = np.sqrt(np.maximum(variances, 0))
        distances = np.divide(shifts, standard_errors, out=np.zeros_like(shifts), where=variances > ROUNDING * variance)
        bounds: IntervalBounds = mean - np.sqrt(variance) * np.percentile(distances, LEVELS, axis=0)[::-1]
        return bounds

    def bootstrap(self, sums: FloatSums | Counts, n: Counts | FloatSums) -> IntervalBounds:
        """Return [low and high, head], the percentiles of the means of draws. Draws without a case are left out.

        ``sums`` is [document, head]; ``n`` is [document] or [document, head]. The result is 0 for a head without any
        case.
        """
        drawn_cases = self.draws @ _add_head_axis(n)  # [draw, 1 or head]
        means = np.full((DRAWS, sums.shape[1]), np.nan)
        np.divide(self.draws @ sums, drawn_cases, out=means, where=drawn_cases > 0)
        means[:, ~(drawn_cases > 0).any(axis=0).repeat(means.shape[1] // drawn_cases.shape[1])] = 0
        percentiles = np.nanpercentile if np.isnan(means).any() else np.percentile
        bounds: IntervalBounds = percentiles(means, LEVELS, axis=0)
        return bounds


class _Jackknife(NamedTuple):
    """Ratios of sums over documents, their jackknife variances, and Student's t for the number of documents."""

    means: FloatSums  # [head]
    variances: FloatSums  # [head]
    t: FloatSums  # [1 or head]


def _compute_jackknife(sums: FloatSums | Counts, n: Counts | FloatSums) -> _Jackknife:
    """Return the ratios of sums with their jackknife variances.

    ``sums`` is [document, head]; ``n`` is [document, 1 or head]. The variance is the sum of squared changes of the
    ratio when one document is left out (Bell & McCaffrey 2002, Survey Methodology 28, 169-181). Large documents pull
    the ratio towards themselves, so plain deviations from it would be too small. Leaving out a document changes nothing
    if it has no case, or if no other has one.
    """
    total, cases = sums.sum(axis=0), n.sum(axis=0)
    means = total / np.where(cases == 0, 1, cases)
    leave_one_out_ratios = np.broadcast_to(means, sums.shape).copy()  # [document, head]
    np.divide(total - sums, cases - n, out=leave_one_out_ratios, where=cases - n > 0)
    quantiles = [student_t(max(1, documents - 1)) for documents in np.count_nonzero(n, axis=0).tolist()]
    return _Jackknife(means, ((leave_one_out_ratios - means) ** 2).sum(axis=0), np.array(quantiles))


def student_t(degrees: int) -> float:
    """Return the 97.5 % quantile of Student's t for this many ``degrees`` of freedom, 1 or more.

    Beyond the table it is computed by the expansion of Abramowitz & Stegun 1964, 26.7.5, which is exact to eight digits
    there.
    """
    if degrees <= len(T_QUANTILES):
        return T_QUANTILES[degrees - 1]
    terms = (
        (Z**3 + Z) / 4,
        (5 * Z**5 + 16 * Z**3 + 3 * Z) / 96,
        (3 * Z**7 + 19 * Z**5 + 17 * Z**3 - 15 * Z) / 384,
        (79 * Z**9 + 776 * Z**7 + 1482 * Z**5 - 1920 * Z**3 - 945 * Z) / 92160,
    )
    return Z + sum(term / float(degrees) ** power for power, term in enumerate(terms, 1))


def _compute_student_intervals(jackknife: _Jackknife) -> IntervalBounds:
    """Return Student's t interval of ratios of sums over documents."""
    half_widths = jackknife.t * np.sqrt(jackknife.variances)
    return np.array([jackknife.means - half_widths, jackknife.means + half_widths])


def _compute_independent_intervals(jackknife: _Jackknife, n: Counts | FloatSums) -> IntervalBounds:
    """Return Wilson's interval for the number of independent cases that would vary as the documents do.

    The number of cases is at most ``n`` [1 or head], times (Z / t)². Student's t is symmetric and too short near 0 and
    1, where a few documents vary less than further documents might. Korn & Graubard 1998 define this number (Survey
    Methodology 24, 193-201); Franco, Little, Louis & Slud 2019 compare Wilson's interval for it with others (J. Surv.
    Stat. Methodol. 7, 334-364). It is ``n`` if documents do not vary, or vary less than independent
    cases would.
    """
    shares, variances, t = jackknife
    case_counts = np.broadcast_to(n, shares.shape).astype(np.float64)
    cases = (
        np.minimum(np.divide(shares * (1 - shares), variances, out=case_counts, where=variances > 0), n) * (Z / t) ** 2
    )
    return _compute_wilson_intervals(shares * cases, cases)


def _compute_wilson_intervals(correct: FloatSums | Counts, n: FloatSums | Counts) -> IntervalBounds:
    """Return Wilson's interval for each head. ``correct`` and ``n`` are [head]."""
    return np.array([wilson_interval(*share) for share in zip(correct.tolist(), n.tolist(), strict=True)], np.float64).T


def _find_widest(*bounds: IntervalBounds) -> IntervalBounds:
    """Return the lowest of the lower ends and the highest of the higher ends."""
    return np.array([np.min([low for low, _ in bounds], axis=0), np.max([high for _, high in bounds], axis=0)])


def _interpolate(widest: IntervalBounds, bootstrap: IntervalBounds, documents: Counts | int) -> IntervalBounds:
    """Interpolate between two intervals: ``widest`` up to MANY documents, ``bootstrap`` from ENOUGH documents on.

    ``documents`` [1 or head] is the number of documents with a case.
    """
    share: FloatSums = np.clip((ENOUGH - documents) / (ENOUGH - MANY), 0, 1)
    return share * widest + (1 - share) * bootstrap


def _add_head_axis(n: Counts | FloatSums) -> Counts | FloatSums:
    """Return counts as [document, 1 or head]."""
    return n[:, None] if n.ndim == 1 else n


def count_documents_with_cases(n: Counts | FloatSums) -> int:
    """Return the number of documents with a case. ``n`` is [document]."""
    return int(np.count_nonzero(n))


def count_separate_documents(cells: int) -> int:
    """Compute the number of documents that can be counted separately if each has ``cells`` counts."""
    return max(FEWEST_BLOCKS, CELLS // max(1, cells))
