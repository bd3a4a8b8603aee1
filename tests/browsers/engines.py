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
MISSING = """{} was not found at {}: it was not tried.
`make test-browsers` installs all engines on Debian, as root; an older Firefox is unpacked below build/."""


class Row(NamedTuple):
    """An engine and its program: a name on the PATH, or a path."""

    engine: type[Engine]
    program: str


ENGINES: Mapping[str, Row] = {
    "Firefox 140 ESR": Row(
        Firefox, str(ROOT / "build" / "firefox-140" / "usr" / "lib" / "firefox-esr" / "firefox-esr")
    ),
    "Firefox ESR": Row(Firefox, "firefox-esr"),
    "WebKit": Row(WebKit, "WebKitWebDriver"),
}


def engine(name: str, folder: Path) -> Engine:
    """Return an engine whose home is ``folder``, not started yet."""
    row = ENGINES[name]
    program = shutil.which(row.program)
    assert program, MISSING.format(name, row.program)
    return row.engine(program, folder)
