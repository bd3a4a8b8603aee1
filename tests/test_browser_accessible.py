"""axe-core on every page and its open states: no violation of any of its rules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest
from playwright.sync_api import expect

from tests.browser_tab import DESKTOP, PHONE, BrowserTab

if TYPE_CHECKING:
    from playwright.sync_api import Page

LOOKS = 8  # a second apart
AXE = Path(__file__).resolve().parent.parent / "node_modules" / "axe-core" / "axe.min.js"
# axe needs to report locations only for violations.
VIOLATIONS = """axe.run(document, {resultTypes: ["violations"]}).then(({violations}) => violations.flatMap(
    ({id, nodes}) => nodes.map(({target, failureSummary}) => `${id}: ${target.join(" ")}: ${failureSummary}`)))"""
# Streamlit loads the code for labels and charts when the first one is needed.
DRAWN = """() => [...document.querySelectorAll("button[data-variant=pills]")].every(pill => pill.innerText.trim())
    && [...document.querySelectorAll(".stPlotlyChart")].every(chart => chart.querySelector(".main-svg"))"""
# The background of a colour scheme, and the colour of chart ticks in the other one.
COLOURS = {
    "light": ("rgb(255, 254, 251)", "rgb(163, 168, 174)"),
    "dark": ("rgb(20, 23, 26)", "rgb(93, 98, 104)"),
}
NO_TICK = """(colour) => [...document.querySelectorAll(".js-plotly-plot .xtick text")]
    .every(tick => getComputedStyle(tick).fill !== colour)"""
PAGES = (
    "/",
    "/?roles=on&tour=1&head=L0H2",
    "/?class=1&text=Das+Tier+%C3%BCberquerte+die+Stra%C3%9Fe+nicht.",
    "/compare?show=layer",
    "/roles?model=toy&head=L1H2",
    "/inside_a_head?step=softmax",
    "/switch_off?off=L3H1",
    "/why_heads_differ?guess=equal",
    "/questions",
    "/about?class=1",
)


def _open_everything(page: Page) -> None:
    """Examples, tables and expanders, where a page has them."""
    for name in ("Examples", "+ Second sentence"):
        button = page.get_by_role("button", name=name)
        if button.count():
            button.first.click()
    closed = page.locator("details:not([open]) > summary")
    for _ in range(closed.count()):
        closed.first.evaluate("summary => summary.click()")
    page.locator(".one .chip").evaluate_all("chips => chips.slice(0, 1).forEach(chip => chip.classList.add('open'))")
    if "class=1" not in page.url:
        page.get_by_role("searchbox").fill("object")
        expect(page.get_by_role("region", name="Heads that answer").get_by_role("link").first).to_be_visible()
    elif "/about" in page.url and page.get_by_role("button", name="QR code").is_visible():
        page.get_by_role("button", name="QR code").click()


def _settled(page: Page) -> None:
    expect(page.locator(".stApp")).to_have_attribute("data-test-script-state", "notRunning", timeout=120_000)
    page.wait_for_function(DRAWN)
    page.evaluate("new Promise(frame => requestAnimationFrame(() => requestAnimationFrame(frame)))")


def _lasting_violations(page: Page) -> list[str]:
    """The violations that axe finds once the page is complete, because parts that are still being drawn may lack a name
    or a size."""
    violations: list[str] = page.evaluate(VIOLATIONS)
    for _ in range(LOOKS):
        if not violations:
            break
        page.wait_for_timeout(1000)
        violations = page.evaluate(VIOLATIONS)
    return violations


@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_nothing(newcomer: Callable[..., BrowserTab], path: str) -> None:
    page = newcomer(color_scheme="light").visit(path)
    _settled(page)
    _open_everything(page)
    _settled(page)
    _finds_nothing(page)


def test_axe_finds_nothing_in_the_list_of_keys(visitor: BrowserTab) -> None:
    page = visitor.visit("/questions")
    _settled(page)
    expect(page.get_by_role("button", name="Keys")).to_be_visible()  # the key listener is installed
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    _finds_nothing(page)


def _finds_nothing(page: Page) -> None:
    """In light and dark, on a desktop and, with the window as narrow, on a phone."""
    assert AXE.is_file(), "npm ci brings axe-core"
    page.evaluate(AXE.read_text("utf-8"))
    violations = {}
    for size, scheme in ((DESKTOP, "light"), (DESKTOP, "dark"), (PHONE, "dark"), (PHONE, "light")):
        page.set_viewport_size(size)
        _turned(page, scheme)
        violations[f"{size['width']} pixels, {scheme}"] = _lasting_violations(page)
    assert not any(violations.values()), violations


def _turned(page: Page, scheme: Literal["light", "dark"]) -> None:
    """Switch the page's colour scheme, and wait until everything has its colours: the page at once, charts when the
    server has drawn them."""
    page.emulate_media(color_scheme=scheme)
    paper, other_ticks = COLOURS[scheme]
    expect(page.locator(".stApp")).to_have_css("background-color", paper)
    page.wait_for_function(NO_TICK, arg=other_ticks)
    _settled(page)
