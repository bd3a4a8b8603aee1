"""Set the headers of every response: what a page may load, which sites may frame it, what its referrer reveals."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import file_util

from mha_viz.app.serving.paths import MEDIA, get_relative_path
from mha_viz.app.serving.settings import ServerSettings
from mha_viz.app.serving.streamlit_files import BASE_URL_SCRIPT

_INLINE_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
_HOST = re.compile(rb"[A-Za-z0-9._:\[\]-]{1,255}")
# For a downloaded file that the browser opens instead of saving: it can be displayed but cannot run anything.
_MEDIA_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; font-src data:; sandbox"
_REFUSED_FEATURES = ("camera", "microphone", "geolocation", "payment", "usb", "serial", "display-capture", "midi")


class Headers:
    """ASGI middleware that adds the headers to every HTTP response."""

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self._app = app
        self._policy = _Policy(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = self._policy.make_headers(scope)
        names = {name for name, _ in headers}

        async def add_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                other_headers = [pair for pair in message.get("headers", ()) if pair[0].lower() not in names]
                message = {**message, "headers": [*other_headers, *headers]}
            await send(message)

        await self._app(scope, receive, add_headers)

    @staticmethod
    def make_error_handler(settings: ServerSettings) -> Callable[[Request, Exception], Response]:
        """Return the handler of errors in the server's own code.

        It adds the headers itself, because no middleware sees its response.
        """

        def answer(request: Request, error: Exception) -> Response:
            response = PlainTextResponse("The server failed to answer. Its log says why.", 500)
            response.raw_headers.extend(_Policy(settings).make_headers(request.scope))
            return response

        return answer


class _Policy:
    """The values of the headers for these settings."""

    def __init__(self, settings: ServerSettings) -> None:
        # Hashes of the inline scripts of a page, so that these run and no other inline script does.
        shell = (Path(file_util.get_static_dir()) / "index.html").read_text("utf-8")
        digests = (
            hashlib.sha256(script.encode()).digest() for script in [*_INLINE_SCRIPT.findall(shell), BASE_URL_SCRIPT]
        )
        hashes = [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]
        ancestors = " ".join(["'self'", *settings.frame_ancestors])
        # WebAssembly for the 64-bit integers of protobuf.js; it does not allow eval of text.
        scripts = " ".join(["'self'", "'wasm-unsafe-eval'", *hashes])
        self._page = (
            f"default-src 'self'; script-src {scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
            "font-src 'self' data:; connect-src 'self'{sockets}; worker-src 'self' blob:; object-src 'none'; "
            f"base-uri 'self'; form-action 'self'; frame-ancestors {ancestors}"
        )

    def make_headers(self, scope: Scope) -> list[tuple[bytes, bytes]]:
        host = next((value for name, value in scope["headers"] if name == b"host"), b"")
        # In some browsers, 'self' does not include this server's WebSocket address.
        sockets = f" ws://{host.decode()} wss://{host.decode()}" if _HOST.fullmatch(host) else ""
        policy = (
            _MEDIA_POLICY if get_relative_path(scope).startswith(MEDIA) else self._page.replace("{sockets}", sockets)
        )
        return [
            (b"content-security-policy", policy.encode("ascii")),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"same-origin"),  # the address contains the sentence
            (b"cross-origin-opener-policy", b"same-origin"),  # no page that opened this one can look into it
            (b"cross-origin-resource-policy", b"same-origin"),  # no other site can load its files; frames are pages
            (b"permissions-policy", ", ".join(f"{name}=()" for name in _REFUSED_FEATURES).encode("ascii")),
        ]
