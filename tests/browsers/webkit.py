"""WebKit driven by WebKitWebDriver, which speaks WebDriver over HTTP. Xvfb imitates the screen for its window."""

from __future__ import annotations

import base64
import json
import os
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any
from urllib.error import HTTPError

from tests.browsers.engine import ActionsEngine, start_process
from tests.ports import find_free_port
from tests.waiting import PATIENCE, until

# The driver does not report errors, so the page records them, from the moment when scripts can run in it.
RECORD_ERRORS = """() => {
    if (window.isLeaving || location.href === "about:blank") return false;
    window.errors ??= [];
    const record = (...words) => window.errors.push(words.join(" "));
    const { error } = console;
    console.error = (...words) => { record("error:", ...words); error(...words); };
    addEventListener("error", ({ message, filename, lineno }) => record("error:", message, filename, lineno));
    addEventListener("unhandledrejection", ({ reason }) => record("error:", reason));
    document.addEventListener("securitypolicyviolation",
        ({ violatedDirective, blockedURI }) => record("refused:", violatedDirective, blockedURI));
    return true;
}"""
# Return the recorded errors, and the requests that failed.
LIST_ERRORS = """() => [...(window.errors ?? []), ...performance.getEntriesByType("resource")
    .filter(({ responseStatus: status }) => status >= 400)
    .map(({ responseStatus: status, name }) => `${status}: ${name}`)]"""

MAX_FRAME = 200  # pixels, width or height of a window's frame


class WebKit(ActionsEngine):
    """A window on a virtual screen."""

    min_width = 447

    def _start(self, ends: ExitStack) -> None:
        settings = self.folder / "config" / "gtk-3.0" / "settings.ini"
        settings.parent.mkdir(parents=True)
        settings.write_text("[Settings]\ngtk-enable-animations=0\n", "utf-8")  # reduced motion
        (self.folder / "config" / "user-dirs.dirs").write_text(f'XDG_DOWNLOAD_DIR="{self.downloads}"\n', "utf-8")
        self._errors: list[str] = []
        port = find_free_port()
        environment = {
            "DISPLAY": self._start_screen(ends),
            "HOME": str(self.folder),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "XDG_RUNTIME_DIR": str(self.folder),
            "LIBGL_ALWAYS_SOFTWARE": "1",
            "NO_AT_BRIDGE": "1",
        }
        start_process(ends, [self.program, "--host=127.0.0.1", f"--port={port}"], self.log, environment)
        self._url = f"http://127.0.0.1:{port}"
        until(self._is_ready, every=0.2)
        session = self._call("POST", "/session", capabilities={"alwaysMatch": {"pageLoadStrategy": "none"}})
        self.version = session["capabilities"]["browserVersion"]
        self._url += f"/session/{session['sessionId']}"
        ends.callback(self._call, "DELETE", "")

    def _start_screen(self, ends: ExitStack) -> str:
        """Start a virtual screen and return its name."""
        read, write = os.pipe()
        command = ["Xvfb", "-displayfd", str(write), "-screen", "0", "1600x1200x24", "-nolisten", "tcp"]
        start_process(ends, command, self.log, {}, pass_fds=[write])
        os.close(write)
        with os.fdopen(read) as output:
            return f":{output.readline().strip()}"

    def _is_ready(self) -> bool:
        with suppress(OSError):
            return bool(self._call("GET", "/status"))
        return False

    def _call(self, method: str, path: str, **parameters: Any) -> Any:
        body = json.dumps(parameters).encode() if method == "POST" else None
        request = urllib.request.Request(
            f"{self._url}{path}", body, {"Content-Type": "application/json"}, method=method
        )
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with direct.open(request, timeout=PATIENCE) as answer:
                return json.load(answer)["value"]
        except HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.read().decode()}") from error

    def open(self, url: str) -> None:
        """See Engine."""
        self._errors += self.run(LIST_ERRORS)
        self.run("() => { window.isLeaving = true; }")
        self._call("POST", "/url", url=url)
        until(lambda: self._is_true(RECORD_ERRORS))
        until(lambda: self._is_true("() => document.readyState === 'complete'"))

    def _is_true(self, function: str) -> bool:
        """Return whether a function returns true; False while a new page loads, because then no page answers."""
        with suppress(AssertionError):
            return bool(self.run(function))
        return False

    def back(self) -> None:
        """See Engine."""
        self._call("POST", "/back")

    def forward(self) -> None:
        """See Engine."""
        self._call("POST", "/forward")

    def resize(self, width: int, height: int) -> None:
        """Set the size of the window, which exceeds the page's by the frame, until the page has its size."""
        goal = {"width": max(width, self.min_width), "height": height}
        size = dict(goal)
        for _ in range(2):
            self._call("POST", "/window/rect", **size)
            until(lambda: all(abs(goal[side] - length) < MAX_FRAME for side, length in self._measure_page().items()))
            inner = self._measure_page()
            size = {side: size[side] + goal[side] - inner[side] for side in goal}

    def _measure_page(self) -> dict[str, int]:
        size: dict[str, int] = self.run("() => ({ width: innerWidth, height: innerHeight })")
        return size

    def screenshot(self) -> bytes:
        """See Engine."""
        return base64.b64decode(self._call("GET", "/screenshot"))

    def list_errors(self) -> list[str]:
        """Return the errors that the pages recorded."""
        return self._errors + list(self.run(LIST_ERRORS))

    def _perform(self, sources: Sequence[Mapping[str, Any]]) -> None:
        self._call("POST", "/actions", actions=list(sources))

    def _evaluate(self, expression: str) -> str:
        return str(self._call("POST", "/execute/sync", script=f"return {expression}", args=[]))
