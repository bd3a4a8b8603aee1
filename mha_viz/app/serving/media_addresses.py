"""Addresses of downloads that nobody can guess. Streamlit's are digests of the content: whoever could guess a whole
file would learn from its address that somebody fetches it."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from functools import wraps

BYTES = 32  # of an address

_secret = secrets.token_bytes(BYTES)  # of this process, which alone answers at these addresses


def make_unguessable(usual: Callable[..., str]) -> Callable[..., str]:
    """Let the addresses of files depend on a secret of this process; equal files still have one address."""

    @wraps(usual)
    def address(data: bytes, mimetype: str, filename: str | None = None) -> str:
        named = usual(data, mimetype, filename).encode()
        return hashlib.blake2b(named, key=_secret, digest_size=BYTES).hexdigest()

    return address
