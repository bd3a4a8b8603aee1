"""On screen, the colour of a cell is the colour of its number on the scale, whatever is held or pointed at."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page

from mha_viz.attention import Attention, Head
from mha_viz.figures import Figure, kinds
from mha_viz.figures.drawing.theme import THEMES, palette
from tests.cells import Colours, Numbers, list_numbers, pick_bar_colour
from tests.painted import RECORD_TEXTS
from tests.readings import make_long_reading, reading
from tests.waiting import PATIENCE

HELD = ("", "q2", "k5", "q5k1")
PLACE = (0.2, 0.3)  # of a cell, down and across, where its colour is read: a minus is in its middle
NEAR = 12  # the first and last pixels of a scale are its border
H, OTHER = Head(1, 2), Head(0, 1)
# Where the cells of a canvas are on the screen: left, top, right, bottom.
CELLS = """(canvas) => {
  const { cells: { from, to } } = canvas.painted;
  const box = canvas.getBoundingClientRect();
  const scale = box.width / canvas.width;
  return [box.left + from.x * scale, box.top + from.y * scale, box.left + to.x * scale, box.top + to.y * scale];
}"""
MAPS = {
    "explore": ".heat canvas",
    "compare": ".panel .tall canvas:not(.over)",
    "difference": ".difference canvas:not(.over)",
}
BARS = {"compare": ".top .scale .ramp", "difference": ".difference .ramp"}


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1440, "height": 1700}, offline=True)
    opened = context.new_page()
    opened.set_default_timeout(1000 * PATIENCE)
    opened.add_init_script(f"({RECORD_TEXTS})()")
    yield opened
    context.close()


def opened(page: Page, figure: Figure, folder: Path) -> Page:
    page.mouse.move(1, 1)
    page.goto(figure.save(folder / "figure.html").as_uri())
    page.wait_for_selector("html[data-painted=yes]")
    return page


def ours() -> Attention:
    return reading(words=(1, 2, 1, 1))


@pytest.mark.parametrize("look", THEMES)
def test_a_cell_of_a_head_has_the_colour_of_its_number(page: Page, tmp_path: Path, look: Any) -> None:
    for pin in HELD:
        figure = kinds.heatmap(ours(), H, look=look, pin=pin)
        agree(opened(page, figure, tmp_path), "explore", list_numbers(figure), palette(THEMES[look].ramp))
    box = page.locator(MAPS["explore"]).bounding_box()
    assert box
    page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 0.7 * box["height"])  # points at a cell
    agree(page, "explore", list_numbers(figure), palette(THEMES[look].ramp))


@pytest.mark.parametrize("look", THEMES)
def test_cells_side_by_side_and_their_difference_have_the_colours_of_their_numbers(
    page: Page, tmp_path: Path, look: Any
) -> None:
    panels = [(ours(), H), (ours(), OTHER), (reading(words=(1, 2), seed=3), H)]  # the third lacks most words
    for pin in HELD:
        figure = kinds.compare(panels, look=look, pin=pin, diff=(0, 1))
        numbers = list_numbers(figure)
        shown = opened(page, figure, tmp_path)
        agree(shown, "compare", numbers, bar(shown, "compare"))
        difference = numbers[1] - numbers[0]
        share = (1 + difference / np.abs(difference).max()) / 2
        agree(shown, "difference", [share], bar(shown, "difference"))


def test_small_cells_are_not_hidden_by_a_frame(page: Page, tmp_path: Path) -> None:
    long = make_long_reading(1, 2, 90)
    for pin in ("q40", "k40", "q40k9"):
        figure = kinds.compare([(long, Head(0, i)) for i in (0, 1)] * 2, pin=pin, unit="pieces", scale="fixed")
        shown = opened(page, figure, tmp_path)
        agree(shown, "compare", list_numbers(figure), bar(shown, "compare"))


# ---- What is painted ---------------------------------------------------------------------------------------------


def bar(page: Page, where: str) -> Colours:
    """The colours of a scale on the page."""
    pixels = np.asarray(Image.open(io.BytesIO(page.locator(BARS[where]).screenshot())).convert("RGB"))
    return pixels[len(pixels) // 2, 2:-2]  # without its border


def agree(page: Page, where: str, every: Sequence[Numbers], scale: Colours) -> None:
    """Check the colours of all cells on a screenshot; ``every`` matrix holds their places on the scale."""
    canvases = page.locator(MAPS[where])
    found = [canvas for canvas in map(canvases.nth, range(canvases.count())) if canvas.is_visible()]
    pixels = np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("RGB"), float)
    assert len(found) == len(every) > 0
    for canvas, shares in zip(found, every, strict=True):
        left, top, right, bottom = canvas.evaluate(CELLS)
        rows, columns = shares.shape
        for (row, column), share in np.ndenumerate(shares):
            x, y = left + (column + PLACE[1]) * (right - left) / columns, top + (row + PLACE[0]) * (bottom - top) / rows
            colour, expected = pixels[int(y), int(x)], pick_bar_colour(scale, float(share))
            assert np.abs(colour - expected).max() <= NEAR, (where, row, column, share, colour, expected)
