"""The app as an ASGI application with its middleware."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import streamlit as st
from starlette.middleware import Middleware
from streamlit.runtime import Runtime

from mha_viz.files.assets import app_root
from mha_viz.serving import components, streamlit_parts
from mha_viz.serving.access_control import AccessControl
from mha_viz.serving.components import ComponentFiles
from mha_viz.serving.headers import Headers
from mha_viz.serving.session_limit import Gate, SessionLimit
from mha_viz.serving.settings import ServerSettings
from mha_viz.serving.streamlit_files import StreamlitFiles
from mha_viz.serving.sweeping import Waiting, sweep
from mha_viz.serving.uploads import Uploads


def app(settings: ServerSettings) -> st.App:
    """The application; at most one per process."""
    session_limit = SessionLimit(settings)
    failures: dict[Any, Any] = {500: Headers.failed(settings)}

    @asynccontextmanager
    async def lifespan(_: st.App) -> AsyncIterator[dict[str, object]]:
        runtime = Runtime.instance()
        waiting: Waiting = runtime._session_mgr._session_storage  # type: ignore[attr-defined]
        runtime.stats_mgr.register_provider(session_limit.waits)
        if streamlit_parts.has_component_files():
            components.announce(runtime.bidi_component_registry)
        sweeper = asyncio.create_task(sweep(session_limit, waiting, runtime.media_file_mgr))
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
        exception_handlers=failures,
        on_script_error=_answered if streamlit_parts.has_error_sentences() else None,
    )


def _answered(error: Exception) -> bool:
    """Let the app report an unexpected error in one sentence and leave the page as it is."""
    answer: Any = getattr(
        sys.modules.get("mha_viz.ui.frame"), "on_script_error", None
    )  # not loaded before the first visitor
    return answer is not None and bool(answer(error))
