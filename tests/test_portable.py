"""Which browsers the pages are written for. README promises versions: no style sheet and no script needs a newer one,
and what some of these browsers lack or draw otherwise is not used, or is only an addition."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mha_viz.browser.bundle import FOLDER
from mha_viz.browser.supported import MIN_VERSIONS, VERSIONS

README = (Path(__file__).parent.parent / "README.md").read_text("utf-8")
SOURCES = "\n".join(file.read_text("utf-8") for end in ("css", "js") for file in sorted(FOLDER.rglob(f"*.{end}")))
# From which versions of the promised engines on a feature exists, as their lists of features say.
FEATURES: dict[str, tuple[float, float, float]] = {
    r"light-dark\(": (120, 123, 17.5),
    r":has\(": (121, 105, 15.4),
    r"@container\b": (110, 105, 16),
    r"color-mix\(": (113, 111, 16.2),
    r"\d(lh)\b": (120, 109, 16.4),
    r"\d(dvh)\b": (101, 108, 15.4),
    r": subgrid\b": (71, 117, 16),
    r"\bzoom:": (126, 1, 4),
    r"\(scripting: ": (113, 120, 17),
    r"\bOffscreenCanvas\(": (105, 69, 16.4),
    r"\badoptedStyleSheets\b": (101, 73, 16.4),
    r"\.checkVisibility\(": (106, 105, 17.4),
    r"\bDecompressionStream\(": (113, 80, 16.4),
    r"\(\?<!": (78, 62, 16.4),  # a look behind
    r"\.toSorted\(": (115, 110, 16),
    r"type: \"module\"": (114, 80, 15),  # of a worker
}
# What is used nowhere, and why.
AVOIDED = {
    r"reading-flow": "only Chromium has it: what is seen is in the order of the page",
    r"line-clamp": "WebKit puts its ellipsis into the first inline block, even of a text that fits",
}


@pytest.mark.parametrize("feature", FEATURES)
def test_what_the_pages_use_is_in_every_promised_browser(feature: str) -> None:
    assert re.search(feature, SOURCES), "no longer used: the row can go"
    for (engine, minimum), since in zip(MIN_VERSIONS.items(), FEATURES[feature], strict=True):
        assert since <= minimum, engine


def test_the_readme_states_the_promise() -> None:
    assert f"should work in {VERSIONS} and later" in README


@pytest.mark.parametrize("feature", AVOIDED)
def test_what_browsers_draw_differently_is_avoided(feature: str) -> None:
    assert not re.search(feature, SOURCES), AVOIDED[feature]
