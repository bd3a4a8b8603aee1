"""Finding a head in a real browser: by keys from anywhere, by chips, by touch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from tests.browser_tab import PHONE, BrowserTab

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page


def field(page: Page) -> Locator:
    return page.get_by_role("searchbox", name="Find a head")


def answer(page: Page, head: str) -> Locator:
    return page.get_by_role("region", name="Matching heads").get_by_role("link", name=head).first


def seek(page: Page, words: str) -> None:
    """Search by keys alone, once the key listener is installed."""
    expect(field(page)).to_be_visible()
    page.keyboard.press("/")
    expect(field(page)).to_be_focused()
    page.keyboard.type(words)


def test_a_search_is_walked_by_keyboard(visitor: BrowserTab) -> None:
    page = visitor.explore()
    expect(visitor.readout).to_contain_text("it attends to")
    escape_closes_one_thing_at_a_time(visitor)
    no_key_is_taken_from_somebody_who_types(visitor)
    answers_are_walked_and_open_their_head(visitor)
    page.goto(f"{visitor.url}/about")
    an_answer_in_another_tab_is_the_same(visitor)


def escape_closes_one_thing_at_a_time(visitor: BrowserTab) -> None:
    page = visitor.page
    for _ in range(2):  # the same words are answered again
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
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_hidden()
    expect(visitor.readout).to_contain_text("it attends to")
    assert visitor.address == {}
    page.keyboard.press("Escape")
    expect(visitor.readout).to_contain_text("Strongest link")


def no_key_is_taken_from_somebody_who_types(visitor: BrowserTab) -> None:
    page = visitor.page
    before = visitor.field.input_value()
    visitor.field.click()
    page.keyboard.press("End")
    page.keyboard.type("/?")
    expect(visitor.field).to_be_focused()
    expect(visitor.field).to_have_value(f"{before}/?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_hidden()
    for _ in "/?":
        page.keyboard.press("Backspace")
    expect(visitor.field).to_have_value(before)
    page.keyboard.press("Tab")


def answers_are_walked_and_open_their_head(visitor: BrowserTab) -> None:
    page = visitor.page
    expect(visitor.title).to_have_text("L3H1 (4-2)")
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
    # The drawing follows, on the page that was open, in a sentence in which the head does that.
    expect(visitor.title).to_have_text("L0H2 (1-3)")
    expect(field(page)).to_have_value("")
    page.go_back()
    expect(visitor.title).to_have_text("L3H1 (4-2)")


def an_answer_in_another_tab_is_the_same(visitor: BrowserTab) -> None:
    page = visitor.page
    field(page).fill("it animal")
    target = answer(page, "L3H1").evaluate("link => link.href")
    page.goto(target)
    visitor.wait_until_drawn()
    expect(visitor.title).to_have_text("L3H1 (4-2)")
    expect(visitor.readout).to_contain_text("animal")


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
    visitor.wait_for_parameters(head="L3H1")
    expect(page.get_by_role("heading", name="L3H1 (4-2)", exact=True)).to_be_visible()
    tables_have_no_toolbar_where_nothing_hovers(page)


def tables_have_no_toolbar_where_nothing_hovers(page: Page) -> None:
    page.get_by_text("Numbers", exact=True).click()
    page.get_by_text("All numbers of the relations").click()
    expect(page.get_by_test_id("stDataFrame").locator("visible=true").first).to_be_visible()
    expect(page.get_by_test_id("stElementToolbar").locator("visible=true")).to_have_count(0)


def test_where_an_answer_leads_to_another_page_the_keyboard_goes_on_below_the_navigation(visitor: BrowserTab) -> None:
    page = visitor.visit("/about")
    seek(page, "L3H1")
    expect(answer(page, "L3H1")).to_be_visible()
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "head=L3H1" in url and "about" not in url)
    heading = page.locator("h1.mha-heading", has_text="Explore")  # that of the page before is there for a moment
    expect(heading).to_be_focused()
    expect(visitor.title).to_have_text("L3H1 (4-2)")
    expect(heading).to_be_focused()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement !== document.body && !document.activeElement.closest('nav')")


# The next address that is set for another page lacks its parameters.
LOST = """{
    const push = history.pushState.bind(history);
    history.pushState = (state, title, address) => {
        const isOther = new URL(address, location.href).pathname !== location.pathname;
        if (isOther) history.pushState = push;
        push(state, title, isOther ? address.split("?")[0] : address);
    };
}"""


def test_an_answer_opens_its_head_though_the_page_comes_without_the_parameters(
    newcomer: Callable[..., BrowserTab],
) -> None:
    visitor = newcomer(new_tab=True)
    page = visitor.page
    page.add_init_script(LOST)
    visitor.visit("/about")
    seek(page, "L3H1")
    expect(answer(page, "L3H1")).to_be_visible()
    page.keyboard.press("Enter")
    visitor.wait_for_parameters(head="L3H1")
    expect(visitor.title).to_have_text("L3H1 (4-2)")
    visitor.wait_for_parameters(head="L3H1")


# How often the field has begun or ceased to wait for an answer.
TURNS = """field => {
    field.turns = 0;
    new MutationObserver(() => { field.turns += 1; }).observe(field, { attributeFilter: ["aria-busy"] });
}"""


def test_an_answer_that_is_chosen_is_not_replaced_by_a_later_one(visitor: BrowserTab) -> None:
    page = visitor.visit("/about")
    seek(page, "pronoun")
    expect(answer(page, "L2H4")).to_be_visible()
    field(page).evaluate(TURNS)
    page.keyboard.type(" ")  # asks again
    page.keyboard.press("ArrowDown")
    expect(answer(page, "L2H4")).to_be_focused()
    page.wait_for_function("field => field.turns === 2", arg=field(page).element_handle())
    expect(answer(page, "L2H4")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "L2H4" in url and "about" not in url)
