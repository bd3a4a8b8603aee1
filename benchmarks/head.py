"""Time opening one head, and moving the pointer over its tokens.

This package (links, heatmap) is compared with BertViz's ``head_view`` (one layer).
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from playwright.sync_api import Page

from benchmarks.chromium import name_browser, open_chromium
from benchmarks.grid import compute_medians
from benchmarks.page import find_grid_spot
from benchmarks.results import Row, Sample, Target, write
from benchmarks.tensors import make_random_attention
from benchmarks.views import OPENED_HEAD, Bench, OpenedPage, Times, open_bench
from mha_viz.attention import Attention

SHAPE = (6, 12)
OPEN_TARGETS = {16: Target("faster", 5), 32: Target("faster", 5), 128: Target("faster", 20)}  # n: target
HOVER_LENGTHS = (16, 32, 128, 256)
HOVER_TARGET = Target("below", 16.7, p95=True)
MOVES = 60
# Open another head of the layer by a click in the grid of this package; select the next layer in BertViz's menu.
_OPEN_OURS = """([x, y]) => bench.measureCost(() => document.querySelector(".grid canvas").dispatchEvent(
  new MouseEvent("click", { clientX: x, clientY: y, bubbles: true })))"""
_OPEN_THEIRS = """(layer) => bench.measureCost(() => {
  const menu = document.querySelector("#layer");
  menu.value = layer;
  menu.dispatchEvent(new Event("change", { bubbles: true }));
})"""
# The lower edge of the visible part of a drawing, which may be inside a scrolling element.
_LOWER_EDGE = """drawing => {
  let edge = window.innerHeight - 20;
  for (let part = drawing; part; part = part.parentElement)
    if (getComputedStyle(part).overflowY !== "visible") edge = Math.min(edge, part.getBoundingClientRect().bottom);
  return edge;
}"""


def main(results: Path, quick: bool = False) -> None:
    """Measure, print, write ``results/head.json``. ``quick``: fewer repetitions."""
    rows: list[Row] = []
    with open_chromium() as browser:
        for n in sorted({*OPEN_TARGETS, *HOVER_LENGTHS}):
            attention = make_random_attention(*SHAPE, n)
            with open_bench(browser) as workbench:
                rows += _time_new_pages(workbench, attention, 2 if quick else 7) if n in OPEN_TARGETS else []
                rows += _time_open_page(workbench, attention, 3 if quick else 9, 10 if quick else MOVES)
        write(results, "head", "One head opened, and hovered", "BertViz head_view", rows, name_browser(browser))


def _time_new_pages(workbench: Bench, attention: Attention, turns: int) -> list[Row]:
    """Time a head from data in Python to the painted picture, each time in a new page.

    This package also draws the grid of all heads.
    """
    workbench.show_explorer(attention).page.close()
    ours: list[Times] = []
    theirs: list[Times] = []
    for _ in range(turns):
        for show, times in ((workbench.show_explorer, ours), (partial(_show_head_view, workbench), theirs)):
            opened_page = show(attention)
            times.append(opened_page.times)
            opened_page.page.close()
    samples = [Sample(tuple(t["presented"] for t in times)) for times in (ours, theirs)]
    details = {"phases": compute_medians(ours), "bertviz_phases": compute_medians(theirs)}
    return [Row(f"new page to painted, n = {len(attention.text)}", samples[0], "ms", samples[1], details=details)]


def _show_head_view(workbench: Bench, attention: Attention) -> OpenedPage:
    """Return BertViz's cheapest page: the data of one layer, and one selected head."""
    layer = SHAPE[0] // 2
    return workbench.show_bertviz("head_view", attention, layer=layer, heads=[OPENED_HEAD], include_layers=[layer])


def _time_open_page(workbench: Bench, attention: Attention, turns: int, moves: int) -> list[Row]:
    """Time an open page: another head's picture replaces the current one; then the pointer moves over the tokens."""
    n = len(attention.text)
    page = workbench.show_explorer(attention).page
    bertviz_page = workbench.show_bertviz("head_view", attention, layer=0, heads=[OPENED_HEAD]).page
    rows = []
    if n in OPEN_TARGETS:
        ours = Sample(tuple(_time_our_opening(page, 1 + turn) for turn in range(turns)))
        theirs = Sample(
            tuple(_time_their_opening(bertviz_page, 1 + turn % (SHAPE[0] - 1), attention) for turn in range(turns))
        )
        rows.append(Row(f"opened in an open page, n = {n}", ours, "ms", theirs, OPEN_TARGETS[n]))
    hovers = _time_hover(page, ".links canvas", 0.08, moves)
    _check_highlight(page, "attends to")
    hovers += _time_hover(page, ".heat canvas", 0.5, moves)
    _check_highlight(page, "→")
    bertviz_hovers = _time_hover(bertviz_page, "#vis svg", 0.0, moves)
    rows.append(Row(f"hover to highlighted, n = {n}", Sample(hovers), "ms", Sample(bertviz_hovers), HOVER_TARGET))
    page.close()
    bertviz_page.close()
    return rows


def _time_our_opening(page: Page, turn: int) -> float:
    """Return the milliseconds to open heads of the middle layer, whose matrices are in the browser.

    Raises RuntimeError if nothing opened.
    """
    layer, head = SHAPE[0] // 2, (OPENED_HEAD + turn) % SHAPE[1]
    page.bring_to_front()
    milliseconds: float = page.evaluate(_OPEN_OURS, find_grid_spot(page, head))
    title = page.locator(".one h2 code").inner_text()
    if not title.startswith(f"L{layer}H{head} "):
        raise RuntimeError(f"L{layer}H{head} was clicked and {title} is open.")
    return milliseconds


def _time_their_opening(page: Page, layer: int, attention: Attention) -> float:
    page.bring_to_front()
    milliseconds: float = page.evaluate(_OPEN_THEIRS, str(layer))
    if page.locator("#attention line").count() != attention.weights[layer].size:
        raise RuntimeError(f"Layer {layer} of BertViz's head_view is not complete.")
    return milliseconds


def _check_highlight(page: Page, word: str) -> None:
    """Check that the line above a drawing describes the token under the pointer. Raises RuntimeError if it does not."""
    readout = page.locator(".readout").inner_text()
    if word not in readout or "Point at a word" in readout:
        raise RuntimeError(f"The pointer highlighted nothing: {readout}")


def _time_hover(page: Page, selector: str, x_fraction: float, moves: int) -> tuple[float, ...]:
    """Move the real pointer down a drawing; return the milliseconds of each move until its frame is painted.

    ``x_fraction`` is the horizontal position in the drawing; BertViz's left tokens end 110 pixels from its left edge.
    """
    page.bring_to_front()
    target = page.locator(selector).first
    target.scroll_into_view_if_needed()
    box = target.bounding_box()
    if box is None:
        raise RuntimeError(f"{selector} is not on the page.")
    top, bottom = max(box["y"], 0.0) + 34, target.evaluate(_LOWER_EDGE) - 12
    x = box["x"] + (x_fraction * box["width"] or 60)
    page.evaluate("bench.hovers.length || bench.watchHover()")
    page.evaluate("bench.hovers.length = 0")
    for number in range(moves):
        # Skip neighbours, so that each move reaches another token.
        y_fraction = (number * 7 % moves) / max(1, moves - 1)
        page.mouse.move(x + number % 2, top + y_fraction * (bottom - top))
        page.evaluate("bench.painted()")
    times: list[float] = page.evaluate("bench.hovers")
    if len(times) < moves // 2:
        raise RuntimeError(f"{len(times)} of {moves} pointer moves were seen on {selector}.")
    return tuple(times)
