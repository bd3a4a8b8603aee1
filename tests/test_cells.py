"""The colour of a cell is the colour of its number on the printed scale, whatever is held: in every kind of figure."""

from __future__ import annotations

import inspect
import io
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple, get_type_hints

import numpy as np
import pytest
from PIL import Image, ImageColor

from mha_viz.attention import Attention, Head
from mha_viz.figures import Figure, files, kinds
from mha_viz.figures.charts.chart import Axis, Cells, Chart, Margin, Plot
from mha_viz.figures.drawing.marks import CellPicture, Drawing, Rect
from mha_viz.figures.drawing.theme import THEMES, Theme
from tests.cells import Colours, Numbers, list_numbers, pick_bar_colour
from tests.readings import make_long_reading, reading

H, OTHER = Head(1, 2), Head(0, 1)
PLACE = (0.25, 0.3)  # of a cell, down and across, where its colour is read: a minus is in its middle
NEAR = 6  # the scale has steps, and its ends are rounded
DPI = 200
PATCHES = ["[CLS]", *(f"{row},{column}" for row in range(2) for column in range(3))]
SHADES = np.linspace(0, 255, 12).reshape(2, 6).astype(np.uint8)  # of an image


def one(quantity: str = "weight", seed: int = 0, **_: Any) -> Attention:
    a = reading(words=(1, 2, 1, 1), seed=seed)
    if quantity == "weight":
        return a
    numbers = np.random.default_rng(9).normal(0, 0.2, a.weights.shape).astype(np.float32)
    return replace(a, weights=numbers, quantity=quantity)


def patches() -> Attention:
    weights = np.random.default_rng(0).dirichlet(np.ones(7), (2, 3, 7)).astype(np.float32)
    return Attention.from_tensors(weights, PATCHES, model="vit")


def of_cells(look: str = "light", scale_at: Literal["right", "below"] = "right", **_: Any) -> Figure:
    """A chart of cells with a scale, from 0 to 1."""
    values = np.random.default_rng(1).random((3, 4))
    place, margin = Plot(Axis(), Axis()), Margin(20, 60, 20, 60)

    def draw(theme: Theme) -> Chart:
        return Chart(theme, [Cells(values, 0, 1, theme.ramp, scale_at=scale_at)], [place], height=200, margin=margin)

    return kinds.chart(draw, "cells", "", look=look)


# Every kind of figure with cells, with a call that makes it; `None`: it has no cells.
KINDS: Mapping[str, Callable[..., Figure] | None] = {
    "heatmap": lambda **o: kinds.heatmap(one(**o), H, **view(o)),
    "grid": lambda **o: kinds.grid(one(**o), **view(o)),
    "compare": lambda **o: kinds.compare([(one(**o), H), (one(**o), OTHER), (one(seed=3, **o), H)], **view(o)),
    "difference": lambda **o: kinds.difference((one(), H), (one(), OTHER), **view(o)),
    "overlay": lambda **o: kinds.overlay(patches(), **view(o) | {"pin": o.get("pin") or "q0", "columns": 3}),
    "links": None,
    "chart": of_cells,
}
SIGNED = ("heatmap", "grid", "compare")  # kinds that draw numbers below 0 of one reading
DRAWN = [name for name, make in KINDS.items() if make]
HELD = ("", "q2", "k3", "q2k1")
PINS = {"overlay": ("q2", "k3"), "chart": ("",)}  # what kinds can hold that cannot hold everything
SCALES = {
    "heatmap": ("fixed", "head", "row", "log"),
    "grid": ("fixed", "head", "row", "log"),
    "compare": ("fixed", "head", "log"),
    "overlay": ("fixed", "head", "log"),
}


def view(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "quantity" and value != ""}


def made(kind: str, **given: Any) -> Figure:
    make = KINDS[kind]
    assert make is not None
    return make(**given)


def test_every_kind_of_figure_is_here() -> None:
    """A new kind is added to KINDS, or says there that it has no cells."""
    made = [f for _, f in inspect.getmembers(kinds, inspect.isfunction) if f.__module__ == kinds.__name__]
    assert {f.__name__ for f in made if get_type_hints(f, vars(kinds)).get("return") is Figure} == set(KINDS)
    assert not pictures(kinds.links(one(), H).drawing)[:-1]


def options() -> Iterator[Any]:
    for kind in DRAWN:
        for look in THEMES:
            for pin in PINS.get(kind, HELD):
                yield pytest.param(kind, {"look": look, "pin": pin}, id=f"{kind}-{look}-{pin or 'free'}")
        yield pytest.param(kind, {"pin": PINS.get(kind, HELD)[-1], "transparent": True}, id=f"{kind}-transparent")
        for scale in SCALES.get(kind, ()):
            yield pytest.param(kind, {"scale": scale, "pin": "q2"}, id=f"{kind}-{scale}")
    for kind in SIGNED:
        for look in THEMES:
            yield pytest.param(kind, {"look": look, "pin": "q2", "quantity": "gradient"}, id=f"{kind}-signed-{look}")


@pytest.mark.parametrize(("kind", "given"), [*options()])
def test_a_cell_has_the_colour_of_its_number_on_the_printed_scale(kind: str, given: dict[str, Any]) -> None:
    figure = made(kind, **given)
    agree(figure, Painted(figure.drawing, THEMES[given.get("look", "light")].paper))


@pytest.mark.parametrize("pin", ["", "q40", "k40", "q40k9"])
def test_small_cells_are_not_hidden_by_a_frame(pin: str) -> None:
    figure = kinds.compare(
        [(make_long_reading(1, 2, 90), Head(0, i)) for i in (0, 1)], pin=pin, unit="pieces", width_mm=85
    )
    cells = pictures(figure.drawing)[0]
    assert cells.width / cells.pixels.shape[1] < 3
    agree(figure, Painted(figure.drawing, "#ffffff"))


@pytest.mark.parametrize("kind", DRAWN)
def test_a_png_has_these_colours_too(kind: str) -> None:
    figure = made(kind, pin=PINS.get(kind, HELD)[-1])
    pixels = np.asarray(Image.open(io.BytesIO(files.drawing_bytes(figure.drawing, ".png", DPI))).convert("RGB"))
    agree(figure, lambda x, y: pixels[int(y * DPI / 72), int(x * DPI / 72)])


@pytest.mark.parametrize("look", THEMES)
def test_over_an_image_the_scale_shows_what_its_light_and_shade_make_of_a_colour(look: str) -> None:
    figure = kinds.overlay(patches(), SHADES, columns=3, look=look)  # type: ignore[arg-type]
    *maps, bar = pictures(figure.drawing)
    assert len(bar.pixels) > 1
    for picture, weights in zip(maps, list_numbers(figure), strict=True):
        shares = weights / weights.max()
        sharp = len(picture.pixels) // len(weights)
        for (row, column), share in np.ndenumerate(shares):
            cell = picture.pixels[row * sharp : (row + 1) * sharp, column * sharp : (column + 1) * sharp]
            line = np.stack(
                [pick_bar_colour(line, float(share)) for line in bar.pixels]
            )  # from the image's black to its white
            steps = np.linspace(0, len(line) - 1, 200)
            between = np.stack([np.interp(steps, np.arange(len(line)), channel) for channel in line.T], 1)
            distance = np.abs(cell.reshape(-1, 1, 3)[::997] - between[None]).max(axis=2).min(axis=1)
            assert distance.max() <= NEAR, (row, column)


@pytest.mark.parametrize("kind", ["heatmap", "compare", "difference"])
def test_what_is_held_has_a_frame_and_labels_stay_as_they_are(kind: str) -> None:
    free, held = made(kind).drawing, made(kind, pin="q2k1").drawing
    frames = [m for m in held.marks if isinstance(m, Rect) and m.stroke == THEMES["light"].accent]
    assert frames
    assert not [m for m in free.marks if isinstance(m, Rect) and m.stroke]
    assert all(m.opacity == 1 for m in (*free.marks, *held.marks) if isinstance(m, Rect))
    ink = [sum(getattr(m, "colour", "") == THEMES["light"].ink for m in drawing.marks) for drawing in (free, held)]
    accent = sum(getattr(m, "colour", "") == THEMES["light"].accent for m in held.marks)
    assert accent > 0
    assert ink[0] - ink[1] == accent


# ---- What is printed ---------------------------------------------------------------------------------------------


def agree(figure: Figure, colour_at: Callable[[float, float], Any]) -> None:
    """Check the colour of every cell of a figure against its scale; ``colour_at`` reads a point of the figure."""
    maps, (stops, shares_of) = pictures(figure.drawing)[:-1], scale_of(figure.drawing)
    every = list_numbers(figure)
    assert len(maps) == len(every) > 0
    for picture, numbers in zip(maps, every, strict=True):
        rows, columns = picture.pixels.shape[:2]
        assert numbers.shape == (rows, columns)
        for (row, column), share in np.ndenumerate(shares_of(numbers)):
            x = picture.x + (column + PLACE[1]) * picture.width / columns
            y = picture.y + (row + PLACE[0]) * picture.height / rows
            found, expected = np.asarray(colour_at(x, y), float), pick_bar_colour(stops, float(share))
            assert np.abs(found - expected).max() <= NEAR, (row, column, numbers[row, column], found, expected)


class Painted(NamedTuple):
    """The colour of any point of a drawing: what is painted there, in order, in full or in part."""

    drawing: Drawing
    paper: str

    def __call__(self, x: float, y: float) -> Numbers:
        colour = np.array(ImageColor.getrgb(self.paper), float)
        for mark in self.drawing.marks:
            if isinstance(mark, CellPicture) and _is_in(mark, x, y):
                rows, columns = mark.pixels.shape[:2]
                row, column = (y - mark.y) / mark.height * rows, (x - mark.x) / mark.width * columns
                colour = mark.pixels[int(row), int(column)].astype(float)
            elif isinstance(mark, Rect) and mark.fill and _is_in(mark, x, y):
                colour += mark.opacity * (np.array(ImageColor.getrgb(mark.fill)) - colour)
            elif isinstance(mark, Rect) and mark.stroke and _is_in(mark, x, y, mark.stroke_width / 2):
                half = -mark.stroke_width / 2
                if not _is_in(mark, x, y, half):
                    colour += mark.opacity * (np.array(ImageColor.getrgb(mark.stroke)) - colour)
        return colour


def _is_in(mark: CellPicture | Rect, x: float, y: float, more: float = 0) -> bool:
    inside_x = mark.x - more <= x < mark.x + mark.width + more
    return inside_x and mark.y - more <= y < mark.y + mark.height + more


def pictures(drawing: Drawing) -> list[CellPicture]:
    """The matrices in their order, and the scale."""
    return [mark for mark in drawing.marks if isinstance(mark, CellPicture)]


NUMBER = r"[−±]?\d[\d.]*"
Shares = Callable[[Numbers], Numbers]


def scale_of(drawing: Drawing) -> tuple[Colours, Shares]:
    """The colours of the printed scale, from its beginning to its end, and where numbers are on it, from its words."""
    bar = pictures(drawing)[-1]
    colours = bar.pixels[0] if bar.width > bar.height else bar.pixels[::-1, 0]
    words = " ".join(drawing.texts())
    if found := re.search(rf"−({NUMBER}) to \+({NUMBER})", words):
        return colours, lambda w: (1 + w / float(found[1])) / 2
    if "logarithmic, from ±" in words:
        return colours, lambda w: (1 + np.sign(w) * _decades(w)) / 2
    if "logarithmic" in words:
        return colours, _decades
    if found := re.search(r"0 to (±?)each (row|head)['’]s largest", words):
        axis = 1 if found[2] == "row" else None
        share: Shares = lambda w: w / np.abs(w).max(axis=axis, keepdims=True)  # noqa: E731
    elif found := re.search(rf"0 to (±?)({NUMBER})", words):
        top = float(found[2])
        share = lambda w: w / top  # noqa: E731
    else:
        return colours, lambda w: w  # of a chart, from 0 to 1
    return colours, (lambda w: (1 + share(w)) / 2) if found[1] else share


def _decades(w: Numbers) -> Numbers:
    """From 0.001 to 1, each power of ten equally long."""
    result: Numbers = np.clip(1 + np.log10(np.maximum(np.abs(w), 1e-9)) / 3, 0, 1)
    return result
