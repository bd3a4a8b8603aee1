"""Sentences are read and heads opened in a real browser, on the real server: what a visitor sees and does, and what
stands in the address."""

from __future__ import annotations

import re
from functools import partial

from playwright.sync_api import expect

from mha_viz.app.url.address import load_examples
from tests.browser_tab import DESKTOP, PHONE, BrowserTab

FIRST = load_examples()[0]["text"]
IT = 10  # a token of the first example
MAT = "The cat sat on the mat."


# ---- Reading a sentence --------------------------------------------------------------------------------------


def test_sentences_are_read_one_after_the_other(visitor: BrowserTab) -> None:
    visitor.explore()
    expect(visitor.page.get_by_role("button", name="History")).to_be_hidden()
    _a_click_takes_the_whole_text_and_the_next_one_puts_the_cursor(visitor)
    _a_typed_sentence_is_painted_and_stands_in_the_url(visitor)
    _the_back_button_restores_the_sentence_before(visitor)
    _shift_and_enter_begin_a_new_line_and_send_nothing(visitor)
    _what_is_typed_and_not_sent_is_left_alone(visitor)
    _a_second_sentence_is_read_as_a_pair(visitor)
    _examples_open_and_one_is_read(visitor)
    _an_empty_sentence_is_answered_and_examples_are_offered(visitor)


def _a_click_takes_the_whole_text_and_the_next_one_puts_the_cursor(visitor: BrowserTab) -> None:
    visitor.field.click()
    visitor.page.keyboard.type("cat")
    expect(visitor.field).to_have_value("cat")
    visitor.field.click(position={"x": 1, "y": 20})
    visitor.page.keyboard.type("The ")
    expect(visitor.field).to_have_value("The cat")


def _a_typed_sentence_is_painted_and_stands_in_the_url(visitor: BrowserTab) -> None:
    canvases = (visitor.grid, visitor.links, visitor.heat)
    before = [visitor.pixels(canvas)[0] for canvas in canvases]
    visitor.read(MAT)
    for canvas, old in zip(canvases, before, strict=True):
        assert visitor.pixels(canvas)[0] != old
    assert visitor.address == {"text": MAT}
    expect(visitor.field).to_have_value(MAT)
    assert "mat" in visitor.hover_word("mat")
    visitor.page.mouse.move(2, 2)


def _the_back_button_restores_the_sentence_before(visitor: BrowserTab) -> None:
    page = visitor.page
    words = page.locator(".ask select").first
    painted = visitor.pixels(visitor.heat)[0]
    visitor.read("Then the second one came.")
    expect(words).to_contain_text("second")
    page.go_back()
    visitor.wait_for_parameters(text=MAT)
    expect(visitor.field).to_have_value(MAT)
    expect(words).to_contain_text("mat")
    visitor.wait_for_fingerprint(visitor.heat, painted)
    page.go_back()
    expect(visitor.field).to_have_value(FIRST)
    expect(words).to_contain_text("animal")
    visitor.wait_until_drawn()


def _shift_and_enter_begin_a_new_line_and_send_nothing(visitor: BrowserTab) -> None:
    visitor.field.fill("one")
    visitor.field.press("Shift+Enter")
    visitor.field.press_sequentially("two")
    expect(visitor.field).to_have_value("one\ntwo")
    visitor.field.press("Enter")
    visitor.wait_for_parameters(text="one\ntwo")  # the first text that was sent, so that Back leads to the one before
    visitor.wait_until_drawn()
    visitor.page.go_back()
    expect(visitor.field).to_have_value(FIRST)
    assert visitor.address == {}
    visitor.wait_until_drawn()


def _what_is_typed_and_not_sent_is_left_alone(visitor: BrowserTab) -> None:
    visitor.field.fill("half a sen")
    visitor.click_head(1, 1)
    visitor.wait_for_parameters(head="L1H1")
    visitor.wait_until_drawn()
    expect(visitor.field).to_have_value("half a sen")


def _a_second_sentence_is_read_as_a_pair(visitor: BrowserTab) -> None:
    page = visitor.page
    page.get_by_text("+ Second sentence").click()
    second = page.get_by_label("Second sentence", exact=True)
    second.fill("It slept.")
    second.press("Enter")
    visitor.wait_for_parameters(text="half a sen", pair="It slept.")
    visitor.wait_until_drawn()
    expect(page.locator(".controls .choice", has_text="Pair")).to_be_visible()
    page.get_by_text("− Second sentence").click()
    page.locator("button.read").click()
    visitor.wait_for_parameters(pair=None)
    expect(page.locator(".controls .choice", has_text="Pair")).to_be_hidden()


def _examples_open_and_one_is_read(visitor: BrowserTab) -> None:
    page = visitor.page
    listed = page.locator(".sentence ul").first
    expect(listed).to_be_hidden()
    page.get_by_role("button", name="Examples").click()
    expect(listed.locator("li")).to_have_count(len(load_examples()))
    expect(listed.locator("button").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(listed).to_be_hidden()
    page.get_by_role("button", name="Examples").click()
    listed.locator("button").nth(8).click()
    visitor.wait_for_parameters(text=load_examples()[8]["text"], pair=load_examples()[8]["pair"])
    visitor.wait_until_drawn()
    expect(listed).to_be_hidden()
    expect(visitor.field).to_have_value(load_examples()[8]["text"])
    expect(page.locator(".look")).to_have_text(load_examples()[8]["look"])


def _an_empty_sentence_is_answered_and_examples_are_offered(visitor: BrowserTab) -> None:
    page = visitor.page
    listed = page.locator(".sentence ul").first
    visitor.field.fill("")
    visitor.field.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Nothing was typed.")
    expect(listed).to_be_visible()
    visitor.resize(PHONE)
    expect(page.get_by_role("alert")).to_be_in_viewport()
    visitor.resize(DESKTOP)
    listed.locator("button").nth(1).click()
    visitor.wait_for_parameters(text=load_examples()[1]["text"])
    visitor.wait_until_drawn()
    expect(page.get_by_role("alert")).to_have_count(0)


# ---- Opening heads -------------------------------------------------------------------------------------------


def test_heads_are_opened_by_pointer_keys_and_switches(visitor: BrowserTab) -> None:
    visitor.explore()
    _the_pointer_over_the_grid_previews_a_head(visitor)
    _heads_of_a_layer_have_their_own_colours(visitor)
    _the_head_bar_switches_heads_and_a_double_click_isolates_one(visitor)
    _a_click_on_the_grid_opens_a_head(visitor)
    _arrow_keys_and_enter_open_a_head(visitor)


def _the_pointer_over_the_grid_previews_a_head(visitor: BrowserTab) -> None:
    preview = visitor.page.locator(".preview")
    visitor.grid.hover(position=visitor.head_at(0, 2))
    expect(preview.locator(".name")).to_contain_text("L0H2")
    names, values = (preview.locator(part).all_inner_texts() for part in ("dt", "dd:not(.bar)"))
    rows = dict(zip(names, values, strict=True))
    assert list(rows)[-2:] == ["on punctuation", "entropy"], "below the rules, every number of the head"
    assert "unexplained" in rows
    assert re.fullmatch(r"9\d%, here 9\d%", rows["the token before"].strip())
    expect(preview.locator("summary").first).to_have_text("Numbers for this head")
    expect(visitor.title).to_have_text("L3H1 (4-2)")


def _heads_of_a_layer_have_their_own_colours(visitor: BrowserTab) -> None:
    colours = visitor.page.locator(".heads button").evaluate_all("all => all.map(b => getComputedStyle(b).borderColor)")
    assert len(set(colours)) == 12


def _the_head_bar_switches_heads_and_a_double_click_isolates_one(visitor: BrowserTab) -> None:
    _pressed(visitor, [1])
    visitor.wait_for_redraw(visitor.links, visitor.head_switch(4).click)
    visitor.wait_for_redraw(visitor.links, visitor.head_switch(7).click)
    _pressed(visitor, [1, 4, 7])
    visitor.wait_for_parameters(on="4.7")
    expect(visitor.page.locator(".marks i")).to_have_count(3)
    visitor.wait_for_redraw(visitor.links, visitor.head_switch(4).click)
    _pressed(visitor, [1, 7])
    visitor.head_switch(5).dblclick()
    _pressed(visitor, [5])
    visitor.wait_for_parameters(head="L3H5", on=None)
    visitor.head_switch(5).dblclick()
    _pressed(visitor, list(range(12)))
    visitor.head_switch(5).dblclick()
    _pressed(visitor, [5])
    visitor.wait_for_parameters(head="L3H5", on=None)


def _pressed(visitor: BrowserTab, heads: list[int]) -> None:
    """Wait until the switches of these heads are on."""
    for head in range(12):
        expect(visitor.head_switch(head)).to_have_attribute("aria-pressed", "true" if head in heads else "false")


def _a_click_on_the_grid_opens_a_head(visitor: BrowserTab) -> None:
    for layer, head in ((5, 11), (0, 0), (2, 7)):
        visitor.wait_for_redraw(visitor.heat, partial(visitor.click_head, layer, head))
        expect(visitor.title).to_have_text(f"L{layer}H{head} ({layer + 1}-{head + 1})")
        visitor.wait_for_parameters(head=f"L{layer}H{head}")
    assert visitor.address == {"head": "L2H7", "pin": f"q{IT}"}  # the pinned word stays when heads change


def _arrow_keys_and_enter_open_a_head(visitor: BrowserTab) -> None:
    page = visitor.page
    visitor.grid.focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowUp", "ArrowUp"):
        page.keyboard.press(key)
    expect(page.locator(".preview .name")).to_contain_text("L1H9")
    expect(visitor.title).to_have_text("L2H7 (3-8)")  # only the cursor moved
    page.keyboard.press("Enter")
    expect(visitor.title).to_have_text("L1H9 (2-10)")
    visitor.wait_for_parameters(head="L1H9")
    for _ in range(20):
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(visitor.title).to_have_text("L1H0 (2-1)")
