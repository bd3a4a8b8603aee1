"""The actions of a visitor on a page, one after the other: none ends in an error, none is logged.

Usually, in one state of most pages, each follows both of its neighbours, at an even and an odd place, and in other
states, and where an action takes long, one of them; with --all each follows every other.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import plotly.graph_objects as go
import pytest

from mha_viz.figures.charts import chart_plotly
from tests import lanes
from tests.controls import Act, build_pair_walk, build_return_walk, list_acts, pick_first_of_each
from tests.copies import copy_children
from tests.page_session import PageSession
from tests.places import PLACES, SLOW_CONTROLS, Place

pytestmark = pytest.mark.usefixtures("no_hub", "empty_home", "silent_log")

# The places in every run of the tests: those from which the walk goes there and back, and others.
OFTEN = ("explore", "compare", "roles", "inside", "about")
ONE_WAY = ("compare, published", "roles, own file", "lab", "lab, the toy", "switch off, toy")
ALIKE = ("inside_k", "costs_h", "costs_n", "pin_")  # as their neighbours
# After these actions a page or view without some of the others is open: another page, the view for a class, a model
# that is not here or ends the mode in which heads are off, a form, another quantity, another comparison or one without
# form, a shorter list.
LEAVING = (
    *(
        "class_",
        "lesson_",
        "mha_search.open",
        "mha_explorer.card",
        "mha_explorer.elsewhere",
        "mha_explorer.why",
        "roles_model",
        "roles_corpus",
        "replicate_file",
    ),
    *("show", "listed", "to_", "tour_first", "mha_compare.edit", "mha_sentence.model", "mha_player.next"),
    *("guess", "ended", "switch_on"),
)
# These belong to a state that an action ends: an offer that was taken, a menu with one choice, the mode in which heads
# are switched off, which ends with the last of them or with another model, and its lists, named after the heads that
# are off; a replaced word, which ends with an edit; the softmax without the division, in one step.
PASSING = ("tour_", "how", "ended", "switch_on", "guess", "off", "all_on", "patched", "inside_undivided")


@pytest.fixture(autouse=True)
def _charts_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """By Plotly, each property of each chart, which pages leave out."""
    usual = chart_plotly.plotly
    monkeypatch.setattr(chart_plotly, "plotly", lambda *given: go.Figure(usual(*given).to_plotly_json()))


@pytest.fixture(autouse=True)
def _work_is_done_by_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    copy_children(monkeypatch)


def test_the_walk_has_every_two_in_both_orders() -> None:
    walk = build_pair_walk("abcdef")
    assert {*pairwise(walk)} == {(a, b) for a in "abcdef" for b in "abcdef"}
    assert len(walk) == 37


def test_there_and_back_has_each_at_an_even_and_an_odd_place_and_after_both_neighbours() -> None:
    walk = build_return_walk("abcde")
    assert {(name, place % 2) for place, name in enumerate(walk)} == {(name, odd) for name in "abcde" for odd in (0, 1)}
    assert {*pairwise(walk)} == {*pairwise("abcde"), *pairwise("edcba"), ("e", "e")}


def impossible(place: Place, walk: Sequence[Act]) -> list[tuple[Act, Act]]:
    """Do the actions of a walk; returns the pairs whose second action was not possible. If it is not possible after
    everything done before, the first one is repeated from the URL of the place."""
    visit, stands = at(place), False
    missing = []
    for first, second in pairwise(walk):
        try:
            if not (stands and second.do(visit)):
                visit = _first_from_the_url(place, first, visit)
                stands = second.do(visit)
                missing += [] if stands else [(first, second)]
        except AssertionError as error:
            raise AssertionError(f"{first}, then {second}: {error}") from error
    return missing


def at(place: Place) -> PageSession:
    visit = PageSession(dict(place.url), place.page)
    if place.opened:
        assert Act(place.opened, "bool_value", True).do(visit)
    return visit


def _first_from_the_url(place: Place, first: Act, visit: PageSession) -> PageSession:
    if place.page:
        visit.at.switch_page(place.page)
    visit.at.query_params.clear()
    visit.at.query_params.update(place.url)  # the browser's Back, together with the click
    if not first.do(visit):
        visit = at(place)
        assert first.do(visit), first
    return visit


def usual(place: Place) -> list[Act]:
    every = list_acts(at(place))
    return [act for act in every if act.control not in SLOW_CONTROLS]


def check(place: Place, walk: Sequence[Act]) -> None:
    missing = impossible(place, walk)
    assert len(missing) <= 0.4 * len(walk), missing
    unexplained = [
        (first.control, second.control)
        for first, second in missing
        if not (first.control.startswith(LEAVING) or second.control.startswith(PASSING))
        and first != Act(place.opened, "bool_value", False)  # which closes what the others are in
        and not (first.do(new := at(place)) and second.do(new))  # what was done before may have led to another page
    ]
    assert not unexplained


@pytest.mark.parametrize("name", [*OFTEN, *ONE_WAY])
def test_one_value_of_each_control_after_another(name: str) -> None:
    things = [act for act in pick_first_of_each(usual(PLACES[name])) if not act.control.startswith(ALIKE)]
    usual_walk = things if name in ONE_WAY else build_return_walk(things)
    check(PLACES[name], build_pair_walk(things) if lanes.everything else usual_walk)


@pytest.mark.slow
@pytest.mark.parametrize("name", PLACES)
def test_every_value_of_each_control_after_another(name: str) -> None:
    check(PLACES[name], build_pair_walk(usual(PLACES[name])))
