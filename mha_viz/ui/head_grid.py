"""Charts with one square per head. On a phone, squares shrink to the smallest size that a finger can hit; wider charts
scroll, with the layer numbers always visible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import streamlit as st

from mha_viz.figures.head_map import CONFIG
from mha_viz.ui.classroom import legible

TAP = 24  # pixels of the smallest square, as WCAG 2.2 asks (2.5.8)


def head_grid(
    chart: Any,
    name: str,
    alt: str,
    on_select: Callable[[], None] | Literal["ignore"] = "ignore",
    key: str = "",
) -> None:
    """Draw a chart of layers × heads in a container whose key is ``wide_`` followed by ``name``. ``key``: the chart's
    key, if it is not ``name``."""
    chart = legible(chart)
    layout = chart.layout
    around, heads = layout.margin.l + layout.margin.r, len(layout.xaxis.tickvals)
    box = f".st-key-wide_{name}"
    width = f"min-width: {around + TAP * heads}px; max-width: {layout.width}px;"
    whole = f"{box} .textpoint text {{ fill-opacity: 1 !important; }}"  # Plotly pales what a click does not select
    st.html(f"<style>{box} .stElementContainer:has(.stPlotlyChart) {{ {width} }} {whole}</style>")
    with st.container(key=f"wide_{name}", gap=None):
        st.html(_layers(layout))
        st.plotly_chart(
            chart,
            key=key or name,
            on_select=on_select,
            selection_mode="points",
            theme=None,
            config={**CONFIG, "displayModeBar": False},  # it would cover the names of heads
            alt=alt,
        )


def _layers(layout: Any) -> str:
    """The names of the layers as HTML, in a column that does not scroll; the chart's own labels scroll with its
    squares."""
    names = layout.yaxis.ticktext
    row = (layout.height - layout.margin.t - layout.margin.b) / len(names)
    font = layout.yaxis.tickfont
    style = (
        f"width: {layout.margin.l}px; padding-top: {layout.margin.t}px; font-size: {font.size}px; "
        f"line-height: {row}px; color: {font.color};"
    )
    return f'<div class="mha-layers" aria-hidden="true" style="{style}">{"<br>".join(names)}</div>'
