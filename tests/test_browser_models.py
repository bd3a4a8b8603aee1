"""Other models in a real browser: large shapes, downloads with progress and faults, and impatient visitors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from tests.app_server import AppServer
from tests.browser_tab import DESKTOP, IDLE, PHONE, BrowserTab
from tests.fake_hub import FakeHub, Repository, tiny_bert_files

SENTENCE = "the animal didn't cross the street because it was tired."


@pytest.fixture(scope="module")
def hub() -> Iterator[FakeHub]:
    with FakeHub() as running:
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, hub: FakeHub) -> Iterator[AppServer]:
    with AppServer(tmp_path_factory.mktemp("server"), HF_ENDPOINT=hub.url) as running:
        yield running
        assert running.faults() == []


@pytest.fixture(scope="module")
def desk(browser: Browser, server: AppServer) -> Iterator[BrowserContext]:
    """The visitor's profile on this server; one tab stays open, so that no test has to start a new process."""
    with browser.new_context(viewport=DESKTOP) as context:
        context.new_page().goto(f"{server.url}{IDLE}")
        yield context


@pytest.fixture
def visitor(desk: BrowserContext, server: AppServer) -> Iterator[BrowserTab]:
    one = BrowserTab(desk, server.url)
    yield one
    one.leave()


def offered(hub: FakeHub, name: str, **faults: object) -> str:
    hub.add(name, Repository(tiny_bert_files(), **faults))  # type: ignore[arg-type]
    return name


# ---- Shapes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("layers", "heads"), [(12, 12), (24, 16)])
def test_large_grids_fit_a_desktop(
    visitor: BrowserTab, tiny_folder: Callable[[str], Path], layers: int, heads: int
) -> None:
    page = visitor.explore(text=SENTENCE, model=str(tiny_folder(f"bert {layers}x{heads}")))
    expect(page.locator(".overview header")).to_contain_text(f"{layers} layers × {heads} heads")
    box = visitor.grid.bounding_box()
    assert box
    assert box["width"] <= DESKTOP["width"] * 0.55, "the opened head needs the rest"
    assert layers > 12 or box["y"] + box["height"] <= DESKTOP["height"]  # more layers scroll rather than shrink
    assert (box["width"] - 30) / heads >= 20, "a head's picture is too small to read"
    assert visitor.pixels(visitor.grid)[1] > 20
    visitor.grid.press("ArrowDown")
    visitor.grid.press("ArrowRight")
    visitor.grid.press("Enter")
    expect(visitor.title).to_have_text("L1H1 (2-2)")


def test_a_large_grid_scrolls_on_a_phone_and_the_page_does_not(
    visitor: BrowserTab, tiny_folder: Callable[[str], Path]
) -> None:
    visitor.page.set_viewport_size(PHONE)
    page = visitor.explore(text=SENTENCE, model=str(tiny_folder("bert 24x16")))
    visitor.scrolls_only_down()
    assert page.locator(".grid").evaluate("e => e.scrollWidth >= e.clientWidth && e.clientWidth <= innerWidth")


# ---- Downloads -------------------------------------------------------------------------------------------


def test_a_download_shows_its_progress_and_then_the_model(visitor: BrowserTab, hub: FakeHub) -> None:
    name = offered(hub, "someone/paced", chunk_pause=0.1)
    page = visitor.explore(text="the cat", head="L2H2")
    page.get_by_label("Model", exact=True).select_option("?")
    page.get_by_label("Hub id or folder of another model").fill(name)
    page.get_by_label("Hub id or folder of another model").press("Enter")
    expect(page.get_by_role("progressbar")).to_be_visible()
    expect(page.get_by_text("Downloading someone/paced")).to_be_visible()
    expect(page.get_by_text("Meanwhile, the drawing below shows MiniLM")).to_be_visible()
    expect(visitor.title).to_have_text("L2H2 (3-3)")  # the picture and its view stay
    visitor.asked(head=None)
    expect(page.get_by_role("progressbar")).to_have_count(0)
    visitor.drawn()
    assert visitor.address == {"text": "the cat", "model": name}
    expect(page.get_by_text("Meanwhile")).to_have_count(0)


def test_one_visitor_cancels_and_the_other_gets_the_model(
    browser: Browser,
    visitor: BrowserTab,
    server: AppServer,
    hub: FakeHub,
) -> None:
    name = offered(hub, "someone/shared", chunk_pause=0.8)
    visitor.visit("/", text="the cat", model=name)
    expect(visitor.page.get_by_text(f"Downloading {name}")).to_be_visible()
    with browser.new_context(viewport=DESKTOP) as context:
        other = BrowserTab(context, server.url)
        other.visit("/", text="the cat", model=name)
        expect(other.page.get_by_text(f"Downloading {name}")).to_be_visible()
        visitor.page.get_by_role("button", name="Cancel").click()
        visitor.asked(model=None)
        expect(visitor.page.get_by_role("progressbar")).to_have_count(0)
        visitor.drawn()
        expect(other.page.get_by_role("progressbar")).to_have_count(0)
        other.drawn()
        expect(other.page.get_by_role("alert")).to_have_count(0)
        other.leave()


def test_a_model_that_is_not_there_is_said_and_can_be_tried_again(visitor: BrowserTab, hub: FakeHub) -> None:
    page = visitor.visit("/", text="the cat", model="someone/late")
    alert = page.get_by_role("alert").filter(has_text="someone/late")
    expect(alert).to_be_visible()
    visitor.drawn()  # by MiniLM
    offered(hub, "someone/late")
    page.get_by_role("button", name="Try again").click()
    expect(alert).to_have_count(0)
    expect(page.get_by_text("Meanwhile")).to_have_count(0)
    visitor.drawn()


# ---- Impatience ------------------------------------------------------------------------------------------


def test_what_is_typed_after_enter_stays(visitor: BrowserTab) -> None:
    visitor.explore()
    visitor.field.fill("One two three.")
    visitor.field.press("Enter")
    visitor.field.press_sequentially(" four five six seven eight nine ten", delay=40)
    visitor.asked(text="One two three.")
    visitor.drawn()
    expect(visitor.field).to_have_value("One two three. four five six seven eight nine ten")
    visitor.page.go_back()
    expect(visitor.field).not_to_have_value("One two three. four five six seven eight nine ten")


def test_a_second_head_of_a_long_text_is_drawn_when_it_is_switched_on(visitor: BrowserTab) -> None:
    visitor.explore(text="the animal was too tired " * 100)
    before = visitor.pixels(visitor.links)[0]
    visitor.head_switch(4).click()
    visitor.asked(on="4")
    visitor.drawn()
    assert visitor.pixels(visitor.links)[0] != before


@pytest.mark.parametrize(
    "view",
    [
        {"text": "The cat sat.", "pair": "[SEP]", "special": "hide", "side": "ab", "pin": "q1"},
        {"text": "[SEP]", "special": "hide"},
        {"text": "The cat sat.", "pair": "[SEP]", "special": "rescale", "side": "bb"},
    ],
)
def test_a_view_with_nothing_left_says_so_and_can_be_left(visitor: BrowserTab, view: dict[str, str]) -> None:
    page = visitor.visit("/", **view)
    expect(visitor.readout).to_contain_text("Nothing is left to draw")
    expect(page.locator(".note")).to_contain_text("hidden")
    visitor.heat.press("ArrowDown")
    visitor.press_segment("shown")
    page.locator(".controls .choice", has_text="Pair").locator("select").evaluate("s => s.value")
    if "side" in view:
        visitor.choose("Pair", "all")
    visitor.drawn()


def test_a_focus_does_not_outlive_its_rows(visitor: BrowserTab) -> None:
    visitor.explore(text="Yesterday the electroencephalographer misdiagnosed them.", unit="pieces")
    for _ in range(30):
        visitor.heat.press("ArrowDown")
    visitor.press_segment("words")
    visitor.asked(unit=None)
    expect(visitor.readout).to_contain_text("Strongest")


def test_escape_frees_a_pin_from_wherever_the_keyboard_is(visitor: BrowserTab) -> None:
    visitor.explore(pin="q8", head="L3H1")
    visitor.press_segment("pieces")
    visitor.page.keyboard.press("Escape")
    visitor.asked(pin=None)
    expect(visitor.readout).to_contain_text("Strongest")
