"""Firefox driven by WebDriver BiDi, its native protocol. One connection carries commands, answers and events."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any

from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

from tests.browsers.engine import ByActions, started
from tests.ports import find_free_port
from tests.waiting import PATIENCE, until

PREFERENCES: dict[str, bool | int | str] = {
    "browser.download.folderList": 2,  # the folder below
    "browser.download.always_ask_before_handling_new_types": False,
    "browser.download.open_pdf_attachments_inline": False,
    "browser.helperApps.neverAsk.saveToDisk": "image/svg+xml,text/csv,text/html",
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage_override.mstone": "ignore",
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "ui.prefersReducedMotion": 1,
}

LEFT = "status=2152398850"  # NS_BINDING_ABORTED: a font that was on its way when the page was left


class Firefox(ByActions):
    """A window without a screen."""

    def _start(self, ends: ExitStack) -> None:
        profile = self.folder / "profile"
        profile.mkdir()
        preferences = {**PREFERENCES, "browser.download.dir": str(self.downloads)}
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in preferences.items()]
        (profile / "user.js").write_text("".join(lines), "utf-8")
        port = find_free_port()
        command = [self.program, "--headless", "--no-remote", "--profile", str(profile)]
        command += ["--remote-debugging-port", str(port), "about:blank"]
        started(ends, command, self.log, {"HOME": str(self.folder)})
        self._faults: list[str] = []
        self._last = 0
        self._socket = _connection(ends, f"ws://127.0.0.1:{port}/session")
        self.version = self._order("session.new", capabilities={})["capabilities"]["browserVersion"]
        self._context = self._order("browsingContext.getTree")["contexts"][0]["context"]
        events = ["log.entryAdded", "network.responseCompleted", "network.fetchError"]
        self._order("session.subscribe", events=events)
        listener = """() => document.addEventListener("securitypolicyviolation",
            ({ violatedDirective, blockedURI }) => console.error("refused:", violatedDirective, blockedURI))"""
        self._order("script.addPreloadScript", functionDeclaration=listener)

    def _order(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the result of an order. What happens meanwhile is noted."""
        self._last += 1
        self._socket.send(json.dumps({"id": self._last, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(PATIENCE))
            if message.get("id") == self._last:
                assert message["type"] == "success", (method, message)
                result: dict[str, Any] = message["result"]
                return result
            if message["type"] == "event":
                self._note(message["method"], message["params"])

    def _note(self, event: str, what: Mapping[str, Any]) -> None:
        if event == "log.entryAdded" and what["level"] == "error" and LEFT not in what["text"]:
            self._faults.append(f"error: {what['text']}")
        elif event == "network.responseCompleted" and what["response"]["status"] >= 400:
            self._faults.append(f"{what['response']['status']}: {what['response']['url']}")
        elif event == "network.fetchError" and what["errorText"] != "NS_BINDING_ABORTED":
            self._faults.append(f"{what['errorText']}: {what['request']['url']}")

    def open(self, url: str) -> None:
        """See Engine."""
        self._order("browsingContext.navigate", context=self._context, url=url, wait="complete")

    def back(self) -> None:
        """See Engine."""
        self._order("browsingContext.traverseHistory", context=self._context, delta=-1)

    def forward(self) -> None:
        """See Engine."""
        self._order("browsingContext.traverseHistory", context=self._context, delta=1)

    def resize(self, width: int, height: int) -> None:
        """See Engine."""
        size = {"width": width, "height": height}
        self._order("browsingContext.setViewport", context=self._context, viewport=size)

    def picture(self) -> bytes:
        """See Engine."""
        return base64.b64decode(self._order("browsingContext.captureScreenshot", context=self._context)["data"])

    def faults(self) -> list[str]:
        """Return what the log, the network and the policy of the page tell."""
        self.run("() => 0")  # what is on its way arrives before the answer
        return self._faults

    def _perform(self, sources: Sequence[Mapping[str, Any]]) -> None:
        self._order("input.performActions", context=self._context, actions=list(sources))

    def _evaluate(self, expression: str) -> str:
        result = self._order(
            "script.evaluate", expression=expression, target={"context": self._context}, awaitPromise=False
        )
        assert result["type"] == "success", result
        return str(result["result"]["value"])


def _connection(ends: ExitStack, url: str) -> ClientConnection:
    """Return a connection, once somebody listens there, until ``ends``."""
    connections: list[ClientConnection] = []

    def listens() -> bool:
        with suppress(OSError, WebSocketException):
            connections.append(ends.enter_context(connect(url, max_size=None, proxy=None, open_timeout=PATIENCE)))
        return bool(connections)

    until(listens, every=0.2)
    return connections[0]
