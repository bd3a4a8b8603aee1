"""A chart of a page as a figure: the same files as for other figures, except for the interactive page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mha_viz.drawing.table import Table
from mha_viz.figure.figure import Figure
from mha_viz.figure.kinds import settings
from mha_viz.figures.chart import COLUMNS, Chart
from mha_viz.figures.chart_drawing import drawing
from mha_viz.figures.theme import THEMES, Theme


def chart(
    draw: Callable[[Theme], Chart], alt: str, caption: str, table: Callable[[], Table] | None = None, **options: Any
) -> Figure:
    """The figure of a chart, which ``draw`` makes in the colours of a theme. ``alt`` says in a few words what it
    shows, ``caption`` what it was measured on. Its numbers are those that it draws, unless a ``table`` contains them.

    Options: those of Size. Raises SettingError for others.
    """
    _, size, _ = settings(options)
    words = f"{alt.rstrip('.')}. {caption}".strip()
    return Figure(
        lambda size: drawing(draw(THEMES[size.look]), size, words, alt),
        None,
        table or (lambda: Table(COLUMNS, draw(THEMES[size.look]).rows, {"figure": alt, "caption": caption})),
        size,
    )
