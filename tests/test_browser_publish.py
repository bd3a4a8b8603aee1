"""A published page in a real browser, opened from disk: it draws, reacts to the pointer, and makes no requests."""

from __future__ import annotations

from pathlib import Path

import pytest
from fontTools.ttLib import TTFont
from playwright.sync_api import Browser, expect

import mha_viz as mv
from mha_viz.figures.drawing import fonts
from mha_viz.figures.drawing.font_file import Font
from mha_viz.models.reading.encoder import Encoder
from tests.browser_tab import PATIENCE, BrowserTab

# The page's own faces, and how wide a text is in the font of its words, at 100 px.
MEASURED = """(text) => {
    const span = document.body.appendChild(document.createElement("span"));
    span.textContent = text;
    span.style.cssText = "font: 400 100px var(--st-font); font-kerning: none; text-rendering: geometricPrecision";
    span.style.whiteSpace = "nowrap";
    const faces = [...document.fonts].map((face) => `${face.family} ${face.weight} ${face.status}`);
    const width = span.getBoundingClientRect().width;
    span.style.font = "600 100px var(--st-heading-font)";
    span.style.fontKerning = "none";
    const headings = ["#published > h1", "#published h2"].map((one) => getComputedStyle(document.querySelector(one)));
    const families = headings.map((style) => style.fontFamily.split(",")[0]);
    return [faces, width, span.getBoundingClientRect().width, families];
}"""
REMARK = "It finds <img src=x onerror=\"window.__xss = 'it ran'\"> the animal."


def advances(text: str, font: Font) -> float:
    """How wide a text is at 100 px by the font file."""
    file = TTFont(font.path)
    glyphs, widths = file.getBestCmap(), file["hmtx"].metrics
    return 100 * sum(widths[glyphs[ord(letter)]][0] for letter in text) / file["head"].unitsPerEm


def test_it_opens_from_a_disk_and_its_drawings_answer(browser: Browser, minilm: Encoder, tmp_path: Path) -> None:
    attention = minilm.encode("The animal didn't cross the street because it was too tired.")
    file = mv.publish([(attention, "L3H1"), (attention, "L0H2")], tmp_path / "heads.html", remarks=[REMARK])
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    requested: list[str] = []
    faults: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.goto(file.as_uri())
    expect(page.locator("html")).to_have_attribute("data-painted", "yes")
    assert page.locator("#published > section").count() == 3
    expect(page.locator(".remark")).to_have_text(REMARK)
    first = page.locator("#published > section").nth(1)
    links = first.locator("canvas:visible").first
    links.scroll_into_view_if_needed()
    expect(first).to_contain_text("strongest between words")
    box = links.bounding_box()
    assert box
    page.mouse.move(box["x"] + 20, box["y"] + box["height"] / 2)
    expect(first).not_to_contain_text("strongest between words")
    chosen = page.locator("input[type=radio]:checked")
    assert chosen.count() == 3 * page.locator("#published > section").count()  # each drawing has its own
    faces, width, of_heading, families = page.evaluate(MEASURED, "it → animal 0.677")
    assert {"mha_viz Sans 400 loaded", "mha_viz Sans 600 loaded", "mha_viz Serif 600 loaded"} <= set(faces)
    assert families == 2 * ['"mha_viz Serif"'], "as the app's headings"
    assert of_heading == pytest.approx(advances("it → animal 0.677", fonts.get_serif(600)), abs=1)
    assert width == pytest.approx(fonts.width("it → animal 0.677", 100), abs=1)  # whatever fonts the machine has
    assert faults == []
    assert [url for url in requested if not url.startswith(("file:", "data:"))] == []
    assert page.evaluate("window.__xss") is None
    context.close()


def test_what_was_typed_just_before_the_click_is_in_the_file(visitor: BrowserTab) -> None:
    page = visitor.visit("/compare", head="L3H1")
    page.get_by_text("Publish as one web page").click()
    download = page.get_by_role("button", name="Download the page (HTML)")
    for remark, held in (("It finds the animal.", 0), ("With “wide”, it does not.", 150)):  # ms that the button is held
        page.get_by_role("textbox", name="Remark on panel 1").fill(remark)
        with page.expect_download() as file:
            download.click(delay=held)
        assert remark in file.value.path().read_text("utf-8")
