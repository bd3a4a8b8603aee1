"""Finding a head in a real browser: by keys from anywhere, by chips, by touch; and what is visible while a page
loads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from benchmarks.chromium import Traffic
from mha_viz.browser import bundle
from tests.browser_tab import PHONE, BrowserTab

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page, Route

# Every page, and the part of it that is drawn last, if that is a chart.
CHART = ".js-plotly-plot .main-svg"
PATHS = {
    "/": "",
    "/compare": "",
    "/roles": CHART,
    "/inside_a_head": CHART,
    "/why_heads_differ?guess=skip": CHART,
    "/switch_off": CHART,
    "/questions": "",
    "/about": "",
}


def field(page: Page) -> Locator:
    return page.get_by_role("searchbox", name="Find a head")


def answer(page: Page, head: str) -> Locator:
    return page.get_by_role("region", name="Heads that answer").get_by_role("link", name=head).first


def seek(page: Page, words: str) -> None:
    """Search by keys alone, once the key listener is installed."""
    expect(field(page)).to_be_visible()
    page.keyboard.press("/")
    expect(field(page)).to_be_focused()
    page.keyboard.type(words)


@pytest.mark.parametrize("path", PATHS)
def test_a_slash_begins_a_search_on_every_page_and_its_own_policy_refuses_nothing(
    visitor: BrowserTab, path: str
) -> None:
    page = visitor.visit(path)
    seek(page, "pronoun")
    expect(answer(page, "L2H4")).to_contain_text("70.5%")
    expect(answer(page, "L2H4")).to_contain_text("baseline")
    visitor.scrolls_only_down()
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    if path == "/about":
        expect(page).to_have_title("About · mha_viz")
    if PATHS[path]:
        page.locator(PATHS[path]).first.wait_for()
    expect(page.locator(".stApp")).to_have_attribute("data-test-script-state", "notRunning")
    assert visitor.faults == []


def test_answers_are_walked_by_keyboard_and_open_their_head(visitor: BrowserTab) -> None:
    page = visitor.explore()
    seek(page, "it animal")
    expect(answer(page, "L3H1")).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(answer(page, "L3H1")).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(field(page)).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type("previous word")
    expect(answer(page, "L0H2")).to_be_visible()
    page.keyboard.press("Enter")
    visitor.asked(head="L0H2", pin=None)
    expect(visitor.title).to_have_text("L0H2 (1-3)")  # the drawing follows, on the page that was open
    expect(field(page)).to_have_value("")
    page.go_back()
    expect(visitor.title).to_have_text("L3H1 (4-2)")


def test_an_answer_in_another_tab_is_the_same(visitor: BrowserTab) -> None:
    page = visitor.visit("/questions")
    field(page).fill("it animal")
    target = answer(page, "L3H1").evaluate("link => link.href")
    page.goto(target)
    visitor.drawn()
    expect(visitor.title).to_have_text("L3H1 (4-2)")
    expect(visitor.readout).to_contain_text("animal")


def test_escape_closes_one_thing_at_a_time(visitor: BrowserTab) -> None:
    page = visitor.explore()
    expect(visitor.readout).to_contain_text("it attends to")
    seek(page, "pronoun")
    expect(answer(page, "L2H4")).to_be_visible()
    page.keyboard.press("Escape")
    expect(answer(page, "L2H4")).to_be_hidden()
    expect(field(page)).to_have_value("pronoun")
    page.keyboard.press("Escape")
    expect(field(page)).to_have_value("")
    page.keyboard.press("Escape")
    expect(field(page)).not_to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()
    expect(visitor.readout).to_contain_text("it attends to")
    assert visitor.address == {}
    page.keyboard.press("Escape")
    expect(visitor.readout).to_contain_text("Strongest link")


def test_the_same_words_are_answered_again(visitor: BrowserTab) -> None:
    page = visitor.visit("/questions")
    for _ in range(2):
        seek(page, "pronoun")
        expect(answer(page, "L2H4")).to_be_visible()
        for _ in range(3):
            page.keyboard.press("Escape")
        expect(field(page)).to_have_value("")


def test_no_key_is_taken_from_somebody_who_types(visitor: BrowserTab) -> None:
    page = visitor.explore()
    visitor.field.click()
    page.keyboard.press("End")
    page.keyboard.type("/?")
    expect(visitor.field).to_be_focused()
    assert visitor.field.input_value().endswith("/?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()


def test_the_keys_can_be_given_up(newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer(alone=True)
    page = visitor.visit("/about")
    page.get_by_role("button", name="Keys").click()
    page.get_by_label("Use / and ? as keys on every page").uncheck()
    page.keyboard.press("Escape")
    page.reload()
    expect(field(page)).to_be_visible()
    page.locator("body").press("/")
    expect(field(page)).not_to_be_focused()


def test_chips_are_buttons_that_explain_themselves_and_lead_to_the_card(visitor: BrowserTab) -> None:
    page = visitor.explore(roles="on")
    chip = page.locator(".one .chip button").first
    tip = page.locator(".one .chip .tip").first
    expect(tip).to_be_hidden()
    chip.focus()
    expect(tip).to_be_visible()
    expect(tip).to_contain_text("66.3%")
    expect(tip).to_contain_text("pronoun → what it refers to, as “it” → “dog”")
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    expect(visitor.readout).to_contain_text("it attends to")  # the held word stays
    page.keyboard.press("Enter")
    visitor.asked(head="L3H1")
    expect(page.get_by_text("L3H1 (4-2) in full")).to_be_visible(timeout=60_000)


def test_a_first_tap_on_a_chip_explains_and_a_second_opens_the_card(newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer(viewport=PHONE, has_touch=True, is_mobile=True)
    page = visitor.explore(roles="on")
    chip, tip = page.locator(".one .chip button").first, page.locator(".one .chip .tip").first
    chip.scroll_into_view_if_needed()
    chip.tap()
    expect(tip).to_be_visible()
    expect(tip).to_contain_text("Tap again")
    box = tip.bounding_box()
    assert box
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= PHONE["width"]
    assert visitor.address.get("head") is None
    chip.tap()
    visitor.asked(head="L3H1")
    expect(page.get_by_role("heading", name="L3H1 (4-2)", exact=True)).to_be_visible(timeout=60_000)


def test_tables_have_no_toolbar_where_nothing_hovers(newcomer: Callable[..., BrowserTab]) -> None:
    page = newcomer(viewport=PHONE, has_touch=True, is_mobile=True).visit("/roles")
    page.get_by_text("All roles as a table").click()
    expect(page.get_by_test_id("stDataFrame").first).to_be_visible()
    expect(page.get_by_test_id("stElementToolbar").locator("visible=true")).to_have_count(0)


def test_the_shape_of_the_grid_stands_there_until_it_is_drawn(newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer(alone=True)
    waiting: list[Route] = []
    visitor.page.route(f"**/{bundle.served_file('explorer')}", lambda route: waiting.append(route))
    page = visitor.page
    page.goto(visitor.url, wait_until="commit")  # a page is loaded only with the script that is held back
    shape = page.locator(".mha-skeleton")
    expect(shape).to_be_visible()
    for _ in range(100):
        if waiting:
            break
        page.wait_for_timeout(100)
    waiting[0].continue_()
    visitor.drawn()
    expect(shape).to_be_hidden()
    page.get_by_role("link", name="About").click()
    expect(page.get_by_text("What the pictures show")).to_be_visible()
    expect(shape).to_have_count(0)


def test_the_first_page_takes_at_most_4_megabytes(newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer(alone=True)  # with an empty cache
    traffic = Traffic(visitor.page)
    visitor.explore()
    visitor.page.wait_for_timeout(1500)  # what arrives after the picture, including fonts
    assert 1e6 < traffic.bytes <= 4e6
