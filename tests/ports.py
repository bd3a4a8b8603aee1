"""Find ports on this machine for servers that are told where to listen."""

from __future__ import annotations

import socket
from contextlib import suppress
from random import SystemRandom

BELOW_THE_SYSTEMS_OWN = range(20_000, 32_000)


def find_free_port() -> int:
    """Return a port on which nothing listens.

    The system hands out other ones, so that no connection and no other server takes this port before the server that is
    told of it does.
    """
    while True:
        port = SystemRandom().choice(BELOW_THE_SYSTEMS_OWN)
        with socket.socket() as tried, suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port
