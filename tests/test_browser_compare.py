"""Comparing heads and downloading figures, in a real browser on the real server."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as Tree

import pypdfium2
import pytest
from playwright.sync_api import Locator, Page, expect

from mha_viz.app.url import comparison
from mha_viz.app.url.address import load_examples
from mha_viz.app.url.comparison import ComparedHead
from mha_viz.attention import Head
from mha_viz.request import Request
from tests.browser_tab import PHONE, BrowserTab
from tests.late_server import LateServer

FIRST = load_examples()[0]["text"]
WIDE = FIRST.replace("tired", "wide")
OLD = FIRST.replace("tired", "old")
TWO = (
    comparison.write(
        [ComparedHead(Request("minilm", FIRST), Head(3, 1)), ComparedHead(Request("minilm", WIDE), Head(3, 1), "wide")]
    )
    or ""
)


def settled(page: Page) -> None:
    """Wait until no script runs: one that goes on makes some controls anew."""
    page.locator(".stApp[data-test-script-state=notRunning]").wait_for()


def panels(page: Page) -> Locator:
    return page.locator("article.panel")


def panel(page: Page, number: int) -> str:
    """The text of a panel in the next frame."""
    text: str = (
        panels(page)
        .nth(number)
        .evaluate("panel => new Promise((done) => requestAnimationFrame(() => done(panel.innerText)))")
    )
    return " ".join(text.split())


# ---- From Explore to the compared heads -----------------------------------------------------------------


def test_heads_go_from_explore_to_the_compared_heads(visitor: BrowserTab) -> None:
    page = visitor.explore(off="L0H1", how="uniform")
    page.get_by_text("+ Compare").click()
    without = ComparedHead(Request("minilm", FIRST, off=(Head(0, 1),), method="uniform"), Head(3, 1))
    visitor.wait_for_parameters(tray=comparison.write([without]))
    page.get_by_role("button", name="Switch L0H1 on").click()
    visitor.wait_for_parameters(off=None)
    visitor.wait_until_drawn()
    a_head_of_the_grid_is_added_by_its_key(visitor, [without])
    visitor.grid.click(position=visitor.head_at(2, 4), modifiers=["Shift"])
    pins = [without, *(ComparedHead(Request("minilm", FIRST), head) for head in (Head(3, 2), Head(2, 4)))]
    visitor.wait_for_parameters(tray=comparison.write(pins))
    expect(visitor.title).to_have_text("L3H1 (4-2)")  # the open head stays
    page.get_by_role("combobox", name="Quantity").select_option("rollout")
    visitor.wait_for_parameters(shown="rollout")
    expect(page.locator(".one h2")).to_have_text("After layer 5, all heads together")
    page.get_by_text("+ Compare").click()
    expect(page.get_by_text("Added Layer 5 to My heads")).to_be_visible()
    visitor.wait_for_parameters(tray=comparison.write([*pins, ComparedHead(Request("minilm", FIRST), Head(5, 0))]))
    visitor.read("Cats sleep.")  # the compared heads outlive the text that they came from
    page.get_by_role("link", name="Compare (4)").click()
    expect(panels(page)).to_have_count(4)
    assert "without L0H1: uniform" in panel(page, 0)
    assert "rollout" in panel(page, 3)
    page.go_back()
    visitor.wait_until_drawn()
    expect(visitor.field).to_have_value("Cats sleep.")


def a_head_of_the_grid_is_added_by_its_key(visitor: BrowserTab, before: list[ComparedHead]) -> None:
    visitor.grid.focus()
    visitor.page.keyboard.press("ArrowRight")
    visitor.page.keyboard.press("c")
    visitor.wait_for_parameters(tray=comparison.write([*before, ComparedHead(Request("minilm", FIRST), Head(3, 2))]))


# ---- One change is one entry of the history -------------------------------------------------------------


def test_each_change_of_the_compared_heads_is_undone_by_one_back_and_redone_by_one_forward(
    newcomer: Callable[..., BrowserTab],
) -> None:
    visitor = newcomer(new_tab=True)  # the history of a tab ends at 50 entries
    pins = [ComparedHead(Request("minilm", FIRST), head) for head in (Head(3, 1), Head(3, 2), Head(5, 0))]
    page = visitor.visit("/compare", tray=comparison.write(pins) or "")
    states = [state(visitor, "L3H1", "L3H2", "L5H0")]
    before = page.evaluate("history.length")
    changes = {
        "Remove: panel 3": ("L3H1", "L3H2"),  # could open with a difference, which nobody asked for
        "Move right: panel 1": ("L3H2", "L3H1"),
        "Remove: panel 1": ("L3H1",),  # of one panel there is no difference that could be closed
        "Duplicate: panel 1": ("L3H1", "L3H1"),
    }
    for name, heads in changes.items():
        page.get_by_role("button", name=name).click()
        states.append(state(visitor, *heads))
    assert [address.get("diff") for address, _ in states] == [None, "none", "none", None, "none"]
    for go, one in [(page.go_back, one) for one in states[-2::-1]] + [(page.go_forward, one) for one in states[1:]]:
        go()
        page.wait_for_function(
            "wanted => JSON.stringify(Object.fromEntries(new URLSearchParams(location.search))) === wanted",
            arg=page.evaluate("JSON.stringify", one[0]),
        )
        assert state(visitor, *one[1]) == one
    assert page.evaluate("history.length") == before + len(changes)


def state(visitor: BrowserTab, *heads: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """The address, once the page shows these heads and no difference."""
    expect(panels(visitor.page).locator("h2 code")).to_have_text([*heads])
    expect(visitor.page.locator(".difference")).to_be_hidden()
    return visitor.address, heads


# ---- The Compare page -----------------------------------------------------------------------------------


def test_a_link_is_opened_and_other_comparisons_are_chosen(visitor: BrowserTab) -> None:
    page = visitor.visit("/compare", tray=TWO)
    two_panels_open_with_their_difference(page)
    a_word_pointed_at_is_shown_in_every_panel(page)
    all_compared_heads_are_downloaded(page)
    a_word_is_replaced_in_place(visitor)
    the_head_that_carries_the_difference_is_pinned_by_keyboard(visitor)


def two_panels_open_with_their_difference(page: Page) -> None:
    """Their link does not mention it."""
    expect(panels(page)).to_have_count(2)
    expect(page.get_by_text("100% = no overlap").first).to_be_visible()
    expect(page.get_by_text("tired / wide").first).to_be_visible()


def a_word_pointed_at_is_shown_in_every_panel(page: Page) -> None:
    box = page.locator("article.panel canvas").first.bounding_box()
    assert box
    for y in range(4, int(box["height"]), 6):
        page.mouse.move(box["x"] + 8, box["y"] + y)
        if "it → animal 0.677," in panel(page, 0):
            break
    assert "it → animal 0.677," in panel(page, 0)
    assert "it → animal 0.281," in panel(page, 1)


def all_compared_heads_are_downloaded(page: Page) -> None:
    page.get_by_text("Download", exact=True).click()
    everything = page.get_by_role("button", name="All of My heads")
    everything.wait_for()
    settled(page)
    with page.expect_download() as started:
        everything.click()
    with zipfile.ZipFile(io.BytesIO(Path(started.value.path()).read_bytes())) as file:
        assert file.testzip() is None
        assert "2_L3H1-links_the-animal-didnt-cross.svg" in file.namelist()


def a_word_is_replaced_in_place(visitor: BrowserTab) -> None:
    page = visitor.page
    page.get_by_role("radio", name="Swap a word").click()
    visitor.wait_for_parameters(show="word")
    field = page.get_by_label("Change a word, then press Enter")
    expect(field).to_have_value(WIDE)
    expect(page.get_by_text("tired / wide").first).to_be_visible()
    field.fill(OLD)
    field.press("Enter")
    visitor.wait_for_parameters(second=OLD, diff="0-1")
    expect(panels(page).nth(1)).to_contain_text("old")
    expect(page.get_by_text("tired / old").first).to_be_visible()
    page.get_by_role("button", name="Close", exact=True).click()
    visitor.wait_for_parameters(diff="none")
    expect(page.get_by_text("Jensen–Shannon").first).to_be_hidden()


def the_head_that_carries_the_difference_is_pinned_by_keyboard(visitor: BrowserTab) -> None:
    page = visitor.page
    page.get_by_text("Which heads carry the difference?").click()
    squares = page.get_by_role("group", name="Heads. Arrow keys move").get_by_role("button")
    expect(squares).to_have_count(72)
    settled(page)
    squares.and_(page.get_by_role("button", name="is pinned")).focus()
    way = {"ArrowRight": "L3H2", "ArrowUp": "L2H2", "End": "L2H11", "Control+Home": "L0H0"}
    for key, head in (way | {"Escape": "L3H1", "ArrowDown": "L4H1"}).items():
        page.keyboard.press(key)
        expect(page.locator(":focus")).to_have_accessible_name(re.compile(rf"^{head} \(.*%$"))
    page.keyboard.press("Enter")
    visitor.wait_for_parameters(head="L4H1")
    expect(page.locator(":focus")).to_have_accessible_name(re.compile(r"^L4H1 \(5-2\) is pinned, "))
    page.keyboard.press("Enter")  # lets it go
    visitor.wait_for_parameters(head=None)
    expect(page.locator(":focus")).to_have_accessible_name(re.compile(r"^L4H1 \(5-2\)(?! is pinned)"))


def test_back_on_a_slow_line_is_drawn_although_the_browser_has_forgotten_the_chart(visitor: BrowserTab) -> None:
    """Streamlit's page stopped for good: the server relied on a message that the browser dropped meanwhile."""
    visitor.is_altered = True
    page, server = visitor.page, LateServer(visitor.page)
    visitor.visit("/compare", tray=TWO, show="word")
    page.get_by_text("Which heads carry the difference?").click()
    squares = page.get_by_role("group", name="Heads. Arrow keys move").get_by_role("button")
    expect(squares).to_have_count(72)
    pinned = squares.and_(page.get_by_role("button", name="is pinned"))
    for head in ("L4H1", "L4H2"):
        settled(page)
        page.locator(f".mha-squares [data-head={head}]").press("Enter")
        expect(pinned).to_have_attribute("data-head", head)
    settled(page)
    server.hold_back()
    page.locator(".mha-squares [data-head=L5H5]").press("Enter")
    server.wait_for_runs(1)
    page.go_back()
    server.wait_for_runs(2)
    server.release()
    expect(pinned).to_have_attribute("data-head", "L4H1")


EDGES = """all => all.map(button => {
  const style = getComputedStyle(button);
  return new Set(["Top", "Right", "Bottom", "Left"].map(side => style[`border${side}Color`])).size;
})"""


def test_a_phone_shows_each_comparison_without_scrolling_sideways(newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer(viewport=PHONE, has_touch=True, is_mobile=True, device_scale_factor=2)
    page = visitor.visit("/compare", tray=TWO)
    drawn = {
        "My heads": panels(page),
        "A whole layer": page.get_by_text("The 12 heads of layer"),
        "Swap a word": page.get_by_label("Change a word, then press Enter"),
    }
    for name, part in drawn.items():
        page.get_by_role("radio", name=name).tap()
        expect(part.locator("visible=true").first).to_be_visible()
        settled(page)
        visitor.check_no_sideways_scroll()
        assert set(page.locator(".st-key-show button").evaluate_all(EDGES)) == {1}, f"{name}: one has uneven borders"


# ---- Downloads ------------------------------------------------------------------------------------------


def test_a_figure_is_previewed_and_downloaded(visitor: BrowserTab) -> None:
    page = visitor.explore(head="L3H1", special="rescale")
    page.get_by_text("Download", exact=True).click()
    the_preview_has_the_shape_of_the_file(page)
    described = Tree.fromstring(downloaded(page, "SVG")).findtext("{http://www.w3.org/2000/svg}desc")
    assert "L3H1 (4-2)" in (described or "")
    assert "animal" in pypdfium2.PdfDocument(downloaded(page, "PDF"))[0].get_textpage().get_text_range()
    for suffix in ("PNG", "CSV"):
        assert len(downloaded(page, suffix)) > 1000
    page.get_by_text("Links of L3H1", exact=True).click()
    expect(page.get_by_text("a.links(layer=3, head=1")).to_be_visible()


def the_preview_has_the_shape_of_the_file(page: Page) -> None:
    preview = page.get_by_alt_text("Preview of the figure")
    expect(preview).to_be_visible()
    expect(preview).to_have_js_property("complete", True)
    shown, whole = preview.evaluate("i => [i.clientWidth / i.clientHeight, i.naturalWidth / i.naturalHeight]")
    assert shown == pytest.approx(whole, rel=0.01)


def downloaded(page: Page, suffix: str) -> bytes:
    settled(page)
    with page.expect_download() as started:
        page.get_by_role("button", name=suffix, exact=True).click()
    assert started.value.suggested_filename == f"L3H1_the-animal-didnt-cross.{suffix.lower()}"
    return Path(started.value.path()).read_bytes()
