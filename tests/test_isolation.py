"""Concurrent visitors do not mix up: each gets what another server shows to single visitors one after the other."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

from benchmarks.visitors import draw_sentence
from tests.app_server import AppServer
from tests.web_session import WebSession, run

FEW, MANY = (5, 3), (8, 50)  # visitors and the sentences of each: new ones meet others that are under way
Shown = dict[str, tuple[bytes, str, str]]  # sentence: the drawing, what the input shows, the URL


async def _reads(url: str, sentences: list[str]) -> Shown:
    shown: Shown = {}
    async with WebSession(url) as visitor:
        for text in sentences:
            await visitor.trigger("mha_sentence", "read", {"text": text, "pair": ""})
            assert not visitor.exceptions
            drawn = visitor.components
            shown[text] = (drawn["mha_explorer"].bytes, drawn["mha_sentence"].json, visitor.query_string)
    return shown


async def _at_once(url: str, each: list[list[str]]) -> list[Shown]:
    return list(await asyncio.gather(*(_reads(url, sentences) for sentences in each)))


async def _in_turn(url: str, each: list[list[str]]) -> list[Shown]:
    return [await _reads(url, sentences) for sentences in each]


@pytest.mark.parametrize("size", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_visitors_at_once_see_what_one_after_the_other_sees(
    server: AppServer, tmp_path: Path, size: tuple[int, int]
) -> None:
    random, (visitors, sentences) = Random(7), size
    each = [[draw_sentence(random) for _ in range(sentences)] for _ in range(visitors)]
    together = run(_at_once(server.url, each))
    assert not server.faults()
    with AppServer(tmp_path) as other:
        alone = run(_in_turn(other.url, each))
        assert not other.faults()
    differing = [
        text for ours, theirs in zip(together, alone, strict=True) for text in theirs if ours.get(text) != theirs[text]
    ]
    assert not differing
    drawings = {drawing for shown in alone for drawing, _, _ in shown.values()}
    assert len(drawings) == size[0] * size[1], "Two sentences gave one drawing: nothing would be seen of a mix-up."
