"""The page in a real browser, served by the real server: what a visitor sees and does, and the messages sent."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from playwright.sync_api import expect

from mha_viz.attention import Attention
from mha_viz.figures.theme import DARK, LIGHT
from mha_viz.ui.cache import first_reading
from mha_viz.ui.request import examples
from tests.browser_tab import DESKTOP, PHONE, BrowserTab

FIRST = examples()[0]["text"]
IT, ANIMAL = 10, 2  # tokens of the first example


@cache
def first() -> Attention:
    return first_reading()


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
    visitor.scrolls_only_down()
    for part in (visitor.field, visitor.links, visitor.heat, page.locator(".controls"), page.locator("section.ask")):
        box = part.bounding_box()
        assert box
        assert box["x"] >= 0
    for canvas in (visitor.grid, visitor.links, visitor.heat):
        assert visitor.pixels(canvas)[1] > 20


def test_the_numbers_of_a_head_never_lie_over_a_drawing(visitor: BrowserTab) -> None:
    page = visitor.explore()
    for size in (DESKTOP, PHONE):
        page.set_viewport_size(size)
        page.wait_for_function("width => innerWidth === width", arg=size["width"])
        _no_numbers_over_drawings(visitor)


def _no_numbers_over_drawings(visitor: BrowserTab) -> None:
    page = visitor.page
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
    listed = page.locator(".sentence ul").first
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
    expect(page.locator(".sentence ul").first).to_be_visible()
    page.locator(".sentence ul").first.locator("button").nth(1).click()
    visitor.asked(text=examples()[1]["text"])
    visitor.drawn()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_text_beyond_the_limit_says_so_and_stays_as_typed(visitor: BrowserTab) -> None:
    page = visitor.explore()
    typed = "cat sat mat " * 3000
    visitor.field.fill(typed)
    visitor.field.press("Enter")
    expect(page.get_by_role("status").filter(has_text="36,000 characters were typed; a link can hold")).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="512 of more than")).to_be_visible()
    visitor.drawn()
    expect(visitor.field).to_have_value(typed)
    expect(visitor.title).to_have_text("L3H1 (4-2)")
    visitor.click_head(5, 2)  # its matrix comes from the server
    visitor.asked(head="L5H2")
    visitor.drawn()
    expect(visitor.title).to_have_text("L5H2 (6-3)")
    assert visitor.readout.inner_text().startswith("Strongest link between words: ")


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
