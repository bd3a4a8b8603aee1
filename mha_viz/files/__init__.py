"""Write files and folders atomically, and clean up what killed processes left behind."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

from mha_viz.errors import ExportError

try:
    import fcntl
except ImportError:  # Windows, where open files cannot be deleted anyway
    fcntl = None  # type: ignore[assignment]

MAX_AGE_SECONDS = 24 * 60 * 60  # of files that killed processes left behind
_records: list[dict[Path, int]] = []  # one for each active block of :func:`record_writes`


@contextmanager
def write_atomically(path: Path) -> Iterator[BinaryIO]:
    """Yield a temporary file that replaces ``path`` atomically at the end of the block.

    If the block raises, ``path`` is unchanged. A pipe or device is written to directly. Raises OSError.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            yield stream
        return
    temporary_file = path.parent / f".{uuid4().hex}.part"
    try:
        temporary_file.touch(exist_ok=False)
        with _lock_path(temporary_file):
            with temporary_file.open("wb") as file:
                yield file
            move_into_place(temporary_file, path)
    finally:
        temporary_file.unlink(missing_ok=True)


def move_into_place(file: Path, path: Path) -> None:
    """Move a file to ``path`` atomically, and record it for :func:`record_writes`. Raises OSError."""
    inode = file.stat().st_ino
    for record in _records:
        record[_resolve_path(path.parent) / path.name] = inode
    file.replace(path)


@contextmanager
def record_writes() -> Iterator[dict[Path, int]]:
    """Record the files that this process writes in the block, with their inode numbers; yield the record.

    :func:`list_unchanged` reads it.
    """
    record: dict[Path, int] = {}
    _records.append(record)
    try:
        yield record
    finally:
        _records.remove(record)


def list_unchanged(record: Mapping[Path, int], folder: Path) -> list[Path]:
    """Return the recorded files at or below ``folder`` that are still there and unchanged, except hidden ones."""
    real_folder, files = _resolve_path(folder), []
    for path, inode in record.items():
        with suppress(OSError, ValueError):  # the file is gone, or not below ``folder``
            is_hidden = any(part.startswith(".") for part in path.relative_to(real_folder).parts)
            if not is_hidden and path.stat().st_ino == inode:
                files.append(path)
    return files


def _resolve_path(path: Path) -> Path:
    return Path(os.path.realpath(path))


def remove_leftovers(folder: Path) -> None:
    """Remove partial files in a folder that killed processes left there more than a day ago."""
    for partial_file in folder.glob(".*.part"):
        remove_if_stale(partial_file)


def remove_if_stale(path: Path) -> None:
    """Remove a file or folder that was not modified for a day.

    While a process works on it (``write_atomically``, ``temporary_folder``), it is locked and stays, even if the
    clock was set forward.
    """
    # Another process may remove it first, or removal may be forbidden.
    with suppress(OSError), _lock_path(path) as is_free:
        if not is_free or time.time() - path.stat().st_mtime <= MAX_AGE_SECONDS:
            return
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


@contextmanager
def _lock_path(path: Path) -> Iterator[bool]:
    """Lock a file or folder, so that no process removes it as a leftover; yield False if another process has locked it.

    Nothing is locked where the file system has no locks, as on some network drives.
    """
    descriptor = None
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR) if fcntl is not None else None
    try:
        yield descriptor is None or _try_lock(descriptor)
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    """Lock an open file until it is closed; return False if another process has locked it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # the file system has no locks
        pass
    return True


def load_arrays(path: Path) -> dict[str, Any]:
    """Return the arrays of an .npz file by name. Raises OSError, and ValueError for a damaged file."""
    import numpy as np

    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except OSError:
        raise
    except Exception as error:  # a header is read before its checksum, so Python's parser may raise anything
        raise ValueError(f"{path.name} is damaged") from error


@contextmanager
def temporary_folder(parent: Path) -> Iterator[Path]:
    """Yield a temporary folder in ``parent`` that is deleted after the block, unless the block moved it elsewhere.

    First delete folders that killed processes left there more than a day ago. Raises OSError.
    """
    parent.mkdir(parents=True, exist_ok=True)
    for leftover in parent.glob("partial-*"):
        remove_if_stale(leftover)
    partial_folder = Path(tempfile.mkdtemp(prefix="partial-", dir=parent))
    try:
        with _lock_path(partial_folder):
            yield partial_folder
    finally:
        shutil.rmtree(partial_folder, ignore_errors=True)


def make_folder(path: Path) -> None:
    """Create a folder and its parents unless it exists. Raises ExportError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ExportError(
            f"The folder {str(path)[:200]} cannot be created: {reason.lower()}.", "Choose another."
        ) from error
