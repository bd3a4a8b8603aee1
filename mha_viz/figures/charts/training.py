"""Charts of a training run: losses and accuracies over steps, the similarity of heads, and their gradients.

Steps are recorded densely at first and sparsely later; curves space all recorded steps equally, so that the
effect of the first update is visible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from mha_viz.figures.charts import chart
from mha_viz.figures.charts.chart import (
    Axis,
    Band,
    Bars,
    Cells,
    Chart,
    Frame,
    Legend,
    Margin,
    Plot,
    Series,
    SeriesTexts,
)
from mha_viz.figures.drawing.theme import Theme, format_rgba
from mha_viz.figures.layout.player_data import RELATION_COLOURS, HeadMatrix
from mha_viz.numerals import decimal

MAX_LABELLED_HEADS = 8  # maximum number of heads whose cells have room for their numbers

Array = npt.NDArray[Any]


class TrainingCurve(NamedTuple):
    """One curve over the recorded steps. ``colour``: an index into ``Theme.heads``, None for a faint curve."""

    name: str
    values: Array
    colour: int | None = None
    is_bold: bool = False
    dash: Literal["solid", "dot", "dash"] = "solid"


# ---- Curves over steps ----------------------------------------------------------------------------------


def draw_curves(
    steps: Sequence[int],
    curves: Sequence[TrainingCurve],
    step_index: int,
    theme: Theme,
    bounds: tuple[float, float] | None = None,
    log: bool = False,
    digits: int = 3,
) -> Chart:
    """Draw curves over the recorded steps, and mark the step in view by its index, ``step_index``."""
    labelled_steps, faint_colour = _choose_labelled(steps), format_rgba(theme.muted)
    x = Axis(
        title="step", title_gap=4, positions=labelled_steps, names=[f"{steps[i]:,}" for i in labelled_steps],
        range=(-0.4, len(steps) - 0.6), grid=False, zero_colour="",
    )  # fmt: skip
    y = Axis(grid=True, zero_colour=faint_colour, **(_log_axis(curves) if log else {"range": bounds, "max_ticks": 6}))
    return Chart(
        theme,
        [_build_line(curve, steps, digits, theme) for curve in curves],
        [Plot(x, y)],
        height=250,
        margin=Margin(46, 8, 8, 34),
        frames=[Frame((step_index, step_index), None, theme.accent, 1, "dot")],
        font_size=12,
        legend=Legend(),
    )


def _build_line(curve: TrainingCurve, steps: Sequence[int], digits: int, theme: Theme) -> chart.Line:
    name = escape(curve.name)
    colour, opacity = (theme.muted, 0.55) if curve.colour is None else (theme.heads[curve.colour % len(theme.heads)], 1)
    texts: SeriesTexts = {"name": name, "in_legend": curve.colour is not None, "labels": list(steps)}
    texts["hover"] = f"{name}, step %{{customdata}}: %{{y:.{digits}f}}"
    width = 3 if curve.is_bold else 1.4
    return chart.Line(range(len(steps)), curve.values, colour, width, curve.dash, opacity=opacity, **texts)


def _log_axis(curves: Sequence[TrainingCurve]) -> dict[str, Any]:
    """Return the properties of a logarithmic axis: ticks at powers of ten, with 2 and 5 times these if they are few."""
    values = np.concatenate([curve.values for curve in curves])
    values = values[values > 0] if (values > 0).any() else np.ones(1)
    low, high = np.log10(values.min()), np.log10(values.max())
    exponents = range(int(np.floor(low)) - 1, int(np.ceil(high)) + 1)
    marks = [m * 10.0**e for e in exponents for m in ((1,) if high - low > 1.5 else (1, 2, 5))]
    edge = 0.05 * max(high - low, 0.2)
    names = [f"{m:.10f}".rstrip("0").rstrip(".") for m in marks]
    return {"is_log": True, "positions": marks, "names": names, "range": (low - edge, high + edge)}


def _choose_labelled(steps: Sequence[int]) -> list[int]:
    """Return the recorded steps that are labelled on the axis: the first two, the last, and some in between."""
    interval = max(1, round((len(steps) - 1) / 6))
    indices = {0, 1, *range(interval, len(steps) - interval // 2 - 1, interval), len(steps) - 1}
    return sorted(i for i in indices if i < len(steps))


# ---- Comparison of runs ---------------------------------------------------------------------------------


def draw_accuracies(
    names: Sequence[str], accuracies: Array, labels: Sequence[str], chance: float, theme: Theme, is_ordered: bool
) -> Chart:
    """Draw the ``accuracies``, [run, label], of all runs of a result.

    Accuracies are curves if the runs are ordered, otherwise bars. ``chance`` is the accuracy of a guess.
    """
    wrapped_names = [escape(name).replace(" ", "<br>", 1) for name in names]
    series = list[Series]()
    for index, label in enumerate(labels):
        values, colour = accuracies[:, index], theme.heads[RELATION_COLOURS[index]]
        texts: SeriesTexts = {"name": label, "hover": f"%{{x}}, {label}: %{{y:.1%}}"}
        curve_or_bars = (
            chart.Line(wrapped_names, values, colour, point=9, **texts)
            if is_ordered
            else Bars(wrapped_names, values, colour, **texts)
        )
        series.append(curve_or_bars)
    x = Axis(has_names=True, grid=False, angle=0)
    frames = [Frame(None, (chance, chance), theme.muted, 1, "dot")]
    return _share_chart(theme, series, x, 300, frames=frames, bar_gap=0.3)


def draw_removal_curves(least_first: Array, most_first: Array, random_orders: Array, theme: Theme) -> Chart:
    """Draw the accuracy while heads are removed in different orders.

    The least important head is removed first, or the most important first, or the order is random. Random orders,
    [order, number of removed heads], are drawn as a mean and a band that contains four fifths of them.
    """
    removed_counts = list(range(len(least_first)))
    low, high = np.quantile(random_orders, (0.1, 0.9), axis=0)
    series: list[Series] = [Band(removed_counts, low, high, theme.muted, name="80% of random orders", hover="")]
    for values, name, colour in (
        (random_orders.mean(axis=0), "at random", theme.muted),
        (most_first, "most important first", theme.heads[1]),
        (least_first, "least important first", theme.heads[0]),
    ):
        hover = f"{name}, %{{x}} removed: %{{y:.1%}}"
        series.append(chart.Line(removed_counts, values, colour, point=7, name=name, hover=hover))
    return _share_chart(
        theme, series, Axis(title="heads removed", title_gap=6, tick_step=1, grid=False, zero_colour=""), 320
    )


def draw_importance(values: Array, order: Array, theme: Theme) -> Chart:
    """Draw the importance of each head, in the order in which heads are removed."""
    colours, lengths = [theme.heads[h % len(theme.heads)] for h in order], [float(values[h]) for h in order]
    bars = Bars([f"H{h}" for h in order], lengths, colours, hover="%{x}: %{y:.3f}")
    x = Axis(has_names=True, title="removed, first to last", title_gap=6)
    plots, margin = [Plot(x, Axis(grid=True, zero_colour=""))], Margin(46, 8, 30, 40)
    return Chart(theme, [bars], plots, height=320, margin=margin, font_size=12, bar_gap=0.3)


# ---- One step ------------------------------------------------------------------------------------------


def draw_head_comparison(matrix: HeadMatrix, step_index: int, theme: Theme) -> Chart:
    """Draw a comparison of each pair of heads at the recorded step ``step_index``, in the colours of the player."""
    values = matrix.values[step_index].astype(np.float64)
    names = [f"H{head}" for head in range(len(values))]
    scale = theme.ramp[::-1] if matrix.colours == "share" else theme.signed
    texts = [[decimal(value) for value in row] for row in values] if len(names) <= MAX_LABELLED_HEADS else None
    axis = Axis(positions=list(range(len(names))), names=names, grid=False)
    side = 80 + max(260, 30 * len(names))
    return Chart(
        theme,
        [Cells(values, matrix.low, matrix.high, scale, texts, gap=1)],
        [Plot(replace(axis, is_above=True), replace(axis, is_reversed=True))],
        width=side,
        height=side,
        margin=Margin(40, 40, 40, 40),
        font_size=12,
    )


def draw_gradients(norms: Array, theme: Theme) -> Chart:
    """Draw the norm of the gradient that arrives at each head, ``norms`` [head]."""
    names, texts = [f"H{head}" for head in range(len(norms))], [f"{norm:.2g}" for norm in norms]
    colours = [theme.heads[head % len(theme.heads)] for head in range(len(norms))]
    bars = Bars(names, [float(norm) for norm in norms], colours, is_horizontal=True, texts=texts)
    plots = [Plot(Axis(from_zero=True, grid=True, title="norm", title_gap=4), Axis(is_reversed=True))]
    height, margin = 70 + 26 * len(norms), Margin(46, 60, 10, 40)
    return Chart(theme, [bars], plots, height=height, margin=margin, font_size=12, bar_gap=0.3)


# ---- Shared ---------------------------------------------------------------------------------------------


def _share_chart(theme: Theme, series: Sequence[Series], x: Axis, height: int, **properties: Any) -> Chart:
    y, margin = Axis(range=(0, 1.04), tick_format=".0%", grid=True, zero_colour=""), Margin(46, 8, 30, 40)
    return Chart(theme, series, [Plot(x, y)], height, margin, font_size=12, legend=Legend(), **properties)
