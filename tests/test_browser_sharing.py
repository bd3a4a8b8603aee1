"""Shared links, an unavailable model, and hostile text, in a real browser on the real server."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import (
    BrowserContext,
    expect,
)

from mha_viz.models.encoder import Encoder
from mha_viz.ui.address import fits
from mha_viz.ui.request import examples
from tests import hostile
from tests.app_server import AppServer
from tests.browser_tab import BrowserTab

FIRST = examples()[0]["text"]


# ---- Sharing -------------------------------------------------------------------------------------------------


def test_a_link_is_copied_and_says_that_it_holds_the_text(newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer(permissions=["clipboard-read", "clipboard-write"])
    page = visitor.explore()
    visitor.read("Send me to a colleague.")
    visitor.click_head(2, 2)
    visitor.asked(head="L2H2")
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_text("Copied. Only this computer can open the link.")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    whole = {"text": ["Send me to a colleague."], "head": ["L2H2"], "model": ["minilm"]}
    assert parse_qs(urlsplit(copied).query) == whole


def test_the_note_on_a_copied_link_moves_nothing_and_can_be_closed(newcomer: Callable[..., BrowserTab]) -> None:
    page = newcomer(permissions=["clipboard-read", "clipboard-write"]).visit("/about")
    heading, note = page.get_by_role("heading", name="What the pictures show"), page.locator(".mha-share [role=status]")
    for close in (lambda: page.keyboard.press("Escape"), lambda: heading.click()):
        page.get_by_role("button", name="Copy link").click()
        expect(note).to_contain_text("Copied.")
        beside = heading.bounding_box()
        close()
        expect(note).to_be_empty()
        assert heading.bounding_box() == beside


def test_escape_closes_the_note_on_a_copied_link_before_a_held_word(newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer(permissions=["clipboard-read", "clipboard-write"])
    page = visitor.visit("/compare", show="similar", pin="q2")
    note = page.locator(".mha-share [role=status]")
    expect(page.locator("article.panel")).to_have_count(6)
    page.get_by_role("button", name="Copy link").click()
    expect(note).to_contain_text("Copied.")
    page.keyboard.press("Escape")
    expect(note).to_be_empty()
    page.wait_for_timeout(600)  # in which the address would follow the drawing
    visitor.asked(pin="q2")
    page.keyboard.press("Escape")
    visitor.asked(pin=None)


def test_a_link_opened_on_a_cold_server_restores_everything(
    newcomer: Callable[..., BrowserTab],
    tmp_path: Path,
    tiny_folder: Callable[[str], Path],
    tiny: Callable[[str], Encoder],
) -> None:
    tokens = tiny("bert").tokenize("The cat did not cross.", "It was too tired.").tokens
    key = next(i for i, t in enumerate(tokens) if t.segment == 1 and not t.special)
    parameters = {
        "text": "The cat did not cross.", "pair": "It was too tired.", "model": str(tiny_folder("bert")),
        "head": "L1H0", "on": "1", "pin": f"q2k{key}", "link": f"2-{key}", "unit": "pieces", "special": "hide",
        "links": "top2", "scale": "log", "side": "ab",
    }  # fmt: skip
    with AppServer(tmp_path) as cold:
        visitor = newcomer(cold.url)
        page = visitor.explore(**parameters)
        expect(visitor.field).to_have_value(parameters["text"])
        expect(page.get_by_label("Second sentence", exact=True)).to_have_value(parameters["pair"])
        expect(page.get_by_label("Model", exact=True)).to_have_value(parameters["model"])
        expect(visitor.title).to_have_text("L1H0 (2-1)")
        assert [visitor.head_switch(i).get_attribute("aria-pressed") for i in (0, 1)] == ["true", "true"]
        for value in ("pieces", "hide"):
            expect(page.locator(f".segments input[value={value}]")).to_be_checked()
        for control, value in (("Links", "top"), ("Colour", "log"), ("Pair", "ab")):
            expect(page.locator(".controls .choice", has_text=control).locator("select").first).to_have_value(value)
        expect(page.locator(".controls output")).to_have_text("2")
        assert re.match(r"\S+ → \S+ (\d\.\d{3}|<\.001)$", visitor.readout.inner_text())
        expect(page.locator(".ask select").nth(0)).to_have_value("2")
        expect(page.locator(".ask select").nth(1)).to_have_value(str(key))
        assert visitor.address == parameters
        assert cold.faults() == []


def test_about_is_the_first_page_of_a_cold_server(newcomer: Callable[..., BrowserTab], tmp_path: Path) -> None:
    with AppServer(tmp_path) as cold:
        visitor = newcomer(cold.url)
        page = visitor.visit("/about")
        expect(page.get_by_role("heading", name="What the pictures show")).to_be_visible()
        page.get_by_role("link", name="Explore").first.click()
        visitor.drawn()
        expect(visitor.field).to_have_value(FIRST)
        page.get_by_role("link", name="About").first.click()
        expect(page.get_by_role("heading", name="What the pictures show")).to_be_visible()
        assert cold.faults() == []


# ---- Models --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "message"), [("../../etc/passwd", "is not a model"), ("no-such/model", "Hub")])
def test_a_model_that_cannot_be_had_is_explained_and_the_picture_stays(
    visitor: BrowserTab, name: str, message: str
) -> None:
    page = visitor.explore(text="The cat sat.")
    painted = visitor.pixels(visitor.heat)[0]
    page.get_by_label("Model", exact=True).select_option("?")
    other = page.get_by_label("Hub id or folder of another model")
    expect(other).to_be_focused()
    other.fill(name)
    other.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text(message)
    visitor.drawn()
    assert visitor.pixels(visitor.heat)[0] == painted
    expect(visitor.field).to_have_value("The cat sat.")
    page.get_by_label("Model", exact=True).select_option("minilm")
    expect(page.get_by_role("alert")).to_have_count(0)
    visitor.asked(model=None)


# ---- Hostile text --------------------------------------------------------------------------------------------


RUNS = {
    "sets a mark": "<img src=x onerror=\"window.__xss='img'\"><script>window.__xss='script'</script>",
    "svg sets a mark": "<svg onload=\"window.__xss='svg'\"></svg><details open ontoggle=\"window.__xss='d'\">",
    "leaves an attribute": "\" onmouseover=\"window.__xss='a'\" x='",
    "script address": "[x](javascript:window.__xss='md') <a href=\"javascript:window.__xss='a'\">x</a>",
}
TYPED = hostile.KINDS | RUNS

SET = """(field, text) => {
    field.value = JSON.parse(text);
    field.dispatchEvent(new Event("input", {bubbles: true}));
    window.__typed = field.value;
}"""


@pytest.fixture(scope="module")
def tab(server: AppServer, desk: BrowserContext) -> Iterator[BrowserTab]:
    """One tab in which one hostile text follows another, as if one person typed them."""
    visitor = BrowserTab(desk, server.url)
    visitor.explore()
    yield visitor
    visitor.leave()


@pytest.mark.parametrize("text", TYPED.values(), ids=TYPED)
def test_a_hostile_text_stays_as_typed_and_runs_nothing(tab: BrowserTab, text: str) -> None:
    page = tab.page
    tab.field.evaluate(SET, json.dumps(text))  # as JSON: half a character does not survive the protocol
    tab.field.press("Enter")
    beginning, _ = fits(re.sub(r"\r\n?", "\n", text), "")
    tab.asked(text=None if beginning == FIRST else beginning)
    expect(page.locator(".stApp")).to_have_attribute("data-test-script-state", "notRunning")
    message = page.get_by_role("alert")
    if not message.count():
        tab.drawn()
    assert tab.field.evaluate("field => field.value === window.__typed"), "what was typed is gone"
    tab.unharmed()
    tab.requests.clear()


@pytest.mark.parametrize("name", ["right to left", "emoji family of seven code points", "script", "markdown image"])
def test_a_hostile_second_sentence_runs_nothing(visitor: BrowserTab, name: str) -> None:
    page = visitor.explore(text="The cat sat.", pair=hostile.TEXTS[name], model=hostile.TEXTS[name])
    expect(page.get_by_role("alert")).to_contain_text("is not a model")
    expect(page.get_by_label("Second sentence", exact=True)).to_have_value(hostile.TEXTS[name])
    page.get_by_text("These weights as a table").click()
    expect(page.locator(".tablebox tbody tr").first).to_be_visible()
