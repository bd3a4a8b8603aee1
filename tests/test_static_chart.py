"""Charts of pages as files: positions, and that no number is lost."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from plotly.subplots import make_subplots

from mha_viz import figure as figure_api
from mha_viz.drawing.marks import Cells, Polyline, Rect, Text
from mha_viz.errors import ExportError
from mha_viz.figures.chart_axes import axis
from mha_viz.figures.chart_numbers import numbers
from mha_viz.figures.chart_text import text_marks, width, without_markup
from mha_viz.figures.layout import Size
from mha_viz.figures.static_chart import drawing
from mha_viz.figures.theme import LIGHT, Theme
from tests.files import opens

SIZE = Size(width_mm=170, font_pt=8)
MARGIN = {"l": 50, "r": 10, "t": 20, "b": 30}


def marks(chart: Any, kind: type) -> list[Any]:
    """The marks of a chart, in pixels of the page; the sheet is at least 620 pixels wide."""
    drawn = drawing(chart, LIGHT, SIZE, "Caption.", "Alt")
    return [mark for mark in drawn.marks if isinstance(mark, kind)]


def texts(chart: Any) -> list[str]:
    return [mark.text for mark in marks(chart, Text)]


def test_bars_stand_on_zero_and_are_as_long_as_their_numbers() -> None:
    chart = go.Figure(go.Bar(x=["a", "b", "c"], y=[1.0, 2.0, -1.0]), {"height": 250, "margin": MARGIN})
    first, second, third = marks(chart, Rect)
    assert second.height == pytest.approx(2 * first.height) == pytest.approx(2 * third.height)
    assert first.y + first.height == pytest.approx(second.y + second.height) == pytest.approx(third.y)
    assert second.x - first.x == pytest.approx(third.x - second.x)
    assert first.width == pytest.approx(0.8 * (second.x - first.x))


def test_bars_at_one_place_stand_side_by_side_and_others_do_not() -> None:
    both = go.Figure([go.Bar(x=[0, 1], y=[1, 1]), go.Bar(x=[0, 1], y=[1, 1])], {"height": 250, "margin": MARGIN})
    a, b, c, _ = sorted(marks(both, Rect), key=lambda mark: mark.x)
    assert b.x == pytest.approx(a.x + a.width)
    assert c.x > b.x + b.width
    apart = go.Figure([go.Bar(x=[0, 1], y=[1, 1]), go.Bar(x=[2, 3], y=[1, 1])], {"height": 250, "margin": MARGIN})
    assert marks(apart, Rect)[0].width == pytest.approx(marks(go.Figure(go.Bar(x=[0, 1, 2, 3], y=[1] * 4), {
        "height": 250, "margin": MARGIN}), Rect)[0].width)  # fmt: skip


@pytest.mark.parametrize("reverse", [False, True])
def test_the_first_row_of_cells_is_above_where_the_axis_says_so(reverse: bool) -> None:
    cells = go.Heatmap(z=[[0.0, 1.0], [0.5, 0.0]], zmin=0, zmax=1, colorscale=[[0, "#ffffff"], [1, "#000000"]],
                       showscale=False)  # fmt: skip
    chart = go.Figure(cells, {"height": 300, "margin": MARGIN})
    chart.update_yaxes(autorange="reversed" if reverse else True)
    (drawn,) = marks(chart, Cells)
    shades = drawn.pixels[..., 0].tolist()
    upper, lower = [255, 0], [128, 255]
    assert shades == ([upper, lower] if reverse else [lower, upper])


def test_a_cell_without_a_number_is_left_out() -> None:
    cells = go.Heatmap(z=[[0.0, np.nan], [1.0, 1.0]], zmin=0, zmax=1, colorscale=[[0, "#ffffff"], [1, "#000000"]])
    chart = go.Figure(cells, {"height": 300, "margin": MARGIN})
    chart.update_traces(showscale=False)
    assert len(marks(chart, Rect)) == 3
    assert marks(chart, Cells) == []


def test_what_is_written_in_cells_is_written_in_the_file() -> None:
    scale = [[0, "#ffffff"], [1, "#000000"]]
    cells = go.Heatmap(z=[[0.0, 1.0]], zmin=0, zmax=1, colorscale=scale, text=[["no", "yes"]], texttemplate="%{text}")
    chart = go.Figure(cells, {"height": 300, "margin": MARGIN})
    chart.update_traces(showscale=False)
    inks = {mark.text: mark.colour for mark in marks(chart, Text) if mark.text in ("no", "yes")}
    assert inks == {"no": "#000000", "yes": "#ffffff"}


def test_a_curve_has_the_ends_that_its_axis_gives_it() -> None:
    chart = go.Figure(go.Scatter(x=[0, 1, 2], y=[1.0, 10.0, 100.0], mode="lines"), {"height": 300, "margin": MARGIN})
    chart.update_yaxes(type="log", range=[0, 2])
    chart.update_xaxes(range=[0, 2])
    (line,) = [mark for mark in marks(chart, Polyline) if len(mark.points) == 3]
    (x0, y0), (x1, y1), (x2, y2) = line.points
    assert x1 - x0 == pytest.approx(x2 - x1)
    assert y0 - y1 == pytest.approx(y1 - y2)  # equal factors, equal room


def test_a_gap_in_a_curve_stays_a_gap() -> None:
    line = go.Scatter(x=[0, 1, 2, 3, 4], y=[1, 2, None, 2, 1], mode="lines")
    chart = go.Figure(line, {"height": 300, "margin": MARGIN})
    assert [len(mark.points) for mark in marks(chart, Polyline)] == [2, 2]


def test_labels_titles_and_the_legend_are_written() -> None:
    chart = make_subplots(1, 2, subplot_titles=["left W<sub>Q</sub>", "<b>right</b>"])
    chart.add_scatter(x=[0, 1], y=[0, 1], name="one", row=1, col=1)
    chart.add_scatter(x=[0, 1], y=[0, 1], name="two", row=1, col=2)
    chart.update_xaxes(tickvals=[0, 1], ticktext=["a &lt; b", "c"], title_text="step")
    written = texts(chart)
    assert {"one", "two", "a < b", "c", "step", "left W", "Q", "right"} <= set(written)
    (index,) = [mark for mark in marks(chart, Text) if mark.text == "Q"]
    (before,) = [mark for mark in marks(chart, Text) if mark.text == "left W"]
    assert (index.size, index.y > before.y) == (pytest.approx(0.7 * before.size), True)
    assert [mark.weight for mark in marks(chart, Text) if mark.text == "right"] == [600]


def test_text_that_looks_like_markup_stays_text() -> None:
    (mark,) = text_marks("&lt;script&gt;alert(1)&lt;/script&gt;", 0, 0, 10, "#000000")
    assert mark.text == "<script>alert(1)</script>"
    assert without_markup("a<br><b>b</b>") == "a b"
    assert width("<b>wide</b><br>w", 10) == width("<b>wide</b>", 10) > width("wide", 10)


def test_round_numbers_stand_along_an_axis() -> None:
    layout = go.Figure().layout.xaxis
    ticks = axis(layout, [[0.0, 7.3]], 0, 100, 0.0, True).ticks()
    assert [text for _, text in ticks] == ["0", "2", "4", "6"]
    layout.update(tickformat=".0%", range=[0, 1], nticks=3)
    assert [text for _, text in axis(layout, [[]], 0, 100, 0.0, False).ticks()] == ["0%", "50%", "100%"]


def test_a_square_stays_square() -> None:
    cells = go.Heatmap(z=np.zeros((4, 4)), zmin=0, zmax=1, colorscale=[[0, "#ffffff"], [1, "#000000"]], showscale=False)
    chart = go.Figure(cells, {"height": 300, "margin": MARGIN})
    chart.update_yaxes(scaleanchor="x", constrain="domain")
    (drawn,) = marks(chart, Cells)
    assert drawn.width == pytest.approx(drawn.height)


def test_a_kind_of_trace_that_is_not_known_is_refused() -> None:
    with pytest.raises(ExportError, match="pie"):
        drawing(go.Figure(go.Pie(values=[1, 2])), LIGHT, SIZE, "", "")


@pytest.mark.parametrize(
    ("trace", "lacks"),
    [
        (go.Scatter(x=[1], y=[1], marker={"symbol": "star"}), "star"),
        (go.Scatter(x=[1], y=[1], error_y={"array": [1]}), "Error bars"),
        (go.Bar(x=[1], y=[1], error_x={"array": [1]}), "Error bars"),
    ],
)
def test_what_a_file_would_lack_is_refused(trace: Any, lacks: str) -> None:
    with pytest.raises(ExportError, match=lacks):
        drawing(go.Figure(trace), LIGHT, SIZE, "", "")


# ---- Files and numbers ------------------------------------------------------------------------------------


def draw(theme: Theme) -> Any:
    chart = go.Figure(go.Bar(x=["=1+1", "b"], y=[0.25, 0.5], name="share", marker={"color": theme.heads[0]}))
    return chart.update_layout(height=250, margin=MARGIN)


def test_a_chart_is_written_in_each_of_its_formats() -> None:
    figure = figure_api.chart(draw, "Two bars", "Of a test.")
    assert figure.suffixes == (".svg", ".pdf", ".png", ".csv", ".json")
    for suffix in figure.suffixes:
        opens(suffix, figure.to_bytes(suffix, 40))
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


def test_cells_are_named_as_along_their_axes() -> None:
    chart = go.Figure(go.Heatmap(z=[[1.0, 2.0], [3.0, np.nan]], zmin=0, zmax=3))
    chart.update_xaxes(tickvals=[0, 1], ticktext=["<b>it</b>", "sat"])
    rows = numbers(chart, {}).rows
    assert rows == (("", "", "it", 0, 1.0), ("", "", "sat", 0, 2.0), ("", "", "it", 1, 3.0))


def test_dark_charts_have_dark_paper() -> None:
    light, dark = (figure_api.chart(draw, "Two bars", "", look=look).drawing for look in ("light", "dark"))
    assert light.background != dark.background
    assert [m.fill for m in light.marks if isinstance(m, Rect)] != [m.fill for m in dark.marks if isinstance(m, Rect)]
