"""The history of typed sentences: stored only in the browser, opened by a click, deleted by another."""

from __future__ import annotations

import json
from collections.abc import Callable

from playwright.sync_api import expect

from tests.app_server import AppServer
from tests.browser_tab import BrowserTab

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


def test_a_typed_sentence_is_found_again_and_can_be_forgotten(visitor: BrowserTab) -> None:
    page = visitor.explore()
    history = page.get_by_role("button", name="History")
    expect(history).to_be_hidden()
    visitor.read("Dogs bark.")
    visitor.read("Cats sleep.")
    history.click()
    expect(page.get_by_role("button", name="Dogs bark.")).to_be_visible()
    page.get_by_role("button", name="Dogs bark.").click()
    visitor.asked(text="Dogs bark.")
    expect(visitor.field).to_have_value("Dogs bark.")
    page.reload()
    visitor.drawn()
    history.click()
    first = page.locator(".sentence ul:not([hidden]) li").first
    expect(first).to_contain_text("Dogs bark.")
    page.get_by_role("button", name="Clear the history").click()
    expect(history).to_be_hidden()
    assert page.evaluate(f"localStorage.getItem({KEY!r})") is None


def test_the_server_keeps_nothing_that_was_typed(visitor: BrowserTab, server: AppServer) -> None:
    visitor.explore()
    visitor.read("Pangolins hum quietly.")
    visitor.page.get_by_role("button", name="History").click()
    files = [path for path in server.folder.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if b"Pangolins" in path.read_bytes()]


def test_nothing_of_the_history_is_sent_but_the_sentence_that_is_chosen(newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer()
    past = json.dumps([{"text": SECRET, "pair": ""}, {"text": "Dogs bark.", "pair": ""}])
    visitor.page.add_init_script(f"localStorage.setItem({KEY!r}, {past!r})")
    sent = overhear(visitor)
    page = visitor.explore(text="It rains.")
    page.get_by_role("button", name="History").click()
    expect(page.get_by_role("button", name=SECRET)).to_be_visible()
    page.get_by_role("button", name="Dogs bark.").click()
    visitor.asked(text="Dogs bark.")
    visitor.drawn()
    assert any("Dogs bark." in one or "Dogs%20bark." in one for one in sent)
    assert not [one for one in sent if "quokka" in one]
