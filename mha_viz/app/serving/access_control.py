"""Control access: the host names of this server, the origins of WebSockets, and the paths that are served."""

from __future__ import annotations

from html import escape
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import config
from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

from mha_viz.app.serving.paths import HEALTH, MEDIA, STREAM, find_new_address, get_base, get_relative_path, list_paths
from mha_viz.app.serving.settings import HOSTS, ServerSettings
from mha_viz.browser.bundle import build_page_style

_METRICS = "_stcore/metrics"
_AGENTS = "_stcore/agent/"
# Streamlit's login, which the app does not use and which writes to the log, and the list of the frontend's files.
_CLOSED_PATHS = ("auth/login", "auth/logout", "oauth2callback", "manifest.json")
_NOT_FOUND_PAGE = """<!doctype html>
<html lang="en">
<meta name="viewport" content="width=device-width">
<title>mha_viz: no such page</title>
<style>{style}</style>
<b>mha_viz</b>
<h1>There is no such page.</h1>
<a href="{home}">Open mha_viz</a>
</html>
"""


class AccessControl:
    """ASGI middleware that refuses requests to other host names, from other origins, and to unknown paths."""

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self._app = app
        optional_paths = ((_METRICS, settings.metrics), (_AGENTS, config.get_option("server.enableAgentApi")))
        self._closed_paths = (*_CLOSED_PATHS, *(path for path, is_open in optional_paths if not is_open))
        self._pages = list_paths()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._serve_http(scope, receive, send)
        elif scope["type"] == "websocket":
            headers = Headers(scope=scope)
            if get_relative_path(scope) == STREAM and is_host_allowed(headers.get("host")) and _has_own_origin(headers):
                await self._app(scope, _reject_text(receive, send), send)
            else:
                await send({"type": "websocket.close", "code": 1008})
        else:
            await self._app(scope, receive, send)

    async def _serve_http(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, host = get_relative_path(scope), Headers(scope=scope).get("host")
        if path != HEALTH and not is_host_allowed(host):  # health probes use the address
            problem = f"This server does not answer to the name “{(host or '')[:80]}”."
            remedy = f"Its owner can add names with {HOSTS} or mha-viz serve --allowed-hosts."
            await PlainTextResponse(f"{problem} {remedy}", 400)(scope, receive, send)
        elif f"{path}/".startswith(tuple(f"{closed_path.rstrip('/')}/" for closed_path in self._closed_paths)):
            await PlainTextResponse("Not found", 404)(scope, receive, send)
        elif (address := find_new_address(scope)) is not None:
            await RedirectResponse(address)(scope, receive, send)
        elif path.rstrip("/") in self._pages or path.startswith(MEDIA):
            await self._app(scope, receive, send)
        else:
            await self._app(scope, receive, _NotFound(scope, receive, send))


def _reject_text(receive: Receive, send: Send) -> Receive:
    """Return a receiver of a WebSocket's messages that closes it at the first text message.

    Streamlit's protocol has no text messages.
    """

    async def receive_message() -> Message:
        message = await receive()
        if message["type"] == "websocket.receive" and message.get("bytes") is None:
            await send({"type": "websocket.close", "code": 1003})
            return {"type": "websocket.disconnect", "code": 1003}
        return message

    return receive_message


class _NotFound:
    """A sender that answers unknown paths with a 404. Streamlit would answer with its shell page."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._is_replaced = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_shell(message):
            self._is_replaced = True
            home = f"/{get_base()}/" if get_base() else "/"
            page = _NOT_FOUND_PAGE.format(home=escape(home), style=build_page_style("instead"))
            await HTMLResponse(page, 404)(self._scope, self._receive, self._send)
        elif not self._is_replaced:
            await self._send(message)


def _is_shell(start: Message) -> bool:
    is_html = Headers(raw=list(start["headers"])).get("content-type", "").startswith("text/html")
    return start["status"] in (200, 206, 304) and is_html


def _has_own_origin(headers: Headers) -> bool:
    """Return whether the request comes from a page of this server. Another port of the same host is another server."""
    origin = headers.get("origin")
    if origin is None:  # not a browser
        return True
    allowed_origins = {str(origin).strip() for origin in config.get_option("server.corsAllowedOrigins")}
    return origin in allowed_origins or urlsplit(origin).netloc.lower() == (headers.get("host") or "").lower()
