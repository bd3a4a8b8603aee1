"""Every two actions of a visitor on a page, in both orders: none ends in an error, none is logged."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest

from tests.controls import Act, acts, every_two, first_of_each
from tests.page_session import PageSession
from tests.places import NOT_PRESSED, PLACES, Place

pytestmark = pytest.mark.usefixtures("no_hub", "empty_home", "silent_log")

OFTEN = (
    "explore",
    "compare",
    "roles",
    "inside",
    "lab",
    "switch off",
    "questions",
    "about",
)  # places in every run of the tests
ALIKE = (
    "mha_search.query",
    "inside_head",
    "inside_k",
    "costs_h",
    "costs_n",
    "pin_",
    "map_standing",
)  # as their neighbours


def test_the_walk_has_every_two_in_both_orders() -> None:
    walk = every_two("abcdef")
    assert {*pairwise(walk)} == {(a, b) for a in "abcdef" for b in "abcdef"}
    assert len(walk) == 37


def pairs(place: Place, things: Sequence[Act]) -> int:
    """Do every two actions in order, one after the other; returns how many pairs were done. If the second action is not
    possible after everything done before, the first one is repeated from the URL of the place."""
    visit, done, stands = PageSession(dict(place.url), place.page), 0, False
    for first, second in pairwise(every_two(things)):
        try:
            if not (stands and second.do(visit)):
                visit = _first_from_the_url(place, first, visit)
                stands = second.do(visit)
            done += stands
        except AssertionError as error:
            raise AssertionError(f"{first}, then {second}: {error}") from error
    return done


def _first_from_the_url(place: Place, first: Act, visit: PageSession) -> PageSession:
    visit.at.query_params.clear()
    visit.at.query_params.update(place.url)  # the browser's Back, together with the click
    if not first.do(visit):
        visit = PageSession(dict(place.url), place.page)
        assert first.do(visit), first
    return visit


def usual(place: Place) -> list[Act]:
    every = acts(PageSession(dict(place.url), place.page))
    return [act for act in every if act.control not in NOT_PRESSED]


@pytest.mark.parametrize("name", OFTEN)
def test_one_value_of_each_control_after_another(name: str) -> None:
    things = [act for act in first_of_each(usual(PLACES[name])) if not act.control.startswith(ALIKE)]
    assert pairs(PLACES[name], things) >= len(things)


@pytest.mark.slow
@pytest.mark.parametrize("name", PLACES)
def test_every_value_of_each_control_after_another(name: str) -> None:
    things = usual(PLACES[name])
    assert pairs(PLACES[name], things) >= len(things)
