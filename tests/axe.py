"""Check pages with axe-core."""

from __future__ import annotations

import time
from pathlib import Path

from playwright.sync_api import Page

from tests.browser_tab import FRAMES, PATIENCE

AXE = Path(__file__).resolve().parent.parent / "node_modules" / "axe-core" / "axe.min.js"
# Report only violations. Ignore the rule "region" for the skip link: axe recognizes it by the links that follow, which
# class mode hides behind a button.
VIOLATIONS = """axe.run(document, {resultTypes: ["violations"]}).then(({violations}) => violations.flatMap(
    ({id, nodes}) => nodes.filter(({html}) => id !== "region" || !html.includes("stSkipToContent")).map(
        ({target, failureSummary}) => `${id}: ${target.join(" ")}: ${failureSummary}`)))"""


def check_with_axe(page: Page) -> None:
    """Check that axe-core finds no violation once the page is complete.

    Elements that are still being drawn may lack a name or a size.
    """
    assert AXE.is_file(), "npm ci brings axe-core"
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(AXE.read_text("utf-8"))
    end = time.monotonic() + PATIENCE / 1000
    while violations := page.evaluate(VIOLATIONS):
        assert time.monotonic() < end, violations
        page.evaluate(FRAMES)
