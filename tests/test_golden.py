"""The static figures agree with the golden file; ``tests/js/golden.test.mjs`` checks the same for the screen."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from mha_viz.figures.drawing.theme import LIGHT
from tests.golden.cases import FILE, TOGETHER, VIEWS, build_file

GOLDEN = json.loads(FILE.read_text("utf-8"))


@cache
def now() -> Any:
    """What is drawn now, as the file would have it."""
    return json.loads(json.dumps(build_file()))


@pytest.mark.parametrize("name", VIEWS)
def test_positions_colours_and_opacities_are_those_of_the_golden_file(name: str) -> None:
    assert now()["reading"] == GOLDEN["reading"]
    for kind in ("heatmap", "links", "grid"):
        assert now()["cases"][name][kind] == GOLDEN["cases"][name][kind]


def test_links_of_many_words_are_those_of_the_golden_file() -> None:
    assert now()["crowded"] == GOLDEN["crowded"]
    lines = {
        name: sum(mark["mark"] == "curve" for mark in case["links"]) for name, case in now()["crowded"]["cases"].items()
    }
    assert max(lines[name] for name in lines if "held" not in name) == 20


@pytest.mark.parametrize("name", TOGETHER)
def test_panels_side_by_side_are_those_of_the_golden_file(name: str) -> None:
    assert now()["panels"] == GOLDEN["panels"]
    assert now()["together"][name] == GOLDEN["together"][name]


def test_labels_of_cells_of_each_size_are_those_of_the_golden_file() -> None:
    assert now()["labelled"] == GOLDEN["labelled"]
    assert {every for _, (_, every, _) in now()["labelled"]} == {1, 2, 3, 4, 5}


def test_numbers_with_a_sign_are_those_of_the_golden_file() -> None:
    assert now()["signed"] == GOLDEN["signed"]


def test_the_golden_file_has_something_to_hold() -> None:
    cases = GOLDEN["cases"]
    assert set(cases) == set(VIEWS)
    marks = [mark["mark"] for case in cases.values() for kind in ("heatmap", "links") for mark in case[kind]]
    assert {"text", "curve", "rect", "cells"} <= set(marks)
    opacities = {m["opacity"] for case in cases.values() for m in case["links"] if m["mark"] == "curve"}
    assert len(opacities) > 8
    rects = [m for case in GOLDEN["signed"]["cases"].values() for m in case["heatmap"] if m["mark"] == "rect"]
    assert any(m["height"] > 1 and m["height"] < m["width"] / 2 for m in rects), "a minus, in grey"
    together = GOLDEN["together"]
    assert set(together) == set(TOGETHER)
    held = [sum(m.get("colour") == LIGHT.accent for m in panel) for c in together.values() for panel in c["heatmap"]]
    assert {0, 1, 2} <= set(held)
    assert any(m.get("text", "").endswith("sleep / dream") for c in together.values() for m in c.get("difference", []))
