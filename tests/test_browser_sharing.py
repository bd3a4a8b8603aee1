"""Shared links, an unavailable model, and hostile text, in a real browser on the real server."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from mha_viz.app.url.address import fit_texts, load_examples
from mha_viz.models.reading.encoder import Encoder
from tests import hostile, lanes
from tests.app_server import AppServer
from tests.browser_tab import FRAMES, BrowserTab
from tests.first_pages import check_about_links, check_link_restores_view

FIRST = load_examples()[0]["text"]


# ---- Sharing -------------------------------------------------------------------------------------------------


def test_a_link_is_copied(visitor: BrowserTab) -> None:
    visitor.allow_clipboard()
    visitor.explore()
    _a_link_says_everything_and_who_can_open_it(visitor)
    _a_link_holds_the_text_and_the_head(visitor)
    visitor.page.get_by_role("link", name="About").first.click()
    _the_note_on_a_copied_link_moves_nothing_and_can_be_closed(visitor)
    visitor.visit("/compare", show="similar", pin="q2")
    _escape_closes_the_note_on_a_copied_link_before_a_held_word(visitor)


def _copied(visitor: BrowserTab) -> dict[str, list[str]]:
    return parse_qs(urlsplit(visitor.page.evaluate("navigator.clipboard.readText()")).query)


def _a_link_says_everything_and_who_can_open_it(visitor: BrowserTab) -> None:
    page = visitor.page
    visitor.choose_more("Copy link")
    expect(page.get_by_text("Copied. This link works on this computer only.")).to_be_visible()
    assert _copied(visitor) == {"text": [FIRST], "model": ["minilm"], "head": ["L3H1"], "pin": ["q10"]}
    page.get_by_role("button", name="save one interactive HTML file").click()
    expect(page.get_by_role("button", name="Interactive HTML")).to_be_visible()


def _a_link_holds_the_text_and_the_head(visitor: BrowserTab) -> None:
    page = visitor.page
    visitor.read("Send me to a colleague.")
    visitor.click_head(2, 2)
    visitor.wait_for_parameters(head="L2H2")
    visitor.wait_until_drawn()
    visitor.choose_more("Copy link")
    page.wait_for_function("() => navigator.clipboard.readText().then((link) => link.includes('colleague'))")
    assert _copied(visitor) == {"text": ["Send me to a colleague."], "head": ["L2H2"], "model": ["minilm"]}


def _the_note_on_a_copied_link_moves_nothing_and_can_be_closed(visitor: BrowserTab) -> None:
    page = visitor.page
    heading, note = (
        page.get_by_role("heading", name="What the pictures show, and what they do not"),
        page.locator(".mha-more [role=status]"),
    )
    expect(heading).to_be_visible()
    expect(page.locator(".mha-sentence")).to_have_count(0)  # nothing of the page before is left
    for close in (lambda: page.keyboard.press("Escape"), lambda: heading.click()):
        visitor.choose_more("Copy link")
        expect(note).to_contain_text("Copied.")
        beside = heading.bounding_box()
        close()
        expect(note).to_be_empty()
        assert heading.bounding_box() == beside


def _escape_closes_the_note_on_a_copied_link_before_a_held_word(visitor: BrowserTab) -> None:
    page = visitor.page
    note, held = page.locator(".mha-more [role=status]"), page.locator("article.panel canvas.over").first
    expect(page.locator("article.panel")).to_have_count(6)
    expect(held).to_be_visible()
    visitor.choose_more("Copy link")
    expect(note).to_contain_text("Copied.")
    page.keyboard.press("Escape")
    expect(note).to_be_empty()
    page.evaluate(FRAMES)  # in which the drawing would let go
    expect(held).to_be_visible()
    page.keyboard.press("Escape")
    expect(held).to_be_hidden()
    visitor.wait_for_parameters(pin=None)


@pytest.mark.slow
def test_a_link_and_about_are_each_the_first_page_of_a_cold_server(
    newcomer: Callable[..., BrowserTab],
    tmp_path: Path,
    tiny_folder: Callable[[str], Path],
    tiny: Callable[[str], Encoder],
) -> None:
    for name in ("about", "link"):
        (tmp_path / name).mkdir()
        with AppServer(tmp_path / name) as cold:
            visitor = newcomer(cold.url)
            if name == "about":
                check_about_links(visitor)
            else:
                check_link_restores_view(visitor, str(tiny_folder("bert")), tiny("bert"))
            assert cold.faults() == []


# ---- Models --------------------------------------------------------------------------------------------------


def test_a_model_that_cannot_be_had_is_explained_and_the_picture_stays(visitor: BrowserTab) -> None:
    page = visitor.explore(text="The cat sat.")
    model, other = (page.get_by_label(name, exact=True) for name in ("Model", "Another model: Hub id or folder"))
    painted = visitor.pixels(visitor.heat)[0]
    for name, message in (("../../etc/passwd", "is not a model"), ("no-such/model", "Hub")):
        model.select_option("?")
        expect(other).to_be_focused()
        other.fill(name)
        other.press("Enter")
        visitor.wait_for_parameters(model=name)
        expect(page.get_by_role("alert")).to_contain_text(message)
        visitor.wait_until_drawn()
        visitor.wait_for_fingerprint(visitor.heat, painted)
        expect(visitor.field).to_have_value("The cat sat.")
    model.select_option("minilm")
    expect(page.get_by_role("alert")).to_have_count(0)
    visitor.wait_for_parameters(model=None)


# ---- Hostile text --------------------------------------------------------------------------------------------


RUNS = {
    "sets a mark": "<img src=x onerror=\"window.__xss='img'\"><script>window.__xss='script'</script>",
    "svg sets a mark": "<svg onload=\"window.__xss='svg'\"></svg><details open ontoggle=\"window.__xss='d'\">",
    "leaves an attribute": "\" onmouseover=\"window.__xss='a'\" x='",
    "script address": "[x](javascript:window.__xss='md') <a href=\"javascript:window.__xss='a'\">x</a>",
}
# Only a browser shows whether these run.
MARKUP = {name: text for name, text in hostile.TEXTS.items() if hostile.FOREIGN_HOST in text} | RUNS
TYPED = hostile.KINDS | {"all markup": " ".join(MARKUP.values())} | (MARKUP if lanes.everything else {})
SECOND = ("right to left", "emoji family of seven code points", "script", "markdown image")
SECONDS = {"all of these": " ".join(hostile.TEXTS[name] for name in SECOND)} | {
    name: hostile.TEXTS[name] for name in (SECOND if lanes.everything else ())
}

SET = """(field, text) => {
    field.value = JSON.parse(text);
    field.dispatchEvent(new Event("input", {bubbles: true}));
    window.__typed = field.value;
}"""


def test_hostile_texts_stay_as_typed_and_run_nothing(visitor: BrowserTab) -> None:
    """As if one person typed one after the other."""
    visitor.explore()
    for name, text in TYPED.items():
        _stays_as_typed_and_runs_nothing(visitor, name, text)


def _stays_as_typed_and_runs_nothing(visitor: BrowserTab, name: str, text: str) -> None:
    page = visitor.page
    visitor.field.evaluate(SET, json.dumps(text))  # as JSON: half a character does not survive the protocol
    visitor.field.press("Enter")
    beginning, _ = fit_texts(re.sub(r"\r\n?", "\n", text), "")
    visitor.wait_for_parameters(text=None if beginning == FIRST else beginning)
    expect(page.locator(".stApp")).to_have_attribute("data-test-script-state", "notRunning")
    if not page.get_by_role("alert").count():
        visitor.wait_until_drawn()
    assert visitor.field.evaluate("field => field.value === window.__typed"), f"{name}: what was typed is gone"
    visitor.check_no_faults()
    visitor.requests.clear()


def test_a_hostile_second_sentence_and_model_run_nothing(visitor: BrowserTab) -> None:
    for text in SECONDS.values():
        page = visitor.explore(text="The cat sat.", pair=text, model=text)
        expect(page.get_by_role("alert")).to_contain_text("is not a model")
        expect(page.get_by_label("Second sentence", exact=True)).to_have_value(text)
        page.get_by_text("These weights as a table").click()
        expect(page.locator(".tablebox tbody tr").first).to_be_visible()
        visitor.check_no_faults()
