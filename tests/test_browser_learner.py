"""The path for a learner in a real browser: the tour by keyboard, the training lab, the slider over training."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from mha_viz.ui import tour
from mha_viz.ui.lab import questions
from tests.browser_tab import PHONE, BrowserTab
from tests.screenshots import luminance, still

if TYPE_CHECKING:
    from playwright.sync_api import Page

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
FIRST_IS_SEEN = f"(selectors) => ({SEEN})(selectors).slice(0, 1).some(([, , top, , bottom]) => bottom - top > 99)"


def points_at(page: Page, selectors: tuple[str, ...]) -> None:
    """Check that everything that a step points at has an outline, is seen, and is as bright as without the tour, and
    that the rest of the page is dimmed, the search field included."""
    page.wait_for_function(FIRST_IS_SEEN, arg=selectors)
    dimmed = luminance(still(page))
    search = page.locator(".st-key-search_box").bounding_box()
    assert search
    bright = luminance(page.screenshot(style=f"{selectors[0]} {{ box-shadow: none !important }}"))
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
    visitor = newcomer(reduced_motion="reduce")  # scrolls at once
    page = visitor.explore()
    expect(page.get_by_role("button", name="New here?")).to_be_visible()
    tab_to(page, "New here?")
    page.keyboard.press("Enter")
    for at, step in enumerate(tour.steps(), start=1):
        expect(page.locator(".st-key-tour")).to_contain_text(f"{at} of 6")
        visitor.asked(tour=str(at), **step.parameters)
        page.wait_for_selector(QUIET)
        page.wait_for_function(f"way => {FOCUS}.includes(way)", arg="Next" if at < 6 else "Finish")
        assert len(page.evaluate(FOCUS)) < 20  # not the whole page
        points_at(page, tour.POINTS[at - 1])
        if at < 6:
            page.keyboard.press("Enter")
    expect(visitor.title).to_contain_text("L3H1")
    expect(visitor.readout).to_contain_text("it attends to animal")
    page.go_back()
    expect(page.locator(".st-key-tour")).to_contain_text("5 of 6")
    page.reload()  # an interrupted tour can be continued
    expect(page.locator(".st-key-tour")).to_contain_text("5 of 6")
    page.get_by_role("button", name="Leave the tour").click()
    expect(page.locator(".st-key-tour")).to_have_count(0)
    visitor.asked(tour=None, head="L3H1")


@pytest.mark.parametrize(
    ("path", "shows"),
    [
        ("/questions", questions.questions()[-1].question),
        ("/roles?model=toy&tour=4", "How it learned"),
        ("/why_heads_differ?tour=3&experiment=penalty", "How alike the heads are"),
    ],
)
def test_a_phone_scrolls_down_and_not_sideways(newcomer: Callable[..., BrowserTab], path: str, shows: str) -> None:
    visitor = newcomer(viewport=PHONE, color_scheme="dark")
    page = visitor.visit(path)
    expect(page.get_by_text(shows).first).to_be_attached()
    page.wait_for_selector(QUIET)
    visitor.scrolls_only_down()


def test_a_training_runs_and_another_is_stopped(visitor: BrowserTab) -> None:
    page = visitor.visit("/why_heads_differ", experiment="identical", run="steps-40_and_seed-5")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_text("Run on this server")).to_be_visible()
    expect(page.get_by_text("Are the 4 heads bit-identical after 40 steps? Yes.")).to_be_visible()
    page.get_by_role("spinbutton", name="Steps").fill("1500")
    page.get_by_role("spinbutton", name="Steps").press("Enter")
    page.wait_for_selector(QUIET)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("progressbar")).to_be_visible()
    visitor.asked(run="steps-1500_and_seed-5")
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()
    expect(page.get_by_text("Default run, saved with the app")).to_be_visible()


def test_the_slider_over_training_obeys_the_arrow_keys(visitor: BrowserTab) -> None:
    page = visitor.visit("/roles", model="toy")
    slider = page.get_by_role("slider", name="Step of training")
    expect(slider).to_have_attribute("aria-valuetext", "step 0", timeout=60_000)
    slider.focus()
    for step in (50, 100):
        page.keyboard.press("ArrowRight")
        expect(slider).to_have_attribute("aria-valuetext", f"step {step}")
        visitor.asked(snapshot=str(step))
    page.reload()
    expect(slider).to_have_attribute("aria-valuetext", "step 100")
    expect(page.get_by_text("after 100 steps")).to_be_visible()


COUNT_MESSAGES = """() => {
  window.messages = 0;
  const { send } = WebSocket.prototype;
  WebSocket.prototype.send = function (...sent) {
    window.messages += 1;
    return send.apply(this, sent);
  };
}"""
# From now on, the step and the picture of a map in every frame.
RECORD = """canvas => {
  window.frames_shown = [];
  const slider = canvas.getRootNode().querySelector("input[type=range]");
  const note = () => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let picture = 0;
    for (const colour of new Uint32Array(data.buffer)) picture = (Math.imul(picture, 31) + colour) | 0;
    window.frames_shown.push([slider.value, picture]);
    requestAnimationFrame(note);
  };
  note();
}"""
COUNT_PICTURES = """() => {
  const pictures = {};
  for (const [step, picture] of window.frames_shown) (pictures[step] ??= new Set()).add(picture);
  return Object.values(pictures).map((all) => all.size);
}"""
PIXELS = """canvas => canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.join()"""


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_play_shows_the_heads_part_without_the_server_and_pause_is_kept(
    newcomer: Callable[..., BrowserTab], motion: Any
) -> None:
    visitor = newcomer(reduced_motion=motion)
    page = visitor.visit("/why_heads_differ", experiment="output", guess="skip", step="19")  # maps now change much
    first = page.locator(".mha-player canvas").first
    button = page.locator(".mha-player .play")
    expect(page.get_by_role("slider", name="Step of training")).to_have_attribute("aria-valuetext", "step 19")
    page.wait_for_selector(QUIET)
    before = first.evaluate(PIXELS)
    page.evaluate(COUNT_MESSAGES)
    first.evaluate(RECORD)
    button.focus()
    page.keyboard.press("Enter")
    expect(button).to_have_text("❚❚ Pause")
    expect(page.get_by_role("slider", name="Step of training")).to_have_value(re.compile("^1[2-9]$"))
    assert first.evaluate(PIXELS) != before
    pictures = page.evaluate(COUNT_PICTURES)  # of each step that was shown
    assert len(pictures) >= 4
    assert (set(pictures) == {1}) == (motion == "reduce"), "without motion a map changes only with the step"
    assert page.evaluate("window.messages") == 0, "the server is not asked while a training plays"


def test_the_step_at_which_playing_pauses_is_in_the_address(visitor: BrowserTab) -> None:
    page = visitor.visit("/why_heads_differ", experiment="output", guess="skip")
    slider, button = page.get_by_role("slider", name="Step of training"), page.locator(".mha-player .play")
    expect(slider).to_have_attribute("aria-valuetext", "step 0")
    page.wait_for_selector(QUIET)
    button.click()
    expect(slider).not_to_have_attribute("aria-valuetext", "step 0")
    button.click()
    expect(button).to_have_text("▶ Play")
    step = str(slider.get_attribute("aria-valuetext")).removeprefix("step ")
    visitor.asked(step=step)
    page.reload()
    expect(slider).to_have_attribute("aria-valuetext", f"step {step}")
    page.go_back()
    visitor.asked(step=None)


WHERE_PLAY_CAN_BE_CLICKED = """() => {
  window.places = [];
  const note = () => {
    const parts = [...document.querySelectorAll(".st-key-lab_player *")];
    const play = parts.find((part) => part.shadowRoot)?.shadowRoot.querySelector(".play");
    const scrolled = document.querySelector("[data-testid=stMain]")?.scrollTop;
    if (play && getComputedStyle(play).visibility === "visible")
      window.places.push(Math.round(play.getBoundingClientRect().top + scrolled));
    requestAnimationFrame(note);
  };
  note();
}"""


def test_play_stays_where_it_appears_on_a_slow_line(newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer(alone=True)
    visitor.is_altered = True
    line = visitor.page.context.new_cdp_session(visitor.page)
    slow = {"offline": False, "latency": 150, "downloadThroughput": 800_000, "uploadThroughput": 100_000}
    line.send("Network.emulateNetworkConditions", slow)
    visitor.page.add_init_script(f"({WHERE_PLAY_CAN_BE_CLICKED})()")
    page = visitor.visit("/why_heads_differ", experiment="count", guess="skip")
    expect(page.locator(".mha-player .play")).to_be_visible()
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0)
    page.wait_for_timeout(500)
    assert len(set(page.evaluate("window.places"))) == 1


def test_a_step_of_the_tour_opens_its_head_on_the_page_that_is_open(visitor: BrowserTab) -> None:
    page = visitor.explore()
    expect(page.locator(".explorer h2 code")).to_have_text("L3H1 (4-2)")
    page.get_by_role("button", name="New here? A tour in six steps").click()
    visitor.asked(tour="1", head="L0H2")
    expect(page.locator(".explorer h2 code")).to_have_text("L0H2 (1-3)")
    expect(page.get_by_text("The open one, layer 0, head 2")).to_be_visible()
