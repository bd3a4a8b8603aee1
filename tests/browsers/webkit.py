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

from tests.browsers.engine import ByActions, started
from tests.ports import find_free_port
from tests.waiting import PATIENCE, until

# The driver tells nothing of errors: the page notes them, from the moment at which it can be asked.
LISTEN = """() => {
    if (window.leaves || location.href === "about:blank") return false;
    window.faults ??= [];
    const note = (...what) => window.faults.push(what.join(" "));
    const { error } = console;
    console.error = (...what) => { note("error:", ...what); error(...what); };
    addEventListener("error", ({ message, filename, lineno }) => note("error:", message, filename, lineno));
    addEventListener("unhandledrejection", ({ reason }) => note("error:", reason));
    document.addEventListener("securitypolicyviolation",
        ({ violatedDirective, blockedURI }) => note("refused:", violatedDirective, blockedURI));
    return true;
}"""
# What it has noted, and the requests that failed.
NOTED = """() => [...(window.faults ?? []), ...performance.getEntriesByType("resource")
    .filter(({ responseStatus: status }) => status >= 400)
    .map(({ responseStatus: status, name }) => `${status}: ${name}`)]"""

FRAME = 200  # pixels: more than a window's frame takes from the page


class WebKit(ByActions):
    """A window on a screen in memory."""

    least_width = 447

    def _start(self, ends: ExitStack) -> None:
        settings = self.folder / "config" / "gtk-3.0" / "settings.ini"
        settings.parent.mkdir(parents=True)
        settings.write_text("[Settings]\ngtk-enable-animations=0\n", "utf-8")  # motion is reduced
        (self.folder / "config" / "user-dirs.dirs").write_text(f'XDG_DOWNLOAD_DIR="{self.downloads}"\n', "utf-8")
        self._faults: list[str] = []
        port = find_free_port()
        environment = {
            "DISPLAY": self._screen(ends),
            "HOME": str(self.folder),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "XDG_RUNTIME_DIR": str(self.folder),
            "LIBGL_ALWAYS_SOFTWARE": "1",
            "NO_AT_BRIDGE": "1",
        }
        started(ends, [self.program, "--host=127.0.0.1", f"--port={port}"], self.log, environment)
        self._url = f"http://127.0.0.1:{port}"
        until(self._is_ready, every=0.2)
        session = self._order("POST", "/session", capabilities={"alwaysMatch": {"pageLoadStrategy": "none"}})
        self.version = session["capabilities"]["browserVersion"]
        self._url += f"/session/{session['sessionId']}"
        ends.callback(self._order, "DELETE", "")

    def _screen(self, ends: ExitStack) -> str:
        """Return the name of a screen in memory."""
        read, write = os.pipe()
        command = ["Xvfb", "-displayfd", str(write), "-screen", "0", "1600x1200x24", "-nolisten", "tcp"]
        started(ends, command, self.log, {}, pass_fds=[write])
        os.close(write)
        with os.fdopen(read) as told:
            return f":{told.readline().strip()}"

    def _is_ready(self) -> bool:
        with suppress(OSError):
            return bool(self._order("GET", "/status"))
        return False

    def _order(self, method: str, path: str, **parameters: Any) -> Any:
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
        self._faults += self.run(NOTED)
        self.run("() => { window.leaves = true; }")
        self._order("POST", "/url", url=url)
        until(lambda: self._has(LISTEN))
        until(lambda: self._has("() => document.readyState === 'complete'"))

    def _has(self, function: str) -> bool:
        """Tell whether a function gives true; no page answers while another comes."""
        with suppress(AssertionError):
            return bool(self.run(function))
        return False

    def back(self) -> None:
        """See Engine."""
        self._order("POST", "/back")

    def forward(self) -> None:
        """See Engine."""
        self._order("POST", "/forward")

    def resize(self, width: int, height: int) -> None:
        """Make the window larger than the page by the size of its frame."""
        goal = {"width": max(width, self.least_width), "height": height}
        size = dict(goal)
        for _ in range(2):
            self._order("POST", "/window/rect", **size)
            until(lambda: all(abs(goal[side] - length) < FRAME for side, length in self._inner().items()))
            inner = self._inner()
            size = {side: size[side] + goal[side] - inner[side] for side in goal}

    def _inner(self) -> dict[str, int]:
        size: dict[str, int] = self.run("() => ({ width: innerWidth, height: innerHeight })")
        return size

    def picture(self) -> bytes:
        """See Engine."""
        return base64.b64decode(self._order("GET", "/screenshot"))

    def faults(self) -> list[str]:
        """Return what the pages noted."""
        return self._faults + list(self.run(NOTED))

    def _perform(self, sources: Sequence[Mapping[str, Any]]) -> None:
        self._order("POST", "/actions", actions=list(sources))

    def _evaluate(self, expression: str) -> str:
        return str(self._order("POST", "/execute/sync", script=f"return {expression}", args=[]))
