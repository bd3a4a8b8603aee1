"""A chart as a value: its series, axes and colours.

``chart_plotly`` draws it on a page and ``chart_drawing`` in a file. Texts may contain the HTML that :func:`split_lines`
parses. Lengths are pixels of the page.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Any, Literal, NamedTuple, TypedDict

import numpy as np

from mha_viz.figures.drawing import fonts
from mha_viz.figures.drawing.marks import Anchor, FontWeight, Text
from mha_viz.figures.drawing.table import Value
from mha_viz.figures.drawing.theme import Theme

TextAnchor = Literal["top", "middle", "bottom"]  # Plotly's names for the part of a text at its position
TAGS = re.compile(r"(</?b>|</?i>|</?sub>)")
BREAK = re.compile(r"<br ?/?>")
INDEX_SIZE = 0.7  # the size of indices, as a share of the size of type
LEADING = 1.25  # the distance of lines, as a share of the size of type
ANCHOR_SHARES = {"start": 0.0, "middle": 0.5, "end": 1.0}  # the share of a line that is before its anchor
BLOCK_SHARES = {"top": 0.0, "middle": 0.5, "bottom": 1.0}  # the share of a block that is above its position


class TextRun(NamedTuple):
    """A run of characters with one style, within a line."""

    text: str
    weight: FontWeight
    is_index: bool


def split_lines(html: str) -> list[list[TextRun]]:
    """Split a text into lines, and each line into runs. Unknown tags remain as text."""
    return [list(_iter_runs(line)) for line in BREAK.split(html)]


def _iter_runs(line: str) -> Iterator[TextRun]:
    weight: FontWeight = 400
    is_index = False
    for part in TAGS.split(line):
        if TAGS.fullmatch(part):
            is_opening = not part.startswith("</")
            if "sub" in part:
                is_index = is_opening
            elif "b" in part:
                weight = 600 if is_opening else 400
        elif part:
            yield TextRun(unescape(part), weight, is_index)


def strip_markup(html: str) -> str:
    """Return a text without markup, on one line."""
    return " ".join("".join(run.text for run in line) for line in split_lines(html))


def width(html: str, size: float) -> float:
    """Return the width of the widest line, in the unit of ``size``."""
    return max((sum(_measure_run(run, size) for run in line) for line in split_lines(html)), default=0.0)


def _measure_run(run: TextRun, size: float) -> float:
    return fonts.width(run.text, size * (INDEX_SIZE if run.is_index else 1), run.weight)


def iter_text_marks(
    html: str,
    x: float,
    y: float,
    size: float,
    colour: str,
    anchor: Anchor = "start",
    block: TextAnchor = "middle",
    turn: float = 0,
) -> Iterator[Text]:
    """Yield the marks of a text at (x, y).

    ``anchor`` is the part of its lines at that point, ``block`` the part of its height; ``turn`` rotates it, in degrees
    anticlockwise.
    """
    rows = split_lines(html)
    first_y = (0.5 - BLOCK_SHARES[block] * len(rows)) * LEADING * size
    cosine, sine = math.cos(math.radians(turn)), -math.sin(math.radians(turn))
    for number, row in enumerate(rows):
        x_offset = -ANCHOR_SHARES[anchor] * sum(_measure_run(run, size) for run in row)
        for run in row:
            y_offset = first_y + number * LEADING * size + (0.25 * size if run.is_index else 0)
            position = (x + x_offset * cosine - y_offset * sine, y + x_offset * sine + y_offset * cosine)
            yield Text(
                *position,
                run.text,
                size * (INDEX_SIZE if run.is_index else 1),
                colour,
                run.weight,
                turn=turn,
            )
            x_offset += _measure_run(run, size)


Direction = Literal["x", "y"]
COLUMNS = ("part", "series", "x", "y", "value")  # the columns of the table of a chart's numbers


# ---- Series ---------------------------------------------------------------------------------------------------


class SeriesTexts(TypedDict, total=False):
    """The text properties that all series have."""

    name: str
    in_legend: bool | None
    labels: Any
    hints: Any
    hover: str | None


@dataclass(frozen=True, eq=False, kw_only=True)
class Series:
    """The common properties of all series.

    ``name``: in the legend. ``in_legend``: if None, it appears there if at least two series have names.
    ``labels``: a label for each mark; hover texts contain it as ``%{customdata}``, clicks send it, and the table of
    numbers uses it as the name of the mark. ``hints``: text of each mark for hover texts, ``%{hovertext}``. ``hover``:
    the hover text in Plotly's notation; "" for none, None for Plotly's own. ``plot``: the number of its plot in the
    chart.
    """

    name: str = ""
    in_legend: bool | None = None
    labels: Any = None
    hints: Any = None
    hover: str | None = None
    plot: int = 0

    def coordinates(self, direction: Direction) -> Sequence[Any]:
        """Return the coordinates of the marks on an axis, as numbers or names."""
        values: Sequence[Any] = getattr(self, direction)
        return values

    def has_extent(self, direction: Direction) -> bool:
        """Return whether the marks extend half a unit to both sides along an axis, as cells and the feet of bars do."""
        return False

    def iter_numbers(self) -> Iterator[tuple[Any, Any]]:
        """Yield the position of each mark and its number."""
        directions: tuple[Direction, Direction] = ("y", "x") if self.has_extent("y") else ("x", "y")
        yield from zip(*map(self.coordinates, directions), strict=True)


@dataclass(frozen=True, eq=False)
class Cells(Series):
    """Coloured cells at 0, 1, 2, ….

    ``values`` [row, column] have the colours of ``scale`` from ``low`` to ``high``; a cell with NaN is empty. ``texts``
    [row, column] are written in the cells, ``gap`` pixels separate them. ``scale_at``: the position of the colour
    scale, "" for none; ``unit`` is its label.
    """

    values: Any
    low: float
    high: float
    scale: Sequence[str]
    texts: Sequence[Sequence[str]] | None = None
    gap: int = 0
    scale_at: Literal["", "right", "below"] = ""
    unit: str = ""

    def coordinates(self, direction: Direction) -> Sequence[Any]:
        return range(np.shape(self.values)["yx".index(direction)])

    def has_extent(self, direction: Direction) -> bool:
        return True


@dataclass(frozen=True, eq=False)
class Bars(Series):
    """Bars from 0 to ``lengths`` at ``positions``, which are numbers or names.

    ``colours``: a single colour, or one per bar. ``is_horizontal``: whether the bars are horizontal. ``texts`` are
    written at their ends, in small type if they have a ``text_colour``. A click on a name in the legend hides all
    series of the same ``group``.
    """

    positions: Sequence[Any]
    lengths: Any
    colours: str | Sequence[str]
    is_horizontal: bool = False
    texts: Sequence[str] | None = None
    text_colour: str = ""
    opacity: float = 1
    group: str = ""

    def coordinates(self, direction: Direction) -> Sequence[Any]:
        values: Sequence[Any] = self.positions if self.is_horizontal is (direction == "y") else self.lengths
        return values

    def has_extent(self, direction: Direction) -> bool:
        return self.is_horizontal is (direction == "y")


@dataclass(frozen=True, eq=False)
class Points(Series):
    """Circles or squares of ``size`` pixels, in one colour, with rings of the widths ``ring``.

    ``texts`` are at the same positions, in the colours ``inks``. Hidden points show only their texts and can be
    clicked.
    """

    x: Any
    y: Any
    size: float
    colour: str = ""
    ring: float | Sequence[float] = 0
    ring_colour: str = ""
    is_square: bool = False
    is_hidden: bool = False
    texts: Sequence[str] | None = None
    font_size: int = 12
    inks: str | Sequence[str] = ""


@dataclass(frozen=True, eq=False)
class Line(Series):
    """A line through points, with a mark of ``point`` pixels at each; None or NaN interrupts it."""

    x: Any
    y: Any
    colour: str
    width: float = 2
    dash: Literal["solid", "dot", "dash"] = "solid"
    point: float = 0
    opacity: float = 1


@dataclass(frozen=True, eq=False)
class Band(Series):
    """The area between two lines, ``low`` and ``high``."""

    x: Any
    low: Any
    high: Any
    colour: str
    opacity: float = 0.25

    def coordinates(self, direction: Direction) -> Sequence[Any]:
        return [*self.x, *self.x] if direction == "x" else [*self.high, *self.low]


class Frame(NamedTuple):
    """A rectangle between two values along each axis, or a line if the two are equal; None spans the whole axis."""

    x: tuple[float, float] | None
    y: tuple[float, float] | None
    colour: str
    width: float
    dash: Literal["solid", "dot", "dash"] = "solid"
    fill: str = ""
    opacity: float = 1
    plot: int = 0


class Remark(NamedTuple):
    """A text at ``x`` and the upper edge of the first plot: above the edge, or below it if ``is_inside``."""

    text: str
    x: float
    colour: str
    anchor: Literal["left", "center", "right"] = "center"
    is_inside: bool = False
    font_size: int | None = None


# ---- Axes and layout ------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One axis of a plot; None leaves the choice to the module that draws it.

    Attributes:
        title_gap: pixels from the labels to the title.
        positions, names: positions with a label, and their labels.
        range: its ends.
        has_names: positions are names even if they look like numbers.
        max_ticks, tick_step, tick_format: the maximum number of labels, the step between them, and their format.
        grid: whether there are lines at the labels.
        zero_colour: the colour of the line at 0, "" for none.
        is_above: whether a horizontal axis is above the plot.
        is_shown, has_labels: whether the axis, or its labels, are shown.
        is_fixed: visitors cannot zoom in.
        has_equal_units: whether a unit of this vertical axis is as long as a unit of the horizontal axis.
        anchor_side: the side at which an axis stays if ``has_equal_units`` makes it shorter.
        same_x_as: the number of the plot whose horizontal axis it repeats, without labels.
        tokens: the token at each position, so that the browser can mark a token in all charts.
    """

    title: str = ""
    title_gap: int | None = None
    positions: Sequence[Any] | None = None
    names: Sequence[str] | None = None
    range: tuple[float, float] | None = None
    is_reversed: bool = False
    is_log: bool = False
    from_zero: bool = False
    has_names: bool = False
    max_ticks: int | None = None
    tick_step: float | None = None
    tick_format: str | None = None
    grid: bool | None = None
    zero_colour: str | None = None
    is_above: bool = False
    angle: float | None = None
    is_shown: bool = True
    has_labels: bool = True
    is_fixed: bool = True
    has_equal_units: bool = False
    anchor_side: str | None = None
    same_x_as: int | None = None
    tokens: Sequence[int] | None = None

    def map_labels(self) -> dict[Any, str]:
        """Return the labels by position; empty unless positions and labels are set."""
        if self.positions is None or self.names is None:
            return {}
        return {position: strip_markup(name) for position, name in zip(self.positions, self.names, strict=True)}


class Plot(NamedTuple):
    """The two axes of one plot in a chart.

    ``x_span`` and ``y_span``: the start and end of the plot, as shares of the chart's area from its lower left corner.
    """

    x: Axis
    y: Axis
    title: str = ""
    x_span: tuple[float, float] = (0, 1)
    y_span: tuple[float, float] = (0, 1)


class Legend(NamedTuple):
    """The names of the series, above or below the plots.

    ``y``: the position of a legend above the plots, in heights of the chart's area from its lower edge. ``clicks``:
    which clicks on a name hide series.
    """

    is_below: bool = False
    y: float = 1.0
    clicks: Literal["all", "double", "none"] = "all"


class Margin(NamedTuple):
    """The pixels around the area of the plots."""

    left: float
    right: float
    top: float
    bottom: float


@dataclass(frozen=True, eq=False)
class Chart:
    """Series between the axes of ``plots``.

    Attributes:
        width: None for the width of the page.
        font_size, label_font_size, title_font_size: for all texts, for labels of axes, and for titles and remarks.
        has_faint_labels: whether labels along axes are faint.
        bar_gap: the gap between bars, as a share of the distance of their centres.
        titles_left: whether the titles of plots are at the left instead of in the middle.
    """

    theme: Theme
    series: Sequence[Series]
    plots: Sequence[Plot]
    height: float
    margin: Margin
    width: float | None = None
    frames: Sequence[Frame] = ()
    remarks: Sequence[Remark] = ()
    title: str = ""
    font_size: int = 13
    label_font_size: int | None = None
    title_font_size: int | None = None
    has_faint_labels: bool = False
    legend: Legend | None = None
    bar_gap: float = 0.2
    titles_left: bool = False

    @property
    def rows(self) -> tuple[tuple[Value, ...], ...]:
        """The table of all drawn numbers, with the columns ``COLUMNS``.

        "part" is the title of its plot, "x" the label of the mark or of its position, and "y" the row of a cell.
        Frames and hidden points have no numbers.
        """
        return tuple(row for series in self.series for row in self._rows(series))

    def _rows(self, series: Series) -> Iterator[tuple[Value, ...]]:
        plot = self.plots[series.plot]
        part = strip_markup(plot.title) if len(self.plots) > 1 else ""
        if isinstance(series, Cells):
            column_labels, row_labels = plot.x.map_labels(), plot.y.map_labels()
            for (row, column), value in np.ndenumerate(np.array(series.values, float)):
                if not np.isnan(value):
                    yield part, "", column_labels.get(column, column), row_labels.get(row, row), float(value)
            return
        if isinstance(series, Points) and series.is_hidden:
            return
        labels = (plot.y if series.has_extent("y") else plot.x).map_labels()
        for number, (position, value) in enumerate(series.iter_numbers()):
            if value is not None and not (isinstance(value, float | np.floating) and np.isnan(value)):
                name = (
                    labels.get(position, position)
                    if series.labels is None
                    else series.labels[number % len(series.labels)]
                )
                yield part, strip_markup(series.name), _to_plain(name), None, _to_plain(value)


def _to_plain(value: Any) -> Value:
    """Return a number or a text as a plain Python object."""
    if isinstance(value, str):
        return strip_markup(value)
    plain_value: Value = value.item() if hasattr(value, "item") else value
    return plain_value


def divide_width(shares: Sequence[float], gap: float) -> list[tuple[float, float]]:
    """Divide the width among plots side by side: return the start and end of each plot, as shares of the whole width.

    ``shares``: shares of the room between the gaps.
    """
    room = 1 - gap * (len(shares) - 1)
    ends = [sum(shares[: n + 1]) / sum(shares) * room + n * gap for n in range(len(shares))]
    return [(end - share / sum(shares) * room, end) for share, end in zip(shares, ends, strict=True)]


def divide_height(count: int, gap: float) -> list[tuple[float, float]]:
    """Divide the height among plots of equal height, from the top down. Return as :func:`divide_width`."""
    return divide_width([1.0] * count, gap)[::-1]
