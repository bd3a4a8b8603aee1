"""A server whose messages come late or never, to test what a page does meanwhile."""

from __future__ import annotations

from collections.abc import Collection

from playwright.sync_api import Page, WebSocketRoute
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.browser_tab import FRAMES


class LateServer:
    """The messages that the server sends to a page, from before its first visit on."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._late: list[str | bytes] | None = None
        self._in_time: Collection[str] = ()
        page.route_web_socket("**/_stcore/stream", self._connect)

    def _connect(self, browser: WebSocketRoute) -> None:
        self._browser = browser
        browser.connect_to_server().on_message(self._come)

    def _come(self, message: str | bytes) -> None:
        if self._late is None or _type(message) in self._in_time:
            self._browser.send(message)
        else:
            self._late.append(message)

    def hold_back(self, in_time: Collection[str] = ()) -> None:
        """Hold messages back from now on, except those of the types ``in_time``."""
        self._late, self._in_time = [], in_time

    def wait_for_runs(self, runs: int) -> None:
        """Wait until so many runs have ended of which the page does not know."""
        while sum(_type(message) == "script_finished" for message in self._late or ()) < runs:
            self._page.evaluate(FRAMES)

    def release(self) -> None:
        """Send what has waited."""
        late, self._late = self._late or [], None
        for message in late:
            self._browser.send(message)


def _type(message: str | bytes) -> str | None:
    assert isinstance(message, bytes)
    return ForwardMsg.FromString(message).WhichOneof("type")
