"""The Roles page and the roles on the Explore page, in a real browser on the real server."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from mha_viz.app.widgets.head_grid import TAP_PIXELS
from mha_viz.corpus import grammar
from mha_viz.corpus.conllu import format_conllu
from tests.browser_tab import DESKTOP, PHONE, BrowserTab, open_by_search
from tests.late_server import LateServer
from tests.waiting import until

LONG = 300_000  # milliseconds: another process imports torch and measures
MAP = ".mha-map"
# Elements that the run has not drawn again yet, once there are some; Streamlit fades them after half a second.
STALE = """() => {
  const old = Array.from(document.querySelectorAll("[data-stale=true]"), (one) => getComputedStyle(one));
  return old.length && old.map(({ opacity, transitionDuration }) => ({ opacity, seconds: transitionDuration }));
}"""
# Of each shape, its kind of role.
KINDS = "shapes => shapes.map((shape) => shape.classList[0])"
# Of each mark or square, what tells it apart without its colour.
FORMS = """(marks) => marks.map((mark) => {
  const { borderTopStyle, borderTopWidth, backgroundImage } = getComputedStyle(mark);
  return `${borderTopStyle} ${borderTopWidth} ${backgroundImage === "none" ? "" : "half"}`;
})"""
# The name and the mask of each glyph, which may be drawn by a part of the element.
GLYPHS = """(glyphs, part) => glyphs.map((glyph) => [
    glyph.className.replace(/glyph|active/g, "").trim(), getComputedStyle(glyph, part).maskImage])"""

# The contrast of marks to the page's background.
CONTRASTS = """(marks) => {
  const context = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d");
  const light = (...layers) => {
    for (const [colour, opacity] of layers) {
      Object.assign(context, { fillStyle: colour, globalAlpha: opacity });
      context.fillRect(0, 0, 1, 1);
    }
    const [r, g, b] = [...context.getImageData(0, 0, 1, 1).data].map((value) => (value / 255) ** 2.2);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  };
  return marks.map((mark) => {
    const style = getComputedStyle(mark, "::before");
    const paper = [getComputedStyle(mark).getPropertyValue("--st-background-color"), 1];
    const [one, other] = [light(paper), light(paper, [style.backgroundColor, style.opacity])];
    return Math.max(one, other) / Math.min(one, other);
  });
}"""


def card(page: Page) -> Locator:
    return page.get_by_role("heading", name="L3H1 (4-2)", exact=True)


# ---- The Roles page -------------------------------------------------------------------------------------


def test_the_map_opens_cards_in_place_and_what_is_looked_for_is_in_the_address(visitor: BrowserTab) -> None:
    visitor.roles(tray="[]", roles="on")
    the_map_names_what_it_shows_and_a_click_opens_the_card_in_place(visitor)
    what_is_looked_for_is_in_the_address(visitor)


def the_map_names_what_it_shows_and_a_click_opens_the_card_in_place(visitor: BrowserTab) -> None:
    page = visitor.page
    square = page.get_by_role("link", name="L0H2 (1-3): token → the one before")
    square.click()
    opened = page.get_by_role("heading", name="L0H2 (1-3)", exact=True)
    expect(opened).to_be_focused()
    visitor.wait_for_parameters(head="L0H2")
    expect(square).to_have_attribute("aria-current", "true")
    page.go_back()
    visitor.wait_for_parameters(head=None)
    expect(opened).to_have_count(0)
    page.go_forward()
    page.get_by_role("link", name="Open in Explore").click()
    expect(page.locator(".explorer h2 code")).to_have_text("L0H2 (1-3)")
    expect(page.locator(".one .chip").first).to_contain_text("previous token")
    page.go_back()
    expect(opened).to_be_visible()
    arrow_keys_go_from_square_to_square_and_enter_opens_one(visitor)
    page.go_back()
    page.go_back()
    visitor.wait_for_parameters(head=None)
    expect(page.locator(f"{MAP} td a[aria-current=true]")).to_have_count(0)  # the map is drawn anew
    assert not [url for url in visitor.requests if "lotly" in url], "no chart of Plotly's is on the page"


def test_no_veil_comes_over_the_page_while_a_run_takes_long(visitor: BrowserTab) -> None:
    """The server begins a run and then says nothing for longer than Streamlit waits before it fades what is old."""
    visitor.is_altered = True
    page, server = visitor.page, LateServer(visitor.page)
    visitor.roles(tray="[]", roles="on")
    page.wait_for_selector("[data-test-script-state=notRunning]")
    server.hold_back(in_time=("new_session", "session_status_changed", "page_info_changed"))
    page.get_by_role("link", name="L0H2 (1-3): token → the one before").click()
    old = page.wait_for_function(STALE).json_value()
    assert {(one["opacity"], one["seconds"]) for one in old} == {("1", "0s")}


def arrow_keys_go_from_square_to_square_and_enter_opens_one(visitor: BrowserTab) -> None:
    page = visitor.page
    stops = page.locator(f"{MAP} td a[tabindex='0']")
    expect(stops).to_have_count(1)
    stops.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowLeft", "ArrowUp", "ArrowDown"):
        page.keyboard.press(key)
    square = page.get_by_role("link", name="L3H1 (4-2): pronoun → what it refers to, right in 66%")
    expect(square).to_be_focused()
    expect(stops).to_have_count(1)
    assert "right in 66%" in square.evaluate("square => getComputedStyle(square, '::after').content")
    page.keyboard.press("Enter")
    visitor.wait_for_parameters(head="L3H1")
    expect(card(page)).to_be_focused()


def what_is_looked_for_is_in_the_address(visitor: BrowserTab) -> None:
    page = visitor.page
    kinds = page.get_by_role("toolbar", name="Roles to show").get_by_role("link")
    expect(page.locator(".stApp")).to_have_attribute("data-test-script-state", "notRunning")  # the card is there
    kinds.first.focus()
    page.keyboard.press("ArrowRight")
    expect(kinds.nth(1)).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator(f"{MAP} summary")).to_be_focused()
    page.keyboard.press("Enter")  # what the shapes mean
    expect(page.locator(f"{MAP} li").first).to_be_visible()
    expect(page.locator(f"{MAP} li").last).to_contain_text("also delimiter")
    page.get_by_text("Numbers", exact=True).click()
    page.get_by_role("textbox", name="Filter relations").fill("mod")
    page.get_by_role("link", name="syntax", exact=True).click()  # what is typed survives a click that follows at once
    visitor.wait_for_parameters(relation="mod", kinds="syntax")
    expect(page.get_by_role("link", name="L0H2 (1-3): no role")).to_be_visible()
    expect(page.locator(f"{MAP} li").first).to_be_visible()  # although the map was drawn anew
    page.keyboard.press("Escape")
    expect(page.locator(f"{MAP} li").first).to_be_hidden()
    expect(page.locator(f"{MAP} summary")).to_be_focused()
    expect(page.get_by_role("textbox", name="Filter relations")).to_have_value("mod")
    page = visitor.roles(kinds="position", relation="mod")
    a_box_before_a_row_opens_the_card_at_every_click(visitor)
    a_link_in_a_table_opens_the_card_without_loading_the_page_again(visitor)
    open_by_search(page, "L3H1")
    visitor.wait_for_parameters(head="L3H1", kinds="position", relation="mod")
    page.reload()
    expect(card(page)).to_be_visible()
    expect(page.get_by_role("textbox", name="Filter relations")).to_have_value("mod")
    a_click_after_a_link_works(visitor)


def a_link_in_a_table_opens_the_card_without_loading_the_page_again(visitor: BrowserTab) -> None:
    page = visitor.page
    page.wait_for_selector('[data-test-script-state="notRunning"]')  # no table comes below the last one any more
    page.evaluate("window.loaded = 1")
    link = page.locator("table.mha-rows a").last
    name = link.inner_text()
    link.focus()
    page.keyboard.press("Enter")
    opened = page.get_by_role("heading", name=name, exact=True)
    expect(opened).to_be_focused()
    expect(opened).to_be_in_viewport()
    visitor.wait_for_parameters(head=name.split()[0])
    assert page.evaluate("window.loaded") == 1
    expect(page.get_by_role("textbox", name="Filter relations")).to_have_value("mod")
    page.go_back()
    expect(opened).to_have_count(0)


def a_box_before_a_row_opens_the_card_at_every_click(visitor: BrowserTab) -> None:
    page = visitor.page
    page.get_by_text("All numbers of these roles", exact=True).click()
    table = page.locator(".st-key-rows_roles [data-testid=stDataFrame]")
    for row, head in ((0, "L0H2"), (1, "L1H8"), (1, "L1H8")):
        table.click(position={"x": 18, "y": 50 + 33 * row})
        visitor.wait_for_parameters(head=head)
        opened = page.get_by_role("heading", name=head, exact=False).first
        expect(opened).to_be_focused()
        expect(opened).to_be_in_viewport()
        if row == 1:
            page.go_back()  # the box stays ticked, and the next click opens its head again
            visitor.wait_for_parameters(head="L0H2")
            expect(page.get_by_role("heading", name="L0H2", exact=False).first).to_be_visible()
    table.locator("canvas").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+Space")
    expect(page.get_by_role("heading", name="L1H8 (2-9)", exact=True)).to_be_focused()
    for _ in range(2):
        page.go_back()
    visitor.wait_for_parameters(head=None)


def a_click_after_a_link_works(visitor: BrowserTab) -> None:
    page, before = visitor.page, visitor.address
    expect(page.locator(MAP)).to_be_visible()
    page.get_by_role("radio", name="built-in").click()
    visitor.wait_for_parameters(corpus="grammar")
    expect(page.get_by_text(re.compile("have not been measured on|Measured on the built-in"))).to_be_visible()
    assert visitor.address == {**before, "corpus": "grammar"}
    page.go_back()
    visitor.wait_for_parameters(corpus=None, **before)
    expect(page.locator(MAP)).to_be_visible()


def test_a_file_of_ones_own_is_measured_with_progress(visitor: BrowserTab, tmp_path: Path) -> None:
    path = tmp_path / "own.conllu"
    path.write_text(format_conllu(grammar.corpus(40, seed=77).sentences), "utf-8")
    page = visitor.roles(corpus="file", model="toy")
    page.locator("input[type=file]").set_input_files(path)
    page.get_by_role("button", name="Measure own.conllu").click()
    expect(page.get_by_text("Measured on own.conllu")).to_be_visible(timeout=LONG)
    page.reload()  # a new session: the file's name stayed with the previous one
    expect(page.get_by_text("Measured on an uploaded file")).to_be_visible()


# ---- Roles on Explore -----------------------------------------------------------------------------------


def test_what_heads_do_to_the_rule_is_told_apart_without_colour(visitor: BrowserTab) -> None:
    page = visitor.roles()
    key, squares = page.locator(f"{MAP} .states s"), page.locator(f"{MAP} td a:is(.equals, .below)")
    expect(key).to_have_count(3)
    for forced in ("none", "active"):
        page.emulate_media(forced_colors=forced)
        assert len({*key.evaluate_all(FORMS)}) == 3, forced
        assert len({*squares.evaluate_all(FORMS)}) == 2, forced
    page.emulate_media(forced_colors="none")


def test_one_click_names_the_rules_of_all_roles_of_a_head(visitor: BrowserTab) -> None:
    page = visitor.roles(head="L2H8")
    words = page.locator(".st-key-head_card .mha-rows small")
    expect(words).to_have_count(5)
    expect(words.first).to_be_hidden()
    page.locator(".st-key-head_card .rule summary").focus()
    page.keyboard.press("Enter")
    for each in words.all():
        expect(each).to_be_visible()
    expect(words.first).to_contain_text("The nearest noun, name, pronoun, number or symbol to the right: 69%")
    page.keyboard.press("Enter")
    expect(words.last).to_be_hidden()


def test_roles_lead_from_the_grid_to_the_card_and_to_evidence(visitor: BrowserTab) -> None:
    page = visitor.explore()
    heads_of_a_kind_are_shown_by_one_click(page)
    chips_are_buttons_that_explain_themselves_and_lead_to_the_card(visitor)
    example = page.locator("a[href*='case=']").first
    expect(example).to_have_text("Anna called because she was late")  # of its first role, whose corpus is not shipped
    example.click()
    expect(visitor.readout).to_contain_text("she attends to Anna")
    visitor.roles(head="L2H8")
    page.locator("a[href*='case=']").first.click()
    evidence_opens_with_its_word_held_and_its_gold_arc_in_view(visitor)
    gold_is_laid_over_a_head(visitor)


def heads_of_a_kind_are_shown_by_one_click(page: Page) -> None:
    button = page.get_by_role("button", name="coreference")
    expect(page.locator(".marks .badges")).to_have_count(0)  # not on a first visit
    page.locator("details.drawing").evaluate("menu => { menu.open = true; }")
    page.get_by_label("Label roles").check()
    button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    heads = page.locator(".marks .badges")
    shown = page.locator(".marks .badges:not(.off)").count()
    assert 0 < shown < heads.count()
    over = page.locator(".marks .badges.off")  # drawn anew after the click: a style may be read of one that has left
    backgrounds = "boxes => boxes.map((b) => getComputedStyle(b).backgroundColor)"
    until(lambda: {*over.evaluate_all(backgrounds)} == {"rgba(0, 0, 0, 0)"})
    expect(page.locator(".signs")).to_have_text("not hereanother role")  # the key
    shapes = [{*page.locator(f"{box} s").evaluate_all(KINDS)} for box in (".kinds", ".marks .badges")]
    assert shapes[0] >= shapes[1] > set(), "each shape in the grid stands beside the name of its kind"
    button.click()
    expect(page.locator(".marks .badges.off")).to_have_count(0)


def test_the_grid_has_the_glyphs_of_the_map(visitor: BrowserTab) -> None:
    page = visitor.explore(roles="on")
    glyphs = page.locator(".marks .badges .glyph")
    expect(glyphs.nth(10)).to_be_attached()
    drawn = dict(glyphs.evaluate_all(GLYPHS, "::before"))
    expect(page.get_by_role("img", name=re.compile("^(coreference, syntax|syntax, coreference)$"))).to_have_count(
        1
    )  # L3H1
    sizes = glyphs.evaluate_all("glyphs => glyphs.map((glyph) => glyph.getBoundingClientRect().width)")
    assert min(sizes) >= 17
    assert max(sizes) <= 26
    resting = page.locator(".badges > :not(.active)")  # what does not show in this sentence
    assert min(resting.evaluate_all(CONTRASTS)) >= 3
    visitor.set_colour_scheme("dark")
    until(lambda: min(resting.evaluate_all(CONTRASTS)) >= 3)  # once the drawing has the new colours, too
    visitor.roles()
    expect(page.locator(f"{MAP} ol i").nth(1)).to_be_attached()
    shapes = page.locator(f"{MAP} ol i").evaluate_all("all => all.map((one) => getComputedStyle(one).clipPath)")
    assert len({*shapes, "none"}) == len(shapes) + 1 > 2, "forced colours paint all alike"
    ((name, picture),) = page.locator(f"{MAP} summary b").evaluate_all(GLYPHS, None)
    assert (name, picture.partition(":")[0]) == ("shapes", 'url("data'), "drawn as they are, not from colours and dots"
    expect(page.locator(f"{MAP} summary :is(u, i)")).to_have_count(0)
    in_map = page.locator(".mha-map td b")
    expect(in_map.nth(10)).to_be_attached()
    assert drawn == dict(in_map.evaluate_all(GLYPHS, None))
    assert {"previous", "next", "coreference", "syntax", "delimiter", "broad"} <= drawn.keys()


def chips_are_buttons_that_explain_themselves_and_lead_to_the_card(visitor: BrowserTab) -> None:
    page = visitor.page
    chip = page.locator(".one .chip button").first
    tip = page.locator(".one .chip .tip").first
    expect(tip).to_be_hidden()
    chip.focus()
    expect(tip).to_be_visible()
    expect(tip).to_contain_text("66.3%")
    expect(tip).to_contain_text("pronoun → what it refers to, as “she” → “Anna”")
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    expect(visitor.readout).to_contain_text("it attends to")  # the held word stays
    page.keyboard.press("Enter")
    visitor.wait_for_parameters(head="L3H1")
    expect(card(page)).to_be_visible()


def evidence_opens_with_its_word_held_and_its_gold_arc_in_view(visitor: BrowserTab) -> None:
    expect(visitor.title).to_have_text("L2H8 (3-9)")
    visitor.wait_until_drawn()
    arc = visitor.page.get_by_role("img", name="The gold arc of")
    expect(arc).to_be_visible()
    word = re.search("“(.+)”", arc.get_attribute("aria-label") or "")
    assert word
    expect(visitor.readout).to_contain_text(word[1])
    expect(arc).to_be_in_viewport(ratio=1)
    box = arc.bounding_box()
    assert box
    assert 0 <= box["y"] < box["y"] + box["height"] <= DESKTOP["height"]


def gold_is_laid_over_a_head(visitor: BrowserTab) -> None:
    sentence = next(s for s in grammar.corpus().sentences if 8 < len(s.forms) < 20 and len(s.mentions) > 2)
    page = visitor.visit("/", text=" ".join(sentence.forms), head="L2H0")
    expect(page.get_by_text("L2H0 (3-1) against the gold annotation")).to_be_visible()
    picture = page.get_by_role("img", name="agree with L2H0")
    expect(picture).to_be_visible()
    expect(picture.locator("img")).to_have_js_property("complete", True)
    assert picture.locator("img").evaluate("image => image.naturalWidth") > 100


# ---- A phone --------------------------------------------------------------------------------------------


def test_a_phone_shows_every_head_at_once_and_turns_from_dark_to_light(newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer(viewport=PHONE, color_scheme="dark")
    page = visitor.roles()
    every_square_can_be_hit_on_the_first_screen(page)
    open_by_search(page, "L3H1")
    expect(card(page)).to_be_visible()
    visitor.check_no_sideways_scroll()
    visitor.visit("/compare", heads="L3H1", text="The cat slept.", other="The dog slept.")
    page.get_by_text("Which heads carry the difference?").click()
    shares = page.locator(".st-key-wide_patched_heads")
    expect(shares.locator(".js-plotly-plot")).to_be_visible()
    shares.evaluate("map => map.scrollIntoView()")
    every_head_is_on_the_first_screen(shares)
    charts_and_page_turn_light(visitor)
    visitor.check_no_sideways_scroll()
    a_narrower_window_scrolls_the_map(visitor, shares)


def every_head_is_on_the_first_screen(box: Locator) -> None:
    columns, rows = _middles(box, ".xtick text", 12), _middles(box, ".ytick text", 6)
    assert min(after - before for lines in (columns, rows) for before, after in pairwise(lines)) >= TAP_PIXELS
    assert TAP_PIXELS / 2 <= columns[0] < columns[-1] <= PHONE["width"] - TAP_PIXELS / 2
    assert rows[-1] <= PHONE["height"] - TAP_PIXELS / 2
    expect(box).not_to_have_attribute("data-more", "")


def every_square_can_be_hit_on_the_first_screen(page: Page) -> None:
    squares = page.locator(f"{MAP} td a")
    expect(squares).to_have_count(72)
    for box in (squares.first.bounding_box(), squares.last.bounding_box()):
        assert box
        assert min(box["width"], box["height"]) >= TAP_PIXELS
        assert box["x"] + box["width"] <= PHONE["width"]
        assert box["y"] + box["height"] <= PHONE["height"]


def charts_and_page_turn_light(visitor: BrowserTab) -> None:
    tick = visitor.page.locator(".js-plotly-plot .xtick text").first
    expect(tick).to_have_css("fill", "rgb(163, 168, 174)")
    visitor.set_colour_scheme("light")
    expect(tick).to_have_css("fill", "rgb(93, 98, 104)")


def a_narrower_window_scrolls_the_map(visitor: BrowserTab, box: Locator) -> None:
    """A map that is wider than the page shows that there is more, and keeps its layers visible."""
    visitor.resize({"width": 280, "height": 700})
    expect(box).to_have_attribute("data-more", "")
    expect(box).to_have_css("mask-image", re.compile("gradient"))
    layers = box.locator(".mha-layers")
    first = layers.bounding_box()
    box.evaluate("box => { box.scrollLeft = box.scrollWidth; }")
    expect(box).not_to_have_attribute("data-more", "")
    assert first == layers.bounding_box()
    expect(layers).to_be_visible()


def _middles(box: Locator, ticks: str, count: int) -> list[float]:
    """The middle of each label of an axis, in order: columns from left to right, rows downward."""
    expect(box.locator(ticks)).to_have_count(count)
    expect(box.locator(ticks).first).to_be_visible()
    side = ("left", "right") if ticks.startswith(".x") else ("top", "bottom")
    middles: list[float] = box.locator(ticks).evaluate_all(
        "(ticks, [a, b]) => ticks.map((tick) => tick.getBoundingClientRect()).map((box) => (box[a] + box[b]) / 2)",
        [*side],
    )
    return middles
