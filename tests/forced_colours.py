"""Check that selection, switches, focus and numbers remain visible with forced colours.

Each check takes a page with forced colours, and leaves it unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from playwright.sync_api import Error, Locator, Page, expect

from tests.screenshots import measure_difference
from tests.waiting import until

if TYPE_CHECKING:
    from playwright.sync_api import FloatRect

OPTIONS = ".stRadio label{} > div > div:first-child"
CHOSEN = {
    "buttons and pills": (".stButtonGroup button[data-selected]", ".stButtonGroup button:not([data-selected])"),
    "segments": (".segments input:checked + span", ".segments input:not(:checked) + span"),
    "options": (OPTIONS.format("[data-selected]"), OPTIONS.format(":not([data-selected])")),
    "heads of a block": (".chip[aria-checked=true]", ".chip[aria-checked=false]"),
    "heads of a drawing": (".heads button[aria-pressed=true]", ".heads button[aria-pressed=false]"),
}
Check = Callable[[Page], None]


def check_chosen(*kinds: str) -> Check:
    """Return a check that chosen controls of these kinds look different from the others."""

    def check(page: Page) -> None:
        page.locator("details.drawing").evaluate_all("all => all.forEach(one => { one.open = true; })")
        for kind in kinds:
            _check_different(*(page.locator(selector).first for selector in CHOSEN[kind]))

    return check


def check_role_colours(page: Page) -> None:
    """Check that each kind of role has its own colour."""
    until(lambda: len(set(colours := _get_colours(page.locator(".kinds .glyph"), "::before"))) == len(colours) > 3)


def check_cell_colours(page: Page) -> None:
    """Check that cells have different colours for different numbers."""
    until(lambda: len(set(_get_colours(page.locator(".cell")))) > 1)


def check_switch(page: Page) -> None:
    """Check that a switch looks different when it is on."""
    label = page.locator(".stCheckbox label")
    mark = label.locator("> :nth-child(2)")
    pictures: list[bytes] = []
    _wait_for_difference(lambda: pictures.append(mark.screenshot(animations="disabled")) or 1, 0)
    label.click()
    expect(label).to_have_attribute("data-selected", "true")
    _wait_for_difference(lambda: measure_difference(pictures[0], mark.screenshot(animations="disabled")), 0.2)
    label.click()
    expect(label).not_to_have_attribute("data-selected", "true")


def check_focus(page: Page) -> None:
    """Check that the focused sentence field has a visible frame."""
    field = page.get_by_label("Sentence", exact=True)
    field.blur()
    box = field.bounding_box()
    assert box
    above: FloatRect = {"x": box["x"] + 20, "y": box["y"] - 2, "width": 200, "height": 2}  # without the border
    unfocused = page.screenshot(clip=above)
    field.focus()
    _wait_for_difference(lambda: measure_difference(unfocused, page.screenshot(clip=above)), 0.9)
    field.blur()


def check_bars(page: Page) -> None:
    """Check that bars and the ticks over them are visible."""
    bar = page.locator(".mha-bar i").first
    expect(bar).to_be_visible()
    _wait_for_difference(lambda: _measure_marks(bar, ".mha-bar i"), 0.8)
    columns = bar.evaluate("bar => bar.clientWidth")
    _wait_for_difference(lambda: _measure_marks(bar, ".mha-bar s") * columns, 1.99)  # two columns of pixels


def _wait_for_difference(measure: Callable[[], float], minimum: float) -> None:
    """Wait until the measured difference between two screenshots exceeds ``minimum``.

    The page may still be changing, and an element may be replaced during its screenshot.
    """

    def is_visible() -> bool:
        try:
            return measure() > minimum
        except Error:
            return False

    until(is_visible, every=0.1)


def _check_different(one: Locator, other: Locator) -> None:
    """Wait until the two are visible and look different."""
    expect(one).to_be_visible()
    expect(other).to_be_visible()
    _wait_for_difference(
        lambda: measure_difference(*(part.screenshot(animations="disabled") for part in (one, other))), 0.3
    )


def _measure_marks(part: Locator, marks: str) -> float:
    """Return how much a part of a drawing changes if these marks are hidden."""
    return measure_difference(part.screenshot(), part.screenshot(style=f"{marks} {{ opacity: 0 }}"))


def _get_colours(parts: Locator, pseudo: str | None = None) -> list[str]:
    expect(parts.first).to_be_visible()
    colours: list[str] = parts.evaluate_all(
        "(all, pseudo) => all.map(part => getComputedStyle(part, pseudo).backgroundColor)", pseudo
    )
    return colours
