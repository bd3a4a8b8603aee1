"""The start of a server, with the options of ``streamlit run``."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import click
from streamlit.web.cli import configurator_options
from streamlit.web.server.starlette import starlette_server

from mha_viz import process
from mha_viz.assets import app_root
from mha_viz.errors import MhaVizError
from mha_viz.serving import settings
from mha_viz.serving.app import app
from mha_viz.serving.settings import Settings, is_loopback
from mha_viz.serving.sweeping import raise_descriptor_limit

_ACCESS = "MHA_VIZ_ACCESS"
_MODELS = "MHA_VIZ_MODELS"
_MESSAGE_BYTES = 2_000_000  # of one message from a browser; a file travels as an upload
_GRACE = 5  # seconds that open connections have when the server is told to stop
_HERE_ONLY = (
    "Other machines can reach this server: it offers the models that are on this machine, and neither folders nor "
    f"downloads. --open offers all, {_MODELS} a list."
)


@click.command(context_settings={"auto_envvar_prefix": "STREAMLIT"})
@configurator_options
def main(**flags: Any) -> None:
    """Serve the app until a signal ends it."""
    process.prepare()
    options = {name.replace("_", "."): value for name, value in flags.items() if value not in (None, ())}
    try:
        _run(options, settings.read(os.environ))
    except MhaVizError as error:
        print(f"mha-viz: {error}", file=sys.stderr)
        sys.exit(2)


def _run(options: dict[str, Any], asked: Settings) -> None:
    sys.argv = [str(app_root() / "app.py")]  # beside it lie the app's own settings
    served = app(asked)
    address = options.setdefault("server.address", "127.0.0.1")
    options = _hosts(address, asked) | options
    _restrict(address, asked)
    os.environ["FORWARDED_ALLOW_IPS"] = ",".join(asked.proxies)  # else uvicorn believes whoever is on this machine
    raise_descriptor_limit()
    _bound_connections()
    for ends in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ends, lambda *_: sys.exit(0))  # after uvicorn has closed what was open
    served.run(config=options)


def _hosts(address: str, asked: Settings) -> dict[str, Any]:
    """The names that the server answers to: a page of another site must not reach it under a name of its own."""
    if asked.hosts:
        return {"server.allowedHosts": [*asked.hosts]}
    if is_loopback(address):
        return {"server.allowedHosts": ["localhost", "127.0.0.1", "::1", address]}
    return {}


def _restrict(address: str, asked: Settings) -> None:
    """A server for other machines gives them no folders of this one and no downloads, unless its owner says so. Who
    names a proxy, or the names of the site, serves others through this machine's own address."""
    alone = is_loopback(address) and not asked.proxies and not asked.hosts
    if not (alone or os.environ.get(_MODELS) or os.environ.get(_ACCESS)):
        os.environ[_ACCESS] = "here"
        print(_HERE_ONLY, flush=True)


def _bound_connections() -> None:
    """Streamlit has no setting for these of uvicorn's."""
    given = starlette_server._get_uvicorn_config_kwargs
    starlette_server._get_uvicorn_config_kwargs = lambda: (
        given()
        | {
            "ws_max_size": _MESSAGE_BYTES,
            "timeout_graceful_shutdown": _GRACE,
            "server_header": False,
        }
    )
