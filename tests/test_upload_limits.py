"""Limits on uploads under way: announced but never sent, and broken off."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from mha_viz.app.serving import uploads
from mha_viz.app.serving.paths import UPLOADS
from mha_viz.app.serving.uploads import Uploads
from tests.web_session import run

SIZE = 8_000_000


async def stores(scope: Scope, receive: Receive, send: Send) -> None:
    """An app that answers with the number of bytes it received."""
    body = await Request(scope, receive).body()
    await PlainTextResponse(str(len(body)), 200)(scope, receive, send)


@pytest.fixture
def middleware(monkeypatch: pytest.MonkeyPatch) -> Uploads:
    monkeypatch.setattr(uploads, "_count_stored_bytes", lambda: 0)
    monkeypatch.setattr(uploads, "_is_same_browser", lambda *_: True)
    monkeypatch.setattr(uploads, "_delete_oldest_files", lambda _: None)
    return Uploads(stores)


async def put(middleware: Uploads, session: str, receive: Callable[[], Awaitable[Message]]) -> tuple[int, str]:
    """The status and the text of the answer to an upload of ``SIZE`` bytes."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http", "method": "PUT", "path": f"{UPLOADS}{session}/file", "root_path": "", "query_string": b"",
        "headers": [(b"content-length", str(SIZE).encode())],
    }  # fmt: skip
    await middleware(scope, receive, send)
    text = b"".join(message.get("body", b"") for message in sent).decode()
    return (sent[0]["status"] if sent else 0), text


async def silent() -> Message:
    """A browser that sends nothing."""
    await asyncio.Event().wait()
    raise AssertionError


def chunks(*bodies: bytes) -> Callable[[], Awaitable[Message]]:
    """A browser that sends these pieces."""
    rest = [{"type": "http.request", "body": body, "more_body": at < len(bodies)} for at, body in enumerate(bodies, 1)]

    async def receive() -> Message:
        return rest.pop(0)

    return receive


async def broken_off() -> Message:
    return {"type": "http.disconnect"}


def test_uploads_that_are_announced_and_never_sent_take_no_room(middleware: Uploads) -> None:
    async def visit() -> tuple[int, str]:
        idle = [asyncio.create_task(put(middleware, f"idle{number}", silent)) for number in range(40)]
        await asyncio.sleep(0)  # all of them have begun
        assert len(middleware._received_bytes) == 40
        answer = await put(middleware, "other", chunks(b"x" * SIZE))
        for task in idle:
            task.cancel()
        await asyncio.gather(*idle, return_exceptions=True)
        return answer

    assert run(visit()) == (200, str(SIZE))
    assert middleware._received_bytes == {}


def test_an_upload_that_takes_too_long_is_ended(middleware: Uploads, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "UPLOAD_S", 0.01)
    status, text = run(put(middleware, "slow", silent))
    assert status == 408
    assert "took longer than" in text
    assert middleware._received_bytes == {}


def test_an_upload_ends_where_all_of_them_together_are_too_large(
    middleware: Uploads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each alone had room when it began."""
    monkeypatch.setattr(uploads, "ALL_BYTES", SIZE + 1)
    middleware._received_bytes["another"] = 0
    pieces = chunks(b"x" * (SIZE - 10), b"x" * 10)

    async def receive() -> Message:
        middleware._received_bytes["another"] += 1
        return await pieces()

    status, text = run(put(middleware, "one", receive))
    assert status == 429
    assert "cannot store more" in text
    assert middleware._received_bytes == {"another": 2}


def test_an_upload_that_is_broken_off_is_no_error(middleware: Uploads) -> None:
    assert run(put(middleware, "gone", broken_off)) == (0, "")
    assert middleware._received_bytes == {}
