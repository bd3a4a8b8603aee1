"""The command ``mha-viz serve``: open the app in a browser."""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
from pathlib import Path

from mha_viz import process
from mha_viz.analysis.recipe_tables import FACTS_FILE, load_recipes
from mha_viz.app.serving import settings
from mha_viz.cli.options import Parser, parse_folder, parse_port
from mha_viz.cli.terminal import one_line
from mha_viz.errors import SettingError
from mha_viz.files import assets
from mha_viz.files.assets import PROFILES_VARIABLE, find_files, list_profile_folders
from mha_viz.models.getting import budget, catalog
from mha_viz.study.own_profiles import iter_open_problems

WILDCARDS = ("0.0.0.0", "::")  # hosts that mean every address of this machine


def add_options(parser: Parser) -> None:
    """Add the options of ``serve``."""
    host, port = os.environ.get("HOST") or "127.0.0.1", os.environ.get("PORT") or "8501"
    parser.add_argument("--host", default=host, help="address to listen on (default: $HOST, else 127.0.0.1)")
    parser.add_argument("--port", default=port, type=parse_port, help="port to listen on (default: $PORT, else 8501)")
    parser.add_argument(
        "--open", action="store_true", help="let visitors from other machines open folders and download models as well"
    )
    help_text = (
        "host names that the server answers to (default: $MHA_VIZ_HOSTS, else all; on loopback only local names)"
    )
    parser.add_argument("--allowed-hosts", metavar="NAMES", help=help_text)
    help_text = f"folder with recipes of your own models, added to ${PROFILES_VARIABLE}"
    parser.add_argument("--recipes", type=parse_folder, metavar="DIR", help=help_text)
    parser.add_argument("streamlit", nargs="*", metavar="-- OPTION", help="options for Streamlit")


def serve(args: argparse.Namespace) -> None:
    """Replace this process with Streamlit, so that signals reach it directly."""
    if not args.host.strip():
        raise SettingError("The host is empty.", "Give an address of this machine, as in --host 127.0.0.1.")
    if args.open:
        os.environ["MHA_VIZ_ACCESS"] = "open"
    if args.allowed_hosts:
        os.environ[settings.HOSTS] = args.allowed_hosts
    register_recipes(args.recipes)
    settings.from_environment(os.environ)  # reports invalid settings now, not to every visitor
    budget.check_settings()
    catalog.list_offered()
    _check_port(args.host, args.port)
    _check_home(assets.storage_folder())
    # Otherwise every thread that serves a page keeps freed memory in its own arena, together a tenth of all memory.
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")
    # Larger blocks are mapped separately, so that freeing them returns them to the system and leaves no gaps.
    os.environ.setdefault("MALLOC_MMAP_THRESHOLD_", "500000")
    # The matrices of a page are small: a second thread for them only waits, and doubles the CPU time.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    address_options = ["--server.address", args.host, "--server.port", str(args.port)]
    # The name to print. Otherwise Streamlit would ask a host on the Internet for this machine's address.
    address_options += ["--browser.serverAddress", "localhost" if args.host in WILDCARDS else args.host]
    if args.host in WILDCARDS and (address := _find_address()):
        print(f"Other machines reach this server at http://{address}:{args.port}", flush=True)
    command, environment = process.build_python_command("-m", "mha_viz.app.serving", *address_options, *args.streamlit)
    if os.name == "nt":  # on Windows, a replaced process loses its terminal
        sys.exit(subprocess.call(command, env=environment))
    os.execve(command[0], command, environment)


def register_recipes(recipes: Path | None) -> None:
    """Let pages use the recipes in a folder, if one is given, and report the user's own profiles that cannot be opened.

    Raises CorpusError for a folder without recipes.
    """
    if recipes:
        if not find_files(recipes, FACTS_FILE):
            load_recipes(recipes)  # raises the error that says why
        os.environ[PROFILES_VARIABLE] = os.pathsep.join([str(recipes.absolute()), *map(str, list_profile_folders())])
    for sentence in iter_open_problems():
        print(f"mha-viz: {one_line(sentence)}", file=sys.stderr)


def _check_home(home: Path) -> None:
    """Warn once if nothing can be stored; the server starts anyway."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        problem = "" if os.access(home, os.W_OK) else "it is read-only"
    except (OSError, ValueError) as error:
        problem = (getattr(error, "strerror", None) or str(error)).lower()
    if problem:
        print(
            f"mha-viz: {str(home)[:200]} cannot be written ({problem}): new profiles are lost when "
            f"the server stops. {assets.HOME_VARIABLE} names another folder.",
            file=sys.stderr,
        )


def _find_address() -> str:
    """Return this machine's address in its network; empty without a network. Nothing is sent."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(("192.0.2.1", 9))  # an address reserved for documentation: only the route to it is looked up
            return str(probe.getsockname()[0])
    except OSError:
        return ""


def _check_port(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except (OSError, UnicodeError) as error:
        reason = (getattr(error, "strerror", None) or "not a host name").partition(" (")[0].lower()
        remedy = "Choose another, as in --port 8600 --host 127.0.0.1, or stop the program that uses it."
        raise SettingError(f"Cannot listen on port {port} of “{host[:60]}”: {reason}.", remedy) from error
