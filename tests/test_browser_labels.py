"""Words stand beside their own rows and over their own columns, on every map: read from what is painted. Of one
experiment, task and toy: tests/test_browser_accessible.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext

import mha_viz as mv
from mha_viz.app.lab.small_tasks import load_small_tasks
from mha_viz.lab.lab import EXPERIMENTS
from mha_viz.models.reading.encoder import Encoder
from tests.browser_tab import BrowserTab
from tests.painted import RECORD_TEXTS, check_label_positions

SENTENCE = "One small dog and its very old friend walked home along a long road in the cold rain today ."


def test_words_of_a_published_file_stand_beside_their_rows(
    desktop: BrowserContext, browser: Browser, minilm: Encoder, tmp_path: Path
) -> None:
    words = SENTENCE.split()
    read = [minilm.encode(" ".join(words[-count:])) for count in (5, 12, 20)]
    file = mv.publish([(attention, "L3H1") for attention in read], tmp_path / "heads.html", special="hide")
    page = desktop.new_page()
    page.add_init_script(f"({RECORD_TEXTS})()")
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-painted]")
    for choice in page.get_by_text("Heatmap", exact=True).all():
        choice.click()
    check_label_positions(page, "section canvas:not(.over)")
    page.close()


@pytest.mark.slow
def test_words_of_all_maps_stand_beside_their_rows(newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer()
    visitor.is_altered = True
    visitor.page.add_init_script(f"({RECORD_TEXTS})()")
    for number in range(1, len(load_small_tasks()) + 1):
        visitor.visit("/why_heads_differ", experiment="tasks", task=str(number))
        check_label_positions(visitor.page)
    for experiment in EXPERIMENTS:
        visitor.visit("/why_heads_differ", experiment=experiment)
        check_label_positions(visitor.page)
    for toy in ("repeater", "toy"):
        visitor.visit("/why_heads_differ", experiment=toy)
        check_label_positions(visitor.page)
