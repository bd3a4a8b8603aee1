"""The comparison in a real browser, on a bare page: its script, its style and its bytes, without a server."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
from playwright.sync_api import Browser, BrowserContext, Dialog, Locator, Page, Route, expect

from mha_viz.attention import Attention, Head
from mha_viz.browser.bundle import script, style
from mha_viz.figures.correspondence import Panel
from mha_viz.figures.panels import pack
from mha_viz.figures.theme import DARK, LIGHT, palette
from mha_viz.models.encoder import Encoder
from mha_viz.text import Token, TokenizedText, clean
from mha_viz.ui.cache import first_reading
from tests import hostile
from tests.readings import long_reading

ORIGIN = "http://compare.test/"
TIRED = "The animal didn't cross the street because it was too tired."
SCHEMES = {"light": ("#1c1b19", "#fffefb", "#0b5cad"), "dark": ("#ebe8e2", "#14171a", "#79c0f1")}
PAGE = """<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<style>:root {{ --st-text-color: {0}; --st-background-color: {1}; --st-primary-color: {2}; --st-font: sans-serif;
--st-code-font: monospace }} body {{ margin: 16px; background: {1} }}</style><style>{3}</style>
<div id="host"><div class="mha-compare"></div></div><script type="module">{4}</script>"""
MOUNT = """
globalThis.sent = [];
globalThis.draw = (coded) => mount({ data: Uint8Array.from(atob(coded), (c) => c.charCodeAt(0)),
  parentElement: document.getElementById("host"), setTriggerValue: (name, value) => sent.push([name, value]) });
"""


class Sheet:
    """One comparison on a page of its own, and what it said to the server."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.faults: list[str] = []
        self.asked: list[str] = []
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", lambda message: self.faults.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("dialog", self._dismiss)

    def open(
        self, panels: Sequence[Panel], editable: bool | Sequence[int] = False, scheme: str = "light", **query: str
    ) -> Sheet:
        source = script("compare").replace("export default function", "globalThis.mount = function") + MOUNT
        html = PAGE.format(*SCHEMES[scheme], style("compare"), source)

        def serve(route: Route) -> None:
            route.fulfill(body=html, content_type="text/html")

        self.page.route(f"{ORIGIN}**", serve)
        self.page.goto(f"{ORIGIN}?{urlencode(query)}")
        self.draw(panels, editable)
        return self

    def _dismiss(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def draw(self, panels: Sequence[Panel], editable: bool | Sequence[int] = False) -> None:
        self.page.evaluate("coded => draw(coded)", base64.b64encode(pack(panels, editable=editable)).decode())

    def panel(self, number: int) -> Locator:
        return self.page.locator(".panel").nth(number - 1)

    def canvas(self, number: int) -> Locator:
        return self.panel(number).locator("[role=application]")

    def says(self, number: int) -> str:
        return " ".join(self.panel(number).locator(".says").inner_text().split())

    def tool(self, number: int, name: str) -> Locator:
        return self.panel(number).locator(f"[data-tool={name}]")

    def last(self, name: str) -> dict[str, Any]:
        """The last message of this name, once it is there."""
        self.page.wait_for_function("name => sent.some((m) => m[0] === name)", arg=name)
        found: dict[str, Any] = self.page.evaluate("name => sent.findLast((m) => m[0] === name)[1]", name)
        return found

    def rest_on(self, number: int, wanted: str) -> None:
        """Move the pointer down the labels of a panel until it says what is wanted at two points: not on an edge."""
        box = self.canvas(number).bounding_box()
        assert box
        before = ""
        for y in range(4, int(box["height"]), 9):
            self.page.mouse.move(box["x"] + 12, box["y"] + y)
            self.frame()
            now = self.says(number)
            if now.startswith(wanted) and now == before:
                return
            before = now
        raise AssertionError(f"Nowhere on panel {number} is said: {wanted}; last: {before}")

    def frame(self) -> None:
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def pixels(self, canvas: Locator) -> set[str]:
        """The colours on a canvas."""
        found = canvas.evaluate(
            """canvas => {
                const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
                const found = new Set();
                for (let i = 0; i < data.length; i += 4) {
                    const hex = [0, 1, 2].map((k) => data[i + k].toString(16).padStart(2, "0")).join("");
                    if (data[i + 3] === 255) found.add("#" + hex);
                }
                return [...found];
            }"""
        )
        return set(found)


@pytest.fixture(scope="module")
def profile(browser: Browser) -> Iterator[BrowserContext]:
    """One tab stays open, so that no test has to begin with a new process."""
    context = browser.new_context()
    empty = context.new_page()
    empty.route(f"{ORIGIN}**", lambda route: route.fulfill(body="<!DOCTYPE html>", content_type="text/html"))
    empty.goto(ORIGIN)
    yield context
    context.close()


@pytest.fixture
def sheet(profile: BrowserContext) -> Iterator[Callable[..., Sheet]]:
    made: list[Sheet] = []

    def come(panels: Sequence[Panel], size: tuple[int, int] = (1440, 900), **more: Any) -> Sheet:
        page = profile.new_page()
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.set_default_timeout(20_000)
        made.append(Sheet(page))
        return made[-1].open(panels, **more)

    yield come
    for one in made:
        assert one.faults == []
        assert [url for url in one.asked if not url.startswith(ORIGIN)] == []
        one.page.close()


@cache
def first() -> Attention:
    return first_reading()


@pytest.fixture(scope="module")
def wide(minilm: Encoder) -> Attention:
    return minilm.encode(TIRED.replace("tired", "wide"))


def three() -> list[Panel]:
    return [Panel(first(), Head(3, 1), "coreference"), Panel(first(), Head(5, 11)), Panel(first(), Head(0, 2))]


# ---- Drawing --------------------------------------------------------------------------------------------


def test_panels_are_drawn_with_their_names_on_one_stated_scale(sheet: Callable[..., Sheet]) -> None:
    shown = sheet(three())
    names = [shown.panel(i).locator("h3").inner_text() for i in (1, 2, 3)]
    assert names == ["1L3H1 (4-2)", "2L5H11 (6-12)", "3L0H2 (1-3)"]  # the number is set apart by its margin
    assert "coreference" in shown.panel(1).inner_text()
    expect(shown.page.locator(".compare > .scale")).to_contain_text("One scale for all panels: 0 to 1")
    boxes = [shown.canvas(i).bounding_box() for i in (1, 2, 3)]
    assert len({(b["width"], b["height"], b["y"]) for b in boxes if b}) == 1
    assert all(len(shown.pixels(shown.canvas(i))) > 10 for i in (1, 2, 3))
    assert shown.says(1) == "strongest between words it → animal 0.677"
    assert shown.page.locator(".whose:not(:empty)").count() == 0, "one sentence, one model: said nowhere"


def test_the_scale_is_shared_whatever_its_top(sheet: Callable[..., Sheet]) -> None:
    weak, strong = Panel(first(), Head(3, 4)), Panel(first(), Head(0, 2))
    top = LIGHT.ramp[-1]
    alone = sheet([weak], scale="head", special="hide")
    assert top in alone.pixels(alone.canvas(1))
    both = sheet([weak, strong], scale="head", special="hide")
    assert top not in both.pixels(both.canvas(1))
    assert top in both.pixels(both.canvas(2))
    peak = first()[Head(0, 2)][1:-1, 1:-1].max()
    expect(both.page.locator(".compare > .scale")).to_contain_text(f"0 to {peak:.3f}")


def test_hidden_tokens_come_with_their_share(sheet: Callable[..., Sheet]) -> None:
    shown = sheet(three(), special="hide")
    for number in (1, 2, 3):
        note = shown.panel(number).locator(".note")
        expect(note).to_have_text(re.compile(r"^[\d.]+% of this head’s attention is hidden\.$"))


@pytest.mark.parametrize("kind", ["heatmap", "links"])
def test_light_and_dark(sheet: Callable[..., Sheet], kind: str) -> None:
    for scheme, theme in (("light", LIGHT), ("dark", DARK)):
        shown = sheet(three(), scheme=scheme, diff="0-1", **{"as": kind})
        assert (theme.ramp[0] if kind == "heatmap" else theme.heads[1]) in shown.pixels(shown.canvas(1))
        none = "#" + "".join(f"{channel:02x}" for channel in palette(theme.signed)[128])
        assert none in shown.pixels(shown.page.locator(".map [role=application]"))


def test_columns_follow_the_width(sheet: Callable[..., Sheet]) -> None:
    twelve = [Panel(first(), Head(3, i)) for i in range(12)]
    for width, across in ((1440, 4), (1000, 3), (390, 1)):
        shown = sheet(twelve, size=(width, 844))
        lefts = {round(box["x"]) for i in range(1, 13) if (box := shown.panel(i).bounding_box())}
        assert len(lefts) == across, width
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= width


def test_no_panel_and_one_panel_say_what_to_do(sheet: Callable[..., Sheet]) -> None:
    none = sheet([])
    expect(none.page.locator(".hint")).to_contain_text("No heads chosen yet")
    assert none.page.locator(".controls").is_hidden()
    one = sheet(three()[:1], editable=True)
    expect(one.page.locator(".hint")).to_contain_text("Add a second head")
    assert one.page.locator(".subtract").is_hidden()


def test_long_texts_scroll_inside_their_panels(sheet: Callable[..., Sheet]) -> None:
    attention = long_reading(1, 4, 300)
    shown = sheet([Panel(attention, Head(0, i)) for i in range(4)], size=(390, 844), **{"as": "links"})
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= 390
    before = shown.canvas(2).evaluate("c => c.toDataURL()")
    shown.panel(1).locator(".box").evaluate("b => b.scrollTo(0, 900)")
    shown.page.wait_for_function(
        "() => [...document.querySelectorAll('.panel .box')].every((b) => b.scrollTop === 900)"
    )
    shown.frame()
    assert shown.canvas(2).evaluate("c => c.toDataURL()") != before, "what scrolled in is drawn"


# ---- Pointing -------------------------------------------------------------------------------------------


def test_a_word_pointed_at_is_shown_in_every_panel_with_exact_weights(sheet: Callable[..., Sheet]) -> None:
    shown = sheet(three())
    shown.rest_on(1, "it → ")
    assert shown.says(1).startswith("it → animal 0.677, ")
    assert shown.says(2).startswith("it → animal 0.673, ")
    assert shown.says(3).startswith("it → because 1.000, ")
    assert shown.page.locator(".panel .over:visible").count() == 3
    shown.page.mouse.move(5, 5)
    shown.frame()
    assert shown.says(2).startswith("strongest")
    assert shown.page.locator(".panel .over:visible").count() == 0
    assert shown.page.evaluate("sent") == [], "hovering is nobody else's business"


def test_only_what_changed_is_drawn(sheet: Callable[..., Sheet]) -> None:
    shown = sheet(three())
    count = """() => { globalThis.drawn = 0; for (const name of ["drawImage", "fillText"]) {
        const own = CanvasRenderingContext2D.prototype[name];
        CanvasRenderingContext2D.prototype[name] = function (...a) { globalThis.drawn++; return own.apply(this, a); };
    } }"""
    shown.rest_on(1, "it → ")
    shown.page.evaluate(count)
    box = shown.canvas(1).bounding_box()
    assert box
    shown.page.mouse.move(box["x"] + 14, box["y"] + 4)  # off the rows: nothing is focused
    shown.frame()
    assert shown.page.evaluate("drawn") == 0, "to let go only hides the layer"
    shown.rest_on(1, "tired → ")
    assert shown.page.evaluate("drawn") <= 3 * 14, "of each row passed one label a panel, and no cell"


def test_the_tab_key_returns_to_the_tool_that_was_used_last(sheet: Callable[..., Sheet]) -> None:
    shown = sheet(three(), editable=True)
    stops = "buttons => buttons.filter((b) => b.tabIndex === 0).map((b) => b.dataset.tool)"
    assert shown.panel(2).locator("[data-tool]").evaluate_all(stops) == ["left"]
    shown.tool(2, "duplicate").focus()
    assert shown.panel(2).locator("[data-tool]").evaluate_all(stops) == ["duplicate"]


def test_two_tokenizations_of_one_text_meet_by_characters(
    sheet: Callable[..., Sheet], tiny: Callable[[str], Encoder]
) -> None:
    shown = sheet([Panel(first(), Head(3, 1)), Panel(tiny("gpt2").encode(TIRED), Head(2, 1))], unit="pieces")
    shown.rest_on(1, "animal → ")
    assert shown.says(2).split(" → ")[0].replace(" ", "") == "animal"
    assert " " in shown.says(2).split(" → ")[0], "in several pieces"
    assert "gpt2" in shown.panel(2).locator(".whose").inner_text()
    shown.rest_on(1, "[CLS] → ")
    assert shown.says(2) == "no special token “[CLS]” here"


def test_two_sentences_meet_by_words_and_say_where_not(sheet: Callable[..., Sheet], wide: Attention) -> None:
    shown = sheet([Panel(first(), Head(3, 1)), Panel(wide, Head(3, 1))])
    assert [shown.panel(i).locator(".whose b").inner_text() for i in (1, 2)] == ["tired", "wide"]
    shown.rest_on(2, "it → ")
    assert shown.says(1).startswith("it → animal 0.677")
    shown.rest_on(2, "wide → ")
    assert shown.says(1) == "no word “wide” here"
    expect(shown.panel(1)).to_have_class(re.compile("lacks"))


def test_a_click_holds_and_escape_lets_go(sheet: Callable[..., Sheet]) -> None:
    shown = sheet(three())
    shown.rest_on(2, "it → ")
    shown.page.mouse.down()
    shown.page.mouse.up()
    assert shown.last("view") == shown.last("view") | {"pin": "q10", "at": "1"}
    shown.page.mouse.move(5, 5)
    shown.frame()
    assert shown.says(3).startswith("it → because 1.000")
    shown.page.keyboard.press("Escape")
    shown.frame()
    assert shown.says(3).startswith("strongest")
    shown.page.wait_for_function("() => sent.at(-1)[1].pin === null")


def test_a_pin_in_the_address_is_held_in_all_panels(sheet: Callable[..., Sheet], wide: Attention) -> None:
    shown = sheet([Panel(first(), Head(3, 1)), Panel(wide, Head(3, 1))], pin="q10k2", at="1")
    assert [shown.says(i) for i in (1, 2)] == ["it → animal 0.677", "it → animal 0.281"]


def test_the_keyboard_goes_where_the_pointer_goes(sheet: Callable[..., Sheet]) -> None:
    shown = sheet(three())
    shown.canvas(1).focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        shown.page.keyboard.press(key)
    assert shown.says(1).startswith("The → animal ")
    assert shown.says(3).startswith("The → animal ")
    said = shown.page.locator(".said").inner_text()
    assert re.match(r"1, L3H1: The → animal \d\.\d{3}; 2, L5H11: The → animal \d\.\d{3}; 3, L0H2: ", said)
    assert "The → animal" in (shown.canvas(2).get_attribute("aria-label") or "")
    shown.page.keyboard.press("Enter")
    assert shown.last("view")["pin"] == "q1k2"


def test_links_point_along_their_columns(sheet: Callable[..., Sheet]) -> None:
    shown = sheet(three(), links="top3", **{"as": "links"})
    shown.rest_on(1, "it → ")
    assert shown.says(3).startswith("it → because")
    shown.canvas(1).focus()
    shown.page.mouse.move(5, 5)
    shown.page.keyboard.press("ArrowDown")
    shown.page.keyboard.press("ArrowRight")
    assert shown.says(1).startswith("The ← ")


# ---- Settings -------------------------------------------------------------------------------------------


def test_settings_are_told_as_url_parameters(sheet: Callable[..., Sheet]) -> None:
    shown = sheet(three())
    shown.page.get_by_text("links", exact=True).click()
    shown.page.get_by_text("pieces", exact=True).click()
    shown.page.locator(".choice", has_text="Colour scale").locator("select").select_option("head")
    assert shown.last("view")["as"] == "links"
    shown.page.wait_for_function("() => sent.at(-1)[1].scale === 'head'")
    view = shown.last("view")
    assert (view["as"], view["unit"], view["scale"], view["special"], view["diff"]) == (
        "links",
        "pieces",
        "head",
        None,
        None,
    )


def test_every_setting_is_read_from_the_address(sheet: Callable[..., Sheet]) -> None:
    shown = sheet(
        three(), unit="pieces", special="rescale", scale="log", links="min0.20", diff="0-2", **{"as": "links"}
    )
    checked = shown.page.locator(".segments input:checked").evaluate_all("all => all.map((i) => i.value)")
    assert checked == ["links", "pieces", "rescale"]
    assert shown.page.locator(".subtract select").evaluate_all("all => all.map((s) => s.value)") == ["2", "0"]
    expect(shown.page.locator(".compare > .scale")).to_contain_text("0.001 to 1, logarithmic")
    expect(shown.page.locator("output")).to_have_text("0.20")


def test_back_brings_the_view_before(sheet: Callable[..., Sheet]) -> None:
    shown = sheet(three())
    shown.page.evaluate(
        "() => { history.pushState({}, '', '?as=links&pin=q10'); history.pushState({}, '', '?'); history.back(); }"
    )
    expect(shown.page.locator(".segments input[value=links]")).to_be_checked()
    assert shown.says(1).startswith("it → animal")


# ---- Difference -----------------------------------------------------------------------------------------


def test_two_panels_are_subtracted(sheet: Callable[..., Sheet]) -> None:
    shown = sheet(three())
    assert shown.page.locator(".difference").is_hidden()
    shown.page.get_by_label("The panel to subtract from").select_option("2")
    assert shown.last("view")["diff"] == "1-2", "its neighbour, until another is chosen"
    shown.page.get_by_label("The panel that is subtracted").select_option("0")
    expect(shown.page.locator(".difference h2")).to_contain_text("L0H2 minus L3H1")
    expect(shown.page.locator(".meaning")).to_have_text(
        re.compile(
            r"^Jensen–Shannon divergence 0\.\d{3} nats, the mean over all pieces, including special tokens, "
            r"whatever is shown: 0 means the same rows, 0\.693 "
        )
    )
    items = shown.page.locator(".most li")
    expect(items).to_have_count(12)
    sizes = [abs(float(t.replace("−", "-"))) for t in items.locator(".value").all_inner_texts()]
    assert all(a >= b for a, b in pairwise(sizes))
    by_words = first().by_words()
    assert sizes[0] == pytest.approx(abs(by_words[Head(0, 2)] - by_words[Head(3, 1)]).max(), abs=6e-4)
    expect(shown.page.locator(".map .scale")).to_contain_text(f"−{sizes[0]:.3f}")


def test_a_listed_difference_is_shown_and_held_in_all_panels(sheet: Callable[..., Sheet], wide: Attention) -> None:
    shown = sheet([Panel(first(), Head(3, 1)), Panel(wide, Head(3, 1))], diff="0-1")
    entry = shown.page.locator(".most li button", has_text="it → animal")
    assert re.sub(r"\s+", " ", entry.inner_text()) == "it → animal 0.677 → 0.281 −0.396"
    entry.click()
    shown.page.mouse.move(5, 5)
    shown.frame()
    assert [shown.says(i) for i in (1, 2)] == ["it → animal 0.677", "it → animal 0.281"]
    expect(shown.page.locator(".map .says")).to_have_text("it → animal 0.677 → 0.281 −0.396")
    expect(entry).to_have_attribute("aria-current", "true")
    assert shown.last("view")["pin"] == "q10k2"


def test_a_replaced_word_carries_both_names_and_links_its_panels(sheet: Callable[..., Sheet], wide: Attention) -> None:
    shown = sheet([Panel(first(), Head(3, 1)), Panel(wide, Head(3, 1))], diff="0-1")
    expect(shown.page.locator(".difference h2")).to_contain_text("L3H1 with “wide” minus L3H1 with “tired”")
    assert shown.page.locator(".whose b").all_inner_texts() == ["tired", "wide"], "in both sentences"
    shown.page.locator(".most li button", has_text="too → tired / wide").hover()
    shown.frame()
    assert [shown.says(i).rsplit(" ", 1)[0] for i in (1, 2)] == ["too → tired", "too → wide"]


def test_panels_that_cannot_be_subtracted_say_why_and_what_helps(
    sheet: Callable[..., Sheet], tiny: Callable[[str], Encoder], minilm: Encoder
) -> None:
    shown = sheet(
        [Panel(first(), Head(3, 1)), Panel(tiny("gpt2").encode(TIRED), Head(0, 0))], unit="pieces", diff="0-1"
    )
    expect(shown.page.locator(".meaning")).to_contain_text("cut into different pieces, and their special tokens differ")
    assert shown.page.locator(".map").is_hidden()
    shown.page.get_by_role("button", name="Compare by words, without special tokens").click()
    expect(shown.page.locator(".most li")).to_have_count(12)
    view = shown.last("view")
    assert (view["unit"], view["special"]) == (None, "hide")

    other = minilm.encode("The tired animal stayed.")
    none = sheet([Panel(first(), Head(3, 1)), Panel(other, Head(3, 1))], diff="0-1")
    expect(none.page.locator(".meaning")).to_contain_text("do not correspond one to one")
    expect(none.page.locator(".meaning")).to_contain_text("“stayed” only in panel 2")


def test_words_that_differ_stand_out_in_both_sentences_or_in_none(
    sheet: Callable[..., Sheet], wide: Attention, minilm: Encoder
) -> None:
    other = minilm.encode("Totally other sentence.")
    shown = sheet([Panel(reading, Head(3, 1)) for reading in (first(), wide, other)])
    marked = [shown.panel(i).locator(".whose b").all_inner_texts() for i in (1, 2, 3)]
    assert marked == [["tired"], ["wide"], []]


@pytest.mark.parametrize("width", [1440, 390])
def test_a_long_name_shrinks_before_the_buttons_move(sheet: Callable[..., Sheet], width: int) -> None:
    panels = [Panel(first(), Head(layer, 1), "another long name of a head, as people give") for layer in range(4)]
    shown = sheet(panels, size=(width, 900), editable=True)
    for number in (1, 2, 3, 4):
        panel, button = (shown.panel(number).bounding_box(), shown.tool(number, "remove").bounding_box())
        assert panel
        assert button
        assert button["x"] + button["width"] <= panel["x"] + panel["width"] + 6
    assert shown.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_single_panel_that_cannot_be_duplicated_gives_no_such_advice(sheet: Callable[..., Sheet]) -> None:
    assert "duplicate" in sheet(three()[:1], editable=True).page.locator(".hint").inner_text()
    assert not sheet(three()[:1]).page.locator(".hint").inner_text()


def test_the_difference_closes(sheet: Callable[..., Sheet]) -> None:
    shown = sheet(three(), diff="0-1")
    shown.page.get_by_role("button", name="Close").click()
    assert shown.page.locator(".difference").is_hidden()
    assert shown.last("view")["diff"] is None


def test_tables_hold_the_same_numbers(sheet: Callable[..., Sheet]) -> None:
    shown = sheet(three(), diff="0-2")
    shown.page.get_by_text("Weights as a table").click()
    table = shown.page.locator("table")
    expect(table.locator("caption")).to_contain_text("L0H2 (1-3) minus L3H1 (4-2)")
    listed = shown.page.locator(".most li .value").first.inner_text()
    expect(table.locator("tbody tr").first.locator("td").last).to_have_text(listed)
    shown.page.get_by_label("Which weights").select_option("0")
    row = table.locator("tbody tr", has=shown.page.locator("th", has_text=re.compile("^it$")))
    expect(row.locator("td").nth(2)).to_have_text("0.677")


# ---- The tray -------------------------------------------------------------------------------------------


def test_edits_say_what_to_do_with_which_place_of_the_tray(sheet: Callable[..., Sheet]) -> None:
    shown = sheet(three(), editable=[0, 2, 5], diff="0-2", pin="q10", at="2")
    expected = {
        "right": ({"action": "move", "index": 0, "to": 2}, {"diff": "1-2", "at": "2"}),
        "duplicate": ({"action": "duplicate", "index": 0}, {"diff": "0-3", "at": "3"}),
        "remove": ({"action": "remove", "index": 0}, {"diff": None, "at": "1"}),
        "open": ({"action": "open", "index": 0, "head": "L3H1", "text": TIRED, "pair": ""}, {"diff": "0-2"}),
    }
    for tool, (message, view) in expected.items():
        fresh = sheet(three(), editable=[0, 2, 5], diff="0-2", pin="q10", at="2")
        fresh.tool(1, tool).click()
        said = fresh.last("edit")
        assert said == said | message, tool
        assert said["view"] == said["view"] | view, tool
    assert shown.tool(1, "left").get_attribute("aria-disabled") == "true"
    shown.tool(1, "left").click(force=True)
    assert shown.page.evaluate("sent") == []


def test_after_an_edit_the_keyboard_and_the_view_stay_with_the_panel(sheet: Callable[..., Sheet]) -> None:
    panels = three()
    shown = sheet(panels, editable=True, diff="0-2")
    shown.tool(1, "right").focus()
    shown.page.keyboard.press("Enter")
    shown.page.keyboard.press("Enter")  # before the answer: it would move what is there now
    shown.page.wait_for_timeout(1_800)  # until the queue of messages would have let the second one go
    assert len(shown.page.evaluate("sent")) == 1
    shown.draw([panels[1], panels[0], panels[2]], editable=True)
    assert shown.panel(2).locator("code").inner_text() == "L3H1"
    assert shown.tool(2, "right").evaluate("b => b.getRootNode().activeElement === b")
    assert shown.page.locator(".subtract select").evaluate_all("all => all.map((s) => s.value)") == ["2", "1"]
    expect(shown.page.locator(".said")).to_have_text("Moved to place 2.")
    shown.page.keyboard.press("Enter")
    shown.page.wait_for_function("() => sent.filter((m) => m[0] === 'edit').length === 2")


def test_a_panel_is_renamed_in_place(sheet: Callable[..., Sheet]) -> None:
    shown = sheet(three(), editable=True)
    shown.panel(2).hover()
    shown.panel(2).locator(".rename").click()
    field = shown.panel(2).get_by_label("Name of this panel")
    field.fill("  agreement  ")
    field.press("Enter")
    said = shown.last("edit")
    assert (said["action"], said["index"], said["name"]) == ("rename", 1, "agreement")


def test_escape_leaves_a_name_and_a_pin_as_they_were(sheet: Callable[..., Sheet]) -> None:
    shown = sheet(three(), editable=True, pin="q10")
    shown.panel(1).locator(".rename").click()
    field = shown.panel(1).get_by_label("Name of this panel")
    field.fill("other")
    field.press("Escape")
    assert "coreference" in shown.panel(1).inner_text()
    assert shown.says(1).startswith("it → animal")
    assert shown.page.evaluate("sent") == []


def test_ready_made_panels_are_pinned(sheet: Callable[..., Sheet]) -> None:
    shown = sheet(three())
    assert shown.page.locator("[data-tool=remove], .rename").count() == 0
    shown.tool(2, "pin").click()
    said = shown.last("edit")
    assert said == said | {"action": "pin", "index": 1, "head": "L5H11", "model": "minilm", "text": TIRED, "pair": ""}


def test_the_tools_are_one_stop_of_the_tab_key(sheet: Callable[..., Sheet]) -> None:
    shown = sheet(three(), editable=True)
    stops = shown.panel(1).locator(".tools button").evaluate_all("all => all.map((b) => b.tabIndex)")
    assert stops == [0, -1, -1, -1, -1]
    shown.tool(1, "left").focus()
    shown.page.keyboard.press("ArrowRight")
    shown.page.keyboard.press("ArrowRight")
    assert shown.tool(1, "duplicate").evaluate("b => document.activeElement === b")


# ---- What people type -----------------------------------------------------------------------------------

PLAIN = ("strike", "comment", "entity", "json breaker", "tex", "right-to-left override")
NASTY = [name for name, text in hostile.TEXTS.items() if hostile.FOREIGN_HOST in text or name in PLAIN]


@pytest.mark.parametrize("name", NASTY)
def test_what_is_typed_is_never_markup(sheet: Callable[..., Sheet], name: str) -> None:
    text = clean(hostile.TEXTS[name])
    panels = [Panel(_spoken(word), Head(0, 0), text[:60]) for word in (text, text + "!")]
    shown = sheet(panels, editable=True, diff="0-1")
    shown.page.get_by_text("Weights as a table").click()
    assert shown.page.locator(".compare :is(script, img, iframe, s, style, a[href])").count() == 0
    assert shown.panel(1).locator(".rename bdi").text_content() == text[:60]
    assert text.split()[0] in (shown.panel(1).locator(".whose").text_content() or "")
    shown.rest_on(1, "before")
    assert shown.page.evaluate("globalThis.__xss") is None


def _spoken(word: str) -> Attention:
    """A reading in which ``word`` is a token, after an ordinary one."""
    typed = f"before {word}"
    tokens = (Token("before", 0, 0, 0, 6), Token(word, 1, 0, 7, len(typed)))
    weights = np.array([[[[0.25, 0.75], [0.5, 0.5]]]], np.float32)  # [layer, head, query, key]
    return Attention("<b>model</b>", "", TokenizedText(typed, "", tokens), weights)


def test_a_name_has_all_the_room_that_the_buttons_leave(sheet: Callable[..., Sheet]) -> None:
    long = "a name that no panel of four has room for, nor of two"
    shown = sheet(
        [Panel(first(), Head(layer, 1), name) for layer, name in enumerate(("a name", long, "", ""))], editable=True
    )
    names = shown.page.locator(".rename")
    assert names.nth(0).evaluate("b => b.querySelector('bdi').scrollWidth <= b.querySelector('bdi').clientWidth")
    assert [names.nth(i).get_attribute("title") for i in range(3)] == ["a name. Rename", f"{long}. Rename", "Rename"]


def test_the_menus_of_a_difference_show_names_whole_or_with_dots(sheet: Callable[..., Sheet]) -> None:
    long = "previous word head in the first layer"
    shown = sheet([Panel(first(), Head(0, 2), long), Panel(first(), Head(3, 1), "x" * 24)], diff="0-1")
    menu = shown.page.get_by_label("The panel to subtract from")
    assert menu.locator("option").all_inner_texts() == [
        "none",
        "1  L0H2 previous word head in t…",
        f"2  L3H1 {'x' * 24}",
    ]
    wide = menu.evaluate(
        "m => { const c = document.createElement('canvas').getContext('2d'); c.font = getComputedStyle(m).font;"
        " return m.clientWidth - c.measureText(m.selectedOptions[0].text).width }"
    )
    assert wide > 20, "the arrow has room beside the name"


def test_the_ring_of_the_focus_is_whole(sheet: Callable[..., Sheet]) -> None:
    shown = sheet(three())
    for number in (1, 2, 3):
        free = shown.canvas(number).evaluate(
            "c => { const [a, b] = [c, c.closest('.box')].map((e) => e.getBoundingClientRect());"
            " return Math.min(b.right - a.right, a.left - b.left, a.top - b.top) }"
        )
        assert free >= 5


def test_a_folder_is_called_by_its_own_name(sheet: Callable[..., Sheet]) -> None:
    own = Attention("/srv/secret/own", "", first().text, first().weights)
    shown = sheet([Panel(first(), Head(3, 1)), Panel(own, Head(3, 1))], diff="0-1")
    assert "own" in shown.panel(2).locator(".whose").inner_text()
    assert "L3H1 of own minus L3H1 of minilm" in shown.page.locator(".difference h2").inner_text()
    assert "secret" not in shown.page.locator(".compare").inner_text()
