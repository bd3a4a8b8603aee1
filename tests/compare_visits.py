"""Visit the Compare page without a browser: the data of its component, and the download panel."""

from __future__ import annotations

import json
import struct
from typing import Any

from mha_viz.app.url.address import load_examples
from mha_viz.app.url.comparison import ComparedHead
from mha_viz.attention import Head
from mha_viz.request import Request
from tests.page_session import PageSession

FIRST = load_examples()[0]["text"]
WIDE = FIRST.replace("tired", "wide")
PAGE = "pages/20_compare.py"
L3H1, L0H2 = (
    ComparedHead(Request("minilm", FIRST), Head(3, 1)),
    ComparedHead(Request("minilm", FIRST), Head(0, 2), "previous"),
)


def visit(**url: Any) -> PageSession:
    return PageSession(url, PAGE)


def panels(session: PageSession) -> dict[str, Any]:
    """Return the header of the component's packet."""
    data = session._drawn()["mha_compare"].bytes
    (length,) = struct.unpack("<I", data[:4])
    header: dict[str, Any] = json.loads(data[4 : 4 + length])
    return header


def heads(session: PageSession) -> list[str]:
    return [str(Head(*divmod(p["head"], 12))) for p in panels(session)["panels"]]


def open_downloads(session: PageSession) -> PageSession:
    session.at.session_state["download_panel"] = True
    session.at.run()
    session.check()
    return session
