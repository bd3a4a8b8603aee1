"""Charts collected as plain values, compared with those that Plotly's own functions build part by part."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import pytest
from plotly.subplots import make_subplots

from mha_viz.figures.plots import Plots

GRIDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a row": (
        {"rows": 1, "columns": 3, "titles": ["a", "b", "c"], "across": 0.04},
        {"rows": 1, "cols": 3, "subplot_titles": ["a", "b", "c"], "horizontal_spacing": 0.04},
    ),
    "usual gaps": ({"rows": 2, "columns": 2}, {"rows": 2, "cols": 2}),
    "one axis below": (
        {"rows": 3, "columns": 1, "titles": ["a", "b", "c"], "down": 0.11, "shared_x": True},
        {"rows": 3, "cols": 1, "subplot_titles": ["a", "b", "c"], "vertical_spacing": 0.11, "shared_xaxes": True},
    ),
    "shares and empty places": (
        {"rows": 2, "columns": 3, "titles": list("abcd"), "widths": (1, 2, 2), "heights": (6, 1), "across": 0.03}
        | {"down": 0.14, "empty": {(2, 1), (2, 2)}},
        {"rows": 2, "cols": 3, "subplot_titles": list("abcd"), "column_widths": [1, 2, 2], "row_heights": [6, 1]}
        | {"horizontal_spacing": 0.03, "vertical_spacing": 0.14, "specs": [[{}, {}, {}], [None, None, {}]]},
    ),
}


@pytest.mark.parametrize("grid", GRIDS)
def test_plots_stand_where_plotly_would_put_them(grid: str) -> None:
    ours, plotlys = GRIDS[grid]
    plots = Plots(**ours)
    plots.notes(font={"size": 16})
    chart, other = plots.chart(), make_subplots(**plotlys)
    axes = [name for name in other.layout if name[1:5] == "axis"]
    assert [name for name in chart.layout if name[1:5] == "axis"] == axes
    for name in axes:
        placed, expected = (one.layout[name].to_plotly_json() for one in (chart, other))
        assert placed.pop("domain") == pytest.approx(expected.pop("domain"), abs=1e-12)
        assert placed == expected
    for note, expected in zip(chart.layout.annotations, other.layout.annotations, strict=True):
        assert (note.x, note.y) == pytest.approx((expected.x, expected.y), abs=1e-12)
        assert note.update(x=0, y=0) == expected.update(x=0, y=0)


def test_traces_frames_and_values_go_to_their_plot() -> None:
    plots = Plots(1, 2)
    plots.add({"type": "bar", "y": [1, 2]}, (1, 2))
    plots.frame((1, 2), x0=0, x1=1, y0=0, y1=1)
    plots.x(title={"text": "both"})
    plots.x((1, 2), title={"text": "right"}, visible=False)
    plots.x(title={"font": {"size": 13}})
    plots.layout(height=90)
    chart = plots.chart()
    assert chart.data == (go.Bar(y=[1, 2], xaxis="x2", yaxis="y2"),)
    assert chart.layout.shapes[0].to_plotly_json() == {
        **{"type": "rect", "xref": "x2", "yref": "y2"},
        **{"x0": 0, "x1": 1, "y0": 0, "y1": 1},
    }
    assert (chart.layout.xaxis.title.text, chart.layout.xaxis.visible) == ("both", None)
    assert (chart.layout.xaxis2.title.text, chart.layout.xaxis2.visible) == ("right", False)
    assert chart.layout.xaxis.title.font.size == chart.layout.xaxis2.title.font.size == 13
    assert chart.layout.height == 90


def test_what_plotly_does_not_know_is_refused() -> None:
    plots = Plots()
    plots.layout(hight=90)
    with pytest.raises(ValueError, match="hight"):
        plots.chart()
