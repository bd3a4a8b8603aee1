"""Calculate the cost of an attention block of the visitor's sizes, next to the cost of the page's model."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import escape
from typing import NamedTuple

import streamlit as st

from mha_viz.analysis.costs import PAPER_SHAPE, Costs, compute_costs
from mha_viz.app.url import address
from mha_viz.app.widgets.download_panel import PageChart
from mha_viz.app.widgets.parts import escape_markdown, report_ignored, show_error
from mha_viz.app.widgets.url_controls import UrlChanges, bind_control
from mha_viz.attention import Attention
from mha_viz.attention.trace import Trace
from mha_viz.errors import SettingError
from mha_viz.figures.charts.text_table import draw_text_table
from mha_viz.figures.drawing.table import Table
from mha_viz.models.getting import catalog

PAPER_SETTINGS = (*PAPER_SHAPE, 64)  # d_model, h, n
MAX_NUMBER = 10**15 - 1  # a larger number fits neither a browser's number type nor a link


def show_costs(attention: Attention, d_model: int) -> list[PageChart]:
    """Show the calculator, and return its table as a chart.

    ``d_model`` is the width of the model on the page, 0 if unknown.
    """
    st.markdown("## What it costs")
    left, right = st.columns([4, 7], gap="large")
    with left:
        settings = _read_settings()
        _show_inputs(settings)
        try:
            cost = compute_costs(*settings)
        except SettingError as error:
            show_error(error)
            cost = None
        st.markdown(
            r"With $d_k = d_{\text{model}} / h$ parameters and multiply-adds do not depend on the number of heads "
            "([Vaswani et al. 2017, section 3.2.2](https://arxiv.org/abs/1706.03762)); the memory for the weights, "
            r"h · n · n, grows with it. Biases, as in BERT, add $4 \, d_{\text{model}}$ parameters to the paper’s "
            r"$4 \, d_{\text{model}}^2$."
        )
    columns = _compute_columns(cost, attention, d_model)
    if columns:
        with right:
            _show_table(columns)
    return [_make_chart(columns)] if columns else []


def matches_paper(trace: Trace) -> bool:
    """Return whether the layer has the form that the table assumes.

    Each head has its own keys and values, and d_k = d_model / h.
    """
    return trace.key_heads == trace.heads and trace.heads * trace.d_k == trace.d_model


def _read_settings() -> tuple[int, int, int]:
    """Return d_model, h and n from the URL, or else from the paper."""
    number = r"(-?\d{1,15})"
    value = address.get_parameters().get("costs", "")
    match = re.fullmatch(f"{number},{number},{number}", value, re.ASCII)
    if not match:
        report_ignored([f"costs={value[:20]}"] if value else [])
        return PAPER_SETTINGS
    d_model, heads, n = map(int, match.groups())
    return d_model, heads, n


def _show_inputs(settings: tuple[int, int, int]) -> None:
    labels = {"d_model": r"$d_{\text{model}}$", "h": "heads h", "n": "tokens n"}
    with st.container(horizontal=True):
        for (name, label), value in zip(labels.items(), settings, strict=True):
            bind_control(
                st.number_input, label, "costs", value, change=_encode_settings, key=f"costs_{name}", step=1, width=140
            )


def _encode_settings(_: int | None) -> UrlChanges:
    """Return the one URL parameter for the three fields."""
    inputs = [st.session_state[f"costs_{name}"] for name in ("d_model", "h", "n")]
    numbers = tuple(max(-MAX_NUMBER, min(MAX_NUMBER, int(number or 0))) for number in inputs)
    return {"costs": None if numbers == PAPER_SETTINGS else ",".join(map(str, numbers))}


class CostRow(NamedTuple):
    """A row of the table.

    Attributes:
        markdown_heading: its heading in Markdown.
        picture_heading: its heading in a picture.
        format_cost: formats the cost.
        is_bold: whether it is printed in bold.
    """

    markdown_heading: str
    picture_heading: str
    format_cost: Callable[[Costs], str]
    is_bold: bool = False


ROWS = (
    CostRow(
        r"$d_{\text{model}}$, h, n",
        "d<sub>model</sub>, h, n",
        lambda c: f"{c.d_model:,}, {c.heads:,}, {c.n:,}",
    ),
    CostRow(r"$d_k = d_{\text{model}} / h$", "d<sub>k</sub> = d<sub>model</sub> / h", lambda c: f"{c.d_k:,}", True),
    CostRow(
        "parameters: $W_Q$, $W_K$, $W_V$, $W_O$",
        "parameters: W<sub>Q</sub>, W<sub>K</sub>, W<sub>V</sub>, W<sub>O</sub>",
        lambda c: f"{c.parameters:,}",
        True,
    ),
    CostRow("parameters with biases", "parameters with biases", lambda c: f"{c.with_biases:,}"),
    CostRow(
        "multiply-adds: $x W_Q$, $x W_K$, $x W_V$, and $W_O$",
        "multiply-adds: x W<sub>Q</sub>, x W<sub>K</sub>, x W<sub>V</sub>, and W<sub>O</sub>",
        lambda c: f"{c.projections:,}",
    ),
    CostRow("multiply-adds: $q k^\\top$ and $A v$", "multiply-adds: q · k and A v", lambda c: f"{c.products:,}"),
    CostRow("multiply-adds in total", "multiply-adds in total", lambda c: f"{c.multiply_adds:,}", True),
    CostRow(
        "memory: parameters with biases", "memory: parameters with biases", lambda c: _format_bytes(c.parameter_bytes)
    ),
    CostRow(
        "memory: q, k, v, concatenation, output",
        "memory: q, k, v, concatenation, output",
        lambda c: _format_bytes(c.vector_bytes),
    ),
    CostRow("memory: weights, h · n · n", "memory: weights, h · n · n", lambda c: _format_bytes(c.weight_bytes), True),
)
# Fields of Costs, which are also the column names in files.
COST_FIELDS = (
    *("d_model", "heads", "n", "d_k", "parameters", "with_biases", "projections", "products", "multiply_adds"),
    *("parameter_bytes", "vector_bytes", "weight_bytes"),
)


def _compute_columns(cost: Costs | None, attention: Attention, d_model: int) -> dict[str, Costs]:
    """Return the costs of each column, by the column's heading."""
    columns = {"your numbers": cost} if cost else {}
    if cost and cost.heads > 1:
        columns["the same with one head"] = compute_costs(cost.d_model, 1, cost.n)
    if d_model and d_model % attention.heads == 0:
        label = next((m.label for m in catalog.list_offered() if m.name == attention.model), attention.model[-40:])
        columns[f"{label}, this text"] = compute_costs(d_model, attention.heads, len(attention.text))
    return columns


def _show_table(columns: Mapping[str, Costs]) -> None:
    header = ["one layer, float32", *map(escape_markdown, columns)]
    lines = [
        [
            row.markdown_heading,
            *(f"**{row.format_cost(cost)}**" if row.is_bold else row.format_cost(cost) for cost in columns.values()),
        ]
        for row in ROWS
    ]
    separator = ["---", *("---:" for _ in columns)]
    with st.container(key="wide_inside_costs"):
        st.markdown("\n".join(f"| {' | '.join(line)} |" for line in (header, separator, *lines)))


def _make_chart(columns: Mapping[str, Costs]) -> PageChart:
    """Return the table as a chart with a picture and numbers."""
    names = [escape(name) for name in columns]
    cells = [[row.format_cost(cost) for cost in columns.values()] for row in ROWS]
    description = "One layer of attention, float32 (Vaswani et al. 2017, section 3.2.2)."
    rows = tuple((name, *(getattr(cost, number) for number in COST_FIELDS)) for name, cost in columns.items())
    return PageChart(
        "What one layer of attention costs",
        "costs",
        lambda theme: draw_text_table([row.picture_heading for row in ROWS], names, cells, theme),
        description,
        lambda: Table(("of", *COST_FIELDS), rows, {"caption": description}),
    )


def _format_bytes(count: int) -> str:
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if round(1000 * count / size, 1) >= 1000:  # rounded, 999,960 bytes are 1.0 MB
            return f"{count / size:,.1f} {unit}"
    return f"{count} B"
