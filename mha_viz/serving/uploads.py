"""Bounds on uploaded files. Streamlit takes any number of them from a session, attached to a page or not."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import config
from streamlit.runtime import Runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.web.server.starlette.starlette_app_utils import decode_xsrf_token_string
from streamlit.web.server.starlette.starlette_server_config import XSRF_COOKIE_NAME

from mha_viz.serving.paths import UPLOADS, below

FILES = 2  # of a session: the one in use, and the one that takes its place
SESSION_BYTES = 16_000_000
ALL_BYTES = 256_000_000
_FRAMING = 1_000_000  # bytes of a request around its file, at most

_TOO_MANY = "Another file of yours is still on its way. Wait for it, then try again."
_FULL = "The server holds as many uploaded files as it can. Try again in a minute."
_NOT_YOURS = "This upload belongs to another visitor."


class Uploads:
    """ASGI middleware: a session holds its newest ``FILES`` files, and only its own browser may send or remove one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._arriving: dict[str, int] = {}  # bytes on their way, by session

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = below(scope) if scope["type"] == "http" else ""
        if not path.startswith(UPLOADS) or scope["method"] not in ("PUT", "DELETE"):
            await self._app(scope, receive, send)
            return
        session = path.removeprefix(UPLOADS).partition("/")[0]
        if not _is_own(session, Request(scope)):
            await PlainTextResponse(_NOT_YOURS, 403)(scope, receive, send)
        elif scope["method"] == "DELETE":
            await self._app(scope, receive, send)
        elif refusal := self._refusal(session, _announced(scope)):
            await refusal(scope, receive, send)
        else:
            await self._take(session, scope, receive, send)

    def _refusal(self, session: str, size: int) -> Response | None:
        if size > _most():
            return PlainTextResponse(f"The file is larger than {config.get_option('server.maxUploadSize')} MB.", 413)
        if session in self._arriving:
            return PlainTextResponse(_TOO_MANY, 429, {"Retry-After": "5"})
        if _bytes_held() + sum(self._arriving.values()) + size > ALL_BYTES:
            return PlainTextResponse(_FULL, 429, {"Retry-After": "60"})
        return None

    async def _take(self, session: str, scope: Scope, receive: Receive, send: Send) -> None:
        self._arriving[session] = _announced(scope)

        async def trim(message: Message) -> None:
            if message["type"] == "http.response.start":
                _trim(session)
            await send(message)

        try:
            await self._app(scope, receive, trim)
        finally:
            del self._arriving[session]


def _store() -> MemoryUploadedFileManager:
    store = Runtime.instance().uploaded_file_mgr
    assert isinstance(store, MemoryUploadedFileManager)
    return store


def _bytes_held() -> int:
    return sum(len(file.data) for files in list(_store().file_storage.values()) for file in list(files.values()))


def _trim(session: str) -> None:
    """Frees the oldest files of a session until the others are within the bounds."""
    files = list(_store().file_storage.get(session, {}).values())
    while len(files) > FILES or sum(len(file.data) for file in files) > SESSION_BYTES:
        _store().remove_file(session, files.pop(0).file_id)


def _most() -> int:
    """The largest request, in bytes."""
    return int(config.get_option("server.maxUploadSize")) * 1024 * 1024 + _FRAMING


def _announced(scope: Scope) -> int:
    """The request's size in bytes as its header says; the largest where it says nothing."""
    given = Headers(scope=scope).get("content-length", "")
    return int(given[:12]) if given.isascii() and given.isdigit() else _most()


def _is_own(session: str, request: Request) -> bool:
    """Whether the browser that sends is the one that holds the session's WebSocket, as their cookies tell."""
    client = Runtime.instance().get_client(session)
    if client is None or client.client_context is None:  # Streamlit refuses a session that is not there
        return True
    theirs = client.client_context.cookies.get(XSRF_COOKIE_NAME, "")
    own = request.cookies.get(XSRF_COOKIE_NAME, "")
    return decode_xsrf_token_string(theirs)[0] == decode_xsrf_token_string(own)[0]
