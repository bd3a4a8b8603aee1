"""Charts of every step inside a head, with the numbers of one text (Plotly).

One code throughout: orange is above zero and blue below; the one-hue ramp is for shares and sizes; the colours of heads
are those of Explore.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mha_viz import numerals
from mha_viz.analysis.distance import entropy
from mha_viz.attention.trace import Array, Trace, split
from mha_viz.figures.charts import go, make_subplots
from mha_viz.figures.inside_parts import (
    along,
    bars_rightward,
    colour_bar,
    colour_limit,
    finished,
    head_axis,
    head_colour,
    head_line,
    pooled,
    signed_bars,
    signed_cells,
    sized_cells,
    token_axis,
    token_name,
)
from mha_viz.figures.theme import Theme, colorscale, grid_colour

DRAWN = 32  # tokens that a chart has room for
NAMES = ("W<sub>Q</sub>", "W<sub>K</sub>", "W<sub>V</sub>")
UNDIVIDED = "q · k as it is"


def in_view(trace: Trace, head: int, query: int, key: int) -> list[int]:
    """The tokens that charts show, in the order of the text: all, or query, key and those with the largest weights."""
    if trace.n <= DRAWN:
        return list(range(trace.n))
    row = trace.weights[head, query].copy()
    row[[query, key]] = 2
    return sorted(int(token) for token in np.argsort(-row, kind="stable")[:DRAWN])


def from_the_start(trace: Trace, query: int, key: int) -> list[int]:
    """The first tokens of the text, with query and key: the same for every head."""
    return sorted({*range(min(trace.n, DRAWN)), query, key})


# ---- x and the matrices -----------------------------------------------------------------------------------


def vectors(trace: Trace, tokens: Sequence[int], query: int, key: int, theme: Theme) -> go.Figure:
    """x: one row per token, as every head gets it."""
    return _rows(trace, trace.x, f"the {trace.d_model} numbers of a token’s x", tokens, (query, key), theme)


def entered(trace: Trace, tokens: Sequence[int], query: int, key: int, theme: Theme) -> go.Figure:
    """What enters a layer that normalises it: one row per token. Raises ValueError for layers that do not."""
    if trace.entered is None:
        raise ValueError("what enters this layer is x")
    title = f"the {trace.d_model} numbers of a token, before the norm"
    return _rows(trace, trace.entered, title, tokens, (query, key), theme)


def _rows(
    trace: Trace, numbers: Array, title: str, tokens: Sequence[int], marked: Sequence[int], theme: Theme
) -> go.Figure:
    shown = numbers[list(tokens)]
    figure = go.Figure(signed_cells(shown, colour_limit(shown), theme, bar=True))
    figure.update_traces(hovertemplate="number %{x}: %{z:.3f}<extra></extra>")
    figure.update_xaxes(title_text=title, side="bottom")
    figure.update_yaxes(**token_axis(trace, tokens, marked), autorange="reversed")
    along(figure, tokens, "y")
    return finished(figure, theme, 90 + 20 * len(tokens), left=95)


def stacked(trace: Trace, head: int, theme: Theme) -> go.Figure:
    """W_Q, W_K and W_V whole: the columns of one head are framed. A cell is the size (RMS) of a block of numbers."""
    p = trace.parameters
    matrices = dict(zip(NAMES, (p.w_q, p.w_k, p.w_v), strict=True))
    names = [f"{name}  {trace.d_model} × {matrix.shape[1]}" for name, matrix in matrices.items()]
    figure = make_subplots(1, 3, subplot_titles=names, horizontal_spacing=0.04)
    for column, matrix in enumerate(matrices.values(), 1):
        heads = matrix.shape[1] // trace.d_k
        at = head * heads // trace.heads  # heads that share a key share its columns
        cells, per_head = pooled(matrix, heads)
        figure.add_trace(sized_cells(cells, theme), 1, column)
        figure.update_xaxes(**head_axis(heads, per_head, trace.heads // heads), row=1, col=column)
        figure.update_yaxes(visible=False, autorange="reversed", row=1, col=column)
        frame = {"x0": at * per_head - 0.5, "x1": (at + 1) * per_head - 0.5, "y0": -0.5, "y1": len(cells) - 0.5}
        figure.add_shape(type="rect", **frame, line=head_line(theme, head), row=1, col=column)
    return finished(figure, theme, 300, top=34)


def slices(trace: Trace, head: int, theme: Theme) -> go.Figure:
    """The three matrices of one head, number by number: [d_model, d_k] each."""
    p = trace.parameters
    counts = [matrix.shape[1] // trace.d_k for matrix in (p.w_q, p.w_k, p.w_v)]
    parts = [
        split(matrix, count)[head * count // trace.heads]
        for matrix, count in zip((p.w_q, p.w_k, p.w_v), counts, strict=True)
    ]
    names = [f"{name} of head {head}  {trace.d_model} × {trace.d_k}" for name in NAMES]
    figure = make_subplots(1, 3, subplot_titles=names, horizontal_spacing=0.04)
    limit = max(colour_limit(matrix) for matrix in parts)
    for column, matrix in enumerate(parts, 1):
        figure.add_trace(signed_cells(matrix, limit, theme, bar=column == 3), 1, column)
        figure.update_yaxes(visible=False, autorange="reversed", row=1, col=column)
        figure.update_xaxes(visible=False, row=1, col=column)
    figure.update_traces(hovertemplate="row %{y}, column %{x}: %{z:.4f}<extra></extra>")
    return finished(figure, theme, 340, top=34)


# ---- q · k ------------------------------------------------------------------------------------------------


def products(trace: Trace, head: int, query: int, key: int, theme: Theme) -> go.Figure:
    """q of one token, k of another, and the d_k products whose sum is their score."""
    q, k = trace.q[head, query], trace.k[head, key]
    rows = {
        f"q of {token_name(trace, query)}": q,
        f"k of {token_name(trace, key)}": k,
        f"q<sub>i</sub> · k<sub>i</sub>, which sum to <b>{numerals.decimal(trace.scores[head, query, key])}</b>": q * k,
    }
    figure = make_subplots(3, 1, subplot_titles=list(rows), shared_xaxes=True, vertical_spacing=0.11)
    for row, numbers in enumerate(rows.values(), 1):
        figure.add_trace(signed_bars(numbers, theme), row, 1)
    figure.update_xaxes(title_text=f"i, from 0 to {trace.d_k - 1}", row=3, col=1)
    figure.update_yaxes(gridcolor=grid_colour(theme), zerolinecolor=theme.muted, nticks=4)
    figure.update_annotations(x=0, xanchor="left")  # in view on a phone, where the chart scrolls
    return finished(figure, theme, 470, top=34, left=45)


def both_softmaxes(
    trace: Trace, head: int, query: int, tokens: Sequence[int], key: int, theme: Theme, divided: bool = True
) -> go.Figure:
    """The scores of one query with and without the scaling, and the weights that softmax makes of each.

    The one that is not asked for (``divided``) is faint.
    """
    at, hidden = list(tokens), trace.mask[query, list(tokens)]
    scores = np.where(hidden, np.nan, trace.scores[head, query, at])
    whole = trace.weights[head, query], trace.undivided(head)[query]
    series = {
        _scaling(trace): (scores * np.float32(trace.scaling), whole[0], theme.heads[0]),
        UNDIVIDED: (scores, whole[1], theme.heads[1]),
    }
    figure = make_subplots(2, 1, subplot_titles=["Scores", "Softmax of the scores"], vertical_spacing=0.17)
    for name, (score, weights, colour) in series.items():
        marker = {"color": colour, "opacity": 1 if divided is (name != UNDIVIDED) else 0.35}
        label = f"{name}: entropy {entropy(weights):.2f} nats"
        hover = "%{customdata}: %{y:.3f}<extra>" + name + "</extra>"
        named = [token_name(trace, token) for token in tokens]
        common = {"x": list(range(len(at))), "marker": marker, "customdata": named, "hovertemplate": hover}
        figure.add_bar(**common, y=score, name=label, legendgroup=name, row=1, col=1)
        figure.add_bar(**common, y=weights[at], name=label, legendgroup=name, showlegend=False, row=2, col=1)
    figure.update_xaxes(**token_axis(trace, tokens, (query, key)))
    figure.update_yaxes(gridcolor=grid_colour(theme), zerolinecolor=theme.muted, nticks=5)
    figure.update_yaxes(range=[0, 1], row=2, col=1)
    figure.update_layout(barmode="group", bargap=0.25, bargroupgap=0)
    along(figure, tokens, "x", "x2")
    figure.update_annotations(x=0, xanchor="left")  # in view on a phone, where the chart scrolls
    return finished(figure, theme, 560, top=66, left=45, legend=True)


# ---- Maps of tokens by tokens -----------------------------------------------------------------------------


def mask(trace: Trace, tokens: Sequence[int], query: int, key: int, theme: Theme) -> go.Figure:
    """Which keys each query may look at: masked cells are grey."""
    figure = square(trace, trace.mask.astype(np.float32), tokens, query, key, theme)
    hover = "%{customdata}: %{text}<extra></extra>"
    words = np.where(trace.mask[np.ix_(list(tokens), list(tokens))], "masked", "open")
    figure.update_traces(
        colorscale=colorscale((theme.ramp[1], theme.muted)),
        showscale=False,
        text=words,
        hovertemplate=hover,
        xgap=1,
        ygap=1,
    )
    return figure


def square(trace: Trace, matrix: Array, tokens: Sequence[int], query: int, key: int, theme: Theme) -> go.Figure:
    """A matrix of queries by keys, 0 to 1; the row of the query and the cell of the pair are framed."""
    at = list(tokens)
    shown = matrix[np.ix_(at, at)]
    names = [token_name(trace, t) for t in at]
    figure = go.Figure(
        go.Heatmap(
            z=shown,
            zmin=0,
            zmax=1,
            colorscale=colorscale(theme.ramp),
            customdata=np.array([[f"{a} to {b}" for b in names] for a in names]),
            hovertemplate="%{customdata}: %{z:.3f}<extra></extra>",
            colorbar=colour_bar(),
        )
    )
    row, column = at.index(query), at.index(key)
    line = {"color": theme.heads[1], "width": 2}
    figure.add_shape(type="rect", x0=-0.5, x1=len(at) - 0.5, y0=row - 0.5, y1=row + 0.5, line={**line, "width": 1})
    figure.add_shape(
        type="rect", x0=column - 0.5, x1=column + 0.5, y0=row - 0.5, y1=row + 0.5, line={**line, "width": 3}
    )
    axis = token_axis(trace, tokens, (query, key))
    figure.update_xaxes(**axis, side="top", tickangle=-60, constrain="domain", title_text="key")
    figure.update_yaxes(**axis, autorange="reversed", scaleanchor="x", constrain="domain", title_text="query")
    side = max(150, 26 * len(at))
    figure.update_layout(width=side + 190)  # cells are squares
    along(figure, tokens, "x", "y")
    return finished(figure, theme, side + 130, top=110, left=110)


# ---- The values, and their way out ------------------------------------------------------------------------


def values(
    trace: Trace, head: int, query: int, tokens: Sequence[int], theme: Theme, key: int | None = None
) -> go.Figure:
    """The weights of one query, the values of all tokens, each value times its weight, and their sum. The names of the
    query and the ``key`` are bold."""
    at = list(tokens)
    weights, v = trace.weights[head, query, at], trace.v[head, at]
    names = ["weight", f"v  {len(at)} × {trace.d_k}", "weight × v", "their sum: the head’s output"]
    specs: list[list[Any]] = [[{}, {}, {}], [None, None, {}]]
    figure = make_subplots(
        2,
        3,
        specs=specs,
        column_widths=[0.16, 0.42, 0.42],
        row_heights=[0.86, 0.14],
        horizontal_spacing=0.03,
        vertical_spacing=0.14,
        subplot_titles=names,
    )
    labels = [f"{w:.2f}" if w >= 0.005 else "" for w in weights]
    figure.add_trace(bars_rightward(weights, theme.heads[0], labels, digits=4), 1, 1)
    context = trace.context[head, query][None]
    marked = (query,) if key is None else (query, key)
    figure.add_trace(signed_cells(v, colour_limit(v), theme), 1, 2)
    figure.add_trace(signed_cells(weights[:, None] * v, colour_limit(context), theme), 1, 3)
    figure.add_trace(signed_cells(context, colour_limit(context), theme), 2, 3)
    figure.update_xaxes(visible=False)
    figure.update_xaxes(range=[0, max(0.2, float(weights.max()) * 1.5)], row=1, col=1)
    figure.update_yaxes(visible=False)
    for column in (1, 2, 3):
        figure.update_yaxes(range=[len(at) - 0.5, -0.5], row=1, col=column)
    figure.update_yaxes(**token_axis(trace, tokens, marked), visible=True, row=1, col=1)
    along(figure, tokens, "y", "y2", "y3")
    return finished(figure, theme, 190 + 19 * len(at), top=34, left=95)


def concatenation(trace: Trace, head: int, query: int, theme: Theme) -> go.Figure:
    """The outputs of all heads for one token, side by side: whose numbers are whose."""
    figure = go.Figure()
    for other in range(trace.heads):
        start = other * trace.d_k
        figure.add_bar(
            x=list(range(start, start + trace.d_k)),
            y=trace.context[other, query],
            marker={"color": head_colour(theme, other), "line": {"width": 0}},
            opacity=1 if other == head else 0.5,
            hovertemplate=f"head {other}, column %{{x}}: %{{y:.3f}}<extra></extra>",
        )
        middle = {"x": start + (trace.d_k - 1) / 2, "y": 1.0, "yref": "paper", "yanchor": "bottom", "showarrow": False}
        label = f"<b>H{other}</b>" if other == head else f"H{other}"
        figure.add_annotation(**middle, text=label, font={"color": head_colour(theme, other), "size": 12})
    frame = {"x0": head * trace.d_k - 0.5, "x1": (head + 1) * trace.d_k - 0.5, "y0": 0, "y1": 1, "yref": "paper"}
    figure.add_shape(
        type="rect", **frame, line=head_line(theme, head), fillcolor=head_colour(theme, head), opacity=0.12
    )
    edges = [h * trace.d_k for h in range(trace.heads)]
    figure.update_xaxes(tickvals=[*edges, trace.heads * trace.d_k], title_text="column of the concatenation")
    figure.update_yaxes(gridcolor=grid_colour(theme), zerolinecolor=theme.muted, nticks=6)
    figure.update_layout(bargap=0)
    return finished(figure, theme, 300, top=34, left=45)


def mixing(trace: Trace, head: int, theme: Theme) -> go.Figure:
    """W_O whole, with the rows that meet this head's output framed, and those rows number by number."""
    rows = trace.w_o_of(head)
    cells, per_head = pooled(trace.parameters.w_o.T, trace.heads)  # pooled by columns: W_O has its heads in rows
    wide, high = trace.parameters.w_o.shape[::-1]
    names = [f"W<sub>O</sub>  {high} × {wide}", f"its rows for head {head}  {trace.d_k} × {wide}"]
    figure = make_subplots(1, 2, subplot_titles=names, column_widths=[0.36, 0.64], horizontal_spacing=0.06)
    figure.add_trace(sized_cells(cells.T, theme), 1, 1)
    figure.add_trace(signed_cells(rows, colour_limit(rows), theme, bar=True), 1, 2)
    frame = {"y0": head * per_head - 0.5, "y1": (head + 1) * per_head - 0.5, "x0": -0.5, "x1": len(cells) - 0.5}
    figure.add_shape(type="rect", **frame, line=head_line(theme, head), row=1, col=1)
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False, autorange="reversed")
    figure.update_yaxes(**head_axis(trace.heads, per_head), visible=True, row=1, col=1)
    return finished(figure, theme, 330, top=34, left=40)


def contributions(trace: Trace, head: int, query: int, theme: Theme) -> go.Figure:
    """What each head adds to the output of one token, the bias, and the sum of all; lengths at the right."""
    rows = [trace.context[other, query] @ trace.w_o_of(other) for other in range(trace.heads)]
    table = np.stack([*rows, trace.parameters.b_o, trace.output[query]])
    names = [f"H{other}" for other in range(trace.heads)] + ["bias", "sum"]
    lengths = np.linalg.norm(table, axis=1)
    figure = make_subplots(1, 2, column_widths=[0.74, 0.26], horizontal_spacing=0.02, subplot_titles=[
        f"the {trace.d_model} numbers that each adds", "length of each",
    ])  # fmt: skip
    figure.add_trace(signed_cells(table, colour_limit(table), theme), 1, 1)
    colours = [head_colour(theme, other) for other in range(trace.heads)] + [theme.muted, theme.ink]
    figure.add_trace(bars_rightward(lengths, colours, [f"{length:.2f}" for length in lengths], digits=3), 1, 2)
    figure.update_xaxes(visible=False)
    figure.update_xaxes(range=[0, float(lengths.max()) * 1.25], row=1, col=2)
    bold = [f"<b>{name}</b>" if i == head else name for i, name in enumerate(names)]
    figure.update_yaxes(tickvals=list(range(len(names))), ticktext=bold, showgrid=False, row=1, col=1)
    figure.update_yaxes(range=[len(names) - 0.5, -0.5])
    figure.update_yaxes(visible=False, row=1, col=2)
    figure.add_hline(trace.heads - 0.5, line={"color": theme.paper, "width": 3}, row=1, col=1)
    return finished(figure, theme, 80 + 20 * len(names), top=34, left=50)


def weights_and_norms(trace: Trace, head: int, query: int, tokens: Sequence[int], key: int, theme: Theme) -> go.Figure:
    """The weights of one query, and the lengths of what they let through (Kobayashi et al. 2020)."""
    at = list(tokens)
    rows = {
        "weight": (trace.weights[head, query, at], theme.heads[0]),
        "length of weight × v × W<sub>O</sub>": (trace.norm_weighted(head)[query, at], theme.heads[4]),
    }
    figure = make_subplots(2, 1, subplot_titles=list(rows), shared_xaxes=True, vertical_spacing=0.16)
    named = [token_name(trace, token) for token in tokens]
    for row, (numbers, colour) in enumerate(rows.values(), 1):
        bars = {"x": list(range(len(at))), "y": numbers, "customdata": named, "marker": {"color": colour}}
        figure.add_bar(**bars, hovertemplate="%{customdata}: %{y:.3f}<extra></extra>", row=row, col=1)
    figure.update_xaxes(**token_axis(trace, tokens, (query, key)))
    figure.update_yaxes(gridcolor=grid_colour(theme), nticks=4, rangemode="tozero")
    along(figure, tokens, "x", "x2")
    figure.update_annotations(x=0, xanchor="left")  # in view on a phone, where the chart scrolls
    return finished(figure, theme, 360, top=34, left=45)


# ---- Parts ------------------------------------------------------------------------------------------------


def _scaling(trace: Trace) -> str:
    return f"q · k / √{trace.d_k}" if trace.divides else f"q · k × {trace.scaling:.3g}"
