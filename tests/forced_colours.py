"""Check that forced colours still show what is chosen, on, focused or a number, not only in words.

Each check takes a page whose colours are forced, and leaves it as it was.
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
    "steps": (".step[aria-current]", ".step:not([aria-current])"),
    "heads of a block": (".chip[aria-checked=true]", ".chip[aria-checked=false]"),
    "heads of a drawing": (".heads button[aria-pressed=true]", ".heads button[aria-pressed=false]"),
}
Check = Callable[[Page], None]


def check_chosen(*kinds: str) -> Check:
    """Return a check that chosen controls of these kinds look different from the others."""

    def check(page: Page) -> None:
        page.locator("details.drawing").evaluate_all("all => all.forEach(one => { one.open = true; })")
        for kind in kinds:
            _differ(*(page.locator(selector).first for selector in CHOSEN[kind]))

    return check


def check_role_colours(page: Page) -> None:
    """Check that each kind of role has a colour of its own."""
    until(lambda: len(set(colours := _colours(page.locator(".kinds .glyph"), "::before"))) == len(colours) > 3)


def check_cell_colours(page: Page) -> None:
    until(lambda: len(set(_colours(page.locator(".cell")))) > 1)


def switch(page: Page) -> None:
    """Check that a switch looks different when it is on."""
    label = page.locator(".stCheckbox label")
    mark = label.locator("> :nth-child(2)")
    pictures: list[bytes] = []
    _drawn(lambda: pictures.append(mark.screenshot(animations="disabled")) or 1, 0)
    label.click()
    expect(label).to_have_attribute("data-selected", "true")
    _drawn(lambda: measure_difference(pictures[0], mark.screenshot(animations="disabled")), 0.2)
    label.click()
    expect(label).not_to_have_attribute("data-selected", "true")


def focus(page: Page) -> None:
    """Check that a frame shows that the sentence has the keyboard."""
    field = page.get_by_label("Sentence", exact=True)
    field.blur()
    box = field.bounding_box()
    assert box
    above: FloatRect = {"x": box["x"] + 20, "y": box["y"] - 2, "width": 200, "height": 2}  # the border is not in it
    without = page.screenshot(clip=above)
    field.focus()
    _drawn(lambda: measure_difference(without, page.screenshot(clip=above)), 0.9)
    field.blur()


def bars(page: Page) -> None:
    """Check that bars and the ticks over them are visible."""
    bar = page.locator(".mha-bar i").first
    expect(bar).to_be_visible()
    _drawn(lambda: _hidden(bar, ".mha-bar i"), 0.8)
    columns = bar.evaluate("bar => bar.clientWidth")
    _drawn(lambda: _hidden(bar, ".mha-bar s") * columns, 1.99)  # two columns of pixels


def _drawn(difference: Callable[[], float], least: float) -> None:
    """Wait until a difference between two screenshots exceeds ``least``.

    A page may still be drawn, or drawn anew, and a part may be replaced while it is photographed.
    """

    def is_seen() -> bool:
        try:
            return difference() > least
        except Error:
            return False

    until(is_seen, every=0.1)


def _differ(one: Locator, other: Locator) -> None:
    """Wait until the two are visible and look different."""
    expect(one).to_be_visible()
    expect(other).to_be_visible()
    _drawn(lambda: measure_difference(*(part.screenshot(animations="disabled") for part in (one, other))), 0.3)


def _hidden(part: Locator, marks: str) -> float:
    """Return how much of a part of a drawing changes if these marks are not painted."""
    return measure_difference(part.screenshot(), part.screenshot(style=f"{marks} {{ opacity: 0 }}"))


def _colours(parts: Locator, of: str | None = None) -> list[str]:
    expect(parts.first).to_be_visible()
    colours: list[str] = parts.evaluate_all(
        "(all, of) => all.map(part => getComputedStyle(part, of).backgroundColor)", of
    )
    return colours
