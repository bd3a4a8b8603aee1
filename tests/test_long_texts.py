"""A long text begins readable, on screen and in files, unless somebody asks for another view."""

from __future__ import annotations

import pytest

from mha_viz.app.widgets.download_panel import parse_view
from mha_viz.attention import Head
from mha_viz.figures.layout.packet import build_packet
from mha_viz.view.settings import DEFAULTS, LONG_DEFAULTS, LONG_TOKENS
from tests.page_scripts import ask_packet
from tests.readings import make_long_reading

NAMES = ("unit", "special", "links", "scale", "side")
SHORT = {name: DEFAULTS[name] for name in NAMES}
LONG = SHORT | dict(LONG_DEFAULTS)
QUERIES = ("", "links=all", "special=keep&scale=fixed&links=all", "scale=log", "links=min0.10&special=rescale")


def _parameters(query: str) -> dict[str, str]:
    return dict(part.split("=") for part in query.split("&")) if query else {}


@pytest.mark.parametrize(("tokens", "first"), [(LONG_TOKENS, SHORT), (LONG_TOKENS + 1, LONG)])
def test_what_the_address_says_wins_over_how_a_text_begins(tokens: int, first: dict[str, str]) -> None:
    raw = build_packet(make_long_reading(1, 2, tokens), [Head(0, 0)])
    questions = [{"packet": raw, "ask": ask, "query": query} for ask in ("view", "address") for query in QUERIES]
    answers = ask_packet(*questions)
    for query, view, address in zip(QUERIES, answers[: len(QUERIES)], answers[len(QUERIES) :], strict=True):
        expected = first | _parameters(query)
        assert {name: view[name] for name in NAMES} == expected
        drawn = parse_view(_parameters(query), tokens=tokens)
        assert {name: getattr(drawn, name) or DEFAULTS[name] for name in NAMES} == expected, (
            "a file shows what the screen shows"
        )
        changes = {name: value for name, value in address.items() if name in NAMES and value}
        assert changes == {name: value for name, value in expected.items() if value != first[name]}
