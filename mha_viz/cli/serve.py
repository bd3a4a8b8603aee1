"""``mha-viz serve`` and ``mha-viz models``."""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys

from mha_viz.cli.options import Parser, port_number
from mha_viz.errors import SettingError
from mha_viz.models import budget, catalog, hub
from mha_viz.models.catalog import Model
from mha_viz.serving import settings


def options(serve: Parser) -> None:
    """What can be asked of ``serve``."""
    host, port = os.environ.get("HOST") or "127.0.0.1", os.environ.get("PORT") or "8501"
    serve.add_argument("--host", default=host, help="address to listen on (default: $HOST, else 127.0.0.1)")
    serve.add_argument("--port", default=port, type=port_number, help="port to listen on (default: $PORT, else 8501)")
    serve.add_argument(
        "--open", action="store_true", help="let other machines, too, choose any model: folders of this one, downloads"
    )
    names = "names that the server answers to (default: $MHA_VIZ_HOSTS, else any; on loopback its own)"
    serve.add_argument("--allowed-hosts", metavar="NAMES", help=names)
    serve.add_argument("streamlit", nargs="*", metavar="-- OPTION", help="options passed on to Streamlit")


def serve(asked: argparse.Namespace) -> None:
    """Hand this process over to Streamlit, so that signals reach it directly."""
    if asked.open:
        os.environ["MHA_VIZ_ACCESS"] = "open"
    if asked.allowed_hosts:
        os.environ[settings.HOSTS] = asked.allowed_hosts
    settings.read(os.environ)  # what is misspelled is said now, not to every visitor
    budget.check_settings()
    catalog.offered()
    _check_free(asked.host, asked.port)
    # Each thread that serves a page would take an arena of its own, and hold what it freed: a tenth of the memory.
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")
    where = ["--server.address", asked.host, "--server.port", str(asked.port)]
    where += ["--browser.serverAddress", _reached_at(asked.host)]
    command = [sys.executable, "-m", "mha_viz.serving", *where, *asked.streamlit]
    if os.name == "nt":  # there a replaced process loses its terminal
        sys.exit(subprocess.call(command))
    os.execv(command[0], command)


def _reached_at(host: str) -> str:
    """The name to print for a server. Left to itself, Streamlit asks a host on the Internet for this one's address."""
    return "localhost" if host in ("0.0.0.0", "::", "") else host


def _check_free(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except (OSError, UnicodeError) as error:
        reason = (getattr(error, "strerror", None) or "not a host name").partition(" (")[0].lower()
        remedy = "Choose another, as in --port 8600 --host 127.0.0.1, or stop the program that listens there."
        raise SettingError(f"Cannot listen on port {port} of “{host[:60]}”: {reason}.", remedy) from error


def models(asked: argparse.Namespace) -> None:
    """List the models that can be chosen."""
    rows = [("NAME", "LAYERS × HEADS", "D_MODEL", "MB", "WHERE")]
    rows += [_row(model) for model in catalog.offered()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _row(model: Model) -> tuple[str, str, str, str, str]:
    shape = f"{model.layers} × {model.heads}" if model.layers else "?"
    return model.name, shape, str(model.d_model or "?"), str(model.megabytes or "?"), _where(model)


def _where(model: Model) -> str:
    if model.kind != "hub":
        return model.kind
    return "cached" if hub.local_folder(model) else "not downloaded"
