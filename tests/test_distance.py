"""The Jensen–Shannon divergence of heads, compared with numbers computed by hand and an independent formula."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mha_viz.analysis.distance import compute_divergences_from, divergence, entropy, find_nearest_heads
from mha_viz.attention import Attention
from mha_viz.errors import ShapeError
from mha_viz.text import Piece, build_text

SOME = st.lists(st.floats(0.0, 1.0, width=32), min_size=3, max_size=3).filter(lambda row: sum(row) > 0.01)


def rows(*values: list[float]) -> np.ndarray:
    return np.array(values, np.float32)


def test_equal_rows_are_at_no_distance_and_rows_without_a_common_key_at_ln_2() -> None:
    assert divergence(rows([0.5, 0.5]), rows([0.5, 0.5])) == 0
    assert divergence(rows([1, 0]), rows([0, 1])) == pytest.approx(math.log(2))


def test_by_hand() -> None:
    # p = (1, 0), q = (½, ½): the mean is (¾, ¼); H = 0.562335, H(p) = 0, H(q) = 0.693147
    expected = 0.5623351446 - 0.6931471806 / 2
    assert divergence(rows([1, 0]), rows([0.5, 0.5])) == pytest.approx(expected, abs=1e-9)
    # the mean over two rows: the second row agrees
    assert divergence(rows([1, 0], [1, 0]), rows([0.5, 0.5], [1, 0])) == pytest.approx(expected / 2, abs=1e-9)


@given(SOME, SOME)
def test_it_is_half_the_two_kullback_leibler_divergences_to_the_mean(p: list[float], q: list[float]) -> None:
    a, b = (np.array([row], np.float32) / np.float32(sum(row)) for row in (p, q))
    mean = (a.astype(float) + b) / 2
    halves = [
        np.sum(x * np.log(np.where(x > 0, x / np.where(mean > 0, mean, 1), 1)), where=mean > 0)
        for x in (a.astype(float), b.astype(float))
    ]
    assert divergence(a, b) == pytest.approx(sum(halves) / 2, abs=1e-6)
    assert 0 <= divergence(a, b) <= math.log(2) + 1e-6
    assert divergence(a, b) == divergence(b, a)


def test_matrices_of_different_axes_are_refused() -> None:
    with pytest.raises(ShapeError, match="no common rows"):
        divergence(rows([1, 0]), rows([1, 0, 0]))


def random_attention(layers: int, heads: int, n: int) -> Attention:
    weights = np.random.default_rng(3).dirichlet(np.full(n, 0.3), (layers, heads, n)).astype(np.float32)
    text = " ".join("w" * n)
    pieces = [Piece("w", 2 * i, 2 * i + 1, i, 0) for i in range(n)]
    return Attention("random", "", build_text(text, "", pieces), weights)


def test_all_heads_at_once_equal_two_at_a_time() -> None:
    attention = random_attention(2, 3, 7)
    distances = np.stack([compute_divergences_from(attention, head) for head in attention.every_head()])
    flat = attention.weights.reshape(6, 7, 7)
    expected = [[divergence(a, b) for b in flat] for a in flat]
    assert distances == pytest.approx(np.array(expected), abs=1e-6)


def test_the_nearest_heads_leave_the_head_itself_out() -> None:
    distances = np.array([[0, 0.1, 0.3], [0.1, 0, 0.2], [0.3, 0.2, 0]])
    assert find_nearest_heads(distances[0], 0, 5) == [1, 2]
    # two equal heads: the other one comes first, not the head itself
    assert find_nearest_heads(np.zeros(3), 1, 2) == [0, 2]


def test_the_entropy_of_a_row_is_exact_at_its_ends_and_takes_rounding_errors_for_zeros() -> None:
    one, even = np.eye(1, 9, dtype=np.float32)[0], np.full(8, 1 / 8, np.float32)
    assert entropy(one) == 0
    assert entropy(even) == pytest.approx(np.log(8), abs=1e-7)
    below = np.array([0.5, 0.5, -1e-4, 0], np.float32)
    assert entropy(below) == pytest.approx(np.log(2), abs=1e-7)


@pytest.mark.parametrize("shape", [(3, 40_000), (70_000, 3), (2, 5, 7)])
def test_entropies_do_not_depend_on_how_many_rows_are_worked_on_at_a_time(shape: tuple[int, ...]) -> None:
    shares = np.random.default_rng(0).random(shape, dtype=np.float32)
    expected = -(shares.astype(np.float64) * np.log(np.maximum(shares, 1e-30))).sum(axis=-1)
    np.testing.assert_allclose(entropy(shares), expected, rtol=1e-6)
