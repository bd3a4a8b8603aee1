"""Profiles that were measured here, on the disk: a folder for each model and corpus, and a bound on all of them.

What was used longest ago goes first when there are more than so many bytes; sums of studies that nobody finished go
after a day.
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

from mha_viz.files import assets as assets
from mha_viz.models import catalog, hub
from mha_viz.models.budget import PROFILES_SETTING, megabytes

DISK = PROFILES_SETTING  # the most that all profiles take, in 10^6 bytes
UNFINISHED_SECONDS = 24 * 3600
NAME = re.compile(r"[0-9a-f]{32}")  # of a profile's folder; what else lies beside them is not ours to delete


def home() -> Path:
    """Where profiles lie."""
    return assets.home() / "profiles"


def budget() -> int:
    """The most bytes that profiles may take. Raises SettingError."""
    return megabytes(DISK) * 10**6


def key(model: catalog.Model, digest: str) -> str:
    """A folder's name for a model and a corpus: other weights under the same name are another model."""
    folder = hub.local_folder(model)
    files = sorted(folder.glob("*.safetensors")) if folder else []
    stamp = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return hashlib.sha256(repr((model.name, stamp, digest)).encode()).hexdigest()[:32]


def made(folder: Path) -> Path | None:
    """The folder, made if need be; None where nothing can be written: then profiles live in memory only."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return folder if os.access(folder, os.W_OK) else None
    except OSError:
        return None


def used(folder: Path) -> None:
    """Mark a profile as just used: others are evicted first."""
    with contextlib.suppress(OSError):  # read only: then nothing is deleted either
        os.utime(folder)


def tidy(at_work: Path | None = None) -> None:
    """Delete unfinished sums after a day, and of the profiles what is beyond the budget, never those in ``at_work``.

    A folder that cannot be read or written, or that another process deletes meanwhile, is passed over. Raises
    SettingError.
    """
    most = budget()
    folders = [path for path in _listed(home()) if _is_profile(path)]
    for folder in folders:
        if folder != at_work:
            with contextlib.suppress(OSError):
                _forget_unfinished(folder)
    sizes = {folder: _total(folder) for folder in folders}
    total = sum(sizes.values())
    for folder in sorted(sizes, key=_last_use):
        if total <= most:
            break
        if folder != at_work:
            shutil.rmtree(folder, ignore_errors=True)
            total -= sizes[folder]


def _forget_unfinished(folder: Path) -> None:
    """Delete sums and parts of files that nobody wrote to for a day, and the folder where nothing else is in it."""
    old = time.time() - UNFINISHED_SECONDS
    idle = _last_use(folder) < old
    for path in folder.rglob(".*"):
        if path.suffix in (".npz", ".part") and _last_use(path) < old:
            path.unlink(missing_ok=True)
    if idle:
        with contextlib.suppress(OSError):  # a profile is in it
            folder.rmdir()


def _listed(folder: Path) -> Iterator[Path]:
    try:
        yield from folder.iterdir()
    except OSError:  # not there, or not ours
        return


def _is_profile(path: Path) -> bool:
    with contextlib.suppress(OSError):  # the folder that it is in was closed to us
        return NAME.fullmatch(path.name) is not None and path.is_dir() and not path.is_symlink()
    return False


def _total(folder: Path) -> int:
    """The bytes of all files below a folder, as far as they can be read."""
    total = 0
    with contextlib.suppress(OSError):  # another process deletes the folder
        for path in folder.rglob("*"):
            total += _size(path)
    return total


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:  # another process deleted it meanwhile
        return 0


def _last_use(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
