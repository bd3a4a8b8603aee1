"""Where the app's own files lie: beside the package in a checkout, inside it when installed."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def app_root() -> Path:
    """The folder that holds ``app.py``, ``pages/`` and ``assets/``."""
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
