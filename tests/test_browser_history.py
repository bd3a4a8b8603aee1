"""The history of typed sentences: stored only in the browser, opened by a click, deleted by another."""

from __future__ import annotations

import json
from collections.abc import Callable

from playwright.sync_api import expect

from tests.app_server import AppServer
from tests.browser_tab import IDLE, BrowserTab

SECRET = "The quokka whispered nothing."
KEY = "mha_viz.sentences"


def overhear(visitor: BrowserTab) -> list[str]:
    """Everything that the page sends from now on, over its WebSocket and as requests."""
    sent: list[str] = []

    def keep(frame: str | bytes) -> None:
        sent.append(frame if isinstance(frame, str) else frame.decode("utf-8", "replace"))

    visitor.is_altered = True
    visitor.page.on("websocket", lambda socket: socket.on("framesent", keep))
    visitor.page.on("request", lambda request: sent.append(f"{request.url} {request.post_data or ''}"))
    return sent


def test_typed_sentences_are_found_again_and_forgotten_and_nobody_else_gets_them(
    newcomer: Callable[..., BrowserTab], server: AppServer
) -> None:
    visitor = newcomer()
    visitor.visit(IDLE).evaluate(
        "([key, past]) => localStorage.setItem(key, past)",
        [KEY, json.dumps([{"text": text, "pair": ""} for text in (SECRET, "Dogs bark.")])],
    )
    sent = overhear(visitor)
    visitor.explore(text="It rains.")
    _a_sentence_of_an_earlier_visit_is_opened(visitor)
    visitor.read("Pangolins hum quietly.")
    _the_latest_comes_first_when_the_page_is_loaded_again(visitor)
    assert not [one for one in sent if "quokka" in one], "only the sentence that was chosen is sent"
    assert any("Dogs bark." in one or "Dogs%20bark." in one for one in sent)
    _the_server_keeps_nothing_that_was_typed(server)
    _the_history_can_be_forgotten(visitor)


def _a_sentence_of_an_earlier_visit_is_opened(visitor: BrowserTab) -> None:
    page = visitor.page
    page.get_by_role("button", name="History").click()
    expect(page.get_by_role("button", name=SECRET)).to_be_visible()
    page.get_by_role("button", name="Dogs bark.").click()
    visitor.wait_for_parameters(text="Dogs bark.")
    expect(visitor.field).to_have_value("Dogs bark.")
    visitor.wait_until_drawn()


def _the_latest_comes_first_when_the_page_is_loaded_again(visitor: BrowserTab) -> None:
    page = visitor.page
    page.reload()
    visitor.wait_until_drawn()
    page.get_by_role("button", name="History").click()
    listed = page.locator(".sentence ul:not([hidden]) li")
    for place, text in enumerate(("Pangolins hum quietly.", "Dogs bark.", SECRET)):
        expect(listed.nth(place)).to_contain_text(text)


def _the_server_keeps_nothing_that_was_typed(server: AppServer) -> None:
    files = [path for path in server.folder.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b"Pangolins" in path.read_bytes()]


def _the_history_can_be_forgotten(visitor: BrowserTab) -> None:
    page = visitor.page
    page.get_by_role("button", name="Clear history").click()
    expect(page.get_by_role("button", name="History")).to_be_hidden()
    assert page.evaluate(f"localStorage.getItem({KEY!r})") is None


def test_what_is_typed_and_not_read_yet_is_there_on_the_next_page(visitor: BrowserTab) -> None:
    page = visitor.explore()
    read = visitor.field.input_value()
    visitor.field.press_sequentially(" And")
    for name in ("Roles", "Inside a head"):
        page.get_by_role("link", name=name).first.click()
        expect(page.locator(".st-key-pages a[aria-current=page]")).to_have_text(name)
    expect(visitor.field).to_have_value(f"{read} And")
    page.get_by_role("button", name="Show attention").click()
    visitor.wait_for_parameters(text=f"{read} And")
