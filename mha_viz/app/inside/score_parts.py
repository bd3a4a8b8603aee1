"""Explain why a query attends to a key: the parts of their score in a sentence, as bars, and in pairs."""

from __future__ import annotations

from functools import partial
from html import escape
from typing import Any
from urllib.parse import urlencode

import numpy as np
import streamlit as st

from mha_viz.app.inside.open_stage import OpenStage, draw_chart
from mha_viz.app.url import address
from mha_viz.app.widgets.parts import show_remark
from mha_viz.attention import Head
from mha_viz.attention.parts import HEADS, ScoreParts
from mha_viz.errors import ModelUnsupported
from mha_viz.figures.charts import score_parts as draw
from mha_viz.figures.drawing.table import Table
from mha_viz.figures.layout.caption import format_head
from mha_viz.numerals import decimal

MAX_REASONS = 3  # maximum pairs of parts in the sentence


def explain_score(o: OpenStage, container: Any) -> None:
    """Below the charts of scores, explain the score of the query with the key, unless the key is masked.

    While the pointer is on another drawn key, the page explains the score of that key instead. If this model's scores
    cannot be split into parts, show the reason.
    """
    if o.score_parts is None or o.trace.mask[o.query, o.key]:
        return
    try:
        keys = tuple(sorted({o.key, *(token for token in o.tokens if not o.trace.mask[o.query, token])}))
        parts_by_key = dict(zip(keys, o.score_parts(keys), strict=True))
    except ModelUnsupported as error:
        with container:
            show_remark(error.problem)
        return
    parts = parts_by_key[o.key]
    names = [
        format_head(Head.parse(name)) if group == HEADS else name
        for name, group in zip(parts.names, parts.groups, strict=True)
    ]
    with container:
        for write in (_write_sentence, _draw_bars):
            st.html(
                f'<div class="inside-each">{"".join(write(o, parts, names) for parts in parts_by_key.values())}</div>'
            )
    alt = "Parts of this score, by query and key"
    o.charts.append(o.make_chart("why", alt, lambda theme: draw.draw_sides(parts, names, theme)))
    with container, st.expander("Part by part"):
        alt = "What each pair of parts adds to the score"
        draw_pairs, table = partial(draw.draw_part_pairs, parts, names), partial(_make_table, parts, o.description)
        draw_chart(st.container(), o, "pairs", alt, draw_pairs, table)


def _make_table(parts: ScoreParts, description: str) -> Table:
    """Return a table with a row for each pair of parts."""
    table = parts.table()
    return Table(tuple(table.columns), tuple(table.itertuples(index=False, name=None)), {"caption": description})


def _write_sentence(o: OpenStage, parts: ScoreParts, names: list[str]) -> str:
    """Return a sentence with the pairs of parts that raise the score most, and the score.

    An earlier head in the sentence is a link.
    """
    above_mean = parts.above_mean
    order = np.argsort(-above_mean, axis=None, kind="stable")[:MAX_REASONS]
    pairs = [(int(row), int(column)) for row, column in zip(*np.unravel_index(order, above_mean.shape), strict=True)]
    query, key = (f"“<bdi>{escape(o.trace.text.tokens[token].drawn[:24])}</bdi>”" for token in (o.query, parts.key))
    reasons = [
        f"{_link_head(o, parts, a, names)}{f' of {query}' * is_first} meets {_link_head(o, parts, b, names)}"
        f"{f' of {key}' * is_first} (<b>+{decimal(above_mean[a, b])}</b>: {decimal(parts.values[a, b])}, mean "
        f"{decimal(parts.means[a, b])})"
        for is_first, (a, b) in zip((True, False, False), pairs, strict=False)
        if above_mean[a, b] > 0
    ]
    explanation = f"because {', '.join(reasons)}" if reasons else "although nothing raises this score"
    total = float(above_mean.sum())
    mean = decimal(parts.score - total)
    return (
        f'<p class="inside-why"{_write_visibility(o, parts)}><b>{query} → {key}</b> {explanation}. The score is '
        f"<b>{decimal(parts.score)}</b>, mean {mean} over the keys in sight: each list adds up to the difference, "
        f"<b>{decimal(total)}</b>.</p>"
    )


def _draw_bars(o: OpenStage, parts: ScoreParts, names: list[str]) -> str:
    """Return the chart ``draw.draw_sides`` as two HTML tables, because there is one for each key that is drawn."""
    tables = []
    for title, shown_parts in draw.iter_listed_parts(parts, names):
        values = [part.above_mean for part in shown_parts]
        low, length = min(0.0, *values), (max(0.0, *values) - min(0.0, *values)) or 1.0
        rows = "".join(
            f'<tr title="{decimal(part.value)}, mean {decimal(part.mean)}"><th>{escape(part.name)}</th>'
            f"<td>{decimal(value)}</td><td>{_draw_bar(o, value, low, length)}</td></tr>"
            for part, value in zip(shown_parts, values, strict=True)
        )
        tables.append(f"<table><caption>{title}</caption>{rows}</table>")
    return f'<div class="inside-sides"{_write_visibility(o, parts)}>{"".join(tables)}</div>'


def _draw_bar(o: OpenStage, value: float, low: float, length: float) -> str:
    """Return an HTML bar from 0 to a value, on an axis of length ``length`` that begins at ``low``."""
    sides = f"left: {100 * (min(value, 0) - low) / length:.1f}%; width: {100 * abs(value) / length:.1f}%"
    return f'<i style="{sides}; background: {draw.choose_bar_colour(value, o.theme)}"></i>'


def _write_visibility(o: OpenStage, parts: ScoreParts) -> str:
    """Return the HTML attributes that show an element only while the pointer is on its key.

    When the pointer is elsewhere, the element of the pinned key is shown.
    """
    return f' data-key="{parts.key}"{" data-pinned" if parts.key == o.key else " hidden"}'


def _link_head(o: OpenStage, parts: ScoreParts, number: int, names: list[str]) -> str:
    if parts.groups[number] != HEADS:
        return escape(names[number])
    parameters = {name: value for name, value in address.get_parameters().items() if name not in ("on", "pin")}
    link = escape(f"?{urlencode({**parameters, 'head': parts.names[number], 'q': o.query, 'k': parts.key})}")
    return f'<a href="{link}" target="_self">{escape(names[number])}</a>'
