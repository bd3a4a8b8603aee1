"""Draw charts on pages with Plotly, which no other module imports.

Plotly and the libraries that it uses take pandas and pyarrow from ``sys.modules`` without importing them, so they may
find a module that another thread is still importing. Therefore this module first imports pandas, which imports pyarrow;
another thread that imports this module waits until both are complete.
"""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import Any

import pandas  # noqa: F401 (must be complete before Plotly is imported)
import plotly.graph_objects as go

from mha_viz.figures.charts.chart import Axis, Band, Bars, Cells, Chart, Frame, Line, Points, Series
from mha_viz.figures.drawing.theme import FONT, format_rgba

COLOUR_BARS: dict[str, dict[str, Any]] = {
    "right": {"thickness": 9, "outlinewidth": 0, "nticks": 5},
    "below": {"orientation": "h", "thickness": 10, "lenmode": "pixels", "len": 240, "outlinewidth": 0}
    | {"x": 0, "xanchor": "left", "y": 0, "yref": "container", "yanchor": "bottom"},
}
LEGEND_CLICKS: dict[str, dict[str, Any]] = {  # by which clicks on a name in the legend hide series
    "all": {},
    "double": {"itemclick": False},
    "none": {"itemclick": False, "itemdoubleclick": False},
}


def plotly(chart: Chart, factor: float = 1) -> go.Figure:
    """Convert a chart to a Plotly figure.

    All sizes in pixels except the widths of lines are multiplied by ``factor``, for readers who sit far away. The
    figure is built at once without Plotly's validation, which would take three times as long: tests/test_orders.py
    validates the charts of every page. Later changes are validated.
    """
    chart = replace(chart, width=chart.width and factor * chart.width, height=factor * chart.height)
    traces = [trace for series in chart.series for trace in _build_traces(series)]
    properties = {"data": traces, "layout": _build_layout(chart)}
    figure = go.Figure(properties if factor == 1 else _enlarge(properties, factor), _validate=False)
    for part in (figure, figure.layout, *figure.data):
        part._validate = True  # for later changes
    return figure


def _enlarge(value: Any, factor: float, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _enlarge(item, factor, "side" if name == "margin" else key) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_enlarge(item, factor, name) for item in value]
    return factor * value if name in ("size", "standoff", "side") and isinstance(value, int | float) else value


def _drop_empty(**values: Any) -> dict[str, Any]:
    """Return the properties that have a value. Plotly accepts no ranges, and tuples only if it validates them."""
    return {
        name: list(value) if isinstance(value, range | tuple) else value
        for name, value in values.items()
        if value is not None and not (isinstance(value, dict) and not value)
    }


# ---- Series ---------------------------------------------------------------------------------------------------


def _build_traces(series: Series) -> list[dict[str, Any]]:
    if isinstance(series, Band):
        edge = Line(series.x, series.high, series.colour, 0, hover="", in_legend=False, plot=series.plot)
        low = replace(edge, y=series.low, name=series.name, in_legend=None)
        fill = {"fill": "tonexty", "fillcolor": format_rgba(series.colour, series.opacity)}
        return [*_build_traces(edge), *({**trace, **fill} for trace in _build_traces(low))]
    suffix = _axis_suffix(series.plot)
    hover = series.hover if series.hover is None or "<extra>" in series.hover else f"{series.hover}<extra></extra>"
    common = _drop_empty(
        name=series.name or None, showlegend=series.in_legend, customdata=series.labels, hovertext=series.hints,
        hovertemplate=hover if series.hover else None, hoverinfo="skip" if series.hover == "" else None,
        xaxis=f"x{suffix}", yaxis=f"y{suffix}",
    )  # fmt: skip
    return [_build_trace(series) | common]


@singledispatch
def _build_trace(series: Series) -> dict[str, Any]:
    """Return the properties of a series that other kinds of series do not have."""
    raise TypeError(f"{type(series).__name__} is not a series of a chart")


@_build_trace.register
def _(cells: Cells) -> dict[str, Any]:
    colour_bar = COLOUR_BARS.get(cells.scale_at, {}) | _drop_empty(
        title={"text": cells.unit, "side": "right"} if cells.unit else None
    )
    last_stop = len(cells.scale) - 1
    return _drop_empty(
        type="heatmap", z=cells.values, zmin=cells.low, zmax=cells.high,
        colorscale=[[stop / last_stop, colour] for stop, colour in enumerate(cells.scale)],
        text=cells.texts, texttemplate="%{text}" if cells.texts is not None else None,
        xgap=cells.gap or None, ygap=cells.gap or None, showscale=bool(cells.scale_at), colorbar=colour_bar,
    )  # fmt: skip


@_build_trace.register
def _(bars: Bars) -> dict[str, Any]:
    texts = {"text": bars.texts, "textposition": "outside", "cliponaxis": False} if bars.texts is not None else {}
    if bars.text_colour:  # the texts of narrow bars keep their size
        texts |= {"constraintext": "none", "textfont": {"size": 11, "color": bars.text_colour}}
    return texts | _drop_empty(
        type="bar", x=bars.coordinates("x"), y=bars.coordinates("y"), orientation="h" if bars.is_horizontal else None,
        marker={"color": bars.colours, "opacity": bars.opacity, "line": {"width": 0}}, legendgroup=bars.group or None,
        unselected={"marker": {"opacity": bars.opacity}},  # a click opens something; the other bars must not fade
    )  # fmt: skip


@_build_trace.register
def _(points: Points) -> dict[str, Any]:
    ring, shape = (
        _drop_empty(width=points.ring, color=points.ring_colour or None),
        "square" if points.is_square else None,
    )
    opacity = 0 if points.is_hidden else 1
    marker = _drop_empty(symbol=shape, size=points.size, color=points.colour or None, opacity=opacity, line=ring)
    properties = {"type": "scatter", "x": points.x, "y": points.y, "mode": "markers", "marker": marker}
    if points.texts is None:
        return properties | {"unselected": {"marker": {"opacity": opacity}}}
    font = {"size": points.font_size, "color": points.inks}
    return properties | {"mode": "markers+text", "text": points.texts, "textfont": font}


@_build_trace.register
def _(line: Line) -> dict[str, Any]:
    style = {"color": format_rgba(line.colour, line.opacity), "width": line.width, "dash": line.dash}
    return _drop_empty(
        type="scatter", x=line.x, y=line.y, mode="lines+markers" if line.point else "lines", line=style,
        marker={"size": line.point, "color": line.colour} if line.point else None,
    )  # fmt: skip


# ---- Axes, titles and legend ----------------------------------------------------------------------------------


def _build_layout(chart: Chart) -> dict[str, Any]:
    theme, transparent = chart.theme, "rgba(0,0,0,0)"
    font = {"color": theme.ink, "size": 13, "family": FONT}
    hover = {"align": "left", "bgcolor": theme.paper, "bordercolor": theme.muted, "font": font}
    has_bars = any(isinstance(series, Bars) for series in chart.series)
    axes = [axis for number in range(len(chart.plots)) for axis in _build_axes(chart, number)]
    left, right, top, bottom = chart.margin
    return _drop_empty(
        width=chart.width, height=chart.height, margin={"l": left, "r": right, "t": top, "b": bottom},
        paper_bgcolor=transparent, plot_bgcolor=transparent, font=font | {"size": chart.font_size}, hoverlabel=hover,
        **dict(axes), bargap=chart.bar_gap if has_bars else None,
        title={"text": chart.title, "font": {"size": 13}, "x": 0, "y": 0.97} if chart.title else None,
        shapes=[_build_shape(frame) for frame in chart.frames] or None,
        annotations=[*_build_titles(chart), *_build_remarks(chart)] or None,
        showlegend=None if chart.legend else False, legend=_build_legend(chart), meta=_collect_tokens(chart),
    )  # fmt: skip


def _build_axes(chart: Chart, number: int) -> list[tuple[str, dict[str, Any]]]:
    """Return the two axes of a plot under Plotly's names."""
    plot, suffix = chart.plots[number], _axis_suffix(number)
    x, y = (_build_axis(axis, chart) for axis in plot[:2])
    if plot.x.same_x_as is not None:
        x |= {"matches": f"x{plot.x.same_x_as + 1}"}
    x |= {"anchor": f"y{suffix}", "domain": list(plot.x_span)}
    y |= {
        "anchor": f"x{suffix}",
        "domain": list(plot.y_span),
        **({"scaleanchor": f"x{suffix}"} if plot.y.has_equal_units else {}),
    }
    return [(f"xaxis{suffix}", x), (f"yaxis{suffix}", y)]


def _axis_suffix(number: int) -> str:
    """Return the end of Plotly's names for the axes of a plot: "" for the first plot, "2" for the second."""
    return str(number + 1) if number else ""


def _build_axis(axis: Axis, chart: Chart) -> dict[str, Any]:
    muted = chart.theme.muted
    title = _drop_empty(text=axis.title or None, standoff=axis.title_gap, font=_drop_empty(size=chart.title_font_size))
    labels = _drop_empty(size=chart.label_font_size, color=muted if chart.has_faint_labels else None)
    return _drop_empty(
        title=title, tickvals=axis.positions, ticktext=axis.names, tickfont=labels, tickformat=axis.tick_format,
        tickangle=axis.angle, range=axis.range, autorange="reversed" if axis.is_reversed else None,
        nticks=axis.max_ticks, dtick=axis.tick_step,
        rangemode="tozero" if axis.from_zero else None, side="top" if axis.is_above else None,
        type="log" if axis.is_log else "category" if axis.has_names else None,
        showgrid=axis.grid, gridcolor=format_rgba(muted) if axis.grid else None,
        zeroline=False if axis.zero_colour == "" else None, zerolinecolor=axis.zero_colour or None,
        visible=None if axis.is_shown else False, showticklabels=None if axis.has_labels else False,
        fixedrange=axis.is_fixed or None, constraintoward=axis.anchor_side or None,
        constrain=None if axis.anchor_side is None else "domain",
        automargin=bool(axis.tokens) or None,  # labels are vertical on a phone and need more room
    )  # fmt: skip


def _build_shape(frame: Frame) -> dict[str, Any]:
    suffix = _axis_suffix(frame.plot)
    (x0, x1), (y0, y1) = frame.x or (0, 1), frame.y or (0, 1)
    return _drop_empty(
        type="line" if x0 == x1 or y0 == y1 else "rect", x0=x0, x1=x1, y0=y0, y1=y1,
        xref=f"x{suffix}" if frame.x else f"x{suffix} domain", yref=f"y{suffix}" if frame.y else f"y{suffix} domain",
        line={"color": frame.colour, "width": frame.width, "dash": frame.dash},
        fillcolor=frame.fill or None, opacity=frame.opacity,
    )  # fmt: skip


def _build_titles(chart: Chart) -> list[dict[str, Any]]:
    """Return the titles of plots, above them."""
    font = _drop_empty(size=chart.title_font_size)
    common = {"xref": "paper", "yref": "paper", "yanchor": "bottom", "showarrow": False, **_drop_empty(font=font)}
    side = "left" if chart.titles_left else "center"
    return [
        {
            "text": plot.title,
            "x": 0 if chart.titles_left else sum(plot.x_span) / 2,
            "y": plot.y_span[1],
            "xanchor": side,
            **common,
        }
        for plot in chart.plots
        if plot.title
    ]


def _build_remarks(chart: Chart) -> list[dict[str, Any]]:
    common = {"y": 1, "xref": "x", "yref": "paper", "showarrow": False}
    return [
        {"text": r.text, "x": r.x, "xanchor": r.anchor, "yanchor": "top" if r.is_inside else "bottom", **common}
        | _drop_empty(font=_drop_empty(size=r.font_size or chart.title_font_size, color=r.colour))
        for r in chart.remarks
    ]


def _build_legend(chart: Chart) -> dict[str, Any]:
    if chart.legend is None:
        return {}
    is_below, legend_y, clicks = chart.legend
    position = {"y": 0, "yref": "container"} if is_below else {"y": legend_y}
    return {"orientation": "h", "x": 0, "yanchor": "bottom", **position, **LEGEND_CLICKS[clicks]}


def _collect_tokens(chart: Chart) -> dict[str, Any] | None:
    """Return the tokens along the axes, for the browser."""
    by_axis = {
        f"{direction}{_axis_suffix(number)}": axis.tokens
        for number, plot in enumerate(chart.plots)
        for direction, axis in (("x", plot.x), ("y", plot.y))
        if axis.tokens is not None
    }
    return (
        {"tokens": [int(token) for token in next(iter(by_axis.values()))], "axes": list(by_axis)} if by_axis else None
    )
