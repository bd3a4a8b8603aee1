"""Charts of pages as files: positions, and that no number is lost."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mha_viz import figures as figure_api
from mha_viz.errors import ExportError
from mha_viz.figures.charts.chart import (
    Axis,
    Bars,
    Cells,
    Chart,
    Legend,
    Line,
    Margin,
    Plot,
    Series,
    divide_width,
    iter_text_marks,
    strip_markup,
    width,
)
from mha_viz.figures.charts.chart_drawing import build_scale, draw_chart
from mha_viz.figures.drawing.marks import CellPicture, Polyline, Rect, Text
from mha_viz.figures.drawing.theme import LIGHT, Theme
from mha_viz.figures.layout import Size
from tests.files import check_opens

SIZE = Size(width_mm=170, font_pt=8)
GREYS = ("#ffffff", "#000000")
INK, PLAIN = "#000000", Axis()


def chart_of(*series: Series, x: Axis = PLAIN, y: Axis = PLAIN) -> Chart:
    return Chart(LIGHT, series, [Plot(x, y)], 300, Margin(50, 10, 20, 30), font_size=12, legend=Legend())


def marks(chart: Chart, kind: type) -> list[Any]:
    """The marks of a chart, in pixels of the page; the sheet is at least 620 pixels wide."""
    drawn = draw_chart(chart, SIZE, "Caption.", "Alt")
    return [mark for mark in drawn.marks if isinstance(mark, kind)]


def texts(chart: Chart) -> list[str]:
    return [mark.text for mark in marks(chart, Text)]


def test_bars_stand_on_zero_and_are_as_long_as_their_numbers() -> None:
    first, second, third = marks(chart_of(Bars(["a", "b", "c"], [1.0, 2.0, -1.0], INK)), Rect)
    assert second.height == pytest.approx(2 * first.height) == pytest.approx(2 * third.height)
    assert first.y + first.height == pytest.approx(second.y + second.height) == pytest.approx(third.y)
    assert second.x - first.x == pytest.approx(third.x - second.x)
    assert first.width == pytest.approx(0.8 * (second.x - first.x))


def test_bars_at_one_place_stand_side_by_side_and_others_do_not() -> None:
    both = chart_of(Bars([0, 1], [1, 1], INK), Bars([0, 1], [1, 1], INK))
    a, b, c, _ = sorted(marks(both, Rect), key=lambda mark: mark.x)
    assert b.x == pytest.approx(a.x + a.width)
    assert c.x > b.x + b.width
    apart = chart_of(Bars([0, 1], [1, 1], INK), Bars([2, 3], [1, 1], INK))
    assert marks(apart, Rect)[0].width == pytest.approx(marks(chart_of(Bars(range(4), [1] * 4, INK)), Rect)[0].width)


@pytest.mark.parametrize("reverse", [False, True])
def test_the_first_row_of_cells_is_above_where_the_axis_says_so(reverse: bool) -> None:
    chart = chart_of(Cells([[0.0, 1.0], [0.5, 0.0]], 0, 1, GREYS), y=Axis(is_reversed=reverse))
    (drawn,) = marks(chart, CellPicture)
    shades = drawn.pixels[..., 0].tolist()
    upper, lower = [255, 0], [128, 255]
    assert shades == ([upper, lower] if reverse else [lower, upper])


def test_a_cell_without_a_number_is_left_out() -> None:
    chart = chart_of(Cells([[0.0, np.nan], [1.0, 1.0]], 0, 1, GREYS))
    assert len(marks(chart, Rect)) == 3
    assert marks(chart, CellPicture) == []


def test_what_is_written_in_cells_is_written_in_the_file() -> None:
    chart = chart_of(Cells([[0.0, 1.0]], 0, 1, GREYS, [["no", "yes"]]))
    inks = {mark.text: mark.colour for mark in marks(chart, Text) if mark.text in ("no", "yes")}
    assert inks == {"no": "#000000", "yes": "#ffffff"}


@pytest.mark.parametrize("place", ["right", "below"])
def test_a_scale_of_colours_has_its_numbers(place: Any) -> None:
    chart = chart_of(Cells([[0.0, 1.0]], -2, 2, GREYS, scale_at=place, unit="nats" if place == "below" else ""))
    assert len(marks(chart, CellPicture)) == 2
    assert {"−2", "−1", "0", "1", "2"} <= set(texts(chart))
    assert ("nats" in texts(chart)) is (place == "below")


def test_a_curve_has_the_ends_that_its_axis_gives_it() -> None:
    line = Line([0, 1, 2], [1.0, 10.0, 100.0], INK)
    chart = chart_of(line, x=Axis(range=(0, 2)), y=Axis(is_log=True, range=(0, 2)))
    (drawn,) = [mark for mark in marks(chart, Polyline) if len(mark.points) == 3]
    (x0, y0), (x1, y1), (x2, y2) = drawn.points
    assert x1 - x0 == pytest.approx(x2 - x1)
    assert y0 - y1 == pytest.approx(y1 - y2)  # equal factors, equal room


def test_a_gap_in_a_curve_stays_a_gap() -> None:
    chart = chart_of(Line([0, 1, 2, 3, 4], [1, 2, None, 2, 1], INK))
    assert [len(mark.points) for mark in marks(chart, Polyline)] == [2, 2]


def test_the_points_of_a_curve_have_its_colour() -> None:
    chart = chart_of(Line([0, 1], [1, 2], "#aa0000", point=7))
    line, *points = marks(chart, Polyline)
    assert [point.fill for point in points] == ["#aa0000", "#aa0000"] == [line.stroke] * 2


def test_labels_titles_and_the_legend_are_written() -> None:
    axis = Axis(positions=[0, 1], names=["a &lt; b", "c"], title="step")
    titles = zip(["left W<sub>Q</sub>", "<b>right</b>"], divide_width((1, 1), 0.1), strict=True)
    lines = [Line([0, 1], [0, 1], INK, name=name, plot=plot) for plot, name in enumerate(["one", "two"])]
    plots = [Plot(axis, Axis(), title, across) for title, across in titles]
    chart = replace(chart_of(*lines), plots=plots)
    written = texts(chart)
    assert {"one", "two", "a < b", "c", "step", "left W", "Q", "right"} <= set(written)
    (index,) = [mark for mark in marks(chart, Text) if mark.text == "Q"]
    (before,) = [mark for mark in marks(chart, Text) if mark.text == "left W"]
    assert (index.size, index.y > before.y) == (pytest.approx(0.7 * before.size), True)
    assert [mark.weight for mark in marks(chart, Text) if mark.text == "right"] == [600]


def test_one_series_has_a_legend_only_where_it_must() -> None:
    line = Line([0, 1], [0, 1], INK, name="one")
    assert "one" not in texts(chart_of(line))
    assert "one" in texts(chart_of(replace(line, in_legend=True)))


@pytest.mark.parametrize("angle", [None, -90])
def test_no_label_is_cut_off(angle: float | None) -> None:
    names = [f"quite a long name {number}" for number in range(12)]
    upright = chart_of(Bars(names, [1e9] * 12, INK), x=Axis(angle=angle), y=Axis(title="a quantity"))
    lying = chart_of(Bars(names, [1e9] * 12, INK, is_horizontal=True), x=Axis(title="a quantity"))
    for chart in (upright, lying):
        drawn = draw_chart(chart, SIZE, "", "")
        for mark in (mark for mark in drawn.marks if isinstance(mark, Text)):
            turn = np.radians(mark.turn)
            long = width(mark.text, mark.size)
            assert -1 <= mark.x <= mark.x + long * np.cos(turn) <= drawn.width + 1, mark.text
            assert -1 <= mark.y - long * np.sin(turn) <= mark.y <= drawn.height + 1, mark.text


def test_text_that_looks_like_markup_stays_text() -> None:
    (mark,) = iter_text_marks("&lt;script&gt;alert(1)&lt;/script&gt;", 0, 0, 10, "#000000")
    assert mark.text == "<script>alert(1)</script>"
    assert strip_markup("a<br><b>b</b>") == "a b"
    assert width("<b>wide</b><br>w", 10) == width("<b>wide</b>", 10) > width("wide", 10)


def test_round_numbers_stand_along_an_axis() -> None:
    bars = chart_of(Bars([0, 1], [0.0, 7.3], INK))
    assert [text for _, text in build_scale(bars, 0, "y").ticks()] == ["0", "2", "4", "6"]
    shares = chart_of(y=Axis(tick_format=".0%", range=(0, 1), max_ticks=3))
    assert [text for _, text in build_scale(shares, 0, "y").ticks()] == ["0%", "50%", "100%"]


def test_a_square_stays_square() -> None:
    (drawn,) = marks(chart_of(Cells(np.zeros((4, 4)), 0, 1, GREYS), y=Axis(has_equal_units=True)), CellPicture)
    assert drawn.width == pytest.approx(drawn.height)


# ---- Files and numbers ------------------------------------------------------------------------------------


def draw(theme: Theme) -> Chart:
    bars = Bars(["=1+1", "b"], [0.25, 0.5], theme.heads[0], name="share")
    return Chart(theme, [bars], [Plot(Axis(), Axis())], 250, Margin(50, 10, 20, 30))


def test_a_chart_is_written_in_each_of_its_formats() -> None:
    figure = figure_api.chart(draw, "Two bars", "Of a test.")
    assert figure.suffixes == (".svg", ".pdf", ".png", ".csv", ".json")
    for suffix in figure.suffixes:
        check_opens(suffix, figure.to_bytes(suffix, 40))
    assert figure.caption == "Two bars. Of a test."
    with pytest.raises(ExportError, match=r"\.svg, \.pdf, \.png, \.csv, \.json"):
        figure.to_bytes(".html")


def test_the_numbers_of_a_chart_are_those_that_it_draws() -> None:
    figure = figure_api.chart(draw, "Two bars", "Of a test.")
    table = pd.read_csv(io.BytesIO(figure.to_bytes(".csv")), keep_default_na=False)
    assert table[["series", "x", "value"]].to_numpy().tolist() == [["share", "'=1+1", 0.25], ["share", "b", 0.5]]
    tree = json.loads(figure.to_bytes(".json"))
    assert [row["value"] for row in tree["rows"]] == [0.25, 0.5]
    assert tree["caption"] == "Of a test."


def test_a_missing_number_of_any_precision_has_no_row() -> None:
    bars = Bars([0, 1], np.array([0.25, np.nan], np.float32), INK)
    assert [row[-1] for row in chart_of(bars).rows] == [0.25]


def test_cells_are_named_as_along_their_axes() -> None:
    cells = Cells([[1.0, 2.0], [3.0, np.nan]], 0, 3, GREYS)
    assert chart_of(cells, x=Axis(positions=[0, 1], names=["<b>it</b>", "sat"])).rows == (
        ("", "", "it", 0, 1.0),
        ("", "", "sat", 0, 2.0),
        ("", "", "it", 1, 3.0),
    )


def test_dark_charts_have_dark_paper() -> None:
    light, dark = (figure_api.chart(draw, "Two bars", "", look=look).drawing for look in ("light", "dark"))
    assert light.background != dark.background
    assert [m.fill for m in light.marks if isinstance(m, Rect)] != [m.fill for m in dark.marks if isinstance(m, Rect)]
