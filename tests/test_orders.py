"""Every two things that a visitor can do to a page, in both orders: none ends in an error, none is logged."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.controls import Act, acts, first_of_each
from tests.page_session import PageSession
from tests.places import NOT_PRESSED, PLACES, Place

pytestmark = pytest.mark.usefixtures("no_hub", "empty_home", "silent_log")

OFTEN = ("explore", "compare", "roles", "inside", "lab", "switch off")  # places in every run of the tests
ALIKE = (
    "mha_search.query",
    "inside_head",
    "inside_k",
    "costs_h",
    "costs_n",
    "pin_",
    "map_standing",
)  # as their neighbours


def pairs(place: Place, things: Sequence[Act]) -> int:
    """Do every two things in order, each first one from the URL of the place; how many pairs were done."""
    visit, done = PageSession(dict(place.url), place.page), 0
    for first in things:
        for second in things:
            visit.at.query_params.clear()
            visit.at.query_params.update(place.url)  # the browser's Back, together with the click
            if not first.do(visit):
                visit = PageSession(dict(place.url), place.page)
                assert first.do(visit), first
            try:
                done += second.do(visit)
            except AssertionError as error:
                raise AssertionError(f"{first}, then {second}: {error}") from error
    return done


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
