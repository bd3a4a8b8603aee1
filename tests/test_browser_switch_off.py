"""What Explore answers: findings that open heads, and heads that are switched off where they are drawn."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser_tab import BrowserTab


def test_a_finding_opens_its_head_with_the_word_that_shows_it(visitor: BrowserTab) -> None:
    page = visitor.explore()
    findings = page.locator(".findings button")
    expect(findings.first).to_have_text(re.compile(r"^L3H1 links “it” to “animal” \(0\.\d\d\)\.$"))
    findings.filter(has_text="L1H7").click()
    visitor.wait_for_parameters(head="L1H7")
    expect(visitor.title).to_have_text("L1H7 (2-8)")
    expect(visitor.readout).to_contain_text("cross → street")
    findings.first.click()
    visitor.wait_for_parameters(pin="q10k2")
    expect(visitor.readout).to_have_text(re.compile(r"it → animal 0\.\d{3}"))
    visitor.read("Hello")
    expect(findings.filter(has_text="links")).to_have_count(0)


def test_the_menu_says_what_differs_from_the_usual(visitor: BrowserTab) -> None:
    page = visitor.visit("/")
    visitor.wait_until_drawn()
    menu = page.locator(".drawing > summary")
    expect(menu).to_have_text("Drawing")
    expect(page.locator(".controls")).to_be_hidden()
    menu.click()
    visitor.press_segment("hidden")
    visitor.choose("Links", "top")
    expect(menu).to_have_text("Drawing: special tokens hidden, 3 links per word")
    visitor.press_segment("tokens")
    expect(menu).to_have_text("Drawing: tokens, special tokens hidden, 3 links per word")
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
    visitor.wait_for_parameters(off="L3H1")
    visitor.wait_until_drawn()
    visitor.grid.focus()
    page.keyboard.press("x")  # once, not by the grid and by the page
    visitor.wait_for_parameters(off=None)  # nothing is off: the page is as before
    expect(page.get_by_text("changes the sentence vector most here")).to_have_count(0)


def test_a_head_is_switched_off_where_it_is_drawn(visitor: BrowserTab) -> None:
    page = visitor.explore(head="L3H1")
    switch = page.get_by_role("button", name=re.compile("^Switch"))
    expect(switch).to_have_text("Switch off")
    switch.click()
    visitor.wait_for_parameters(off="L3H1")
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
    visitor.wait_for_parameters(off="L3H1.L4H1")
    expect(dark).to_have_count(2)
    expect(announced).to_have_text(re.compile(r"^L4H1 is off\. L[45]H\d+ changes most\.$"))
    expect(switch).to_have_text(["Switch all heads back on", "Switch on"])
    page.get_by_role("button", name="Switch on", exact=True).click()
    visitor.wait_for_parameters(off="L4H1")
    expect(note).to_be_hidden()  # the head that is drawn is on
    expect(switch).to_have_text(["Switch L4H1 on", "Switch off"])
    page.get_by_role("button", name="Switch L4H1 on").click()
    visitor.wait_for_parameters(off=None)
    expect(dark).to_have_count(0)
    expect(switch).to_have_text("Switch off")
    _drag(visitor, 0.2, 0.5)
    visitor.wait_for_parameters(off=None, head="L3H1")  # it stays in the grid, and opens no head
    _drag(visitor, 0.2, 1.2)
    visitor.wait_for_parameters(off="L0H1", head="L3H1")
    expect(dark).to_have_count(1)
    _drag(visitor, 0.2, 1.2)  # a head that is off stays off
    _drag(visitor, 0.3, 1.2, escape=True)
    visitor.wait_for_parameters(off="L0H1", head="L3H1")
    visitor.choose("Quantity", "rollout")
    expect(page.get_by_text("After layer")).to_be_visible()
    expect(page.get_by_role("button", name="Switch off")).to_be_hidden()  # one map joins all heads of a layer


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
    visitor.wait_for_parameters(off="L1H1")
    bars = page.locator(".mha-slide li")
    expect(bars).to_have_count(5)
    expect(bars.first).to_have_text(re.compile(r"\w+\s*\d+(\.\d)?%( → \d+(\.\d)?%)?"))
    expect(page.get_by_role("dialog")).to_have_count(0)  # nothing says that there is no such page
    page.get_by_role("button", name="Choose heads").click()
    expect(page.get_by_role("radiogroup", name="Replacement output")).to_be_visible()


def test_a_model_without_an_answer_offers_one_that_has(visitor: BrowserTab) -> None:
    page = visitor.explore(off="none")
    page.get_by_role("button", name="Watch a prediction change (toy model)").click()
    visitor.wait_for_parameters(model="toy", off="none")
    expect(page.locator(".mha-slide li")).to_have_count(5)
    expect(page.get_by_text("In place of “[MASK]” the model answers")).to_be_visible()
