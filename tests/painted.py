"""What is painted on canvases, noted by a page: whether words stand beside their rows, and are easy to read."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from playwright.sync_api import Locator, Page

from mha_viz.browser.bundle import served_file
from mha_viz.figures.frames import Recording, frames
from mha_viz.figures.theme import LIGHT
from mha_viz.serving.paths import COMPONENTS
from tests.browser_tab import FRAMES
from tests.screenshots import luminance, still

ENOUGH = 4.5  # WCAG 2.2, 1.4.3
MAPS = ".map canvas"  # of a training

# Of each canvas since it was last cleared: the place of its cells, and the middle of the small letters of each
# text, in pixels of the canvas.
NOTE = """() => {
  const pen = CanvasRenderingContext2D.prototype;
  const { clearRect, fillText, drawImage } = pen;
  pen.clearRect = function (...place) {
    this.canvas.painted = { texts: [] };
    return clearRect.apply(this, place);
  };
  pen.fillText = function (text, x, y, ...more) {
    const { actualBoundingBoxAscent: up, actualBoundingBoxDescent: down } = this.measureText("x");
    const turn = this.getTransform();
    const middle = turn.transformPoint({ x, y: y + (down - up) / 2 });
    this.canvas.painted?.texts.push({ text: text.slice(1, -1), upright: turn.b === 0, x: middle.x, y: middle.y });
    return fillText.call(this, text, x, y, ...more);
  };
  pen.drawImage = function (picture, x, y, width, height) {
    const [from, to] = [[x, y], [x + width, y + height]].map(([x, y]) => this.getTransform().transformPoint({ x, y }));
    if (this.canvas.painted) this.canvas.painted.cells = { from, to, n: picture.width };
    return drawImage.apply(this, arguments);
  };
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
# New data for a component, as the page gives them to it.
SHOW = """async (root, [file, data]) => {
  const { default: component } = await import(file);
  component({ data, parentElement: root.parentNode, setTriggerValue: () => {} });
}"""
# Where each word ends, or begins on the right half of a picture, in pixels of the screen; and on which half it is.
ENDS = """(canvases) => canvases.flatMap((canvas) => {
  const box = canvas.getBoundingClientRect();
  const scale = box.width / canvas.width;
  return (canvas.painted?.texts ?? []).filter((one) => one.upright && /[a-zA-Z]/.test(one.text))
    .map((one) => [box.left + one.x * scale, box.top + one.y * scale, one.x < canvas.width / 2 ? -1 : 1]);
})"""


def stand_beside_their_rows(page: Page, maps: str = MAPS, words: int | None = None) -> None:
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


def show_words(page: Page, count: int) -> None:
    """Give the player of a training four maps of one step with so many words."""
    player = f"/{COMPONENTS}mha_player/{served_file('player')}"
    page.locator(".mha-player").evaluate(SHOW, [player, of_words(count)])


def of_words(count: int) -> dict[str, Any]:
    """Four maps of one step with so many words."""
    recording = Recording(
        key=f"{count} words", steps=[0], words=[f"w{'ord' * (i % 3)}{i}" for i in range(count)], names=list("abcd"),
        maps=np.eye(count)[None, None].repeat(4, 1), relations=["itself"], places=np.arange(count)[None], notes=[[""]],
    )  # fmt: skip
    return frames(recording, 0, LIGHT)


def contrasts(canvases: Locator) -> list[float]:
    """The highest contrast to the paper among the letters at the end of each word."""
    light = luminance(still(canvases.page))
    highest = []
    for x, y, side in cast("list[tuple[float, float, int]]", canvases.evaluate_all(ENDS)):
        left, right = sorted((round(x), round(x) + side * 14))
        letters = light[round(y) - 5 : round(y) + 6, left:right]
        if not letters.size:
            continue  # below the window
        paper = np.median(letters)
        extremes = np.array([letters.min(), letters.max()])
        highest.append(float(((np.maximum(extremes, paper) + 0.05) / (np.minimum(extremes, paper) + 0.05)).max()))
    return highest


def are_easy_to_read(page: Page, *pictures: str) -> None:
    """Words beside a held one are paler, and stay easy to read: measured in the pixels of the page."""
    for picture in pictures:
        page.locator(picture).first.wait_for()
        words = contrasts(page.locator(picture))
        assert len(words) >= 10, picture
        assert min(words) >= ENOUGH, (picture, words)
