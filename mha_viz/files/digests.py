"""Whether files that the app has stored are what it stored: the SHA-256 of each stands in a file beside them, or in the
facts in JSON that belong to them, since a damaged digit would be believed otherwise."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

FILE = "digests.json"
DIGESTS, SEAL = "digests", "seal"  # entries of the facts: of the other files, and of all other entries

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


def sealed(facts: Mapping[str, Any], texts: Mapping[str, str]) -> str:
    """The facts as JSON, with the digest of each text by the name of its file, and of the facts."""
    whole = {**facts, DIGESTS: {name: _of_text(texts[name]) for name in sorted(texts)}}
    whole[SEAL] = _of_text(json.dumps(whole, ensure_ascii=False))
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def unsealed(
    name: str,
    text: str,
    files: Mapping[str, str],
    of: Callable[[str], bool] = lambda _: True,
    may_lack: Collection[str] = (),
) -> dict[str, Any]:
    """The facts in the ``text`` of the file ``name``, once they and those of ``files`` that they name and ``of``
    chooses are seen to be as they were written; ``may_lack``: names of files that need not be there. Facts of older
    versions have no digests. Raises ValueError."""
    facts: dict[str, Any] = json.loads(text)
    seal = facts.pop(SEAL, None)
    if (seal is not None or DIGESTS in facts) and seal != _of_text(json.dumps(facts, ensure_ascii=False)):
        raise ValueError(f"{name} is not as it was written")
    for file, digest in facts.pop(DIGESTS, {}).items():
        lacks = file in may_lack and file not in files
        if of(file) and not lacks and (file not in files or _of_text(files[file]) != digest):
            raise ValueError(f"{file} is not as it was written")
    return facts


def _of_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
