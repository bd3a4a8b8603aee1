"""Serve Streamlit's frontend compressed, which Streamlit does not do, and preload the modules that every page needs.

Without compression, the frontend was more than half of the bytes of a first visit.
"""

from __future__ import annotations

import asyncio
import gzip
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import file_util

from mha_viz.app.serving.first_paint import draw_first_paint
from mha_viz.app.serving.paths import get_relative_path, list_paths
from mha_viz.browser.supported import render_old_browser_note_with_style

_CODE_PATTERNS = ("static/js/*", "static/css/*")
# Tells the frontend the address of its server. Otherwise it would first try the address of the page.
BASE_URL_SCRIPT = (
    'window.__streamlit = { BACKEND_BASE_URL: new URL("../..", document.querySelector("script[src]").src).href };'
)
_ADDED_HTML = f"<script>{BASE_URL_SCRIPT}</script>{render_old_browser_note_with_style()}".encode()
# Elements on every page. Streamlit loads their code only when the first of them is drawn.
_COMMON_ELEMENTS = (
    "PageLink",
    "Html",
    "BidiComponent",
)
_IMPORT = re.compile(r'(?:from|import)"\./([^"]+\.js)"')


class StreamlitFiles:
    """ASGI middleware for Streamlit's frontend.

    It compresses each file at the first request and keeps the result. To each page it adds links that preload the
    modules for drawing, so that the browser need not wait for a server that is busy with the first run; the address of
    the server; a first paint, shown until the page is drawn; and a note on why older browsers draw nothing.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._pages = app, list_paths()
        static_folder = Path(file_util.get_static_dir())
        self._files = {
            file.relative_to(static_folder).as_posix() for name in _CODE_PATTERNS for file in static_folder.glob(name)
        }
        # The first message and the body of each compressed response, by path.
        self._responses: dict[str, tuple[Message, Message]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = get_relative_path(scope) if scope["type"] == "http" else "/"
        if path in self._pages:
            plain_scope = {**scope, "headers": [pair for pair in scope["headers"] if pair[0] != b"accept-encoding"]}
            html = _ADDED_HTML + draw_first_paint(path, scope.get("query_string", b"")).encode()
            await self._app(plain_scope, receive, _append_to_page(send, html) if scope["method"] == "GET" else send)
        elif path in self._files and _accepts_gzip(scope):
            await self._send_compressed(path, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _send_compressed(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        messages: list[Message] = []
        if path not in self._responses:

            async def record(message: Message) -> None:
                messages.append(message)

            await self._app(scope, receive, record)
            if _is_complete(messages):
                self._responses[path] = await asyncio.to_thread(_compress, *messages)
        for message in self._responses.get(path, messages):
            await send(message)


def _append_to_page(send: Send, html: bytes) -> Send:
    """Return a sender that appends ``html`` to the page and adds the preload header."""
    has_page = False

    async def send_part(message: Message) -> None:
        nonlocal has_page
        if message["type"] == "http.response.start" and message["status"] == 200:
            has_page = True
            headers = MutableHeaders(scope=message)
            headers.append("link", _make_preload_header())
            headers["content-length"] = str(int(headers["content-length"]) + len(html))
        elif has_page and not message.get("more_body"):
            message = {**message, "body": message.get("body", b"") + html}
        await send(message)

    return send_part


@cache
def _make_preload_header() -> str:
    return ", ".join(f"<{name}>; rel=modulepreload; crossorigin" for name in _iter_modules())


def _iter_modules() -> Iterator[str]:
    """Yield the modules that draw the elements of every page, and the modules that these import.

    Leave out modules that the shell page already names.
    """
    static_folder = Path(file_util.get_static_dir())
    folder, shell = static_folder / "static" / "js", (static_folder / "index.html").read_text("utf-8")
    queue = [file.name for element in _COMMON_ELEMENTS for file in folder.glob(f"{element}.*.js")]
    seen_names = set(queue)
    while queue:
        name = queue.pop()
        if name not in shell:
            yield f"static/js/{name}"
            imports = {*_IMPORT.findall((folder / name).read_text("utf-8"))} - seen_names
            seen_names |= imports
            queue += sorted(imports)


def _accepts_gzip(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    is_full_request = scope["method"] == "GET" and "range" not in headers and "if-none-match" not in headers
    return is_full_request and "gzip" in headers.get("accept-encoding", "")


def _is_complete(messages: list[Message]) -> bool:
    """Return whether the messages hold a complete file. Streamlit stops midway when the visitor leaves."""
    return len(messages) > 1 and messages[0]["status"] == 200 and not messages[-1].get("more_body")


def _compress(start: Message, *parts: Message) -> tuple[Message, Message]:
    body = gzip.compress(b"".join(part.get("body", b"") for part in parts), 9, mtime=0)
    headers = MutableHeaders(raw=list(start["headers"]))
    del headers["accept-ranges"]
    headers["content-length"], headers["content-encoding"] = str(len(body)), "gzip"
    headers["etag"] = f"W/{headers['etag']}"  # a weak tag: the same content in other bytes
    headers.add_vary_header("accept-encoding")
    return {**start, "headers": headers.raw}, {"type": "http.response.body", "body": body}
