"""Two visitors, each in a separate browser, read one sentence in two ways: neither sees the other's words."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Locator, expect

from tests.browser_tab import BrowserTab
from tests.given_words import CONLLU, SPLIT, TYPED, WHOLE


def test_pasted_words_and_typed_words_stay_with_those_who_asked(newcomer: Callable[..., BrowserTab]) -> None:
    pasted, typed = newcomer(), newcomer(alone=True)
    assert pasted.page.context is not typed.page.context
    pasted.visit("/", text=CONLLU, head="L3H1")
    typed.visit("/", text=TYPED, head="L3H1")
    for visitor, words in ((pasted, WHOLE), (typed, SPLIT)):
        visitor.page.bring_to_front()
        _shows(visitor, words)
        _lists_in_its_table(visitor, words)
    _one_browser_that_reads_both_ways_keeps_them_apart(typed)


def _options(visitor: BrowserTab) -> Locator:
    return visitor.page.locator(".ask select").first.locator("option")


def _shows(visitor: BrowserTab, words: list[str]) -> None:
    """Wait until a page offers these words for a question; they are taken from the packet in the browser."""
    visitor.wait_until_drawn()
    visitor.unfold()
    expect(_options(visitor)).to_have_text(["choose…", *(f"{i} {word}" for i, word in enumerate(words))])
    visitor.wait_until_drawn()


def _lists_in_its_table(visitor: BrowserTab, words: list[str]) -> None:
    """The columns of the table of weights, which is filled as soon as it is opened."""
    visitor.unfold()
    visitor.page.get_by_text("These weights as a table").click()
    expect(visitor.page.locator(".tablebox thead th")).to_have_text(words)


def _one_browser_that_reads_both_ways_keeps_them_apart(visitor: BrowserTab) -> None:
    visitor.read(CONLLU)
    _shows(visitor, WHOLE)
    visitor.page.go_back()
    _shows(visitor, SPLIT)
