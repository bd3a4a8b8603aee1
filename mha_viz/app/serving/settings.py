"""Server settings, read once at startup from environment variables."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import NamedTuple

from mha_viz.errors import SettingError

FRAMES = "MHA_VIZ_FRAMES"
HOSTS = "MHA_VIZ_HOSTS"
PROXIES = "MHA_VIZ_PROXIES"
SESSIONS = "MHA_VIZ_SESSIONS"
SESSIONS_PER_ADDRESS = "MHA_VIZ_SESSIONS_PER_ADDRESS"
METRICS = "MHA_VIZ_METRICS"
WAIT = "MHA_VIZ_WAIT"

_ORIGIN = re.compile(r"https?://(\*\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(:\d{1,5})?")
_HOST = re.compile(r"\*|(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|[0-9A-Fa-f:]+|\[[0-9A-Fa-f:]+\]")


class ServerSettings(NamedTuple):
    """The settings of a server.

    Attributes:
        frame_ancestors: other origins whose pages may show the app in a frame.
        hosts: host names that the server answers to; when empty, any name, or the loopback names if it listens on
            loopback only.
        proxies: addresses and networks whose X-Forwarded-For is trusted.
        max_sessions: the maximum number of open browser tabs.
        max_sessions_per_address: the maximum number of open browser tabs of one address.
        max_wait_s: new visitors are refused while the median wait of more than one visitor in twenty is longer than
            this many seconds.
        metrics: whether ``/_stcore/metrics`` is served.
    """

    frame_ancestors: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()
    max_sessions: int = 150
    max_sessions_per_address: int = 100
    max_wait_s: int = 2
    metrics: bool = False


def from_environment(environment: Mapping[str, str]) -> ServerSettings:
    """Read the settings from an environment. Raises SettingError with the variable and its value."""
    return ServerSettings(
        frame_ancestors=_read_list(environment, FRAMES, _ORIGIN, "https://courses.example.org"),
        hosts=tuple(host.strip("[]") for host in _read_list(environment, HOSTS, _HOST, "heads.example.org")),
        proxies=_read_networks(environment),
        max_sessions=_read_count(environment, SESSIONS, ServerSettings().max_sessions),
        max_sessions_per_address=_read_count(
            environment, SESSIONS_PER_ADDRESS, ServerSettings().max_sessions_per_address
        ),
        max_wait_s=_read_count(environment, WAIT, ServerSettings().max_wait_s),
        metrics=_read_switch(environment, METRICS),
    )


def is_loopback(host: str) -> bool:
    """Return whether a server that listens on ``host``, a name or an address, can be reached from this machine only."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    ipv4_address = getattr(address, "ipv4_mapped", None)  # ::ffff:127.0.0.1
    return (ipv4_address or address).is_loopback


def _split_words(environment: Mapping[str, str], name: str) -> list[str]:
    return environment.get(name, "").replace(",", " ").split()


def _read_list(environment: Mapping[str, str], name: str, pattern: re.Pattern[str], example: str) -> tuple[str, ...]:
    words = _split_words(environment, name)
    for word in words:
        if not pattern.fullmatch(word):
            raise SettingError(f"{name} contains “{word[:60]}”.", f"Expected a list such as {example}.")
    return tuple(words)


def _read_networks(environment: Mapping[str, str]) -> tuple[str, ...]:
    words = _split_words(environment, PROXIES)
    for word in words:
        try:
            ipaddress.ip_network(word)
        except ValueError:
            remedy = "Expected addresses or networks such as 10.0.0.5 or 10.0.0.0/24."
            raise SettingError(f"{PROXIES} contains “{word[:60]}”.", remedy) from None
    return tuple(words)


def _read_count(environment: Mapping[str, str], name: str, default: int) -> int:
    value = environment.get(name, "").strip()
    if not value:
        return default
    digits = value.lstrip("0")
    if not (re.fullmatch("[1-9][0-9]{0,5}", digits) and int(digits) <= 100_000):  # int() refuses very long numbers
        raise SettingError(f"{name} is “{value[:40]}”.", "Expected a whole number from 1 to 100000.")
    return int(digits)


def _read_switch(environment: Mapping[str, str], name: str) -> bool:
    value = environment.get(name, "").strip()
    if value not in ("", "0", "1"):
        raise SettingError(f"{name} is “{value[:40]}”.", "Expected 1 or 0.")
    return value == "1"
