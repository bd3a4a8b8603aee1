"""Send one HTTP request; list the security headers that every answer of our server has."""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from typing import NamedTuple

from tests.waiting import PATIENCE

OWN_PAGES_ONLY = ("cross-origin-opener-policy", "cross-origin-resource-policy")
SECURITY_HEADERS = (
    "content-security-policy",
    "x-content-type-options",
    "referrer-policy",
    "permissions-policy",
    *OWN_PAGES_ONLY,
)


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


def ask(url: str, path: str, method: str = "GET", body: bytes | None = None, **headers: str) -> Answer:
    """Send one request without following redirects."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=PATIENCE)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path, body, named)
        response = connection.getresponse()
        return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
    finally:
        connection.close()
