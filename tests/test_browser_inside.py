"""The Inside a head page, in a real browser on the real server."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from tests.browser_tab import PHONE, BrowserTab, measure_boxes


def test_a_head_is_looked_into_stage_by_stage(visitor: BrowserTab) -> None:
    sent: list[str | bytes] = []
    visitor.is_altered = True
    visitor.page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(frame)))
    page = visitor.visit("/inside_a_head", head="L3H1", q="10", k="2", step="x", costs="512,7,64")
    picture = page.locator(".mha-block")
    expect(page.get_by_text("7 heads cannot share 512 dimensions equally").first).to_be_visible()
    _stages_unfold_in_place_under_the_pointer(page, picture, sent)
    _stages_are_opened_by_keyboard(visitor, picture)
    _heads_are_opened_by_keyboard(visitor, picture)
    _a_word_is_marked_in_the_map_and_in_the_table(page, sent)
    picture.locator("[data-stage=score] .title").click()
    visitor.wait_for_parameters(step="score")
    _a_chart_is_shown(visitor)
    _a_mark_of_one_chart_is_a_mark_of_all(page)
    _without_the_division_softmax_saturates_before_the_eyes(visitor)
    _on_a_phone_a_map_fills_its_place(visitor)


def _stages_are_opened_by_keyboard(visitor: BrowserTab, picture: Locator) -> None:
    page = visitor.page
    expect(picture.locator("[aria-current=step]")).to_contain_text("16 × 384")
    picture.get_by_role("button", name="Share").focus()
    page.keyboard.press("Enter")
    visitor.wait_for_parameters(step="share")
    expect(picture.locator("[aria-current=step]")).to_contain_text("Share")
    _a_chart_is_shown(visitor)
    expect(picture.get_by_role("button", name="Share")).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    visitor.wait_for_parameters(step="moved")
    page.go_back()
    visitor.wait_for_parameters(step="share")
    expect(picture.locator("[aria-current=step]")).to_contain_text("Share")


def _stages_unfold_in_place_under_the_pointer(page: Page, picture: Locator, sent: list[str | bytes]) -> None:
    """Nothing else on the page moves, and nothing is asked of the server; the pinned stage opens again."""
    opened = picture.locator(".stage.open")
    expect(opened).to_be_visible()
    _settled(page)
    before, heading = len(sent), page.locator(".st-key-inside_stage h2")
    place = heading.bounding_box()
    for stage, words in (("score", "product"), ("writes", "beast"), ("join", "b_O")):
        picture.locator(f"[data-stage={stage}] .face").hover()
        expect(opened).to_have_attribute("data-stage", stage)
        expect(opened.locator(".detail")).to_contain_text(words)
        assert heading.bounding_box() == place
    page.mouse.move(2, 2)
    expect(opened).to_have_attribute("data-stage", "x")
    assert len(sent) == before


def _heads_are_opened_by_keyboard(visitor: BrowserTab, picture: Locator) -> None:
    page = visitor.page
    picture.get_by_role("radio", name="Head 1", exact=True).focus()
    page.keyboard.press("ArrowRight")
    visitor.wait_for_parameters(head="L3H2")
    expect(picture.locator(".chips [tabindex='0']")).to_have_count(1)
    expect(picture.get_by_role("radio", name="Head 2")).to_be_checked()
    expect(picture.get_by_role("radio", name="Head 2")).to_be_focused()
    page.go_back()
    visitor.wait_for_parameters(head="L3H1", step="share")
    expect(picture.get_by_role("radio", name="Head 1", exact=True)).to_be_checked()


def _without_the_division_softmax_saturates_before_the_eyes(visitor: BrowserTab) -> None:
    page = visitor.page
    page.locator(".st-key-inside_stage summary").filter(has_text="More").nth(1).click()
    expect(page.get_by_text("Without the division:")).to_be_visible()
    page.locator(".st-key-inside_undivided label").click()
    visitor.wait_for_parameters(divide="no")
    expect(page.get_by_role("switch")).to_be_checked()


def _on_a_phone_a_map_fills_its_place(visitor: BrowserTab) -> None:
    page = visitor.page
    visitor.resize(PHONE)
    visitor.visit("/inside_a_head", model="repeater", step="score")
    chart = page.locator(".st-key-wide_inside_mask_of_score .js-plotly-plot")
    page.wait_for_function(
        """chart => {
            const [box, cells] = [chart, chart.querySelector(".nsewdrag")].map((part) => part.getBoundingClientRect());
            return box.bottom - cells.bottom < 60 && cells.top - box.top < 130;
        }""",
        arg=chart.element_handle(),
    )


def _a_chart_is_shown(visitor: BrowserTab) -> None:
    expect(visitor.page.locator(".st-key-inside_stage .js-plotly-plot").first).to_be_visible()


def _settled(page: Page) -> None:
    expect(page.locator(".stApp")).to_have_attribute("data-test-script-state", "notRunning")


def _a_word_is_marked_in_the_map_and_in_the_table(page: Page, sent: list[str | bytes]) -> None:
    """Under the pointer, and without a message to the server."""
    expect(page.locator(".js-plotly-plot .plotly").first).to_be_visible()
    _settled(page)
    before = len(sent)
    page.locator('.inside-pinned [data-token="5"]').hover()
    expect(page.locator(".mha-band")).to_have_count(2)
    expect(page.locator(".st-key-wide_inside_by_hand tr.pointed")).to_have_count(1)
    page.mouse.move(2, 2)
    expect(page.locator(".mha-band")).to_have_count(0)
    assert len(sent) == before


def _a_mark_of_one_chart_is_a_mark_of_all(page: Page) -> None:
    _settled(page)  # a chart of the stage before is gone
    chart = page.locator(".st-key-wide_inside_scale_of_score .js-plotly-plot")
    expect(chart.locator(".plotly")).to_be_visible()
    _settled(page)
    bar = chart.locator(".subplot.x2y2 .point path").nth(2)  # “animal”, the tallest
    bar.scroll_into_view_if_needed()
    box = bar.bounding_box()
    assert box
    for step in (0, 1):
        page.mouse.move(box["x"] + box["width"] / 2 + step, box["y"] + box["height"] / 2)
    expect(page.locator(".mha-band")).to_have_count(2)
    expect(page.locator(".inside-pinned .pointed")).to_have_count(1)
    page.locator('.inside-pinned [data-token="5"]').hover()
    for reasons in (".inside-why", ".inside-sides"):
        expect(page.locator(f"{reasons}[data-key='5']")).to_be_visible()
        expect(page.locator(f"{reasons}[data-pinned]")).to_be_hidden()


def test_at_200_percent_a_stage_and_its_chart_stand_in_one_column(visitor: BrowserTab) -> None:
    page = visitor.visit("/inside_a_head", step="x", costs="512,8,64")
    visitor.resize({"width": 720, "height": 450})
    _a_chart_is_shown(visitor)
    table = page.locator(".st-key-wide_inside_costs table")
    expect(table).to_be_visible()
    columns = page.locator(".stColumn:visible")
    expect(columns).to_have_count(4)  # the words of the stage, its chart, the numbers of what it costs, their table
    assert all(box["width"] > 600 for box in measure_boxes(columns))
    assert table.evaluate("table => table.parentElement.scrollWidth <= table.parentElement.clientWidth")
