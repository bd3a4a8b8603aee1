"""What a server's owner may set, read from the environment once at the start."""

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

_ORIGIN = re.compile(r"https?://(\*\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(:\d{1,5})?")
_HOST = re.compile(r"\*|(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|[0-9A-Fa-f:]+")


class Settings(NamedTuple):
    """``frames``: origins of pages that may show the app in a frame, besides its own. ``hosts``: names that the server
    answers to; none: any, or those of the loopback address where it listens there. ``proxies``: addresses and networks
    whose X-Forwarded-For is believed. ``sessions``, ``per_address``: browser tabs at a time. ``metrics``: whether
    ``/_stcore/metrics`` answers."""

    frames: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    proxies: tuple[str, ...] = ()
    sessions: int = 300
    per_address: int = 150
    metrics: bool = False


def read(environment: Mapping[str, str]) -> Settings:
    """The settings that an environment holds. Raises SettingError that names the variable and the value."""
    return Settings(
        frames=_listed(environment, FRAMES, _ORIGIN, "https://courses.example.org"),
        hosts=tuple(host.strip("[]") for host in _listed(environment, HOSTS, _HOST, "heads.example.org")),
        proxies=_networks(environment),
        sessions=_count(environment, SESSIONS, Settings().sessions),
        per_address=_count(environment, SESSIONS_PER_ADDRESS, Settings().per_address),
        metrics=_switch(environment, METRICS),
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that listens on ``host``, a name or an address."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    inner = getattr(address, "ipv4_mapped", None)  # ::ffff:127.0.0.1
    return (inner or address).is_loopback


def _words(environment: Mapping[str, str], name: str) -> list[str]:
    return environment.get(name, "").replace(",", " ").split()


def _listed(environment: Mapping[str, str], name: str, shape: re.Pattern[str], example: str) -> tuple[str, ...]:
    words = _words(environment, name)
    for word in words:
        if not shape.fullmatch(word.strip("[]")):
            raise SettingError(f"{name} holds “{word[:60]}”.", f"Expected a list such as {example}.")
    return tuple(words)


def _networks(environment: Mapping[str, str]) -> tuple[str, ...]:
    words = _words(environment, PROXIES)
    for word in words:
        try:
            ipaddress.ip_network(word)
        except ValueError:
            remedy = "Expected addresses or networks such as 10.0.0.5 or 10.0.0.0/24."
            raise SettingError(f"{PROXIES} holds “{word[:60]}”.", remedy) from None
    return tuple(words)


def _count(environment: Mapping[str, str], name: str, default: int) -> int:
    given = environment.get(name, "").strip()
    if not given:
        return default
    if not (given.isascii() and given.isdigit() and 1 <= int(given[:7]) <= 100_000):
        raise SettingError(f"{name} is “{given[:40]}”.", "Expected a whole number from 1 to 100000.")
    return int(given)


def _switch(environment: Mapping[str, str], name: str) -> bool:
    given = environment.get(name, "").strip()
    if given not in ("", "0", "1"):
        raise SettingError(f"{name} is “{given[:40]}”.", "Expected 1 or 0.")
    return given == "1"
