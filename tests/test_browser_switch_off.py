"""What Explore answers: findings that open heads, and heads that are switched off where they are drawn."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser_tab import BrowserTab
from tests.waiting import until


def test_a_finding_opens_its_head_with_the_word_that_shows_it(visitor: BrowserTab) -> None:
    page = visitor.explore()
    findings = page.locator(".findings button")
    expect(findings.first).to_have_text(re.compile(r"^L3H1 links “it” to “animal” \(0\.\d\d\)\.$"))
    findings.filter(has_text="L1H7").click()
    visitor.asked(head="L1H7")
    expect(visitor.title).to_have_text("L1H7 (2-8)")
    expect(visitor.readout).to_contain_text("cross → street")
    findings.first.click()
    visitor.asked(pin="q10k2")
    expect(visitor.readout).to_have_text(re.compile(r"it → animal 0\.\d{3}"))
    visitor.read("Hello")
    expect(findings.filter(has_text="links")).to_have_count(0)


def test_the_menu_says_what_differs_from_the_usual(visitor: BrowserTab) -> None:
    page = visitor.visit("/")
    visitor.drawn()
    menu = page.locator(".drawing > summary")
    expect(menu).to_have_text("Drawing")
    expect(page.locator(".controls")).to_be_hidden()
    menu.click()
    visitor.press_segment("hidden")
    visitor.choose("Links", "top")
    expect(menu).to_have_text("Drawing: special tokens hidden, 3 links per word")
    visitor.press_segment("pieces")
    expect(menu).to_have_text("Drawing: pieces, special tokens hidden, 3 links per word")
    for usual in ("words", "shown"):
        visitor.press_segment(usual)
    visitor.choose("Links", "all")
    expect(menu).to_have_text("Drawing")


def test_the_menu_of_compared_heads_says_what_differs_from_the_usual(visitor: BrowserTab) -> None:
    page = visitor.visit("/compare")
    menu = page.locator(".drawing > summary")
    expect(menu).to_have_text("Drawing")  # special tokens are hidden there: each panel says how much of its attention
    menu.click()
    visitor.press_segment("shown")
    visitor.press_segment("links")
    visitor.choose("Links", "top")
    expect(menu).to_have_text("Drawing: links, special tokens shown, 3 links per word")
    visitor.press_segment("heatmap")
    expect(menu).to_have_text("Drawing: special tokens shown")


def test_a_key_switches_the_open_head_off_wherever_the_keyboard_is(visitor: BrowserTab) -> None:
    page = visitor.explore(head="L3H1")
    visitor.field.press("x")  # typed
    page.wait_for_timeout(300)
    assert "off" not in visitor.address
    visitor.field.press("Escape")
    visitor.field.blur()
    page.keyboard.press("x")
    visitor.asked(off="L3H1")
    visitor.drawn()
    visitor.grid.focus()
    page.keyboard.press("x")  # once, not by the grid and by the page
    visitor.asked(off=None)  # nothing is off: the page is as before
    expect(page.get_by_text("changes the sentence vector most here")).to_have_count(0)


def test_a_head_is_switched_off_where_it_is_drawn(visitor: BrowserTab) -> None:
    page = visitor.explore(head="L3H1")
    switch = page.get_by_role("button", name=re.compile("^Switch"))
    expect(switch).to_have_text("Switch off")
    switch.click()
    visitor.asked(off="L3H1")
    expect(switch).to_have_text("Switch on")  # one button, and what it does now
    note = page.locator(".off-note")
    expect(note).to_have_text("L3H1 is off: this pattern is computed, its output is not used.")
    dark, moved = page.locator(".marks .dark"), page.locator(".marks .moved")
    expect(dark).to_have_count(1)
    expect(moved).to_have_count(24)  # the heads of the two later layers
    shares = moved.evaluate_all("all => all.map(one => Number(one.style.getPropertyValue('--share')))")
    assert max(shares) == 1
    assert 0 < min(shares) < 0.5
    expect(page.get_by_text("changes the sentence vector most here")).to_be_visible()
    announced = page.locator(".said")
    expect(announced).to_have_text(re.compile(r"^L3H1 is off\. L[45]H\d+ changes most\.$"))
    visitor.grid.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("x")
    visitor.asked(off="L3H1.L4H1")
    expect(dark).to_have_count(2)
    expect(announced).to_have_text(re.compile(r"^L4H1 is off\. L[45]H\d+ changes most\.$"))
    expect(switch).to_have_text(["Switch all heads on", "Switch on"])
    page.get_by_role("button", name="Switch on", exact=True).click()
    visitor.asked(off="L4H1")
    expect(note).to_be_hidden()  # the head that is drawn is on
    expect(switch).to_have_text(["Switch L4H1 on", "Switch off"])
    page.get_by_role("button", name="Switch L4H1 on").click()
    visitor.asked(off=None)
    expect(dark).to_have_count(0)
    expect(switch).to_have_text("Switch off")
    _drag(visitor, 0.2, 0.5)
    visitor.asked(off=None, head="L3H1")  # it stays in the grid, and opens no head
    _drag(visitor, 0.2, 1.2)
    visitor.asked(off="L0H1", head="L3H1")
    expect(dark).to_have_count(1)
    _drag(visitor, 0.2, 1.2)  # a head that is off stays off
    _drag(visitor, 0.3, 1.2, escape=True)
    visitor.asked(off="L0H1", head="L3H1")
    visitor.choose("Shown", "rollout")
    expect(page.get_by_text("After layer")).to_be_visible()
    expect(page.get_by_role("button", name="Switch off")).to_be_hidden()  # one map joins all heads of a layer


# The head of a bar and the middle of its dot, in one look: the points are made anew with each answer of the server.
DOT = """place => {
  if (document.querySelector(".stApp").dataset.testScriptState !== "notRunning") return null;
  const plot = [...document.querySelectorAll(".st-key-ranking .js-plotly-plot")].find((one) => one.checkVisibility());
  const dot = plot?.querySelectorAll(".scatterlayer .point")[place];
  dot?.scrollIntoView({ block: "center" });
  const box = dot?.getBoundingClientRect();
  return box && [plot.data[0].customdata[place], box.x + box.width / 2, box.y + box.height / 2];
}"""
# The head that the pointer is on, once the chart rests: it has not been drawn anew since the last look. What is above
# it may move it from under the pointer, and a click is lost during which it is drawn.
POINTED = """() => {
  const plot = [...document.querySelectorAll(".st-key-ranking .js-plotly-plot")].find((one) => one.checkVisibility());
  const rests = plot?._fullLayout === window.lastLayout;
  window.lastLayout = plot?._fullLayout;
  return rests ? plot?._hoverdata?.[0].customdata ?? null : null;
}"""
CHOSEN = """head => [...document.querySelectorAll(".st-key-ranking .js-plotly-plot")].some((plot) => {
  const points = [...plot.querySelectorAll(".point")];
  const chosen = plot.data?.[2].selectedpoints ?? [];
  const neverFade = points.length > 0 && points.every((point) => getComputedStyle(point).opacity === "1");
  return chosen.filter((one) => plot.data[0].customdata[one] === head).length === 1 && neverFade;
})"""


def test_dots_in_bars_of_the_ranking_are_clicked_as_the_bars_however_quickly(visitor: BrowserTab) -> None:
    page = visitor.visit("/?model=toy&text=the dog saw the girl .&off=none&more=1")
    page.locator("summary", has_text="All heads, ranked").click()
    for place in (2, 5):
        head = _point(page, place)
        page.mouse.down()
        page.mouse.up()
        page.wait_for_function("head => new URLSearchParams(location.search).get('off').includes(head)", arg=head)
        page.wait_for_function(CHOSEN, arg=head)


def _point(page: Page, place: int) -> str:
    """Move the pointer onto a dot of the ranking, until the chart says that it is there; the head of its bar."""
    heads = list[str]()

    def is_there() -> bool:
        head, left, top = page.wait_for_function(DOT, arg=place).json_value()
        heads.append(head)
        page.mouse.move(left, top - 1)
        page.mouse.move(left, top)
        return bool(page.evaluate(POINTED) == head)

    until(is_there, every=0.2)
    return heads[-1]


def _drag(visitor: BrowserTab, start: float, end: float, escape: bool = False) -> None:
    """Drag the square at a part of the first row to a part of the grid's height."""
    box, mouse = visitor.grid.bounding_box(), visitor.page.mouse
    assert box
    mouse.move(box["x"] + start * box["width"], box["y"] + 0.1 * box["height"])
    mouse.down()
    mouse.move(box["x"] + start * box["width"], box["y"] + end * box["height"], steps=4)
    if escape:
        visitor.page.keyboard.press("Escape")
    mouse.up()


def test_an_old_address_leads_to_the_mode_with_its_parameters_and_the_answer_slides(visitor: BrowserTab) -> None:
    page = visitor.visit("/switch_off", model="toy", text="the dog [MASK] the girl .", off="L1H1")
    page.wait_for_url(re.compile(r"\d/\?"))
    visitor.asked(off="L1H1", more="1")
    bars = page.locator(".mha-slide li")
    expect(bars).to_have_count(5)
    expect(bars.first).to_have_text(re.compile(r"\w+\s*\d+(\.\d)?%( → \d+(\.\d)?%)?"))
    expect(page.get_by_role("heading", name="Without L1H1 (2-2)")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)  # nothing says that there is no such page


def test_a_model_without_an_answer_offers_one_that_has(visitor: BrowserTab) -> None:
    page = visitor.explore(off="none")
    page.get_by_role("button", name="Let the toy guess: the dog [MASK] the girl .").click()
    visitor.asked(model="toy", off="none")
    expect(page.locator(".mha-slide li")).to_have_count(5)
    expect(page.get_by_text("In place of “[MASK]” the model answers")).to_be_visible()
