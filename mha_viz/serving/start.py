"""Starts the server, with the options of ``streamlit run``."""

from __future__ import annotations

import logging
import os
import signal
import sys
from typing import Any

import click
from streamlit.web.cli import configurator_options
from streamlit.web.server.starlette import starlette_server, starlette_websocket

from mha_viz import process
from mha_viz.errors import MhaVizError, SettingError
from mha_viz.files.assets import app_root
from mha_viz.models import catalog, inspection
from mha_viz.serving import settings
from mha_viz.serving.app import app
from mha_viz.serving.connections import protocol
from mha_viz.serving.ends import end_server
from mha_viz.serving.media_addresses import make_unguessable
from mha_viz.serving.settings import ServerSettings, is_loopback
from mha_viz.serving.sweeping import raise_descriptor_limit

_MESSAGE_BYTES = 2_000_000  # per message from a browser; files are sent as uploads
_GRACE = 2  # seconds that open connections have to close when the server stops
_LOCAL_MODELS = (
    "Other machines can reach this server, so it offers only the models on this machine: no folders and no downloads. "
    f"Use --open to offer all of them, or {catalog.SETTING} to offer a list."
)


@click.command(context_settings={"auto_envvar_prefix": "STREAMLIT"})
@configurator_options
def main(**flags: Any) -> None:
    """Serve the app until a signal ends it."""
    process.prepare()
    options = {name.replace("_", "."): value for name, value in flags.items() if value not in (None, ())}
    try:
        process.check_docstrings()
        _run(options, settings.from_environment(os.environ))
    except MhaVizError as error:
        print(f"mha-viz: {error}", file=sys.stderr)
        sys.exit(2)


def _run(options: dict[str, Any], chosen: ServerSettings) -> None:
    sys.argv = [str(app_root() / "app.py")]  # the app's own settings are in the same folder
    application = app(chosen)
    address = options.setdefault("server.address", "127.0.0.1")
    port = options.get("server.port", 8501)
    if not 0 <= port < 1 << 16:
        raise SettingError(f"The port is {port}.", "Give a number from 1 to 65535.")
    options = _hosts(address, chosen) | options
    # Unless its owner allows it, a server for other machines offers no folders of this machine and no downloads. A
    # server on loopback with a proxy or with host names also serves other machines.
    is_private = is_loopback(address) and not chosen.proxies and not chosen.hosts
    if not (is_private or catalog.stated()):
        os.environ[catalog.ACCESS] = "here"
        print(_LOCAL_MODELS, flush=True)
    os.environ["FORWARDED_ALLOW_IPS"] = ",".join(chosen.proxies)  # uvicorn's default trusts all of this machine
    inspection.begin()
    raise_descriptor_limit()
    _bound_connections(chosen)
    make_unguessable()
    logging.getLogger(starlette_websocket.__name__).addFilter(_without_traceback)
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, end_server)  # after uvicorn has closed the open connections
    application.run(config=options)


def _without_traceback(record: logging.LogRecord) -> bool:
    """One line for a message that is not Streamlit's: anybody can send one."""
    if record.getMessage() == "Error deserializing back message":
        record.exc_info = None
    return True


def _hosts(address: str, chosen: ServerSettings) -> dict[str, Any]:
    """The allowed host names: a page of another site must not reach the server under that site's host name."""
    if chosen.hosts:
        return {"server.allowedHosts": [*chosen.hosts]}
    if is_loopback(address):
        return {"server.allowedHosts": ["localhost", "127.0.0.1", "::1", address]}
    return {}


def _bound_connections(chosen: ServerSettings) -> None:
    """Set options of uvicorn for which Streamlit has no setting."""
    defaults, bounded = starlette_server._get_uvicorn_config_kwargs, protocol(chosen)
    starlette_server._get_uvicorn_config_kwargs = lambda: (
        defaults()
        | {
            "ws_max_size": _MESSAGE_BYTES,
            "timeout_graceful_shutdown": _GRACE,
            "server_header": False,
            "http": bounded,
        }
    )
