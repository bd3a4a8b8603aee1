"""The Roles page and the roles on the Explore page, in a real browser on the real server."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from mha_viz.corpus import grammar
from mha_viz.corpus.conllu import as_conllu
from mha_viz.ui.head_grid import TAP
from tests.browser_tab import DESKTOP, PHONE, BrowserTab, open_by_search

# From now on, the greatest number of maps of roles that are visible at a time.
COUNT_MAPS = """() => {
    window.most = 0;
    const look = () => {
        const maps = [...document.querySelectorAll(".st-key-wide_role_map .js-plotly-plot")];
        window.most = Math.max(window.most, maps.filter((map) => map.getClientRects().length).length);
        requestAnimationFrame(look);
    };
    look();
}"""


def test_a_click_on_the_map_opens_the_card_of_the_head_in_place(visitor: BrowserTab) -> None:
    page = visitor.visit("/roles", tray="[]", roles="on")
    chart = page.locator(".st-key-wide_role_map .js-plotly-plot")
    expect(chart).to_be_visible()
    page.evaluate(COUNT_MAPS)
    for _ in range(2):
        expect(chart.locator("text", has_text="prev").first).to_be_visible()
        chart.locator("text", has_text="prev").first.click(force=True)
        expect(page.get_by_role("heading", name="L0H2 (1-3)", exact=True)).to_be_visible()
        visitor.asked(head="L0H2")
        expect(chart).to_have_count(1)
        page.go_back()
        visitor.asked(head=None)
        expect(page.get_by_role("heading", name="L0H2 (1-3)", exact=True)).to_have_count(0)
        expect(chart).to_have_count(1)
    assert page.evaluate("window.most") == 1, "the map before never stands beside the new one"
    page.go_forward()
    page.get_by_role("link", name="Open in Explore").click()
    expect(page.locator(".explorer h2 code")).to_have_text("L0H2 (1-3)")
    expect(page.locator(".one .chip").first).to_contain_text("previous token")
    page.go_back()
    expect(chart).to_be_visible()


def test_what_is_looked_for_is_in_the_address(visitor: BrowserTab) -> None:
    page = visitor.visit("/roles", kinds="position", relation="mod")
    expect(page.get_by_role("textbox", name="Filter relations")).to_have_value("mod")
    expect(page.locator(".st-key-wide_role_map text", has_text="broad")).to_have_count(0)
    open_by_search(page, "L3H1")
    visitor.asked(head="L3H1")
    page.reload()
    expect(page.get_by_text("L3H1 (4-2) in full")).to_be_visible(timeout=60_000)
    expect(page.get_by_role("textbox", name="Filter relations")).to_have_value("mod")


def test_a_link_in_a_table_opens_the_card_without_loading_the_page_again(visitor: BrowserTab) -> None:
    page = visitor.visit("/roles", kinds="position", relation="mod")
    expect(page.locator(".st-key-pages [aria-current=page]")).to_have_text("Roles")  # the script of the page runs
    page.evaluate("window.loaded = 1")
    link = page.locator(".mha-rows a").first
    name = link.inner_text()
    link.focus()
    page.keyboard.press("Enter")
    card = page.get_by_role("heading", name=f"{name} in full")
    expect(card).to_be_focused()
    expect(card).to_be_in_viewport()
    visitor.asked(head=name.split()[0])
    assert page.evaluate("window.loaded") == 1
    expect(page.get_by_role("textbox", name="Filter relations")).to_have_value("mod")
    page.go_back()
    expect(card).to_have_count(0)


def test_the_map_names_what_it_shows(visitor: BrowserTab) -> None:
    page = visitor.visit("/roles")
    label = page.locator(".st-key-wide_role_map text", has_text="prev").first
    box = label.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.locator(".hoverlayer")).to_contain_text("of its attention goes to the token before")


def test_heads_of_a_kind_are_shown_by_one_click(visitor: BrowserTab) -> None:
    page = visitor.explore()
    button = page.get_by_role("button", name="coreference")
    expect(page.locator(".marks .badges")).to_have_count(0)  # not on a first visit
    page.get_by_label("Known roles").check()
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    heads = page.locator(".marks .badges")
    shown = page.locator(".marks .badges:not(.off)").count()
    assert 0 < shown < heads.count()
    button.click()
    expect(page.locator(".marks .badges.off")).to_have_count(0)


def test_gold_is_laid_over_a_head(visitor: BrowserTab) -> None:
    sentence = next(s for s in grammar.corpus().sentences if 8 < len(s.forms) < 20 and len(s.mentions) > 2)
    page = visitor.visit("/", text=" ".join(sentence.forms), head="L2H0")
    expect(page.get_by_text("L2H0 (3-1) against the gold annotation")).to_be_visible(timeout=60_000)
    picture = page.get_by_role("img", name="agree with L2H0")
    expect(picture).to_be_visible()
    assert picture.locator("img").evaluate("image => image.naturalWidth") > 100


def test_the_page_fits_a_phone(newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer(viewport=PHONE, color_scheme="dark")
    page = visitor.visit("/roles", head="L3H1")
    expect(page.get_by_text("L3H1 (4-2) in full")).to_be_visible(timeout=60_000)
    visitor.scrolls_only_down()
    page.emulate_media(color_scheme="light")
    expect(page.locator(".stApp")).to_have_css("background-color", "rgb(255, 254, 251)")
    visitor.scrolls_only_down()


MAPS = {"/roles": ".st-key-wide_role_map", "/switch_off": ".st-key-wide_effects"}


@pytest.mark.parametrize("path", MAPS)
def test_a_phone_shows_every_head_at_once_on_its_first_screen_and_a_narrower_one_scrolls(
    newcomer: Callable[..., BrowserTab], path: str
) -> None:
    page = newcomer(viewport=PHONE).visit(path)
    box = page.locator(MAPS[path])
    columns, rows = (_middles(box, f".{axis}tick text") for axis in "xy")
    assert (len(columns), len(rows)) == (12, 6)
    assert min(after - before for lines in (columns, rows) for before, after in pairwise(lines)) >= TAP
    assert TAP / 2 <= columns[0] < columns[-1] <= PHONE["width"] - TAP / 2
    assert rows[-1] <= PHONE["height"] - TAP / 2
    expect(box).not_to_have_attribute("data-more", "")
    page.set_viewport_size({"width": 280, "height": 700})
    _fades_at_its_edge(box)


def _fades_at_its_edge(box: Locator) -> None:
    """A map that is wider than the page shows that there is more, and keeps its layers visible."""
    expect(box).to_have_attribute("data-more", "")
    expect(box).to_have_css("mask-image", re.compile("gradient"))
    layers = box.locator(".mha-layers")
    first = layers.bounding_box()
    box.evaluate("box => { box.scrollLeft = box.scrollWidth; }")
    expect(box).not_to_have_attribute("data-more", "")
    assert first == layers.bounding_box()
    expect(layers).to_be_visible()


def _middles(box: Locator, ticks: str) -> list[float]:
    """The middle of each label of an axis, in order: columns from left to right, rows downward."""
    expect(box.locator(ticks).first).to_be_visible()
    side = ("left", "right") if ticks.startswith(".x") else ("top", "bottom")
    middles: list[float] = box.locator(ticks).evaluate_all(
        "(ticks, [a, b]) => ticks.map((tick) => tick.getBoundingClientRect()).map((box) => (box[a] + box[b]) / 2)",
        [*side],
    )
    return middles


def test_evidence_opens_with_its_word_held_and_its_gold_arc_in_view(visitor: BrowserTab) -> None:
    page = visitor.visit("/roles", head="L3H1")
    page.locator("a[href*='case=']").first.click(timeout=60_000)
    visitor.drawn()
    expect(visitor.title).to_have_text("L3H1 (4-2)")
    arc = page.get_by_role("img", name="The gold arc of")
    expect(arc).to_be_visible()
    word = re.search("“(.+)”", arc.get_attribute("aria-label") or "")
    assert word
    expect(visitor.readout).to_contain_text(word[1])
    box = arc.bounding_box()
    assert box
    assert 0 <= box["y"] < box["y"] + box["height"] <= DESKTOP["height"]


def test_a_file_of_ones_own_is_measured_with_progress(visitor: BrowserTab, tmp_path: Path) -> None:
    path = tmp_path / "own.conllu"
    path.write_text(as_conllu(grammar.corpus(40, seed=77).sentences), "utf-8")
    page = visitor.visit("/roles", corpus="file")
    page.locator("input[type=file]").set_input_files(path)
    page.get_by_role("button", name="Measure own.conllu").click()
    expect(page.get_by_text("Measured on own.conllu")).to_be_visible(timeout=120_000)
    page.reload()  # a new session: the file's name stayed with the previous one
    expect(page.get_by_text("Measured on an uploaded file")).to_be_visible(timeout=60_000)


def test_charts_follow_when_the_page_turns_from_dark_to_light(newcomer: Callable[..., BrowserTab]) -> None:
    page = newcomer(color_scheme="dark").visit("/roles")
    tick = page.locator(".js-plotly-plot .xtick text").first
    expect(tick).to_have_css("fill", "rgb(163, 168, 174)")
    page.emulate_media(color_scheme="light")
    expect(tick).to_have_css("fill", "rgb(93, 98, 104)")


def _built_in_sentences(page: Page) -> None:
    page.get_by_role("radio", name="built-in sentences").click()
    page.wait_for_function("() => new URLSearchParams(location.search).get('corpus') === 'grammar'")
    expect(page.get_by_text(re.compile("ha(s|ve) not been measured yet|Measured on the built-in"))).to_be_visible()


@pytest.mark.parametrize("parameters", [{"head": "L3H1"}, {"kinds": "syntax"}])
def test_a_click_after_a_link_works(visitor: BrowserTab, parameters: dict[str, str]) -> None:
    page = visitor.visit("/roles", **parameters)
    expect(page.locator(".st-key-wide_role_map .js-plotly-plot")).to_be_visible()
    _built_in_sentences(page)
    assert visitor.address == {**parameters, "corpus": "grammar"}
    page.go_back()
    visitor.asked(corpus=None, **parameters)
    expect(page.locator(".st-key-wide_role_map .js-plotly-plot")).to_be_visible()


def test_a_cell_of_a_filtered_map_opens_the_head(visitor: BrowserTab) -> None:
    page = visitor.visit("/roles")
    page.get_by_role("button", name="syntax").click()
    visitor.asked(kinds="syntax")
    chart = page.locator(".st-key-wide_role_map .js-plotly-plot")
    expect(chart.locator("text", has_text="prev")).to_have_count(0)
    chart.locator("text", has_text="obj").first.click(force=True)
    expect(page.get_by_role("link", name="Open in Explore")).to_be_visible()
    assert visitor.address["kinds"] == "syntax"


def test_what_is_typed_survives_a_click_that_follows_at_once(visitor: BrowserTab) -> None:
    page = visitor.visit("/roles")
    page.get_by_role("textbox", name="Filter relations").fill("mod")
    page.get_by_role("button", name="syntax").click()
    visitor.asked(relation="mod", kinds="syntax")
    expect(page.get_by_role("textbox", name="Filter relations")).to_have_value("mod")


def test_the_squares_of_the_map_keep_their_words_on_a_phone(newcomer: Callable[..., BrowserTab]) -> None:
    page = newcomer(viewport=PHONE).visit("/roles")
    words = page.locator(".st-key-wide_role_map .textpoint text")
    expect(words.filter(has_text="+1").first).to_be_visible()
    expect(words.filter(has_text="prev").first).to_have_css("font-size", "9px")
