"""The ASGI application with its middleware."""

from __future__ import annotations

import asyncio
import sys
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from threading import Thread
from typing import Any

import streamlit as st
from starlette.middleware import Middleware
from streamlit import config
from streamlit.runtime import Runtime

from mha_viz.app.serving import components, streamlit_parts
from mha_viz.app.serving.access_control import AccessControl
from mha_viz.app.serving.components import ComponentFiles
from mha_viz.app.serving.headers import Headers
from mha_viz.app.serving.paths import get_base
from mha_viz.app.serving.session_limit import Gate, SessionLimit
from mha_viz.app.serving.settings import ServerSettings
from mha_viz.app.serving.streamlit_files import StreamlitFiles
from mha_viz.app.serving.sweeping import WaitingSessions, sweep
from mha_viz.app.serving.uploads import Uploads
from mha_viz.files.assets import app_root


def create_app(settings: ServerSettings, opens_browser: bool = False) -> st.App:
    """Return the application; create it at most once per process."""
    session_limit = SessionLimit(settings)
    error_handlers: dict[Any, Any] = {500: Headers.make_error_handler(settings)}

    @asynccontextmanager
    async def lifespan(_: st.App) -> AsyncIterator[dict[str, object]]:
        runtime = Runtime.instance()
        stored_sessions: WaitingSessions = runtime._session_mgr._session_storage  # type: ignore[attr-defined]
        runtime.stats_mgr.register_provider(session_limit.waits)
        if streamlit_parts.has_component_files():
            components.announce(runtime.bidi_component_registry)
        sweeper = asyncio.create_task(sweep(session_limit, stored_sessions, runtime.media_file_mgr))
        if opens_browser:
            Thread(target=webbrowser.open, args=[_make_address()], daemon=True).start()
        yield {}
        sweeper.cancel()
        with suppress(asyncio.CancelledError):
            await sweeper

    return st.App(
        app_root() / "app.py",
        lifespan=lifespan,
        middleware=[
            Middleware(Headers, settings=settings),
            Middleware(AccessControl, settings=settings),
            Middleware(ComponentFiles),
            Middleware(StreamlitFiles),
            Middleware(Gate, session_limit=session_limit),
            Middleware(Uploads),
        ],
        exception_handlers=error_handlers,
        on_script_error=_report_error if streamlit_parts.can_report_value_errors() else None,
    )


def _make_address() -> str:
    """Return the app's address for a browser on this machine."""
    scheme = "https" if config.get_option("server.sslCertFile") else "http"
    host, port = config.get_option("browser.serverAddress"), config.get_option("server.port")
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}/{get_base()}"


def _report_error(error: Exception) -> bool:
    """Let the app report an unexpected error in one sentence, and keep the page as it is."""
    # The first visitor loads the module.
    on_script_error: Any = getattr(sys.modules.get("mha_viz.app.widgets.frame"), "on_script_error", None)
    return on_script_error is not None and bool(on_script_error(error))
