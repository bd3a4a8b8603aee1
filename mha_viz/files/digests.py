"""Verify stored files by their SHA-256 digests, because a damaged digit would otherwise go unnoticed.

The digests are in a file beside the stored files, or in the JSON facts that belong to them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

FILE_NAME = "digests.json"
DIGESTS, SEAL = "digests", "seal"  # entries of the facts: digests of other files, and digest of all other entries

_Stamp = tuple[int, int, int]  # inode, size, modification time


def digest_file(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write(folder: Path, digests: Mapping[str, str]) -> None:
    """Store the digests of files in ``folder``, by file name. Raises OSError."""
    (folder / FILE_NAME).write_text(json.dumps(digests), "utf-8")


def read(folder: Path) -> dict[str, str]:
    """Return the digests that :func:`write` stored. Raises OSError, and ValueError for a damaged file."""
    digests = json.loads((folder / FILE_NAME).read_text("utf-8"))
    if not isinstance(digests, dict):
        raise ValueError(f"{FILE_NAME} is not an object with file names.")
    return digests


def have_digests(folder: Path, digests: Mapping[str, str]) -> bool:
    """Return whether files have these digests, by name. Files unchanged since the last check are not read again."""
    try:
        return all(
            _digest_cached(folder / name, _read_stamp(folder / name)) == digest for name, digest in digests.items()
        )
    except (OSError, ValueError):
        return False


def _read_stamp(path: Path) -> _Stamp:
    """Return the stamp of a file, which changes when the file is written."""
    stat = path.stat()
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


@lru_cache(1024)
def _digest_cached(path: Path, stamp: _Stamp) -> str:
    """Return the digest of a file from the cache, or read it if its stamp is new."""
    return digest_file(path)


def seal_facts(facts: Mapping[str, Any], texts: Mapping[str, str]) -> str:
    """Return the facts as JSON, with the digest of each text by its file name and a digest of the facts themselves."""
    sealed_facts = {**facts, DIGESTS: {name: _digest_text(texts[name]) for name in sorted(texts)}}
    sealed_facts[SEAL] = _digest_text(json.dumps(sealed_facts, ensure_ascii=False))
    return json.dumps(sealed_facts, indent=1, ensure_ascii=False) + "\n"


def open_sealed_facts(
    name: str,
    text: str,
    files: Mapping[str, str],
    must_verify: Callable[[str], bool] = lambda _: True,
    optional_files: Collection[str] = (),
) -> dict[str, Any]:
    """Return the facts in the ``text`` of the file ``name`` after verifying them and the files that they name.

    Args:
        name: the file name, for error messages.
        text: the content of that file.
        files: the contents of the other files by name.
        must_verify: returns whether a file must be verified.
        optional_files: names of files that may be missing.

    Facts of older versions have no digests. Raises ValueError if something has changed since it was written.
    """
    facts: dict[str, Any] = json.loads(text)
    seal = facts.pop(SEAL, None)
    if (seal is not None or DIGESTS in facts) and seal != _digest_text(json.dumps(facts, ensure_ascii=False)):
        raise ValueError(f"{name} has changed since it was written")
    for file, digest in facts.pop(DIGESTS, {}).items():
        is_absent = file in optional_files and file not in files
        if must_verify(file) and not is_absent and (file not in files or _digest_text(files[file]) != digest):
            raise ValueError(f"{file} has changed since it was written")
    return facts


def _digest_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
