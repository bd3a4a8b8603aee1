"""Shared fixtures. Models are built or loaded once a session, and only by tests that ask for them."""

from __future__ import annotations

import platform
import signal
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext

    from mha_viz.models.encoder import Encoder
    from tests.app_server import AppServer
    from tests.visitor import Visitor


settings.register_profile("untimed", parent=settings.default, deadline=None)  # a busy machine is no fault of the code
settings.load_profile("untimed")


def pytest_configure() -> None:
    """A job that a shell began in the background ignores Ctrl-C, and so would every process that a test starts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """Every test is in one lane: ``browser`` needs Chromium, ``app`` runs pages or servers, ``unit`` is the rest."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)
        elif item.get_closest_marker("app") or {"AppTest", "Visit"} & vars(item.module).keys():
            item.add_marker(pytest.mark.app)
        else:
            item.add_marker(pytest.mark.unit)


@pytest.fixture
def packing() -> None:
    """Goes on where weights can be packed. On x86-64, where every build of PyTorch with oneDNN can, it must."""
    import torch

    from mha_viz.models import linear

    if not linear.available():
        must = torch.backends.mkldnn.is_available() and platform.machine() in ("x86_64", "AMD64")
        assert not must
        pytest.skip("this build of PyTorch packs no weights")


@pytest.fixture(scope="session")
def minilm() -> Encoder:
    """The pretrained BERT that comes with the app."""
    from mha_viz.models.encoder import load

    return load("minilm")


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a small random-weight model of a family. Read only: copy it to break it."""
    from tests import tiny_models

    root = tmp_path_factory.mktemp("tiny")
    return cache(lambda family: tiny_models.build(family, root / family))


@pytest.fixture(scope="session")
def tiny(tiny_folder: Callable[[str], Path]) -> Callable[[str], Encoder]:
    """The encoder of such a model."""
    from mha_viz.models.encoder import Encoder

    return cache(lambda family: Encoder.from_folder(tiny_folder(family)))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A real Chromium, one for all tests of the page."""
    from playwright.sync_api import sync_playwright

    from tests.app_server import chromium

    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
        started = playwright.chromium.launch(executable_path=chromium(), args=arguments)
        yield started
        started.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppServer]:
    """The app, served for all tests that visit it; its log must hold no fault."""
    from tests.app_server import AppServer

    with AppServer(tmp_path_factory.mktemp("server")) as running:
        yield running
        assert running.faults() == []


@pytest.fixture(scope="session")
def desk(browser: Browser) -> Iterator[BrowserContext]:
    """The usual visitor's profile: its cache spares each further tab the download of the page's own files."""
    from tests.visitor import DESKTOP

    context = browser.new_context(viewport=DESKTOP)
    yield context
    context.close()


@pytest.fixture
def newcomer(server: AppServer, browser: Browser, desk: BrowserContext) -> Iterator[Callable[..., Visitor]]:
    """Makes visitors; afterwards none of them may have met an error or called another host."""
    from tests.visitor import DESKTOP, Visitor

    made: list[Visitor] = []

    def come(url: str = server.url, **options: Any) -> Visitor:
        context = browser.new_context(**{"viewport": DESKTOP, **options}) if options else desk
        made.append(Visitor(context, url))
        return made[-1]

    yield come
    for visitor in made:
        visitor.leave()


@pytest.fixture
def visitor(newcomer: Callable[..., Visitor]) -> Visitor:
    """One visitor in the usual profile."""
    return newcomer()


@pytest.fixture
def no_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A Hub that refuses at once, and a cache that holds no model."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # discard: nothing listens
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.delenv("MHA_VIZ_MODELS", raising=False)
