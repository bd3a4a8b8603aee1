"""Delay or drop messages of the server, to test a page that waits for them."""

from __future__ import annotations

from collections.abc import Collection

from playwright.sync_api import Page, WebSocketRoute
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.browser_tab import FRAMES


class LateServer:
    """Control of the server's messages to a page; create it before the page's first visit."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._held: list[str | bytes] | None = None
        self._passing: Collection[str] = ()
        page.route_web_socket("**/_stcore/stream", self._connect)

    def _connect(self, browser: WebSocketRoute) -> None:
        self._browser = browser
        browser.connect_to_server().on_message(self._forward)

    def _forward(self, message: str | bytes) -> None:
        if self._held is None or _type(message) in self._passing:
            self._browser.send(message)
        else:
            self._held.append(message)

    def hold_back(self, in_time: Collection[str] = ()) -> None:
        """Hold back all further messages, except those of the types ``in_time``."""
        self._held, self._passing = [], in_time

    def wait_for_runs(self, runs: int) -> None:
        """Wait until the ends of ``runs`` runs have been held back."""
        while sum(_type(message) == "script_finished" for message in self._held or ()) < runs:
            self._page.evaluate(FRAMES)

    def release(self) -> None:
        """Send the messages that were held back, and all later ones."""
        messages, self._held = self._held or [], None
        for message in messages:
            self._browser.send(message)


def _type(message: str | bytes) -> str | None:
    assert isinstance(message, bytes)
    return ForwardMsg.FromString(message).WhichOneof("type")
