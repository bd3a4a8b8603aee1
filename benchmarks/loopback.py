"""A small server on 127.0.0.1: each path has a function that makes its response."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

Response = tuple[str, bytes]  # content type, body


class Loopback:
    """Serves ``routes`` while open; routes may change meanwhile. An unknown path is a 404."""

    def __init__(self) -> None:
        self.routes: dict[str, Callable[[], Response]] = {
            "/": lambda: ("text/html", b"<!doctype html><title>.</title>")
        }
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._make_handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Loopback:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _make_handler(self) -> type[BaseHTTPRequestHandler]:
        routes = self.routes

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"  # one connection for a page and its resources

            def do_GET(self) -> None:
                make_response = routes.get(self.path.partition("?")[0])
                content_type, body = make_response() if make_response else ("text/plain", b"")
                self.send_response(200 if make_response else 404)
                self.send_header("Content-Type", f"{content_type}; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                if content_type == "text/javascript":  # as from a CDN: fetched once, then from the browser's cache
                    self.send_header("Cache-Control", "max-age=3600")
                self.end_headers()
                with contextlib.suppress(ConnectionError):  # the page was closed meanwhile
                    self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler
