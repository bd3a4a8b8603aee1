"""A chart for readers who sit far away: larger letters, points, margins and outer size, with the same content."""

from __future__ import annotations

from typing import Any

from mha_viz.figures.charts import go


def enlarged(chart: go.Figure, by: float) -> go.Figure:
    """A copy of ``chart`` in which everything measured in pixels is ``by`` times as large, except line widths."""
    drawn = _with_larger_sizes(chart.to_dict(), by)
    layout = drawn["layout"]
    for name in ("width", "height"):
        if layout.get(name):
            layout[name] *= by
    if "margin" in layout:
        layout["margin"] = {side: by * pixels for side, pixels in layout["margin"].items()}
    return go.Figure(drawn)


def _with_larger_sizes(value: Any, by: float, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _with_larger_sizes(one, by, key) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_with_larger_sizes(one, by, name) for one in value]
    return by * value if name in ("size", "standoff") and isinstance(value, int | float) else value
