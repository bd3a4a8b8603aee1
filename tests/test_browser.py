"""The page in a real browser, served by the real server: what a visitor sees, does and sends on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from playwright.sync_api import (
    BrowserContext,
    Page,
    ViewportSize,
    WebSocketRoute,
    expect,
)

from mha_viz import numerals
from mha_viz.attention import Attention
from mha_viz.figures.theme import DARK, LIGHT
from mha_viz.models.encoder import Encoder
from mha_viz.ui.address import fits
from mha_viz.ui.cache import first_reading
from mha_viz.ui.request import examples
from tests import hostile
from tests.app_server import AppServer
from tests.browser_tab import DESKTOP, PHONE, BrowserTab

FIRST = examples()[0]["text"]
IT, ANIMAL = 10, 2  # tokens of the first example


@cache
def first() -> Attention:
    return first_reading()


def weights_in(text: str) -> dict[str, float]:
    """ "it attends to animal 0.6771, it 0.120" → {"animal": 0.681, "it": 0.12}; "<.001" counts as 0."""
    listed = text.split(" to ", 1)[1] if " to " in text else text.split("→", 1)[1]
    found = re.findall(r"(\S+) (\d\.\d{3}|<\.001)", listed)
    return {word: 0.0 if value == "<.001" else float(value) for word, value in found}


# ---- The first picture ---------------------------------------------------------------------------------------


def test_the_first_picture_comes_without_a_click(visitor: BrowserTab) -> None:
    page = visitor.explore()
    for canvas in (visitor.grid, visitor.links, visitor.heat):
        assert visitor.pixels(canvas)[1] > 20
    expect(visitor.field).to_have_value(FIRST)
    expect(visitor.title).to_have_text("L3H1 (4-2)")
    assert "it attends to animal 0.677" in visitor.readout.inner_text()
    assert visitor.address == {}
    bottom = page.locator(".one h2").bounding_box()
    assert bottom
    assert bottom["y"] < DESKTOP["height"] / 2, "the opened head is above the fold"


def test_the_grid_shows_every_head_and_marks_the_opened_one(visitor: BrowserTab) -> None:
    page = visitor.explore()
    expect(page.locator(".overview header")).to_contain_text("6 layers × 12 heads")
    expect(page.locator(".marks .opened")).to_have_count(1)
    box, sheet = visitor.grid.bounding_box(), page.locator(".grid").bounding_box()
    assert box
    assert sheet
    assert box["width"] <= sheet["width"]
    assert box["y"] + box["height"] <= DESKTOP["height"]


def test_dark_and_light_paint_other_colours(newcomer: Callable[..., BrowserTab]) -> None:
    for scheme, ramp, other in (("light", LIGHT.ramp, DARK.ramp), ("dark", DARK.ramp, LIGHT.ramp)):
        visitor = newcomer(color_scheme=scheme)
        visitor.explore(pin="q0", head="L3H1")
        for canvas in (visitor.grid, visitor.heat):
            assert visitor.has_colour(canvas, ramp[0]), scheme
            assert not visitor.has_colour(canvas, other[0]), scheme


def test_a_phone_shows_everything_without_scrolling_sideways(newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer(viewport=PHONE, has_touch=True, is_mobile=True, device_scale_factor=2)
    page = visitor.explore()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    main = page.locator("[data-testid=stMain]")
    assert main.evaluate("m => m.scrollWidth - m.clientWidth") <= 0
    for part in (visitor.field, visitor.links, visitor.heat, page.locator(".controls"), page.locator(".ask")):
        box = part.bounding_box()
        assert box
        assert box["x"] >= 0
    for canvas in (visitor.grid, visitor.links, visitor.heat):
        assert visitor.pixels(canvas)[1] > 20


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_the_numbers_of_a_head_never_lie_over_a_drawing(
    newcomer: Callable[..., BrowserTab], size: ViewportSize
) -> None:
    visitor = newcomer(viewport=size)
    page = visitor.explore()
    main, numbers = page.locator("[data-testid=stMain]"), page.locator(".preview")
    for top in range(0, int(main.evaluate("m => m.scrollHeight")), 200):
        main.evaluate("(m, top) => m.scrollTo(0, top)", top)
        for canvas in (visitor.grid, visitor.links, visitor.heat):
            one, other = canvas.bounding_box(), numbers.bounding_box()
            assert one
            assert other
            apart = (
                one["x"] + one["width"] <= other["x"] or other["x"] + other["width"] <= one["x"]
                or one["y"] + one["height"] <= other["y"] or other["y"] + other["height"] <= one["y"]
            )  # fmt: skip
            assert apart, f"scrolled by {top}: {one} under {other}"


# ---- Reading a sentence --------------------------------------------------------------------------------------


def test_a_typed_sentence_is_painted_and_stands_in_the_url(visitor: BrowserTab) -> None:
    visitor.explore()
    before = [visitor.pixels(canvas)[0] for canvas in (visitor.grid, visitor.links, visitor.heat)]
    visitor.read("The cat sat on the mat.")
    for canvas, old in zip((visitor.grid, visitor.links, visitor.heat), before, strict=True):
        assert visitor.pixels(canvas)[0] != old
    assert visitor.address == {"text": "The cat sat on the mat."}
    expect(visitor.field).to_have_value("The cat sat on the mat.")
    assert "mat" in visitor.hover_word("mat")


def test_shift_and_enter_begin_a_new_line_and_send_nothing(visitor: BrowserTab) -> None:
    page = visitor.explore()
    visitor.field.fill("one")
    visitor.field.press("Shift+Enter")
    visitor.field.press_sequentially("two")
    expect(visitor.field).to_have_value("one\ntwo")
    page.wait_for_timeout(400)
    assert visitor.address == {}
    visitor.field.press("Enter")
    visitor.asked(text="one\ntwo")


def test_what_is_typed_and_not_sent_is_left_alone(visitor: BrowserTab) -> None:
    visitor.explore()
    visitor.field.fill("half a sen")
    visitor.click_head(1, 1)
    visitor.asked(head="L1H1")
    visitor.drawn()
    expect(visitor.field).to_have_value("half a sen")


def test_a_second_sentence_is_read_as_a_pair(visitor: BrowserTab) -> None:
    page = visitor.explore()
    page.get_by_text("+ Second sentence").click()
    second = page.get_by_label("Second sentence", exact=True)
    second.fill("It slept.")
    second.press("Enter")
    visitor.asked(pair="It slept.")
    visitor.drawn()
    expect(page.locator(".controls .choice", has_text="Pair")).to_be_visible()
    page.get_by_text("− Second sentence").click()
    page.locator("button.read").click()
    visitor.asked(pair=None)
    expect(page.locator(".controls .choice", has_text="Pair")).to_be_hidden()


def test_examples_open_and_one_is_read(visitor: BrowserTab) -> None:
    page = visitor.explore()
    listed = page.locator(".sentence ul")
    expect(listed).to_be_hidden()
    page.get_by_role("button", name="Examples").click()
    expect(listed.locator("li")).to_have_count(len(examples()))
    expect(listed.locator("button").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(listed).to_be_hidden()
    page.get_by_role("button", name="Examples").click()
    listed.locator("button").nth(8).click()
    visitor.asked(text=examples()[8]["text"], pair=examples()[8]["pair"])
    visitor.drawn()
    expect(listed).to_be_hidden()
    expect(visitor.field).to_have_value(examples()[8]["text"])
    expect(page.locator(".look")).to_have_text(examples()[8]["look"])


def test_the_back_button_restores_the_sentence_before(visitor: BrowserTab) -> None:
    page = visitor.explore()
    visitor.read("The first one.")
    painted = visitor.pixels(visitor.heat)[0]
    visitor.read("Then the second one came.")
    page.go_back()
    visitor.asked(text="The first one.")
    expect(visitor.field).to_have_value("The first one.")
    visitor.drawn()
    expect(page.locator(".ask select").first).to_contain_text("first")
    assert visitor.pixels(visitor.heat)[0] == painted
    page.go_back()
    expect(visitor.field).to_have_value(FIRST)


def test_an_empty_sentence_is_answered_and_examples_are_offered(visitor: BrowserTab) -> None:
    page = visitor.explore()
    visitor.field.fill("")
    visitor.field.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Nothing was typed.")
    expect(page.locator(".sentence ul")).to_be_visible()
    page.locator(".sentence ul button").nth(1).click()
    visitor.asked(text=examples()[1]["text"])
    visitor.drawn()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_text_beyond_the_limit_says_so_and_stays_as_typed(visitor: BrowserTab) -> None:
    page = visitor.explore()
    typed = "cat sat mat " * 3000
    visitor.field.fill(typed)
    visitor.field.press("Enter")
    expect(page.get_by_role("status").filter(has_text="36,000 characters were typed; a link holds")).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="512 of more than")).to_be_visible()
    visitor.drawn()
    expect(visitor.field).to_have_value(typed)
    expect(visitor.title).to_have_text("L3H1 (4-2)")
    visitor.click_head(5, 2)  # its matrix comes from the server
    visitor.asked(head="L5H2")
    visitor.drawn()
    expect(visitor.title).to_have_text("L5H2 (6-3)")
    assert visitor.readout.inner_text().startswith("Strongest link: ")


# ---- Opening heads -------------------------------------------------------------------------------------------


def test_a_click_on_the_grid_opens_a_head(visitor: BrowserTab) -> None:
    visitor.explore()
    for layer, head in ((5, 11), (0, 0), (2, 7)):
        visitor.redraws(visitor.heat, partial(visitor.click_head, layer, head))
        expect(visitor.title).to_have_text(f"L{layer}H{head} ({layer + 1}-{head + 1})")
        visitor.asked(head=f"L{layer}H{head}")
    assert visitor.address == {"head": "L2H7", "pin": f"q{IT}"}  # the pinned word stays when heads change


def test_arrow_keys_and_enter_open_a_head(visitor: BrowserTab) -> None:
    page = visitor.explore()
    visitor.grid.focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowUp", "ArrowUp"):
        page.keyboard.press(key)
    expect(visitor.title).to_have_text("L3H1 (4-2)")  # only the cursor moved
    expect(page.locator(".preview .name")).to_contain_text("L2H3")
    page.keyboard.press("Enter")
    expect(visitor.title).to_have_text("L2H3 (3-4)")
    visitor.asked(head="L2H3")
    for _ in range(20):
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(visitor.title).to_have_text("L2H0 (3-1)")


def test_the_pointer_over_the_grid_previews_a_head(visitor: BrowserTab) -> None:
    page = visitor.explore()
    visitor.grid.hover(position=visitor.head_at(0, 2))
    expect(page.locator(".preview .name")).to_contain_text("L0H2")
    rows = dict(
        zip(
            page.locator(".preview dt").all_inner_texts(),
            page.locator(".preview dd:not(.bar)").all_inner_texts(),
            strict=True,
        )
    )
    assert set(rows) >= {"previous token", "next token", "same token", "on [SEP]", "entropy"}
    assert float(rows["previous token"].removesuffix("%").strip()) > 50
    expect(visitor.title).to_have_text("L3H1 (4-2)")


def test_the_head_bar_switches_heads_and_a_double_click_isolates_one(visitor: BrowserTab) -> None:
    visitor.explore()

    def pressed() -> list[int]:
        return [i for i in range(12) if visitor.head_switch(i).get_attribute("aria-pressed") == "true"]

    assert pressed() == [1]
    visitor.redraws(visitor.links, visitor.head_switch(4).click)
    visitor.redraws(visitor.links, visitor.head_switch(7).click)
    assert pressed() == [1, 4, 7]
    visitor.asked(on="4.7")
    expect(visitor.page.locator(".marks i")).to_have_count(3)
    visitor.redraws(visitor.links, visitor.head_switch(4).click)
    assert pressed() == [1, 7]
    visitor.head_switch(5).dblclick()
    assert pressed() == [5]
    visitor.asked(head="L3H5", on=None)
    visitor.head_switch(5).dblclick()
    assert pressed() == list(range(12))


def test_heads_of_a_layer_have_their_own_colours(visitor: BrowserTab) -> None:
    visitor.explore(head="L3H1", on="4", scale="row")
    colours = visitor.page.locator(".heads button").evaluate_all("all => all.map(b => getComputedStyle(b).borderColor)")
    assert len(set(colours)) == 12


# ---- Words and weights ---------------------------------------------------------------------------------------


def test_a_word_under_the_pointer_says_what_it_attends_to(visitor: BrowserTab) -> None:
    visitor.explore()
    words = first().by_words()
    row = words.tokens.index("it")
    said = weights_in(visitor.hover_word("it"))
    best = np.argsort(-words.weights[3, 1, row])[:4]
    assert list(said) == [words.tokens[i] for i in best]
    for i in best:
        assert said[words.tokens[i]] == pytest.approx(words.weights[3, 1, row, i], abs=0.00052)
    plain = visitor.pixels(visitor.links)[0]
    visitor.hover_word("street")
    assert visitor.pixels(visitor.links)[0] != plain


def test_a_cell_under_the_pointer_says_its_weight_and_a_click_holds_it(visitor: BrowserTab) -> None:
    page = visitor.explore(head="L3H1")
    box = visitor.heat.bounding_box()
    assert box
    along, down = range(int(box["width"]) - 4, 60, -9), range(int(box["height"]) - 4, 60, -9)
    column_of_animal = next(x for x in along if "→ animal" in visitor.point(visitor.heat, x, down[0]))
    text = visitor.hover_until(visitor.heat, ((column_of_animal, y) for y in down), re.compile("^it → animal"))
    expected = first().by_words()
    row, column = expected.tokens.index("it"), expected.tokens.index("animal")
    assert weights_in(text)["animal"] == pytest.approx(expected.weights[3, 1, row, column], abs=0.00052)
    page.mouse.down()
    page.mouse.up()
    visitor.asked(pin=f"q{IT}k{ANIMAL}")
    page.mouse.move(2, 2)
    assert visitor.readout.inner_text() == text


@pytest.mark.parametrize(
    ("width", "text"),
    [(1440, "a" * 8000), (1000, examples()[11]["text"]), (390, examples()[11]["text"])],
    ids=["one endless word", "long words", "long words on a phone"],
)
def test_the_drawing_stays_under_the_pointer_whatever_is_said_of_it(
    newcomer: Callable[..., BrowserTab], width: int, text: str
) -> None:
    visitor = newcomer(viewport={"width": width, "height": 900})
    visitor.explore(text=text, head="L3H1", scale="row")
    visitor.links.scroll_into_view_if_needed()
    still = visitor.links.bounding_box()
    assert still
    rows = visitor.page.locator(".ask select").first.locator("option").count() - 1
    step = still["height"] / rows
    said = set()
    for row in range(rows):
        said.add(visitor.point(visitor.links, 12, (row + 0.5) * step))
        visitor.page.wait_for_timeout(60)
        assert visitor.links.bounding_box() == still
        assert " attends to " in visitor.readout.inner_text()
    assert len(said) == rows


def test_a_click_pins_a_word_and_escape_frees_it(visitor: BrowserTab) -> None:
    page = visitor.explore(head="L3H1")
    free = visitor.pixels(visitor.links)[0]
    assert visitor.readout.inner_text().startswith("Strongest link: ")
    said = visitor.hover_word("street")
    page.mouse.down()
    page.mouse.up()
    page.mouse.move(2, 2)
    assert visitor.readout.inner_text() == said
    visitor.asked(pin="q8")
    visitor.hover_word("tired")  # what is pointed at shows, and leaves the pin behind it
    page.mouse.move(2, 2)
    assert visitor.readout.inner_text() == said
    page.keyboard.press("Escape")
    visitor.asked(pin=None)
    assert visitor.readout.inner_text().startswith("Strongest link: ")
    assert visitor.pixels(visitor.links)[0] == free


def test_a_second_click_frees_the_pinned_word(visitor: BrowserTab) -> None:
    page = visitor.explore(head="L3H1", pin="q8")
    visitor.hover_word("street")
    page.mouse.down()
    page.mouse.up()
    visitor.asked(pin=None)


def test_arrow_keys_walk_through_words_and_cells(visitor: BrowserTab) -> None:
    page = visitor.explore(head="L3H1")
    words = first().by_words()
    visitor.heat.focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    said = visitor.readout.inner_text()
    assert said.startswith("The → animal ")
    assert weights_in(said)["animal"] == pytest.approx(words.weights[3, 1, 1, 2], abs=0.00052)
    page.keyboard.press("Enter")
    visitor.asked(pin="q1k2")
    page.keyboard.press("Escape")
    visitor.links.focus()
    page.keyboard.press("ArrowDown")
    assert visitor.readout.inner_text().startswith("The attends to ")
    page.keyboard.press("ArrowRight")
    assert visitor.readout.inner_text().startswith("The is attended to by ")


def test_the_table_of_numbers_agrees_with_the_model(visitor: BrowserTab) -> None:
    page = visitor.explore()
    page.get_by_text("These weights as a table").click()
    rows = page.locator(".tablebox tbody tr")
    words = first().by_words()
    expect(rows).to_have_count(len(words.tokens))
    cells = [row.locator("td").all_inner_texts() for row in rows.all()]
    shown = np.array([[0.0 if c == "<.001" else float(c) for c in row] for row in cells])
    assert np.abs(shown - words.weights[3, 1]).max() <= 0.00052
    assert page.locator(".tablebox thead th").all_inner_texts() == list(words.tokens)
    visitor.click_head(0, 2)
    expect(page.locator(".tablebox caption")).to_contain_text("L0H2 (1-3)")


def test_pictures_say_what_they_show(visitor: BrowserTab) -> None:
    visitor.explore()
    for canvas, kind in ((visitor.heat, "Heatmap"), (visitor.links, "Token links")):
        label = canvas.get_attribute("aria-label") or ""
        assert label.startswith(f"{kind} of L3H1. it attends to animal 0.677")
    assert "Arrow keys" in (visitor.grid.get_attribute("aria-label") or "")


# ---- Controls, without the server ----------------------------------------------------------------------------


class Line:
    """The connection to the server, which a test can hold: what the page sends then waits here."""

    def __init__(self, page: Page) -> None:
        self.held: list[str | bytes] | None = None
        page.route_web_socket(re.compile(r"/_stcore/stream"), self._connect)

    def _connect(self, client: WebSocketRoute) -> None:
        self._server = client.connect_to_server()
        client.on_message(self._sent)

    def _sent(self, message: str | bytes) -> None:
        if self.held is None:
            self._server.send(message)
        else:
            self.held.append(message)

    def hold(self) -> None:
        self.held = []

    def release(self) -> None:
        waiting, self.held = self.held or [], None
        for message in waiting:
            self._server.send(message)


def test_what_only_changes_the_view_is_drawn_while_the_server_is_silent(visitor: BrowserTab) -> None:
    line = Line(visitor.page)
    visitor.explore(head="L3H1")
    line.hold()
    for canvas, act in (
        (visitor.heat, partial(visitor.press_segment, "pieces")),
        (visitor.links, partial(visitor.press_segment, "hidden")),
        (visitor.heat, partial(visitor.press_segment, "hidden, rescaled")),
        (visitor.grid, partial(visitor.press_segment, "shown")),
        (visitor.heat, partial(visitor.press_segment, "words")),
        (visitor.links, partial(visitor.choose, "Links", "top")),
        (visitor.links, partial(visitor.choose, "Links", "min")),
        (visitor.links, partial(visitor.choose, "Links", "mass")),
        (visitor.heat, partial(visitor.choose, "Colour", "log")),
        (visitor.grid, partial(visitor.choose, "Colour", "row")),
        (visitor.links, visitor.head_switch(3).click),
        (visitor.heat, partial(visitor.click_head, 5, 11)),
    ):
        visitor.redraws(canvas, act)
    assert visitor.address == {"head": "L3H1"}, "the server has heard nothing yet"
    assert line.held, "and it will be told"
    line.release()
    visitor.asked(head="L5H11", scale="row", links="mass0.70")


def test_the_sides_of_a_pair_are_drawn_while_the_server_is_silent(visitor: BrowserTab) -> None:
    line = Line(visitor.page)
    visitor.explore(text="A man plays.", pair="Someone plays.", head="L3H1")
    line.hold()
    for side in ("ab", "ba", "aa", "bb", "all"):
        visitor.redraws(visitor.heat, partial(visitor.choose, "Pair", side))
    visitor.choose("Pair", "ab")
    assert "% of this head’s attention is hidden." in visitor.page.locator(".note").inner_text()
    visitor.hover_word("man")
    assert set(weights_in(visitor.readout.inner_text())) <= {"Someone", "plays", ".", "[SEP]"}
    line.release()
    visitor.asked(side="ab")


def test_hidden_tokens_always_come_with_their_share(visitor: BrowserTab) -> None:
    page = visitor.explore()
    note = page.locator(".note")
    expect(note).to_have_text("")
    visitor.press_segment("hidden")
    words = first().by_words()
    hidden = words.content().hidden[3, 1, words.tokens.index("it") - 1]
    expect(note).to_contain_text(f"{numerals.percent(hidden)} of the attention from “it” is hidden.")
    visitor.press_segment("hidden, rescaled")
    expect(note).to_contain_text("was hidden before rescaling.")
    rescaled = words.without_special()
    row, column = rescaled.tokens.index("it"), rescaled.tokens.index("animal")
    assert weights_in(visitor.readout.inner_text())["animal"] == pytest.approx(
        rescaled.weights[3, 1, row, column], abs=0.0006
    )


def test_pieces_show_the_tokens_that_the_model_reads(visitor: BrowserTab) -> None:
    visitor.explore(head="L3H1")
    visitor.press_segment("pieces")
    row = first().tokens.index("didn")
    said = weights_in(visitor.hover_word("didn"))
    best = int(first().weights[3, 1, row].argmax())
    assert said[first().tokens[best]] == pytest.approx(first().weights[3, 1, row, best], abs=0.00052)
    visitor.asked(unit="pieces")


# ---- The other way round -------------------------------------------------------------------------------------


def test_heads_are_ranked_by_the_link_between_two_words(visitor: BrowserTab) -> None:
    page = visitor.explore(head="L0H0")
    query, key = page.locator(".ask select").nth(0), page.locator(".ask select").nth(1)
    query.select_option(str(IT))
    key.select_option(str(ANIMAL))
    ranks = page.locator(".ask ol button")
    expect(ranks).to_have_count(6)
    weights = first().weights[:, :, IT, ANIMAL].ravel()
    best = np.argsort(-weights)[:6]
    for button, head in zip(ranks.all(), best, strict=True):
        name, value = button.locator("b").inner_text(), button.locator(".value").inner_text()
        assert name == f"L{head // 12}H{head % 12}"
        assert float(value) == pytest.approx(weights[head], abs=0.00052)
    assert ranks.first.locator("b").inner_text() == "L3H1"
    visitor.asked(link=f"{IT}-{ANIMAL}", pin=f"q{IT}k{ANIMAL}")
    ranks.nth(1).click()
    expect(visitor.title).to_contain_text(f"L{best[1] // 12}H{best[1] % 12} ")
    page.get_by_role("button", name="Show all 72").click()
    expect(ranks).to_have_count(72)


# ---- Sharing -------------------------------------------------------------------------------------------------


def test_a_link_is_copied_and_says_that_it_holds_the_text(newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer(permissions=["clipboard-read", "clipboard-write"])
    page = visitor.explore()
    visitor.read("Send me to a colleague.")
    visitor.click_head(2, 2)
    visitor.asked(head="L2H2")
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_text("Copied. Only this computer can open the link.")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    whole = {"text": ["Send me to a colleague."], "head": ["L2H2"], "model": ["minilm"]}
    assert parse_qs(urlsplit(copied).query) == whole


def test_a_link_opened_on_a_cold_server_restores_everything(
    newcomer: Callable[..., BrowserTab],
    tmp_path: Path,
    tiny_folder: Callable[[str], Path],
    tiny: Callable[[str], Encoder],
) -> None:
    tokens = tiny("bert").tokenize("The cat did not cross.", "It was too tired.").tokens
    key = next(i for i, t in enumerate(tokens) if t.segment == 1 and not t.special)
    asked = {
        "text": "The cat did not cross.", "pair": "It was too tired.", "model": str(tiny_folder("bert")),
        "head": "L1H0", "on": "1", "pin": f"q2k{key}", "link": f"2-{key}", "unit": "pieces", "special": "hide",
        "links": "top2", "scale": "log", "side": "ab",
    }  # fmt: skip
    with AppServer(tmp_path) as cold:
        visitor = newcomer(cold.url)
        page = visitor.explore(**asked)
        expect(visitor.field).to_have_value(asked["text"])
        expect(page.get_by_label("Second sentence", exact=True)).to_have_value(asked["pair"])
        expect(page.get_by_label("Model", exact=True)).to_have_value(asked["model"])
        expect(visitor.title).to_have_text("L1H0 (2-1)")
        assert [visitor.head_switch(i).get_attribute("aria-pressed") for i in (0, 1)] == ["true", "true"]
        for value in ("pieces", "hide"):
            expect(page.locator(f".segments input[value={value}]")).to_be_checked()
        for control, value in (("Links", "top"), ("Colour", "log"), ("Pair", "ab")):
            expect(page.locator(".controls .choice", has_text=control).locator("select").first).to_have_value(value)
        expect(page.locator(".controls output")).to_have_text("2")
        assert re.match(r"\S+ → \S+ (\d\.\d{3}|<\.001)$", visitor.readout.inner_text())
        expect(page.locator(".ask select").nth(0)).to_have_value("2")
        expect(page.locator(".ask select").nth(1)).to_have_value(str(key))
        assert visitor.address == asked
        assert cold.faults() == []


def test_about_is_the_first_page_of_a_cold_server(newcomer: Callable[..., BrowserTab], tmp_path: Path) -> None:
    with AppServer(tmp_path) as cold:
        visitor = newcomer(cold.url)
        page = visitor.visit("/about")
        expect(page.get_by_role("heading", name="What the pictures show")).to_be_visible()
        page.get_by_role("link", name="Explore").first.click()
        visitor.drawn()
        expect(visitor.field).to_have_value(FIRST)
        page.get_by_role("link", name="About").first.click()
        expect(page.get_by_role("heading", name="What the pictures show")).to_be_visible()
        assert cold.faults() == []


# ---- Models --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "said"), [("../../etc/passwd", "is not a model"), ("no-such/model", "Hub")])
def test_a_model_that_cannot_be_had_is_explained_and_the_picture_stays(
    visitor: BrowserTab, name: str, said: str
) -> None:
    page = visitor.explore(text="The cat sat.")
    painted = visitor.pixels(visitor.heat)[0]
    page.get_by_label("Model", exact=True).select_option("?")
    other = page.get_by_label("Hub id or folder of another model")
    expect(other).to_be_focused()
    other.fill(name)
    other.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text(said)
    visitor.drawn()
    assert visitor.pixels(visitor.heat)[0] == painted
    expect(visitor.field).to_have_value("The cat sat.")
    page.get_by_label("Model", exact=True).select_option("minilm")
    expect(page.get_by_role("alert")).to_have_count(0)
    visitor.asked(model=None)


# ---- Hostile text --------------------------------------------------------------------------------------------


RUNS = {
    "sets a mark": "<img src=x onerror=\"window.__xss='img'\"><script>window.__xss='script'</script>",
    "svg sets a mark": "<svg onload=\"window.__xss='svg'\"></svg><details open ontoggle=\"window.__xss='d'\">",
    "leaves an attribute": "\" onmouseover=\"window.__xss='a'\" x='",
    "script address": "[x](javascript:window.__xss='md') <a href=\"javascript:window.__xss='a'\">x</a>",
}
TYPED = hostile.KINDS | RUNS

SET = """(field, text) => {
    field.value = JSON.parse(text);
    field.dispatchEvent(new Event("input", {bubbles: true}));
    window.__typed = field.value;
}"""


@pytest.fixture(scope="module")
def tab(server: AppServer, desk: BrowserContext) -> Iterator[BrowserTab]:
    """One tab in which one hostile text follows another, as they would in the hands of one person."""
    visitor = BrowserTab(desk, server.url)
    visitor.explore()
    yield visitor
    visitor.leave()


@pytest.mark.parametrize("text", TYPED.values(), ids=TYPED)
def test_a_hostile_text_stays_as_typed_and_runs_nothing(tab: BrowserTab, text: str) -> None:
    page = tab.page
    tab.field.evaluate(SET, json.dumps(text))  # as JSON: half a character does not survive the protocol
    tab.field.press("Enter")
    kept, _ = fits(re.sub(r"\r\n?", "\n", text), "")
    tab.asked(text=None if kept == FIRST else kept)
    expect(page.locator(".stApp")).to_have_attribute("data-test-script-state", "notRunning")
    message = page.get_by_role("alert")
    if not message.count():
        tab.drawn()
    assert tab.field.evaluate("field => field.value === window.__typed"), "what was typed is gone"
    tab.unharmed()
    tab.requests.clear()


@pytest.mark.parametrize("name", ["right to left", "emoji family of seven code points", "script", "markdown image"])
def test_a_hostile_second_sentence_runs_nothing(visitor: BrowserTab, name: str) -> None:
    page = visitor.explore(text="The cat sat.", pair=hostile.TEXTS[name], model=hostile.TEXTS[name])
    expect(page.get_by_role("alert")).to_contain_text("is not a model")
    expect(page.get_by_label("Second sentence", exact=True)).to_have_value(hostile.TEXTS[name])
    page.get_by_text("These weights as a table").click()
    expect(page.locator(".tablebox tbody tr").first).to_be_visible()
