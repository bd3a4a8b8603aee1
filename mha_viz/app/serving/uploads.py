"""Limit uploaded files. Streamlit accepts any number of them from a session, whether they belong to a page or not."""

from __future__ import annotations

import asyncio

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import config
from streamlit.runtime import Runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.web.server.starlette.starlette_app_utils import decode_xsrf_token_string
from streamlit.web.server.starlette.starlette_server_config import XSRF_COOKIE_NAME

from mha_viz.app.serving.paths import UPLOADS, get_relative_path

MAX_FILES = 2  # per session: the file in use and the file that replaces it
SESSION_BYTES = 16_000_000
ALL_BYTES = 256_000_000
UPLOAD_S = 120.0  # maximum duration of an upload: 8 MB at half a megabit per second
_OVERHEAD_BYTES = 1_000_000  # maximum bytes of a request in addition to its file

_BUSY = "Another file of yours is still being uploaded. Wait until it is done, then try again."
_STORE_FULL = "The server cannot store more uploaded files now. Try again in a minute."
_SLOW = f"The upload took longer than {UPLOAD_S:g} seconds. Try again on a faster connection, or with a smaller file."
_WRONG_VISITOR = "This upload belongs to another visitor."


class Uploads:
    """ASGI middleware that limits the files of a session.

    A session keeps at most ``MAX_FILES`` files, the newest, and only its own browser may change them.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._received_bytes: dict[str, int] = {}  # bytes received of unfinished uploads, by session

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = get_relative_path(scope) if scope["type"] == "http" else ""
        if not path.startswith(UPLOADS) or scope["method"] not in ("PUT", "DELETE"):
            await self._app(scope, receive, send)
            return
        session = path.removeprefix(UPLOADS).partition("/")[0]
        if not _is_same_browser(session, Request(scope)):
            await PlainTextResponse(_WRONG_VISITOR, 403)(scope, receive, send)
        elif scope["method"] == "DELETE":
            await self._app(scope, receive, send)
        elif refusal := self._check_upload(session, _read_announced_size(scope)):
            await refusal(scope, receive, send)
        else:
            await self._receive(session, scope, receive, send)

    def _check_upload(self, session: str, size: int) -> Response | None:
        if size > _compute_max_request():
            return PlainTextResponse(f"The file is larger than {config.get_option('server.maxUploadSize')} MB.", 413)
        if session in self._received_bytes:
            return PlainTextResponse(_BUSY, 429, {"Retry-After": "5"})
        return self._check_room(size)

    def _check_room(self, size: int = 0) -> Response | None:
        """Return the refusal if there is no room for ``size`` bytes, else None.

        Bytes that other uploads have announced but not sent do not count.
        """
        if _count_stored_bytes() + sum(self._received_bytes.values()) + size > ALL_BYTES:
            return PlainTextResponse(_STORE_FULL, 429, {"Retry-After": "60"})
        return None

    async def _receive(self, session: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass an upload on, and end it if it takes too long or too much space. An interrupted upload is no error."""
        self._received_bytes[session] = 0
        deadline = asyncio.get_running_loop().time() + UPLOAD_S
        refusal: Response | None = None

        async def receive_part() -> Message:
            nonlocal refusal
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                refusal = PlainTextResponse(_SLOW, 408)
            else:
                self._received_bytes[session] += len(message.get("body", b""))
                refusal = self._check_room()
            return {"type": "http.disconnect"} if refusal else message

        async def send_part(message: Message) -> None:
            if message["type"] == "http.response.start":
                _delete_oldest_files(session)
            if refusal is None:
                await send(message)

        try:
            await self._app(scope, receive_part, send_part)
        except ClientDisconnect:
            if refusal is not None:
                await refusal(scope, receive, send)
        finally:
            del self._received_bytes[session]


def _get_store() -> MemoryUploadedFileManager:
    store = Runtime.instance().uploaded_file_mgr
    assert isinstance(store, MemoryUploadedFileManager)
    return store


def _count_stored_bytes() -> int:
    return sum(len(file.data) for files in list(_get_store().file_storage.values()) for file in list(files.values()))


def _delete_oldest_files(session: str) -> None:
    """Delete the oldest files of a session until it is within the limits."""
    files = list(_get_store().file_storage.get(session, {}).values())
    while len(files) > MAX_FILES or sum(len(file.data) for file in files) > SESSION_BYTES:
        _get_store().remove_file(session, files.pop(0).file_id)


def _compute_max_request() -> int:
    """Return the maximum size of a request in bytes."""
    return int(config.get_option("server.maxUploadSize")) * 1024 * 1024 + _OVERHEAD_BYTES


def _read_announced_size(scope: Scope) -> int:
    """Return the size of the request in bytes according to its header, or the maximum if it has none."""
    length = Headers(scope=scope).get("content-length", "")
    return int(length[:12]) if length.isascii() and length.isdigit() else _compute_max_request()


def _is_same_browser(session: str, request: Request) -> bool:
    """Return whether the request and the session's WebSocket come from the same browser, judged by their cookies."""
    client = Runtime.instance().get_client(session)
    if client is None or client.client_context is None:  # Streamlit refuses an unknown session
        return True
    session_cookie = client.client_context.cookies.get(XSRF_COOKIE_NAME, "")
    request_cookie = request.cookies.get(XSRF_COOKIE_NAME, "")
    return decode_xsrf_token_string(session_cookie)[0] == decode_xsrf_token_string(request_cookie)[0]
