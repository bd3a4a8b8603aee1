"""Act as a visitor of the page in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Literal
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Error,
    Locator,
    Page,
    Position,
    TimeoutError,
    ViewportSize,
    expect,
)

from tests import waiting

PATIENCE = 1000 * waiting.PATIENCE  # milliseconds
DESKTOP: ViewportSize = {"width": 1440, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}
# Options of one tab; others apply to the whole profile.
TAB_OPTIONS = ("new_tab", "viewport", "color_scheme", "reduced_motion", "forced_colors")
USUAL_MEDIA = {"color_scheme": "light", "reduced_motion": "reduce", "forced_colors": "none"}
PAPER = {"light": "rgb(255, 254, 251)", "dark": "rgb(20, 23, 26)"}  # the background of a page
IDLE = "/_stcore/health"  # the page of an unused tab
LOOPBACK = ("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:")
expect.set_options(timeout=PATIENCE)
# Whether the script has run and the opened head is drawn. Evaluated in every frame, because a locator checks only twice
# a second.
DRAWN = """() => {
    if (document.querySelector(".stApp")?.dataset.testScriptState !== "notRunning") return false;
    const host = [...document.querySelectorAll(".st-key-explorer *")].find((part) => part.shadowRoot);
    const [panels, heat] = [".panels", ".heat canvas"].map((part) => host?.shadowRoot.querySelector(part));
    if (!panels || panels.classList.contains("waiting") || !heat || heat.width <= 1) return false;
    const { data } = heat.getContext("2d").getImageData(0, 0, heat.width, heat.height);
    return new Set(new Uint32Array(data.buffer)).size > 4;
}"""
# Describe a page whose drawing does not appear.
STATE = """() => {
    const host = [...document.querySelectorAll(".st-key-explorer *")].find((part) => part.shadowRoot);
    return [document.querySelector(".stApp")?.dataset.testScriptState,
        host?.shadowRoot.querySelector(".panels")?.className,
        host?.shadowRoot.querySelector(".readout")?.innerText, document.body.innerText.slice(0, 2000)];
}"""

# Return a fingerprint of a canvas, and its number of colours.
FINGERPRINT = """(canvas) => {
    const {width, height} = canvas;
    const words = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, width, height).data.buffer);
    let hash = 2166136261;
    for (const word of words) hash = Math.imul(hash ^ word, 16777619) >>> 0;
    return [`${width}x${height}:${hash}`, new Set(words).size];
}"""
HAS_COLOUR = """(canvas, [r, g, b]) => {
    const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    for (let i = 0; i < data.length; i += 4) {
        if (data[i] === r && data[i + 1] === g && data[i + 2] === b && data[i + 3] === 255) return true;
    }
    return false;
}"""
# Stop spinners: they are redrawn in each frame, which costs a fifth of a core without a GPU.
STILL = """{
    const still = new CSSStyleSheet();
    still.replaceSync("[data-testid=stSpinnerIcon], [data-testid=stSpinnerIcon] * { animation: none !important }");
    document.adoptedStyleSheets.push(still);
}"""
FRAMES = "new Promise((frame) => requestAnimationFrame(() => requestAnimationFrame(frame)))"


def new_profile(browser: Browser, **options: Any) -> BrowserContext:
    """Return a profile without cookies, storage and cache."""
    context = browser.new_context(viewport=DESKTOP, **options)
    context.add_init_script(STILL)
    return context


def measure_boxes(elements: Locator) -> list[dict[str, float]]:
    """Return the boxes of the visible elements, measured together, because a page may redraw between measurements."""
    boxes: list[dict[str, float]] = elements.evaluate_all(
        "all => all.map((one) => one.getBoundingClientRect().toJSON()).filter((box) => box.width || box.height)"
    )
    return boxes


class BrowserTab:
    """One visitor's tab, which records its network requests and errors."""

    def __init__(
        self, context: BrowserContext, url: str, viewport: ViewportSize = DESKTOP, new_tab: bool = False, **media: Any
    ) -> None:
        self.requests: list[str] = []
        self.faults: list[str] = []
        self.url = url
        self.is_altered = new_tab  # whether a test adds listeners, routes or scripts, so that no other test may use it
        self._uses_clipboard = False
        idle = () if new_tab else (page for page in context.pages if page.url.endswith(IDLE))
        self.page: Page = next(iter(idle), None) or context.new_page()
        self.page.bring_to_front()  # a browser draws hardly anything in a background tab
        self.page.set_default_timeout(PATIENCE)
        if self.page.viewport_size != viewport:
            self.page.set_viewport_size(viewport)
        self.page.emulate_media(**(USUAL_MEDIA | media))
        self._listeners: dict[Any, Callable[[Any], None]] = {
            "request": lambda request: self.requests.append(request.url),
            "dialog": self._dismiss,
            "console": self._record_refusals,
            "pageerror": lambda error: self.faults.append(f"error: {error}"),
        }
        for event, listener in self._listeners.items():
            self.page.on(event, listener)

    def _record_refusals(self, message: ConsoleMessage) -> None:
        """Record messages about requests that the server's security headers refuse."""
        if "Content Security Policy" in message.text or "Permissions policy" in message.text:
            self.faults.append(f"refused: {message.text}")

    def _dismiss(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def check_no_faults(self) -> None:
        """Check that this tab had no error, ran no typed text, and called no other host."""
        assert not self.faults, self.faults
        assert self.page.locator(".stException").count() == 0
        assert self.page.evaluate("window.__xss") is None
        assert [url for url in self.requests if not url.startswith(LOOPBACK)] == []

    def leave(self) -> None:
        """Clear the data stored during the visit, and leave the tab to the next visitor.

        Opening a new tab would take as long as opening a page.
        """
        try:
            self.check_no_faults()
        except BaseException:
            self.is_altered = True
            raise
        finally:
            self._leave()

    def allow_clipboard(self) -> None:
        """Allow the clipboard until this visitor leaves."""
        self._uses_clipboard = True
        self.page.context.grant_permissions(["clipboard-read", "clipboard-write"])

    def _leave(self) -> None:
        if self._uses_clipboard:
            self.page.context.clear_permissions()
        if self.page.url.startswith("http"):
            self.page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
        if self.is_altered:
            self.page.close()
            return
        for event, listener in self._listeners.items():
            self.page.remove_listener(event, listener)
        try:
            self.page.goto(f"{self.url}{IDLE}")
            self.page.mouse.move(0, 0)
        except Error:  # its server has ended
            self.page.close()

    def check_no_sideways_scroll(self) -> None:
        """Check that no part of the page is wider than the window once its style sheets are loaded."""
        self.page.wait_for_function(
            "() => [document.documentElement, document.querySelector('[data-testid=stMain]')]"
            ".every(part => part.scrollWidth <= part.clientWidth)"
        )

    # ---- Navigation

    def visit(self, path: str = "/", **parameters: str) -> Page:
        query = f"?{urlencode(parameters, quote_via=quote)}" if parameters else ""
        self.page.goto(f"{self.url}{path}{query}")
        return self.page

    def explore(self, **parameters: str) -> Page:
        page = self.visit("/", **parameters)
        self.wait_until_drawn()
        self.unfold()
        return page

    def roles(self, **parameters: str) -> Page:
        """Open Roles and wait for its script; without it, a link to a head would reload the page."""
        page = self.visit("/roles", **parameters)
        expect(page.locator(".st-key-pages a[aria-current=page]")).to_have_text("Roles")
        return page

    def wait_until_drawn(self) -> None:
        """Wait until the script has run and an opened head is painted."""
        try:
            self.page.wait_for_function(DRAWN)
        except TimeoutError as error:
            raise AssertionError(f"not drawn: {self.page.evaluate(STATE)}") from error

    def read(self, text: str) -> None:
        self.field.fill(text)
        self.field.press("Enter")
        self.wait_for_parameters(text=text)
        self.wait_until_drawn()

    def choose_more(self, name: str) -> None:
        """Choose from the menu *More*."""
        self.page.get_by_role("button", name="More", exact=True).click()
        self.page.get_by_role("button", name=name).click()

    def wait_for_parameters(self, **parameters: str | None) -> None:
        """Wait until the address has these parameters; None means that a parameter is absent."""
        for name, value in parameters.items():
            self.page.wait_for_function(
                "([name, value]) => new URLSearchParams(location.search).get(name) === value", arg=[name, value]
            )

    @property
    def address(self) -> dict[str, str]:
        return {name: values[-1] for name, values in parse_qs(urlsplit(self.page.url).query, True).items()}

    # ---- Parts of the page

    @property
    def field(self) -> Locator:
        return self.page.get_by_label("Sentence", exact=True)

    @property
    def grid(self) -> Locator:
        return self.page.locator(".grid canvas")

    @property
    def links(self) -> Locator:
        return self.page.locator(".links canvas")

    @property
    def heat(self) -> Locator:
        return self.page.locator(".heat canvas")

    @property
    def panels(self) -> Locator:
        return self.page.locator(".panels")

    @property
    def title(self) -> Locator:
        return self.page.locator(".one h2 code")

    @property
    def readout(self) -> Locator:
        return self.page.locator(".readout")

    def unfold(self) -> None:
        """Open the menu of the drawing, the numbers below the grid, and the links beside the heatmap."""
        self.page.locator(".fan input:not(:checked)").evaluate_all("all => all.forEach(one => one.click())")
        self.page.locator("details:is(.drawing, .more)").evaluate_all("all => all.forEach(one => { one.open = true; })")

    def head_switch(self, number: int) -> Locator:
        self.unfold()
        return self.page.locator(".heads button").nth(number)

    def choose(self, control: str, value: str) -> None:
        self.unfold()
        self.page.locator(".controls .choice", has_text=control).locator("select").select_option(value)

    def press_segment(self, text: str) -> None:
        self.unfold()
        self.page.locator(".segments").get_by_text(text, exact=True).click()

    # ---- Pixels

    def pixels(self, canvas: Locator) -> tuple[str, int]:
        """Return a fingerprint of a canvas, and its number of colours."""
        hash_, colours = canvas.evaluate(FINGERPRINT)
        return hash_, colours

    def has_colour(self, canvas: Locator, colour: str) -> bool:
        is_painted: bool = canvas.evaluate(HAS_COLOUR, _parse_colour(colour))
        return is_painted

    def wait_for_colour(self, canvas: Locator, colour: str) -> None:
        """Wait until a canvas contains ``colour``."""
        self._wait_until(canvas, f"({HAS_COLOUR})(canvas, value)", _parse_colour(colour))

    def wait_for_redraw(self, canvas: Locator, act: Callable[[], object]) -> None:
        """Do ``act`` and wait until a canvas has changed."""
        before = self.pixels(canvas)[0]
        act()
        self._wait_until(canvas, f"({FINGERPRINT})(canvas)[0] !== value", before)

    def wait_for_fingerprint(self, canvas: Locator, fingerprint: str) -> None:
        """Wait until a canvas has this fingerprint."""
        self._wait_until(canvas, f"({FINGERPRINT})(canvas)[0] === value", fingerprint)

    def _wait_until(self, canvas: Locator, condition: str, value: object) -> None:
        """Wait until the JavaScript ``condition`` holds for ``canvas``; it is evaluated in every frame."""
        self.page.wait_for_function(f"([canvas, value]) => {condition}", arg=[canvas.element_handle(), value])

    def resize(self, viewport: ViewportSize) -> None:
        """Resize the window, and wait until the page has been redrawn."""
        self.page.set_viewport_size(viewport)
        self.page.wait_for_function(
            "({ width, height }) => innerWidth === width && innerHeight === height", arg=dict(viewport)
        )
        self.page.evaluate(FRAMES)  # drawings follow in the next frame

    def set_colour_scheme(self, scheme: Literal["light", "dark"]) -> None:
        """Switch this tab to a colour scheme, and wait until the page has the new colours."""
        self.page.emulate_media(color_scheme=scheme)
        expect(self.page.locator(".stApp")).to_have_css("background-color", PAPER[scheme])

    # ---- The pointer

    def click_head(self, layer: int, head: int) -> None:
        self.grid.click(position=self.head_at(layer, head))

    def head_at(self, layer: int, head: int) -> Position:
        """Return a point inside the small picture of a head. The labels of the grid take 30 × 22 pixels."""
        box = self.grid.bounding_box()
        assert box
        width, height = (box["width"] - 30) / 12, (box["height"] - 22) / 6  # the bar of a recipe is below its square
        return {"x": 30 + (head + 0.4) * width, "y": 22 + (layer + 0.4) * height}

    def point(self, canvas: Locator, x: float, y: float) -> str:
        """Move the pointer to a point of ``canvas``, and return the readout."""
        box = canvas.bounding_box()
        assert box
        self.page.mouse.move(box["x"] + x, box["y"] + y)
        return self.readout.inner_text()

    def hover_until(self, canvas: Locator, points: Iterator[tuple[float, float]], pattern: re.Pattern[str]) -> str:
        """Move the pointer over ``canvas`` until the readout matches at two points, so that it is not on an edge."""
        previous = ""
        for x, y in points:
            text = self.point(canvas, x, y)
            if pattern.search(text) and text == previous:
                return text
            previous = text
        raise AssertionError(f"No point of the canvas shows: {pattern.pattern}; last: {self.readout.inner_text()}")

    def hover_word(self, word: str) -> str:
        """Scroll the link diagram into view, and move the pointer to a query word."""
        self.links.evaluate("canvas => canvas.scrollIntoView({ block: 'nearest' })")
        box = self.links.bounding_box()
        assert box
        points = ((20.0, float(y)) for y in range(4, int(box["height"]), 8))
        return self.hover_until(self.links, points, re.compile(rf"^{re.escape(word)} attends to "))


def _parse_colour(colour: str) -> list[int]:
    """Return red, green and blue of "#rrggbb"."""
    return [int(colour[i : i + 2], 16) for i in (1, 3, 5)]


def open_by_search(page: Page, head: str) -> None:
    """Open a head by its name, with the search field that every page has."""
    field = page.get_by_role("searchbox", name="Find a head")
    field.fill(head)
    expect(page.get_by_role("region", name="Matching heads").get_by_role("link").first).to_contain_text(head)
    field.press("Enter")
