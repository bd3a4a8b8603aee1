"""A visitor in any engine: find visible elements by selector and name, point at them, and wait for changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from tests.browser_tab import DRAWN
from tests.browsers.engine import Engine
from tests.waiting import until

# All elements of a selector, within components too, that are seen and whose name or text matches.
SEEN = """(selector, name) => {
    const inside = (root) => [root, ...[...root.querySelectorAll("*")].flatMap((node) =>
        node.shadowRoot ? inside(node.shadowRoot) : [])];
    const isNamed = new RegExp(name);
    return inside(document).flatMap((root) => [...root.querySelectorAll(selector)]).filter((one) =>
        one.checkVisibility({ visibilityProperty: true })
        && isNamed.test((one.getAttribute("aria-label") ?? one.innerText ?? "").replace(/\\s+/g, " ").trim()));
}"""
# The box of the first of them in the window, scrolled into it: left, top, width, height; null if there is none.
BOX = f"""(...wanted) => {{
    const [one] = ({SEEN})(...wanted);
    if (!one) return null;
    one.scrollIntoView({{ block: "center", inline: "nearest", behavior: "instant" }});
    const {{ left, top, width, height }} = one.getBoundingClientRect();
    return [left, top, width, height];
}}"""
TEXTS = f"""(...wanted) => ({SEEN})(...wanted).map((one) =>
    one.matches("input, select, textarea") ? one.value : one.innerText.replace(/\\s+/g, " ").trim())"""
RUNS = """() => document.querySelector(".stApp")?.dataset.testScriptState"""
PARAMETER = """(name) => new URLSearchParams(location.search).get(name)"""
CHOOSE = f"""(value, ...wanted) => {{
    const [menu] = ({SEEN})(...wanted);
    menu.value = value;
    for (const event of ["input", "change"]) menu.dispatchEvent(new Event(event, {{ bubbles: true, composed: true }}));
}}"""


class Visit:
    """A visit of the server at ``url`` with ``browser``."""

    def __init__(self, browser: Engine, url: str) -> None:
        self.browser = browser
        self.url = url

    def open(self, path: str, **parameters: str) -> None:
        """Go to a page of the app, until it has come to rest."""
        query = f"?{urlencode(parameters, quote_via=quote)}" if parameters else ""
        self.browser.open(f"{self.url}{path}{query}")
        self.rests()

    def rests(self) -> None:
        """Wait until no script of the page runs."""
        until(lambda: self.browser.run(RUNS) == "notRunning", every=0.1)

    def drawn(self) -> None:
        """Wait until an opened head is painted on *Explore*."""
        until(lambda: bool(self.browser.run(DRAWN)), every=0.1)

    def texts(self, selector: str, name: str = "") -> list[str]:
        """Return the texts or values of what is seen."""
        return [str(text) for text in self.browser.run(TEXTS, selector, name)]

    def shows(self, selector: str, name: str = "") -> None:
        """Wait until something is seen whose name or text matches."""
        until(lambda: bool(self.texts(selector, name)), every=0.1)

    def hides(self, selector: str, name: str = "") -> None:
        """Wait until nothing such is seen."""
        until(lambda: not self.texts(selector, name), every=0.1)

    def asked(self, **parameters: str | None) -> None:
        """Wait until the address has these parameters; None: it lacks the parameter."""
        for name, value in parameters.items():
            until(lambda name=name, value=value: self.browser.run(PARAMETER, name) == value, every=0.1)  # type: ignore[misc]

    def box(self, selector: str, name: str = "") -> tuple[float, float, float, float]:
        """Return left, top, width and height of a visible element, once it stands still in the window."""
        boxes: list[Any] = [None]

        def stands() -> bool:
            boxes.append(self.browser.run(BOX, selector, name))
            before, now = boxes[-2:]  # half a pixel differs when Firefox scrolls to the same place again
            return bool(before and now) and max(abs(a - b) for a, b in zip(before, now, strict=True)) < 2

        until(stands, every=0.1)
        left, top, width, height = boxes[-1]
        return left, top, width, height

    def point(self, selector: str, name: str = "", x: float | None = None, y: float | None = None) -> None:
        """Move the pointer to a place of what is seen, in pixels from its corner; to its middle if none is given."""
        left, top, width, height = self.box(selector, name)
        self.browser.point(left + (width / 2 if x is None else x), top + (height / 2 if y is None else y))

    def click(self, selector: str, name: str = "", x: float | None = None, y: float | None = None) -> None:
        """Click there, once no script of a page runs, which could move it."""

        def is_pointed_at() -> bool:
            if self.browser.run(RUNS) == "running":
                return False
            self.point(selector, name, x, y)
            return bool(self.browser.run(RUNS) != "running")

        until(is_pointed_at, every=0.1)
        self.browser.press()

    def choose(self, value: str, selector: str, name: str = "") -> None:
        """Choose an option of a menu by its value."""
        self.browser.run(CHOOSE, value, selector, name)

    def fill(self, text: str, selector: str, name: str = "") -> None:
        """Replace what is in a field, and press Enter."""
        self.click(selector, name)
        self.browser.select_all()
        self.browser.type(*text, "Enter")

    def downloaded(self, file: str, selector: str, name: str) -> Path:
        """Return the file that a click gives."""
        self.rests()
        self.click(selector, name)
        path = self.browser.downloads / file
        sizes: list[int] = [0]

        def is_whole() -> bool:
            self.browser.run(RUNS)  # while it is asked, what has come is stored
            sizes.append(path.stat().st_size if path.exists() else 0)
            parts = [other for other in self.browser.downloads.iterdir() if other.suffix in (".part", ".wkdownload")]
            return sizes[-1] == sizes[-2] > 0 and not parts

        until(is_whole, every=0.2)
        return path
