"""Limit the disk space of all downloads together, and choose which are deleted first when it is used up.

A note in the folder of each model in the Hugging Face cache lists the files that were downloaded here. Only those are
counted or removed, never files of other programs. The modification time of the note records when the model was
downloaded or last used by any process, because the process that downloads is not the one that reads.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from mha_viz.errors import ModelError, ModelUnsupported, SettingError
from mha_viz.models.getting import storage
from mha_viz.quotes import quote

SETTING = "MHA_VIZ_DOWNLOADS_MB"
MODEL_SETTING = "MHA_VIZ_MAX_MODEL_MB"
PROFILES_SETTING = "MHA_VIZ_DISK_MB"
WEIGHTS_SETTING = "MHA_VIZ_WEIGHTS_MB"  # memory for one reading, in units of 2²⁰ bytes
DEFAULTS = MappingProxyType(  # megabytes
    {SETTING: 20_000, MODEL_SETTING: 2_000, PROFILES_SETTING: 500, WEIGHTS_SETTING: 600}
)
NOTE = "mha-viz.json"
KEEP_SECONDS = 3600.0  # seconds after its last use during which a model is not removed
USE_INTERVAL_SECONDS = 60.0  # seconds between records of use; closer uses are recorded once


def read_megabytes(setting: str) -> int:
    """Read a setting of DEFAULTS from the environment, in 10^6 bytes.

    Only the setting for profiles may be 0. Raises SettingError.
    """
    text = os.environ.get(setting, "").strip() or str(DEFAULTS[setting])
    minimum = 0 if setting == PROFILES_SETTING else 1
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text) >= minimum):
        raise SettingError(
            f"{setting} is {quote(text)}.", f"Expected a whole number of megabytes, such as {DEFAULTS[setting]}."
        )
    return int(text)


def check_settings() -> None:
    """Raise SettingError for the first setting in DEFAULTS that is not a number of megabytes."""
    for setting in DEFAULTS:
        read_megabytes(setting)


def write_note(model_folder: Path, commit: str, names: Collection[str], temporary_path: Path) -> None:
    """Write the note that lists the files about to be moved to ``model_folder``, a model's folder in the cache.

    The note is written to ``temporary_path`` and then moved, so that it is never incomplete.
    """
    names_by_commit = _read_note(model_folder) | {commit: sorted(names)}
    temporary_path.write_text(json.dumps(names_by_commit), encoding="utf-8")
    temporary_path.replace(model_folder / NOTE)


def record_use(folder: Path) -> None:
    """Record that the model in ``folder`` is used now, so that its files stay for KEEP_SECONDS."""
    note_path = folder.parent.parent / NOTE
    with suppress(OSError):  # not a download of this app, or a cache that cannot be written
        if time.time() - note_path.stat().st_mtime > USE_INTERVAL_SECONDS:
            os.utime(note_path)


@contextmanager
def reserve_space(size: int, label: str) -> Iterator[None]:
    """Reserve space to download ``size`` bytes inside this block. The least recently used models are deleted if
    necessary.

    Raises ModelUnsupported if ``size`` exceeds the total limit, ModelError if all models are in use, SettingError.
    """
    with _lock:
        _make_room(size, label)
        _reserved_sizes.append(size)
    try:
        yield
    finally:
        with _lock:
            _reserved_sizes.remove(size)


_lock = threading.Lock()
_reserved_sizes: list[int] = []  # bytes, one entry per current download


@dataclass(frozen=True)
class _Download:
    """The downloaded files of one model, and when it was last used."""

    model_folder: Path
    files: tuple[Path, ...]
    last_used: float  # seconds since 1970

    @property
    def bytes(self) -> int:
        """The size of the files that still exist."""
        return sum(f.stat().st_size for f in self.files if f.is_file())

    @property
    def is_in_use(self) -> bool:
        """Whether the model was used recently."""
        return time.time() - self.last_used < KEEP_SECONDS

    def remove(self) -> int:
        """Remove the files, and then the folders that are empty. Return the number of bytes freed.

        config.json is removed first, because a folder without it counts as absent.
        """
        size_before = self.bytes
        with suppress(OSError):  # no permission
            for path in sorted(self.files, key=lambda p: p.name != "config.json"):
                path.unlink(missing_ok=True)
            (self.model_folder / NOTE).unlink(missing_ok=True)
        for folder in {f.parent for f in self.files}:
            with suppress(OSError):  # it contains another program's files
                folder.rmdir()
        with suppress(OSError):
            (self.model_folder / "snapshots").rmdir()
            shutil.rmtree(self.model_folder / "refs", ignore_errors=True)  # their targets are gone
            self.model_folder.rmdir()
        return size_before - self.bytes


def _make_room(size: int, label: str) -> None:
    """Delete the least recently used models until ``size`` more bytes fit. Raises ModelUnsupported, ModelError."""
    limit = read_megabytes(SETTING) * 10**6
    if size > limit:
        raise ModelUnsupported(
            f"{label} has {size / 1e6:,.0f} MB, more than this server’s limit for all downloads.",
            "Choose a smaller model.",
        )
    downloads = list[_Download]()
    for path in storage.find_cache_root().glob(f"models--*/{NOTE}"):
        model_folder = path.parent
        files = [
            model_folder / "snapshots" / commit / name
            for commit, names in _read_note(model_folder).items()
            for name in names
        ]
        with suppress(OSError):  # another process has just removed it
            downloads.append(
                _Download(model_folder, tuple(f for f in files if not f.is_symlink()), path.stat().st_mtime)
            )
    downloads.sort(key=lambda model: model.last_used)
    used_bytes = sum(model.bytes for model in downloads) + sum(_reserved_sizes)
    for model in downloads:
        if used_bytes + size > limit and not model.is_in_use:
            used_bytes -= model.remove()
    if used_bytes + size > limit:
        raise ModelError(
            f"There is no room for {label}: the stored models are in use.",
            "Try again later, or choose a stored model.",
        )


def _read_note(model_folder: Path) -> dict[str, list[str]]:
    """Read the note of a model: commit → names of files. Return an empty dictionary for anything that is not such a
    note.
    """
    try:
        content = json.loads((model_folder / NOTE).read_text(encoding="utf-8"))
        names_by_commit = {
            commit: [name for name in names if Path(name).name == name]
            for commit, names in content.items()
            if storage.COMMIT.fullmatch(commit)
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
    return names_by_commit
