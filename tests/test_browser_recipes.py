"""The recipe of a head as a visitor sees it: bars on one scale, and the cells that a rule predicts, read from what is
painted."""

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
from playwright.sync_api import expect

import mha_viz
from mha_viz.analysis.described import KINDS, of_heads
from mha_viz.figures.role_words import KIND_COLOURS
from mha_viz.figures.theme import THEMES
from tests.browser_tab import PHONE, BrowserTab
from tests.painted import NOTE
from tests.vision import SEEN, lightness

BROWSER = Path(mha_viz.__file__).parent / "browser"
CSS = "\n".join((BROWSER / name).read_text("utf-8") for name in ("kinds.css", "explorer/recipe.css"))
CSS = CSS.replace('@import "../kinds.css";', "")
PAPER = {"light": "#fffefb", "dark": "#14171a"}  # of the pages
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
    const bar = Object.assign(document.createElement("b"), { className: "recipe" });
    for (const [at, name] of names.entries()) {
        const part = Object.assign(document.createElement("u"), { className: name });
        if (colours[name]) part.style.setProperty("--colour", colours[name]);
        Object.assign(part.style, { position: "absolute", top: 0, left: `${30 * at}px`, width: "30px", margin: 0 });
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
    assert visitor.page.locator(".recipe u").evaluate_all(adjusted) == ["exact"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_bars_on_a_phone_are_told_apart(visitor: BrowserTab, theme: str) -> None:
    """At 390 pixels, where a bar has 20 of them: the widest part of each kind on the page itself, compared along the
    width that both have."""
    visitor.is_altered = True
    visitor.page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    visitor.resize(PHONE)
    visitor.explore(text="The cat sat on the mat.")
    drawn = visitor.page.locator(".marks > .recipe")
    expect(drawn).to_have_count(len(of_heads("minilm")))
    widest: dict[str, tuple[float, Any]] = {}
    for bar in drawn.all():
        for part in bar.locator("u").all():
            box = part.bounding_box()
            assert box is not None
            assert box["height"] == 4
            name = str(part.get_attribute("class"))
            widest[name] = max(widest.get(name, (0.0, None)), (box["width"], part), key=lambda each: each[0])
    pixels = {name: _photographed(part) for name, (_, part) in widest.items()}
    assert pixels.keys() == {*KINDS, "unexplained"}
    assert not _alike(pixels)


def _photographed(part: Any) -> npt.NDArray[np.uint8]:
    return np.asarray(Image.open(io.BytesIO(part.screenshot())).convert("RGB"))


def _alike(pixels: dict[str, npt.NDArray[np.uint8]]) -> dict[tuple[str, str, str], float]:
    """The kinds that look the same, with how much they differ."""
    differ = {
        (one, other, by): round(_differs(pixels[one], pixels[other], by), 3)
        for by in SEEN
        for one, other in combinations(pixels, 2)
    }
    return {pair: differs for pair, differs in differ.items() if differs < LEAST}


def _differs(one: npt.NDArray[np.uint8], other: npt.NDArray[np.uint8], by: str) -> float:
    high, wide = (min(one.shape[axis], other.shape[axis]) for axis in (0, 1))
    seen = (lightness(each[:high, :wide], by) for each in (one, other))
    return float(np.abs(np.subtract(*seen)).mean())


def _kinds(visitor: BrowserTab, names: list[str], theme: str, media: str) -> dict[str, npt.NDArray[np.uint8]]:
    """The pixels [y, x, rgb] of each kind in the bars of a theme."""
    visitor.is_altered = True
    page = visitor.page
    page.emulate_media(color_scheme=theme, media=media)  # type: ignore[arg-type]
    page.set_content(f"<style>html {{ color-scheme: {theme}; background: {PAPER[theme]} }}{CSS}</style>")
    colours = {kind: THEMES[theme].heads[number] for kind, number in KIND_COLOURS.items()}
    page.evaluate(KINDS_SHOWN, [names, colours])
    clip: Any = {"x": 0, "y": 0, "width": 30 * len(names), "height": 4}
    image = np.asarray(Image.open(io.BytesIO(page.screenshot(clip=clip))).convert("RGB"))
    wide = image.shape[1] // len(names)
    return {name: image[:, at * wide : (at + 1) * wide] for at, name in enumerate(names)}
