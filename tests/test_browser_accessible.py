"""Every page, visited once, for everybody: with everything open, on two pages a search too, axe-core finds nothing, in
light or in dark, on a desktop or on a phone, in turn (with ``--all`` in all four); in forced colours what is chosen is
still seen; words stand beside their rows, and are easy to read beside a held one; a phone scrolls down only; the title
says what is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import urlsplit

import pytest
from PIL import Image
from playwright.sync_api import expect

from mha_viz.app.lab.questions import load_questions
from tests import forced_colours, lanes
from tests.axe import check_with_axe
from tests.browser_tab import DESKTOP, FRAMES, PHONE, BrowserTab
from tests.forced_colours import check_chosen
from tests.painted import RECORD_TEXTS, check_label_positions, check_readable, show_words
from tests.screenshots import measure_difference

if TYPE_CHECKING:
    from playwright.sync_api import Page, ViewportSize

    Scheme = Literal["light", "dark"]

# Streamlit loads the code for labels and charts when the first one is needed.
DRAWN = """() => [...document.querySelectorAll("button[data-variant=pills]")].every(pill => pill.innerText.trim())
    && [...document.querySelectorAll(".stPlotlyChart")].every(chart => chart.querySelector(".main-svg"))"""
# The colour of chart ticks in the other colour scheme.
OTHER_TICKS = {"light": "rgb(163, 168, 174)", "dark": "rgb(93, 98, 104)"}
NO_TICK = """(colour) => [...document.querySelectorAll(".js-plotly-plot .xtick text")]
    .every(tick => getComputedStyle(tick).fill !== colour)"""
NAMED_IN_WORDS = """() => [...document.querySelectorAll("[aria-label]")]
    .every((control) => !/[$\\\\]/.test(control.getAttribute("aria-label")))"""
NAME_OF_CHART = """(chart) => [chart, chart.parentElement, ...chart.querySelectorAll("[role=img], [aria-label]")]
    .map((part) => part.getAttribute("aria-label")).find(Boolean)"""
SEARCHED = ("/", "/compare")  # axe-core sees answers of a search on these, with ``--all`` on every page
SCHEMES: tuple[Scheme, Scheme] = ("light", "dark")
WINDOWS: tuple[ViewportSize, ...] = (DESKTOP, {"width": 1280, "height": 720}, PHONE)


class Visited(NamedTuple):
    """A page: its address, its title if it is told here, words on it, what is checked in forced colours, the drawings
    whose words are easy to read beside a held one, and whether it has maps of a training."""

    path: str
    title: str = ""
    shows: str = ""
    forced: Sequence[forced_colours.Check] = ()
    read: Sequence[str] = ()
    maps: bool = False

    @property
    def painted(self) -> bool:
        """True if what is painted has to be noted."""
        return self.maps or bool(self.read)


PAGES = (
    Visited(
        "/",
        "L3H1 · “The animal didn't cross the street becau…” · mha_viz",
        read=[".heat canvas"],
    ),
    Visited(
        "/?roles=on&tour=1&head=L0H2",
        forced=[check_chosen("heads of a drawing", "segments"), forced_colours.check_role_colours],
    ),
    Visited("/?class=1&text=Das+Tier+%C3%BCberquerte+die+Stra%C3%9Fe+nicht.", forced=[forced_colours.check_focus]),
    Visited(
        "/compare?show=similar&pin=q2",
        forced=[check_chosen("buttons and pills", "segments")],
        read=[".tall canvas"],
    ),
    Visited(
        "/roles?model=toy&head=L1H2&tour=5",
        "Roles · L1H2 · Toy, trained on the built-in grammar · mha_viz",
        forced=[check_chosen("buttons and pills"), forced_colours.check_bars],
    ),
    Visited("/why_heads_differ?experiment=toy&tour=4", shows="Which roles do heads learn by themselves?", maps=True),
    Visited(
        "/inside_a_head?step=score&head=L3H1",
        forced=[check_chosen("heads of a block"), forced_colours.check_switch],
    ),
    Visited("/switch_off?off=L3H1"),
    Visited(
        "/why_heads_differ?experiment=penalty&guess=fewer&tour=3&numbers=1",
        "Why heads differ · Pushed apart · mha_viz",
        shows="How alike the heads are",
        forced=[forced_colours.check_cell_colours],
        maps=True,
    ),
    Visited(
        "/why_heads_differ?experiment=tasks&task=1&answer=L3H1",
        shows=load_questions()[-1].question,
        forced=[check_chosen("buttons and pills")],
        maps=True,
    ),
    Visited("/about?class=1"),
)


@pytest.mark.parametrize("visited", PAGES, ids=lambda visited: visited.path)
def test_a_page_is_there_for_everybody(newcomer: Callable[..., BrowserTab], visited: Visited) -> None:
    visitor = newcomer(color_scheme="light")
    if visited.painted:
        visitor.is_altered = True
        visitor.page.add_init_script(f"({RECORD_TEXTS})()")
    page = visitor.visit(visited.path)
    _settled(page)
    _says_what_it_shows(page, visited)
    number = PAGES.index(visited)
    scheme = SCHEMES[number // 2 % 2]
    if visited.forced or visited.read:
        _is_seen_in_light_and_dark(visitor, visited, last=scheme)
    has_room = [size for size in WINDOWS if size != PHONE or "experiment=toy" not in visited.path]  # for its eight maps
    for size in has_room if visited.maps else ():
        visitor.resize(size)
        check_label_positions(page)
    visitor.resize(DESKTOP)
    if "experiment=tasks" in visited.path:
        _axe_finds_nothing_in_the_list_of_keys(page)
    _open_everything(page)
    _is_there_for_axe(visitor, scheme, first=(DESKTOP, PHONE)[number % 2])
    if "experiment=toy" in visited.path:
        _maps_of_any_number_of_words(page)


def _is_there_for_axe(visitor: BrowserTab, begins: Scheme, first: ViewportSize) -> None:
    """The page, with everything open, in this scheme and window; with ``--all`` in both in both."""
    windows = (first, PHONE if first == DESKTOP else DESKTOP)
    looks = [(scheme, size) for scheme in sorted(SCHEMES, key=lambda one: one != begins) for size in windows]
    for scheme, size in lanes.some(looks, looks[0]):
        visitor.resize(size)
        _turned(visitor, scheme)
        visitor.check_no_sideways_scroll()
        _is_named_in_words(visitor.page)
        check_with_axe(visitor.page)


def _maps_of_any_number_of_words(page: Page) -> None:
    for count in lanes.some(range(5, 21), 5, 12, 20):
        show_words(page, count)
        check_label_positions(page, words=count)


def _is_named_in_words(page: Page) -> None:
    """No control is called by a formula as it was typed, and no chart is without a name."""
    page.wait_for_function(NAMED_IN_WORDS)
    unnamed = f"charts => charts.filter(chart => !({NAME_OF_CHART})(chart)).map(chart => chart.innerText)"
    assert page.locator(".stPlotlyChart").evaluate_all(unnamed) == []


def _says_what_it_shows(page: Page, visited: Visited) -> None:
    """In its title and one heading."""
    if visited.title:
        expect(page).to_have_title(visited.title)
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    expect(page.get_by_role("heading").first).to_have_js_property("tagName", "H1")
    if "class=1" not in visited.path:  # where the pages are behind a button at the edge
        expect(page.get_by_role("navigation", name="Pages").get_by_role("link", name="Roles")).to_have_count(1)
    if visited.shows:
        expect(page.get_by_text(visited.shows).first).to_be_attached()


def _is_seen_in_light_and_dark(visitor: BrowserTab, visited: Visited, last: Scheme) -> None:
    """With the page's own colours, and with colours that the system forces: words in both schemes, what is chosen in
    the ``last``, with ``--all`` in both."""
    page = visitor.page
    schemes = sorted(SCHEMES, key=lambda one: one == last)
    for scheme in schemes if visited.read else lanes.some(schemes, last):
        visitor.set_colour_scheme(scheme)
        check_readable(page, *visited.read)
        page.emulate_media(forced_colors="active")
        for check in visited.forced:
            check(page)
        check_readable(page, *visited.read)
        page.emulate_media(forced_colors="none")


def _axe_finds_nothing_in_the_list_of_keys(page: Page) -> None:
    expect(page.get_by_role("button", name="More", exact=True)).to_be_visible()  # the key listener is installed
    page.get_by_role("searchbox").blur()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    check_with_axe(page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_hidden()


def _open_everything(page: Page) -> None:
    """Examples, tables and expanders, where a page has them."""
    for name in ("Examples", "+ Second sentence"):
        button = page.get_by_role("button", name=name)
        if button.count():
            button.first.click()
    closed = page.locator("details:not([open]) > summary")
    for _ in range(closed.count()):
        closed.first.evaluate("summary => summary.click()")
    page.locator(".one .chip").evaluate_all("chips => chips.slice(0, 1).forEach(chip => chip.classList.add('open'))")
    if "class=1" not in page.url and (lanes.everything or urlsplit(page.url).path in SEARCHED):
        _a_slash_begins_a_search(page)
    elif "/about" in page.url and page.get_by_role("button", name="QR code").is_visible():
        page.get_by_role("button", name="QR code").click()
        page.mouse.move(2, 2)  # or Streamlit's tooltip of the button comes, outside of any landmark
        expect(page.get_by_role("tooltip")).to_have_count(0)


def _a_slash_begins_a_search(page: Page) -> None:
    _a_slash_leads_to_the_search(page)
    page.keyboard.type("object")
    answer = page.get_by_role("region", name="Matching heads").get_by_role("link").first
    expect(answer).to_contain_text("%")  # of the baseline


def _a_slash_leads_to_the_search(page: Page) -> None:
    expect(page.get_by_role("searchbox")).to_be_visible()
    page.evaluate("document.activeElement?.blur()")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()


def _turned(visitor: BrowserTab, scheme: Scheme) -> None:
    """Switch the page's colour scheme, and wait until everything has its colours: the page at once, charts when the
    server has drawn them."""
    visitor.set_colour_scheme(scheme)
    visitor.page.wait_for_function(NO_TICK, arg=OTHER_TICKS[scheme])
    _settled(visitor.page)


def _settled(page: Page) -> None:
    expect(page.locator(".stApp")).to_have_attribute("data-test-script-state", "notRunning")
    page.wait_for_function(DRAWN)
    page.evaluate(FRAMES)


def test_every_page_is_reached_by_its_link_and_searched_after_a_slash(visitor: BrowserTab) -> None:
    page = visitor.explore()
    links = page.locator(".st-key-pages")
    for name in [*links.get_by_role("link").all_inner_texts()[1:], "Explore"]:
        links.get_by_role("link", name=name, exact=True).click()
        expect(links.locator("[aria-current=page]")).to_have_text(name)
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
        _settled(page)
        _a_slash_leads_to_the_search(page)
        if lanes.everything or name == "Roles":  # the field is the same on every page
            _a_slash_begins_a_search(page)
            for _ in range(2):  # the answers, the words
                page.keyboard.press("Escape")
        page.keyboard.press("Escape")  # leaves the field


def test_pictures_are_compared_by_contrast() -> None:
    def plain(colour: tuple[int, int, int]) -> bytes:
        file = BytesIO()
        Image.new("RGB", (4, 4), colour).save(file, "PNG")
        return file.getvalue()

    assert measure_difference(plain((0, 0, 0)), plain((255, 255, 255))) == 1
    assert measure_difference(plain((0, 0, 0)), plain((55, 51, 115))) == 0  # black on navy
