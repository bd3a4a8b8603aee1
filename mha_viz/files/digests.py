"""Whether files that the app has stored are what it stored: the SHA-256 of each stands in a file beside them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

FILE = "digests.json"

_Stamp = tuple[int, int, int]


def of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write(folder: Path, digests: Mapping[str, str]) -> None:
    """Store the digests of files of ``folder`` by their names. Raises OSError."""
    (folder / FILE).write_text(json.dumps(digests), "utf-8")


def read(folder: Path) -> dict[str, str]:
    """What :func:`write` stored. Raises OSError, and ValueError for a damaged file."""
    digests = json.loads((folder / FILE).read_text("utf-8"))
    if not isinstance(digests, dict):
        raise ValueError(f"{FILE} has no names.")
    return digests


def are_those(folder: Path, digests: Mapping[str, str]) -> bool:
    """Whether the files have these digests. Those that did not change since they were looked at are not read again."""
    try:
        return all(_digest(folder / name, _stamp(folder / name)) == digest for name, digest in digests.items())
    except (OSError, ValueError):
        return False


def _stamp(path: Path) -> _Stamp:
    stat = path.stat()
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


@lru_cache(1024)
def _digest(path: Path, stamp: _Stamp) -> str:
    return of(path)
