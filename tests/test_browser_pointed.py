"""Inside a head: a word under the pointer is marked in every chart, without a message to the server."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser_tab import BrowserTab

IT = {"head": "L3H1", "q": "10", "k": "2"}


def test_a_word_is_marked_wherever_it_stands(visitor: BrowserTab) -> None:
    sent: list[str | bytes] = []
    visitor.is_altered = True
    visitor.page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(frame)))
    page = visitor.visit("/inside_a_head", step="softmax", **IT)
    the_word_is_marked_in_the_map_and_in_the_table(page, sent)
    steps = page.get_by_role("group", name="Steps of multi-head attention")
    steps.get_by_role("button", name="÷ √d").click()
    visitor.asked(step="scale")
    a_mark_of_one_chart_is_a_mark_of_all(page)


def settled(page: Page) -> None:
    expect(page.locator(".stApp")).to_have_attribute("data-test-script-state", "notRunning")


def the_word_is_marked_in_the_map_and_in_the_table(page: Page, sent: list[str | bytes]) -> None:
    expect(page.locator(".js-plotly-plot .plotly").first).to_be_visible()
    settled(page)
    before = len(sent)
    page.locator('.inside-held [data-token="5"]').hover()
    expect(page.locator(".mha-band")).to_have_count(2)
    expect(page.locator(".st-key-wide_inside_by_hand tr.pointed")).to_have_count(1)
    page.mouse.move(2, 2)
    expect(page.locator(".mha-band")).to_have_count(0)
    assert len(sent) == before


def a_mark_of_one_chart_is_a_mark_of_all(page: Page) -> None:
    chart = page.locator(".st-key-wide_inside_scale .js-plotly-plot")
    expect(chart.locator(".plotly")).to_be_visible()
    settled(page)
    bar = chart.locator(".subplot.x2y2 .point path").nth(2)  # “animal”, the tallest
    bar.scroll_into_view_if_needed()
    box = bar.bounding_box()
    assert box
    for step in (0, 1):
        page.mouse.move(box["x"] + box["width"] / 2 + step, box["y"] + box["height"] / 2)
    expect(page.locator(".mha-band")).to_have_count(2)
    expect(page.locator(".inside-held .pointed")).to_have_count(1)
