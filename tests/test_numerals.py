"""Numbers in sentences: one rule for each kind."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mha_viz.numerals import (
    counted,
    decimal,
    duration,
    format_divergence,
    format_done,
    format_small,
    format_weight,
    percent,
    three_digits,
    with_interval,
)


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(-0.064, 2, "−0.06"), (-0.001, 2, "0.00"), (0.0, 2, "0.00"), (1024, 0, "1,024"), (-12345.6, 1, "−12,345.6")],
)
def test_a_negative_number_has_a_minus_sign_and_zero_has_none(value: float, digits: int, text: str) -> None:
    assert decimal(value, digits) == text


def test_a_share_has_one_decimal_and_no_space() -> None:
    assert [percent(share) for share in (0, 0.0123, 0.583, 1, -0.25)] == ["0.0%", "1.2%", "58.3%", "100.0%", "−25.0%"]
    assert [format_divergence(nats) for nats in (0, math.log(2) / 8, math.log(2))] == ["0.0%", "12.5%", "100.0%"]


def test_an_interval_stands_behind_its_number_and_where_there_is_none_nothing_does() -> None:
    assert with_interval(-0.5, -0.75, 0.25, 2) == "−0.50 [−0.75, 0.25]"
    assert with_interval(0.5, 0.25, 0.75, 0, percent) == "50% [25%, 75%]"
    assert with_interval(0.5, math.nan, math.nan, 0, percent) == "50%"


def test_a_weight_has_three_decimals_and_is_zero_only_where_it_is() -> None:
    assert [format_weight(value) for value in (0, 0.0004, 0.0625, 1)] == ["0.000", "<.001", "0.063", "1.000"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.0010449, "0.00104"),
        (-0.0625, "−0.0625"),
        (1.125, "1.13"),
        (0.9996, "1.00"),
        (-12, "−12.0"),
        (123456, "123,000"),
        (2.5e-7, "2.50\u00a0·\u00a010⁻⁷"),
        (4e6, "4.00\u00a0·\u00a010⁶"),
    ],
)
def test_a_number_of_any_size_has_three_significant_digits(value: float, text: str) -> None:
    assert three_digits(value) == text
    assert three_digits(value, signed=True) == ("+" * (value > 0) + text)


def test_a_rounding_error_shows_its_size() -> None:
    assert [format_small(value) for value in (0, 4.8e-7, 0.03)] == ["0", "5\u00a0·\u00a010⁻⁷", "3\u00a0·\u00a010⁻²"]


def test_a_count_agrees_with_its_noun() -> None:
    assert [counted(n, "step") for n in (0, 1, 1500)] == ["0 steps", "1 step", "1,500 steps"]
    assert [counted(n, "study", "studies") for n in (1, 2)] == ["1 study", "2 studies"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "about 1 s"), (9.4, "about 9 s"), (42, "about 40 s"), (89, "about 90 s"), (100, "about 2 min")],
)
def test_an_estimate_is_as_rough_as_it_is_long(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@given(st.floats(-1e6, 1e6), st.integers(0, 6))
def test_no_number_has_a_hyphen_and_each_reads_back(value: float, digits: int) -> None:
    text = decimal(value, digits)
    assert "-" not in text
    assert float(text.replace("−", "-").replace(",", "")) == pytest.approx(value, abs=0.51 * 10**-digits)


def test_what_is_done_is_in_whole_percent() -> None:
    assert [format_done(fraction) for fraction in (0, 0.583, 1)] == ["0%", "58%", "100%"]
