"""The main job in Firefox and WebKit, at the sizes of a desktop and a phone: ``make test-browsers``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from mha_viz.models.reading.encoder import Encoder
from tests.app_server import AppServer, find_chromium
from tests.browsers.chromium import Chromium
from tests.browsers.engines import ENGINES, make_engine
from tests.browsers.steps import (
    DOWNLOADS,
    FILE_NAME,
    LIVE_TEXT,
    STEPS,
    check_exported_file,
    check_live_page,
    download_files,
)
from tests.browsers.visit import Visit
from tests.live_pages import format_strongest, serve_folder

pytestmark = pytest.mark.browsers

SIZES = {"1440": (1440, 900), "390": (390, 844)}  # WebKit's window is at least 447 pixels wide


@pytest.fixture(scope="module")
def chromium_downloads(server: AppServer, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the downloads in Chromium."""
    with Chromium(find_chromium(), tmp_path_factory.mktemp("chromium")) as browser:
        download_files(Visit(browser, server.url))
        return {name: (browser.downloads / name).read_bytes() for name in DOWNLOADS}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ENGINES)
def test_the_main_job(
    name: str,
    size: str,
    server: AppServer,
    chromium_downloads: dict[str, bytes],
    toy: Encoder,
    live_toy: Path,
    tmp_path_factory: pytest.TempPathFactory,
    subtests: pytest.Subtests,
    record_property: Callable[[str, object], None],
) -> None:
    with make_engine(name, tmp_path_factory.mktemp("e")) as browser, serve_folder(live_toy) as (address, _):
        record_property("version", browser.version)
        browser.resize(*SIZES[size])
        visit = Visit(browser, server.url)
        parts: dict[str, Callable[[], object]] = {step: partial(act, visit) for step, act in STEPS.items()}
        parts["downloads as in Chromium"] = lambda: _check_same(browser.downloads, chromium_downloads)
        parts["exported HTML"] = lambda: check_exported_file(visit, browser.downloads / f"{FILE_NAME}.html")
        parts["live page"] = lambda: check_live_page(visit, address, format_strongest(toy, LIVE_TEXT))
        parts["no error, no refusal, nothing missing"] = lambda: _check_empty(browser.list_errors())
        for part, act in parts.items():
            record_property(part, "failed")
            with subtests.test(part):
                act()
                record_property(part, "passed")


def _check_same(folder: Path, chromium_downloads: dict[str, bytes]) -> None:
    for name, content in chromium_downloads.items():
        assert (folder / name).read_bytes() == content, name


def _check_empty(errors: list[str]) -> None:
    assert errors == []
