"""Other models in a real browser: large shapes, downloads with progress and faults, and impatient visitors. The first
pages of the server, which has just started, are About and a link."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from mha_viz.models.reading.encoder import Encoder
from tests import lanes
from tests.app_server import AppServer, PatientServer
from tests.browser_tab import DESKTOP, IDLE, PHONE, BrowserTab, new_profile
from tests.fake_hub import FakeHub, Repository, tiny_bert_files
from tests.first_pages import check_about_links, check_link_restores_view
from tests.waiting import until

SENTENCE = "the animal didn't cross the street because it was tired."


@pytest.fixture(scope="module")
def hub() -> Iterator[FakeHub]:
    with FakeHub() as running:
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, hub: FakeHub) -> Iterator[AppServer]:
    with PatientServer(tmp_path_factory.mktemp("server"), HF_ENDPOINT=hub.url) as running:
        yield running
        assert running.faults() == []


@pytest.fixture(scope="module")
def desktop(browser: Browser, server: AppServer) -> Iterator[BrowserContext]:
    """The visitor's profile on this server; one tab stays open, so that no test has to start a new process."""
    with new_profile(browser) as context:
        context.new_page().goto(f"{server.url}{IDLE}")
        yield context


@pytest.fixture(scope="module")
def first_pages(
    desktop: BrowserContext,
    server: AppServer,
    tiny_folder: Callable[[str], Path],
    tiny: Callable[[str], Encoder],
) -> None:
    """Visited before any other test visits the server."""
    visitor = BrowserTab(desktop, server.url)
    check_about_links(visitor)
    check_link_restores_view(visitor, str(tiny_folder("bert")), tiny("bert"))
    visitor.leave()


@pytest.fixture
def visitor(desktop: BrowserContext, server: AppServer, first_pages: None) -> Iterator[BrowserTab]:
    one = BrowserTab(desktop, server.url)
    yield one
    one.leave()


def test_about_and_a_link_are_the_first_pages_of_a_cold_server(browser: Browser, first_pages: None) -> None:
    """The fixture has checked them."""


def offered(hub: FakeHub, name: str, *, held: bool = False) -> str:
    """Put a model on the Hub; if it is ``held``, its file stops halfway until the Hub may go on."""
    hub.go_on.clear()
    hub.add(name, Repository(tiny_bert_files(), held=held))
    return name


# ---- Shapes ----------------------------------------------------------------------------------------------


def test_large_grids_fit_a_desktop_and_scroll_on_a_phone(
    visitor: BrowserTab, tiny_folder: Callable[[str], Path]
) -> None:
    for layers, heads in lanes.some([(12, 12), (24, 16)], (12, 12)):  # as BERT-base
        page = visitor.explore(text=SENTENCE, model=str(tiny_folder(f"bert {layers}x{heads}")))
        expect(page.locator(".overview h2")).to_contain_text(f"{layers * heads} heads read the same sentence.")
        the_grid_is_large_enough_and_leaves_room(visitor, layers, heads)
        visitor.grid.press("ArrowDown")
        visitor.grid.press("ArrowRight")
        visitor.grid.press("Enter")
        expect(visitor.title).to_have_text("L1H1 (2-2)")
    visitor.resize(PHONE)
    visitor.check_no_sideways_scroll()
    assert page.locator(".grid").evaluate("e => e.scrollWidth >= e.clientWidth && e.clientWidth <= innerWidth")


def the_grid_is_large_enough_and_leaves_room(visitor: BrowserTab, layers: int, heads: int) -> None:
    box = visitor.grid.bounding_box()
    assert box
    assert box["width"] <= DESKTOP["width"] * 0.55, "the opened head needs the rest"
    assert layers > 12 or box["y"] + box["height"] <= DESKTOP["height"]  # more layers scroll rather than shrink
    assert (box["width"] - 30) / heads >= 20, "a head's picture is too small to read"
    assert visitor.pixels(visitor.grid)[1] > 20


# ---- Downloads -------------------------------------------------------------------------------------------


def test_models_are_downloaded_with_progress_and_tried_again(visitor: BrowserTab, hub: FakeHub) -> None:
    a_download_shows_its_progress_and_then_the_model(visitor, hub)
    a_model_that_is_not_there_is_said_and_can_be_tried_again(visitor, hub)


def a_download_shows_its_progress_and_then_the_model(visitor: BrowserTab, hub: FakeHub) -> None:
    name = offered(hub, "someone/paced", held=True)
    page = visitor.explore(text="the cat", head="L2H2")
    page.get_by_label("Model", exact=True).select_option("?")
    page.get_by_label("Another model: Hub id or folder").fill(name)
    page.get_by_label("Another model: Hub id or folder").press("Enter")
    expect(page.get_by_role("progressbar")).to_be_visible()
    expect(page.get_by_text("Downloading someone/paced")).to_be_visible()
    expect(page.get_by_text("Shown below instead: MiniLM")).to_be_visible()
    expect(visitor.title).to_have_text("L2H2 (3-3)")  # the picture and its view stay
    hub.go_on.set()
    visitor.wait_for_parameters(head=None)
    expect(page.get_by_role("progressbar")).to_have_count(0)
    visitor.wait_until_drawn()
    assert visitor.address == {"text": "the cat", "model": name}
    expect(page.get_by_text("Meanwhile")).to_have_count(0)


def a_model_that_is_not_there_is_said_and_can_be_tried_again(visitor: BrowserTab, hub: FakeHub) -> None:
    page = visitor.visit("/", text="the cat", model="someone/late")
    alert = page.get_by_role("alert").filter(has_text="someone/late")
    expect(alert).to_be_visible()
    visitor.wait_until_drawn()  # by MiniLM
    offered(hub, "someone/late")
    page.get_by_role("button", name="Try again").click()
    expect(alert).to_have_count(0)
    expect(page.get_by_text("Meanwhile")).to_have_count(0)
    visitor.wait_until_drawn()


def test_one_visitor_cancels_and_the_other_gets_the_model(
    browser: Browser,
    visitor: BrowserTab,
    server: AppServer,
    hub: FakeHub,
) -> None:
    name = offered(hub, "someone/shared", held=True)
    visitor.visit("/", text="the cat", model=name)
    expect(visitor.page.get_by_text(f"Downloading {name}")).to_be_visible()
    with new_profile(browser) as context:
        other = BrowserTab(context, server.url)
        other.visit("/", text="the cat", model=name)
        expect(other.page.get_by_text(f"Downloading {name}")).to_be_visible()
        visitor.page.get_by_role("button", name="Cancel").click()
        visitor.wait_for_parameters(model=None)
        expect(visitor.page.get_by_role("progressbar")).to_have_count(0)
        visitor.wait_until_drawn()
        expect(other.page.get_by_text(f"Downloading {name}")).to_be_visible()
        hub.go_on.set()
        expect(other.page.get_by_role("progressbar")).to_have_count(0)
        other.wait_until_drawn()
        expect(other.page.get_by_role("alert")).to_have_count(0)
        other.leave()


# ---- Impatience ------------------------------------------------------------------------------------------


def test_what_is_typed_and_held_is_what_the_visitor_last_wanted(visitor: BrowserTab) -> None:
    escape_frees_a_pin_from_wherever_the_keyboard_is(visitor)
    what_is_typed_after_enter_stays(visitor)
    a_focus_does_not_outlive_its_rows(visitor)
    a_second_head_of_a_long_text_is_drawn_when_it_is_switched_on(visitor)


def escape_frees_a_pin_from_wherever_the_keyboard_is(visitor: BrowserTab) -> None:
    visitor.explore(pin="q8", head="L3H1")
    visitor.press_segment("tokens")
    visitor.page.keyboard.press("Escape")  # closes the menu
    visitor.wait_for_parameters(pin="q8", unit="pieces")
    visitor.page.keyboard.press("Escape")
    visitor.wait_for_parameters(pin=None, unit="pieces")
    expect(visitor.readout).to_contain_text("Strongest")


def what_is_typed_after_enter_stays(visitor: BrowserTab) -> None:
    visitor.field.fill("One two three.")
    visitor.field.press("Enter")
    visitor.field.press_sequentially(" four five six seven eight nine ten", delay=40)
    visitor.wait_for_parameters(text="One two three.")
    visitor.wait_until_drawn()
    expect(visitor.field).to_have_value("One two three. four five six seven eight nine ten")
    visitor.page.go_back()
    expect(visitor.field).not_to_have_value("One two three. four five six seven eight nine ten")
    visitor.wait_until_drawn()


def a_focus_does_not_outlive_its_rows(visitor: BrowserTab) -> None:
    visitor.read("Yesterday the electroencephalographer misdiagnosed them.")
    for _ in range(30):
        visitor.heat.press("ArrowDown")
    visitor.press_segment("words")
    visitor.wait_for_parameters(unit=None)
    expect(visitor.readout).to_contain_text("Strongest")


def a_second_head_of_a_long_text_is_drawn_when_it_is_switched_on(visitor: BrowserTab) -> None:
    visitor.read("the animal was too tired " * 100)
    before = visitor.pixels(visitor.links)[0]
    visitor.head_switch(4).click()
    visitor.wait_for_parameters(on="4")
    visitor.wait_until_drawn()
    until(lambda: visitor.pixels(visitor.links)[0] != before)


def test_a_view_with_nothing_left_says_so_and_can_be_left(visitor: BrowserTab) -> None:
    for view in (
        {"text": "The cat sat.", "pair": "[SEP]", "special": "hide", "side": "ab", "pin": "q1"},
        {"text": "[SEP]", "special": "hide"},
        {"text": "The cat sat.", "pair": "[SEP]", "special": "rescale", "side": "bb"},
    ):
        page = visitor.visit("/", **view)
        expect(visitor.readout).to_contain_text("Nothing to draw")
        expect(page.locator(".note")).to_contain_text("hidden")
        visitor.heat.press("ArrowDown")
        visitor.press_segment("shown")
        if "side" in view:
            visitor.choose("Pair", "all")
        visitor.wait_until_drawn()
