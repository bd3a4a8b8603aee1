"""Where the app's files are: beside the package in a checkout, inside it when installed; and where the app stores its
own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

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
def page_files() -> Mapping[str, Path]:
    """The file of each page, in the order of their numbers, by its place in the URL: its file's name without the
    number."""
    files = sorted((app_root() / "pages").glob("[0-9]*_*.py"))
    return MappingProxyType({file.stem.split("_", 1)[1]: file for file in files})


def home() -> Path:
    """The folder in which the app stores files. Raises RuntimeError for an account without a home directory."""
    return Path(os.environ.get(HOME) or "~/.cache/mha_viz").expanduser()
