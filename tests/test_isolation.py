"""Visitors at once are not mixed up: what each is shown is what another server shows to one visitor after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

import pytest

from benchmarks.visitors import sentence
from tests.app_server import AppServer
from tests.web_session import WebSession, run

FEW, MANY = (5, 3), (8, 50)  # visitors and the sentences of each: what is new meets others under way
PATIENCE = 300.0  # seconds for one run, on a machine that does much else
Shown = dict[str, tuple[bytes, str, str]]  # sentence: the drawing, what the input shows, the URL


async def _reads(url: str, sentences: list[str]) -> Shown:
    shown: Shown = {}
    async with WebSession(url, patience=PATIENCE) as visitor:
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


def _shown(
    folder: Path, size: tuple[int, int], way: Callable[[str, list[list[str]]], Awaitable[list[Shown]]]
) -> list[Shown]:
    random, (visitors, sentences) = Random(7), size
    each = [[sentence(random) for _ in range(sentences)] for _ in range(visitors)]
    folder.mkdir()
    with AppServer(folder) as server:

        async def visits() -> list[Shown]:
            return await way(server.url, each)

        shown = run(visits())
        assert not server.faults()
    return shown


@pytest.mark.parametrize("size", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_visitors_at_once_see_what_one_after_the_other_sees(tmp_path: Path, size: tuple[int, int]) -> None:
    together, alone = _shown(tmp_path / "together", size, _at_once), _shown(tmp_path / "alone", size, _in_turn)
    differing = [
        text for ours, theirs in zip(together, alone, strict=True) for text in theirs if ours.get(text) != theirs[text]
    ]
    assert not differing
    drawings = {drawing for shown in alone for drawing, _, _ in shown.values()}
    assert len(drawings) == size[0] * size[1], "Two sentences gave one drawing: nothing would be seen of a mix-up."
