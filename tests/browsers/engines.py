"""The engines in which the main job is tested, and the paths of their programs."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.browsers.engine import Engine
from tests.browsers.firefox import Firefox
from tests.browsers.webkit import WebKit

ROOT = Path(__file__).resolve().parent.parent.parent
MISSING = """{} was not tested: it was not found at {}.
`make test-browsers` installs all engines on Debian, as root; an older Firefox is unpacked below build/."""


class Program(NamedTuple):
    """An engine, and the name on the PATH or the path of its program."""

    engine: type[Engine]
    path: str


ENGINES: Mapping[str, Program] = {
    "Firefox 140 ESR": Program(
        Firefox, str(ROOT / "build" / "firefox-140" / "usr" / "lib" / "firefox-esr" / "firefox-esr")
    ),
    "Firefox ESR": Program(Firefox, "firefox-esr"),
    "WebKit": Program(WebKit, "WebKitWebDriver"),
}


def make_engine(name: str, folder: Path) -> Engine:
    """Return an engine whose home is ``folder`` and which is not started yet."""
    program = ENGINES[name]
    path = shutil.which(program.path)
    assert path, MISSING.format(name, program.path)
    return program.engine(path, folder)
