"""Where the app's files are: beside the package in a checkout, inside it when installed; and where the app stores its
own."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

HOME = "MHA_VIZ_HOME"

_PACKAGE = Path(__file__).resolve().parent.parent


def app_root() -> Path:
    """The folder that contains ``app.py``, ``pages/`` and ``assets/``."""
    installed = _PACKAGE / "_app"
    return installed if installed.is_dir() else _PACKAGE.parent


def asset(name: str) -> Path:
    """The path of one file under ``assets/``."""
    return app_root() / "assets" / name


@cache
def page_files() -> tuple[Path, ...]:
    """One file per page, in the order of their numbers."""
    return tuple(sorted((app_root() / "pages").glob("[0-9]*_*.py")))


def page_name(file: Path) -> str:
    """The page's place in the URL: its file's name without the number."""
    return file.stem.split("_", 1)[1]


def home() -> Path:
    """The folder in which the app stores files. Raises RuntimeError for an account without a home directory."""
    return Path(os.environ.get(HOME) or "~/.cache/mha_viz").expanduser()
