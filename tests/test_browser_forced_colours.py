"""Forced colours in a real browser: what is chosen, on, focused or a number is still seen, not only said by words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image
from playwright.sync_api import Locator, expect

from tests.browser_tab import BrowserTab
from tests.screenshots import differing
from tests.waiting import until

if TYPE_CHECKING:
    from playwright.sync_api import FloatRect

SCHEMES: Sequence[Any] = ("light", "dark")
BUTTONS = (".stButtonGroup button[data-selected]", ".stButtonGroup button:not([data-selected])")
SEGMENTS = (".segments input:checked + span", ".segments input:not(:checked) + span")


def test_pictures_are_compared_by_contrast() -> None:
    def plain(colour: tuple[int, int, int]) -> bytes:
        file = BytesIO()
        Image.new("RGB", (4, 4), colour).save(file, "PNG")
        return file.getvalue()

    assert differing(plain((0, 0, 0)), plain((255, 255, 255))) == 1
    assert differing(plain((0, 0, 0)), plain((55, 51, 115))) == 0  # black on navy


def drawn(difference: Callable[[], float], least: float) -> None:
    """Wait until a difference between two screenshots exceeds ``least``: a page may still be drawn, or drawn anew."""
    until(lambda: difference() > least, every=0.1)


def differ(chosen: Locator, other: Locator) -> None:
    """Wait until the two are visible and look different."""
    expect(chosen.first).to_be_visible()
    drawn(lambda: differing(*(part.first.screenshot(animations="disabled") for part in (chosen, other))), 0.3)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_is_chosen_on_explore_and_what_a_role_is(newcomer: Callable[..., BrowserTab], scheme: Any) -> None:
    page = newcomer(forced_colors="active", color_scheme=scheme).explore(roles="on")
    differ(page.locator(".heads button[aria-pressed=true]"), page.locator(".heads button").nth(4))
    differ(*(page.locator(f".controls {part}") for part in SEGMENTS))
    colours = page.locator(".kinds s").evaluate_all("all => all.map(s => getComputedStyle(s).backgroundColor)")
    assert len(set(colours)) == len(colours) > 3


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    ("path", "choices"),
    [
        ("/compare?show=layer", [BUTTONS, SEGMENTS]),
        ("/roles", [BUTTONS]),
        ("/questions?task=1", [BUTTONS]),  # pills
        (
            "/inside_a_head",
            [
                (".step[aria-current]", ".step:not([aria-current])"),
                (".chip[aria-pressed=true]", ".chip[aria-pressed=false]"),
            ],
        ),
        (
            "/questions?task=1&answer=L3H1",
            [
                tuple(
                    f".stRadio label{kind} > div > div:first-child"
                    for kind in ("[data-selected]", ":not([data-selected])")
                )
            ],
        ),
    ],
)
def test_what_is_chosen_on_every_page(
    newcomer: Callable[..., BrowserTab], path: str, choices: list[tuple[str, str]], scheme: Any
) -> None:
    page = newcomer(forced_colors="active", color_scheme=scheme).visit(path)
    for chosen, other in choices:
        differ(page.locator(chosen), page.locator(other))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_switch_is_on_or_off(newcomer: Callable[..., BrowserTab], scheme: Any) -> None:
    page = newcomer(forced_colors="active", color_scheme=scheme).visit("/inside_a_head", step="softmax")
    mark = page.locator(".stCheckbox label > :nth-child(2)")
    off = mark.screenshot(animations="disabled")
    page.locator(".stCheckbox label").click()
    expect(page.locator(".stCheckbox label")).to_have_attribute("data-selected", "true")
    drawn(lambda: differing(off, mark.screenshot(animations="disabled")), 0.2)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_frame_shows_which_field_has_the_focus(newcomer: Callable[..., BrowserTab], scheme: Any) -> None:
    visitor = newcomer(forced_colors="active", color_scheme=scheme)
    page = visitor.explore()
    box = visitor.field.bounding_box()
    assert box
    above: FloatRect = {"x": box["x"] + 20, "y": box["y"] - 2, "width": 200, "height": 2}  # the border is not in it
    without = page.screenshot(clip=above)
    visitor.field.focus()
    drawn(lambda: differing(without, page.screenshot(clip=above)), 0.9)


def hidden(part: Locator, marks: str) -> float:
    """How much of a part of a drawing changes if these marks are not painted."""
    return differing(part.screenshot(), part.screenshot(style=f"{marks} {{ opacity: 0 }}"))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_bars_and_the_ticks_over_them(newcomer: Callable[..., BrowserTab], scheme: Any) -> None:
    page = newcomer(forced_colors="active", color_scheme=scheme).visit("/roles", head="L3H1")
    bar = page.locator(".mha-bar i").first
    expect(bar).to_be_visible()
    drawn(lambda: hidden(bar, ".mha-bar i"), 0.8)
    columns = bar.evaluate("bar => bar.clientWidth")
    drawn(lambda: hidden(bar, ".mha-bar s") * columns, 1.99)  # two columns of pixels


def test_the_colours_that_are_numbers(newcomer: Callable[..., BrowserTab]) -> None:
    page = newcomer(forced_colors="active").visit("/why_heads_differ", experiment="output", guess="skip", step="300")
    expect(page.locator(".cell").first).to_be_visible()
    colours = page.locator(".cell").evaluate_all("all => all.map(cell => getComputedStyle(cell).backgroundColor)")
    assert len(set(colours)) > 1
