"""What a head may be called: thresholds, halves, a hundred cases, intervals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mha_viz.analysis import roles
from mha_viz.analysis.coreference import TYPES
from mha_viz.analysis.patterns import OFFSETS, Patterns
from mha_viz.analysis.syntax import Gold, Relations, Row
from mha_viz.corpus.treebank import Sentence, Word
from tests import brute

# ---- Intervals ------------------------------------------------------------------------------------------------------


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
    assert roles.wilson(correct, n) == pytest.approx((low, high), abs=5e-5)


def test_without_a_case_anything_is_possible() -> None:
    assert roles.wilson(0, 0) == (0, 1)


@settings(deadline=None)
@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_holds_the_share_and_mirrors(case: tuple[int, int]) -> None:
    correct, n = case
    low, high = roles.wilson(correct, n)
    assert 0 <= low <= correct / n + 1e-12
    assert correct / n - 1e-12 <= high <= 1
    assert (1 - high, 1 - low) == pytest.approx(roles.wilson(n - correct, n))
    assert (low, high) == pytest.approx(brute.wilson(correct, n), abs=1e-12)


# ---- Thresholds -----------------------------------------------------------------------------------------------------


def patterns(heads: int) -> Any:
    """No mass anywhere, over ten rows of two sentences."""
    sums = Patterns(heads).sums
    for name in ("mass_rows", "maxima_rows"):
        sums[name][:] = 10
    sums["rows"] += 10
    sums["sentences"] += 2
    return sums


def names(found: Any) -> list[tuple[int, str]]:
    return [(role.head, role.detail) for role in found]


def test_a_position_takes_more_than_half_of_the_mass() -> None:
    sums = patterns(3)
    sums["mass"][:, OFFSETS.index(-1)] = [5.0, 5.1, 4.9]
    sums["even_mass"][OFFSETS.index(-1)] = 1.0
    (role,) = roles.positional(sums)
    assert (role.head, role.role, role.detail, role.n) == (1, "position", "previous", 10)
    assert (role.score, role.baseline, role.gain) == pytest.approx((0.51, 0.1, 0.41))


def test_or_nine_maxima_of_ten() -> None:
    sums = patterns(3)
    sums["maxima"][:, OFFSETS.index(1)] = [8, 9, 10]
    found = list(roles.positional(sums))
    assert names(found) == [(1, "next"), (2, "next")]
    assert found[0].interval == roles.wilson(9, 10)


def test_only_previous_same_and_next_are_positions() -> None:
    sums = patterns(1)
    sums["mass"][:] = 10
    assert names(roles.positional(sums)) == [(0, "previous"), (0, "same"), (0, "next")]


def test_a_delimiter_takes_more_than_six_tenths() -> None:
    sums = patterns(2)
    sums["delimiter"][:] = [[6.0, 6.1, 0], [0, 0, 7]]
    found = list(roles.delimiting(sums))
    assert names(found) == [(0, "sep"), (1, "punctuation")]
    assert found[0].score == pytest.approx(0.61)


def test_broad_is_078_of_the_possible_entropy_or_more() -> None:
    sums = patterns(3)
    sums["normalised"][:] = [1.5598, 1.56, 1.9]
    assert names(roles.broad(sums)) == [(1, "entropy"), (2, "entropy")]


# ---- Syntax: chosen on the even sentences, reported on the odd ones -------------------------------------------------

OBJ = Relations([Sentence((Word("go", "VERB", None, "root"), Word("it", "PRON", 0, "obj")))])
BASE = OBJ.rows.index(Row("base", "obj"))
PLACES = (2, 3, len(OBJ.rows))  # half, direction, row


def evidence(n: tuple[int, int], offset: tuple[int, int], *heads: dict[int, tuple[int, int]]) -> tuple[Any, Any]:
    """Gold and counts in which every row is like obj: cases and right guesses of the best offset, and for each head
    direction → right answers, each (even, odd)."""
    gold = Gold(np.zeros(PLACES, np.int64), np.zeros((*PLACES, 20), np.int64), np.zeros((*PLACES, 2, 2), np.int64))
    correct = np.zeros((*PLACES, len(heads)), np.int64)
    for half in (0, 1):
        gold.n[half], gold.offset[half, ..., 9] = n[half], offset[half]
        for head, by_direction in enumerate(heads):
            for direction, right in by_direction.items():
                correct[half, direction, :, head] = right[half]
    return gold, correct


def syntactic(*given_: Any) -> list[roles.Role]:
    return list(roles.syntactic(OBJ, *evidence(*given_)))


def test_ten_points_over_the_offset_on_the_odd_half_make_a_role() -> None:
    (role,) = syntactic((200, 100), (100, 50), {0: (150, 70)}, {0: (150, 59)})
    assert (role.head, role.role, role.detail, role.n) == (0, "syntax", "obj dep_to_head", 100)
    assert (role.score, role.baseline, role.gain) == pytest.approx((0.7, 0.5, 0.2))
    assert role.interval == pytest.approx(brute.wilson(70, 100))
    (same,) = syntactic((200, 100), (100, 50), {0: (90, 70)}, {0: (80, 59)})
    assert same == role, "the even half chooses the direction only"


def test_exactly_ten_points_are_enough() -> None:
    assert roles.wilson(60, 100).low > 0.5
    assert len(syntactic((200, 100), (100, 50), {0: (150, 60)})) == 1


def test_fewer_than_a_hundred_cases_are_not() -> None:
    assert syntactic((200, 99), (100, 10), {0: (200, 99)}) == []
    assert len(syntactic((200, 100), (100, 10), {0: (200, 100)})) == 1


def test_the_direction_is_that_of_the_even_sentences_whatever_the_odd_say() -> None:
    (role,) = syntactic((200, 200), (20, 20), {0: (150, 100), 2: (140, 190)})
    assert (role.detail, role.score) == ("obj dep_to_head", 0.5)


def test_of_a_relation_without_subtype_there_is_one_role() -> None:
    found = syntactic((200, 100), (0, 0), {1: (200, 100)})
    assert [role.detail for role in found] == ["obj head_to_dep"]  # not once more for the full one and the aggregates


def test_the_choice_is_made_on_even_and_both_halves_are_kept() -> None:
    gold, correct = evidence((200, 100), (100, 50), {0: (90, 90)}, {1: (120, 30)}, {2: (120, 99)})
    gold.offset[1, 1, BASE, 4], gold.upos[1, 1, BASE, 1, 0] = 60, 80  # better ones, among the odd
    choice = next(c for c in roles.choose(OBJ, gold, correct) if c.row == BASE)
    assert (choice.direction, choice.head) == (1, 1)  # of equals the first direction
    assert (choice.n, choice.correct, choice.offset, choice.upos) == ((200, 100), (120, 30), 60, 80)


def test_a_relation_without_a_case_in_even_sentences_has_no_choice() -> None:
    gold, correct = evidence((0, 100), (0, 50), {0: (0, 90)})
    assert list(roles.choose(OBJ, gold, correct)) == []
    assert list(roles.syntactic(OBJ, gold, correct)) == []


# ---- Coreference ----------------------------------------------------------------------------------------------------


def coreferential(n: tuple[int, int], right: tuple[int, int], nearest: tuple[int, int], alike: tuple[int, int]) -> Any:
    at = TYPES.index("third_person")
    cases, correct, baseline = (np.zeros(shape, np.int64) for shape in ((2, 5), (2, 5, 1), (2, 5, 2)))
    cases[:, at], correct[:, at, 0], baseline[:, at] = n, right, np.array([nearest, alike]).T
    return list(roles.coreferential(cases, correct, baseline))


def test_ten_points_over_the_better_baseline_make_a_coreferential_head() -> None:
    (role,) = coreferential((100, 100), (80, 75), (30, 40), (60, 50))
    assert (role.role, role.detail, role.n) == ("coreference", "third_person", 100)
    assert (role.score, role.baseline) == (0.75, 0.5)
    assert coreferential((100, 100), (80, 59), (30, 40), (60, 50)) == []
    assert coreferential((100, 100), (80, 75), (30, 70), (60, 50)) == []  # the other baseline is the better one


def test_exactly_ten_points_are_enough_here_too() -> None:
    assert len(coreferential((100, 100), (80, 60), (30, 50), (60, 10))) == 1
    assert len(coreferential((100, 100), (10, 60), (30, 50), (60, 10))) == 1, "the even half chooses nothing here"


def test_here_too_a_hundred_cases_are_needed() -> None:
    assert coreferential((100, 99), (99, 99), (1, 1), (1, 1)) == []


def test_a_share_of_nothing_is_not_a_number() -> None:
    assert math.isnan(roles.share(0, 0))
    assert roles.share([1, 2], [4, 0]).tolist()[0] == 0.25
