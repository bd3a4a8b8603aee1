"""A chart of one or more plots in a grid, collected as plain values.

Checking a complete chart takes Plotly a tenth of the time of adding traces, axes and shapes to an existing one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from mha_viz.figures.charts import go

Place = tuple[int, int]  # row and column, from 1, from the top left
FIRST: Place = (1, 1)


class Plots:
    """``widths`` and ``heights`` are shares of the room that the gaps leave, ``across`` and ``down`` the gaps as shares
    of the chart; ``titles`` are above the plots, row by row; places in ``empty`` have no plot. With ``shared_x``, the
    plots of a column share one horizontal axis, below the last of them."""

    def __init__(
        self,
        rows: int = 1,
        columns: int = 1,
        titles: Sequence[str] = (),
        *,
        widths: Sequence[float] = (),
        heights: Sequence[float] = (),
        across: float | None = None,
        down: float | None = None,
        empty: Collection[Place] = (),
        shared_x: bool = False,
    ) -> None:
        self._traces: list[dict[str, Any]] = []
        self._layout: dict[str, Any] = {"annotations": [], "shapes": []}
        self._numbers: dict[Place, str] = {}
        lefts = _spans(widths or [1.0] * columns, 0.2 / columns if across is None else across)
        from_below = _spans(list(heights or [1.0] * rows)[::-1], 0.3 / rows if down is None else down)
        for row in range(1, rows + 1):
            for column in range(1, columns + 1):
                if (row, column) not in empty:
                    self._begin((row, column), lefts[column - 1], from_below[-row])
        for place, title in zip(self._numbers, titles, strict=False):
            self._entitle(place, title)
        if shared_x:
            self._share(rows)

    def _begin(self, place: Place, across: list[float], up: list[float]) -> None:
        number = str(len(self._numbers) + 1) if self._numbers else ""
        self._numbers[place] = number
        self._layout[f"xaxis{number}"] = {"anchor": f"y{number}", "domain": across}
        self._layout[f"yaxis{number}"] = {"anchor": f"x{number}", "domain": up}

    def _entitle(self, place: Place, title: str) -> None:
        left, right = self._axis("x", place)["domain"]
        above = {"y": self._axis("y", place)["domain"][1], "yanchor": "bottom", "yref": "paper"}
        self.note(text=title, x=(left + right) / 2, xanchor="center", xref="paper", **above)

    def _share(self, rows: int) -> None:
        for row, column in self._numbers:
            if row < rows:
                last = f"x{self._numbers[rows, column]}"
                self.x((row, column), matches=last, showticklabels=False)

    def _axis(self, letter: str, place: Place) -> dict[str, Any]:
        axis: dict[str, Any] = self._layout[f"{letter}axis{self._numbers[place]}"]
        return axis

    def add(self, trace: dict[str, Any], place: Place = FIRST) -> None:
        """Add a trace to the plot at ``place``."""
        number = self._numbers[place]
        self._traces.append({**trace, "xaxis": f"x{number}", "yaxis": f"y{number}"})

    def x(self, place: Place | None = None, **values: Any) -> None:
        """Set properties of the horizontal axis of one plot, or of all, replacing earlier values."""
        for one in (place,) if place else self._numbers:
            _merge(self._axis("x", one), values)

    def y(self, place: Place | None = None, **values: Any) -> None:
        """Set properties of the vertical axis of one plot, or of all, replacing earlier values."""
        for one in (place,) if place else self._numbers:
            _merge(self._axis("y", one), values)

    def frame(self, place: Place = FIRST, **values: Any) -> None:
        """Add a rectangle to the plot at ``place``, or a line if ``type`` says so."""
        number = self._numbers[place]
        self._layout["shapes"].append({"type": "rect", "xref": f"x{number}", "yref": f"y{number}", **values})

    def note(self, **values: Any) -> None:
        """Add text beside what is drawn."""
        self._layout["annotations"].append({"showarrow": False, **values})

    def notes(self, **values: Any) -> None:
        """Set properties of all notes and titles so far."""
        for note in self._layout["annotations"]:
            _merge(note, values)

    def layout(self, **values: Any) -> None:
        """Set properties of the chart as a whole."""
        self._layout.update(values)

    def chart(self) -> go.Figure:
        """The chart, checked. Raises ValueError for properties that Plotly does not know."""
        return go.Figure(self._traces, self._layout)


def _merge(before: dict[str, Any], values: dict[str, Any]) -> None:
    """Merge nested values: setting one part, such as the size of a font, leaves the other parts as they were."""
    for name, value in values.items():
        both = isinstance(value, dict) and isinstance(before.get(name), dict)
        before[name] = {**before[name], **value} if both else value


def _spans(shares: Sequence[float], gap: float) -> list[list[float]]:
    """Begin and end of each, as shares of the whole."""
    room = 1 - gap * (len(shares) - 1)
    ends = [sum(shares[: n + 1]) / sum(shares) * room + n * gap for n in range(len(shares))]
    return [[end - share / sum(shares) * room, end] for share, end in zip(shares, ends, strict=True)]
