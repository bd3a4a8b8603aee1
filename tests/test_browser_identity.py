"""Two visitors, each in a separate browser, read one sentence in two ways: neither sees the other's words."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser_tab import BrowserTab
from tests.given_words import CONLLU, SPLIT, TYPED, WHOLE

COLD = 120_000  # milliseconds: the first of them waits until the model is loaded


def opened(visitor: BrowserTab, text: str, words: list[str]) -> None:
    """The page of a text, once it shows this many words."""
    visitor.visit("/", text=text, head="L3H1")
    options = visitor.page.locator(".ask select").first.locator("option")
    expect(options).to_have_count(1 + len(words), timeout=COLD)
    visitor.drawn()


def words_of(visitor: BrowserTab) -> list[str]:
    """The words that a visitor's page offers for a question, taken from the packet in the browser."""
    options = visitor.page.locator(".ask select").first.locator("option")
    expect(options.nth(1)).to_have_text("0 [CLS]")
    return [option.partition(" ")[2] for option in options.all_inner_texts()[1:]]


def columns_of(visitor: BrowserTab) -> list[str]:
    """The columns of the table of weights, which is filled as soon as it is opened."""
    visitor.page.get_by_text("These weights as a table").click()
    columns = visitor.page.locator(".tablebox thead th")
    expect(columns.first).to_be_visible()
    return columns.all_inner_texts()


def test_pasted_words_and_typed_words_stay_with_those_who_asked(newcomer: Callable[..., BrowserTab]) -> None:
    pasted, typed = newcomer(alone=True), newcomer(alone=True)
    assert pasted.page.context is not typed.page.context
    opened(pasted, CONLLU, WHOLE)
    opened(typed, TYPED, SPLIT)
    assert (words_of(pasted), words_of(typed)) == (WHOLE, SPLIT)
    assert (columns_of(pasted), columns_of(typed)) == (WHOLE, SPLIT)


def test_one_browser_that_reads_both_ways_keeps_them_apart(newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer()
    opened(visitor, TYPED, SPLIT)
    assert words_of(visitor) == SPLIT
    visitor.read(CONLLU)
    expect(visitor.page.locator(".ask select").first.locator("option")).to_have_count(1 + len(WHOLE))
    assert words_of(visitor) == WHOLE
    visitor.page.go_back()
    expect(visitor.page.locator(".ask select").first.locator("option")).to_have_count(1 + len(SPLIT))
    assert words_of(visitor) == SPLIT
