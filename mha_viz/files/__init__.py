"""Files and folders that are written atomically."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

from mha_viz.errors import ExportError

OLD_SECONDS = 24 * 60 * 60


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
        with unfinished.open("xb") as file:
            yield file
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def remove_left(folder: Path) -> None:
    """Remove partial files more than a day old, left in a folder by processes that were killed while writing."""
    for left in folder.glob(".*.part"):
        with suppress(OSError):  # another process removes it, or the folder is read-only
            if time.time() - left.stat().st_mtime > OLD_SECONDS:
                left.unlink()


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
        with suppress(FileNotFoundError):  # another process has deleted it meanwhile
            if time.time() - left.stat().st_mtime > OLD_SECONDS:
                shutil.rmtree(left, ignore_errors=True)
    partial = Path(tempfile.mkdtemp(prefix="partial-", dir=place))
    try:
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
