"""Shared fixtures. Models are built or loaded once a session, and only by tests that ask for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from mha_viz.models.encoder import Encoder


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
