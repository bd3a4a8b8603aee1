"""95 % intervals: Wilson's as published, and the bootstrap over documents with numbers computed by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mha_viz.analysis.intervals import DRAWS, FEW, MANY, Documents, most_documents, wilson
from tests import brute, lanes


@pytest.mark.parametrize(
    ("correct", "n", "low", "high"),
    [  # Newcombe 1998, Statistics in Medicine 17: 857-872, table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_the_interval_is_wilsons_as_published(correct: int, n: int, low: float, high: float) -> None:
    assert wilson(correct, n) == pytest.approx((low, high), abs=5e-5)


def test_without_a_case_anything_is_possible() -> None:
    assert wilson(0, 0) == (0, 1)


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_holds_the_share_and_mirrors(case: tuple[int, int]) -> None:
    correct, n = case
    low, high = wilson(correct, n)
    assert 0 <= low <= correct / n + 1e-12
    assert correct / n - 1e-12 <= high <= 1
    assert (1 - high, 1 - low) == pytest.approx(wilson(n - correct, n))
    assert (low, high) == pytest.approx(brute.wilson(correct, n), abs=1e-12)


# ---- Documents -------------------------------------------------------------------------------------------------------


def test_documents_are_numbered_in_the_order_of_the_file() -> None:
    documents = Documents(["b", "b", "a", "b"])
    assert (documents.numbers.tolist(), documents.count) == ([0, 0, 1, 0], 2)
    assert Documents([]).count == 1


def test_with_more_than_can_be_held_neighbouring_documents_are_one() -> None:
    documents = Documents(list("abcdefg"), most=3)
    assert (documents.numbers.tolist(), documents.count) == ([0, 0, 0, 1, 1, 2, 2], 3)
    assert Documents(list("abc"), most=3).count == 3
    assert [most_documents(cells) for cells in (10**6, 1000)] == [32, 16_000]


def test_every_draw_has_as_many_documents_as_the_corpus() -> None:
    draws = Documents(list("abcde")).draws
    assert draws.shape == (2000, 5) == (DRAWS, 5)
    assert (draws.sum(axis=1) == 5).all()
    assert draws.mean(axis=0) == pytest.approx([1] * 5, abs=0.1)


def test_a_corpus_without_documents_has_wilsons_interval() -> None:
    bounds = Documents([""] * 9).interval(np.array([[60, 50]]), np.array([100]))
    assert bounds.T.tolist() == [pytest.approx(wilson(60, 100)), pytest.approx(wilson(50, 100))]


def test_documents_that_agree_leave_no_doubt_and_those_that_differ_leave_some() -> None:
    documents = Documents([str(number) for number in range(60)])
    even = documents.interval(np.full((60, 1), 25), np.full(60, 50))
    assert even[:, 0].tolist() == [0.5, 0.5]
    # always right in half of the documents, never in the others: the share of draws is binomial(60, 1/2) / 60
    apart = documents.interval(np.array([50, 0] * 30)[:, None], np.full(60, 50))
    assert apart[:, 0] == pytest.approx([0.37, 0.63], abs=0.02)


def test_below_sixty_documents_the_interval_is_the_widest_of_three() -> None:
    right, n = np.array([12, 30, 25, 18, 27]), np.full(5, 40)
    documents = Documents(list("abcde"))
    low, high = documents.interval(right[:, None], n)[:, 0]
    shares = right / n
    half = 2.776 * shares.std(ddof=1) / math.sqrt(4)  # of documents of one size, each left out once
    assert (low, high) == pytest.approx((shares.mean() - half, shares.mean() + half))
    assert low < wilson(112, 200).low
    assert low < brute.bootstrap([*zip(right.tolist(), n.tolist(), strict=True)])[0]
    alike = documents.interval(np.full((5, 1), 20), n)
    assert alike[:, 0] == pytest.approx(wilson(100, 200))  # documents that agree by chance do not leave no doubt
    sure = documents.interval(np.array([[40], [40], [40], [40], [20]]), n)
    assert sure[1, 0] == 1  # of shares, none above 1


def test_student_s_variance_is_that_of_leaving_one_document_out() -> None:
    right, n = np.array([8, 30, 9, 22, 4, 60]), np.array([10, 60, 30, 25, 20, 70])
    share = right.sum() / n.sum()
    others = [(right.sum() - right[at]) / (n.sum() - n[at]) for at in range(6)]
    half = 2.571 * math.sqrt(sum((other - share) ** 2 for other in others))
    low, high = Documents(list("abcdef")).of_means(right[:, None].astype(float), n)[:, 0]
    assert (low, high) == pytest.approx((share - half, share + half))


@pytest.mark.parametrize("with_case", [0, 1, 4])
def test_few_documents_have_wilsons_interval(with_case: int) -> None:
    n = np.array([25] * with_case + [0] * (30 - with_case))
    bounds = Documents([str(number) for number in range(30)]).interval((n // 5)[:, None], n)
    assert bounds[:, 0] == pytest.approx(wilson(5 * with_case, 25 * with_case))


def test_a_mean_over_one_document_has_no_interval() -> None:
    assert np.isnan(Documents(list("ab")).of_means(np.array([[7.0], [0.0]]), np.array([3, 0]))).all()
    low, high = Documents(list("ab")).of_means(np.array([[2.0], [4.0]]), np.array([1, 1]))[:, 0]
    assert (low, high) == pytest.approx((3 - 12.706 * math.sqrt(2), 3 + 12.706 * math.sqrt(2)))


@pytest.mark.parametrize("documents", lanes.some(range(FEW, 81), 5, 6, 7, 9, 14, 30, MANY - 1, MANY))
def test_the_intervals_hold_the_truth_in_93_of_100_corpora(documents: int) -> None:
    """Documents of unequal size, each with its own accuracy around 0.6, more and less alike."""
    random, held = np.random.default_rng(documents), []
    for alike in [1, 2.5] * 15:  # corpora, each with 100 heads
        n = random.integers(10, 120, documents)
        right = random.binomial(n[:, None], random.beta(2.4 * alike, 1.6 * alike, (documents, 100)))
        low, high = Documents([str(number) for number in range(documents)]).interval(right, n)
        held += ((low <= 0.6) & (high >= 0.6)).tolist()
    assert np.mean(held) >= 0.93


def test_the_bounds_are_those_of_all_draws_that_there_can_be() -> None:
    right, n = np.array([3, 9, 4]), np.array([10, 10, 20])
    drawn = list(itertools.product(range(3), repeat=3))
    accuracies = sorted(right[list(d)].sum() / n[list(d)].sum() for d in drawn)
    # 27 draws: 9, 9, 9 (0.9) and 4, 4, 4 (0.2) come up once in 27, more often than the 2.5 % that are cut off
    assert (accuracies[0], accuracies[-1]) == (0.2, 0.9)
    low, high = Documents(list("abc")).drawn(right[:, None], n)[:, 0]
    assert (low, high) == pytest.approx((0.2, 0.9))


def test_a_draw_without_a_case_is_left_out() -> None:
    bounds = Documents(list("ab")).drawn(np.array([[7], [0]]), np.array([10, 0]))
    assert bounds[:, 0].tolist() == [0.7, 0.7]


@settings(max_examples=10)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=2, max_size=6))
def test_the_draws_are_those_of_the_plain_loops(counts: list[tuple[int, int]]) -> None:
    cases = [(min(right, n), n) for right, n in counts]
    bounds = Documents([str(i) for i in range(len(cases))]).drawn(
        np.array([[right] for right, _ in cases]), np.array([n for _, n in cases])
    )
    assert bounds[:, 0] == pytest.approx(brute.bootstrap(cases), abs=1e-12)
