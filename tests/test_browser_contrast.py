"""Words beside a held one are paler, and stay easy to read: their contrast is measured in the pixels of the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, cast

import numpy as np
from playwright.sync_api import Locator

from tests.browser_tab import BrowserTab
from tests.painted import NOTE
from tests.screenshots import luminance, still

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
FORCED: tuple[Literal["none", "active"], ...] = ("none", "active")
ENOUGH = 4.5  # WCAG 2.2, 1.4.3
# Where each word ends, or begins on the right half of a picture, in pixels of the screen; and on which half it is.
ENDS = """(canvases) => canvases.flatMap((canvas) => {
  const box = canvas.getBoundingClientRect();
  const scale = box.width / canvas.width;
  return (canvas.painted?.texts ?? []).filter((one) => one.upright && /[a-z]/.test(one.text))
    .map((one) => [box.left + one.x * scale, box.top + one.y * scale, one.x < canvas.width / 2 ? -1 : 1]);
})"""


def contrasts(canvases: Locator) -> list[float]:
    """The highest contrast to the paper among the letters at the end of each word."""
    light = luminance(still(canvases.page))
    highest = []
    for x, y, side in cast("list[tuple[float, float, int]]", canvases.evaluate_all(ENDS)):
        left, right = sorted((round(x), round(x) + side * 14))
        letters = light[round(y) - 5 : round(y) + 6, left:right]
        if not letters.size:
            continue  # below the window
        paper = np.median(letters)
        extremes = np.array([letters.min(), letters.max()])
        highest.append(float(((np.maximum(extremes, paper) + 0.05) / (np.minimum(extremes, paper) + 0.05)).max()))
    return highest


def test_words_beside_a_held_one_are_easy_to_read(newcomer: Callable[..., BrowserTab]) -> None:
    visitor = newcomer()
    visitor.page.add_init_script(f"({NOTE})()")
    visitor.is_altered = True
    visitor.explore(head="L3H1", pin="q10")
    are_easy_to_read(visitor, ".heat canvas", ".links canvas")
    visitor.visit("/compare", show="similar", pin="q2")
    are_easy_to_read(visitor, ".tall canvas")


def are_easy_to_read(visitor: BrowserTab, *pictures: str) -> None:
    """In both colour schemes, also where the system forces its own colours."""
    page = visitor.page
    for scheme in SCHEMES:
        visitor.in_colours(scheme)
        for forced in FORCED:
            page.emulate_media(forced_colors=forced)
            for picture in pictures:
                page.locator(picture).first.wait_for()
                words = contrasts(page.locator(picture))
                assert len(words) >= 10, picture
                assert min(words) >= ENOUGH, (scheme, forced, picture, words)
        page.emulate_media(forced_colors="none")
