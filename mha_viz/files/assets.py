"""Where the app's files are: beside the package in a checkout, inside it when installed; where the app stores its own;
where its pages are; and where people have what they measured themselves."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

HOME = "MHA_VIZ_HOME"

_PACKAGE = Path(__file__).resolve().parent.parent

PROFILES = "MHA_VIZ_PROFILES"  # names folders with what people have measured themselves
MOST_FOLDERS = 2_000  # into how many of these, and of those below, is looked


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


class Moved(NamedTuple):
    """Where the content of a page went. ``given``: what the old address contains, "" for any value; ``more``: what the
    new one contains besides the old parameters."""

    page: str
    given: Mapping[str, str]
    new: str
    more: Mapping[str, str] = MappingProxyType({})


MOVED = (  # the first row that fits
    Moved("switch_off", {"off": ""}, "explore"),
    Moved("switch_off", {}, "explore", {"off": "none"}),
    Moved("questions", {"task": ""}, "why_heads_differ", {"experiment": "tasks"}),
    Moved("questions", {}, "why_heads_differ"),
    Moved("roles", {"model": "toy", "snapshot": ""}, "why_heads_differ", {"experiment": "toy"}),
    Moved("roles", {"model": "toy", "trained": ""}, "why_heads_differ", {"experiment": "toy"}),
    Moved("roles", {"model": "repeater", "snapshot": ""}, "why_heads_differ", {"experiment": "repeater"}),
)


def moved(page: str, parameters: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Where the content of an address is now: the page and its parameters. Links within the app carry the parameters
    of one page to the next, so an address that already says what a row would add is not an old one."""
    for row in MOVED:
        fits = all(name in parameters and value in ("", parameters[name]) for name, value in row.given.items())
        is_old = page not in page_files() or not row.more.keys() & parameters.keys()
        if row.page == page and fits and is_old:
            return row.new, {**parameters, **row.more}
    return page, dict(parameters)


def home() -> Path:
    """The folder in which the app stores files. Raises RuntimeError for an account without a home directory."""
    return Path(os.environ.get(HOME) or "~/.cache/mha_viz").expanduser()


def own_folders() -> list[Path]:
    """List the folders that MHA_VIZ_PROFILES names, which a colon separates, or a semicolon on Windows."""
    return [Path(one.strip()) for one in os.environ.get(PROFILES, "").split(os.pathsep) if one.strip()]


def files_below(root: Path, name: str) -> list[Path]:
    """List the files with a name in a folder and in those below it, the nearest first; not in hidden ones. Of a folder
    that is not there, or cannot be read, none."""
    files, level, visited = list[Path](), [root], set[Path]()
    while level and len(visited) < MOST_FOLDERS:
        below = list[Path]()
        for folder in level:
            place = folder.resolve()  # links may lead back
            if place in visited or len(visited) == MOST_FOLDERS:
                continue
            visited.add(place)
            try:
                inside = sorted(folder.iterdir())
            except OSError:
                continue
            files += [path for path in inside if path.name == name and path.is_file()]
            below += [path for path in inside if not path.name.startswith(".") and path.is_dir()]
        level = below
    return files
