"""Browsers without the newest features of CSS and JavaScript, imitated in Chromium: the feature is said to be missing,
and the rules that use it are dropped, as a browser drops what it does not know."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, ViewportSize, expect

from mha_viz.browser.supported import TOO_OLD
from tests.browser_tab import DESKTOP, FRAMES, PHONE, BrowserTab, measure_boxes
from tests.live_pages import serve_folder
from tests.readings import reading

# The style sheets of components lose the declarations of a property, which the browser denies.
WITHOUT = """(property) => {
    const supports = CSS.supports.bind(CSS);
    CSS.supports = (...rule) => !rule[0].includes(property) && supports(...rule);
    const replace = CSSStyleSheet.prototype.replaceSync;
    CSSStyleSheet.prototype.replaceSync = function (text) {
        const without = text.replace(new RegExp(`(^|[;{\\\\s])${property}\\\\s*:[^;}]*;?`, "g"), "$1");
        replace.call(this, without);
    };
}"""
# WebKit cuts words of texts that are clamped to a number of lines, even where everything fits.
CLAMP = """(part) => [getComputedStyle(part).display, getComputedStyle(part).webkitLineClamp]"""
# What a browser asks itself before it hides the sentence for older ones, and what none knows.
CONDITION, UNKNOWN = "(color: light-dark(", "(color: unheard-of("
NOT_DRAWN = "This drawing needs a browser from 2024 or later."
# The height inside a field, and that of its text with its padding.
HEIGHTS = """(field) => ({ client: field.clientHeight, scroll: field.scrollHeight })"""


def without(visitor: BrowserTab, feature: str) -> None:
    """Let all pages that this visitor opens from now on be without a property of CSS."""
    visitor.page.add_init_script(f"({WITHOUT})({feature!r})")


@pytest.mark.parametrize("window", [DESKTOP, PHONE], ids=["1440", "390"])
def test_the_first_sentence_and_its_arcs_have_room_in_a_field_that_does_not_grow(
    newcomer: Callable[..., BrowserTab], window: ViewportSize
) -> None:
    visitor = newcomer(new_tab=True, viewport=window)
    without(visitor, "field-sizing")
    page = visitor.visit("/", head="L0H2")
    arcs = page.locator(".bows path")
    expect(arcs.nth(5)).to_be_attached()
    assert visitor.field.evaluate("(field) => getComputedStyle(field).fieldSizing") == "fixed"
    _fits(visitor)
    assert all(box["height"] > 8 for box in measure_boxes(arcs)), "no smear"
    for other in (PHONE, DESKTOP):
        visitor.resize(other)
        page.evaluate(FRAMES)
        _fits(visitor)
    visitor.field.fill("one line\nand another\nand a third")
    _fits(visitor)
    page.get_by_role("button", name="+ Second sentence").click()
    page.evaluate(FRAMES)
    second = page.get_by_label("Second sentence", exact=True)
    assert second.evaluate("(field) => field.clientHeight") > 25


def _fits(visitor: BrowserTab) -> None:
    heights = visitor.field.evaluate(HEIGHTS)
    assert heights["scroll"] <= heights["client"], heights


@pytest.mark.parametrize("lacks", [True, False], ids=["without", "with"])
def test_a_menu_is_as_wide_as_its_chosen_option(newcomer: Callable[..., BrowserTab], lacks: bool) -> None:
    visitor = newcomer(new_tab=True)
    if lacks:
        without(visitor, "field-sizing")
    visitor.explore()
    menu = visitor.page.locator(".controls .choice", has_text="Links").locator("select")
    widths = {}
    for value in ("top", "all"):
        visitor.choose("Links", value)
        visitor.page.evaluate(FRAMES)
        box = menu.bounding_box()
        assert box
        widths[value] = box["width"]
    menus = visitor.page.locator(".controls select")
    longest = "(all) => all.filter((one) => one.offsetWidth).map((one) => one.getBoundingClientRect().top)"
    assert len(set(menus.evaluate_all(longest))) == 1, "one row"
    assert widths["all"] != widths["top"]


def test_texts_are_cut_after_whole_lines_without_a_clamp(visitor: BrowserTab) -> None:
    visitor.explore()
    assert visitor.readout.evaluate(CLAMP) == ["block", "none"]
    line = "(part) => part.clientHeight / parseFloat(getComputedStyle(part).lineHeight)"
    assert visitor.readout.evaluate(line) == pytest.approx(1, abs=0.05)
    long = " ".join(["the animal was tired"] * 25)
    quoted = visitor.visit("/compare", text=long).locator(".mha-about q")
    expect(quoted).to_have_text(long)
    expect(quoted).to_have_attribute("title", long)
    assert quoted.evaluate(CLAMP) == ["block", "none"]
    assert quoted.evaluate(line) == pytest.approx(2, abs=0.05)
    assert quoted.evaluate("(part) => part.scrollHeight > part.clientHeight")


def test_the_triangle_of_what_can_be_unfolded_is_of_the_system(visitor: BrowserTab) -> None:
    """WebKit and Firefox write it, and in the letters of the pages it is tiny."""
    visitor.explore()
    font = "(part) => getComputedStyle(part, '::marker').fontFamily"
    assert visitor.page.locator(".drawing > summary").evaluate(font) == "system-ui, sans-serif"


def test_an_older_browser_is_told_so_even_if_nothing_of_the_app_runs_in_it(
    newcomer: Callable[..., BrowserTab], visitor: BrowserTab
) -> None:
    note = visitor.explore().locator(".mha-older")
    expect(note).to_have_text(TOO_OLD)
    expect(note).to_be_hidden()
    older = newcomer(new_tab=True, viewport=PHONE)
    older.page.route("**/static/js/*.js", lambda route: route.fulfill(body="", content_type="text/javascript"))
    older.page.route(f"{older.url}/", _of_an_older_browser)
    _tells(older.visit("/"))


def test_an_exported_file_tells_an_older_browser_why_it_is_empty(browser: Browser, tmp_path: Path) -> None:
    html = reading().heatmap("L0H0").to_html()
    context = browser.new_context(bypass_csp=True)  # a changed style has another digest
    for name, source in {"newer": html, "older": html.replace(CONDITION, UNKNOWN)}.items():
        (tmp_path / f"{name}.html").write_text(source, "utf-8")
    newer, older = context.new_page(), context.new_page()
    newer.goto((tmp_path / "newer.html").as_uri())
    expect(newer.locator("html")).to_have_attribute("data-painted", "yes")
    expect(newer.locator(".mha-older")).to_be_hidden()
    older.add_init_script("delete globalThis.DecompressionStream")
    older.goto((tmp_path / "older.html").as_uri())
    expect(older.locator("#root")).to_have_text(NOT_DRAWN)
    _tells(older)
    context.close()


@pytest.mark.parametrize("feature", ["DecompressionStream", "CSSStyleSheet"])
def test_a_live_page_tells_an_older_browser_why_it_is_empty(page: Page, live_toy: Path, feature: str) -> None:
    page.add_init_script(f"delete globalThis.{feature}")
    page.route("**/style.css*", _of_an_older_browser)
    with serve_folder(live_toy) as (address, _):
        page.goto(address)
        expect(page.locator("#live")).to_contain_text(NOT_DRAWN)
        _tells(page)


def _of_an_older_browser(route: Route) -> None:
    response = route.fetch()
    assert CONDITION in response.text()
    route.fulfill(response=response, body=response.text().replace(CONDITION, UNKNOWN))


def _tells(page: Page) -> None:
    note = page.locator(".mha-older")
    expect(note).to_be_visible()
    expect(note).to_have_text(TOO_OLD)
    expect(note).to_be_in_viewport(ratio=1)
