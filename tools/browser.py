"""Print the path of a Chromium for the tests; ``--install`` installs one if none is found."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

# The first is Chromium without its user interface, which the tests do not need: it uses a seventh less CPU time.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
NOT_FOUND = """No Chromium was found and none could be installed: the browser tests cannot run.
Install one (Debian and Ubuntu: apt-get install chromium; macOS: brew install --cask chromium),
or set CHROMIUM to the path of a Chromium or Chrome that is already there, then run this again."""


def find() -> str | None:
    """Return $CHROMIUM, or else a Chromium on the PATH, or else Playwright's own; None if there is none.

    Raises SystemExit for a wrong $CHROMIUM.
    """
    value = os.environ.get("CHROMIUM", "")
    if value:
        return shutil.which(value) or sys.exit(f"CHROMIUM is “{value}”, which is not a program. Set it to its path.")
    return next((path for name in NAMES if (path := shutil.which(name))), None) or _find_playwright()


def install() -> str | None:
    """Install the distribution's package if root, otherwise Playwright's download; then search again."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    if is_root and shutil.which("apt-get") and _run("apt-get", "update") and any(map(_install_package, NAMES[:2])):
        return find()
    _run(sys.executable, "-m", "playwright", "install", "chromium")
    return find()


def _find_playwright() -> str | None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else None


def _install_package(package: str) -> bool:
    return _run("apt-get", "install", "-y", "--no-install-recommends", package)


def _run(*command: str) -> bool:
    """Return whether the command succeeded. Its output goes to stderr, because stdout is for the path."""
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    process = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=environment, check=False)
    return process.returncode == 0


if __name__ == "__main__":
    path = find() or (install() if "--install" in sys.argv[1:] else None)
    sys.exit(NOT_FOUND) if path is None else print(path)
