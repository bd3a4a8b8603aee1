"""Show the comparison on an empty page, from its script, style and packet, without a server."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Browser, BrowserContext, Dialog, Locator, Page

from mha_viz.app.service.caches import load_first_reading
from mha_viz.attention import Attention, Head
from mha_viz.browser.bundle import build_script, build_style
from mha_viz.figures.layout.panels import Panel, pack_comparison, set_initial_state
from tests.browser_tab import PATIENCE

ORIGIN = "http://compare.test/"
TIRED = "The animal didn't cross the street because it was too tired."
SCHEMES = {"light": ("#1c1b19", "#fffefb", "#0b5cad"), "dark": ("#ebe8e2", "#14171a", "#79c0f1")}
PAGE = """<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<style>:root {{ --st-text-color: {0}; --st-background-color: {1}; --st-primary-color: {2}; --st-font: sans-serif;
--st-code-font: monospace }} body {{ margin: 16px; background: {1} }}</style><style>{3}</style>
<div id="host"><div class="mha-compare"></div></div><script type="module">{4}</script>"""
MOUNT = """
globalThis.sent = [];
globalThis.draw = (coded) => mount({ data: Uint8Array.from(atob(coded), (c) => c.charCodeAt(0)),
  parentElement: document.getElementById("host"), setTriggerValue: (name, value) => sent.push([name, value]) });
globalThis.countTimeouts = (act) => {
  const original = setTimeout;
  let count = 0;
  globalThis.setTimeout = (...options) => (count++, original(...options));
  act();
  globalThis.setTimeout = original;
  return count;
};
"""
# Return the sentence of a panel in the next frame.
NEXT_SENTENCE = """panel => new Promise((done) => requestAnimationFrame(() => done(
  panel.querySelector(".says").innerText)))"""


class Sheet:
    """An empty page that shows one comparison after another, and records their messages to the server."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._html = ""
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("dialog", self._dismiss)
        page.route(f"{ORIGIN}**", lambda route: route.fulfill(body=self._html, content_type="text/html"))

    def open(
        self,
        panels: Sequence[Panel],
        editable: bool | Sequence[int] = False,
        *,
        size: tuple[int, int] = (1440, 900),
        scheme: str = "light",
        opens: str = "",
        **query: str,
    ) -> Sheet:
        """Open a new comparison in place of the last one; ``query`` are the parameters of its address."""
        source = build_script("compare").replace("export default", "globalThis.mount =") + MOUNT
        self._html = PAGE.format(*SCHEMES[scheme], build_style("compare"), source)
        self.page.set_viewport_size({"width": size[0], "height": size[1]})
        self.page.goto(f"{ORIGIN}?{urlencode(query)}")
        self.draw(panels, editable, opens)
        return self

    def _dismiss(self, dialog: Dialog) -> None:
        self.errors.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def draw(self, panels: Sequence[Panel], editable: bool | Sequence[int] = False, opens: str = "") -> int:
        """Draw the panels, initially with the difference ``opens``; return how many messages this schedules."""
        bytes_ = pack_comparison(panels, editable=editable)
        coded = base64.b64encode(set_initial_state(bytes_, diff=opens) if opens else bytes_).decode()
        scheduled: int = self.page.evaluate("coded => countTimeouts(() => draw(coded))", coded)
        self.page.evaluate("() => document.querySelectorAll('.drawing').forEach((menu) => (menu.open = true))")
        return scheduled

    def check_no_faults(self) -> None:
        """Check that there was no error and no request to another address."""
        assert self.errors == []
        assert [url for url in self.requests if not url.startswith(ORIGIN)] == []

    def panel(self, number: int) -> Locator:
        return self.page.locator(".panel").nth(number - 1)

    def canvas(self, number: int) -> Locator:
        return self.panel(number).locator("[role=application]")

    def says(self, number: int) -> str:
        return " ".join(self.panel(number).locator(".says").inner_text().split())

    def tool(self, number: int, name: str) -> Locator:
        return self.panel(number).locator(f"[data-tool={name}]")

    def last(self, name: str) -> dict[str, Any]:
        """Return the last message of this name, once it has been sent."""
        self.page.wait_for_function("name => sent.some((m) => m[0] === name)", arg=name)
        message: dict[str, Any] = self.page.evaluate("name => sent.findLast((m) => m[0] === name)[1]", name)
        return message

    def rest_on(self, number: int, sentence: str) -> None:
        """Move the pointer down the labels of a panel until the panel's description begins with ``sentence``.

        It must do so at two points, so that the pointer is not on an edge.
        """
        box = self.canvas(number).bounding_box()
        assert box
        previous = ""
        for y in range(4, int(box["height"]), 9):
            self.page.mouse.move(box["x"] + 12, box["y"] + y)
            current = " ".join(str(self.panel(number).evaluate(NEXT_SENTENCE)).split())
            if current.startswith(sentence) and current == previous:
                return
            previous = current
        raise AssertionError(f"No point of panel {number} shows: {sentence}; last: {previous}")

    def frame(self) -> None:
        """Wait until the next frame has been drawn."""
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(done))")

    def pixels(self, canvas: Locator) -> set[str]:
        """Return the colours on a canvas."""
        colours = canvas.evaluate(
            """canvas => {
                const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
                const found = new Set();
                for (let i = 0; i < data.length; i += 4) {
                    const hex = [0, 1, 2].map((k) => data[i + k].toString(16).padStart(2, "0")).join("");
                    if (data[i + 3] === 255) found.add("#" + hex);
                }
                return [...found];
            }"""
        )
        return set(colours)


@contextmanager
def load_profile(browser: Browser) -> Iterator[BrowserContext]:
    """Yield a browser profile with one tab that stays open, so that tests need no new browser process."""
    context = browser.new_context()
    page = context.new_page()
    page.route(f"{ORIGIN}**", lambda route: route.fulfill(body="<!DOCTYPE html>", content_type="text/html"))
    page.goto(ORIGIN)
    yield context
    context.close()


@contextmanager
def sheets(profile: BrowserContext) -> Iterator[Callable[..., Sheet]]:
    """Yield a function that opens comparisons on one sheet; afterwards, check that there were no errors or requests."""
    opened: list[Sheet] = []

    def open_sheet(panels: Sequence[Panel], editable: bool | Sequence[int] = False, **more: Any) -> Sheet:
        if not opened:
            page = profile.new_page()
            page.set_default_timeout(PATIENCE)
            opened.append(Sheet(page))
        return opened[0].open(panels, editable, **more)

    yield open_sheet
    for sheet in opened:
        sheet.check_no_faults()
        sheet.page.close()


@cache
def read_first() -> Attention:
    return load_first_reading()


def make_panels() -> list[Panel]:
    reading = read_first()
    return [Panel(reading, Head(3, 1), "coreference"), Panel(reading, Head(5, 11)), Panel(reading, Head(0, 2))]
