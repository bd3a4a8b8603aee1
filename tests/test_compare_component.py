"""The comparison in a real browser, on an empty page: its script, its style and its bytes, without a server."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import expect

from mha_viz.attention import Attention, Head
from mha_viz.figures.drawing.theme import DARK, LIGHT, palette
from mha_viz.figures.layout.panels import Panel
from mha_viz.models.reading.encoder import Encoder
from tests.compare_sheet import TIRED, Sheet, make_panels, read_first
from tests.readings import make_long_reading


def test_three_heads_are_pointed_at_by_mouse_and_keyboard(sheet: Callable[..., Sheet]) -> None:
    shown = sheet(make_panels())
    panels_have_their_names_and_one_stated_scale(shown)
    the_ring_of_the_focus_is_whole(shown)
    a_word_pointed_at_is_shown_in_every_panel_with_exact_weights(shown)
    only_what_changed_is_drawn(shown)
    a_click_holds_and_escape_lets_go(shown)
    the_keyboard_goes_where_the_pointer_goes(shown)
    settings_are_told_as_url_parameters(shown)
    links_point_along_their_columns(shown)
    back_brings_the_view_before(shown)


def panels_have_their_names_and_one_stated_scale(shown: Sheet) -> None:
    names = [shown.panel(i).locator("h2").inner_text() for i in (1, 2, 3)]
    assert names == ["1L3H1 (4-2)", "2L5H11 (6-12)", "3L0H2 (1-3)"]  # the margin separates the number
    assert "coreference" in shown.panel(1).inner_text()
    expect(shown.page.locator(".top .scale")).to_contain_text("All panels share one scale: 0 to 1")
    boxes = [shown.canvas(i).bounding_box() for i in (1, 2, 3)]
    assert len({(b["width"], b["height"], b["y"]) for b in boxes if b}) == 1
    assert all(len(shown.pixels(shown.canvas(i))) > 10 for i in (1, 2, 3))
    assert shown.says(1) == "strongest between words it → animal 0.677"
    assert shown.page.locator(".whose:not(:empty)").count() == 0, "one sentence, one model: said nowhere"


def the_ring_of_the_focus_is_whole(shown: Sheet) -> None:
    for number in (1, 2, 3):
        free = shown.canvas(number).evaluate(
            "c => { const [a, b] = [c, c.closest('.box')].map((e) => e.getBoundingClientRect());"
            " return Math.min(b.right - a.right, a.left - b.left, a.top - b.top) }"
        )
        assert free >= 5


def a_word_pointed_at_is_shown_in_every_panel_with_exact_weights(shown: Sheet) -> None:
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


def only_what_changed_is_drawn(shown: Sheet) -> None:
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
    assert shown.page.evaluate("drawn") <= 3 * 14 * 14, "of each row passed the labels of one side a panel, and no cell"


def a_click_holds_and_escape_lets_go(shown: Sheet) -> None:
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


def the_keyboard_goes_where_the_pointer_goes(shown: Sheet) -> None:
    shown.canvas(1).focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        shown.page.keyboard.press(key)
    assert shown.says(1).startswith("The → animal ")
    assert shown.says(3).startswith("The → animal ")
    announcement = shown.page.locator(".said").inner_text()
    assert re.match(r"1, L3H1: The → animal \d\.\d{3}; 2, L5H11: The → animal \d\.\d{3}; 3, L0H2: ", announcement)
    assert "The → animal" in (shown.canvas(2).get_attribute("aria-label") or "")
    shown.page.keyboard.press("Enter")
    shown.page.wait_for_function("() => sent.at(-1)[1].pin === 'q1k2'")
    shown.page.keyboard.press("Escape")


def settings_are_told_as_url_parameters(shown: Sheet) -> None:
    shown.page.get_by_text("links", exact=True).click()
    shown.page.get_by_text("tokens", exact=True).click()
    shown.page.locator(".choice", has_text="Colour scale").locator("select").select_option("head")
    shown.page.wait_for_function("() => sent.at(-1)[1].scale === 'head'")
    view = shown.last("view")
    told = {name: view[name] for name in ("as", "unit", "scale", "special", "diff", "pin")}
    assert told == {"as": "links", "unit": "pieces", "scale": "head", "special": None, "diff": None, "pin": None}


def links_point_along_their_columns(shown: Sheet) -> None:
    shown.rest_on(1, "it → ")
    assert shown.says(3).startswith("it → because")
    shown.canvas(1).focus()
    shown.page.mouse.move(5, 5)
    shown.page.keyboard.press("ArrowDown")
    shown.page.keyboard.press("ArrowRight")
    assert shown.says(1).startswith("The ← ")


def back_brings_the_view_before(shown: Sheet) -> None:
    shown.page.evaluate(
        "() => { history.pushState({}, '', '?as=links&pin=q10'); history.pushState({}, '', '?'); history.back(); }"
    )
    expect(shown.panel(1).locator(".says")).to_contain_text("it → animal")
    expect(shown.page.locator(".segments input[value=links]")).to_be_checked()
    expect(shown.page.locator(".segments input[value=words]")).to_be_checked()


def test_an_address_is_shown_as_it_was(sheet: Callable[..., Sheet], wide: Attention) -> None:
    every_setting_is_read(sheet)
    a_pin_is_held_in_all_panels(sheet, wide)
    hidden_tokens_come_with_their_share(sheet)
    the_scale_is_shared_whatever_its_top(sheet)
    no_panel_and_one_panel_say_what_to_do(sheet)
    light_and_dark_have_their_colours(sheet)
    columns_follow_the_width(sheet)


def every_setting_is_read(sheet: Callable[..., Sheet]) -> None:
    shown = sheet(
        make_panels(), unit="pieces", special="rescale", scale="log", links="min0.20", diff="0-2", **{"as": "links"}
    )
    checked = shown.page.locator(".segments input:checked").evaluate_all("all => all.map((i) => i.value)")
    assert checked == ["links", "pieces", "rescale"]
    assert shown.page.locator(".which select").evaluate_all("all => all.map((s) => s.value)") == ["2", "0"]
    expect(shown.page.locator(".top .scale")).to_contain_text("0.001 to 1, logarithmic")
    expect(shown.page.locator("output")).to_have_text("0.20")


def a_pin_is_held_in_all_panels(sheet: Callable[..., Sheet], wide: Attention) -> None:
    shown = sheet([Panel(read_first(), Head(3, 1)), Panel(wide, Head(3, 1))], pin="q10k2", at="1")
    assert [shown.says(i) for i in (1, 2)] == ["it → animal 0.677", "it → animal 0.281"]


def hidden_tokens_come_with_their_share(sheet: Callable[..., Sheet]) -> None:
    shown = sheet(make_panels(), special="hide")
    for number in (1, 2, 3):
        note = shown.panel(number).locator(".note")
        expect(note).to_have_text(re.compile(r"^[\d.]+% of this head’s attention goes to hidden tokens\.$"))


def the_scale_is_shared_whatever_its_top(sheet: Callable[..., Sheet]) -> None:
    weak, strong = Panel(read_first(), Head(3, 4)), Panel(read_first(), Head(0, 2))
    top = LIGHT.ramp[-1]
    alone = sheet([weak], scale="head", special="hide")
    assert top in alone.pixels(alone.canvas(1))
    both = sheet([weak, strong], scale="head", special="hide")
    assert top not in both.pixels(both.canvas(1))
    assert top in both.pixels(both.canvas(2))
    peak = read_first()[Head(0, 2)][1:-1, 1:-1].max()
    expect(both.page.locator(".top .scale")).to_contain_text(f"0 to {peak:.3f}")


def no_panel_and_one_panel_say_what_to_do(sheet: Callable[..., Sheet]) -> None:
    none = sheet([])
    expect(none.page.locator(".hint")).to_contain_text("No heads chosen yet")
    assert none.page.locator(".drawing").is_hidden()
    one = sheet(make_panels()[:1], editable=True)
    expect(one.page.locator(".hint")).to_contain_text("Add a second head")
    expect(one.page.locator(".hint")).to_contain_text("duplicate")
    expect(one.page.locator(".pill")).to_have_count(0)
    ready_made = sheet(make_panels()[:1])
    assert not ready_made.page.locator(".hint").inner_text(), "it cannot be duplicated"


def light_and_dark_have_their_colours(sheet: Callable[..., Sheet]) -> None:
    for scheme, theme in (("light", LIGHT), ("dark", DARK)):
        for kind, colour in (("heatmap", theme.ramp[0]), ("links", theme.heads[1])):
            shown = sheet(make_panels(), scheme=scheme, diff="0-1", **{"as": kind})
            assert colour in shown.pixels(shown.canvas(1)), (scheme, kind)
            none = "#" + "".join(f"{channel:02x}" for channel in palette(theme.signed)[128])
            assert none in shown.pixels(shown.page.locator(".difference [role=application]")), (scheme, kind)


def columns_follow_the_width(sheet: Callable[..., Sheet]) -> None:
    twelve = [Panel(read_first(), Head(3, i)) for i in range(12)]
    for width, across in ((1440, 4), (1000, 3), (390, 1)):
        shown = sheet(twelve, size=(width, 844))
        lefts = {round(box["x"]) for i in range(1, 13) if (box := shown.panel(i).bounding_box())}
        assert len(lefts) == across, width
        assert shown.page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_long_text_begins_readable_and_scrolls_inside_its_panels(
    sheet: Callable[..., Sheet], minilm: Encoder
) -> None:
    all_of_it_is_one_click_away(sheet([Panel(minilm.encode("The animal slept. " * 12), Head(3, i)) for i in (1, 2)]))
    long = [Panel(make_long_reading(1, 4, 300), Head(0, i)) for i in range(4)]
    panels_scroll_together(sheet(long, size=(390, 844), **{"as": "links"}))


def all_of_it_is_one_click_away(shown: Sheet) -> None:
    line, scale = shown.page.locator(".begun"), shown.page.locator(".segments input[value=hide]")
    expect(line).to_contain_text("special tokens hidden")
    expect(scale).to_be_checked()
    line.get_by_role("button", name="Show all weights").click()
    expect(line).to_contain_text("All weights of this long text are shown")
    expect(scale).not_to_be_checked()
    line.get_by_role("button").click()
    expect(scale).to_be_checked()
    shown.page.locator(".segments label", has_text="tokens").click()
    expect(line).to_be_visible()
    shown.page.locator(".segments label").filter(has_text="shown").click()
    expect(line).to_be_hidden()


def panels_scroll_together(shown: Sheet) -> None:
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= 390
    before = shown.canvas(2).evaluate("c => c.toDataURL()")
    shown.panel(1).locator(".box").evaluate("b => b.scrollTo(0, 900)")
    shown.page.wait_for_function(
        "() => [...document.querySelectorAll('.panel .box')].every((b) => b.scrollTop === 900)"
    )
    shown.page.wait_for_function(
        "before => document.querySelectorAll('.panel [role=application]')[1].toDataURL() !== before", arg=before
    )  # what scrolled in is drawn


def test_readings_of_other_words_and_other_tokens_meet(
    sheet: Callable[..., Sheet], wide: Attention, tiny: Callable[[str], Encoder], minilm: Encoder
) -> None:
    of_one_text = [Panel(read_first(), Head(3, 1)), Panel(tiny("gpt2").encode(TIRED), Head(2, 1))]
    two_tokenizations_of_one_text_meet_by_characters(sheet(of_one_text, unit="pieces"))
    other = minilm.encode("Totally other sentence.")
    sentences = [Panel(reading, Head(3, 1)) for reading in (read_first(), wide, other)]
    sentences_meet_by_words_and_say_where_not(sheet(sentences))


def two_tokenizations_of_one_text_meet_by_characters(shown: Sheet) -> None:
    shown.rest_on(1, "animal → ")
    assert shown.says(2).split(" → ")[0].replace(" ##", "") == "animal"
    assert " " in shown.says(2).split(" → ")[0], "in several pieces"
    assert "gpt2" in shown.panel(2).locator(".whose").inner_text()
    shown.rest_on(1, "[CLS] → ")
    assert shown.says(2) == "no special token “[CLS]” here"


def sentences_meet_by_words_and_say_where_not(shown: Sheet) -> None:
    marked = [shown.panel(i).locator(".whose b").all_inner_texts() for i in (1, 2, 3)]
    assert marked == [["tired"], ["wide"], []], "words that differ stand out in both sentences or in none"
    shown.rest_on(2, "it → ")
    assert shown.says(1).startswith("it → animal 0.677")
    shown.rest_on(2, "wide → ")
    assert shown.says(1) == "no word “wide” here"
    expect(shown.canvas(1)).to_have_css("opacity", "1")  # no cell fades
