"""Identify the browser of a request, and remember visitors for a while."""

from __future__ import annotations

import re
import time

from starlette.requests import cookie_parser
from starlette.types import Scope
from streamlit.web.server.starlette.starlette_app_utils import decode_xsrf_token_string
from streamlit.web.server.starlette.starlette_server_config import XSRF_COOKIE_NAME

MAX_VISITORS = 4096  # maximum visitors to remember
_COOKIE = re.compile(r"2\|[0-9a-f]{8}\|[0-9a-f]{2,128}\|\d{1,12}")  # the form that Streamlit writes


def read_browser(scope: Scope) -> str:
    """Return the secret in the cookie that Streamlit gives each browser; "" without a cookie.

    The text of the cookie changes, the secret does not.
    """
    for name, value in scope.get("headers", []):
        if name == b"cookie":
            cookie = cookie_parser(value.decode("latin-1")).get(XSRF_COOKIE_NAME, "")
            if _COOKIE.fullmatch(cookie):
                return (decode_xsrf_token_string(cookie)[0] or b"").hex()
    return ""


class RecentVisitors:
    """Counts of an event per visitor; counts older than ``seconds`` are forgotten."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._events: dict[str, tuple[float, int]] = {}  # time of the last event, and the count; newest last

    def __contains__(self, visitor: str) -> bool:
        return self._count(visitor) > 0

    def note(self, visitor: str) -> None:
        """Count an event of this visitor."""
        count = self._count(visitor) + 1
        self._events.pop(visitor, None)
        self._events[visitor] = time.monotonic(), count
        while len(self._events) > MAX_VISITORS:
            del self._events[next(iter(self._events))]

    def take(self, visitor: str) -> bool:
        """Return whether the visitor has an event, and remove one."""
        count = self._count(visitor)
        if count:
            self._events[visitor] = self._events[visitor][0], count - 1
        return count > 0

    def _count(self, visitor: str) -> int:
        last_event, count = self._events.get(visitor, (0.0, 0))
        return count if time.monotonic() < last_event + self._seconds else 0
