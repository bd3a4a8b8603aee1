"""Replace ``streamlit run app.py`` with ``python -m mha_viz.app.serving``, so that all limits apply."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import click

from mha_viz import process


def replace_server() -> NoReturn:
    """Replace this ``streamlit run`` process with the app's own server, with the same options.

    Exit with code 2 if that is impossible, because Streamlit's server would serve the app without limits and offer
    every folder of this machine.
    """
    context = click.get_current_context(silent=True)
    if context is None or sys.platform == "win32":  # on Windows a process cannot be replaced by another
        print("mha-viz: This program cannot serve app.py. Run mha-viz serve instead.", file=sys.stderr, flush=True)
        sys.exit(2)
    options = {name.replace("_", "."): value for name, value in context.params.items() if "_" in name}
    flags = [f"--{name}={value}" for name, setting in options.items() for value in _list_values(setting)]
    command, environment = process.build_python_command("-m", "mha_viz.app.serving", *flags)
    print("  streamlit run continues as mha-viz serve.", flush=True)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))  # including the socket that is bound to the port
    os.execve(command[0], command, environment)


def _list_values(value: object) -> list[object]:
    """Return the values of an option as a list; some options may be given several times."""
    return [*value] if isinstance(value, list | tuple) else [value] if value is not None else []
