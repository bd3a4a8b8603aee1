"""What a page is about is in its first screen, by boxes. *Why heads differ*: *Play* and the maps, at 1280 × 720 and on
a phone, on every experiment, every toy and every small task (which has nothing to play); at 1280 × 720 also below the
box of the tour; in larger windows they have the whole width, with what is said of them. *Inside a head*: the picture of
every step, at 1280 × 720. At 1920 × 1080 pages use the window."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from mha_viz.app.inside.stages import STAGES
from mha_viz.app.lab.learning import TOYS
from mha_viz.app.lab.small_tasks import load_small_tasks
from mha_viz.lab.lab import EXPERIMENTS
from tests.browser_tab import DESKTOP, FRAMES, PHONE, BrowserTab
from tests.waiting import until

LAPTOP: ViewportSize = {"width": 1280, "height": 720}
PROJECTOR: ViewportSize = {"width": 1920, "height": 1080}
# The boxes [left, top, right, bottom] of the maps, of what is said of them and, where there is one, of the bar with
# Play, when nothing was scrolled; and how far a page is scrolled.
BOXES = """(player) => {
    const box = (part) => {
        const { left, top, right, bottom } = part.getBoundingClientRect();
        return [left, top, right, bottom];
    };
    return {
        maps: [...player.querySelectorAll(".map canvas")].map(box),
        top: box(player.querySelector(".top")),
        bar: [...player.querySelectorAll(".bar")].map(box)[0] ?? null,
        play: [...player.querySelectorAll(".play")].map(box)[0] ?? null,
        scrolled: document.querySelector(".stMain").scrollTop,
    };
}"""
# What the keyboard has stopped at.
STOP = """() => {
    const at = document.activeElement;
    if (at.closest("[class*=st-key-lab_arm_], [class*=st-key-lab_trained_]")) return "choice";
    return at.closest("[data-testid=stExpander]") ? "fold" : "player";
}"""
SCENES = [
    *({"experiment": name} for name in (*EXPERIMENTS, *TOYS)),
    *({"experiment": "tasks", "task": str(number)} for number in range(1, len(load_small_tasks()) + 1)),
]


@pytest.mark.parametrize("window", [LAPTOP, PHONE], ids=["1280", "phone"])
def test_play_and_its_maps_are_in_the_first_screen(visitor: BrowserTab, window: ViewportSize) -> None:
    visitor.resize(window)
    outside = {}
    for scene in SCENES:
        visitor.visit("/why_heads_differ", **scene)
        problem = _outside(visitor, window)
        if problem:
            outside[" ".join(scene.values())] = problem
    assert not outside


# Of one, two, three, four, eight heads, of the eight of the toys, and larger in class.
OF_EACH_COUNT = [
    *({"experiment": "count", "arm": arm} for arm in "0123"),
    {"experiment": "pair", "arm": "0"},
    *({"experiment": name} for name in TOYS),
    {"experiment": "count", "class": "1"},
]


@pytest.mark.parametrize("window", [DESKTOP, PROJECTOR], ids=["1440", "1920"])
def test_maps_and_what_is_said_of_them_fill_the_stage(visitor: BrowserTab, window: ViewportSize) -> None:
    visitor.resize(window)
    for scene in OF_EACH_COUNT:
        visitor.visit("/why_heads_differ", **scene)
        until(lambda: _outside(visitor, window) == "")
        boxes = visitor.page.locator(".mha-player").evaluate(BOXES)
        stage, ends = boxes["bar"][2] - boxes["bar"][0], max(right for _, _, right, _ in boxes["maps"])
        beside = boxes["top"][2] - boxes["top"][0] if boxes["top"][0] > ends else 0
        assert (ends - boxes["bar"][0] + beside) / stage > 0.9, scene
        assert boxes["bar"][3] > 0.7 * window["height"] or ends > 0.97 * stage, scene


@pytest.mark.parametrize("experiment", ["identical", "pair"])
def test_the_box_of_the_tour_leaves_room_for_the_maps(visitor: BrowserTab, experiment: str) -> None:
    visitor.resize(LAPTOP)
    visitor.visit("/why_heads_differ", experiment=experiment, tour="3")
    expect(visitor.page.locator(".st-key-tour")).to_be_visible()
    until(lambda: _outside(visitor, LAPTOP) == "")  # once the page that it has moved rests


def _outside(visitor: BrowserTab, window: ViewportSize) -> str:
    """What is not in the window, or covered by the bar with Play; nothing where all is in order."""
    player = visitor.page.locator(".mha-player")
    visitor.page.wait_for_function(
        "(player) => player.querySelector('.map canvas')?.width > 1", arg=player.element_handle()
    )
    visitor.page.evaluate(f"document.fonts.ready.then(() => {FRAMES})")
    boxes = player.evaluate(BOXES)
    if boxes["scrolled"]:
        return f"scrolled by {boxes['scrolled']:.0f}"
    assert boxes["maps"]
    low = boxes["bar"][1] if boxes["bar"] else window["height"]
    for name, (left, top, right, bottom) in enumerate(boxes["maps"]):
        if left < 0 or top < 0 or right > window["width"] or bottom > low:
            return f"map {name}: {left:.0f} to {right:.0f}, {top:.0f} to {bottom:.0f}, the bar at {low:.0f}"
    if boxes["play"] and boxes["play"][3] > window["height"]:
        return f"Play ends at {boxes['play'][3]:.0f}"
    return ""


@pytest.mark.parametrize("experiment", ["pair", "toy"])
def test_on_a_phone_the_signs_and_the_choice_follow_play(visitor: BrowserTab, experiment: str) -> None:
    visitor.resize(PHONE)
    page = visitor.visit("/why_heads_differ", experiment=experiment)
    play = page.locator(".mha-player .play")
    expect(play).to_be_visible()
    choice = page.locator("[class*=st-key-lab_arm_], [class*=st-key-lab_trained_]")
    signs = page.locator(".mha-player .legend")
    parts = [page.locator(".mha-player .bar"), signs, choice, page.get_by_text("Answer", exact=True)]
    boxes = [part.first.bounding_box() for part in parts]
    edges = [(box["y"], box["y"] + box["height"]) for box in boxes if box]
    assert all(end <= begin for (_, end), (begin, _) in pairwise(edges))
    assert edges[2][0] - edges[0][1] < 150
    play.focus()
    stops = [_next_stop(page) for _ in range(6)]  # links to real heads come first
    assert [stop for stop in stops if stop != "player"][:2] == ["choice", "fold"]


def _next_stop(page: Page) -> str:
    page.keyboard.press("Tab")
    kind: str = page.evaluate(STOP)
    return kind


def test_every_prediction_is_in_sight_on_a_phone(visitor: BrowserTab) -> None:
    visitor.resize(PHONE)
    for experiment in (*EXPERIMENTS, *TOYS):
        page = visitor.visit("/why_heads_differ", experiment=experiment)
        pills = page.locator(".st-key-lab_guess button")
        pills.first.wait_for()
        rights = pills.evaluate_all("all => all.map(one => one.getBoundingClientRect().right)")
        assert max(rights) <= PHONE["width"], experiment


def test_strips_are_named_in_words(visitor: BrowserTab) -> None:
    page = visitor.visit("/why_heads_differ", experiment="pair")
    for window in (LAPTOP, PHONE):
        visitor.resize(window)
        expect(page.locator(".mha-player .what").filter(has_text="WQ", visible=True).first).to_be_in_viewport()


def test_the_picture_with_every_stage_open_is_in_the_first_screen(visitor: BrowserTab) -> None:
    visitor.resize(LAPTOP)
    ends = {}
    for stage in STAGES:
        visitor.visit("/inside_a_head", step=stage)
        picture = visitor.page.locator(".mha-block .stage.open")
        picture.wait_for()
        visitor.page.evaluate(f"document.fonts.ready.then(() => {FRAMES})")
        ends[stage] = picture.evaluate("(picture) => picture.getBoundingClientRect().bottom")
        assert visitor.page.evaluate("document.querySelector('.stMain').scrollTop") == 0
    assert {stage: end for stage, end in ends.items() if end > LAPTOP["height"]} == {}


@pytest.mark.parametrize("size", [PROJECTOR, DESKTOP])
def test_compare_and_about_use_the_window(newcomer: Callable[..., BrowserTab], size: ViewportSize) -> None:
    visitor = newcomer(viewport=size)
    page = visitor.visit("/about")
    beside = page.locator(".st-key-about_figure .stColumn").nth(2)
    beside.get_by_text("Attention.").wait_for()
    box, shown = beside.bounding_box(), page.locator(".st-key-about_text p").last.bounding_box()
    assert box
    assert shown
    assert box["x"] + box["width"] > 0.95 * size["width"], "text stands beside the pictures"
    assert shown["y"] + shown["height"] < size["height"], "all of the page is seen"
    page = visitor.visit("/compare")
    map_of_head = page.locator(".panel canvas:not(.over)").first
    map_of_head.wait_for()
    drawn = map_of_head.bounding_box()
    assert drawn
    assert drawn["width"] > 0.28 * size["width"], "of the third of the window that it has, beside the difference"
    held = map_of_head.locator("xpath=ancestor::*[contains(@class, 'box')][1]").bounding_box()
    assert held
    assert drawn["x"] + drawn["width"] <= held["x"] + held["width"] + 1, "nothing of it is cut off"
    if size == PROJECTOR:
        assert drawn["y"] + drawn["height"] <= size["height"] - 10, "nor its last row"


def test_the_map_of_roles_and_the_only_chart_of_a_stage_use_a_tall_window(newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer(viewport=PROJECTOR)
    for model, most in (("minilm", 12), ("toy", 4)):
        visitor.roles(model=model)
        page = visitor.page
        expect(page.locator(".mha-map thead th")).to_have_count(most)
        squares, column = (
            page.locator(".mha-map table").bounding_box(),
            page.locator(".stColumn:has(.mha-map)").bounding_box(),
        )
        assert squares
        assert column
        assert squares["width"] > 0.99 * column["width"], model
        assert squares["height"] > 0.3 * PROJECTOR["height"], model
    for stage, chart in (("x", "x"), ("moved", "values")):
        visitor.visit("/inside_a_head", step=stage)
        picture = visitor.page.locator(f".st-key-inside_{chart} .main-svg").first
        expect(picture).to_be_visible()
        tall = "(picture) => picture.getBoundingClientRect().height > innerHeight / 2"
        visitor.page.wait_for_function(tall, arg=picture.element_handle())
