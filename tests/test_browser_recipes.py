"""The recipe of a head as a visitor sees it: bars on one scale, and the cells that a rule predicts, read from what is
painted."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image
from playwright.sync_api import expect

from mha_viz.analysis.described import KINDS, of_heads
from tests.browser_tab import BrowserTab
from tests.painted import NOTE

pytestmark = pytest.mark.usefixtures("one_thread")
# Of each head in its order: the left and right edge of its bar, and kind, colour, left and right edge of each part.
BARS = """(bars) => bars.map((bar) => {
    const { left, right } = bar.getBoundingClientRect();
    return [left, right, [...bar.children].map((part) => {
        const box = part.getBoundingClientRect();
        return [part.className, getComputedStyle(part).getPropertyValue("--colour"), box.left, box.right];
    })];
})"""


def test_the_bars_of_all_heads_have_one_scale_and_one_colour_for_a_kind(visitor: BrowserTab) -> None:
    """Whatever the text: what is unexplained has the same length on two heads if it is the same share."""
    drawn = [_bars(visitor, text) for text in ("The cat sat on the mat.", "Dogs bark.")]
    assert drawn[0] == pytest.approx(drawn[1], abs=1e-3)


def _bars(visitor: BrowserTab, text: str) -> list[float]:
    visitor.visit(text=text)
    recipes, drawn = of_heads("minilm"), visitor.page.locator(".marks > .recipe")
    expect(drawn).to_have_count(len(recipes))
    bars: list[Any] = drawn.evaluate_all(BARS)
    colours: dict[str, set[str]] = {}
    unexplained = []
    for (left, right, parts), recipe in zip(bars, recipes, strict=True):
        shares = {kind: (end - start) / (right - left) for kind, _, start, end in parts}
        assert shares == pytest.approx({kind: share for kind, share in recipe.by_kind.items() if share > 0}, abs=0.005)
        assert [kind for kind, *_ in parts if kind in KINDS] == [kind for kind in KINDS if kind in shares]
        for kind, colour, *_ in parts:
            colours.setdefault(kind, set()).add(colour)
        unexplained.append(shares["unexplained"])
    assert {kind: len(of_kind) for kind, of_kind in colours.items()} == dict.fromkeys(colours, 1)
    return unexplained


def test_pointing_at_a_rule_marks_the_cells_that_it_predicts(visitor: BrowserTab) -> None:
    visitor.is_altered = True
    visitor.page.add_init_script(f"({NOTE})()")
    visitor.visit(text="The cat sat on the mat.", head="L0H2", words="0")
    page, heat = visitor.page, visitor.page.locator(".heat canvas").first
    before = _painted(heat)
    page.locator("summary span", has_text="the token before").first.hover()
    page.wait_for_timeout(300)
    cells = heat.evaluate("(canvas) => canvas.painted.cells")
    every = {(query, key) for query in range(cells["n"]) for key in range(cells["n"])}
    veiled = _changed(before, _painted(heat), cells)  # a veil lies over all cells but the marked ones
    assert every - veiled == {(query, query - 1) for query in range(1, cells["n"])}
    page.mouse.move(2, 2)
    page.wait_for_timeout(300)
    assert _changed(before, _painted(heat), cells) == set()


def _painted(canvas: Any) -> npt.NDArray[np.int_]:
    url: str = canvas.evaluate("(canvas) => canvas.toDataURL()")
    image = Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).convert("RGB")
    return np.asarray(image, int)


def _changed(one: npt.NDArray[np.int_], other: npt.NDArray[np.int_], cells: dict[str, Any]) -> set[tuple[int, int]]:
    """The cells, as row and column, with a pixel inside that differs."""
    differs = np.abs(one - other).max(axis=2) > 0
    x0, y0, x1, y1 = (cells[end][axis] for end in ("from", "to") for axis in ("x", "y"))
    wide, high = (x1 - x0) / cells["n"], (y1 - y0) / cells["n"]
    changed = set()
    for row in range(cells["n"]):
        for column in range(cells["n"]):
            rows, columns = (
                (round(y0 + (row + share) * high) for share in (0.3, 0.7)),
                (round(x0 + (column + share) * wide) for share in (0.3, 0.7)),
            )
            if differs[slice(*rows), slice(*columns)].any():
                changed.add((row, column))
    return changed
