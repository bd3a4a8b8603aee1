"""Comparing heads and downloading figures, in a real browser on the real server."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as Tree

import pypdfium2
import pytest
from playwright.sync_api import Page, expect

from mha_viz.attention import Head
from mha_viz.ui import tray
from mha_viz.ui.request import examples
from mha_viz.ui.tray import Pin
from tests.browser_tab import PHONE, BrowserTab

FIRST = examples()[0]["text"]
WIDE = FIRST.replace("tired", "wide")
TWO = tray.write([Pin(FIRST, "", "minilm", Head(3, 1)), Pin(WIDE, "", "minilm", Head(3, 1), "wide")]) or ""


def panel(page: Page, number: int) -> str:
    return " ".join(page.locator("article.panel").nth(number).inner_text().split())


def test_a_head_goes_from_the_grid_to_the_tray_and_into_a_link(visitor: BrowserTab) -> None:
    page = visitor.explore()
    page.get_by_text("+ Compare").click()
    visitor.asked(tray=tray.write([Pin(FIRST, "", "minilm", Head(3, 1))]))
    expect(page.get_by_role("link", name="Compare (1)")).to_be_visible()
    visitor.grid.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("c")
    page.wait_for_function("() => new URLSearchParams(location.search).get('tray').includes('L3H2')")
    visitor.read("Cats sleep.")  # the compared heads outlive the text that they came from
    page.get_by_role("link", name="Compare").click()
    expect(page.locator("article.panel")).to_have_count(2)
    expect(page.locator("article.panel").nth(1)).to_contain_text("L3H2")
    page.get_by_role("button", name="Remove: panel 1").click()
    expect(page.locator("article.panel")).to_have_count(1)
    page.go_back()
    expect(page.locator("article.panel")).to_have_count(2)  # Back is undo


def test_heads_with_others_switched_off_and_other_quantities_are_compared(visitor: BrowserTab) -> None:
    page = visitor.explore(off="L0H1", how="uniform")
    page.get_by_text("+ Compare").click()
    pin = Pin(FIRST, "", "minilm", Head(3, 1), off=(Head(0, 1),), how="uniform")
    visitor.asked(tray=tray.write([pin]))
    page.get_by_role("button", name="Switch on").click()
    visitor.asked(off=None)
    page.get_by_role("combobox", name="Shown").select_option("rollout")
    visitor.asked(shown="rollout")
    expect(page.locator(".one h2")).to_have_text("After layer 5, all heads together")
    page.get_by_text("+ Compare").click()
    visitor.asked(tray=tray.write([pin, Pin(FIRST, "", "minilm", Head(5, 0))]))
    page.get_by_role("link", name="Compare (2)").click()
    expect(page.locator("article.panel")).to_have_count(2)
    assert "without L0H1: uniform" in panel(page, 0)
    assert "rollout" in panel(page, 1)


def test_a_word_pointed_at_is_shown_in_every_panel(visitor: BrowserTab) -> None:
    page = visitor.visit("/compare", tray=TWO)
    expect(page.locator("article.panel")).to_have_count(2)
    canvas = page.locator("article.panel canvas").first
    box = canvas.bounding_box()
    assert box
    for y in range(4, int(box["height"]), 6):
        page.mouse.move(box["x"] + 8, box["y"] + y)
        if "it → animal 0.677," in panel(page, 0):
            break
    assert "it → animal 0.677," in panel(page, 0)
    assert "it → [CLS] 0.326, animal 0.281," in panel(page, 1)


def test_a_cold_link_opens_the_difference(visitor: BrowserTab) -> None:
    page = visitor.visit("/compare", tray=TWO, diff="0-1")
    expect(page.get_by_text("Jensen–Shannon divergence").first).to_be_visible()
    expect(page.get_by_text("tired / wide").first).to_be_visible()


def test_a_word_is_replaced_in_place(visitor: BrowserTab) -> None:
    page = visitor.visit("/compare", show="word")
    field = page.get_by_label("Change a word, then press Enter")
    expect(field).to_have_value(WIDE)
    expect(page.get_by_text("tired / wide").first).to_be_visible()  # this link does not mention a difference
    field.fill(FIRST.replace("tired", "old"))
    field.press("Enter")
    visitor.asked(second=FIRST.replace("tired", "old"))
    expect(page.locator("article.panel").nth(1)).to_contain_text("old")
    visitor.asked(diff="0-1")
    expect(page.get_by_text("tired / old").first).to_be_visible()
    page.get_by_role("button", name="Close", exact=True).click()
    visitor.asked(diff="none")
    expect(page.get_by_text("Jensen–Shannon divergence").first).to_be_hidden()


def test_a_point_of_the_map_is_chosen(visitor: BrowserTab) -> None:
    page = visitor.visit("/compare", show="map")
    points = page.locator(".st-key-map_box .js-plotly-plot .scatterlayer .point")
    expect(points).to_have_count(72)
    page.locator(".st-key-map_box .js-plotly-plot .nsewdrag").first.wait_for()
    box = points.first.bounding_box()  # L0H0, which is separate from the others
    assert box
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_function("() => new URLSearchParams(location.search).get('head') !== null")
    expect(page.get_by_text("Most similar to L")).to_be_visible()


def test_a_narrow_page_shows_the_map_upright(newcomer: Callable[..., BrowserTab]) -> None:
    page = newcomer(viewport=PHONE).visit("/compare", show="map")
    upright = page.locator(".st-key-map_standing_box .js-plotly-plot .scatterlayer")
    expect(upright.locator(".point")).to_have_count(72)
    expect(page.locator(".st-key-map_box")).to_be_hidden()
    box = upright.bounding_box()
    assert box
    assert box["width"] > 230
    assert box["height"] > 380


@pytest.mark.parametrize("suffix", ["SVG", "PDF", "PNG", "CSV"])
def test_a_figure_is_downloaded(visitor: BrowserTab, suffix: str) -> None:
    page = visitor.explore(head="L3H1", special="rescale")
    page.get_by_text("Download figure and numbers").click()
    with page.expect_download() as started:
        page.get_by_role("button", name=suffix, exact=True).click()
    path = Path(started.value.path())
    assert started.value.suggested_filename == f"heatmap-L3H1.{suffix.lower()}"
    if suffix == "SVG":
        assert "L3H1 (4-2)" in (Tree.fromstring(path.read_bytes()).findtext("{http://www.w3.org/2000/svg}desc") or "")
    elif suffix == "PDF":
        assert "animal" in pypdfium2.PdfDocument(path)[0].get_textpage().get_text_range()
    else:
        assert path.stat().st_size > 1000
    page.get_by_text("Links of L3H1", exact=True).click()
    expect(page.get_by_text("a.links(layer=3, head=1")).to_be_visible()


def test_the_preview_has_the_shape_of_the_file(visitor: BrowserTab) -> None:
    page = visitor.explore(head="L3H1")
    page.get_by_text("Download figure and numbers").click()
    preview = page.get_by_alt_text("Preview of the figure")
    expect(preview).to_be_visible()
    shown, whole = preview.evaluate("i => [i.clientWidth / i.clientHeight, i.naturalWidth / i.naturalHeight]")
    assert shown == pytest.approx(whole, rel=0.01)


def test_the_whole_tray_is_downloaded(visitor: BrowserTab) -> None:
    page = visitor.visit("/compare", tray=TWO)
    page.get_by_text("Download figure and numbers").click()
    everything = page.get_by_role("button", name="All compared heads")
    everything.wait_for()
    page.locator(".stApp[data-test-script-state=notRunning]").wait_for()  # a run that goes on makes the button anew
    with page.expect_download() as started:
        everything.click()
    with zipfile.ZipFile(io.BytesIO(Path(started.value.path()).read_bytes())) as file:
        assert file.testzip() is None
        assert "2-L3H1-links.svg" in file.namelist()


EDGES = """all => all.map(button => {
  const style = getComputedStyle(button);
  return new Set(["Top", "Right", "Bottom", "Left"].map(side => style[`border${side}Color`])).size;
})"""


@pytest.mark.parametrize("show", ["tray", "layer", "word", "map"])
def test_a_phone_shows_it_without_scrolling_sideways(newcomer: Callable[..., BrowserTab], show: str) -> None:
    visitor = newcomer(viewport=PHONE, has_touch=True, is_mobile=True, device_scale_factor=2)
    page = visitor.visit("/compare", tray=TWO, show=show)
    expect(page.locator("article.panel, .js-plotly-plot").locator("visible=true").first).to_be_visible()
    visitor.scrolls_only_down()
    assert set(page.locator(".st-key-show button").evaluate_all(EDGES)) == {1}, "one has uneven borders"
