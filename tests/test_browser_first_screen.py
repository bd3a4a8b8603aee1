"""What a page is about is in its first screen, by boxes. *Why heads differ*: *Play* and the maps, at 1280 × 720 and on
a phone, on every experiment, every toy and every small task (which has nothing to play). *Inside a head*: the picture
of every step, at 1280 × 720."""

from __future__ import annotations

import pytest
from playwright.sync_api import ViewportSize

from mha_viz.training.lab import EXPERIMENTS
from mha_viz.ui.inside.steps import STEPS
from mha_viz.ui.lab.learning import TOYS
from mha_viz.ui.lab.small_tasks import small_tasks
from tests.browser_tab import FRAMES, PHONE, BrowserTab

LAPTOP: ViewportSize = {"width": 1280, "height": 720}
AT_ONCE = 4  # maps of a toy: its heads that end best stand first, the others below them
# The boxes [left, top, right, bottom] of the maps and, where there is one, of the bar with Play, when nothing was
# scrolled; and how far a page is scrolled.
BOXES = """(player) => {
    const box = (part) => {
        const { left, top, right, bottom } = part.getBoundingClientRect();
        return [left, top, right, bottom];
    };
    return {
        maps: [...player.querySelectorAll(".map canvas")].map(box),
        bar: [...player.querySelectorAll(".bar")].map(box)[0] ?? null,
        play: [...player.querySelectorAll(".play")].map(box)[0] ?? null,
        scrolled: document.querySelector(".stMain").scrollTop,
    };
}"""
SCENES = [
    *({"experiment": name} for name in (*EXPERIMENTS, *TOYS)),
    *({"experiment": "tasks", "task": str(number)} for number in range(1, len(small_tasks()) + 1)),
]


@pytest.mark.parametrize("window", [LAPTOP, PHONE], ids=["1280", "phone"])
def test_play_and_its_maps_are_in_the_first_screen(visitor: BrowserTab, window: ViewportSize) -> None:
    visitor.resize(window)
    outside = {}
    for scene in SCENES:
        visitor.visit("/why_heads_differ", **scene)
        problem = _outside(visitor, window, AT_ONCE if scene["experiment"] in TOYS else None)
        if problem:
            outside[" ".join(scene.values())] = problem
    assert not outside


def _outside(visitor: BrowserTab, window: ViewportSize, at_once: int | None) -> str:
    """What is not in the window, or covered by the bar with Play; nothing where all is in order."""
    player = visitor.page.locator(".mha-player")
    visitor.page.wait_for_function(
        "(player) => player.querySelector('.map canvas')?.width > 1", arg=player.element_handle()
    )
    visitor.page.evaluate(f"document.fonts.ready.then(() => {FRAMES})")
    boxes = player.evaluate(BOXES)
    assert boxes["scrolled"] == 0
    assert boxes["maps"]
    low = boxes["bar"][1] if boxes["bar"] else window["height"]
    for name, (left, top, right, bottom) in zip(range(at_once or 99), boxes["maps"], strict=False):
        if left < 0 or top < 0 or right > window["width"] or bottom > low:
            return f"map {name}: {left:.0f} to {right:.0f}, {top:.0f} to {bottom:.0f}, the bar at {low:.0f}"
    if boxes["play"] and boxes["play"][3] > window["height"]:
        return f"Play ends at {boxes['play'][3]:.0f}"
    return ""


def test_the_picture_of_every_step_is_in_the_first_screen(visitor: BrowserTab) -> None:
    visitor.resize(LAPTOP)
    ends = {}
    for step in STEPS.keys() - {"turn"}:  # which this model does not do
        visitor.visit("/inside_a_head", step=step)
        picture = visitor.page.locator(".st-key-inside_step .js-plotly-plot .main-svg").first
        picture.wait_for()
        visitor.page.evaluate(f"document.fonts.ready.then(() => {FRAMES})")
        ends[step] = picture.evaluate("(picture) => picture.getBoundingClientRect().bottom")
        assert visitor.page.evaluate("document.querySelector('.stMain').scrollTop") == 0
    assert {step: end for step, end in ends.items() if end > LAPTOP["height"]} == {}
