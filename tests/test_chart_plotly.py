"""Charts as Plotly draws them on pages: positions compared with those of Plotly's own functions, and what each part
becomes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from plotly.subplots import make_subplots

from mha_viz.figures.charts.chart import (
    Axis,
    Band,
    Bars,
    Chart,
    Frame,
    Line,
    Margin,
    Plot,
    Points,
    divide_height,
    divide_width,
)
from mha_viz.figures.charts.chart_plotly import plotly
from mha_viz.figures.drawing.theme import LIGHT

USUAL, BELOW = Axis(is_fixed=False), Axis(is_fixed=False, same_x_as=2, has_labels=False)
BOTTOM, TOP = divide_width((1, 6), 0.14)
WIDE = divide_width((1, 2, 2), 0.03)
GRIDS: dict[str, tuple[list[Plot], dict[str, Any]]] = {
    "a row": (
        [Plot(USUAL, USUAL, title, across) for title, across in zip("abc", divide_width((1, 1, 1), 0.04), strict=True)],
        {"rows": 1, "cols": 3, "subplot_titles": ["a", "b", "c"], "horizontal_spacing": 0.04},
    ),
    "one axis below": (
        [
            Plot(BELOW if row < 2 else USUAL, USUAL, "abc"[row], y_span=y_span)
            for row, y_span in enumerate(divide_height(3, 0.11))
        ],
        {"rows": 3, "cols": 1, "subplot_titles": ["a", "b", "c"], "vertical_spacing": 0.11, "shared_xaxes": True},
    ),
    "shares and empty places": (
        [
            *(Plot(USUAL, USUAL, title, across, TOP) for title, across in zip("abc", WIDE, strict=True)),
            Plot(USUAL, USUAL, "d", WIDE[2], BOTTOM),
        ],
        {"rows": 2, "cols": 3, "subplot_titles": list("abcd"), "column_widths": [1, 2, 2], "row_heights": [6, 1]}
        | {"horizontal_spacing": 0.03, "vertical_spacing": 0.14, "specs": [[{}, {}, {}], [None, None, {}]]},
    ),
}


def chart_of(plots: list[Plot], *series: Any, **properties: Any) -> Chart:
    return Chart(LIGHT, series, plots, 90, Margin(10, 10, 10, 10), **properties)


@pytest.mark.parametrize("grid", GRIDS)
def test_plots_stand_where_plotly_would_put_them(grid: str) -> None:
    plots, plotlys = GRIDS[grid]
    chart, other = plotly(chart_of(plots, title_font_size=16)), make_subplots(**plotlys)
    other.update_xaxes(title_font_size=16)
    other.update_yaxes(title_font_size=16)
    axes = [name for name in other.layout if name[1:5] == "axis"]
    assert [name for name in chart.layout if name[1:5] == "axis"] == axes
    for name in axes:
        placed, expected = (one.layout[name].to_plotly_json() for one in (chart, other))
        assert placed.pop("domain") == pytest.approx(expected.pop("domain"), abs=1e-12)
        assert placed == expected
    for note, expected in zip(chart.layout.annotations, other.layout.annotations, strict=True):
        assert (note.x, note.y) == pytest.approx((expected.x, expected.y), abs=1e-12)
        assert note.update(x=0, y=0) == expected.update(x=0, y=0)


def test_series_and_frames_go_to_their_plot() -> None:
    plots = [Plot(USUAL, USUAL, "", across) for across in divide_width((1, 1), 0.1)]
    frames = [Frame((0, 1), (0, 1), "#000000", 2, plot=1), Frame(None, (1, 1), "#000000", 2, "dot", plot=1)]
    drawn = plotly(chart_of(plots, Bars([0, 1], [1, 2], "#000000", plot=1), frames=frames))
    (bars,), (frame, line) = drawn.data, drawn.layout.shapes
    assert (bars.xaxis, bars.yaxis, list(bars.y)) == ("x2", "y2", [1, 2])
    assert (frame.type, frame.xref, frame.yref, frame.x0, frame.x1) == ("rect", "x2", "y2", 0, 1)
    assert (line.type, line.xref, line.yref, line.x0, line.x1, line.y0) == ("line", "x2 domain", "y2", 0, 1, 1)


def test_plotly_s_check_finds_nothing_and_changes_nothing() -> None:
    plots = [Plot(USUAL, USUAL, "title", across) for across in divide_width((1, 1), 0.1)]
    series = [Band([0, 1], [0, 1], [1, 2], "#000000", 0.3), Points([0.5], [1.0], 6, "#00ff00", plot=1)]
    for frames in ([Frame((0, 1), (0, 1), "#000000", 2, plot=1)], []):
        drawn = plotly(chart_of(plots, *series, frames=frames))
        checked = go.Figure(drawn.to_plotly_json())
        assert json.loads(checked.to_json()) == json.loads(drawn.to_json())


def test_what_is_changed_of_a_drawn_chart_is_checked() -> None:
    drawn = plotly(chart_of([Plot(USUAL, USUAL, "title", (0, 1))], Points([0.5], [1.0], 6, "#00ff00")))
    assert drawn.update_layout(title="Heads").layout.title.text == "Heads"
    for change in (drawn.update_layout, drawn.update_xaxes, drawn.update_traces):
        with pytest.raises(ValueError, match="nonsense"):
            change(nonsense=1)


def test_the_tokens_along_each_axis_reach_the_browser() -> None:
    tokens = Axis(tokens=[4, 7])
    plots = [Plot(tokens, Axis(), "", across) for across in divide_width((1, 1), 0.1)]
    assert plotly(chart_of(plots)).layout.meta == {"tokens": [4, 7], "axes": ["x", "x2"]}
    assert plotly(chart_of([Plot(Axis(), Axis())])).layout.meta is None


def test_a_band_is_filled_between_its_edges_without_a_line() -> None:
    band = Band([0, 1], np.array([1, 2]), np.array([3, 4]), "#102030", name="most of them", hover="")
    upper, lower = plotly(chart_of([Plot(Axis(), Axis())], band)).data
    assert (list(upper.y), list(lower.y), upper.line.width, lower.line.width) == ([3, 4], [1, 2], 0, 0)
    assert (lower.fill, lower.fillcolor, lower.name) == ("tonexty", "rgba(16,32,48,0.25)", "most of them")
    assert upper.showlegend is False


def test_a_hover_text_is_alone_in_its_box_unless_it_names_the_series() -> None:
    line = {"x": [0], "y": [1], "colour": "#000000"}
    given = ["%{y}", "%{y}<extra>name</extra>", "", None]
    drawn = plotly(chart_of([Plot(Axis(), Axis())], *(Line(**line, hover=hover) for hover in given))).data
    assert [one.hovertemplate for one in drawn] == ["%{y}<extra></extra>", "%{y}<extra>name</extra>", None, None]
    assert [one.hoverinfo for one in drawn] == [None, None, "skip", None]


def test_hidden_points_can_be_clicked() -> None:
    hidden = Points([0], [1], 28, is_hidden=True, texts=["5"], inks=["#000000"], labels=["L0H0"])
    (drawn,) = plotly(chart_of([Plot(Axis(), Axis())], hidden)).data
    assert (drawn.marker.opacity, drawn.mode, drawn.customdata) == (0, "markers+text", ("L0H0",))
