"""The difference of two panels, the compared heads and typed names, in a real browser on an empty page."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from mha_viz.attention import Attention, Head
from mha_viz.figures.layout.panels import Panel
from mha_viz.models.reading.encoder import Encoder
from mha_viz.text import Token, TokenizedText, clean
from tests import hostile, lanes
from tests.compare_sheet import TIRED, Sheet, make_panels, read_first

# ---- Difference -----------------------------------------------------------------------------------------


def test_two_panels_are_subtracted(sheet: Callable[..., Sheet]) -> None:
    shown = sheet(make_panels())
    a_pill_subtracts_neighbours_and_menus_any_two(shown)
    the_largest_are_listed(shown)
    tables_hold_the_same_numbers(shown)
    the_difference_closes(shown)
    names_stand_whole_or_with_dots(sheet)


def a_pill_subtracts_neighbours_and_menus_any_two(shown: Sheet) -> None:
    assert shown.page.locator(".difference").is_hidden()
    pill = shown.page.get_by_role("button", name="Difference of panels 2 and 3")
    expect(shown.page.locator(".pill")).to_have_count(2)
    pill.click()
    expect(shown.page.locator(".difference")).to_be_in_viewport(ratio=0.5)
    assert shown.last("view")["diff"] == "1-2"
    pill.click()
    expect(shown.page.locator(".difference")).to_be_hidden()
    pill.click()
    expect(pill).to_have_attribute("aria-pressed", "true")
    shown.page.get_by_label("Panel to subtract from").select_option(index=1)
    expect(shown.page.locator(".difference h2")).to_have_text("L5H11 minus L3H1")
    shown.page.get_by_label("Panel to subtract from").select_option(index=2)
    shown.page.get_by_label("Subtracted panel").select_option(index=0)
    expect(shown.page.locator(".difference h2")).to_contain_text("L0H2 minus L3H1")
    expect(shown.page.locator(".meaning")).to_have_text(
        re.compile(r"^Difference \d+\.\d% \(0% = identical, 100% = no overlap\)\.$")
    )


def the_largest_are_listed(shown: Sheet) -> None:
    items = shown.page.locator(".most li")
    expect(items).to_have_count(12)
    sizes = [abs(float(t.replace("−", "-"))) for t in items.locator(".value").all_inner_texts()]
    assert all(a >= b for a, b in pairwise(sizes))
    by_words = read_first().by_words()
    assert sizes[0] == pytest.approx(abs(by_words[Head(0, 2)] - by_words[Head(3, 1)]).max(), abs=6e-4)
    expect(shown.page.locator(".difference .scale")).to_contain_text(f"−{sizes[0]:.3f}")


def tables_hold_the_same_numbers(shown: Sheet) -> None:
    shown.page.get_by_text("Weights as a table").click()
    table = shown.page.locator("table")
    expect(table.locator("caption")).to_contain_text("L0H2 (1-3) minus L3H1 (4-2)")
    listed = shown.page.locator(".most li .value").first.inner_text()
    expect(table.locator("tbody tr").first.locator("td").last).to_have_text(listed)
    shown.page.get_by_label("Weights to show").select_option("0")
    row = table.locator("tbody tr", has=shown.page.locator("th", has_text=re.compile("^it$")))
    expect(row.locator("td").nth(2)).to_have_text("0.677")


def the_difference_closes(shown: Sheet) -> None:
    shown.page.get_by_role("button", name="Close").click()
    expect(shown.page.locator(".difference")).to_be_hidden()
    shown.page.wait_for_function("() => sent.at(-1)[1].diff === null")


def names_stand_whole_or_with_dots(sheet: Callable[..., Sheet]) -> None:
    long = "previous word head in the first layer"
    shown = sheet([Panel(read_first(), Head(0, 2), long), Panel(read_first(), Head(3, 1), "x" * 24)], diff="0-1")
    expect(shown.page.get_by_label("Panel to subtract from")).to_be_disabled()  # there are no others
    shown.page.get_by_text("Weights as a table").click()
    names = shown.page.get_by_label("Weights to show").locator("option").all_inner_texts()
    assert names == ["1  L0H2 previous word head in t…", f"2  L3H1 {'x' * 24}", "the difference"]


def test_a_replaced_word_carries_both_names_and_links_its_panels(sheet: Callable[..., Sheet], wide: Attention) -> None:
    shown = sheet([Panel(read_first(), Head(3, 1)), Panel(wide, Head(3, 1))], diff="0-1")
    expect(shown.page.locator(".difference h2")).to_contain_text("L3H1 with “wide” minus with “tired”")
    assert shown.page.locator(".whose b").all_inner_texts() == ["tired", "wide"], "in both sentences"
    shown.page.locator(".most li button", has_text="too → tired / wide").hover()
    shown.frame()
    assert [shown.says(i).rsplit(" ", 1)[0] for i in (1, 2)] == ["too → tired", "too → wide"]
    a_listed_difference_is_held_in_all_panels(shown)


def a_listed_difference_is_held_in_all_panels(shown: Sheet) -> None:
    entry = shown.page.locator(".most li button", has_text="it → animal")
    assert re.sub(r"\s+", " ", entry.inner_text()) == "it → animal 0.677 → 0.281 −0.396"
    entry.click()
    shown.page.mouse.move(5, 5)
    shown.frame()
    assert [shown.says(i) for i in (1, 2)] == ["it → animal 0.677", "it → animal 0.281"]
    expect(shown.page.locator(".difference .says")).to_have_text("it → animal 0.677 → 0.281 −0.396")
    expect(entry).to_have_attribute("aria-current", "true")
    assert shown.last("view")["pin"] == "q10k2"


def test_panels_that_cannot_be_subtracted_say_why_and_what_helps(
    sheet: Callable[..., Sheet], tiny: Callable[[str], Encoder], minilm: Encoder
) -> None:
    shown = sheet(
        [Panel(read_first(), Head(3, 1)), Panel(tiny("gpt2").encode(TIRED), Head(0, 0))], unit="pieces", diff="0-1"
    )
    expect(shown.page.locator(".meaning")).to_contain_text(
        "their words are split differently, and their special tokens differ"
    )
    assert shown.page.locator(".difference .box").is_hidden()
    shown.page.get_by_role("button", name="Compare by words, without special tokens").click()
    expect(shown.page.locator(".most li")).to_have_count(12)
    view = shown.last("view")
    assert (view["unit"], view["special"]) == (None, "hide")

    other = minilm.encode("The tired animal stayed.")
    none = sheet([Panel(read_first(), Head(3, 1)), Panel(other, Head(3, 1))], diff="0-1")
    expect(none.page.locator(".meaning")).to_contain_text("do not correspond one to one")
    expect(none.page.locator(".meaning")).to_contain_text("“stayed” only in panel 2")
    a_folder_is_called_by_its_own_name(sheet)


def a_folder_is_called_by_its_own_name(sheet: Callable[..., Sheet]) -> None:
    folder_model = Attention("/srv/secret/own", "", read_first().text, read_first().weights)
    shown = sheet([Panel(read_first(), Head(3, 1)), Panel(folder_model, Head(3, 1))], diff="0-1")
    assert "own" in shown.panel(2).locator(".whose").inner_text()
    assert "L3H1 of own minus L3H1 of all-MiniLM-L6-v2" in shown.page.locator(".difference h2").inner_text()
    assert "secret" not in shown.page.locator(".compare").inner_text()


# ---- The compared heads ---------------------------------------------------------------------------------


def test_the_compared_heads_are_edited(sheet: Callable[..., Sheet]) -> None:
    the_tools_are_one_stop_of_the_tab_key(sheet(make_panels(), editable=True))
    escape_leaves_a_name_and_a_pin_as_they_were(sheet(make_panels(), editable=True, pin="q10"))
    a_panel_is_renamed_in_place(sheet(make_panels(), editable=True))
    edits_say_what_to_do_with_which_compared_head(sheet)
    ready_made_panels_are_pinned(sheet(make_panels()))
    after_an_edit_the_keyboard_and_the_view_stay_with_the_panel(sheet(make_panels(), editable=True, diff="0-2"))


def the_tools_are_one_stop_of_the_tab_key(shown: Sheet) -> None:
    stops = shown.panel(1).locator(".tools button").evaluate_all("all => all.map((b) => b.tabIndex)")
    assert stops == [0, -1, -1, -1, -1]
    shown.tool(1, "left").focus()
    shown.page.keyboard.press("ArrowRight")
    shown.page.keyboard.press("ArrowRight")
    assert shown.tool(1, "duplicate").evaluate("b => document.activeElement === b")
    now = "buttons => buttons.filter((b) => b.tabIndex === 0).map((b) => b.dataset.tool)"
    assert shown.panel(2).locator("[data-tool]").evaluate_all(now) == ["left"]
    shown.tool(2, "duplicate").focus()
    assert shown.panel(2).locator("[data-tool]").evaluate_all(now) == ["duplicate"], "the one that was used last"


def escape_leaves_a_name_and_a_pin_as_they_were(shown: Sheet) -> None:
    shown.panel(1).locator(".rename").click()
    field = shown.panel(1).get_by_label("Name of this panel")
    field.fill("other")
    field.press("Escape")
    assert "coreference" in shown.panel(1).inner_text()
    assert shown.says(1).startswith("it → animal")
    assert shown.page.evaluate("sent") == []


def a_panel_is_renamed_in_place(shown: Sheet) -> None:
    shown.panel(2).hover()
    shown.panel(2).locator(".rename").click()
    field = shown.panel(2).get_by_label("Name of this panel")
    field.fill("  agreement  ")
    field.press("Enter")
    edit = shown.last("edit")
    assert (edit["action"], edit["index"], edit["name"]) == ("rename", 1, "agreement")


def edits_say_what_to_do_with_which_compared_head(sheet: Callable[..., Sheet]) -> None:
    expected: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "right": ({"action": "move", "index": 0, "to": 2}, {"diff": "1-2", "at": "2"}),
        "duplicate": ({"action": "duplicate", "index": 0}, {"diff": "0-3", "at": "3"}),
        "remove": ({"action": "remove", "index": 0}, {"diff": "none", "at": "1"}),
        "open": ({"action": "open", "index": 0, "head": "L3H1", "text": TIRED, "pair": ""}, {"diff": "0-2"}),
    }
    for tool, (message, view) in expected.items():
        shown = sheet(make_panels(), editable=[0, 2, 5], diff="0-2", pin="q10", at="2")
        assert shown.tool(1, "left").get_attribute("aria-disabled") == "true"
        shown.tool(1, "left").click(force=True)
        assert shown.page.evaluate("sent") == []
        shown.tool(1, tool).click()
        edit = shown.last("edit")
        assert edit == edit | message, tool
        assert edit["view"] == edit["view"] | view, tool


def ready_made_panels_are_pinned(shown: Sheet) -> None:
    assert shown.page.locator("[data-tool=remove], .rename").count() == 0
    shown.tool(2, "pin").click()
    edit = shown.last("edit")
    assert edit == edit | {"action": "pin", "index": 1, "head": "L5H11", "model": "minilm", "text": TIRED, "pair": ""}


def after_an_edit_the_keyboard_and_the_view_stay_with_the_panel(shown: Sheet) -> None:
    panels = make_panels()
    shown.tool(1, "right").focus()
    shown.page.keyboard.press("Enter")
    shown.page.keyboard.press("Enter")  # before the answer it would move a panel at the old place
    assert len(shown.page.evaluate("sent")) == 1
    assert shown.page.evaluate("mhaVizQueue.waiting.size") == 0, "the second one will not be sent later either"
    shown.draw([panels[1], panels[0], panels[2]], editable=True)
    assert shown.panel(2).locator("code").inner_text() == "L3H1"
    assert shown.tool(2, "right").evaluate("b => b.getRootNode().activeElement === b")
    assert shown.page.locator(".which select").evaluate_all("all => all.map((s) => s.value)") == ["2", "1"]
    expect(shown.page.locator(".said")).to_have_text("Moved to place 2.")
    shown.page.keyboard.press("Enter")
    shown.page.wait_for_function("() => sent.filter((m) => m[0] === 'edit').length === 2")


def test_an_edit_is_one_message_that_names_the_address_after_it(sheet: Callable[..., Sheet]) -> None:
    """Each message about the view is an entry of the browser's history. Two panels open with their difference."""
    one, two, other = make_panels()
    edits: list[tuple[str, list[Panel], list[Panel], str | None]] = [
        ("remove", [one, two], [two], None),
        ("duplicate", [one], [one, one], "none"),
        ("remove", [one, two, other], [two, other], "none"),
        ("duplicate", [one, two], [one, one, two], "0-2"),
        ("right", [one, two], [two, one], "1-0"),
    ]
    for tool, before, after, diff in edits:
        opens = {2: "0-1"}
        shown = sheet(before, editable=True, opens=opens.get(len(before), ""))
        shown.tool(1, tool).click()
        view = shown.last("edit")["view"]
        assert {name: value for name, value in view.items() if value} == ({"diff": diff} if diff else {}), tool
        shown.page.evaluate("address => history.pushState({}, '', address)", f"?diff={diff}" if diff else "?")
        planned = shown.draw(after, editable=True, opens=opens.get(len(after), ""))
        assert planned == 0, f"{tool}: the view needs no second message"
        assert shown.page.locator(".difference").is_visible() is (diff not in (None, "none")), tool


def test_names_have_their_room(sheet: Callable[..., Sheet]) -> None:
    for width in (1440, 390):
        a_long_name_shrinks_before_the_buttons_move(sheet, width)
    a_name_has_all_the_room_that_the_buttons_leave(sheet)


def a_long_name_shrinks_before_the_buttons_move(sheet: Callable[..., Sheet], width: int) -> None:
    panels = [Panel(read_first(), Head(layer, 1), "another long name of a head, as people give") for layer in range(4)]
    shown = sheet(panels, size=(width, 900), editable=True)
    for number in (1, 2, 3, 4):
        panel, button = (shown.panel(number).bounding_box(), shown.tool(number, "remove").bounding_box())
        assert panel
        assert button
        assert button["x"] + button["width"] <= panel["x"] + panel["width"] + 6, width
    assert shown.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width


def a_name_has_all_the_room_that_the_buttons_leave(sheet: Callable[..., Sheet]) -> None:
    long = "a name that no panel of four has room for, nor of two"
    shown = sheet(
        [Panel(read_first(), Head(layer, 1), name) for layer, name in enumerate(("a name", long, "", ""))],
        editable=True,
    )
    names = shown.page.locator(".rename")
    assert names.nth(0).evaluate("b => b.querySelector('bdi').scrollWidth <= b.querySelector('bdi').clientWidth")
    assert [names.nth(i).get_attribute("title") for i in range(3)] == ["a name. Rename", f"{long}. Rename", "Rename"]


# ---- Typed names ----------------------------------------------------------------------------------------

PLAIN = ("strike", "comment", "entity", "json breaker", "tex", "right-to-left override")
NASTY = [name for name, text in hostile.TEXTS.items() if hostile.FOREIGN_HOST in text or name in PLAIN]
OFTEN = ("closing script", "image with handler", "stylesheet", "strike", "entity", "right-to-left override")


def test_what_is_typed_is_never_markup(sheet: Callable[..., Sheet]) -> None:
    shown = sheet(make_panels(), diff="0-1")
    shown.page.get_by_text("Weights as a table").click()
    for name in lanes.some(NASTY, *OFTEN):
        text = clean(hostile.TEXTS[name])
        panels = [Panel(_spoken(word), Head(0, 0), text[:60]) for word in (text, text + "!")]
        shown.draw(panels, editable=True)
        expect(shown.page.locator(".compare table caption")).to_contain_text("minus")
        assert shown.page.locator(".compare :is(script, img, iframe, s, style, a[href])").count() == 0, name
        assert shown.panel(1).locator(".rename bdi").text_content() == text[:60]
        assert text.split()[0] in (shown.panel(1).locator(".whose").text_content() or ""), name
        shown.rest_on(1, "before")
        assert shown.page.evaluate("globalThis.__xss") is None, name
        shown.check_no_faults()


def _spoken(word: str) -> Attention:
    """A reading in which ``word`` is a token, after an ordinary one."""
    typed = f"before {word}"
    tokens = (Token("before", 0, 0, 0, 6), Token(word, 1, 0, 7, len(typed)))
    weights = np.array([[[[0.25, 0.75], [0.5, 0.5]]]], np.float32)  # [layer, head, query, key]
    return Attention("<b>model</b>", "", TokenizedText(typed, "", tokens), weights)
