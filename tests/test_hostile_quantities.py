"""Hostile text through every quantity, its exports, and switched-off heads: numbers or a plain message."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mha_viz.attention import Attention, Head
from mha_viz.attention.rollout import rollout
from mha_viz.errors import MhaVizError
from mha_viz.figures import files
from mha_viz.models.decomposing.contributions import norm_weighted
from mha_viz.models.intervening import ablation
from mha_viz.models.intervening.gradients import gradient_weighted
from mha_viz.models.reading.encoder import Encoder
from mha_viz.request import Request
from mha_viz.study.effects import measure_changes
from tests import hostile, lanes
from tests.page_session import PageSession

SHORT = {name: text for name, text in hostile.KINDS.items() if len(text) <= 2000}
QUANTITIES: dict[str, Callable[[Encoder, str], Attention]] = {
    "norm": lambda encoder, text: norm_weighted(encoder, text),
    "rollout": lambda encoder, text: rollout(encoder.encode(text)),
    "gradient": lambda encoder, text: gradient_weighted(encoder, f"[MASK] {text}", place=1),
    "without": lambda encoder, text: ablation.encode_without(encoder, ["L1H1"], text),
}


@pytest.mark.filterwarnings("ignore")  # of cut texts, missing glyphs and faint pictures
@pytest.mark.parametrize("name", SHORT)
def test_quantities_of_hostile_text_are_numbers_in_every_format(name: str, toy: Encoder, tmp_path: Path) -> None:
    for quantity, read in QUANTITIES.items():
        try:
            reading = read(toy, hostile.TEXTS[name])
        except MhaVizError:  # a plain message: any other error fails the test
            continue
        assert np.isfinite(reading.weights).all(), quantity
        for suffix in (".npz", ".safetensors", ".csv"):
            assert files.to_bytes(reading, suffix)
        tokens = json.loads(files.to_bytes(reading, ".json"))["tokens"]
        assert len(tokens) == len(reading.text)
        written = reading.heatmap(Head(0, 0)).save(tmp_path / "drawn.svg").read_text("utf-8")
        assert "<script" not in written
        assert "<img" not in written


@pytest.mark.filterwarnings("ignore")  # of cut texts, missing glyphs and faint pictures
def test_effects_on_hostile_text_are_numbers(toy: Encoder) -> None:
    for name, text in SHORT.items():
        try:
            changes = measure_changes(toy, [[Head(1, 1), Head(0, 2)]], Request(text=text))
        except MhaVizError:
            continue
        assert np.isfinite(changes.sentence).all(), name
        assert np.isfinite(changes.tokens).all(), name


ON_PAGE = ("script", "markdown image", "markdown marks", "tex unfinished", "right-to-left override", "only zero width")


@pytest.mark.app
@pytest.mark.usefixtures("no_hub")
@pytest.mark.parametrize("name", lanes.some(ON_PAGE, "script", "markdown image", "only zero width"))
def test_hostile_text_on_the_page(name: str) -> None:
    url = {"text": f"{hostile.TEXTS[name]} [MASK]", "model": "toy", "off": "L1H1"}
    page = PageSession(url, "pages/60_switch_off.py")
    assert "changes the " in page.said
    assert page.shown().header["layers"] == 2
    assert "<script" not in page.said
    assert "](http" not in page.said.replace("](https://arxiv.org", "")


WORDS = ("<b>bold</b>", "$x$", "two words", "![](http://a.invalid/b.png)", "\u200b", "a" * 500)


@pytest.mark.app
@pytest.mark.usefixtures("no_hub")
@pytest.mark.parametrize("word", lanes.some(WORDS, "<b>bold</b>", "![](http://a.invalid/b.png)", "\u200b"))
def test_hostile_words_that_are_asked_for_are_named_and_the_rest_stays(word: str) -> None:
    url = {"text": "the dog [MASK] the girl .", "model": "toy", "off": "L1H1", "word": word, "want": word}
    page = PageSession(url, "pages/60_switch_off.py")
    assert "the model answers **" in page.said
    assert not any("<b>bold" in element.proto.body for element in page.at.get("html"))
    assert not any("](http:" in str(element.value) for element in (*page.at.markdown, *page.at.caption))
