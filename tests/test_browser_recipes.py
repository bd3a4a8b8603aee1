"""The recipe of a head as a visitor sees it: kinds that are told apart, and the cells that a rule predicts, read from
what is painted."""

from __future__ import annotations

import base64
import io
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

import mha_viz
from mha_viz.analysis.bundled_data import KINDS
from mha_viz.figures.drawing.theme import THEMES
from mha_viz.figures.words.role_words import KIND_COLOURS
from tests.browser_tab import BrowserTab
from tests.painted import RECORD_TEXTS
from tests.vision import VISIONS, compute_luminance

BROWSER = Path(mha_viz.__file__).parent / "browser"
CSS = "\n".join((BROWSER / name).read_text("utf-8") for name in ("kinds.css", "explorer/recipe.css"))
CSS = CSS.replace('@import "../kinds.css";', "")
PAPER = {"light": "#fffefb", "dark": "#14171a"}  # of the pages
pytestmark = pytest.mark.usefixtures("one_thread")


def test_pointing_at_a_rule_marks_the_cells_that_it_predicts(visitor: BrowserTab) -> None:
    visitor.is_altered = True
    visitor.page.add_init_script(f"({RECORD_TEXTS})()")
    visitor.visit(text="The cat sat on the mat.", head="L0H2", words="0")
    page, heat = visitor.page, visitor.page.locator(".heat canvas").first
    before = _painted(heat)
    page.locator(".preview details.more > summary").click()
    page.get_by_role("button", name="the token before", exact=True).hover()
    page.wait_for_timeout(300)
    cells = heat.evaluate("(canvas) => canvas.painted.cells")
    outlined = _changed(before, _painted(heat), cells, (0.02, 0.98))
    assert outlined == {(query, query - 1) for query in range(1, cells["n"])}
    assert _changed(before, _painted(heat), cells, (0.3, 0.7)) == set(), "no cell fades"
    page.mouse.move(2, 2)
    page.wait_for_timeout(300)
    assert _changed(before, _painted(heat), cells, (0.02, 0.98)) == set()


def _painted(canvas: Any) -> npt.NDArray[np.int_]:
    url: str = canvas.evaluate("(canvas) => canvas.toDataURL()")
    image = Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).convert("RGB")
    return np.asarray(image, int)


def _changed(
    one: npt.NDArray[np.int_], other: npt.NDArray[np.int_], cells: dict[str, Any], part: tuple[float, float]
) -> set[tuple[int, int]]:
    """The cells, as row and column, with a pixel that differs in a ``part`` of their width and height."""
    differs = np.abs(one - other).max(axis=2) > 0
    x0, y0, x1, y1 = (cells[end][axis] for end in ("from", "to") for axis in ("x", "y"))
    wide, high = (x1 - x0) / cells["n"], (y1 - y0) / cells["n"]
    changed = set()
    for row in range(cells["n"]):
        for column in range(cells["n"]):
            rows, columns = (
                (round(y0 + (row + share) * high) for share in part),
                (round(x0 + (column + share) * wide) for share in part),
            )
            if differs[slice(*rows), slice(*columns)].any():
                changed.add((row, column))
    return changed


# Beside each other on one line: each kind of the bars, of their height.
KINDS_SHOWN = """([names, colours]) => {
    const bar = Object.assign(document.createElement("b"), { className: "bar part" });
    for (const [at, name] of names.entries()) {
        const part = Object.assign(document.createElement("u"), { className: name });
        if (colours[name]) part.style.setProperty("--colour", colours[name]);
        Object.assign(part.style, { position: "absolute", top: 0, left: `${30 * at}px`, width: "30px", height: "8px" });
        bar.append(part);
    }
    document.body.replaceChildren(bar);
}"""
LEAST = 0.04  # mean difference of luminance, pixel by pixel; two bars of one kind have 0


@pytest.mark.parametrize("media", ["screen", "print"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_kinds_of_rules_are_told_apart_in_grey_and_by_colour_blind_readers(
    visitor: BrowserTab, theme: str, media: str
) -> None:
    """From pixels: any two kinds differ in lightness or pattern, neighbours in a bar among them; on paper, too, where
    browsers leave out backgrounds unless a style sheet insists."""
    names = [*KINDS, "unexplained"]
    pixels = _kinds(visitor, names, theme, media)
    assert not _alike(pixels)
    adjusted = "(parts) => [...new Set(parts.map((part) => getComputedStyle(part).printColorAdjust))]"
    assert visitor.page.locator(".bar.part u").evaluate_all(adjusted) == ["exact"]


def _alike(pixels: dict[str, npt.NDArray[np.uint8]]) -> dict[tuple[str, str, str], float]:
    """The kinds that look the same, with how much they differ."""
    differ = {
        (one, other, by): round(_differs(pixels[one], pixels[other], by), 3)
        for by in VISIONS
        for one, other in combinations(pixels, 2)
    }
    return {pair: differs for pair, differs in differ.items() if differs < LEAST}


def _differs(one: npt.NDArray[np.uint8], other: npt.NDArray[np.uint8], by: str) -> float:
    high, wide = (min(one.shape[axis], other.shape[axis]) for axis in (0, 1))
    seen = (compute_luminance(each[:high, :wide], by) for each in (one, other))
    return float(np.abs(np.subtract(*seen)).mean())


def _kinds(visitor: BrowserTab, names: list[str], theme: str, media: str) -> dict[str, npt.NDArray[np.uint8]]:
    """The pixels [y, x, rgb] of each kind in the bars of a theme."""
    visitor.is_altered = True
    page = visitor.page
    page.emulate_media(color_scheme=theme, media=media)  # type: ignore[arg-type]
    page.set_content(f"<style>html {{ color-scheme: {theme}; background: {PAPER[theme]} }}{CSS}</style>")
    colours = {kind: THEMES[theme].heads[number] for kind, number in KIND_COLOURS.items()}
    page.evaluate(KINDS_SHOWN, [names, colours])
    clip: Any = {"x": 0, "y": 0, "width": 30 * len(names), "height": 8}
    image = np.asarray(Image.open(io.BytesIO(page.screenshot(clip=clip))).convert("RGB"))
    wide = image.shape[1] // len(names)
    return {name: image[:, at * wide : (at + 1) * wide] for at, name in enumerate(names)}
