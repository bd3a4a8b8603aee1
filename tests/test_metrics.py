"""Numbers per head, compared with values computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mha_viz.analysis import metrics
from mha_viz.analysis.metrics import METRICS, compute_mass_at, measure_all
from mha_viz.attention import Attention, Weights, tensors
from mha_viz.text import Token, TokenizedText
from tests.readings import reading

# Rows and columns: [CLS] a . [SEP]
BY_HAND = [
    [0.500, 0.250, 0.125, 0.125],
    [0.250, 0.500, 0.250, 0.000],
    [0.125, 0.625, 0.125, 0.125],
    [0.000, 0.000, 0.500, 0.500],
]
LN2 = math.log(2)
EXPECTED = {
    "previous": (0.250 + 0.625) / 2,  # a → [CLS], . → a
    "following": (0.250 + 0.125) / 2,  # a → ., . → [SEP]
    "same": (0.500 + 0.125) / 2,
    "cls": (0.500 + 0.250 + 0.125 + 0.000) / 4,
    "sep": (0.125 + 0.000 + 0.125 + 0.500) / 4,
    "punctuation": (0.125 + 0.250 + 0.125 + 0.500) / 4,
    "entropy": (1.75 * LN2 + 1.5 * LN2 + (1.125 * LN2 + 0.625 * math.log(1.6)) + LN2) / 4,
}


def read(weights: object, *tokens: str) -> Attention:
    """Weights over ``tokens``; those in square brackets are special, the others are words of one piece."""
    made, start = [], 0
    for i, text in enumerate(tokens):
        special = text.startswith("[")
        span = (None, None) if special else (start, start + len(text))
        made.append(Token(text, None if special else i, 0, *span))
        start += 0 if special else len(text) + 1
    typed = " ".join(t for t in tokens if not t.startswith("["))
    return Attention("tiny", "", TokenizedText(typed, "", tuple(made)), np.array(weights, np.float32))


def uniform(n: int) -> Weights:
    return np.full((1, 1, n, n), 1 / n, np.float32)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_matrix_of_four_tokens(name: str) -> None:
    attention = read([[BY_HAND, np.eye(4)]], "[CLS]", "a", ".", "[SEP]")
    measured = METRICS[name].measure(attention)
    assert measured.shape == (1, 2)
    assert measured[0, 0] == pytest.approx(EXPECTED[name], abs=1e-7)


def test_all_of_them_are_checked_by_hand() -> None:
    assert set(METRICS) == set(EXPECTED)


def test_a_head_that_only_looks_at_itself() -> None:
    values = {k: float(v[0, 0]) for k, v in measure_all(read([[np.eye(4)]], "[CLS]", "a", ".", "[SEP]")).items()}
    expected = {"previous": 0.0, "following": 0.0, "same": 1.0, "cls": 0.25, "sep": 0.25, "punctuation": 0.25}
    assert values == expected | {"entropy": 0.0}
    assert math.copysign(1, values["entropy"]) == 1  # -0.00 nats on screen would look odd


def test_a_head_that_looks_everywhere() -> None:
    values = measure_all(read(uniform(4), "[CLS]", "a", "b", "[SEP]"))
    assert values["entropy"][0, 0] == pytest.approx(math.log(4), abs=1e-6)
    assert values["punctuation"][0, 0] == 0.0
    assert values["same"][0, 0] == pytest.approx(0.25)


def test_entropy_is_the_same_however_many_cores_take_part(monkeypatch: pytest.MonkeyPatch) -> None:
    attention = reading(3, 5, (2, 1, 3))
    alone = metrics.entropy(attention)
    monkeypatch.setattr(tensors, "MIN_PARALLEL_WEIGHTS", 0)
    assert np.array_equal(metrics.entropy(attention), alone)


def test_rows_of_special_tokens_count_for_delimiters_but_not_for_positions() -> None:
    weights = np.zeros((1, 1, 3, 3), np.float32)
    weights[0, 0] = [[0, 1, 0], [0, 0, 1], [0, 1, 0]]  # [CLS] → a, a → [SEP], [SEP] → a
    values = measure_all(read(weights, "[CLS]", "a", "[SEP]"))
    assert values["following"][0, 0] == 1.0  # only the row of a
    assert values["previous"][0, 0] == 0.0  # [SEP] → a is not counted
    assert values["sep"][0, 0] == pytest.approx(1 / 3)


def test_without_delimiters_nothing_lies_on_them() -> None:
    values = measure_all(read(uniform(3), "a", "b", "c"))
    assert values["cls"][0, 0] == values["sep"][0, 0] == 0.0
    assert values["previous"][0, 0] == pytest.approx(1 / 3)


def test_what_cannot_be_measured_is_not_a_number_and_never_zero() -> None:
    alone = read(uniform(1), "a")
    assert np.isnan(measure_all(alone)["previous"]).all()
    assert np.isnan(measure_all(alone)["following"]).all()
    assert measure_all(alone)["same"][0, 0] == 1.0
    only_special = measure_all(read(uniform(2), "[CLS]", "[SEP]"))
    assert np.isnan(only_special["same"]).all()


def test_a_piece_of_punctuation_is_punctuation_only() -> None:
    weights = np.zeros((1, 1, 3, 3), np.float32)
    weights[..., 1] = 1
    assert measure_all(read(weights, "a", "...", "b"))["punctuation"][0, 0] == 1.0
    assert measure_all(read(weights, "a", "it's", "b"))["punctuation"][0, 0] == 0.0


def test_the_axes_are_layer_and_head() -> None:
    weights = np.empty((2, 3, 4, 4), np.float32)
    weights[:] = np.eye(4)
    weights[1, 2] = BY_HAND
    values = measure_all(read(weights, "[CLS]", "a", ".", "[SEP]"))
    for name, value in values.items():
        assert value.shape == (2, 3), name
        assert value[1, 2] == pytest.approx(EXPECTED[name], abs=1e-7), name
    assert np.array_equal(values["same"] == 1.0, [[True] * 3, [True, True, False]])


@given(st.integers(1, 12), st.integers(-15, 15), st.integers(0, 2**32 - 1))
def test_mass_at_an_offset_is_the_mean_of_that_diagonal(n: int, offset: int, seed: int) -> None:
    weights = np.random.default_rng(seed).dirichlet(np.full(n, 0.5), (2, 2, n)).astype(np.float32)
    diagonal = np.diagonal(weights.astype(float), offset, axis1=2, axis2=3)
    measured = compute_mass_at(read(weights, *["a"] * n), offset)
    if abs(offset) >= n:
        assert np.isnan(measured).all()
    else:
        np.testing.assert_allclose(measured, diagonal.mean(axis=-1), atol=1e-6)


@given(st.integers(1, 20), st.integers(0, 2**32 - 1), st.sampled_from([0.01, 0.3, 5.0]))
def test_shares_lie_between_nothing_and_everything(n: int, seed: int, spread: float) -> None:
    weights = np.random.default_rng(seed).dirichlet(np.full(n + 2, spread), (2, 2, n + 2)).astype(np.float32)
    attention = read(weights, "[CLS]", *["a", "."] * (n // 2), *["b"] * (n % 2), "[SEP]")
    for name, values in measure_all(attention).items():
        top = math.log(n + 2) if METRICS[name].unit == "nats" else 1.0
        numbers = values[~np.isnan(values)]
        assert ((numbers >= 0) & (numbers <= top + 1e-5)).all(), name


def test_each_says_what_it_is() -> None:
    for name, metric in METRICS.items():
        assert metric.name == name
        assert metric.label
        assert metric.unit in ("share", "nats")
        assert metric.help.endswith(".")
        assert "\n\n" not in metric.help


def test_the_table_is_read_only() -> None:
    with pytest.raises(TypeError):
        METRICS["mine"] = METRICS["same"]  # type: ignore[index]
