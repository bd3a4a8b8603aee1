"""Store profiles measured on this server: one folder per model and corpus, with a limit on their total size.

If they exceed the limit, the least recently used are deleted first. Partial sums of stopped studies are deleted after a
day.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from mha_viz.analysis.profile import Profile
from mha_viz.files import MAX_AGE_SECONDS, assets, remove_if_stale
from mha_viz.models.getting import catalog, hub
from mha_viz.models.getting.budget import PROFILES_SETTING, read_megabytes

SIZE_VARIABLE = PROFILES_SETTING  # the environment variable for the limit, in 10^6 bytes
NAME = re.compile(r"[0-9a-f]{32}")  # name of a profile's folder; nothing with another name is ever deleted


def get_root_folder() -> Path:
    """Return the folder that holds all profiles."""
    return assets.storage_folder() / "profiles"


def read_budget() -> int:
    """Return the limit on the bytes of all profiles. Raises SettingError."""
    return read_megabytes(SIZE_VARIABLE) * 10**6


def make_key(model: catalog.Model, digest: str) -> str:
    """Return the folder name for a model and a corpus. Other weights under the same name count as another model."""
    folder = hub.find_local_folder(model)
    files = sorted(folder.glob("*.safetensors")) if folder else []
    stamp = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return hashlib.sha256(repr((model.name, stamp, digest)).encode()).hexdigest()[:32]


def ensure_folder(folder: Path) -> Path | None:
    """Create the folder if necessary and return it; return None if it cannot be written.

    Profiles then stay in memory.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return folder if os.access(folder, os.W_OK) else None
    except OSError:
        return None


def mark_used(folder: Path) -> None:
    """Mark a profile as just used, so that others are deleted first."""
    with contextlib.suppress(OSError):  # in a read-only folder, nothing is deleted either
        os.utime(folder)


def count_bytes(profile: Profile) -> int:
    """Return how many bytes of memory a profile takes."""
    tables = (*profile.tables.values(), *profile.untrained.values())
    return sum(int(table.memory_usage(deep=True).sum()) for table in tables)


def delete_excess(active_folder: Path | None = None) -> None:
    """Delete partial sums of stopped studies after a day, and the least recently used profiles beyond the size limit.

    Nothing in the folder ``active_folder`` is deleted. Folders that cannot be read or written, or that another process
    deletes meanwhile, are skipped. Raises SettingError.
    """
    budget = read_budget()
    folders = [path for path in _iter_entries(get_root_folder()) if _is_profile(path)]
    for folder in folders:
        if folder != active_folder:
            with contextlib.suppress(OSError):
                _delete_unfinished(folder)
    sizes = {folder: _count_folder_bytes(folder) for folder in folders}
    total = sum(sizes.values())
    for folder in sorted(sizes, key=_read_last_use):
        if total <= budget:
            break
        if folder != active_folder:
            shutil.rmtree(folder, ignore_errors=True)
            total -= sizes[folder]


def _delete_unfinished(folder: Path) -> None:
    """Delete partial sums and files that are a day old; remove the folder if it is then empty."""
    is_idle = _read_last_use(folder) < time.time() - MAX_AGE_SECONDS
    for path in folder.rglob(".*"):
        if path.suffix in (".npz", ".part"):
            remove_if_stale(path)
    if is_idle:
        with contextlib.suppress(OSError):  # the folder contains a profile
            folder.rmdir()


def _iter_entries(folder: Path) -> Iterator[Path]:
    try:
        yield from folder.iterdir()
    except OSError:  # missing, or not readable
        return


def _is_profile(path: Path) -> bool:
    with contextlib.suppress(OSError):  # no permission to read the parent folder
        return NAME.fullmatch(path.name) is not None and path.is_dir() and not path.is_symlink()
    return False


def _count_folder_bytes(folder: Path) -> int:
    """Return the total bytes of all readable files below a folder."""
    total = 0
    with contextlib.suppress(OSError):  # another process may delete the folder
        for path in folder.rglob("*"):
            total += _count_file_bytes(path)
    return total


def _count_file_bytes(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:  # another process deleted the file meanwhile
        return 0


def _read_last_use(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
