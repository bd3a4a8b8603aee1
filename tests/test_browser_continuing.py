"""A causal model continues the text in a browser: while it writes, the picture stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.app_server import PatientServer
from tests.browser_tab import BrowserTab

TEXT = "the dog saw a girl . the dog"
WROTE = " stands a girl . the dog stands a"
# In every frame from now on: whether a picture is shown, or the shape of one until it is drawn.
WATCH = """() => {
    window.seen = [];
    const shown = (part) => Boolean(part?.checkVisibility({ visibilityProperty: true, opacityProperty: true }));
    const look = () => {
        const host = [...document.querySelectorAll(".st-key-explorer *")].find((part) => part.shadowRoot);
        const picture = shown(host?.shadowRoot.querySelector(".heat canvas"));
        window.seen.push(picture ? "picture" : shown(document.querySelector(".mha-skeleton")) ? "shape" : "nothing");
        requestAnimationFrame(look);
    };
    look();
}"""


def seen(visitor: BrowserTab) -> set[str]:
    return set(visitor.page.evaluate("window.seen"))


def test_the_model_continues_what_was_typed(newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer(new_tab=True)
    page = visitor.explore(model="repeater", text="the cat")
    visitor.read(TEXT)
    before = visitor.pixels(visitor.heat)[0]
    entries = page.evaluate("history.length")
    page.evaluate(WATCH)
    page.get_by_role("button", name="Let the model continue").click()
    visitor.wait_for_parameters(text=TEXT + WROTE, written=str(len(WROTE)))
    visitor.wait_until_drawn()
    expect(page.get_by_text(f"Written by the model: “{WROTE.strip()}”")).to_be_visible()
    assert seen(visitor) == {"picture"}
    assert page.evaluate("history.length") == entries + 1
    visitor.hover_word("stands")
    page.mouse.move(0, 0)
    expect(visitor.field).to_have_value(TEXT + WROTE)
    after = visitor.pixels(visitor.heat)[0]
    page.go_back()
    visitor.wait_for_parameters(text=TEXT, written=None)
    expect(visitor.field).to_have_value(TEXT)
    visitor.wait_for_fingerprint(visitor.heat, before)
    expect(page.get_by_text("Written by the model")).to_have_count(0)
    visitor.explore(model="repeater", text=TEXT + WROTE, written=str(len(WROTE)))
    visitor.wait_for_fingerprint(visitor.heat, after)
    expect(page.get_by_text("Written by the model")).to_be_visible()


@pytest.fixture
def started(tmp_path: Path) -> Iterator[str]:
    """Return the address of a server that has read nothing yet."""
    with PatientServer(tmp_path) as server:
        yield server.url
        assert server.faults() == []


def test_the_page_is_not_empty_if_it_writes_before_the_first_picture(
    started: str, newcomer: Callable[..., BrowserTab]
) -> None:
    visitor = newcomer(started, new_tab=True)
    page = visitor.visit("/", model="repeater", text=TEXT)
    page.locator(".mha-skeleton, .st-key-explorer").first.wait_for(state="attached")
    page.evaluate(WATCH)
    page.get_by_role("button", name="Let the model continue").click()
    visitor.wait_for_parameters(text=TEXT + WROTE)
    visitor.wait_until_drawn()
    assert "nothing" not in seen(visitor)
