"""What people have measured themselves: files in the folders that MHA_VIZ_PROFILES names, however deep."""

from __future__ import annotations

import os
from pathlib import Path

SETTING = "MHA_VIZ_PROFILES"
FOLDERS = 2_000  # into how many of them is looked


def own_folders() -> list[Path]:
    """List the folders that MHA_VIZ_PROFILES names, which a colon separates, or a semicolon on Windows."""
    return [Path(one.strip()) for one in os.environ.get(SETTING, "").split(os.pathsep) if one.strip()]


def files_below(root: Path, name: str) -> list[Path]:
    """List the files with a name in a folder and in those below it, the nearest first; not in hidden ones. Of a folder
    that is not there, or cannot be read, none."""
    files, level, visited = list[Path](), [root], set[Path]()
    while level and len(visited) < FOLDERS:
        below = list[Path]()
        for folder in level:
            place = folder.resolve()  # links may lead back
            if place in visited or len(visited) == FOLDERS:
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
