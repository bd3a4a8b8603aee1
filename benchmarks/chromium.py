"""Start the Chromium for all measurements, and count the bytes that its pages receive."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tools import browser as browser_tool

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
TIMING = Path(__file__).resolve().parent / "timing.js"
TIMEOUT_MS = 600_000  # BertViz takes a minute to draw millions of lines


@contextmanager
def open_chromium() -> Iterator[Browser]:
    """Yield a running Chromium: $CHROMIUM, or else the one that tools/browser.py finds.

    Raises SystemExit if there is none.
    """
    path = os.environ.get("CHROMIUM") or browser_tool.find()
    if path is None:
        raise SystemExit(browser_tool.NOT_FOUND)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


def name_browser(browser: Browser) -> str:
    """Return the name and version of the browser, for the table of results."""
    return f"Chromium {browser.version}, headless, software raster"


@contextmanager
def open_visitor(browser: Browser) -> Iterator[BrowserContext]:
    """Yield a visitor with an empty cache and a 1440 × 900 window."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="light")
    context.set_default_timeout(TIMEOUT_MS)
    context.add_init_script(path=TIMING)
    try:
        yield context
    finally:
        context.close()


class Traffic:
    """Bytes received by a page: HTTP bodies as transferred, and WebSocket messages."""

    def __init__(self, page: Page) -> None:
        self.http = self.socket = 0
        session = page.context.new_cdp_session(page)
        session.on("Network.dataReceived", self._count_data)
        session.on("Network.webSocketFrameReceived", self._count_message)
        session.send("Network.enable")

    @property
    def bytes(self) -> int:
        """All bytes so far."""
        return self.http + self.socket

    def _count_data(self, event: dict[str, Any]) -> None:
        self.http += event["encodedDataLength"]  # 0 for parts of a body; its last part has the sum

    def _count_message(self, event: dict[str, Any]) -> None:
        payload = event["response"]["payloadData"]
        is_binary = event["response"]["opcode"] == 2  # base64 in this case
        self.socket += len(payload) * 3 // 4 if is_binary else len(payload.encode())
