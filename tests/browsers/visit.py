"""A visitor in any engine: find visible elements by selector and name, point at them, and wait for changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from tests.browser_tab import DRAWN
from tests.browsers.engine import Engine
from tests.waiting import until

# Return the visible elements of a selector, also inside components, whose name or text matches.
FIND_VISIBLE = """(selector, name) => {
    const inside = (root) => [root, ...[...root.querySelectorAll("*")].flatMap((node) =>
        node.shadowRoot ? inside(node.shadowRoot) : [])];
    const isNamed = new RegExp(name);
    return inside(document).flatMap((root) => [...root.querySelectorAll(selector)]).filter((node) =>
        node.checkVisibility({ visibilityProperty: true })
        && isNamed.test((node.getAttribute("aria-label") ?? node.innerText ?? "").replace(/\\s+/g, " ").trim()));
}"""
# Scroll the first such element into view and return its left, top, width and height in the window; null if none is.
BOX = f"""(...query) => {{
    const [node] = ({FIND_VISIBLE})(...query);
    if (!node) return null;
    node.scrollIntoView({{ block: "center", inline: "nearest", behavior: "instant" }});
    const {{ left, top, width, height }} = node.getBoundingClientRect();
    return [left, top, width, height];
}}"""
TEXTS = f"""(...query) => ({FIND_VISIBLE})(...query).map((node) =>
    node.matches("input, select, textarea") ? node.value : node.innerText.replace(/\\s+/g, " ").trim())"""
RUN_STATE = """() => document.querySelector(".stApp")?.dataset.testScriptState"""
PARAMETER = """(name) => new URLSearchParams(location.search).get(name)"""
CHOOSE = f"""(value, ...query) => {{
    const [menu] = ({FIND_VISIBLE})(...query);
    menu.value = value;
    for (const event of ["input", "change"]) menu.dispatchEvent(new Event(event, {{ bubbles: true, composed: true }}));
}}"""


class Visit:
    """A visit to the server at ``url`` with ``browser``."""

    def __init__(self, browser: Engine, url: str) -> None:
        self.browser = browser
        self.url = url

    def open(self, path: str, **parameters: str) -> None:
        """Open a page of the app and wait until its script has run."""
        query = f"?{urlencode(parameters, quote_via=quote)}" if parameters else ""
        self.browser.open(f"{self.url}{path}{query}")
        self.wait_until_idle()

    def wait_until_idle(self) -> None:
        """Wait until no script of the page runs."""
        until(lambda: self.browser.run(RUN_STATE) == "notRunning", every=0.1)

    def wait_until_drawn(self) -> None:
        """Wait until an opened head is painted on *Explore*."""
        until(lambda: bool(self.browser.run(DRAWN)), every=0.1)

    def list_texts(self, selector: str, name: str = "") -> list[str]:
        """Return the texts or values of the visible elements that match."""
        return [str(text) for text in self.browser.run(TEXTS, selector, name)]

    def wait_for(self, selector: str, name: str = "") -> None:
        """Wait until a visible element matches."""
        until(lambda: bool(self.list_texts(selector, name)), every=0.1)

    def wait_until_hidden(self, selector: str, name: str = "") -> None:
        """Wait until no visible element matches."""
        until(lambda: not self.list_texts(selector, name), every=0.1)

    def wait_for_parameters(self, **parameters: str | None) -> None:
        """Wait until the address has these parameters; None stands for a missing one."""
        for name, value in parameters.items():
            until(lambda name=name, value=value: self.browser.run(PARAMETER, name) == value, every=0.1)  # type: ignore[misc]

    def find_box(self, selector: str, name: str = "") -> tuple[float, float, float, float]:
        """Scroll to a visible element and return its left, top, width and height once it no longer moves."""
        boxes: list[Any] = [None]

        def is_still() -> bool:
            boxes.append(self.browser.run(BOX, selector, name))
            previous, current = boxes[-2:]  # Firefox may scroll to the same position with half a pixel's difference
            return bool(previous and current) and max(abs(a - b) for a, b in zip(previous, current, strict=True)) < 2

        until(is_still, every=0.1)
        left, top, width, height = boxes[-1]
        return left, top, width, height

    def point(self, selector: str, name: str = "", x: float | None = None, y: float | None = None) -> None:
        """Move the pointer to (x, y) on a visible element, in pixels from its corner; by default, to its middle."""
        left, top, width, height = self.find_box(selector, name)
        self.browser.point(left + (width / 2 if x is None else x), top + (height / 2 if y is None else y))

    def click(self, selector: str, name: str = "", x: float | None = None, y: float | None = None) -> None:
        """Click where :meth:`point` points, once the page's script has run, because it could move the element."""

        def is_pointed_at() -> bool:
            if self.browser.run(RUN_STATE) == "running":
                return False
            self.point(selector, name, x, y)
            return bool(self.browser.run(RUN_STATE) != "running")

        until(is_pointed_at, every=0.1)
        self.browser.press()

    def choose(self, value: str, selector: str, name: str = "") -> None:
        """Choose an option of a menu by its value."""
        self.browser.run(CHOOSE, value, selector, name)

    def fill(self, text: str, selector: str, name: str = "") -> None:
        """Replace the text of a field, and press Enter."""
        self.click(selector, name)
        self.browser.select_all()
        self.browser.type(*text, "Enter")

    def download(self, file: str, selector: str, name: str) -> Path:
        """Click an element, wait until ``file`` is downloaded, and return its path."""
        self.wait_until_idle()
        self.click(selector, name)
        path = self.browser.downloads / file
        sizes: list[int] = [0]

        def is_complete() -> bool:
            self.browser.run(RUN_STATE)  # the driver stores downloads while it answers
            sizes.append(path.stat().st_size if path.exists() else 0)
            parts = [other for other in self.browser.downloads.iterdir() if other.suffix in (".part", ".wkdownload")]
            return sizes[-1] == sizes[-2] > 0 and not parts

        until(is_complete, every=0.2)
        return path
