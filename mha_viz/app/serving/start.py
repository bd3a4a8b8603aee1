"""Start the server, with the options of ``streamlit run``."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import click
from streamlit import config
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.web.cli import configurator_options

from mha_viz import process
from mha_viz.app.serving import settings, streamlit_parts
from mha_viz.app.serving.app import create_app
from mha_viz.app.serving.session_limit import VISITOR
from mha_viz.app.serving.settings import ServerSettings, is_loopback
from mha_viz.app.serving.shutdown import end_server
from mha_viz.app.serving.sweeping import raise_descriptor_limit
from mha_viz.errors import MhaVizError, SettingError
from mha_viz.files.assets import app_root
from mha_viz.models.getting import catalog, inspection
from mha_viz.process import confinement, log

_LOCAL_MODELS = (
    "Other machines can reach this server, so it offers only the models on this machine: no folders and no downloads. "
    f"Use --open, or {catalog.ACCESS}=open, to offer all of them, or {catalog.SETTING} to offer a list."
)
_UNCONFINED = (
    "This system cannot fully sandbox the processes that read untrusted files (missing: {}). "
    "They run as separate processes with resource limits only; see SECURITY.md."
)


@click.command(context_settings={"auto_envvar_prefix": "STREAMLIT"})
@configurator_options
def main(**flags: Any) -> None:
    """Serve the app until a signal ends it."""
    process.set_environment()
    options = {name.replace("_", "."): value for name, value in flags.items() if value not in (None, ())}
    try:
        process.check_docstrings()
        _run(options, settings.from_environment(os.environ))
    except MhaVizError as error:
        print(f"mha-viz: {error}", file=sys.stderr)
        sys.exit(2)


def _run(options: dict[str, Any], settings: ServerSettings) -> None:
    sys.argv = [str(app_root() / "app.py")]  # the app's own settings are in the same folder
    application = create_app(settings, opens_browser=_should_open_browser(options))
    address = options.setdefault("server.address", "127.0.0.1")
    port = options.get("server.port", 8501)
    if not 0 <= port < 1 << 16:
        raise SettingError(f"The port is {port}.", "Give a number from 1 to 65535.")
    options = _choose_hosts(address, settings) | options
    # A server for other machines offers no folders of this machine and no downloads, unless its owner allows that. A
    # server on loopback with a proxy or with host names also serves other machines.
    is_private = is_loopback(address) and not settings.proxies and not settings.hosts
    if not (is_private or catalog.has_settings()):
        os.environ[catalog.ACCESS] = "here"
        print(_LOCAL_MODELS, flush=True)
    os.environ["FORWARDED_ALLOW_IPS"] = ",".join(settings.proxies)  # uvicorn's default trusts all of this machine
    needs_confinement = sys.platform.startswith("linux") or not is_private
    missing_rights = confinement.find_irremovable_rights() if needs_confinement else ()
    if missing_rights:
        print(_UNCONFINED.format(", ".join(sorted(missing_rights))), flush=True)
    confinement.hide_memory()
    inspection.use_child_processes()
    raise_descriptor_limit()
    streamlit_parts.install_parts()
    log.limit_records(_find_visitor)
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, end_server)  # after uvicorn has closed the open connections
    # If Rich is installed, it would print errors outside the log and at full length.
    application.run(config=options | {"server.headless": True, "logger.enableRich": False})


def _find_visitor() -> str:
    """Return the visitor that this thread or task works for; "" if there is none."""
    if visitor := VISITOR.get():
        return visitor
    context = get_script_run_ctx(suppress_warning=True)
    return "" if context is None else context.session_id


def _should_open_browser(options: dict[str, Any]) -> bool:
    """Return whether to open a browser, as Streamlit does on a desktop unless ``server.headless`` is set.

    For Streamlit itself the server is always headless; otherwise it may write files for programming assistants into the
    app's folder.
    """
    headless = options.get("server.headless")
    return not (config.get_option("server.headless") if headless is None else headless)


def _choose_hosts(address: str, settings: ServerSettings) -> dict[str, Any]:
    """Return the option with the allowed host names.

    A page of another site must not reach the server under that site's host name.
    """
    if settings.hosts:
        return {"server.allowedHosts": [*settings.hosts]}
    if is_loopback(address):
        return {"server.allowedHosts": ["localhost", "127.0.0.1", "::1", address]}
    return {}
