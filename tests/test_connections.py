"""Connections that are no visitors': half a request, and many from one address."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket
from websockets.asyncio.client import connect

from mha_viz.app.serving import connections
from mha_viz.app.serving.connections import CONNECTIONS_PER_TAB, Connections, LimitedProtocol, make_protocol
from mha_viz.app.serving.settings import ServerSettings
from tests.waiting import PATIENCE
from tests.web_session import run

HALF = b"GET / HTTP/1.1\r\nHost: here\r\n"


async def _answer(_: object) -> PlainTextResponse:
    return PlainTextResponse("here")


async def _stay(socket: WebSocket) -> None:
    await socket.accept()
    await socket.receive()


@asynccontextmanager
async def serving(settings: ServerSettings) -> AsyncIterator[int]:
    """A server with these limits, and nothing of the app; its port."""
    app = Starlette(routes=[Route("/", _answer), WebSocketRoute("/socket", _stay)])
    chosen = {"http": make_protocol(settings), "ws": "websockets-sansio", "log_config": None}
    server = uvicorn.Server(uvicorn.Config(app, port=0, lifespan="off", **chosen))
    running = asyncio.create_task(server._serve())
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        async with asyncio.timeout(PATIENCE):
            yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        await running


async def received(port: int, *parts: bytes) -> bytes:
    """All that the server sends until it closes the connection; each of ``parts`` but the last is answered first."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    got = b""
    for number, part in enumerate(parts, start=1):
        writer.write(part)
        got += await reader.readuntil(b"here") if number < len(parts) else b""
    try:
        return got + await reader.read()
    except ConnectionResetError:
        return got
    finally:
        writer.close()


class Deadlines:
    """The deadlines of heads, which pass when a test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._awaited: list[LimitedProtocol] = []
        start_deadline = LimitedProtocol._start_deadline

        def noted(connection: LimitedProtocol) -> None:
            start_deadline(connection)
            self._awaited.append(connection)

        monkeypatch.setattr(connections, "HEAD_S", 600)
        monkeypatch.setattr(LimitedProtocol, "_start_deadline", noted)

    async def pass_by(self, awaited: int) -> int:
        """As soon as heads were awaited so often. Returns how many deadlines there were."""
        while len(self._awaited) < awaited:
            await asyncio.sleep(0.01)
        running = [one for one in dict.fromkeys(self._awaited) if one._deadline is not None]
        for one in running:
            assert one._deadline
            assert one._deadline.when() <= asyncio.get_running_loop().time() + connections.HEAD_S
            one._deadline.cancel()
            one._abort_if_waiting()
        return len(running)


@pytest.fixture
def deadlines(monkeypatch: pytest.MonkeyPatch) -> Deadlines:
    return Deadlines(monkeypatch)


@pytest.mark.parametrize("parts", [(), (HALF,), (HALF + b"\r\n", HALF)], ids=["nothing", "half", "half of the second"])
def test_a_request_s_head_has_a_deadline(parts: tuple[bytes, ...], deadlines: Deadlines) -> None:
    async def wait() -> None:
        async with serving(ServerSettings()) as port:
            answers = asyncio.create_task(received(port, *parts))
            assert await deadlines.pass_by(awaited=2 if HALF in parts else 1) == 1
            assert (await answers).count(b"200 OK") == len(parts[1:])

    run(wait())


def test_whoever_sends_a_whole_head_stays(deadlines: Deadlines) -> None:
    async def stay() -> None:
        async with serving(ServerSettings()) as port, connect(f"ws://127.0.0.1:{port}/socket", proxy=None) as socket:
            assert await deadlines.pass_by(awaited=1) == 0
            await (await socket.ping())
            await socket.send("here")  # still open

    run(stay())


def test_one_address_has_its_share_of_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "is_loopback", lambda _: False)

    async def crowd() -> None:
        async with serving(ServerSettings(max_sessions_per_address=1)) as port:
            sockets = [await connect(f"ws://127.0.0.1:{port}/socket", proxy=None) for _ in range(CONNECTIONS_PER_TAB)]
            refused = await received(port)
            assert refused.startswith(b"HTTP/1.1 503")
            assert b"too many connections" in refused
            await sockets.pop().close()
            while not (await received(port, HALF + b"Connection: close\r\n\r\n")).startswith(b"HTTP/1.1 200"):
                await asyncio.sleep(0.01)
            for socket in sockets:
                await socket.close()

    run(crowd())


def test_proxies_and_this_machine_have_no_limit_and_few_descriptors_lower_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "read_descriptor_limit", lambda: 12)
    counted = Connections(ServerSettings(proxies=("10.0.0.0/24",)))
    for address in ("127.0.0.1", "10.0.0.9", ""):
        assert not [number for number in range(9) if counted.enter(address)]
    assert [counted.enter("10.0.1.1") for _ in range(4)] == [False, False, False, True]
    counted.leave("10.0.1.1")
    counted.leave("10.0.1.1")
    assert not counted.enter("10.0.1.1")
