"""Checks of the first pages of a visit, also for a server that has just started."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from mha_viz.app.url.address import load_examples
from mha_viz.models.reading.encoder import Encoder
from tests.browser_tab import BrowserTab

FIRST = load_examples()[0]["text"]


def check_about_links(visitor: BrowserTab) -> None:
    page = visitor.visit("/about")
    expect(page.get_by_role("heading", name="What the pictures show, and what they do not")).to_be_visible()
    page.get_by_role("link", name="Explore").first.click()
    expect(visitor.field).to_have_value(FIRST)
    visitor.wait_until_drawn()
    page.get_by_role("link", name="About").first.click()
    expect(page.get_by_role("heading", name="What the pictures show, and what they do not")).to_be_visible()


def check_link_restores_view(visitor: BrowserTab, model: str, encoder: Encoder) -> None:
    tokens = encoder.tokenize("The cat did not cross.", "It was too tired.").tokens
    key = next(i for i, t in enumerate(tokens) if t.segment == 1 and not t.special)
    parameters = {
        "text": "The cat did not cross.", "pair": "It was too tired.", "model": model, "head": "L1H0", "on": "1",
        "pin": f"q2k{key}", "link": f"2-{key}", "unit": "pieces", "special": "hide", "links": "top2", "scale": "log",
        "side": "ab",
    }  # fmt: skip
    page = visitor.explore(**parameters)
    expect(visitor.field).to_have_value(parameters["text"])
    expect(page.get_by_label("Second sentence", exact=True)).to_have_value(parameters["pair"])
    expect(page.get_by_label("Model", exact=True)).to_have_value(parameters["model"])
    expect(visitor.title).to_have_text("L1H0 (2-1)")
    for head in (0, 1):
        expect(visitor.head_switch(head)).to_have_attribute("aria-pressed", "true")
    for value in ("pieces", "hide"):
        expect(page.locator(f".segments input[value={value}]")).to_be_checked()
    for control, value in (("Links", "top"), ("Colour", "log"), ("Pair", "ab")):
        expect(page.locator(".controls .choice", has_text=control).locator("select").first).to_have_value(value)
    expect(page.locator(".controls output")).to_have_text("2")
    expect(visitor.readout).to_have_text(re.compile(r"\S+ → \S+ (\d\.\d{3}|<\.001)$"))
    expect(page.locator(".ask select").nth(0)).to_have_value("2")
    expect(page.locator(".ask select").nth(1)).to_have_value(str(key))
    assert visitor.address == parameters
