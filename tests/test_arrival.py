"""The first seven visitors of a server at once, on as many pages: every page is drawn without an error."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mha_viz.app.widgets.parts import UNEXPECTED
from tests.app_server import AppServer
from tests.web_session import WebSession, run

# The pages that they open, and a component, a control or words that each of them shows once it is drawn.
PAGES = (
    ("", "mha_explorer"),
    ("explore", "mha_explorer"),
    ("compare", "mha_compare"),
    ("roles", "What the 72 heads"),
    ("inside_a_head", "mha_block"),
    ("why_heads_differ", "lab_guess_identical"),
    ("about", "What the pictures show, and what they do not"),
)


async def _arrives(url: str, page: str, mark: str) -> list[str]:
    """The errors of a page that a visitor opens."""
    async with WebSession(url, page) as visitor:
        page_text = "\n".join(visitor.texts)
        drawn = mark in visitor.components or mark in visitor.widgets or mark in page_text
        faults = [
            *visitor.exceptions,
            *([UNEXPECTED] if UNEXPECTED in page_text else []),
            *([] if drawn else ["not drawn"]),
        ]
        return [f"{page}: {fault}" for fault in faults]


def _arrive_together(folder: Path) -> None:
    folder.mkdir()

    async def together() -> list[list[str]]:
        return await asyncio.gather(*(_arrives(server.url, page, mark) for page, mark in PAGES))

    with AppServer(folder) as server:
        assert [fault for faults in run(together()) for fault in faults] == []
        assert server.faults() == []
        assert UNEXPECTED not in server.log()


def test_the_first_visitors_of_a_server_come_at_once(tmp_path: Path) -> None:
    _arrive_together(tmp_path / "server")


@pytest.mark.slow
def test_the_first_visitors_of_five_servers_come_at_once(tmp_path: Path) -> None:
    for number in range(5):
        _arrive_together(tmp_path / str(number))
