"""A first visit in a real browser: what is shown, what can be seen and clicked, and the effect of a link and a key."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from tests.browser_tab import PHONE, BrowserTab

if TYPE_CHECKING:
    from playwright.sync_api import ViewportSize

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
    return [step, covered];
}"""


def test_nothing_lies_over_a_head_and_each_has_45_pixels(newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer(viewport=LAPTOP)
    page = visitor.explore()
    page.get_by_role("button", name="Examples").click()
    step, covered = visitor.grid.evaluate(COVERED)
    assert step >= 45
    assert covered == []


# The lower edges of visible elements.
LOWER_EDGES = """parts => parts.map((part) => part.getBoundingClientRect()).filter((box) => box.height).map((box) =>
    Math.round(box.bottom))"""


def test_controls_share_a_row_at_every_width_above_a_phone(visitor: BrowserTab) -> None:
    page = visitor.explore()
    beside_search = page.locator(".st-key-search_box, .st-key-tour_way, .st-key-class_way")
    expect(beside_search.filter(visible=True)).to_have_count(3)
    for width in (1440, 1280, 1120, 1050, 720):
        page.set_viewport_size({"width": width, "height": 900})
        assert len(set(page.locator(".controls > *").evaluate_all(LOWER_EDGES))) == 1, width
        edges = beside_search.evaluate_all(LOWER_EDGES)
        assert max(edges) - min(edges) < 10, width


def test_a_projector_is_used_and_500_words_begin_readable(newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer(viewport=PROJECTOR)
    visitor.page.set_default_timeout(120_000)  # 500 words, perhaps the first that this server reads
    page = visitor.explore(text="The animal that was tired did not cross the street. " * 50)

    def step() -> float:
        return float(visitor.grid.evaluate("canvas => (canvas.getBoundingClientRect().width - 30) / 12"))

    assert step() >= 60
    sentence = page.locator(".begun")
    expect(sentence).to_contain_text("the three strongest links of each word, special tokens hidden, colours per row.")
    expect(page.locator(".controls .choice", has_text="Links").locator("select")).to_have_value("top")
    assert visitor.heat.evaluate(INKED) > 0.4
    page.get_by_role("button", name="Show everything").click()
    visitor.asked(special="keep", links="all", scale="fixed")
    expect(sentence).to_contain_text("Every weight of a long text is shown.")
    assert visitor.heat.evaluate(INKED) < 0.25
    page.get_by_role("button", name="Show the strongest links only").click()
    visitor.asked(special=None, links=None, scale=None)
    page.set_viewport_size(LAPTOP)
    narrower = "canvas => canvas.getBoundingClientRect().width < 700"
    page.wait_for_function(narrower, arg=visitor.grid.element_handle())
    assert 45 <= step() < 60


def test_a_first_visit_is_told_what_the_page_is_and_roles_wait_to_be_asked_for(
    newcomer: Callable[..., BrowserTab],
) -> None:
    visitor = newcomer(alone=True)
    page = visitor.explore()
    expect(page.get_by_text("MiniLM, a small BERT, has 72 attention heads.")).to_be_visible()
    page.get_by_role("button", name="Type your own sentence").click()
    expect(visitor.field).to_be_focused()
    expect(page.locator(".marks .badges")).to_have_count(0)
    page.get_by_label("Known roles").check()
    assert page.locator(".marks .badges").count() > 10
    visitor.explore()  # the browser remembers
    assert page.locator(".marks .badges").count() > 10
    visitor.explore(roles="off")  # a link takes precedence
    expect(page.locator(".marks .badges")).to_have_count(0)


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("/explore", "L3H1 · “The animal didn't cross the street becau…” · mha_viz"),
        ("/roles?model=toy", "Roles · Toy, trained on the built-in grammar · mha_viz"),
        ("/why_heads_differ?experiment=penalty", "Why heads differ · A penalty · mha_viz"),
    ],
)
def test_a_page_says_what_it_shows_in_its_title_and_one_heading(visitor: BrowserTab, path: str, title: str) -> None:
    page = visitor.visit(path)
    expect(page).to_have_title(title)
    expect(page.get_by_role("heading", level=1)).to_have_count(1)


def test_a_link_says_everything_and_who_can_open_it(newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer(permissions=["clipboard-read", "clipboard-write"])
    page = visitor.explore()
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_text("Only this computer can open the link.")).to_be_visible()
    copied = parse_qs(urlsplit(page.evaluate("navigator.clipboard.readText()")).query)
    sentence = "The animal didn't cross the street because it was too tired."
    assert copied == {"text": [sentence], "model": ["minilm"], "head": ["L3H1"], "pin": ["q10"]}
    page.get_by_role("button", name="save one interactive HTML file").click()
    expect(page.get_by_role("button", name="HTML, interactive")).to_be_visible()


def test_escape_closes_the_examples_and_then_lets_go(visitor: BrowserTab) -> None:
    page = visitor.explore()
    page.get_by_role("button", name="Examples").click()
    page.keyboard.press("Escape")
    expect(page.locator(".mha-sentence ul").first).to_be_hidden()
    expect(visitor.readout).to_contain_text("it attends to")
    assert visitor.address == {}
    page.keyboard.press("Escape")
    expect(visitor.readout).to_contain_text("Strongest link")


def test_a_tap_on_a_head_brings_its_drawing_into_sight(newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer(viewport=PHONE, has_touch=True)
    page = visitor.explore()
    visitor.grid.tap(position=visitor.head_at(2, 3))
    expect(visitor.title).to_have_text("L2H3 (3-4)")
    expect(page.locator(".one h2")).to_be_in_viewport()
    page.wait_for_function("h => h.getBoundingClientRect().top < 200", arg=page.locator(".one h2").element_handle())


def test_the_navigation_shows_where_the_keyboard_is(visitor: BrowserTab) -> None:
    page = visitor.explore()
    link = page.get_by_role("link", name="Compare")
    page.keyboard.press("Tab")
    while not link.evaluate("link => link === document.activeElement"):
        page.keyboard.press("Tab")
    expect(link).to_have_css("outline-style", "solid")
    expect(link).to_have_css("outline-width", "2px")
