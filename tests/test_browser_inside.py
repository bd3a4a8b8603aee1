"""The Inside a head page, in a real browser on the real server."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser_tab import PHONE, BrowserTab

CHARTS = ".st-key-inside_step .js-plotly-plot"


def test_steps_and_heads_are_opened_by_keyboard(visitor: BrowserTab) -> None:
    page = visitor.visit("/inside_a_head", head="L3H1", step="x")
    steps = page.get_by_role("group", name="Steps of multi-head attention")
    expect(steps.locator("[aria-current=step]")).to_contain_text("16 × 384")
    steps.get_by_role("button", name="Softmax").focus()
    page.keyboard.press("Enter")
    visitor.asked(step="softmax")
    expect(steps.locator("[aria-current=step]")).to_contain_text("Softmax")
    expect(page.locator(CHARTS).first).to_be_visible()
    expect(steps.get_by_role("button", name="Softmax")).to_be_focused()
    page.get_by_role("button", name="× v →").focus()
    page.keyboard.press("Enter")
    visitor.asked(step="values")
    expect(page.get_by_role("button", name="Concat →")).to_be_focused()  # the way on has another name at each step
    page.go_back()
    visitor.asked(step="softmax")
    steps.get_by_role("button", name="Head 4").focus()
    page.keyboard.press("Enter")
    visitor.asked(head="L3H4")
    expect(steps.get_by_role("button", name="Head 4")).to_have_attribute("aria-pressed", "true")
    page.go_back()
    visitor.asked(head="L3H1", step="softmax")
    expect(steps.get_by_role("button", name="Head 1", exact=True)).to_have_attribute("aria-pressed", "true")


def test_without_the_division_softmax_saturates_before_the_eyes(visitor: BrowserTab) -> None:
    page = visitor.visit("/inside_a_head", head="L3H1", step="scale")
    expect(page.locator(CHARTS).first).to_be_visible()
    expect(page.get_by_text("Without the division:")).to_be_visible()
    page.locator(".st-key-inside_undivided label").click()
    visitor.asked(divide="no")
    expect(page.get_by_role("switch")).to_be_checked()


def test_a_bad_number_is_answered_beside_the_calculator_s_field(visitor: BrowserTab) -> None:
    page = visitor.visit("/inside_a_head", costs="512,7,64")
    expect(page.get_by_text("7 heads cannot share 512 dimensions equally").first).to_be_visible()


def test_on_a_phone_only_charts_scroll_sideways(visitor: BrowserTab) -> None:
    visitor.page.set_viewport_size(PHONE)
    page = visitor.visit("/inside_a_head", head="L3H1", step="softmax")
    expect(page.locator(CHARTS).first).to_be_visible()
    visitor.scrolls_only_down()
