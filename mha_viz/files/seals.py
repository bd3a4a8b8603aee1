"""Facts in JSON that name the digests of the files beside them: a damaged digit would be believed otherwise."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

DIGESTS, SEAL = "digests", "seal"  # entries of the facts: of the other files, and of all other entries


def sealed(facts: Mapping[str, Any], texts: Mapping[str, str]) -> str:
    """The facts as JSON, with the digest of each text by the name of its file, and of the facts."""
    whole = {**facts, DIGESTS: {name: _digest(texts[name]) for name in sorted(texts)}}
    whole[SEAL] = _digest(json.dumps(whole, ensure_ascii=False))
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
    if (seal is not None or DIGESTS in facts) and seal != _digest(json.dumps(facts, ensure_ascii=False)):
        raise ValueError(f"{name} is not as it was written")
    for file, digest in facts.pop(DIGESTS, {}).items():
        lacks = file in may_lack and file not in files
        if of(file) and not lacks and (file not in files or _digest(files[file]) != digest):
            raise ValueError(f"{file} is not as it was written")
    return facts


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
