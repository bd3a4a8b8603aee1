"""p-values and q-values, worked out by hand."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mha_viz.analysis.bundled_data import establish
from mha_viz.analysis.intervals import newcombe_interval, wilson_interval
from mha_viz.analysis.profile import HEADINGS, Profile, read_profile
from mha_viz.analysis.q_values import binomial_tail, collect_tests, q_values
from mha_viz.files.assets import asset_path

LOG_FACTORIALS = np.array([math.lgamma(number + 1) for number in range(2001)])
PLAIN = wilson_interval(60, 100)
WIDE = {"role_low": PLAIN.low - (PLAIN.high - PLAIN.low) / 2, "role_high": PLAIN.high + (PLAIN.high - PLAIN.low) / 2}


def by_fractions(correct: int, n: int, share: Fraction) -> Fraction:
    return sum((math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(correct, n + 1)), Fraction(0))


def of_treebank(*cells: dict[str, Any], rule: int = 50) -> Profile:
    """A profile with these rows of the table syntax, and a fixed offset that is right in ``rule`` of the cases."""
    columns, rules = HEADINGS["syntax"], HEADINGS["syntax_baselines"]
    filled = [{"level": "base", "relation": "obj", "direction": "head_row", "layer": 0, **cell} for cell in cells]
    offsets = [{**cell, "baseline": name, "correct": rule + more} for cell in filled for name, more in RULES.items()]
    tables = {
        "syntax": pd.DataFrame(filled, columns=[*columns]),
        "syntax_baselines": pd.DataFrame(offsets, columns=[*rules]).drop_duplicates(["level", "relation", "baseline"]),
    }
    return Profile({"model": "m", "corpus": "c"}, tables)


RULES = {"offset": 0, "pos": 20, "untrained": 30}


def p_of(correct: int, n: int = 100, rule: int = 50, **more: float) -> float:
    return float(
        collect_tests(of_treebank({"head": 1, "n": n, "correct": correct, **more}, rule=rule).tables)["p"].iloc[0]
    )


def test_four_p_values_by_hand() -> None:
    """In order 0.005, 0.02, 0.03, 0.5: 4/1 · 0.005 = 0.02; 4/2 · 0.02 = 0.04; 4/3 · 0.03 = 0.04; 4/4 · 0.5."""
    assert q_values([0.02, 0.5, 0.005, 0.03]) == pytest.approx([0.04, 0.5, 0.02, 0.04])


def test_a_lower_rank_never_has_a_higher_q() -> None:
    """4/2 · 0.02 = 0.04 is above the 4/3 · 0.021 = 0.028 of the next, which it takes."""
    assert q_values([0.02, 0.001, 0.021, 0.9]) == pytest.approx([0.028, 0.004, 0.028, 0.9])


def test_equal_p_values_have_one_q() -> None:
    assert q_values([0.01, 0.04, 0.01, 0.04]) == pytest.approx([0.02, 0.04, 0.02, 0.04])
    assert q_values([0.8, 0.8]) == pytest.approx([0.8, 0.8])


def test_what_was_not_tested_neither_has_a_q_nor_counts() -> None:
    assert q_values([math.nan, 0.01, math.nan, 0.5]) == pytest.approx([math.nan, 0.02, math.nan, 0.5], nan_ok=True)
    assert np.isnan(q_values([math.nan])).all()
    assert q_values([]).shape == (0,)


@settings(max_examples=50)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_q_rises_with_p_from_p_to_one(p: list[float]) -> None:
    q = q_values(p)
    assert (np.diff(q[np.argsort(p, kind="stable")]) >= 0).all()
    assert (q >= np.array(p) * (1 - 1e-12)).all()
    assert (q <= 1).all()


@pytest.mark.parametrize(
    ("correct", "n", "share"),
    [(3, 10, Fraction(1, 5)), (10, 10, Fraction(1, 2)), (60, 100, Fraction(1, 2)), (900, 2000, Fraction(1, 2))],
)
def test_the_tail_is_that_of_exact_fractions(correct: int, n: int, share: Fraction) -> None:
    expected = float(by_fractions(correct, n, share))
    assert binomial_tail(correct, n, float(share), LOG_FACTORIALS) == pytest.approx(expected, rel=1e-9)


def test_far_tails_of_many_cases_lose_nothing_to_the_reach() -> None:
    for correct in (100, 1000, 1300, 1900):
        expected = float(by_fractions(correct, 2000, Fraction(1, 2)))
        assert binomial_tail(correct, 2000, 0.5, LOG_FACTORIALS) == pytest.approx(expected, rel=1e-6)


def test_the_edges_of_the_tail() -> None:
    assert binomial_tail(0, 10, 0.3, LOG_FACTORIALS) == 1
    assert binomial_tail(10, 10, 1, LOG_FACTORIALS) == 1


def test_without_documents_cases_count_as_they_are() -> None:
    exact = float(by_fractions(60, 100, Fraction(1, 2)))
    assert p_of(60) == pytest.approx(exact)
    assert p_of(60, role_low=PLAIN.low, role_high=PLAIN.high) == pytest.approx(exact)
    narrow = {"role_low": 0.59, "role_high": 0.61}
    assert p_of(60, **narrow) == pytest.approx(exact)  # more cases than there are is nothing that documents could give


def test_an_interval_twice_as_wide_leaves_a_quarter_of_the_cases() -> None:
    assert p_of(60, **WIDE) == pytest.approx(float(by_fractions(15, 25, Fraction(1, 2))))


def test_a_rule_that_is_never_right_counts_as_right_once() -> None:
    assert p_of(1, n=1, rule=0) == 1
    assert p_of(2, n=4, rule=0) == pytest.approx(float(by_fractions(2, 4, Fraction(1, 4))))


def rule_p_of(both: float, correct: int = 60, **more: float) -> float:
    """Beside a rule by parts of speech that is right in 50 cases of 100."""
    cell = {"head": 1, "n": 100, "correct": correct, "both": both, **more}
    return float(collect_tests(of_treebank(cell, rule=30).tables)["rule_p"].iloc[0])


def test_against_the_rule_by_parts_of_speech_only_cases_that_differ_count() -> None:
    """Both are right in 45 cases, the head alone in 15, the rule alone in 5."""
    assert rule_p_of(45) == pytest.approx(float(by_fractions(15, 20, Fraction(1, 2))))
    assert rule_p_of(50) == pytest.approx(float(by_fractions(10, 10, Fraction(1, 2))))
    assert rule_p_of(40, correct=40) == 1  # the rule alone in 10


def test_documents_that_vary_leave_fewer_cases_that_differ() -> None:
    plain = newcombe_interval(45, 15, 5, 35)
    half = (plain.high - plain.low) / 2
    wide = {"rule_low": plain.low - half, "rule_high": plain.high + half}  # twice as wide: a quarter of the cases
    assert rule_p_of(45, **wide) == pytest.approx(float(by_fractions(3, 5, Fraction(1, 2))))
    assert rule_p_of(45, rule_low=0.1, rule_high=0.1) == rule_p_of(45)


def test_a_table_that_did_not_count_both_tests_no_rule() -> None:
    table = collect_tests(of_treebank({"head": 1, "n": 100, "correct": 60}).tables)
    assert table["rule_p"].isna().all()
    assert table["rule_q"].isna().all()


def test_punctuation_is_not_tested() -> None:
    cells = ({"relation": name, "head": 1, "n": 100, "correct": 60} for name in ("obj", "punct"))
    assert [*collect_tests(of_treebank(*cells).tables)["detail"]] == ["obj head_row"]


def test_no_case_is_no_test() -> None:
    table = collect_tests(
        of_treebank({"head": 0, "n": 0, "correct": 0}, {"head": 1, "n": 0, "correct": 0}, rule=0).tables
    )
    assert table["p"].isna().all()
    assert table["q"].isna().all()


def test_each_relation_is_tested_once_and_against_the_fixed_offset() -> None:
    cells = [
        {"level": "full", "relation": "obj"},
        {"level": "base", "relation": "obj"},
        {"level": "full", "relation": "nmod:poss"},
        {"level": "agg", "relation": "all"},
    ]
    table = collect_tests(of_treebank(*({**cell, "head": 1, "n": 100, "correct": 60} for cell in cells)).tables)
    assert [*table["detail"]] == ["obj head_row", "nmod:poss head_row"]
    assert [*table["baseline_correct"]] == [50, 50]


def test_a_relation_that_is_a_number_is_a_name() -> None:
    assert [
        *collect_tests(of_treebank({"relation": 7, "head": 1, "n": 10, "correct": 6}, rule=5).tables)["detail"]
    ] == ["7 head_row"]


@pytest.mark.parametrize("tables", [{}, {"syntax": HEADINGS["syntax"], "syntax_baselines": ()}])
def test_a_corpus_without_annotation_tests_nothing(tables: dict[str, Any]) -> None:
    frames = {name: pd.DataFrame(columns=[*HEADINGS[name]]) for name in tables}
    table = collect_tests(frames)
    assert len(table) == 0
    assert {"p", "q"} <= {*table.columns}


def test_coreference_is_tested_against_the_better_rule_on_third_person_pronouns() -> None:
    table = collect_tests(read_profile(asset_path("profiles") / "toy" / "grammar").tables)
    pronouns = table[table["role"] == "coreference"]
    assert len(pronouns) == 8
    assert set(pronouns["n"]) == {416}
    assert set(pronouns["baseline_correct"]) == {203}  # 0.488 of them
    assert set(pronouns["rule_correct"]) == {319}  # 0.767, by agreement
    assert len(table) == 8 * (19 * 3 + 1)


@pytest.mark.parametrize(("name", "most"), [("minilm/ewt", 6.4e-6), ("minilm/gum", 0.005), ("toy/grammar", 2.5e-9)])
def test_a_profile_has_q_in_its_tables_of_roles(name: str, most: float) -> None:
    profile = read_profile(asset_path("profiles") / name)
    tests = collect_tests(profile.tables).set_index(["role", "detail", "layer", "head"])["q"]
    by_role = {(f.role, f.detail, *f.head): f.q for f in profile.findings()}
    assert {key: q for key, q in by_role.items() if not math.isnan(q)} == pytest.approx(
        {key: q for key, q in tests.items() if key in by_role}, rel=1e-8
    )
    rule_q = collect_tests(profile.tables).set_index(["role", "detail", "layer", "head"])["rule_q"]
    for finding in profile.findings():
        if finding.upos_rule:
            assert finding.rule_q == pytest.approx(rule_q[finding.role, finding.detail, *finding.head], rel=1e-8)
    rule_q = collect_tests(profile.tables).set_index(["role", "detail", "layer", "head"])["rule_q"]
    for finding in profile.findings():
        if finding.upos_rule:
            assert finding.rule_q == pytest.approx(rule_q[finding.role, finding.detail, *finding.head], rel=1e-8)
    assert 0 < max(q for q in by_role.values() if not math.isnan(q)) < most
    assert profile.tables["candidates"]["q"].notna().sum() >= sum(not math.isnan(q) for q in by_role.values())


def test_q_of_an_established_role_is_that_of_each_corpus() -> None:
    one, other = (read_profile(asset_path("profiles") / "minilm" / name) for name in ("ewt", "gum"))
    of_each = [
        {(*f.head, f.detail): f.q for f in both.findings() if f.role == "syntax"} for both in establish(one, other)
    ]
    assert of_each[0].keys() == of_each[1].keys()
    assert of_each[0] == {(*f.head, f.detail): f.q for f in one.findings() if f.role == "syntax"}
    assert of_each[0] != of_each[1]
