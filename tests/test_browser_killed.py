"""A server that is killed with -9 while visitors have a training, a study, a download and an export under way: each
view is restored from its URL once the server runs again, and no incomplete file is used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.app_server import AppServer
from tests.browser_tab import BrowserTab, new_profile
from tests.fake_hub import FakeHub, Repository, tiny_bert_files

SENTENCE = "Nobody types this twice."
SLOW = "someone/slow"
pytestmark = pytest.mark.slow  # a minute and a half


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with FakeHub() as running:
        running.add(SLOW, Repository(tiny_bert_files(), chunk_pause=3.0))
        yield running


@pytest.fixture
def server(tmp_path: Path, hub: FakeHub) -> Iterator[AppServer]:
    with AppServer(tmp_path, HF_ENDPOINT=hub.url) as running:
        yield running


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    with new_profile(browser) as profile:
        yield profile


def training(page: Page) -> None:
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("progressbar")).to_be_visible()


def study(page: Page) -> None:
    page.get_by_role("button", name="Measure the heads").click()
    expect(page.get_by_text(re.compile(r"Reading the corpus with .*: [1-9]\d*%"))).to_be_visible()


def download(page: Page) -> None:
    expect(page.get_by_text(f"Downloading {SLOW}")).to_be_visible()


def export(page: Page) -> None:
    page.get_by_text("Download", exact=True).click()
    expect(page.get_by_role("button", name="PDF")).to_be_visible()


def test_every_view_comes_back_after_a_kill_amid_its_work(
    server: AppServer, context: BrowserContext, hub: FakeHub
) -> None:
    begun = {
        export: f"/?text={SENTENCE.replace(' ', '+')}&head=L2H5&special=rescale",
        download: f"/?text=the+cat&model={SLOW}",
        study: "/roles?model=minilm&corpus=grammar",
        training: "/why_heads_differ?experiment=identical&run=steps-1500_and_seed-5",
    }
    tabs = {begin: BrowserTab(context, server.url) for begin in begun}
    for begin, path in begun.items():
        begin(tabs[begin].visit(path))
    addresses = {begin: tab.address for begin, tab in tabs.items()}
    hub.repositories[SLOW].chunk_pause = 0.0
    tabs[export].page.get_by_role("button", name="PDF").click()  # the server dies while it draws all heads
    server.kill_and_restart()
    for begin, tab in tabs.items():
        expect(tab.page.get_by_test_id("stConnectionStatus")).to_have_count(0)
        tab.page.wait_for_function("() => document.querySelector('[data-test-connection-state=CONNECTED]')")
        assert tab.address == addresses[begin]
    page = tabs[training].page
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()
    expect(page.get_by_text("Default run, saved with the app")).to_be_visible()
    page = tabs[study].page
    page.get_by_role("button", name="Measure the heads").click()  # continues from the saved sums
    expect(page.get_by_text("Measured on the built-in sentences").first).to_be_visible()
    tabs[download].wait_until_drawn()
    expect(tabs[download].page.get_by_text("Meanwhile")).to_have_count(0)
    assert tabs[download].address == {"text": "the cat", "model": SLOW}
    tabs[export].wait_until_drawn()
    expect(tabs[export].field).to_have_value(SENTENCE)
    expect(tabs[export].title).to_have_text("L2H5 (3-6)")
    for tab in tabs.values():
        tab.leave()
    assert server.faults() == []
