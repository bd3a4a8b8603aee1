"""Words stand beside their own rows and over their own columns, on every map: read from what is painted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page

import mha_viz as mv
from mha_viz.browser.bundle import served_file
from mha_viz.figures.frames import Recording, frames
from mha_viz.figures.theme import LIGHT
from mha_viz.models.encoder import Encoder
from mha_viz.serving.paths import COMPONENTS
from mha_viz.training.record import EXPERIMENTS
from mha_viz.ui.lab.small_tasks import small_tasks
from tests import lanes
from tests.browser_tab import DESKTOP, FRAMES, PHONE, BrowserTab
from tests.painted import NOTE

COUNTS = range(5, 21)
SENTENCE = "One small dog and its very old friend walked home along a long road in the cold rain today ."
LAPTOP = {"width": 1280, "height": 720}
# New data for a component, as the page gives them to it.
SHOW = """async (root, [file, data]) => {
  const { default: component } = await import(file);
  component({ data, parentElement: root.parentNode, setTriggerValue: () => {} });
}"""
# Of each map with words: their number, the labels of rows and columns, and how far any of them is from the middle of
# its row or column, on the screen.
MEASURE = """(canvases) => canvases.filter((canvas) => canvas.checkVisibility()).flatMap((canvas) => {
  const { cells, texts } = canvas.painted ?? {};
  if (!cells) return [];
  const scale = canvas.getBoundingClientRect().width / canvas.width;
  const labels = (upright, axis) => texts.filter((one) => one.upright === upright)
    .map((one) => one[axis]).sort((a, b) => a - b);
  const off = (places, axis) => Math.max(0, ...places.map((place, i) =>
    scale * Math.abs(place - cells.from[axis] - ((i + 0.5) * (cells.to[axis] - cells.from[axis])) / cells.n)));
  const [rows, columns] = [labels(true, "y"), labels(false, "x")];
  const signs = canvas.parentElement.querySelector("svg")?.getBoundingClientRect();
  const box = canvas.getBoundingClientRect();
  const aside = signs ? Math.max(Math.abs(signs.left - box.left - cells.from.x * scale),
    Math.abs(signs.bottom - box.top - cells.to.y * scale)) : 0;
  return [{ n: cells.n, rows: rows.length, columns: columns.length, off: Math.max(off(rows, "y"), off(columns, "x")),
    aside }];
})"""


def stand_beside_their_rows(page: Page, maps: str, words: int | None = None) -> None:
    """Check all maps in view, which have so many words."""
    page.wait_for_selector(maps)
    page.evaluate(f"document.fonts.ready.then(() => {FRAMES})")
    measured = page.locator(maps).evaluate_all(MEASURE)
    assert measured
    for one in measured:
        assert one["rows"] == one["columns"] == one["n"]
        assert words is None or one["n"] == words
        assert one["off"] <= 1
        assert one["aside"] <= 1


def of_words(count: int) -> dict[str, Any]:
    """Four maps of one step with so many words."""
    recording = Recording(
        key=f"{count} words", steps=[0], words=[f"w{'ord' * (i % 3)}{i}" for i in range(count)], names=list("abcd"),
        maps=np.eye(count)[None, None].repeat(4, 1), relations=["itself"], places=np.arange(count)[None], captions=[""],
    )  # fmt: skip
    return frames(recording, 0, LIGHT)


def test_words_stand_beside_their_rows(newcomer: Callable[..., BrowserTab], minilm: Encoder, tmp_path: Path) -> None:
    visitor = newcomer()
    visitor.is_altered = True
    page = visitor.page
    page.add_init_script(f"({NOTE})()")
    for number in lanes.some(range(1, len(small_tasks()) + 1), 1):
        visitor.visit("/questions", task=str(number))
        stand_beside_their_rows(page, ".map canvas")
    for experiment in lanes.some(list(EXPERIMENTS), "random"):
        visitor.visit("/why_heads_differ", experiment=experiment, guess="skip")
        stand_beside_their_rows(page, ".map canvas")
    for toy in ("repeater", "toy"):
        visitor.visit("/roles", model=toy)
        for window in (DESKTOP, LAPTOP, PHONE):
            visitor.resize(window)
            stand_beside_their_rows(page, ".map canvas")
    player = f"{visitor.url}/{COMPONENTS}mha_player/{served_file('player')}"
    for count in COUNTS:
        page.locator(".mha-player").evaluate(SHOW, [player, of_words(count)])
        stand_beside_their_rows(page, ".map canvas", count)
    visitor.resize(DESKTOP)
    words = SENTENCE.split()
    read = [minilm.encode(" ".join(words[-count:])) for count in (5, 12, 20)]
    file = mv.publish([(attention, "L3H1") for attention in read], tmp_path / "heads.html", special="hide")
    page = page.context.new_page()
    page.add_init_script(f"({NOTE})()")
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-painted]")
    for choice in page.get_by_text("Heatmap", exact=True).all():
        choice.click()
    stand_beside_their_rows(page, "section canvas:not(.over)")
    page.close()
