"""The main jobs of two pages by keyboard alone, in a real browser: every stop is seen, and no key goes astray."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import TimeoutError, expect

from tests.browser_tab import FRAMES, BrowserTab

if TYPE_CHECKING:
    from playwright.sync_api import Page

# What has the keyboard: its name, and whether it is drawn with a ring. Streamlit's fields change their frame instead.
FOCUSED = """() => {
    let one = document.activeElement;
    while (one.shadowRoot?.activeElement) one = one.shadowRoot.activeElement;
    const label = one.getAttribute("aria-label") ?? one.labels?.[0]?.innerText ?? one.innerText;
    const ringed = one.matches("input") ? one.closest("label") ?? one : one;
    const hasRing = getComputedStyle(ringed).outlineStyle !== "none" || one.matches("textarea, input");
    return [one === document.body ? "" : label, hasRing];
}"""
MOST_STOPS = 70


def focused(page: Page) -> str:
    """The name of what has the keyboard; empty where nothing has."""
    name, has_ring = page.evaluate(FOCUSED)
    assert has_ring or not name, f"{name[:60]}: nothing shows that it has the keyboard"
    return str(name)


def go_to(page: Page, name: str, key: str = "Tab") -> None:
    """Press Tab until what has this name has the keyboard; every stop on the way must show it."""
    for _ in range(MOST_STOPS):
        page.keyboard.press(key)
        if name in focused(page)[:80]:
            return
    raise AssertionError(f"{name} cannot be reached by {key}")


def stays_on(page: Page, name: str) -> None:
    """When the page has come to rest, the keyboard is on what has this name."""
    expect(page.locator(".stApp")).to_have_attribute("data-test-script-state", "notRunning")
    page.evaluate(FRAMES)
    try:
        page.wait_for_function(f"name => ({FOCUSED})()[0].includes(name)", arg=name)
    except TimeoutError as error:
        raise AssertionError(f"{name} has lost the keyboard to “{focused(page)[:60]}”") from error
    focused(page)


def the_navigation_shows_where_the_keyboard_is(page: Page) -> None:
    link = page.get_by_role("link", name="Compare")
    go_to(page, "Explore")
    while not link.evaluate("link => link === document.activeElement"):
        assert focused(page) != "", "the end of the page is reached"
        page.keyboard.press("Tab")
    expect(link).to_have_css("outline-style", "solid")
    expect(link).to_have_css("outline-width", "2px")


def test_a_sentence_is_read_and_shared_by_keyboard_alone(visitor: BrowserTab) -> None:
    visitor.allow_clipboard()
    page, press = visitor.explore(), visitor.page.keyboard.press
    the_navigation_shows_where_the_keyboard_is(page)
    go_to(page, "Skip to main content", "Shift+Tab")
    press("Enter")
    go_to(page, "Examples")
    press("Enter")
    go_to(page, "The keys to the old wooden cabinet")
    press("Enter")
    visitor.wait_for_parameters(text="The keys to the old wooden cabinet are on the table.")
    stays_on(page, "Examples")
    go_to(page, "Sentence", "Shift+Tab")
    press("ControlOrMeta+a")
    page.keyboard.type("The cat slept because it was warm.")
    press("Enter")
    visitor.wait_for_parameters(text="The cat slept because it was warm.")
    visitor.wait_until_drawn()
    stays_on(page, "Sentence")

    go_to(page, "All heads")
    press("ArrowDown")
    press("ArrowRight")
    press("Enter")
    visitor.wait_for_parameters(head="L4H2")
    expect(visitor.title).to_have_text("L4H2 (5-3)")
    stays_on(page, "All heads")
    go_to(page, "+ Compare")
    press("Enter")
    expect(page.get_by_role("link", name="Compare (1)")).to_be_visible()
    stays_on(page, "+ Compare")

    go_to(page, "Drawing")
    press("Enter")
    go_to(page, "Token links")
    press("Space")
    go_to(page, "Token links of")
    press("ArrowDown")
    press("Enter")
    visitor.wait_for_parameters(pin="q1")
    expect(visitor.readout).to_contain_text("The attends to ")
    stays_on(page, "Token links of")
    go_to(page, "About", "Shift+Tab")
    press("Shift+Tab")
    assert focused(page) == "More"
    press("Enter")
    stays_on(page, "Copy link")
    last = "Lesson: What do heads do?"
    ways = {"ArrowUp": last, "ArrowDown": "Copy link", "End": last, "Home": "Copy link"}
    for key, item in ways.items():
        press(key)
        stays_on(page, item)
    press("Enter")
    expect(page.get_by_text("This link works on this computer only.")).to_be_visible()
    copied = parse_qs(urlsplit(page.evaluate("navigator.clipboard.readText()")).query)
    assert (copied["head"], copied["pin"]) == (["L4H2"], ["q1"])
    go_to(page, "save one interactive HTML file")
    press("Enter")
    stays_on(page, "Download")
    expect(page.get_by_role("button", name="Interactive HTML")).to_be_visible()
    go_to(page, "Interactive HTML")
    press("Escape")
    visitor.wait_for_parameters(pin=None)  # nothing else was open
    press("/")
    page.keyboard.type("pronoun")
    expect(page.get_by_role("region", name="Matching heads").get_by_role("link").first).to_be_visible()
    press("ArrowDown")
    press("Enter")
    visitor.wait_for_parameters(head="L2H4")
    stays_on(page, "Find a head")


def test_escape_closes_what_a_button_has_opened_and_leads_back_to_it(visitor: BrowserTab) -> None:
    page, press = visitor.visit("/", pin="q3"), visitor.page.keyboard.press
    visitor.wait_until_drawn()
    for name, inside in (("Examples", "li button"), ("Drawing", ".drawing input:checked")):
        go_to(page, name)
        press("Enter")
        expect(page.locator(inside).first).to_be_visible()
        press("Tab")
        press("Escape")
        expect(page.locator(inside).first).to_be_hidden()
        stays_on(page, name)
        visitor.wait_for_parameters(pin="q3")  # one thing at a time
    press("Escape")
    visitor.wait_for_parameters(pin=None)


def test_heads_are_switched_off_by_keyboard_alone(visitor: BrowserTab) -> None:
    page, press = visitor.visit("/switch_off", off="L0H1"), visitor.page.keyboard.press
    expect(page.get_by_text("Removing L5H11 (6-12) changes the sentence vector most here")).to_be_visible()
    expect(page.locator("a[aria-current=page]")).to_be_visible()  # the page's own script has come
    go_to(page, "Choose heads")
    press("Enter")
    expect(page.get_by_text("A small effect does not make")).to_be_visible()
    go_to(page, "Heads switched off")
    page.keyboard.type("L3H1")
    press("Enter")
    visitor.wait_for_parameters(off="L0H1.L3H1")  # that head, and not L3H10 and L3H11
    expect(page.get_by_text("Removing L0H1 and L3H1 together")).to_be_visible()
    stays_on(page, "Heads switched off")
    go_to(page, "zeros")
    press("ArrowRight")
    press("ArrowRight")
    press("Space")
    visitor.wait_for_parameters(how="uniform")
    stays_on(page, "uniform attention")
    go_to(page, "Add a layer")
    press("ArrowDown")
    press("Enter")
    expect(page.get_by_text("Removing 13 heads together")).to_be_visible()
    stays_on(page, "Add a layer")
    press("Escape")
    expect(page.get_by_test_id("stPopoverBody")).to_have_count(0)
    stays_on(page, "Choose heads")


def test_arrows_between_heads_are_a_list_for_the_keyboard(visitor: BrowserTab) -> None:
    page, words = visitor.page, "dog+river+anna+green+king+cat"
    page.goto(f"{visitor.url}/?model=repeater&head=L0H1&text={words}+{words}")
    page.locator("summary", has_text="Drawing").click()
    page.get_by_role("checkbox", name="Arrows between heads").press("Space")
    first = page.get_by_label("Arrows between heads").get_by_role("button").first
    share = re.compile(r"^L0H0 contributes [5-9].*% of the scores of L1H\d, through its key")
    expect(first).to_have_accessible_name(share)
    assert parse_qs(urlsplit(page.url).query)["arrows"] == ["on"]
    expect(page.locator(".composed [role=status]")).to_have_text("L0H1 has no arrows.")
    first.focus()
    expect(page.locator(".arrows .near")).to_have_count(1)
    listed = page.locator(".composed ol")
    assert listed.evaluate("e => e.clientHeight - 6") % listed.locator("li").first.evaluate("e => e.offsetHeight") == 0
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=re.compile("Head L1H"))).to_be_visible()
