"""The view for a class in a real browser: a QR code that a camera can read, larger type, and clicks that still hit
their targets."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Page, expect

from mha_viz.app.url import lesson
from tests.browser_tab import BrowserTab, measure_boxes
from tests.files import read_code
from tests.waiting import until


def test_a_class_sees_one_view_and_walks_a_lesson_to_its_end(visitor: BrowserTab) -> None:
    the_answer_is_not_given_away(visitor)
    page = visitor.explore(**{"class": "1", "head": "L3H1"})
    for hidden in ("More", "+ Compare"):
        expect(page.get_by_role("button", name=hidden)).to_be_hidden()
    the_map_fills_a_projector_in_letters_that_the_last_row_can_read(visitor)
    the_pages_are_behind_a_button_at_the_edge(visitor)
    the_code_is_the_link_to_this_view(visitor)
    larger_type_is_sharp_and_clicks_hit_their_targets(visitor)
    a_lesson_is_walked_to_its_end(visitor)
    on_a_projector_most_of_a_training_is_seen_above_its_button(visitor)


def the_answer_is_not_given_away(visitor: BrowserTab) -> None:
    """While an answer is hidden nothing is held, and no link is named; with it in view, both may be."""
    page = visitor.explore(**{"class": "1"})
    expect(page.locator(".look")).to_contain_text("What does “it” refer to?")
    expect(page.locator(".look details:not([open])")).to_have_count(1)
    expect(visitor.readout).to_have_text("Hover over a word; click to pin.")
    page = visitor.explore(**{"class": "1", "head": "L3H1", "pin": "q11"})  # not even by a link
    expect(page.locator(".look details:not([open])")).to_have_count(1)
    expect(visitor.readout).to_have_text("Hover over a word; click to pin.")
    page = visitor.explore()
    expect(visitor.readout).to_contain_text("it attends to animal")
    arcs, answer = page.locator(".bows path"), page.locator(".look summary")
    expect(arcs).not_to_have_count(0)
    visitor.choose_more("Class view")  # nor by what was held before
    expect(page.locator(".look details:not([open])")).to_have_count(1)
    expect(visitor.readout).to_have_text("Hover over a word; click to pin.")
    expect(arcs).to_have_count(0)  # nor by those under the sentence, until the answer is opened
    answer.click()
    expect(arcs).not_to_have_count(0)
    answer.click()
    expect(arcs).to_have_count(0)
    page.get_by_role("button", name="Examples").click()
    page.get_by_role("button", name="We sat on the river bank").click()
    expect(page.locator(".look")).to_contain_text("what does each “bank” look at?")
    expect(visitor.readout).to_contain_text("bank attends to")  # nothing is hidden here


SMALL = """least => {
  const small = [];
  const walk = (root) => {
    for (const part of root.querySelectorAll("*:not(style, script, [data-testid=stIconMaterial])")) {
      if (part.shadowRoot) walk(part.shadowRoot);
      const own = [...part.childNodes].some((one) => one.nodeType === Node.TEXT_NODE && one.data.trim());
      const { width, height } = part.getBoundingClientRect();
      if (!own || part.closest(".st-key-edge button")) continue; // an icon, whose name is heard
      if (width < 3 || height < 3 || !part.checkVisibility()) continue;
      const size = parseFloat(getComputedStyle(part).fontSize) * (part.currentCSSZoom ?? 1);
      if (size < least) small.push(part.textContent);
    }
  };
  walk(document.body);
  return small;
}"""


def the_map_fills_a_projector_in_letters_that_the_last_row_can_read(visitor: BrowserTab) -> None:
    visitor.resize({"width": 1280, "height": 720})
    expect(visitor.heat).to_be_in_viewport(ratio=1)
    until(lambda: (visitor.heat.bounding_box() or {"height": 0})["height"] >= 500)
    expect(visitor.grid).to_be_hidden()
    assert visitor.page.evaluate(SMALL, 26) == []


def the_pages_are_behind_a_button_at_the_edge(visitor: BrowserTab) -> None:
    page = visitor.page
    link = page.get_by_role("link", name="Roles")
    expect(link).to_be_hidden()
    page.get_by_role("button", name="Pages").press("Enter")
    expect(link).to_be_visible()
    page.keyboard.press("Escape")
    expect(link).to_be_hidden()


def the_code_is_the_link_to_this_view(visitor: BrowserTab) -> None:
    page = visitor.page
    page.get_by_role("button", name="QR code").click()
    code = page.get_by_alt_text("QR code of this view")
    expect(code).to_be_in_viewport(ratio=1)
    link = urlsplit(read_code(code.screenshot(animations="disabled")))
    assert f"{link.scheme}://{link.netloc}{link.path}".rstrip("/") == visitor.url
    assert parse_qs(link.query) == {
        "text": ["The animal didn't cross the street because it was too tired."],
        "model": ["minilm"],
        "head": ["L3H1"],
        "class": ["1"],
    }
    expect(page.get_by_text("http://127.0.0.1")).to_be_visible()
    page.keyboard.press("Escape")
    expect(code).to_be_hidden()


def larger_type_is_sharp_and_clicks_hit_their_targets(visitor: BrowserTab) -> None:
    sharp = "canvas => Math.abs(canvas.getBoundingClientRect().width - canvas.width) <= 2"
    visitor.page.wait_for_function(sharp, arg=visitor.heat.element_handle())  # a pixel is one of the screen
    visitor.page.get_by_role("button", name="All heads").click()
    expect(visitor.heat).to_be_hidden()
    visitor.page.wait_for_function(sharp, arg=visitor.grid.element_handle())
    visitor.grid.click(position=visitor.head_at(2, 4))
    visitor.wait_for_parameters(head="L2H4", **{"class": "1"})
    expect(visitor.title).to_have_text("L2H4 (3-5)")


def a_lesson_is_walked_to_its_end(visitor: BrowserTab) -> None:
    page = visitor.page
    page.get_by_role("button", name="Make a lesson").click()
    for remark in ("First", "Second"):
        page.get_by_label("Remark").fill(remark)
        page.get_by_label("Remark").press("Tab")
        page.get_by_role("button", name="Add this view").click()
        expect(page.get_by_text(f": {remark}")).to_be_visible()
    page.get_by_role("button", name="← Back").click()
    visitor.wait_for_parameters(view="1")
    expect(page.locator(".mha-lesson")).to_contain_text("First")
    page.get_by_role("button", name="Next →").click()
    visitor.wait_for_parameters(view="2")
    expect(page.locator(".mha-lesson")).to_contain_text("Second")
    page.keyboard.press("PageUp")
    visitor.wait_for_parameters(view="1")
    page.get_by_role("button", name="Next →").wait_for()
    page.keyboard.press("ArrowRight")
    visitor.wait_for_parameters(view="2")
    page.get_by_role("button", name="Lesson: 2 views").click()
    page.get_by_role("button", name="Move view 2 up").click()
    visitor.wait_for_parameters(view="1")  # the open view stays open
    page.keyboard.press("ArrowRight")
    expect(page.locator(".mha-lesson")).to_contain_text("Second")  # a box is open, in which arrows do other things
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Leave the class view").click()
    visitor.wait_for_parameters(view=None, lesson=None)


def are_above_the_button(page: Page) -> bool:
    """Whether all maps of a training, and the bar below them, are on the first screen."""
    maps, bar = page.locator(".mha-player .map"), page.locator(".mha-player .bar").bounding_box()
    boxes = measure_boxes(maps)
    lowest = max((box["y"] + box["height"] for box in boxes), default=9_999)
    return bar is not None and lowest <= bar["y"] + 1 and bar["y"] + bar["height"] <= 720


def on_a_projector_most_of_a_training_is_seen_above_its_button(visitor: BrowserTab) -> None:
    """The step of a lesson takes one line, and so do the experiments."""
    visitor.resize({"width": 1280, "height": 720})
    views = lesson.add((), "explore", {}, "What does it refer to?")
    views = lesson.add(views, "why_heads_differ", {"experiment": "random"}, "Will they differ?")
    held = {"class": "1", "lesson": str(lesson.write(views)), "view": "2", "experiment": "random"}
    page = visitor.visit("/why_heads_differ", **held)
    parts = (".mha-player .map", ".mha-player .bar", ".mha-lesson", ".st-key-classroom")
    for part in parts:
        expect(page.locator(part).first).to_be_visible()
    until(lambda: (page.locator(parts[0]).first.bounding_box() or {"height": 0})["height"] > 150)  # is drawn
    first, bar, remark, panel = (page.locator(part).first.bounding_box() for part in parts)
    assert first
    assert bar
    assert remark
    assert panel
    assert bar["y"] - first["y"] > 0.55 * first["height"]
    assert panel["height"] < 1.6 * remark["height"]
    for toy in ("toy", "repeater"):
        page = visitor.visit("/why_heads_differ", **{"class": "1", "experiment": toy})
        expect(page.locator(".mha-player .map")).to_have_count(8)
        until(lambda: are_above_the_button(visitor.page))
