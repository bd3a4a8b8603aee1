"""Random walks over all pages, with values that the controls offer and with values that they do not."""

from __future__ import annotations

import random

import pytest

from mha_viz.app.url import address
from tests.controls import Act, list_acts
from tests.page_session import PageSession
from tests.places import PLACES, SLOW_CONTROLS

pytestmark = pytest.mark.usefixtures("no_hub", "empty_home", "silent_log")

STEPS = 10  # steps of a walk
AT_ONCE = 5  # walks of one test: each begins with the server's caches as the previous one left them
ODDS = 0.4  # share of values that no control offers
ODD_PARAMETERS = sorted({
    *(*address.VIEW_PATTERNS, *address.PANEL_PATTERNS, *address.ANSWER_PATTERNS, *address.LONG_PARAMETERS),
    *(*address.MODEL_PARAMETERS, *address.TEXT_PARAMETERS),
    *("model", "with", "before", "how", "show", "class", "tour", "experiment", "run", "step", "arm", "snapshot"),
    *("guess", "task", "answer", "kinds", "relation", "level", "corpus", "search", "gold", "costs", "typed", "find"),
})  # fmt: skip
ODD_VALUES = (
    *("", "x", "-1", "L0H0", "L99H99", "0-1", "[]", "{}", "²", "1" * 30, "\u202e"),
    *("toy", "toy@7", "file", "grammar", "L0H0.q1"),
)


def walk(seed: int) -> None:
    """Ten steps from a random place; a failure lists all steps that led to it."""
    choose = random.Random(seed)
    path: list[str] = []
    try:
        visit = _start(choose, path)
        for _ in range(STEPS):
            act = _next(choose, visit)
            if act is None:
                visit = _start(choose, path)
                continue
            path.append(str(act))
            act.do(visit)
    except AssertionError as error:
        raise AssertionError(f"seed {seed}: {'; '.join(path)}: {error}") from error


def _start(choose: random.Random, path: list[str]) -> PageSession:
    place = PLACES[choose.choice(sorted(PLACES))]
    url = dict(place.url)
    if choose.random() < ODDS:
        url[choose.choice(ODD_PARAMETERS)] = choose.choice(ODD_VALUES)
    path.append(f"{place.page} {url}")
    return PageSession(url, place.page)


def _next(choose: random.Random, visit: PageSession) -> Act | None:
    every = [act for act in list_acts(visit, odd=choose.random() < ODDS) if act.control not in SLOW_CONTROLS]
    controls = sorted({act.control for act in every})
    if not controls or choose.random() < 0.1:
        return None
    control = choose.choice(controls)
    return choose.choice([act for act in every if act.control == control])


@pytest.mark.slow
@pytest.mark.parametrize("block", range(1000))
def test_walks(block: int) -> None:
    for seed in range(block * AT_ONCE, (block + 1) * AT_ONCE):
        walk(seed)
