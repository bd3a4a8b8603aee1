"""The line that says why a link is there and what it writes, in a real browser: pointer, keyboard and touch."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Locator, expect

from tests.browser_tab import FRAMES, PHONE, BrowserTab

IT_TO_ANIMAL = "it → animal: found by earlier heads and word; writes beast, breed, pup"
CELL = re.compile(r"^it → animal ")
FITS = "line => [line.scrollWidth <= line.clientWidth, line.scrollHeight <= line.clientHeight + 1]"


def line_of(visitor: BrowserTab) -> Locator:
    return visitor.page.locator(".reason")


def hover_cell(visitor: BrowserTab) -> None:
    """Move the pointer to the cell of "it" and "animal"."""
    visitor.heat.evaluate("canvas => canvas.scrollIntoView({ block: 'nearest' })")
    box = visitor.heat.bounding_box()
    assert box
    along, down = range(int(box["width"]) - 4, 60, -9), range(int(box["height"]) - 4, 60, -9)
    column = next(x for x in along if "→ animal" in visitor.point(visitor.heat, x, down[0]))
    visitor.hover_until(visitor.heat, ((column, y) for y in down), CELL)


def test_a_hovered_link_says_why_it_is_there_and_moves_nothing(visitor: BrowserTab) -> None:
    page, line = visitor.explore(), line_of(visitor)
    visitor.unfold()
    expect(line).to_have_text("")
    visitor.hover_word("it")
    before = [visitor.readout.bounding_box(), visitor.heat.bounding_box(), page.locator(".elsewhere").bounding_box()]
    expect(line).to_have_text(IT_TO_ANIMAL)
    assert line.evaluate(FITS) == [True, True]
    assert [
        visitor.readout.bounding_box(),
        visitor.heat.bounding_box(),
        page.locator(".elsewhere").bounding_box(),
    ] == before
    hover_cell(visitor)
    expect(line).to_have_text(IT_TO_ANIMAL)
    visitor.heat.focus()
    page.mouse.move(2, 2)
    page.keyboard.press("ArrowLeft")  # from the pinned word to a cell of its row
    said = page.locator(".explorer > .said")
    expect(line).to_have_text(re.compile("^it → (?!animal).+: found by "))
    expect(said).to_contain_text(line.inner_text())
    visitor.heat.blur()
    visitor.set_colour_scheme("dark")
    hover_cell(visitor)
    expect(line).to_have_text(IT_TO_ANIMAL)
    ink = line.locator("bdi").first.evaluate("word => getComputedStyle(word).color")
    assert ink == page.locator(".one h2").evaluate("title => getComputedStyle(title).color")
    visitor.check_no_faults()


def test_a_first_visit_asks_for_no_reason(visitor: BrowserTab) -> None:
    sent: list[str | bytes] = []
    visitor.page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(frame)))
    page = visitor.explore()
    expect(page.locator(".stApp")).to_have_attribute("data-test-script-state", "notRunning")
    page.evaluate(FRAMES)
    assert not any(b'"ask"' in frame for frame in sent if isinstance(frame, bytes))
    visitor.hover_word("it")
    expect(line_of(visitor)).to_have_text(IT_TO_ANIMAL)
    assert any(b'"ask"' in frame for frame in sent if isinstance(frame, bytes))


def test_a_link_that_comes_pinned_is_explained(visitor: BrowserTab) -> None:
    visitor.explore(head="L3H1", pin="q10k2")
    expect(line_of(visitor)).to_have_text(IT_TO_ANIMAL)


def test_the_keyboard_hears_the_line_once_when_it_arrives(visitor: BrowserTab) -> None:
    page = visitor.explore()
    said = page.locator(".explorer > .said")
    page.keyboard.press("Escape")
    visitor.heat.focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    expect(said).to_have_text(re.compile(r"The → animal.*found by earlier heads; writes beast, breed, pup$"))
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowRight")
    expect(said).to_have_text(re.compile(r"^The → animal \d\.\d+\. The → animal: found by earlier heads; writes beast"))
    assert "found by" not in (visitor.heat.get_attribute("aria-label") or "")


def test_on_a_phone_a_tap_shows_the_line_in_two_lines_at_most(newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer(viewport=PHONE, has_touch=True, is_mobile=True)
    page, line = visitor.explore(), line_of(visitor)
    visitor.heat.scroll_into_view_if_needed()
    page.evaluate(FRAMES)
    before = visitor.heat.bounding_box()
    size = before or {"width": 0, "height": 0}
    visitor.heat.tap(position={"x": size["width"] * 0.3, "y": size["height"] * 0.3})
    visitor.heat.tap(position={"x": size["width"] * 0.34, "y": size["height"] * 0.36})
    expect(line).to_contain_text(re.compile(r" → .*: (found by|writes) "))
    assert line.evaluate(FITS) == [True, True]
    assert visitor.heat.bounding_box() == before
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
