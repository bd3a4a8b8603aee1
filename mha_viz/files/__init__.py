"""Files and folders that are written atomically."""

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
except ImportError:  # Windows, where what is open cannot be deleted anyway
    fcntl = None  # type: ignore[assignment]

OLD_SECONDS = 24 * 60 * 60
_records: list[dict[Path, int]] = []  # of the blocks of :func:`recorded` that are under way


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file beside ``path`` to write to, which replaces it atomically at the end of the block.

    If the block raises, ``path`` is unchanged. A pipe or a device is written to as it is. Raises OSError.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            yield stream
        return
    unfinished = path.parent / f".{uuid4().hex}.part"
    try:
        unfinished.touch(exist_ok=False)
        with _held(unfinished):
            with unfinished.open("wb") as file:
                yield file
            put(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def put(file: Path, path: Path) -> None:
    """Move a file to ``path``, atomically. Raises OSError."""
    number = file.stat().st_ino
    for record in _records:
        record[_real(path.parent) / path.name] = number
    file.replace(path)


@contextmanager
def recorded() -> Iterator[dict[Path, int]]:
    """Record the files that this process writes in this block, with their numbers in the file system
    (:func:`in_place`)."""
    record: dict[Path, int] = {}
    _records.append(record)
    try:
        yield record
    finally:
        _records.remove(record)


def in_place(record: Mapping[Path, int], place: Path) -> list[Path]:
    """Return the recorded files at ``place``, or below it, that are still there as they were written; not hidden
    ones."""
    real, files = _real(place), []
    for path, number in record.items():
        with suppress(OSError, ValueError):  # it is not there, or elsewhere
            is_hidden = any(part.startswith(".") for part in path.relative_to(real).parts)
            if not is_hidden and path.stat().st_ino == number:
                files.append(path)
    return files


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def remove_left(folder: Path) -> None:
    """Remove partial files more than a day old, left in a folder by processes that were killed while writing."""
    for left in folder.glob(".*.part"):
        remove_old(left)


def remove_old(path: Path) -> None:
    """Remove a file or a folder that was not written to for a day, unless that is so because the clock was put forward:
    while a process is at work on it (``whole_file``, ``passing_folder``) it stays."""
    with suppress(OSError), _held(path) as is_free:  # another process removes it, or it may not be removed
        if not is_free or time.time() - path.stat().st_mtime <= OLD_SECONDS:
            return
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


@contextmanager
def _held(path: Path) -> Iterator[bool]:
    """Hold a file or a folder, so that no process takes it for one that was left; False if another one holds it.

    Nothing is held where there are no such locks, as in folders of some networks.
    """
    handle = None
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR) if fcntl is not None else None
    try:
        yield handle is None or _is_locked(handle)
    finally:
        if handle is not None:
            os.close(handle)


def _is_locked(handle: int) -> bool:
    """Lock what is open, until it is closed; False if another process has locked it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # no locks there
        pass
    return True


def arrays_in(path: Path) -> dict[str, Any]:
    """The arrays of an .npz file, by name. Raises OSError, and ValueError for a damaged one."""
    import numpy as np

    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except OSError:
        raise
    except Exception as error:  # a header is read before its checksum, so Python's parser may raise anything
        raise ValueError(f"{path.name} is damaged") from error


@contextmanager
def passing_folder(place: Path) -> Iterator[Path]:
    """A temporary folder in ``place`` that is deleted after the block, unless it was moved elsewhere as a whole. Raises
    OSError.

    Folders that killed processes left there more than a day ago are deleted first.
    """
    place.mkdir(parents=True, exist_ok=True)
    for left in place.glob("partial-*"):
        remove_old(left)
    partial = Path(tempfile.mkdtemp(prefix="partial-", dir=place))
    try:
        with _held(partial):
            yield partial
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def make_folder(path: Path) -> None:
    """Make a folder unless it exists. Raises ExportError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ExportError(
            f"The folder {str(path)[:200]} cannot be made: {reason.lower()}.", "Choose another."
        ) from error
