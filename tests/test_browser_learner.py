"""The path for a learner in a real browser: the tour by keyboard, the training lab, the slider over training."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from playwright.sync_api import expect

from mha_viz.app.lab import learning
from mha_viz.app.lab.small_tasks import load_small_tasks
from mha_viz.app.widgets import navigation
from mha_viz.lab import toy_maps
from mha_viz.lab.lab import EXPERIMENTS
from tests import lanes
from tests.browser_tab import FINGERPRINT, FRAMES, PHONE, BrowserTab
from tests.late_server import LateServer
from tests.screenshots import find_changed_box, luminance, take_still

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from playwright.sync_api import Locator, Page, ViewportSize

    from tests.app_server import AppServer

PROJECTOR: ViewportSize = {"width": 1280, "height": 720}
QUIET = '[data-testid="stApp"][data-test-script-state="notRunning"]'
FOCUS = "document.activeElement.innerText"


def tab_to(page: Page, words: str) -> None:
    """Press Tab, or Shift and Tab, until the element named ``words`` has the focus."""
    for key in [*["Shift+Tab"] * 3, *["Tab"] * 40]:
        focused = page.evaluate(FOCUS)
        if words in focused and len(focused) < 50:  # not the whole page
            return
        page.keyboard.press(key)
    raise AssertionError(f"{words} cannot be reached by Tab")


# Of each thing that CSS selectors name, parts of drawings included: its outline, and the edges of its box as far as it
# is seen, below the step of the tour.
SEEN = """(selectors) => selectors.flatMap((selector) => {
  const [, outer, name] = /^(.+)::part\\((.+)\\)$/.exec(selector) ?? [, selector, null];
  const found = [...document.querySelectorAll(outer)];
  const parts = name ? found.map((host) => host.shadowRoot?.querySelector(`[part=${name}]`)) : found;
  return parts.filter(Boolean).map((part) => {
    const [box, tour] = [part, document.querySelector(".st-key-tour")].map((one) => one.getBoundingClientRect());
    const [top, bottom] = [Math.max(box.top, tour.bottom), Math.min(box.bottom, window.innerHeight)];
    return [getComputedStyle(part).outlineStyle, ...[box.left, top, box.right, bottom].map(Math.round)];
  });
})"""
EACH_IS_SEEN = f"(selectors) => ({SEEN})(selectors).every(([, , top, , bottom]) => bottom - top > 99)"
FIRST_IS_SEEN = f"(selectors) => ({SEEN})(selectors).slice(0, 1).some(([, , top, , bottom]) => bottom - top > 99)"


def test_another_step_begins_in_sight_and_with_its_answer_closed(visitor: BrowserTab) -> None:
    page = visitor.visit("/why_heads_differ", experiment="cut")
    answer = page.locator('[class*="st-key-answer_of_"] details')
    answer.locator("summary").click()
    expect(answer).to_have_attribute("open", "")
    page.get_by_text("Are layers parallel, as heads are?").click()
    on = page.get_by_role("button", name="→ Watch two layers")
    on.hover()
    page.wait_for_timeout(600)  # folds slide open: a click on what moves is none
    on.click()
    title = page.get_by_role("heading", name="How do heads of two layers work together?")
    expect(title).to_be_in_viewport()
    expect(title).to_be_focused()
    expect(answer).not_to_have_attribute("open", "")


def test_the_link_to_small_tasks_leads_to_the_task(visitor: BrowserTab) -> None:
    page = visitor.explore()
    page.get_by_role("link", name="Why do they differ?").click()
    page.get_by_role("radio", name=re.compile("Small tasks")).click()
    task = page.get_by_role("heading", name=load_small_tasks()[0].task)
    expect(task).to_be_in_viewport()
    expect(page.locator(".mha-player canvas").first).to_be_in_viewport()
    page.get_by_role("radio", name="2", exact=True).click()
    expect(page.get_by_role("heading", name=load_small_tasks()[1].task)).to_be_visible()


def lights(page: Page, place: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """How bright each pixel is with the rest of the page dimmed, and without. The few that change by themselves between
    the two count as equally bright."""
    for _ in range(50):
        before = take_still(page)
        without = page.screenshot(style=f"{place} {{ box-shadow: none !important }}")
        after = page.screenshot()
        dimmed, bright, again = (luminance(image) for image in (before, without, after))
        moved = dimmed != again
        if moved.mean() < 0.005:
            return np.where(moved, bright, dimmed), bright
    raise AssertionError(f"The page does not come to rest: it changes within {find_changed_box(before, after)}.")


def points_at(page: Page, selectors: tuple[str, ...]) -> None:
    """Check that everything that a step points at has an outline, is seen, and is as bright as without the tour, and
    that the rest of the page is dimmed, the search field included."""
    page.wait_for_function(FIRST_IS_SEEN, arg=selectors)
    dimmed, bright = lights(page, selectors[0])
    search = page.locator(".st-key-search_box").bounding_box()
    assert search
    darker = dimmed < bright - 0.05
    seen = page.evaluate(SEEN, selectors)
    assert len(seen) == len(selectors)
    for outline, left, top, right, bottom in seen:
        assert outline == "solid"
        assert bottom - top > 20
        assert not darker[top + 8 : bottom - 8, left + 8 : right - 8].any()
        darker[top:bottom, left:right] = True
    assert darker.mean() > 0.5
    if search["y"] >= 0:
        x, y = int(search["x"]), int(search["y"])
        assert darker[y + 8 : y + 28, x + 8 : x + 60].mean() > 0.5


def test_the_tour_is_walked_by_keyboard_and_back(newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer(viewport=PROJECTOR)
    page = visitor.explore()
    expect(page.get_by_role("button", name="Tour")).to_be_visible()
    expect(visitor.title).to_have_text("L3H1 (4-2)")
    tab_to(page, "Tour")
    page.keyboard.press("Enter")
    expect(visitor.title).to_have_text("L0H2 (1-3)")  # on the page that is open
    expect(page.get_by_text("This head always looks one word back")).to_be_visible()
    step_of_six = page.locator(".st-key-tour")
    for at, step in enumerate(navigation.load_steps(), start=1):
        expect(step_of_six).to_contain_text(f"{at} of 6")
        visitor.wait_for_parameters(tour=str(at), **step.parameters)
        page.wait_for_selector(QUIET)
        of_button = f"{FOCUS}.includes(way) && {FOCUS}.length < 20"  # not of the whole page
        page.wait_for_function(f"way => {of_button}", arg="Next" if at < 6 else "Finish")
        points_at(page, navigation.STEP_SELECTORS[at - 1])
        page.keyboard.press("Enter")
    expect(step_of_six).to_have_count(0)
    for at in (6, 5):
        page.go_back()
        expect(step_of_six).to_contain_text(f"{at} of 6")
    page.reload()  # an interrupted tour can be continued
    expect(step_of_six).to_contain_text("5 of 6")
    page.get_by_role("button", name="Leave the tour").click()
    expect(step_of_six).to_have_count(0)
    visitor.wait_for_parameters(tour=None, **navigation.load_steps()[4].parameters)


@pytest.mark.parametrize("viewport", lanes.some([PHONE, PROJECTOR], PHONE), ids=lambda size: f"{size['width']}")
def test_what_a_step_points_at_is_on_the_first_screen(newcomer: Callable[..., BrowserTab], viewport: Any) -> None:
    """On a phone, of every other step; with ``--all`` of each, and on a projector, on which the tour is walked."""
    visitor = newcomer(viewport=viewport)
    steps = list(enumerate(navigation.load_steps(), start=1))
    for at, step in lanes.some(steps, *steps[1::2]):
        path = "/" if step.page == "explore" else f"/{step.page.replace(' ', '_')}"
        page = visitor.visit(path, **step.parameters, tour=str(at))
        seen = EACH_IS_SEEN if step.page == "roles" else FIRST_IS_SEEN  # of both the map and the card it speaks
        page.wait_for_function(seen, arg=navigation.STEP_SELECTORS[at - 1])


def test_a_training_runs_and_another_is_stopped(visitor: BrowserTab, server: AppServer) -> None:
    page = visitor.visit("/why_heads_differ", experiment="identical", run="steps-40_and_seed-5")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_text("Run on this server")).to_be_visible()
    expect(page.get_by_text("Are the 4 heads bit-identical after 40 steps? Yes.")).to_be_visible()
    page.get_by_role("spinbutton", name="Steps").fill("1500")
    page.get_by_role("spinbutton", name="Steps").press("Enter")
    expect(page.get_by_text(re.compile("^Takes .* on this server"))).to_be_visible()
    with server.held():
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.get_by_role("progressbar")).to_be_visible()
        visitor.wait_for_parameters(run="steps-1500_and_seed-5")
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()
        expect(page.get_by_text("Default run, saved with the app")).to_be_visible()


# From now on, time passes by 0.03 s in every frame of the page, however long the machine takes for it, and stands still
# while the slider is at window.goal. Noted of every frame: the step, the picture of a map, messages to the server, the
# picture of the weights over the map.
FRAME_BY_FRAME = """map => {
  const pictureOf = (canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let picture = 0;
    for (const colour of new Uint32Array(data.buffer)) picture = (Math.imul(picture, 31) + colour) | 0;
    return picture;
  };
  const inFrame = window.requestAnimationFrame.bind(window);
  let time = performance.now();
  performance.now = () => time;
  window.requestAnimationFrame = (act) => inFrame(() => act(time));
  let messages = 0;
  const { send } = WebSocket.prototype;
  WebSocket.prototype.send = function (...sent) {
    messages += 1;
    return send.apply(this, sent);
  };
  const note = () => {
    const slider = map.getRootNode().querySelector("input[type=range]");
    const [strip, picture] = [...map.querySelectorAll("canvas")].map(pictureOf);
    window.noted?.push([Number(slider.value), picture, messages, strip]);
    if (Number(slider.value) < window.goal) time += 30;
    inFrame(note);
  };
  note();
}"""


def play(visitor: BrowserTab, steps: int) -> list[tuple[int, int, int, int]]:
    """Press Play, and Pause at the recorded step that comes so many later; returns what was noted of every frame."""
    page, button = visitor.page, visitor.page.locator(".mha-player .play")
    page.evaluate(
        "([slider, steps]) => { window.noted = []; window.goal = Number(slider.value) + steps; }",
        [slider_of(page).element_handle(), steps],
    )
    button.focus()
    page.keyboard.press("Enter")
    expect(button).to_have_text("❚❚ Pause")
    page.wait_for_function("() => window.noted.some(([step]) => step === window.goal)")
    frames: list[tuple[int, int, int, int]] = page.evaluate("window.noted")
    page.keyboard.press("Enter")
    expect(button).to_have_text("▶ Play")
    return frames


def slider_of(page: Page) -> Locator:
    return page.get_by_role("slider", name="Training step")


def shown_step(page: Page) -> str:
    return str(slider_of(page).get_attribute("aria-valuetext")).removeprefix("step ")


def test_play_shows_the_heads_part_and_pause_keeps_the_step(visitor: BrowserTab) -> None:
    visitor.is_altered = True
    visitor.page.emulate_media(reduced_motion="no-preference")
    page = visitor.visit("/why_heads_differ", experiment="output", step="19")  # maps now change much
    expect(slider_of(page)).to_have_attribute("aria-valuetext", "step 19")
    page.wait_for_selector(QUIET)
    page.locator(".mha-player figure").first.evaluate(FRAME_BY_FRAME)
    moving = play(visitor, 5)
    paused = shown_step(page)
    visitor.wait_for_parameters(step=paused)
    page.wait_for_selector(QUIET)
    page.emulate_media(reduced_motion="reduce")
    calm = play(visitor, 4)
    visitor.wait_for_parameters(step=shown_step(page))
    assert shown_step(page) != paused
    page.go_back()
    visitor.wait_for_parameters(step=paused)
    expect(slider_of(page)).to_have_attribute("aria-valuetext", f"step {paused}")
    page.reload()
    expect(slider_of(page)).to_have_attribute("aria-valuetext", f"step {paused}")
    the_heads_part_without_the_server(moving)
    the_heads_part_without_the_server(calm)
    assert max(pictures_of(moving)) > 1, "a map changes from frame to frame"
    assert set(pictures_of(calm)) == {1}, "without motion a map changes only with the step"


@pytest.mark.parametrize(
    ("scene", "title", "then"),
    [
        ({"experiment": "random"}, "Pushed apart", {"experiment": "penalty"}),
        ({"experiment": "current"}, "Roles appear", {"experiment": "toy"}),
        ({"experiment": "repeater"}, "Small tasks", {"experiment": "tasks"}),
        ({"experiment": "tasks", "answer": "L3H1"}, "Task 2", {"experiment": "tasks", "task": "2", "answer": None}),
    ],
    ids=str,
)
def test_the_next_step_stands_beside_the_verdict(
    visitor: BrowserTab, scene: dict[str, str], title: str, then: dict[str, str | None]
) -> None:
    page = visitor.visit("/why_heads_differ", **scene)
    following, verdict = page.locator(".mha-player .next"), page.locator(".mha-player .verdict")
    if scene["experiment"] != "tasks":
        expect(slider_of(page)).to_be_visible()
        expect(following).not_to_be_visible()
        slider_of(page).press("End")
    expect(following).to_have_text(f"Next: {title} →")
    expect(following).to_be_visible()
    boxes = [part.bounding_box() for part in (verdict, following)]
    assert boxes[0]
    assert boxes[1]
    assert abs(boxes[0]["y"] - boxes[1]["y"]) < 12
    assert boxes[1]["x"] >= boxes[0]["x"] + boxes[0]["width"]
    following.press("Enter")
    visitor.wait_for_parameters(**then)


FAINT = """names => names.filter((name) =>
    [name, name.closest("figure")].some((part) => getComputedStyle(part).opacity !== "1")).length"""


def test_names_of_removed_heads_can_be_read(visitor: BrowserTab) -> None:
    page = visitor.visit("/why_heads_differ", experiment="removal", removed="8")
    names = page.locator(".mha-player .off figcaption")
    expect(names).to_have_count(8)
    assert names.evaluate_all(FAINT) == 0


MARKED = """player => ["row", "col"].map((mark) =>
    [...player.querySelectorAll(`.sentence .${mark}`)].map((word) => word.textContent).join())"""
PICTURES = f"""maps => maps.map((map) => ({FINGERPRINT})(map)[0])"""


def test_the_sentence_stands_once_and_is_tied_to_the_rows_of_every_map(visitor: BrowserTab) -> None:
    page = visitor.visit("/why_heads_differ", experiment="repeater")
    player = page.locator(".mha-player")
    maps, words = player.locator(".map canvas"), player.locator(".sentence bdi")
    expect(words).to_have_text(list(toy_maps.load_bundled("repeater").words))
    page.wait_for_selector(QUIET)
    take_still(page)
    before = maps.evaluate_all(PICTURES)
    words.nth(2).hover()
    assert player.evaluate(MARKED) == ["anna", ""]
    pointed = maps.evaluate_all(PICTURES)
    assert all(one != other for one, other in zip(before, pointed, strict=True)), "its row is marked in all maps"
    words.nth(2).click()
    page.mouse.move(2, 2)
    assert maps.evaluate_all(PICTURES) == pointed, "held"
    words.nth(2).click()
    page.mouse.move(2, 2)
    assert maps.evaluate_all(PICTURES) == before
    box = player.locator(".map svg").first.bounding_box()
    assert box
    cell = box["width"] / words.count()
    page.mouse.move(box["x"] + 0.5 * cell, box["y"] + 3.5 * cell)
    assert player.evaluate(MARKED) == ["green", "dog"]
    expect(player.locator(".pointed")).to_contain_text("“green” gives")


TOPS = """maps => maps.map((map) => Math.round(map.getBoundingClientRect().top))"""


def test_seeds_stand_side_by_side_and_on_a_phone_each_in_one_row_with_a_button(visitor: BrowserTab) -> None:
    page = visitor.visit("/why_heads_differ", experiment="random", numbers="1", beside="1")
    page.get_by_role("button", name="Train seed 1").click()
    players = page.locator(".mha-player").filter(has=page.locator(".maps"))
    expect(players).to_have_count(2)
    page.wait_for_selector(QUIET)
    tops = [players.nth(seed).locator(".map").evaluate_all(TOPS) for seed in range(2)]
    assert tops[0] == tops[1], "maps of both begin at the same height"
    expect(page.get_by_role("button", name="Play")).to_have_count(1)
    visitor.resize(PHONE)
    page.wait_for_function("() => [...document.querySelectorAll('.maps')].every((maps) => maps.clientHeight < 200)")
    for seed in range(2):
        assert len(set(players.nth(seed).locator(".map").evaluate_all(TOPS))) == 1, "four heads in a row"
    visitor.check_no_sideways_scroll()
    second = page.get_by_role("button", name="Play").nth(1)
    second.scroll_into_view_if_needed()
    second.press("Enter")
    for seed in range(2):
        step = players.nth(seed).get_by_role("slider", name="Training step")
        expect(step).not_to_have_attribute("aria-valuetext", "step 0")


def test_what_a_training_showed_is_said_at_its_end_and_not_of_another(visitor: BrowserTab) -> None:
    page = visitor.visit("/why_heads_differ", experiment="identical")
    verdict = page.locator(".mha-player .verdict")
    expect(verdict).to_have_text("")
    slider_of(page).press("End")
    expect(verdict).not_to_have_text("")
    page.get_by_role("radio", name="Random start").click()
    visitor.wait_for_parameters(experiment="random")
    expect(slider_of(page)).to_have_attribute("aria-valuetext", "step 0")
    expect(verdict).to_have_text("")
    visitor.is_altered = True
    page.set_viewport_size({"width": 1000, "height": 260})
    first = page.locator(".mha-player figure").first
    expect(first).not_to_be_in_viewport(ratio=0.5)
    page.locator(".mha-player .play").press("Enter")
    expect(first).to_be_in_viewport(ratio=0.5)


# Where a verdict stands: how far right of the stage's edge, how far below the slider, and whether it is in the window.
PLACE = """verdict => {
  const [stage, bar] = [verdict.closest(".mha-player"), verdict.closest(".bar")].map((one) => one ?? verdict);
  const [box, left, slider] = [verdict, stage, bar.querySelector("input")].map((one) => one?.getBoundingClientRect());
  const isSeen = box.height > 0 && box.top >= 0 && box.bottom <= window.innerHeight;
  return [Math.round(box.left - left.left), Math.round(box.top - slider?.bottom), isSeen];
}"""


@pytest.mark.parametrize("size", [PROJECTOR, PHONE], ids=["projector", "phone"])
def test_what_each_training_showed_stands_in_one_place_in_the_window(visitor: BrowserTab, size: ViewportSize) -> None:
    visitor.resize(size)
    places = {}
    for scene in (*EXPERIMENTS, *learning.TOYS):
        page = visitor.visit("/why_heads_differ", experiment=scene)
        verdict = page.locator(".mha-player .verdict")
        page.wait_for_selector(QUIET)
        take_still(page)
        before = page.locator(".mha-player .said").evaluate("said => said.clientHeight")
        slider_of(page).press("End")
        expect(verdict).not_to_have_text("")
        room = page.locator(".mha-player .said").evaluate("said => said.clientHeight")
        assert room == before, "its room is kept, so that maps do not move when it is said"
        places[scene] = verdict.evaluate(PLACE)
    assert {tuple(place) for place in places.values()} == {(0, places[scene][1], True)}, places


# Time passes twenty times as fast for the page.
SOONER = """() => {
  const [inFrame, time] = [window.requestAnimationFrame.bind(window), performance.now.bind(performance)];
  performance.now = () => 20 * time();
  window.requestAnimationFrame = (act) => inFrame(() => act(20 * time()));
}"""


def test_back_over_an_answer_takes_back_what_the_training_showed(visitor: BrowserTab) -> None:
    visitor.is_altered = True
    page = visitor.visit("/why_heads_differ", experiment="random")
    verdict = page.locator(".mha-player .verdict")
    answer = page.locator(".st-key-lab_guess button").first
    page.evaluate(SOONER)
    answer.click()
    expect(verdict).not_to_have_text("")
    page.go_back()
    expect(answer).to_have_attribute("aria-checked", "false")
    expect(verdict).to_have_text("")


def test_back_undoes_a_step_that_the_server_never_answered(visitor: BrowserTab) -> None:
    visitor.is_altered = True
    page, server = visitor.page, LateServer(visitor.page)
    visitor.visit("/why_heads_differ", experiment="output", step="19")
    expect(slider_of(page)).to_have_attribute("aria-valuetext", "step 19")
    page.wait_for_selector(QUIET)
    server.hold_back(in_time=("page_info_changed",))
    slider_of(page).focus()
    page.keyboard.press("ArrowRight")
    visitor.wait_for_parameters(step=shown_step(page))
    assert shown_step(page) != "19"
    page.go_back()
    visitor.wait_for_parameters(step="19")
    expect(slider_of(page)).to_have_attribute("aria-valuetext", "step 19")


def the_heads_part_without_the_server(frames: list[tuple[int, int, int, int]]) -> None:
    """While a training plays, each recorded step is shown, map and weights become others, and the server is not
    asked."""
    steps = [step for step, *_ in frames]
    assert sorted(set(steps)) == list(range(steps[0], steps[-1] + 1))
    assert frames[0][1] != frames[-1][1]
    assert frames[0][3] != frames[-1][3]
    assert frames[0][2] == frames[-1][2], "messages were sent"


def pictures_of(frames: list[tuple[int, int, int, int]]) -> list[int]:
    """How many pictures each recorded step had."""
    pictures: dict[int, set[int]] = {}
    for step, picture, *_ in frames:
        pictures.setdefault(step, set()).add(picture)
    return [len(all_) for all_ in pictures.values()]


# At which places of the page Play can be clicked. Time passes by 2 ms in every frame, so that a machine on which the
# page loads for a long time does not count as one on which it has come to rest.
CHARTS_ARE_DRAWN = """() => document.fonts.status === "loaded"
  && [...document.querySelectorAll(".stPlotlyChart")].every((chart) => chart.querySelector(".main-svg"))"""
WHERE_PLAY_CAN_BE_CLICKED = """() => {
  window.places = [];
  const inFrame = window.requestAnimationFrame.bind(window);
  let time = 0;
  performance.now = () => time;
  window.requestAnimationFrame = (act) => inFrame(() => act(time));
  const note = () => {
    time += 2;
    const parts = [...document.querySelectorAll(".st-key-lab_player *")];
    const play = parts.find((part) => part.shadowRoot)?.shadowRoot.querySelector(".play");
    const scrolled = document.querySelector("[data-testid=stMain]")?.scrollTop;
    if (play && getComputedStyle(play).visibility === "visible")
      window.places.push(Math.round(play.getBoundingClientRect().top + scrolled));
    inFrame(note);
  };
  note();
}"""


@pytest.mark.slow
def test_play_stays_where_it_appears_on_a_slow_line(newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer(alone=True)
    visitor.is_altered = True
    line = visitor.page.context.new_cdp_session(visitor.page)
    slow = {"offline": False, "latency": 150, "downloadThroughput": 800_000, "uploadThroughput": 100_000}
    line.send("Network.emulateNetworkConditions", slow)
    visitor.page.add_init_script(f"({WHERE_PLAY_CAN_BE_CLICKED})()")
    page = visitor.visit("/why_heads_differ", experiment="count")
    expect(page.locator(".mha-player .play")).to_be_visible()
    page.wait_for_selector(QUIET)
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0)
    page.wait_for_function(CHARTS_ARE_DRAWN)
    page.evaluate(FRAMES)
    assert len(set(page.evaluate("window.places"))) == 1


def test_what_is_unfolded_under_more_stays_open_when_numbers_come_and_go(visitor: BrowserTab) -> None:
    page = visitor.visit("/why_heads_differ?experiment=random")
    fold = page.locator("details", has_text="Are layers parallel")
    fold.locator("summary").click()
    answer = fold.locator("em").first
    for shown in ("1", None):
        page.get_by_text("Numbers", exact=True).click()
        visitor.wait_for_parameters(numbers=shown)
        page.wait_for_selector(QUIET)
        expect(page.get_by_label("Seed", exact=True)).to_have_count(1 if shown else 0)
        expect(answer).to_be_visible()
        expect(fold).to_have_attribute("open", "")
