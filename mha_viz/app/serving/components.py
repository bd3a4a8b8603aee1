"""Serve the components' code as files that browsers cache for a year. Their addresses contain a digest of the code.

Otherwise, as under ``streamlit run``, every message that draws a component contains its code.
"""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, NamedTuple

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from mha_viz.app.serving.paths import COMPONENTS, get_relative_path
from mha_viz.browser import bundle

if TYPE_CHECKING:
    from streamlit.components.v2.component_manager import BidiComponentManager

_CACHE_CONTROL = "public, max-age=31536000, immutable"


class _ServedFile(NamedTuple):
    """A file in plain and compressed form."""

    plain: bytes
    gzipped: bytes


class ComponentFiles:
    """ASGI middleware that serves the components' modules. They are bundled once, at the start."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._files = {
            f"{COMPONENTS}mha_{name}/{bundle.name_served_file(name)}": _make_file(name) for name in bundle.COMPONENTS
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = get_relative_path(scope) if scope["type"] == "http" else ""
        if file := self._files.get(path):
            await _make_response(file, scope)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def announce(manager: BidiComponentManager) -> None:
    """Tell the pages in this process that the components' code is served as files."""
    from streamlit.components.v2.manifest_scanner import ComponentConfig, ComponentManifest

    package, _, name = bundle.SERVED.partition(".")
    manager.register_from_manifest(ComponentManifest(package, "", [ComponentConfig(name)]), bundle.FOLDER)


def _make_file(name: str) -> _ServedFile:
    plain = bundle.build_module(name).encode()
    return _ServedFile(plain, gzip.compress(plain, 9, mtime=0))


def _make_response(file: _ServedFile, scope: Scope) -> Response:
    headers = {"Cache-Control": _CACHE_CONTROL, "Vary": "Accept-Encoding"}
    if "gzip" in Headers(scope=scope).get("accept-encoding", ""):
        return Response(file.gzipped, 200, headers | {"Content-Encoding": "gzip"}, "text/javascript")
    return Response(file.plain, 200, headers, "text/javascript")
