"""Tables of scores: a description, the head, and a bar with a tick for each baseline; all numbers on request."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import partial
from html import escape
from typing import Any, NamedTuple
from urllib.parse import urlencode

import streamlit as st

from mha_viz.app.url import address
from mha_viz.app.widgets.components import apply_style
from mha_viz.app.widgets.parts import report_errors
from mha_viz.app.widgets.url_controls import go
from mha_viz.attention import Head
from mha_viz.figures.layout.caption import format_head
from mha_viz.numerals import percent


class ScoreRow(NamedTuple):
    """A row of scores.

    Attributes:
        subject: what is scored, in words.
        head: the head, or another text for the second column.
        score: the score, NaN if it was not measured.
        baselines: the score of each baseline, in the order of their names.
    """

    subject: str
    head: Head | str
    score: float
    baselines: tuple[float, ...]


def draw_rows(
    heading: str,
    baselines: Iterable[str],
    rows: Iterable[ScoreRow | str],
    second_heading: str = "Best head",
    bar_owner: str = "the best head",
) -> None:
    """Draw a table with one line per row. Heads link to their cards; a string is a heading for the rows after it.

    ``second_heading``: the heading of the second column; ``bar_owner``: whose score the bars show.
    """
    names = tuple(baselines)
    parameters = {
        name: value for name, value in address.get_parameters().items() if name not in ("head", "on", "pin", "link")
    }
    key = "".join(
        f'<span class="mha-key"><s class="k{number}"></s></span>{escape(name)}'
        for number, name in enumerate(names, start=1)
    )
    body = "".join(_write_line(row, names, parameters) for row in rows)
    apply_style("score_rows")
    st.html(
        f'<table class="mha-rows"><caption>Bar: {escape(bar_owner)}. Ticks: {key}</caption>'
        f"<thead><tr><th>{escape(heading)}</th><th>{escape(second_heading)}</th><th>Right</th></tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )


def show_all_numbers(name: str, table: Any, columns: Mapping[str, Any], head_column: str = "best head") -> None:
    """Show a data frame. The checkbox before a row opens the card of the head in ``head_column``."""
    heads = [cell.split()[0] for cell in table[head_column]]
    st.dataframe(
        table, hide_index=True, width="stretch", column_config=columns, key=f"rows_{name}", selection_mode="single-row",
        on_select=partial(_on_row, f"rows_{name}", heads),
    )  # fmt: skip


@report_errors()
def _on_row(key: str, heads: list[str]) -> None:
    """Open the head of a row, also when its checkbox is cleared, because another head or none may be open."""
    last_key = f"{key}_last"
    match st.session_state[key]["selection"]["rows"] or st.session_state.get(last_key):
        case [int(row)] if 0 <= row < len(heads):
            st.session_state[last_key] = [row]
            go(head=heads[row], on=None, pin=None, link=None)


def _write_line(row: ScoreRow | str, names: tuple[str, ...], parameters: Mapping[str, str]) -> str:
    if isinstance(row, str):
        return f'</tbody><tbody><tr><th colspan="3" scope="rowgroup">{escape(row)}</th></tr>'
    scores = [
        (number, name, value)
        for number, (name, value) in enumerate(zip(names, row.baselines, strict=True), start=1)
        if not math.isnan(value)
    ]
    ticks = "".join(f'<s class="k{number}" style="left:{100 * value:.1f}%"></s>' for number, _, value in scores)
    score, score_text = (0.0, "–") if math.isnan(row.score) else (row.score, percent(row.score))
    score_list = ", ".join(f"{name} {percent(value)}" for _, name, value in scores)
    return (
        f"<tr><td>{escape(row.subject)}</td><td>{_write_second_cell(row.head, parameters)}</td>"
        f'<td><div class="mha-score"><div class="mha-bar" title="{escape(score_list)}">'
        f'<i style="width:{100 * score:.1f}%"></i>{ticks}<span>{escape(score_list)}</span></div>'
        f"<b>{score_text}</b></div></td></tr>"
    )


def _write_second_cell(head: Head | str, parameters: Mapping[str, str]) -> str:
    if isinstance(head, str):
        return escape(head)
    link = escape(f"?{urlencode({**parameters, 'head': str(head)})}")
    return f'<a href="{link}" target="_self">{format_head(head)}</a>'
