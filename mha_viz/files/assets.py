"""Locations of files: the app's bundled files and pages, the folder where it stores files, and users' profile folders.

Bundled files are beside the package in a checkout, and inside it when installed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

HOME_VARIABLE = "MHA_VIZ_HOME"

_PACKAGE = Path(__file__).resolve().parent.parent

PROFILES_VARIABLE = "MHA_VIZ_PROFILES"  # environment variable that lists folders with users' own profiles
MAX_FOLDERS = 2_000  # maximum number of folders that a search visits


def app_root() -> Path:
    """Return the folder that contains ``app.py``, ``pages/`` and ``assets/``."""
    installed_root = _PACKAGE / "_app"
    return installed_root if installed_root.is_dir() else _PACKAGE.parent


def asset_path(name: str) -> Path:
    """Return the path of a file under ``assets/``."""
    return app_root() / "assets" / name


@cache
def page_files() -> Mapping[str, Path]:
    """Return the file of each page by its name in the URL, in the order of the page numbers.

    The name in the URL is the file name without its number.
    """
    files = sorted((app_root() / "pages").glob("[0-9]*_*.py"))
    return MappingProxyType({file.stem.split("_", 1)[1]: file for file in files})


class MovedPage(NamedTuple):
    """A redirection of a page address.

    Attributes:
        page: the old page.
        parameters: parameters that the old address contains; "" stands for any value.
        new_page: the new page.
        added_parameters: parameters that the new address has besides the old ones.
    """

    page: str
    parameters: Mapping[str, str]
    new_page: str
    added_parameters: Mapping[str, str] = MappingProxyType({})


MOVED_PAGES = (  # the first row that matches is used
    MovedPage("switch_off", {"off": ""}, "explore"),
    MovedPage("switch_off", {}, "explore", {"off": "none"}),
    MovedPage("questions", {"task": ""}, "why_heads_differ", {"experiment": "tasks"}),
    MovedPage("questions", {}, "why_heads_differ"),
    MovedPage("roles", {"model": "toy", "snapshot": ""}, "why_heads_differ", {"experiment": "toy"}),
    MovedPage("roles", {"model": "toy", "trained": ""}, "why_heads_differ", {"experiment": "toy"}),
    MovedPage("roles", {"model": "repeater", "snapshot": ""}, "why_heads_differ", {"experiment": "repeater"}),
)


def redirect_address(page: str, parameters: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return the current page and parameters for an old address.

    Links within the app carry parameters from page to page. Therefore an address of an existing page is not old if it
    already has a parameter that a row would add.
    """
    for row in MOVED_PAGES:
        is_match = all(key in parameters and value in ("", parameters[key]) for key, value in row.parameters.items())
        is_old = page not in page_files() or not row.added_parameters.keys() & parameters.keys()
        if row.page == page and is_match and is_old:
            return row.new_page, {**parameters, **row.added_parameters}
    return page, dict(parameters)


def storage_folder() -> Path:
    """Return the folder in which the app stores files. Raises RuntimeError for an account without a home directory."""
    return Path(os.environ.get(HOME_VARIABLE) or "~/.cache/mha_viz").expanduser()


def list_profile_folders() -> list[Path]:
    """Return the folders that MHA_VIZ_PROFILES lists, separated by colons, or by semicolons on Windows."""
    return [Path(name.strip()) for name in os.environ.get(PROFILES_VARIABLE, "").split(os.pathsep) if name.strip()]


def find_files(root: Path, name: str) -> list[Path]:
    """Return the files with this name in a folder and its subfolders, the nearest first, without hidden folders.

    Folders that do not exist or cannot be read are skipped.
    """
    files, level, visited = list[Path](), [root], set[Path]()
    while level and len(visited) < MAX_FOLDERS:
        subfolders = list[Path]()
        for folder in level:
            real_folder = folder.resolve()  # symbolic links may form a loop
            if real_folder in visited or len(visited) == MAX_FOLDERS:
                continue
            visited.add(real_folder)
            try:
                entries = sorted(folder.iterdir())
            except OSError:
                continue
            files += [path for path in entries if path.name == name and path.is_file()]
            subfolders += [path for path in entries if not path.name.startswith(".") and path.is_dir()]
        level = subfolders
    return files
