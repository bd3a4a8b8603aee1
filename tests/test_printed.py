"""Figures without colour convey the same: printed in grey, and with three kinds of colour blindness."""

from __future__ import annotations

import io
from itertools import combinations, groupby

import numpy as np
import numpy.typing as npt
import pypdfium2
import pytest
from PIL import Image

from mha_viz.attention import Attention, Head
from mha_viz.figures import files
from mha_viz.figures.drawing.marks import CellPicture, Curve, Drawing, Rect, Text
from mha_viz.figures.drawing.theme import GREY, LIGHT, THEMES, Theme, palette
from mha_viz.figures.layout import Size, arcs
from mha_viz.figures.layout.difference import compute_difference, difference, quantise_levels
from mha_viz.figures.layout.heatmap import DARK_SHARE, MIN_MARKED_SHARE
from mha_viz.figures.layout.links import links
from mha_viz.figures.layout.panels import Panel
from mha_viz.figures.layout.view import View
from tests import lanes
from tests.readings import reading
from tests.vision import VISIONS, compute_contrast, compute_luminance, parse_rgb, simulate_vision

CLEAR = {"grey": 3.0}  # contrast of graphics with what is beside them, WCAG 2.2, 1.4.11; for other kinds of vision:
NEARLY = 2.8
DPI = 288  # four pixels per point
H = Head(1, 2)


def png(drawing: Drawing) -> npt.NDArray[np.uint8]:
    return np.asarray(Image.open(io.BytesIO(files.drawing_bytes(drawing, ".png", DPI))).convert("RGB"))


def pdf(drawing: Drawing) -> npt.NDArray[np.uint8]:
    page = pypdfium2.PdfDocument(files.drawing_bytes(drawing, ".pdf"))[0]
    return np.asarray(page.render(scale=DPI / 72).to_pil().convert("RGB"))


RENDERED = {"png": png, "pdf": pdf}


# ---- Simulated vision ------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", VISIONS)
def test_white_and_grey_stay_what_they_are(by: str) -> None:
    assert VISIONS[by].sum(axis=1) == pytest.approx(1, abs=2e-6)
    assert simulate_vision([255, 255, 255], by) == pytest.approx(1, abs=2e-6)


def test_red_and_green_look_alike_without_the_cones_that_tell_them_apart() -> None:
    """A check of the simulation: for a deuteranope, red and green of equal luminance differ only in blue and yellow."""
    red, green = ([200, 0, 0], [0, 108, 0])
    assert np.abs(simulate_vision(red, "deuteranopia") - simulate_vision(green, "deuteranopia")).max() < 0.14
    assert np.abs(simulate_vision(red, "tritanopia") - simulate_vision(green, "tritanopia")).max() > 0.5


# ---- Weights ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", VISIONS)
@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_a_larger_weight_is_always_farther_from_the_paper(theme: Theme, by: str) -> None:
    light = compute_luminance(palette(theme.ramp), by)
    steps = np.diff(light) * np.sign(light[-1] - light[0])
    assert (steps >= -1e-3).all()
    assert compute_contrast(palette(theme.ramp)[0], palette(theme.ramp)[-1], by) > 7


# ---- Signs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_a_sign_has_a_mark_where_both_ends_of_a_difference_have_one_colour(theme: Theme) -> None:
    less, more = palette(theme.signed)[[0, 255]].astype(int)
    assert theme.has_minus == (np.abs(less - more).max() < 10)


@pytest.mark.parametrize("by", VISIONS)
def test_a_minus_is_clear_on_every_cell_that_carries_one(by: str) -> None:
    d = np.linspace(-1, -MIN_MARKED_SHARE, 181).astype(np.float32)
    cells = palette(GREY.signed)[quantise_levels(d, 1)]
    inks = np.array([parse_rgb(GREY.paper if value < -DARK_SHARE else GREY.ink) for value in d])
    assert compute_contrast(cells, inks, by).min() >= CLEAR.get(by, NEARLY)


@pytest.mark.parametrize(("how", "look"), lanes.pair_values(RENDERED, THEMES))
def test_every_negative_cell_has_its_minus_in_grey_and_no_other_has(how: str, look: str) -> None:
    first, second = (Panel(reading(words=(1,) * 8, seed=seed), H) for seed in (1, 2))
    drawing = difference(first, second, None, Size(look=look))  # type: ignore[arg-type]
    picture = RENDERED[how](drawing)
    cells = next(m for m in drawing.marks if isinstance(m, CellPicture))
    d = compute_difference(first, second, View()).d
    clear = d <= -MIN_MARKED_SHARE * np.abs(d).max()
    assert all(kind.any() for kind in (clear, d > 0, ~clear & (d < 0)))
    marked = clear & (look == "grey")
    side, k = cells.width / len(d), DPI / 72
    for (r, c), negative in np.ndenumerate(marked):
        y, x = (round((start + (i + 0.5) * side) * k) for start, i in ((cells.y, r), (cells.x, c)))
        middle, above = picture[y, x], picture[y - round(side * k / 4), x]
        for by in VISIONS:
            assert (compute_contrast(middle, above, by) > 2) == negative, (r, c, by)


@pytest.mark.parametrize("width", [85, 178])
def test_the_legend_and_the_caption_say_what_a_minus_means(width: float) -> None:
    first, second = (Panel(reading(words=(1,) * 8, seed=seed), H) for seed in (1, 2))
    d = compute_difference(first, second, View()).d
    least = f"−{MIN_MARKED_SHARE * float(np.abs(d).max()):.3f}"
    drawing = difference(first, second, None, Size(width, look="grey"))
    assert any(text.endswith(f"with a minus from {least} down") for text in drawing.texts())
    assert f"cells from {least} down carry a minus" in drawing.caption
    for unmarked in (difference(first, first, None, Size(look="grey")), difference(first, second, None, Size(width))):
        assert "minus from" not in " ".join((*unmarked.texts(), unmarked.caption))
        assert "carry a minus" not in unmarked.caption


def test_a_difference_of_nothing_has_no_minus() -> None:
    even = Attention.from_tensors([np.full((2, 3, 3), 1 / 3)], ["a", "b", "c"])
    drawing = difference(Panel(even, Head(0, 0)), Panel(even, Head(0, 1)), None, Size(look="grey"))
    cells = next(m for m in drawing.marks if isinstance(m, CellPicture))
    small = [m for m in drawing.marks if isinstance(m, Rect) and m.fill and m.y > cells.y and m.width < cells.width / 3]
    assert not [m for m in small if m.height > m.width * 0.05 and m.width < cells.width / 6]


# ---- Heads drawn together --------------------------------------------------------------------------------


@pytest.mark.parametrize(("how", "look"), lanes.pair_values(RENDERED, THEMES))
def test_the_first_four_heads_have_lines_that_differ_in_grey(how: str, look: str) -> None:
    heads = [Head(1, i) for i in range(4)]
    drawing = links(reading(heads=4), heads, None, Size(look=look))  # type: ignore[arg-type]
    samples = [m for m in drawing.marks if isinstance(m, Curve)][-4:]
    named = [m for m in drawing.marks if isinstance(m, Text) and m.text.startswith("L1H")]
    assert [m.text for m in named] == [f"L1H{i} (2-{i + 1})" for i in range(4)]
    assert [m.points[0][1] for m in samples] == [m.y for m in named]
    light = compute_luminance(RENDERED[how](drawing), "grey")
    paper, k = compute_luminance(parse_rgb(THEMES[look].paper), "grey"), DPI / 72
    lines = []
    for sample in samples:
        (x, y), *_, (end, _) = sample.points
        row = np.abs(light[round(y * k), round(x * k) : round(end * k)] - paper) > 0.1
        lines.append([len(list(run)) for drawn, run in groupby(row) if drawn])
    runs = [len(lengths) for lengths in lines]
    assert runs[0] == 1
    assert all(count > 2 for count in runs[1:])
    assert min(lines[1]) > 2 * max(lines[2])  # dashes, dots
    assert max(lines[3]) > 3 * min(lines[3][:-1])  # both


def test_the_lines_are_those_of_the_key_in_every_export() -> None:
    heads = [Head(1, i) for i in range(3)]
    drawing = links(reading(), heads)
    curves = [m for m in drawing.marks if isinstance(m, Curve)]
    by_colour = {colour: {m.dash for m in curves if m.colour == colour} for colour in LIGHT.heads[:3]}
    assert all(len(dashes) == 1 for dashes in by_colour.values())
    for one, other in combinations(by_colour.values(), 2):
        assert one != other
    assert files.drawing_bytes(drawing, ".svg").decode().count("stroke-dasharray") == sum(bool(m.dash) for m in curves)


def test_one_head_alone_has_solid_lines() -> None:
    assert {m.dash for m in links(reading(), [H]).marks if isinstance(m, Curve)} == {()}


def test_dashes_on_somebodys_axes_are_as_long_as_in_the_drawing() -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    curve = Curve(((10, 20), (10, 20), (90, 20), (90, 20)), "#000000", 2, dash=(20, 10))
    axes = files.draw(Drawing(100, 40, (curve,)))
    axes.figure.set_dpi(72)
    axes.figure.canvas.draw()
    row = np.asarray(axes.figure.canvas.buffer_rgba())[20, :, 0] < 128
    assert [len(list(run)) for _, run in groupby(row)][1:-1] == pytest.approx([20, 10, 20, 10, 20], abs=2)
    plt.close("all")


# ---- Arcs ------------------------------------------------------------------------------------------------


def test_gold_that_a_head_finds_and_gold_that_it_misses_have_other_lines() -> None:
    spans = [arcs.Span(0, 1, "nsubj", "hit"), arcs.Span(1, 2, "obj", "miss")]
    drawing = arcs.draw_sentence(["cats", "eat", "mice"], spans, LIGHT, "")
    drawn = {(m.width, m.dash) for m in drawing.marks if isinstance(m, Curve)}
    assert len(drawn) == 2
    samples = [m for m in drawing.marks if isinstance(m, Curve)][-2:]
    assert [bool(m.dash) for m in samples] == [False, True]
