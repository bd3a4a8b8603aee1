"""A chart for readers who sit far away: letters, points, margins and outer size larger, what it shows the same."""

from __future__ import annotations

from typing import Any

from mha_viz.figures.charts import go


def enlarged(chart: go.Figure, by: float) -> go.Figure:
    """A copy of ``chart`` with all that is measured in pixels ``by`` times as large; lines keep their width."""
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
