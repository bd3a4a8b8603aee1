"""A small server on 127.0.0.1: each path is a function that makes the answer on request."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

Answer = tuple[str, bytes]  # content type, body


class Loopback:
    """Serves ``routes`` while open; routes may change meanwhile. An unknown path is a 404."""

    def __init__(self) -> None:
        self.routes: dict[str, Callable[[], Answer]] = {"/": lambda: ("text/html", b"<!doctype html><title>.</title>")}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Loopback:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        routes = self.routes

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"  # one connection for a page and its resources

            def do_GET(self) -> None:
                answer = routes.get(self.path.partition("?")[0])
                kind, body = answer() if answer else ("text/plain", b"")
                self.send_response(200 if answer else 404)
                self.send_header("Content-Type", f"{kind}; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                if kind == "text/javascript":  # as from a CDN: fetched once, then from the browser's cache
                    self.send_header("Cache-Control", "max-age=3600")
                self.end_headers()
                with contextlib.suppress(ConnectionError):  # the page was closed meanwhile
                    self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler
