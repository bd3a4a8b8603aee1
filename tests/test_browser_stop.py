"""Long work in a real browser: progress with an estimate, and Stop by a click, while the server holds the work."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.app_server import AppServer
from tests.browser_tab import BrowserTab

LONG = 600_000  # milliseconds: a reader begins, and the whole text is read


def test_heads_are_switched_off_in_a_long_text_with_progress_and_an_estimate_until_stop(
    visitor: BrowserTab, server: AppServer
) -> None:
    with server.held():
        page = visitor.visit("/switch_off", text="cat " * 300)
        progress = page.get_by_text(re.compile(r"Switching off each head in turn: \d+%, about .+ left"))
        expect(progress).to_be_visible(timeout=LONG)
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_text("You stopped this.")).to_be_visible(timeout=LONG)
        page.get_by_role("button", name="Continue").click()
        expect(progress).to_be_visible(timeout=LONG)
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_role("button", name="Continue")).to_be_visible(timeout=LONG)


def test_a_search_by_head_ends_with_a_click_on_stop(visitor: BrowserTab, server: AppServer) -> None:
    page = visitor.roles(head="L3H1")
    page.get_by_text("Numbers", exact=True).click()
    expect(page.get_by_text("In the built-in sentences it is right")).to_be_visible(timeout=LONG)
    page.get_by_text("Search this head’s links").click()
    with server.held():
        page.get_by_test_id("stBaseButton-secondaryFormSubmit").click()
        page.get_by_role("button", name="Stop").click(timeout=LONG)
        expect(page.get_by_text("The search was stopped")).to_be_visible(timeout=LONG)
