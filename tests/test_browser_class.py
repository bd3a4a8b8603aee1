"""The view for a class in a real browser: a code that phones can read, larger type, and a pointer that still hits."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser_tab import BrowserTab


def size(visitor: BrowserTab, selector: str) -> float:
    height: float = visitor.page.locator(selector).first.evaluate("e => e.getBoundingClientRect().height")
    return height


def test_the_code_the_type_and_the_pointer(visitor: BrowserTab) -> None:
    page = visitor.explore(**{"class": "1", "head": "L3H1"})
    expect(page.get_by_alt_text("QR code of this view")).to_be_visible()
    expect(page.get_by_text("Only this computer can open http://127.0.0.1")).to_be_visible()
    for hidden in ("Examples", "Copy link", "+ Compare"):
        expect(page.get_by_role("button", name=hidden)).to_be_hidden()
    visitor.grid.click(position=visitor.head_at(2, 4))
    visitor.asked(head="L2H4", **{"class": "1"})


def test_a_lesson_is_walked_to_its_end(visitor: BrowserTab) -> None:
    page = visitor.explore(**{"class": "1", "text": "It rains."})
    page.get_by_text("Make a lesson").click()
    for remark in ("First", "Second"):
        page.get_by_label("Remark").fill(remark)
        page.get_by_label("Remark").press("Tab")
        page.get_by_role("button", name="Add this view").click()
        expect(page.get_by_text(f": {remark}")).to_be_visible()
    page.get_by_role("button", name="← Back").click()
    visitor.asked(part="1")
    expect(page.locator(".mha-lesson")).to_contain_text("First")
    page.get_by_role("button", name="Next →").click()
    visitor.asked(part="2")
    expect(page.locator(".mha-lesson")).to_contain_text("Second")
    page.get_by_role("button", name="Leave the class view").click()
    visitor.asked(part=None, lesson=None)
