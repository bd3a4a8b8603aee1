"""Firefox driven by WebDriver BiDi, its native protocol. One connection carries commands, answers and events."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any

from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

from tests.browsers.engine import ActionsEngine, start_process
from tests.ports import find_free_port
from tests.waiting import PATIENCE, until

PREFERENCES: dict[str, bool | int | str] = {
    "browser.download.folderList": 2,  # use browser.download.dir
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

ABORTED = "status=2152398850"  # NS_BINDING_ABORTED: a font that was loading when the page was left


class Firefox(ActionsEngine):
    """A headless window."""

    def _start(self, ends: ExitStack) -> None:
        profile = self.folder / "profile"
        profile.mkdir()
        preferences = {**PREFERENCES, "browser.download.dir": str(self.downloads)}
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in preferences.items()]
        (profile / "user.js").write_text("".join(lines), "utf-8")
        port = find_free_port()
        command = [self.program, "--headless", "--no-remote", "--profile", str(profile)]
        command += ["--remote-debugging-port", str(port), "about:blank"]
        start_process(ends, command, self.log, {"HOME": str(self.folder)})
        self._errors: list[str] = []
        self._last_id = 0
        self._socket = _connect(ends, f"ws://127.0.0.1:{port}/session")
        self.version = self._call("session.new", capabilities={})["capabilities"]["browserVersion"]
        self._context = self._call("browsingContext.getTree")["contexts"][0]["context"]
        events = ["log.entryAdded", "network.responseCompleted", "network.fetchError"]
        self._call("session.subscribe", events=events)
        listener = """() => document.addEventListener("securitypolicyviolation",
            ({ violatedDirective, blockedURI }) => console.error("refused:", violatedDirective, blockedURI))"""
        self._call("script.addPreloadScript", functionDeclaration=listener)

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the result of a command; record the events that arrive before it."""
        self._last_id += 1
        self._socket.send(json.dumps({"id": self._last_id, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(PATIENCE))
            if message.get("id") == self._last_id:
                assert message["type"] == "success", (method, message)
                result: dict[str, Any] = message["result"]
                return result
            if message["type"] == "event":
                self._record_event(message["method"], message["params"])

    def _record_event(self, event: str, fields: Mapping[str, Any]) -> None:
        if event == "log.entryAdded" and fields["level"] == "error" and ABORTED not in fields["text"]:
            self._errors.append(f"error: {fields['text']}")
        elif event == "network.responseCompleted" and fields["response"]["status"] >= 400:
            self._errors.append(f"{fields['response']['status']}: {fields['response']['url']}")
        elif event == "network.fetchError" and fields["errorText"] != "NS_BINDING_ABORTED":
            self._errors.append(f"{fields['errorText']}: {fields['request']['url']}")

    def open(self, url: str) -> None:
        """See Engine."""
        self._call("browsingContext.navigate", context=self._context, url=url, wait="complete")

    def back(self) -> None:
        """See Engine."""
        self._call("browsingContext.traverseHistory", context=self._context, delta=-1)

    def forward(self) -> None:
        """See Engine."""
        self._call("browsingContext.traverseHistory", context=self._context, delta=1)

    def resize(self, width: int, height: int) -> None:
        """See Engine."""
        size = {"width": width, "height": height}
        self._call("browsingContext.setViewport", context=self._context, viewport=size)

    def screenshot(self) -> bytes:
        """See Engine."""
        return base64.b64decode(self._call("browsingContext.captureScreenshot", context=self._context)["data"])

    def list_errors(self) -> list[str]:
        """Return the errors of scripts and of the network, and what the page's security policy refused."""
        self.run("() => 0")  # events that were sent earlier arrive before the answer
        return self._errors

    def _perform(self, sources: Sequence[Mapping[str, Any]]) -> None:
        self._call("input.performActions", context=self._context, actions=list(sources))

    def _evaluate(self, expression: str) -> str:
        result = self._call(
            "script.evaluate", expression=expression, target={"context": self._context}, awaitPromise=False
        )
        assert result["type"] == "success", result
        return str(result["result"]["value"])


def _connect(ends: ExitStack, url: str) -> ClientConnection:
    """Wait until a server listens at ``url``, and return a connection that ``ends`` closes."""
    connections: list[ClientConnection] = []

    def is_connected() -> bool:
        with suppress(OSError, WebSocketException):
            connections.append(ends.enter_context(connect(url, max_size=None, proxy=None, open_timeout=PATIENCE)))
        return bool(connections)

    until(is_connected, every=0.2)
    return connections[0]
