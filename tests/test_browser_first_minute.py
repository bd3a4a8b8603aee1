"""A first visit in a real browser: what is shown and said, at every size of a window, by mouse, touch and keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from benchmarks.chromium import Traffic
from mha_viz.app.url.address import load_examples
from mha_viz.browser import bundle
from mha_viz.figures.drawing.theme import DARK, LIGHT
from tests.browser_tab import DESKTOP, PHONE, BrowserTab, measure_boxes
from tests.waiting import until

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route, ViewportSize

FIRST = load_examples()[0]["text"]
LAPTOP: ViewportSize = {"width": 1280, "height": 720}
PROJECTOR: ViewportSize = {"width": 1920, "height": 1080}
# The share of pixels of a drawing that differ from its most frequent colour.
INKED = """canvas => {
    const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const counts = new Map();
    for (const colour of new Uint32Array(data.buffer)) counts.set(colour, (counts.get(colour) ?? 0) + 1);
    return 1 - Math.max(...counts.values()) / (data.length / 4);
}"""
# The centre of each head, and the element that a pointer would hit there after scrolling.
COVERED = """canvas => {
    const main = document.querySelector("[data-testid=stMain]");
    const [left, top] = [30, 22];
    const step = (canvas.getBoundingClientRect().width - left) / 12;
    const covered = [];
    for (let layer = 0; layer < 6; layer++) for (let head = 0; head < 12; head++) {
        const place = () => canvas.getBoundingClientRect().top + top + (layer + 0.45) * step;
        main.scrollBy(0, place() - window.innerHeight + 20);
        const x = canvas.getBoundingClientRect().left + left + (head + 0.45) * step;
        const met = canvas.getRootNode().elementFromPoint(x, place());
        if (met !== canvas || document.elementFromPoint(x, place()) !== canvas.getRootNode().host)
            covered.push(`L${layer}H${head}`);
    }
    main.scrollTo(0, 0);
    return [step, covered];
}"""
# Count the pictures that fade away over drawings.
COUNT_FADED = """drawings => {
    drawings.faded = 0;
    const count = (node) => { drawings.faded += node.matches("canvas.before"); };
    const watch = new MutationObserver((changes) => changes.forEach(({ addedNodes }) => addedNodes.forEach(count)));
    watch.observe(drawings, { childList: true });
}"""
# What moves on the page by itself, as the browser measures it.
WATCH_SHIFTS = """() => {
    window.shifts = [];
    const note = (list) => list.getEntries().forEach((shift) => shifts.push(shift.hadRecentInput ? 0 : shift.value));
    new PerformanceObserver(note).observe({ type: "layout-shift" });
}"""
# Where the curves begin and end, in pixels from the left.
ENDS = """paths => paths.map((path) => [0, path.getTotalLength()].map((at) => path.getPointAtLength(at).x))"""
# How many pixels are left below the lowest point of arcs.
BELOW = """paths => Math.min(...paths.map((path) => path.ownerSVGElement.clientHeight - Math.max(
    ...[...Array(21).keys()].map((step) => path.getPointAtLength((path.getTotalLength() * step) / 20).y))))"""
# The lower edges of visible elements.
LOWER_EDGES = """parts => parts.map((part) => part.getBoundingClientRect()).filter((box) => box.height).map((box) =>
    Math.round(box.bottom))"""
# At which places of the scrolled page the numbers of a head lie over a drawing.
OVERLAPS = """numbers => {
    const [main, root] = [document.querySelector("[data-testid=stMain]"), numbers.getRootNode()];
    const found = [];
    for (let top = 0; top < main.scrollHeight; top += 200) {
        main.scrollTo(0, top);
        const other = numbers.getBoundingClientRect();
        for (const canvas of root.querySelectorAll(".grid canvas, .links canvas, .heat canvas")) {
            const one = canvas.getBoundingClientRect();
            const isApart = one.right <= other.left || other.right <= one.left || one.bottom <= other.top
                || other.bottom <= one.top;
            if (!isApart) found.push(`${canvas.parentElement.className}, scrolled by ${top}`);
        }
    }
    main.scrollTo(0, 0);
    return found;
}"""


def test_a_first_visit(newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer(alone=True)  # with an empty cache
    _the_shape_of_the_page_is_shown_and_less_than_2_megabytes_come(visitor)
    _the_first_picture_comes_without_a_click(visitor)
    _the_grid_shows_every_head_and_marks_the_opened_one(visitor)
    _drawings_say_what_they_show(visitor)
    _the_page_says_what_it_is_and_how_to_begin(visitor)
    _escape_closes_the_examples_and_then_lets_go(visitor)
    _roles_wait_to_be_asked_for_by_the_address(visitor)
    _no_shape_is_left_on_the_next_page(visitor)
    _the_keys_can_be_given_up(visitor.page)


def test_a_first_visit_of_the_roles(newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer(alone=True)
    traffic = Traffic(visitor.page)
    page = visitor.roles()
    expect(page.locator(".st-key-roles_first")).to_be_visible()
    expect(page.locator(".stApp")).to_have_attribute("data-test-script-state", "notRunning")
    page.wait_for_load_state("networkidle")
    page.wait_for_function("() => document.fonts.status === 'loaded'")
    assert 1e6 < traffic.bytes <= 2e6, (traffic.http, traffic.socket, visitor.requests)


def _the_shape_of_the_page_is_shown_and_less_than_2_megabytes_come(visitor: BrowserTab) -> None:
    page = visitor.page
    traffic = Traffic(page)
    waiting: list[Route] = []
    page.route(f"**/{bundle.name_served_file('explorer')}", lambda route: waiting.append(route), times=1)
    page.goto(visitor.url, wait_until="commit")  # a page is loaded only with the script that is held back
    shape = page.locator(".mha-skeleton")
    expect(shape).to_be_visible()
    until(lambda: page.evaluate("true") and bool(waiting))  # while it is asked, the request can arrive
    waiting[0].continue_()
    visitor.wait_until_drawn()
    expect(shape).to_be_hidden()
    page.wait_for_load_state("networkidle")
    page.wait_for_function("() => document.fonts.status === 'loaded'")
    assert 1e6 < traffic.bytes <= 2e6, (traffic.http, traffic.socket, visitor.requests)


def _the_first_picture_comes_without_a_click(visitor: BrowserTab) -> None:
    for canvas in (visitor.grid, visitor.heat):
        assert visitor.pixels(canvas)[1] > 20
    expect(visitor.links).to_be_hidden()  # the arcs over the sentence show them
    expect(visitor.page.locator(".bows path")).to_have_count(1)  # of the held word
    expect(visitor.page.locator(".caption")).to_have_text("L3H1: pronoun → what it refers to")
    expect(visitor.field).to_have_value(FIRST)
    expect(visitor.title).to_have_text("L3H1 (4-2)")
    expect(visitor.readout).to_contain_text("it attends to animal 0.677")
    assert visitor.address == {}
    bottom = visitor.page.locator(".one h2").bounding_box()
    assert bottom
    assert bottom["y"] < DESKTOP["height"] / 2, "the opened head is above the fold"


def _the_grid_shows_every_head_and_marks_the_opened_one(visitor: BrowserTab) -> None:
    page = visitor.page
    heading = page.locator(".overview h2")
    expect(heading).to_have_text("72 heads read the same sentence. Why do they differ? →")
    assert (heading.get_attribute("title") or "").startswith("6 layers × 12 heads. ")
    expect(page.locator(".marks .opened")).to_have_count(1)
    box, sheet = visitor.grid.bounding_box(), page.locator(".grid").bounding_box()
    assert box
    assert sheet
    assert box["width"] <= sheet["width"]
    assert box["y"] + box["height"] <= DESKTOP["height"]


def _drawings_say_what_they_show(visitor: BrowserTab) -> None:
    page = visitor.page
    page.locator(".drawing > summary").click()
    page.get_by_role("checkbox", name="Token links").check()
    for canvas, kind in ((visitor.heat, "Heatmap"), (visitor.links, "Token links")):
        label = canvas.get_attribute("aria-label") or ""
        assert label.startswith(f"{kind} of L3H1. it attends to animal 0.677")
    assert "Arrow keys" in (visitor.grid.get_attribute("aria-label") or "")
    page.get_by_role("checkbox", name="Token links").uncheck()
    expect(visitor.links).to_be_hidden()


def _the_page_says_what_it_is_and_how_to_begin(visitor: BrowserTab) -> None:
    page = visitor.page
    expect(page.get_by_text("Each square shows where one attention head looks.")).to_be_visible()


def _escape_closes_the_examples_and_then_lets_go(visitor: BrowserTab) -> None:
    page = visitor.page
    page.get_by_role("button", name="Examples").click()
    page.keyboard.press("Escape")
    expect(page.locator(".mha-sentence ul").first).to_be_hidden()
    expect(visitor.readout).to_contain_text("it attends to")
    assert visitor.address == {}
    page.keyboard.press("Escape")
    expect(visitor.readout).to_contain_text("Strongest link")


def _roles_wait_to_be_asked_for_by_the_address(visitor: BrowserTab) -> None:
    badges = visitor.page.locator(".marks .badges")
    expect(badges).to_have_count(0)
    visitor.unfold()
    visitor.page.get_by_label("Label roles").check()
    expect(badges.nth(10)).to_be_attached()
    visitor.wait_for_parameters(roles="on")  # so that others see them too
    visitor.page.go_back()
    visitor.wait_for_parameters(roles=None)
    expect(badges).to_have_count(0)
    expect(visitor.page.get_by_label("Label roles")).not_to_be_checked()
    visitor.page.go_forward()
    expect(badges.nth(10)).to_be_attached()
    visitor.explore()  # nothing but the address says so
    expect(badges).to_have_count(0)


def _no_shape_is_left_on_the_next_page(visitor: BrowserTab) -> None:
    page = visitor.page
    page.get_by_role("link", name="About").click()
    expect(page).to_have_title("About · mha_viz")
    expect(page.get_by_text("What the pictures show")).to_be_visible()
    expect(page.locator(".mha-skeleton")).to_have_count(0)


def _the_keys_can_be_given_up(page: Page) -> None:
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("button", name="Keyboard shortcuts").click()
    page.get_by_label("Use the keys /, ? and x anywhere on a page").uncheck()
    page.keyboard.press("Escape")
    page.reload()
    search = page.get_by_role("searchbox", name="Find a head")
    expect(search).to_be_visible()
    page.locator("body").press("/")
    expect(search).not_to_be_focused()


def test_the_heads_of_a_first_visit_take_turns_until_somebody_acts(newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer(reduced_motion="no-preference", new_tab=True)
    visitor.visit("/")
    visitor.wait_until_drawn()
    look = visitor.page.locator(".look")
    stood = look.bounding_box()
    visitor.page.evaluate(WATCH_SHIFTS)
    drawings = visitor.page.locator(".one > .panels")
    drawings.evaluate(COUNT_FADED)
    expect(visitor.title).to_have_text("L0H2 (1-3)")
    ends = visitor.page.locator(".bows path").evaluate_all(ENDS)  # of the arcs under the sentence
    assert len(ends) >= 11
    assert all(end < start for start, end in ends), "each word looks back"
    expect(visitor.page.locator(".caption")).to_have_text("L0H2 looks one token back.")
    expect(visitor.title).to_have_text("L2H8 (3-9)")
    expect(visitor.readout).to_contain_text("the attends to street")
    expect(visitor.page.locator(".caption")).to_have_text("L2H8 links a determiner to its noun.")
    expect(visitor.page.locator(".bows path")).to_have_count(1)
    assert visitor.page.evaluate("shifts.reduce((sum, shift) => sum + shift, 0)") < 0.001
    visitor.page.keyboard.press("Shift")
    stays = visitor.title.inner_text().split()[0]
    visitor.wait_for_parameters(head=stays)
    expect(visitor.page.locator("canvas.before")).to_have_count(0)
    assert drawings.evaluate("drawings => drawings.faded") >= 2, "links and heatmap"
    expect(visitor.title).to_contain_text(stays)
    visitor.click_head(5, 2)
    visitor.wait_for_parameters(head="L5H2")
    expect(look.get_by_role("button", name="Open L3H1")).to_be_visible()
    assert look.bounding_box() == stood
    visitor.explore(head="L0H2", text="Cats sleep here.")
    expect(visitor.page.locator(".bows path")).to_have_count(3)  # of every sentence
    _other_units_and_special_tokens_fade(visitor)


@pytest.mark.parametrize(
    ("viewport", "lines"), [(PHONE, 2), ({"width": 720, "height": 450}, 1)], ids=["phone", "zoomed"]
)
def test_a_narrow_window_has_room_for_arcs_below_each_line(
    newcomer: Callable[..., BrowserTab], viewport: ViewportSize, lines: int
) -> None:
    visitor = newcomer(viewport=viewport, has_touch=True, is_mobile=True)
    visitor.visit("/", head="L0H2")
    visitor.wait_until_drawn()
    arcs = visitor.page.locator(".bows path")
    expect(arcs.nth(5)).to_be_attached()
    field = visitor.field.bounding_box()
    boxes = measure_boxes(arcs)
    assert field
    assert all(box["y"] > field["y"] for box in boxes)
    assert arcs.evaluate_all(BELOW) >= 2, "half the width of a line"
    assert len({round(box["y"]) for box in boxes}) >= lines


def test_what_moves_on_a_first_visit_weighs_at_most_60_kilobytes(newcomer: Callable[..., BrowserTab]) -> None:
    still, moving = (_weight(newcomer, path) for path in ("/?head=L3H1", "/"))
    assert 1e6 < moving <= still + 60_000, (still, moving)


def _weight(newcomer: Callable[..., BrowserTab], path: str) -> int:
    """What a first visit receives, in bytes, at "/" until two heads have taken their turn."""
    visitor = newcomer(alone=True, reduced_motion="no-preference")
    traffic = Traffic(visitor.page)
    visitor.page.goto(f"{visitor.url}{path}")
    visitor.wait_until_drawn()
    if path == "/":
        expect(visitor.title).to_have_text("L2H8 (3-9)")  # two turns
    visitor.page.wait_for_load_state("networkidle")
    return traffic.bytes


def _other_units_and_special_tokens_fade(visitor: BrowserTab) -> None:
    page = visitor.page
    drawings = page.locator(".one > .panels")
    for name, value in (("unit", "pieces"), ("special", "hide")):
        drawings.evaluate(COUNT_FADED)
        page.locator(f"input[name={name}][value={value}]").check(force=True)
        visitor.wait_for_parameters(**{name: value})
        assert drawings.evaluate("drawings => drawings.faded") >= 2, name
        expect(page.locator("canvas.before")).to_have_count(0)


def test_a_window_of_every_size_in_light_and_dark(newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer(viewport=LAPTOP)
    visitor.explore()
    _nothing_lies_over_a_head_and_each_has_45_pixels(visitor)
    _controls_share_a_row_at_every_width_above_a_phone(visitor)
    _the_numbers_of_a_head_never_lie_over_a_drawing(visitor)
    _dark_and_light_paint_other_colours(visitor)


def _nothing_lies_over_a_head_and_each_has_45_pixels(visitor: BrowserTab) -> None:
    visitor.page.get_by_role("button", name="Examples").click()
    step, covered = visitor.grid.evaluate(COVERED)
    assert step >= 45
    assert covered == []
    visitor.page.keyboard.press("Escape")


def _controls_share_a_row_at_every_width_above_a_phone(visitor: BrowserTab) -> None:
    page = visitor.page
    beside_search = page.locator(".st-key-search_box, .st-key-tour_way, .mha-more")
    expect(beside_search.filter(visible=True)).to_have_count(3)
    for width in (1440, 1280, 1120, 1050, 720):
        visitor.resize({"width": width, "height": 900})
        assert len(set(page.locator(".controls > *").evaluate_all(LOWER_EDGES))) == 1, width
        edges = beside_search.evaluate_all(LOWER_EDGES)
        assert max(edges) - min(edges) < 10, width


def _the_numbers_of_a_head_never_lie_over_a_drawing(visitor: BrowserTab) -> None:
    for size in (PHONE, DESKTOP):
        visitor.resize(size)
        assert visitor.page.locator(".preview").evaluate(OVERLAPS) == [], size


def _dark_and_light_paint_other_colours(visitor: BrowserTab) -> None:
    visitor.page.keyboard.press("Escape")  # lets go of the held word, which is paler
    expect(visitor.readout).to_contain_text("Strongest link")
    for scheme, ramp, other in (("dark", DARK.ramp, LIGHT.ramp), ("light", LIGHT.ramp, DARK.ramp)):
        visitor.set_colour_scheme("dark" if scheme == "dark" else "light")
        for canvas in (visitor.grid, visitor.heat):
            visitor.wait_for_colour(canvas, ramp[0])
            assert not visitor.has_colour(canvas, other[0]), scheme


def test_a_phone(newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer(viewport=PHONE, has_touch=True, is_mobile=True, device_scale_factor=2)
    visitor.explore()
    _everything_is_shown_without_scrolling_sideways(visitor)
    _a_tap_on_a_head_brings_its_drawing_into_sight(visitor)


def _everything_is_shown_without_scrolling_sideways(visitor: BrowserTab) -> None:
    page = visitor.page
    visitor.check_no_sideways_scroll()
    for part in (visitor.field, visitor.links, visitor.heat, page.locator(".controls"), page.locator("section.ask")):
        box = part.bounding_box()
        assert box
        assert box["x"] >= 0
    for canvas in (visitor.grid, visitor.links, visitor.heat):
        assert visitor.pixels(canvas)[1] > 20


def _a_tap_on_a_head_brings_its_drawing_into_sight(visitor: BrowserTab) -> None:
    heading = visitor.page.locator(".one h2")
    visitor.grid.tap(position=visitor.head_at(2, 3))
    expect(visitor.title).to_have_text("L2H3 (3-4)")
    expect(heading).to_be_in_viewport()
    visitor.page.wait_for_function("h => h.getBoundingClientRect().top < 200", arg=heading.element_handle())


def test_a_long_text(newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer(viewport=PROJECTOR)
    visitor.explore(text="The animal that was tired did not cross the street. " * 50)
    _a_projector_is_used_and_500_words_begin_readable(visitor)
    _every_weight_is_shown_on_request(visitor)
    _a_text_beyond_the_limit_says_so_and_stays_as_typed(visitor)


def _step(visitor: BrowserTab) -> float:
    return float(visitor.grid.evaluate("canvas => (canvas.getBoundingClientRect().width - 30) / 12"))


def _a_projector_is_used_and_500_words_begin_readable(visitor: BrowserTab) -> None:
    page = visitor.page
    assert _step(visitor) >= 60
    expect(page.locator(".begun")).to_contain_text(
        "special tokens hidden, the three strongest links per word, colours per row."
    )
    expect(page.locator(".controls .choice", has_text="Links").locator("select")).to_have_value("top")
    assert visitor.heat.evaluate(INKED) > 0.4


def _every_weight_is_shown_on_request(visitor: BrowserTab) -> None:
    page = visitor.page
    page.get_by_role("button", name="Show all weights").click()
    visitor.wait_for_parameters(special="keep", links="all", scale="fixed")
    expect(page.locator(".begun")).to_contain_text("All weights of this long text are shown")
    assert visitor.heat.evaluate(INKED) < 0.25
    page.get_by_role("button", name="Show only the strongest links").click()
    visitor.wait_for_parameters(special=None, links=None, scale=None)


def _a_text_beyond_the_limit_says_so_and_stays_as_typed(visitor: BrowserTab) -> None:
    page = visitor.page
    visitor.resize(LAPTOP)
    assert 45 <= _step(visitor) < 60
    typed = "cat sat mat " * 3000
    visitor.field.fill(typed)
    visitor.field.press("Enter")
    expect(page.get_by_role("status").filter(has_text="36,000 characters were typed; a link can hold")).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="512 of more than")).to_be_visible()
    visitor.wait_until_drawn()
    expect(visitor.field).to_have_value(typed)
    expect(visitor.title).to_have_text("L3H1 (4-2)")
    visitor.click_head(5, 2)  # its matrix comes from the server
    visitor.wait_for_parameters(head="L5H2")
    visitor.wait_until_drawn()
    expect(visitor.title).to_have_text("L5H2 (6-3)")
    expect(visitor.readout).to_contain_text("Strongest link between words: ")


def test_a_direct_visit_asks_for_nothing_that_is_missing(newcomer: Callable[..., BrowserTab]) -> None:
    """Streamlit's client would look for the server below the page's own address first, and then at the root."""
    visitor, missing = newcomer(), []
    visitor.page.on("response", lambda got: missing.append(urlsplit(got.url).path) if got.status >= 400 else None)
    for path, drawn in {"/roles": ".mha-map", "/": ".grid canvas"}.items():
        visitor.visit(path)
        visitor.page.locator(drawn).first.wait_for()
    assert missing == []
