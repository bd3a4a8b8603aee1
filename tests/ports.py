"""Find free ports on this machine for servers."""

from __future__ import annotations

import socket
from contextlib import suppress
from random import SystemRandom

NON_EPHEMERAL = range(20_000, 32_000)


def find_free_port() -> int:
    """Return a port on which nothing listens.

    It is outside the ephemeral ports, so that no connection or other server takes it before the caller's server does.
    """
    while True:
        port = SystemRandom().choice(NON_EPHEMERAL)
        with socket.socket() as candidate, suppress(OSError):
            candidate.bind(("127.0.0.1", port))
            return port
