"""Every two things that a visitor can do to a page, in both orders: none ends in an error, none is logged."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from mha_viz.assets import HOME
from mha_viz.ui import studies as studies_room
from tests.controls import Act, acts, first_of_each
from tests.visit import Visit

pytestmark = pytest.mark.usefixtures("no_hub", "home")

TRAY = '{"of": [["The cat sat.", "", "minilm"]], "heads": [["L0H1", 0, ""], ["L3H1", 0, "mine"]]}'


class Place(NamedTuple):
    """A page and what its URL says."""

    page: str | None
    url: Mapping[str, str] = {}


PLACES = {
    "explore": Place(None),
    "explore, in the tour": Place(None, {"tour": "1", "tray": TRAY}),
    "compare": Place("pages/20_compare.py"),
    "compare, the tray": Place("pages/20_compare.py", {"tray": TRAY, "show": "tray"}),
    "compare, a word": Place("pages/20_compare.py", {"show": "word"}),
    "compare, models": Place("pages/20_compare.py", {"show": "models", "with": "toy"}),
    "compare, the map": Place("pages/20_compare.py", {"show": "map"}),
    "roles": Place("pages/30_roles.py"),
    "roles, a head": Place("pages/30_roles.py", {"find": "4-2", "kinds": "syntax"}),
    "roles, toy": Place("pages/30_roles.py", {"model": "toy", "snapshot": "0"}),
    "roles, own file": Place("pages/30_roles.py", {"corpus": "file"}),
    "inside": Place("pages/40_inside_a_head.py"),
    "inside, the scores": Place("pages/40_inside_a_head.py", {"step": "scores", "divide": "no"}),
    "lab": Place("pages/50_why_heads_differ.py"),
    "lab, after a guess": Place("pages/50_why_heads_differ.py", {"guess": "apart"}),
    "lab, the count": Place("pages/50_why_heads_differ.py", {"experiment": "count", "step": "0"}),
    "questions": Place("pages/80_questions.py", {"tour": "2"}),
}
OFTEN = ("explore", "compare", "roles", "inside", "lab")  # places in every run of the tests
NOT_PRESSED = ("lab_run", "measure", "measure_file", "go_on")  # start work that takes seconds; tests of their own
ALIKE = ("inside_head", "inside_k", "costs_h", "costs_n", "pin_", "map_standing")  # as their neighbours


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of its own for what is measured."""
    monkeypatch.setenv(HOME, str(tmp_path / "home"))
    studies_room.studies.clear()


@pytest.fixture(autouse=True)
def silent(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No traceback in the log."""
    yield
    assert [r.getMessage() for r in caplog.records if r.exc_info or r.levelno >= logging.ERROR] == []


def pairs(place: Place, things: Sequence[Act]) -> int:
    """Do every two things in order, each first one from the URL of the place; how many pairs were done."""
    visit, done = Visit(dict(place.url), place.page), 0
    for first in things:
        for second in things:
            visit.at.query_params.clear()
            visit.at.query_params.update(place.url)  # the browser's Back, together with the click
            if not first.do(visit):
                visit = Visit(dict(place.url), place.page)
                assert first.do(visit), first
            try:
                done += second.do(visit)
            except AssertionError as error:
                raise AssertionError(f"{first}, then {second}: {error}") from error
    return done


def usual(place: Place) -> list[Act]:
    every = acts(Visit(dict(place.url), place.page))
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
