"""Chromium driven by Playwright: the reference for the other engines."""

from __future__ import annotations

from contextlib import ExitStack

from playwright.sync_api import ConsoleMessage, Download, Response, sync_playwright

from tests.browsers.engine import Engine


class Chromium(Engine):
    """A headless window."""

    def _start(self, ends: ExitStack) -> None:
        playwright = ends.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=self.program, args=["--no-sandbox", "--disable-gpu"])
        ends.callback(browser.close)
        self.version = browser.version
        self._page = browser.new_page(reduced_motion="reduce")
        self._errors: list[str] = []
        self._page.on("console", self._record_console_error)
        self._page.on("pageerror", lambda error: self._errors.append(str(error)))
        self._page.on("response", self._record_failed_response)
        self._page.on("download", self._save_download)

    def _record_console_error(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self._errors.append(f"error: {message.text}")

    def _record_failed_response(self, response: Response) -> None:
        if response.status >= 400:
            self._errors.append(f"{response.status}: {response.url}")

    def _save_download(self, download: Download) -> None:
        download.save_as(self.downloads / download.suggested_filename)

    def open(self, url: str) -> None:
        """See Engine."""
        self._page.goto(url)

    def back(self) -> None:
        """See Engine."""
        self._page.go_back(wait_until="commit")

    def forward(self) -> None:
        """See Engine."""
        self._page.go_forward(wait_until="commit")

    def resize(self, width: int, height: int) -> None:
        """See Engine."""
        self._page.set_viewport_size({"width": width, "height": height})

    def point(self, x: float, y: float) -> None:
        """See Engine."""
        self._page.mouse.move(x + 1, y)
        self._page.mouse.move(x, y)

    def press(self) -> None:
        """See Engine."""
        self._page.mouse.down()
        self._page.mouse.up()

    def type(self, *keys: str) -> None:
        """See Engine."""
        for key in keys:
            self._page.keyboard.press(key)

    def select_all(self) -> None:
        """See Engine."""
        self._page.keyboard.press("Control+a")

    def screenshot(self) -> bytes:
        """See Engine."""
        return self._page.screenshot()

    def list_errors(self) -> list[str]:
        """See Engine."""
        return self._errors

    def _evaluate(self, expression: str) -> str:
        return str(self._page.evaluate(expression))
