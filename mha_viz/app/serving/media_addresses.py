"""Make the addresses of downloads unguessable.

Streamlit's addresses are digests of the content: a stranger who can guess a whole file could learn from its address
that somebody downloads it.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from functools import wraps

BYTES = 32  # length of the digest in an address

_secret = secrets.token_bytes(BYTES)  # one secret per process; no other process serves these addresses


def make_addresses_unguessable(original: Callable[..., str]) -> Callable[..., str]:
    """Derive the addresses of files from a secret of this process. Equal files still have equal addresses."""

    @wraps(original)
    def make_address(data: bytes, mimetype: str, filename: str | None = None) -> str:
        streamlit_digest = original(data, mimetype, filename).encode()
        return hashlib.blake2b(streamlit_digest, key=_secret, digest_size=BYTES).hexdigest()

    return make_address
