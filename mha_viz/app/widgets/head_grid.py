"""Charts with one square per head.

On a phone, squares shrink down to the smallest size that a finger can hit. Wider charts scroll, and the numbers of
layers stay visible.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import streamlit as st

from mha_viz.app.widgets.classroom import draw_legible
from mha_viz.app.widgets.components import apply_style
from mha_viz.figures.charts.plotly_settings import CLICK_CONFIG

TAP_PIXELS = 24  # minimum size of a square, as WCAG 2.2 requires (2.5.8)


def show_head_grid(
    chart: Any,
    name: str,
    alt: str,
    on_select: Callable[[], None] | Literal["ignore"] = "ignore",
    key: str = "",
) -> None:
    """Draw a chart of layers × heads in a container with the key ``wide_`` + ``name``.

    ``key``: the chart's own key, by default ``name``.
    """
    chart = draw_legible(chart)
    layout, margin, axis = chart.layout, chart.layout.margin, chart.layout.yaxis
    sizes = {
        "narrowest": margin.l + margin.r + TAP_PIXELS * len(layout.xaxis.tickvals),
        "widest": layout.width,
        "before": margin.l,
        "above": margin.t,
        "row": (layout.height - margin.t - margin.b) / len(axis.ticktext),
        "letters": axis.tickfont.size,
    }
    values = {f"var(--{variable})": f"{length}px" for variable, length in sizes.items()}
    apply_style("head_grid", {"#chart": f".st-key-wide_{name}", "var(--ink)": axis.tickfont.color, **values})
    with st.container(key=f"wide_{name}", gap=None):
        # The names of the layers in a column that does not scroll; the chart's own labels scroll with its squares.
        st.html(f'<div class="mha-layers" aria-hidden="true">{"<br>".join(axis.ticktext)}</div>')
        st.plotly_chart(
            chart,
            key=key or name,
            on_select=on_select,
            selection_mode="points",
            theme=None,
            config={**CLICK_CONFIG, "displayModeBar": False},  # the bar would cover the names of heads
            alt=alt,
        )
