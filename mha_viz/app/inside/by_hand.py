"""The query and the key above every stage, and the softmax of one row computed number by number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import streamlit as st

from mha_viz.app.widgets.parts import escape_markdown
from mha_viz.attention.trace import Trace
from mha_viz.figures.drawing.table import Table
from mha_viz.figures.drawing.theme import Theme
from mha_viz.numerals import decimal, percent

# If a score is larger, subtract the largest score first, as is usual: e to the power of 30 has 14 digits.
LARGEST_UNSHIFTED_SCORE = 30.0


class SoftmaxRow(NamedTuple):
    """The steps of the softmax for one query, each [key].

    Attributes:
        products: q · k.
        scores: the products after scaling.
        shift: the number subtracted from all scores, so that the powers neither overflow nor all vanish; often 0.
        powers: e to the power of score minus ``shift``; 0 at masked positions.
        shares: the weights, which sum to 1.
    """

    products: npt.NDArray[np.float64]
    scores: npt.NDArray[np.float64]
    shift: float
    powers: npt.NDArray[np.float64]
    shares: npt.NDArray[np.float64]


def compute_softmax_row(trace: Trace, head: int, query: int, is_divided: bool) -> SoftmaxRow:
    """Compute the softmax of a row step by step. If not ``is_divided``, omit the division by √d_k."""
    products = trace.scores[head, query].astype(np.float64)
    scores = products * trace.scaling if is_divided else products
    is_visible = ~trace.mask[query]
    max_score = float(scores[is_visible].max())
    shift = max_score if abs(max_score) > LARGEST_UNSHIFTED_SCORE else 0.0
    powers = np.where(is_visible, np.exp(np.where(is_visible, scores, shift) - shift), 0)
    return SoftmaxRow(products, scores, shift, powers, powers / powers.sum())


def format_softmax_table(trace: Trace, head: int, query: int, key: int, tokens: Sequence[int], is_divided: bool) -> str:
    """Return the row as a Markdown table: the given ``tokens``, all other tokens together, and the sum."""
    row = compute_softmax_row(trace, head, query, is_divided)
    scaling_label = r"÷ $\sqrt{d_k}$" if trace.has_standard_scaling else f"× {trace.scaling:.3g}"
    sign = "-" if row.shift > 0 else "+"
    power_label = "$e^{s " + f"{sign} {abs(row.shift):.1f}" + "}$" if row.shift else "$e^s$"
    columns = ["to", "q · k", *([f"s: {scaling_label}"] if is_divided else []), f"power {power_label}", "share"]
    lines = [columns, ["---", *["---:"] * (len(columns) - 1)]]
    for token in tokens:
        name = escape_markdown(trace.text.tokens[token].drawn[:24])
        cells = [f"{name}", decimal(row.products[token]), decimal(row.scores[token])]
        if trace.mask[query, token]:
            cells[1:] = ["masked", "−∞"]
        values = [*(cells if is_divided else cells[:2]), _format_power(row.powers[token]), percent(row.shares[token])]
        lines.append([f"**{cell}**" for cell in values] if token == key else values)
    middle_cells = [""] * (len(columns) - 3)
    other_tokens = sorted(set(range(trace.n)) - set(tokens))
    if other_tokens:
        lines.append(
            [
                f"{len(other_tokens)} more",
                *middle_cells,
                _format_power(row.powers[other_tokens].sum()),
                percent(row.shares[other_tokens].sum()),
            ]
        )
    lines.append(
        ["**sum**", *middle_cells, f"**{_format_power(row.powers.sum())}**", f"**{percent(row.shares.sum())}**"]
    )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def make_row_table(trace: Trace, head: int, query: int, is_divided: bool, description: Mapping[str, str]) -> Table:
    """Return the numbers of the row unrounded, for every token. Masked positions have no score."""
    row = compute_softmax_row(trace, head, query, is_divided)
    columns = ("key_index", "key_token", "q_k", "score", "lowered_by", "power", "share")
    rows = []
    for index, token in enumerate(trace.text.tokens):
        score = None if trace.mask[query, index] else float(row.scores[index])
        softmax_cells = (row.shift, float(row.powers[index]), float(row.shares[index]))
        rows.append((index, token.drawn, float(row.products[index]), score, *softmax_cells))
    return Table(columns, tuple(rows), dict(description))


def _format_power(value: float) -> str:
    return decimal(value, 3) if value < 1000 else f"{value:,.0f}"


def show_marked_text(trace: Trace, head: int, query: int, key: int, tokens: Sequence[int], theme: Theme) -> None:
    """Show the text above the picture, with the query and the key marked."""
    marks = {query: ("query", theme.heads[1]), key: ("key", theme.heads[0])}
    if query == key:
        marks = {query: ("query and key", theme.heads[1])}
    words = "".join(_mark_word(token, trace.text.tokens[token].drawn[:24], marks.get(token)) for token in tokens)
    weight = percent(float(trace.weights[head, query, key]))
    ends = [escape(trace.text.tokens[token].drawn[:24]) for token in (query, key)]
    st.html(
        f'<p class="inside-pinned" aria-label="The pinned words">{words}'
        f"<span>“{ends[0]}” → “{ends[1]}”: {weight}</span></p>"
    )


def _mark_word(token: int, text: str, mark: tuple[str, str] | None) -> str:
    if mark is None:
        return f'<bdi data-token="{token}">{escape(text)}</bdi> '
    name, colour = mark
    return f'<b data-token="{token}" style="border-color: {colour}"><bdi>{escape(text)}</bdi><small>{name}</small></b> '
