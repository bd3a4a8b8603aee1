"""Limit connections before a request has arrived.

The head of a request must arrive in time, and the number of connections per address is limited. uvicorn has no such
limits. Behind nginx they are never reached.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
from collections import Counter
from collections.abc import Callable
from functools import wraps
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from mha_viz.app.serving.session_limit import get_client_address
from mha_viz.app.serving.settings import ServerSettings, from_environment, is_loopback
from mha_viz.app.serving.sweeping import read_descriptor_limit

MESSAGE_BYTES = 2_000_000  # per message from a browser; files are sent as uploads
_SHUTDOWN_S = 2  # seconds that open connections have to close when the server stops
HEAD_S = 15.0  # seconds for the whole head of a request
CONNECTIONS_PER_TAB = 8  # connections of a browser that opens a page: six for its files, one WebSocket, one spare
_TOO_MANY = b"This network address has too many connections to this server. Close some tabs, then try again."
_REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 10\r\nConnection: close\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n\r\n%s" % (len(_TOO_MANY), _TOO_MANY)
)
_BASE_PROTOCOL: Any = AutoHTTPProtocol  # depends on the HTTP parser that is installed


class Connections:
    """The number of open connections of each address. The addresses of this machine and of proxies have no limit."""

    def __init__(self, settings: ServerSettings) -> None:
        self._max_per_address = min(
            CONNECTIONS_PER_TAB * settings.max_sessions_per_address, read_descriptor_limit() // 4
        )
        self._proxies = [ipaddress.ip_network(proxy) for proxy in settings.proxies]
        self._open: Counter[str] = Counter()

    def enter(self, address: str) -> bool:
        """Count a new connection; return whether the address now has too many."""
        self._open[address] += 1
        return self._open[address] > self._max_per_address and not self._is_exempt(address)

    def leave(self, address: str) -> None:
        """Record that a connection was closed."""
        self._open[address] -= 1
        if not self._open[address]:
            del self._open[address]

    def _is_exempt(self, address: str) -> bool:
        if is_loopback(address):
            return True
        try:
            return any(ipaddress.ip_address(address) in proxy for proxy in self._proxies)
        except ValueError:  # a Unix socket
            return True


class LimitedProtocol(_BASE_PROTOCOL):  # type: ignore[misc]
    """uvicorn's HTTP protocol with limits. ``address_connections`` counts the connections of one server."""

    address_connections: Connections  # not `connections`, which is an attribute of uvicorn
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._address = get_client_address({"client": self.client})
        self._start_deadline()
        if self.address_connections.enter(self._address):
            transport.write(_REFUSAL)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_deadline()
        self.address_connections.leave(self._address)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self._is_waiting_for_head():
            self._start_deadline()
        else:
            self._end_deadline()

    def handle_websocket_upgrade(self, *event: Any) -> None:
        super().handle_websocket_upgrade(*event)
        websocket_protocol: Any = self.transport.get_protocol()
        on_connection_lost = websocket_protocol.connection_lost

        def leave(exc: Exception | None) -> None:
            self.address_connections.leave(self._address)
            on_connection_lost(exc)

        websocket_protocol.connection_lost = leave

    def _is_waiting_for_head(self) -> bool:
        is_http = self.transport.get_protocol() is self  # and not a WebSocket's
        return is_http and (self.cycle is None or self.cycle.response_complete)

    def _start_deadline(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_S, self._abort_if_waiting)

    def _end_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _abort_if_waiting(self) -> None:
        self._deadline = None
        if self._is_waiting_for_head():
            self.transport.abort()


def make_protocol(settings: ServerSettings) -> type[asyncio.Protocol]:
    """Return the protocol class of a server with these settings."""
    return type("Bounded", (LimitedProtocol,), {"address_connections": Connections(settings)})


def limit_connections(original: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    """Pass uvicorn limits for which Streamlit has no setting, from the environment variables of the server's owner."""
    protocol_class = make_protocol(from_environment(os.environ))

    @wraps(original)
    def make_options() -> dict[str, Any]:
        return original() | {
            "ws_max_size": MESSAGE_BYTES,
            "timeout_graceful_shutdown": _SHUTDOWN_S,
            "server_header": False,
            "http": protocol_class,
        }

    return make_options
