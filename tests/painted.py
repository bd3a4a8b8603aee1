"""Record what a page draws on canvases, to check that words are next to their rows and easy to read."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from playwright.sync_api import Locator, Page

from mha_viz.app.serving.paths import COMPONENTS
from mha_viz.browser.bundle import name_served_file
from mha_viz.figures.drawing.theme import LIGHT
from mha_viz.figures.layout.player_data import Recording, build_player_data
from tests.browser_tab import FRAMES
from tests.screenshots import luminance, take_still

MIN_CONTRAST = 4.5  # WCAG 2.2, 1.4.3
MAPS = ".map canvas"  # of a training run

# Record for each canvas since it was last cleared: the position of its cells and of the middle of each text, in pixels
# of the canvas, and the number of texts that begin outside it.
RECORD_TEXTS = """() => {
  const pen = CanvasRenderingContext2D.prototype;
  const { clearRect, fillText, drawImage } = pen;
  pen.clearRect = function (...box) {
    this.canvas.painted = { texts: [], outside: 0 };
    return clearRect.apply(this, box);
  };
  pen.fillText = function (text, x, y, ...more) {
    const { actualBoundingBoxAscent: up, actualBoundingBoxDescent: down } = this.measureText("x");
    const transform = this.getTransform();
    const middle = transform.transformPoint({ x, y: y + (down - up) / 2 });
    const { width, height } = this.canvas;
    const label = { text: text.slice(1, -1), upright: transform.b === 0, x: middle.x, y: middle.y };
    const isInside = middle.x >= 0 && middle.x <= width && middle.y >= 0 && middle.y <= height;
    if (this.canvas.painted && isInside) this.canvas.painted.texts.push(label);
    else if (this.canvas.painted) this.canvas.painted.outside += 1;
    return fillText.call(this, text, x, y, ...more);
  };
  pen.drawImage = function (picture, x, y, width, height) {
    const [from, to] = [[x, y], [x + width, y + height]].map(([x, y]) => this.getTransform().transformPoint({ x, y }));
    if (this.canvas.painted) this.canvas.painted.cells = { from, to, n: picture.width };
    return drawImage.apply(this, arguments);
  };
}"""
LARGE = 16  # pixels of a cell; maps with larger cells have room for words
# Return for each map, except small ones beside large ones: the number of its words, the labels of its rows and columns,
# their largest distance from the middle of their row or column, and the distance of an SVG over the map from its
# corner, in pixels of the screen. A map without words uses those of another map: for rows of a map in the same row, for
# columns of the nearest labelled map above it.
MEASURE = """(canvases) => {
  const maps = canvases.filter((canvas) =>
    canvas.checkVisibility() && canvas.painted?.cells && !canvas.closest(".others")).map((canvas) => {
    const { cells: { from, to, n }, texts, outside } = canvas.painted;
    const box = canvas.getBoundingClientRect();
    const scale = box.width / canvas.width;
    const start = { x: box.left, y: box.top };
    const labels = (upright, axis) => texts.filter((text) => text.upright === upright)
      .map((text) => start[axis] + scale * text[axis]).sort((a, b) => a - b);
    const cells = (axis) => [from, to].map((end) => start[axis] + scale * end[axis]);
    const overlay = canvas.parentElement.querySelector("svg")?.getBoundingClientRect();
    const [[left], [, bottom]] = [cells("x"), cells("y")];
    const overlayOffset = overlay ? Math.max(Math.abs(overlay.left - left), Math.abs(overlay.bottom - bottom)) : 0;
    return { n, outside, overlayOffset, x: cells("x"), y: cells("y"),
      rows: labels(true, "y"), columns: labels(false, "x") };
  });
  const overlaps = ([a, b], [c, d]) => Math.min(b, d) - Math.max(a, c) > (b - a) / 2;
  const getLabels = (map, kind, axis) => {
    if (map[kind].length) return map[kind];
    const labelled = maps.filter((other) =>
      other[kind].length && overlaps(map[axis], other[axis]) && other.y[0] < map.y[1]);
    return labelled.sort((a, b) => b.y[0] - a.y[0])[0]?.[kind] ?? [];
  };
  const measureOffset = ({ n, ...map }, positions, axis) => Math.max(0, ...positions.map((position, i) =>
    Math.abs(position - map[axis][0] - ((i + 0.5) * (map[axis][1] - map[axis][0])) / n)));
  return maps.map((map) => {
    const [rows, columns] = [getLabels(map, "rows", "y"), getLabels(map, "columns", "x")];
    const cell = (map.y[1] - map.y[0]) / map.n;
    const labelOffset = Math.max(measureOffset(map, rows, "y"), measureOffset(map, columns, "x"));
    const { n, overlayOffset, outside } = map;
    return { n, cell, overlayOffset, outside, labelOffset, rows: rows.length, columns: columns.length };
  });
}"""
# Give a component new data, as the page does.
SHOW = """async (root, [file, data]) => {
  const { default: component } = await import(file);
  component({ data, parentElement: root.parentNode, setTriggerValue: () => {} });
}"""
# Return for each word the point where it ends (on the right half of a picture: begins), in pixels of the screen, and
# the half: -1 for the left, 1 for the right.
ENDS = """(canvases) => canvases.flatMap((canvas) => {
  const box = canvas.getBoundingClientRect();
  const scale = box.width / canvas.width;
  return (canvas.painted?.texts ?? []).filter((label) => label.upright && /[a-zA-Z]/.test(label.text))
    .map(({ x, y }) => [box.left + x * scale, box.top + y * scale, x < canvas.width / 2 ? -1 : 1]);
})"""


def check_label_positions(page: Page, maps: str = MAPS, words: int | None = None) -> None:
    """Check that the labels of all visible maps are next to their rows and columns.

    ``words`` is the expected number of words.
    """
    page.wait_for_selector(maps)
    page.evaluate(f"document.fonts.ready.then(() => {FRAMES})")
    measured = page.locator(maps).evaluate_all(MEASURE)
    assert measured
    has_words = any(map_["rows"] or map_["columns"] for map_ in measured)
    for map_ in measured:
        if has_words:
            assert map_["rows"] == map_["columns"] == map_["n"]
        else:
            assert map_["cell"] < LARGE, "only words of less than 11 pixels may be left out"
        assert words is None or map_["n"] == words
        assert map_["labelOffset"] <= 1
        assert map_["overlayOffset"] <= 1
        assert map_["outside"] == 0


def show_words(page: Page, count: int) -> None:
    """Let the player of a training run show four maps of one step with ``count`` words."""
    player = f"/{COMPONENTS}mha_player/{name_served_file('player')}"
    page.locator(".mha-player").evaluate(SHOW, [player, make_maps(count)])


def make_maps(count: int) -> dict[str, Any]:
    """Return the player's data for four maps of one step with ``count`` words."""
    recording = Recording(
        key=f"{count} words", steps=[0], words=[f"w{'ord' * (i % 3)}{i}" for i in range(count)],
        head_names=list("abcd"), maps=np.eye(count)[None, None].repeat(4, 1), relations=["itself"],
        target_words=np.arange(count)[None], relation_notes=[[""]],
    )  # fmt: skip
    return build_player_data(recording, 0, LIGHT)


def measure_contrasts(canvases: Locator) -> list[float]:
    """Return for each word the highest contrast to the paper among its last letters."""
    light = luminance(take_still(canvases.page))
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


def check_readable(page: Page, *pictures: str) -> None:
    """Check that words beside a pinned one are paler but still easy to read, by the pixels of the page."""
    for picture in pictures:
        page.locator(picture).first.wait_for()
        words = measure_contrasts(page.locator(picture))
        assert len(words) >= 10, picture
        assert min(words) >= MIN_CONTRAST, (picture, words)
