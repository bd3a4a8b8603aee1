"""Limit the number of simultaneous visitors, and refuse new ones while others wait too long.

A session is an open WebSocket, that is, one browser tab. Fetching a page does not count as a session; otherwise anybody
could block the server by fetching pages.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections import Counter
from contextvars import ContextVar

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.AuthRedirect_pb2 import AuthRedirect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg, ForwardMsgMetadata
from streamlit.runtime import Runtime

from mha_viz.app.serving.back_messages import AllowedMessage, compute_cost, read_allowed
from mha_viz.app.serving.paths import STREAM, get_relative_path, list_paths
from mha_viz.app.serving.settings import ServerSettings, is_loopback
from mha_viz.app.serving.visitors import RecentVisitors, read_browser
from mha_viz.app.serving.waits import Waits
from mha_viz.browser.bundle import build_page_style

RETRY_S = 10  # seconds until the page of a full server reloads
RETURN_S = 60  # seconds within which a visitor who left, for example by reloading, is admitted again
FIRST_MESSAGE_S = 5  # seconds within which an open WebSocket must send a message
BURST, MESSAGES_PER_SECOND = 60, 20  # messages from one tab: in a burst, and per second on average

VISITOR: ContextVar[str] = ContextVar("visitor", default="")  # the visitor and tab whose messages a task handles

_FULL_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="refresh" content="{retry}">
<title>mha_viz: the server is full</title>
<style>{style}</style>
</head>
<body>
<h1>This server is full</h1>
<p>{why} This page tries again every {retry} seconds. Leave it open: its address keeps your sentence and your view.</p>
</body>
</html>
"""


class SessionLimit:
    """Counts open WebSockets and decides whether to admit another visitor."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._tabs_by_address: Counter[str] = Counter()
        self._tabs_by_visitor: Counter[str] = Counter()
        self._recent_departures = RecentVisitors(RETURN_S)
        self._recent_refusals = RecentVisitors(3 * RETRY_S)
        self.last_closed = time.monotonic()  # when the last WebSocket closed
        self.waits = Waits(settings.max_wait_s)

    @property
    def open_count(self) -> int:
        """The number of open WebSockets."""
        return self._tabs_by_address.total()

    def find_refusal(self, address: str, is_returning: bool = False) -> str:
        """Return why a visitor from ``address`` gets no session; "" if a session is free.

        ``is_returning``: whether the visitor had a session a moment ago. Such visitors are admitted even while the
        server is slow.
        """
        if self.open_count >= self._settings.max_sessions:
            return f"This server allows {self._settings.max_sessions:,} open tabs at a time."
        limit = self._settings.max_sessions_per_address
        if not is_loopback(address) and self._tabs_by_address[address] >= limit:
            return f"This server allows {limit:,} open tabs from one network address at a time, yours included."
        return "" if is_returning else self.waits.find_refusal()

    def is_known(self, visitor: str) -> bool:
        """Return whether a visitor has a session or had one a moment ago, as when reloading a page."""
        return self._tabs_by_visitor[visitor] > 0 or visitor in self._recent_departures

    def take_departure(self, visitor: str) -> bool:
        """Return whether a visitor left a session a moment ago, and forget that departure."""
        return self._recent_departures.take(visitor)

    def count_refusal(self, visitor: str) -> None:
        """Count a visitor who was told to wait; retries count once."""
        self.waits.refusals += visitor not in self._recent_refusals
        self._recent_refusals.note(visitor)

    def enter(self, address: str, visitor: str = "") -> None:
        """Count a new session."""
        self._tabs_by_address[address] += 1
        self._tabs_by_visitor[visitor or address] += 1

    def leave(self, address: str, visitor: str = "") -> None:
        """Record that a session has ended."""
        for counts, key in ((self._tabs_by_address, address), (self._tabs_by_visitor, visitor or address)):
            counts[key] -= 1
            counts += Counter()  # drops zero counts
        self._recent_departures.note(visitor or address)
        self.last_closed = time.monotonic()


class Gate:
    """ASGI middleware that enforces the limits of :class:`SessionLimit`."""

    def __init__(self, app: ASGIApp, session_limit: SessionLimit) -> None:
        self._app = app
        self._session_limit = session_limit
        self._pages = list_paths()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = get_relative_path(scope) if scope["type"] in ("http", "websocket") else ""
        if scope["type"] == "websocket" and path == STREAM:
            await self._serve_socket(scope, receive, send)
        elif scope["type"] == "http" and scope["method"] == "GET" and path.rstrip("/") in self._pages:
            await self._serve_page(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _serve_page(self, scope: Scope, receive: Receive, send: Send) -> None:
        address, browser = get_client_address(scope), read_browser(scope)
        is_returning = self._session_limit.is_known(browser or address)
        refusal = "" if browser and is_returning else self._session_limit.find_refusal(address, is_returning)
        if refusal:
            self._session_limit.count_refusal(browser or address)
            headers = {"Retry-After": str(RETRY_S), "Cache-Control": "no-store"}
            page = _FULL_PAGE.format(why=refusal, retry=RETRY_S, style=build_page_style("instead"))
            await HTMLResponse(page, 503, headers)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _serve_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        address = get_client_address(scope)
        visitor = read_browser(scope) or address
        refusal = self._session_limit.find_refusal(address, self._session_limit.take_departure(visitor))
        if refusal and not _is_resuming(scope):
            self._session_limit.count_refusal(visitor)
            await _refuse(scope, receive, send)
            return
        tab = _Tab(receive, send, self._session_limit.waits, visitor)
        self._session_limit.enter(address, visitor)
        VISITOR.set(f"{visitor} {id(tab)}")
        try:
            await self._app(scope, tab.receive, tab.send)
        finally:
            self._session_limit.waits.forget(tab)
            self._session_limit.leave(address, visitor)


class _PacedReceiver:
    """Receives the messages of a tab and passes on those that are allowed.

    It limits the tab's rate by what its messages cost, and closes the WebSocket of a tab that sends nothing.
    """

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._tokens, self._refilled_at = float(BURST), time.monotonic()
        self._has_sent = False

    async def __call__(self) -> tuple[Message, AllowedMessage | None]:
        """Return the next message and, if it is one of Streamlit's, its parsed form."""
        while True:
            message = await (self._receive() if self._has_sent else self._receive_first())
            if message["type"] != "websocket.receive":
                return message, None
            self._has_sent = True
            data = message.get("bytes") or b""
            parsed_message = read_allowed(data)
            await self._pay(compute_cost(parsed_message.kind if parsed_message else "", data))
            if parsed_message:
                return message, parsed_message

    async def _pay(self, tokens: float) -> None:
        now = time.monotonic()
        self._tokens = min(BURST, self._tokens + (now - self._refilled_at) * MESSAGES_PER_SECOND) - tokens
        self._refilled_at = now
        if self._tokens < 0:  # the tab sends too fast, so stop reading for a while
            await asyncio.sleep(-self._tokens / MESSAGES_PER_SECOND)

    async def _receive_first(self) -> Message:
        try:
            return await asyncio.wait_for(self._receive(), FIRST_MESSAGE_S)
        except TimeoutError:
            await self._send({"type": "websocket.close", "code": 1008})
            return {"type": "websocket.disconnect", "code": 1008}


class _Tab:
    """The two directions of a tab's WebSocket, with a record of waiting times.

    The creator of a tab must call ``waits.forget`` at the end: the app may end a WebSocket without asking for another
    message.
    """

    def __init__(self, receive: Receive, send: Send, waits: Waits, visitor: str) -> None:
        self._receiver, self._send = _PacedReceiver(receive, send), send
        self._waits, self._visitor = waits, visitor

    async def receive(self) -> Message:
        """Return the next message from the tab."""
        message, parsed_message = await self._receiver()
        if parsed_message:
            self._waits.note_received(self, parsed_message, self._visitor)
        return message

    async def send(self, message: Message) -> None:
        """Send a message, which blocks while the tab reads nothing."""
        start = time.monotonic()
        await self._send(message)
        self._waits.note_sent(self, message, time.monotonic() - start)


def get_client_address(scope: Scope) -> str:
    """Return the client's address. An IPv6 /64 network counts as one address, since one person has many of them."""
    client = scope.get("client")
    try:
        address = ipaddress.ip_address(client[0] if client else "")
    except ValueError:
        return str(client[0]) if client else ""
    if isinstance(address, ipaddress.IPv4Address) or address.is_loopback:
        return str(address)
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False).network_address)


def _is_resuming(scope: Scope) -> bool:
    """Return whether the WebSocket resumes a session that is waiting for a reconnect.

    A session that still has a WebSocket does not count; otherwise a tab could open any number of them.
    """
    protocols = scope.get("subprotocols", [])
    return len(protocols) > 2 and Runtime.instance()._session_mgr._session_storage.get(protocols[2]) is not None  # type: ignore[attr-defined]


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse a WebSocket.

    A browser has already received its page, which would stay empty without an explanation. Tell it to reload: it then
    gets a page that gives the reason and tries again.
    """
    refusal = PlainTextResponse("This server is full.", 503, {"Retry-After": str(RETRY_S)})
    if "origin" in Headers(scope=scope):
        reload = ForwardMsg(metadata=ForwardMsgMetadata(), auth_redirect=AuthRedirect(url=""))  # "": the page itself
        await send({"type": "websocket.accept", "subprotocol": next(iter(scope["subprotocols"]), None)})
        await send({"type": "websocket.send", "bytes": reload.SerializeToString()})
        await send({"type": "websocket.close", "code": 1013})
    elif "websocket.http.response" in scope.get("extensions", {}):
        await refusal(scope, receive, send)
    else:
        await send({"type": "websocket.close", "code": 1013})
