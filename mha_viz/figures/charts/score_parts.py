"""Charts of the parts of a score: parts of the query, parts of the key, and pairs of both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mha_viz.attention.parts import ScoreParts
from mha_viz.figures.charts.chart import Axis, Chart, Plot, divide_width
from mha_viz.figures.charts.inside import build_chart, horizontal_bars, signed_cells
from mha_viz.figures.drawing.theme import Theme
from mha_viz.numerals import decimal

MAX_BARS = 7  # maximum number of parts with a bar
MAX_PAIRED_PARTS = 12  # maximum number of parts with a row or a column
MAX_NUMBERED_PAIRS = 10  # maximum number of pairs with a written number


def draw_sides(parts: ScoreParts, names: Sequence[str], theme: Theme) -> Chart:
    """Draw the contribution of each part of the query, and of the key, to the score.

    The score is compared with its mean over the keys that the query sees. The MAX_BARS most important parts have their
    own bar; all others share one. ``names`` are the names of the parts on a page.
    """
    series, plots = [], []
    for number, (title, listed_parts) in enumerate(iter_listed_parts(parts, names)):
        labels, values = [part.name for part in listed_parts], [part.above_mean for part in listed_parts]
        colours = [choose_bar_colour(value, theme) for value in values]
        series.append(horizontal_bars(np.array(values), colours, [decimal(v) for v in values], digits=3, plot=number))
        ends, limit = (len(labels) - 0.5, -0.5), 1.4 * max(1e-6, *map(abs, values))
        y = Axis(positions=list(range(len(labels))), names=labels, grid=False, range=ends)
        low = -limit if min(values) < 0 else 0
        x = Axis(is_shown=False, range=(low, limit if max(values) > 0 else 0))
        plots.append(Plot(x, y, title, divide_width((1, 1), 0.28)[number]))
    return build_chart(theme, series, plots, 90 + 22 * (MAX_BARS + 1), top=34, left=120)


def choose_bar_colour(value: float, theme: Theme) -> str:
    """Return the colour of a bar: orange above zero and blue below."""
    return theme.signed[5] if value > 0 else theme.signed[1]


class ListedPart(NamedTuple):
    """A part of one side, or all further parts combined.

    ``value``: its contribution to the score; ``mean``: the mean contribution over the keys that the query sees.
    """

    name: str
    value: float
    mean: float

    @property
    def above_mean(self) -> float:
        """The contribution minus its mean."""
        return self.value - self.mean


def iter_listed_parts(parts: ScoreParts, names: Sequence[str]) -> Iterator[tuple[str, list[ListedPart]]]:
    """Yield, for the query and the key, a title and the MAX_BARS parts that count most.

    All further parts are combined into one.
    """
    for side, axis in (("query", 1), ("key", 0)):
        values, means = parts.values.sum(axis), parts.means.sum(axis)
        order = np.argsort(-abs(values - means), kind="stable")
        top, tail = order[:MAX_BARS], order[MAX_BARS:]
        largest = [ListedPart(names[i], float(values[i]), float(means[i])) for i in top]
        combined = ListedPart(f"{len(tail)} more", float(values[tail].sum()), float(means[tail].sum()))
        yield f"by the {side}", [*largest, *([combined] if len(tail) else [])]


def draw_part_pairs(parts: ScoreParts, names: Sequence[str], theme: Theme) -> Chart:
    """Draw the pairs of the parts that count most, above their means.

    There is a row for each part of the query and a column for each part of the key. The numbers of the
    MAX_NUMBERED_PAIRS largest pairs are shown.
    """
    above_mean = parts.above_mean
    rows, columns = (_choose_largest(abs(above_mean).max(axis=axis)) for axis in (1, 0))
    values = above_mean[np.ix_(rows, columns)].astype(np.float32)
    threshold = np.sort(abs(values), axis=None)[-min(MAX_NUMBERED_PAIRS, values.size)]
    texts = [[decimal(value, 1) if abs(value) >= threshold else "" for value in row] for row in values]
    labels = np.array([[f"{names[a]} × {names[b]}: {_compare_with_mean(parts, a, b)}" for b in columns] for a in rows])
    hover = "%{customdata}"
    cells = signed_cells(
        values, float(abs(values).max()) or 1.0, theme, with_scale=True, texts=texts, labels=labels, hover=hover, gap=1
    )
    x, y = (
        Axis(positions=list(range(len(side))), names=[names[i] for i in side], grid=False) for side in (columns, rows)
    )
    plot = Plot(replace(x, title="key", is_above=True, angle=-60), replace(y, title="query", is_reversed=True))
    return build_chart(theme, [cells], [plot], 150 + 26 * len(rows), top=120, left=160)


def _compare_with_mean(parts: ScoreParts, a: int, b: int) -> str:
    """Format the contribution of a pair minus its mean, followed by both numbers."""
    difference, value, mean = (decimal(float(table[a, b])) for table in (parts.above_mean, parts.values, parts.means))
    return f"{difference} ({value}, mean {mean})"


def _choose_largest(sizes: np.ndarray) -> list[int]:
    """Return up to MAX_PAIRED_PARTS parts with the largest sizes, in the order of the parts."""
    return sorted(int(i) for i in np.argsort(-sizes, kind="stable")[:MAX_PAIRED_PARTS] if sizes[i] > 0)
