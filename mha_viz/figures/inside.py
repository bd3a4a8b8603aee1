"""Charts of every step inside a head, with the numbers of one text (Plotly).

The colour code is the same in all: orange is above zero and blue below; the one-hue ramp is for shares and sizes; heads
have their colours of Explore.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mha_viz import numerals
from mha_viz.analysis.distance import entropy
from mha_viz.attention.trace import Array, Trace, split
from mha_viz.figures.charts import go
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
from mha_viz.figures.plots import Plots
from mha_viz.figures.theme import Theme, colorscale, grid_colour

DRAWN = 32  # the most tokens that a chart has room for
NAMES = ("W<sub>Q</sub>", "W<sub>K</sub>", "W<sub>V</sub>")
UNDIVIDED = "q · k as it is"


def in_view(trace: Trace, head: int, query: int, key: int) -> list[int]:
    """The tokens that charts show, in the order of the text: all, or else query, key and the tokens with the largest
    weights."""
    if trace.n <= DRAWN:
        return list(range(trace.n))
    row = trace.weights[head, query].copy()
    row[[query, key]] = 2
    return sorted(int(token) for token in np.argsort(-row, kind="stable")[:DRAWN])


def from_the_start(trace: Trace, query: int, key: int) -> list[int]:
    """The first tokens of the text, with query and key: the same tokens for every head."""
    return sorted({*range(min(trace.n, DRAWN)), query, key})


# ---- x and the matrices -----------------------------------------------------------------------------------


def vectors(trace: Trace, tokens: Sequence[int], query: int, key: int, theme: Theme) -> go.Figure:
    """x: one row per token, the input of every head."""
    return _rows(trace, trace.x, f"the {trace.d_model} numbers of a token’s x", tokens, (query, key), theme)


def entered(trace: Trace, tokens: Sequence[int], query: int, key: int, theme: Theme) -> go.Figure:
    """The input of a layer with a normalisation, before it: one row per token. Raises ValueError for layers without
    one."""
    if trace.entered is None:
        raise ValueError("what enters this layer is x")
    title = f"the {trace.d_model} numbers of a token, before the norm"
    return _rows(trace, trace.entered, title, tokens, (query, key), theme)


def _rows(
    trace: Trace, numbers: Array, title: str, tokens: Sequence[int], marked: Sequence[int], theme: Theme
) -> go.Figure:
    shown = numbers[list(tokens)]
    hover = "number %{x}: %{z:.3f}<extra></extra>"
    plots = Plots()
    plots.add({**signed_cells(shown, colour_limit(shown), theme, bar=True), "hovertemplate": hover})
    plots.x(title={"text": title}, side="bottom")
    plots.y(**token_axis(trace, tokens, marked), autorange="reversed")
    along(plots, tokens, "y")
    return finished(plots, theme, 90 + 20 * len(tokens), left=95)


def stacked(trace: Trace, head: int, theme: Theme) -> go.Figure:
    """W_Q, W_K and W_V complete; the columns of one head are framed. A cell is the size (RMS) of a block of numbers."""
    p = trace.parameters
    matrices = dict(zip(NAMES, (p.w_q, p.w_k, p.w_v), strict=True))
    names = [f"{name}  {trace.d_model} × {matrix.shape[1]}" for name, matrix in matrices.items()]
    plots = Plots(1, 3, names, across=0.04)
    for column, matrix in enumerate(matrices.values(), 1):
        heads = matrix.shape[1] // trace.d_k
        at = head * heads // trace.heads  # heads that share a key share its columns
        cells, per_head = pooled(matrix, heads)
        plots.add(sized_cells(cells, theme), (1, column))
        plots.x((1, column), **head_axis(heads, per_head, trace.heads // heads))
        edges = {"x0": at * per_head - 0.5, "x1": (at + 1) * per_head - 0.5, "y0": -0.5, "y1": len(cells) - 0.5}
        plots.frame((1, column), **edges, line=head_line(theme, head))
    plots.y(visible=False, autorange="reversed")
    return finished(plots, theme, 300, top=34)


def slices(trace: Trace, head: int, theme: Theme) -> go.Figure:
    """The three matrices of one head, number by number: [d_model, d_k] each."""
    p = trace.parameters
    counts = [matrix.shape[1] // trace.d_k for matrix in (p.w_q, p.w_k, p.w_v)]
    parts = [
        split(matrix, count)[head * count // trace.heads]
        for matrix, count in zip((p.w_q, p.w_k, p.w_v), counts, strict=True)
    ]
    names = [f"{name} of head {head}  {trace.d_model} × {trace.d_k}" for name in NAMES]
    plots = Plots(1, 3, names, across=0.04)
    limit = max(colour_limit(matrix) for matrix in parts)
    hover = "row %{y}, column %{x}: %{z:.4f}<extra></extra>"
    for column, matrix in enumerate(parts, 1):
        cells = signed_cells(matrix, limit, theme, bar=column == 3)
        plots.add({**cells, "hovertemplate": hover}, (1, column))
    plots.x(visible=False)
    plots.y(visible=False, autorange="reversed")
    return finished(plots, theme, 340, top=34)


# ---- q · k ------------------------------------------------------------------------------------------------


def products(trace: Trace, head: int, query: int, key: int, theme: Theme) -> go.Figure:
    """q of one token, k of another, and the d_k products whose sum is their score."""
    q, k = trace.q[head, query], trace.k[head, key]
    rows = {
        f"q of {token_name(trace, query)}": q,
        f"k of {token_name(trace, key)}": k,
        f"q<sub>i</sub> · k<sub>i</sub>, which sum to <b>{numerals.decimal(trace.scores[head, query, key])}</b>": q * k,
    }
    plots = Plots(3, 1, list(rows), shared_x=True, down=0.11)
    for row, numbers in enumerate(rows.values(), 1):
        plots.add(signed_bars(numbers, theme), (row, 1))
    plots.x((3, 1), title={"text": f"i, from 0 to {trace.d_k - 1}"})
    plots.y(gridcolor=grid_colour(theme), zerolinecolor=theme.muted, nticks=4)
    plots.notes(x=0, xanchor="left")  # visible on a phone, where the chart scrolls
    return finished(plots, theme, 470, top=34, left=45)


def both_softmaxes(
    trace: Trace, head: int, query: int, tokens: Sequence[int], key: int, theme: Theme, divided: bool = True
) -> go.Figure:
    """The scores of one query with and without the scaling, and the weights that softmax makes of each.

    The one that is not chosen by ``divided`` is faint.
    """
    at, hidden = list(tokens), trace.mask[query, list(tokens)]
    scores = np.where(hidden, np.nan, trace.scores[head, query, at])
    whole = trace.weights[head, query], trace.undivided(head)[query]
    series = {
        _scaling(trace): (scores * np.float32(trace.scaling), whole[0], theme.heads[0]),
        UNDIVIDED: (scores, whole[1], theme.heads[1]),
    }
    plots = Plots(2, 1, ["Scores", "Softmax of the scores"], down=0.17)
    for name, (score, weights, colour) in series.items():
        marker = {"color": colour, "opacity": 1 if divided is (name != UNDIVIDED) else 0.35}
        label = f"{name}: entropy {entropy(weights):.2f} nats"
        hover = "%{customdata}: %{y:.3f}<extra>" + name + "</extra>"
        named = [token_name(trace, token) for token in tokens]
        common = {"type": "bar", "x": list(range(len(at))), "marker": marker, "name": label, "legendgroup": name}
        common |= {"customdata": named, "hovertemplate": hover}
        plots.add({**common, "y": score}, (1, 1))
        plots.add({**common, "y": weights[at], "showlegend": False}, (2, 1))
    plots.x(**token_axis(trace, tokens, (query, key)))
    plots.y(gridcolor=grid_colour(theme), zerolinecolor=theme.muted, nticks=5)
    plots.y((2, 1), range=[0, 1])
    plots.layout(barmode="group", bargap=0.25, bargroupgap=0)
    along(plots, tokens, "x", "x2")
    plots.notes(x=0, xanchor="left")  # visible on a phone, where the chart scrolls
    return finished(plots, theme, 560, top=66, left=45, legend=True)


# ---- Maps of tokens by tokens -----------------------------------------------------------------------------


def mask(trace: Trace, tokens: Sequence[int], query: int, key: int, theme: Theme) -> go.Figure:
    """Which keys each query may look at: masked cells are grey."""
    words = np.where(trace.mask[np.ix_(list(tokens), list(tokens))], "masked", "open")
    changes = {"colorscale": colorscale((theme.ramp[1], theme.muted)), "showscale": False, "text": words}
    changes |= {"hovertemplate": "%{customdata}: %{text}<extra></extra>", "xgap": 1, "ygap": 1}
    return square(trace, trace.mask.astype(np.float32), tokens, query, key, theme, **changes)


def square(
    trace: Trace, matrix: Array, tokens: Sequence[int], query: int, key: int, theme: Theme, **changes: Any
) -> go.Figure:
    """A matrix of queries by keys, 0 to 1; the row of the query and the cell of the pair are framed. ``changes``:
    Plotly properties of the cells."""
    at = list(tokens)
    names = [token_name(trace, t) for t in at]
    cells: dict[str, Any] = {"type": "heatmap", "z": matrix[np.ix_(at, at)], "zmin": 0, "zmax": 1}
    cells |= {"colorscale": colorscale(theme.ramp), "colorbar": colour_bar()}
    cells |= {"customdata": np.array([[f"{a} to {b}" for b in names] for a in names])}
    cells |= {"hovertemplate": "%{customdata}: %{z:.3f}<extra></extra>"}
    plots = Plots()
    plots.add(cells | changes)
    row, column = at.index(query), at.index(key)
    line = {"color": theme.heads[1]}
    plots.frame(x0=-0.5, x1=len(at) - 0.5, y0=row - 0.5, y1=row + 0.5, line={**line, "width": 1})
    plots.frame(x0=column - 0.5, x1=column + 0.5, y0=row - 0.5, y1=row + 0.5, line={**line, "width": 3})
    axis = token_axis(trace, tokens, (query, key))
    plots.x(**axis, side="top", tickangle=-60, constrain="domain", title={"text": "key"})
    plots.y(**axis, autorange="reversed", scaleanchor="x", constrain="domain", title={"text": "query"})
    side = max(150, 26 * len(at))
    plots.layout(width=side + 190)  # cells are squares
    along(plots, tokens, "x", "y")
    return finished(plots, theme, side + 130, top=110, left=110)


# ---- The values, and their way out ------------------------------------------------------------------------


def values(
    trace: Trace, head: int, query: int, tokens: Sequence[int], theme: Theme, key: int | None = None
) -> go.Figure:
    """The weights of one query, the values of all tokens, each value times its weight, and their sum. The names of the
    query and the ``key`` are bold."""
    at = list(tokens)
    weights, v = trace.weights[head, query, at], trace.v[head, at]
    names = ["weight", f"v  {len(at)} × {trace.d_k}", "weight × v", "their sum: the head’s output"]
    shape: dict[str, Any] = {"widths": (0.16, 0.42, 0.42), "heights": (0.86, 0.14), "across": 0.03, "down": 0.14}
    plots = Plots(2, 3, names, **shape, empty={(2, 1), (2, 2)})
    labels = [f"{w:.2f}" if w >= 0.005 else "" for w in weights]
    plots.add(bars_rightward(weights, theme.heads[0], labels, digits=4), (1, 1))
    context = trace.context[head, query][None]
    marked = (query,) if key is None else (query, key)
    plots.add(signed_cells(v, colour_limit(v), theme), (1, 2))
    plots.add(signed_cells(weights[:, None] * v, colour_limit(context), theme), (1, 3))
    plots.add(signed_cells(context, colour_limit(context), theme), (2, 3))
    plots.x(visible=False)
    plots.x((1, 1), range=[0, max(0.2, float(weights.max()) * 1.5)])
    plots.y(visible=False)
    for column in (1, 2, 3):
        plots.y((1, column), range=[len(at) - 0.5, -0.5])
    plots.y((1, 1), **token_axis(trace, tokens, marked), visible=True)
    along(plots, tokens, "y", "y2", "y3")
    return finished(plots, theme, 190 + 19 * len(at), top=34, left=95)


def concatenation(trace: Trace, head: int, query: int, theme: Theme) -> go.Figure:
    """The outputs of all heads for one token, side by side, so that it is clear which numbers come from which head."""
    plots = Plots()
    for other in range(trace.heads):
        start, colour = other * trace.d_k, head_colour(theme, other)
        bars = {"type": "bar", "x": list(range(start, start + trace.d_k)), "y": trace.context[other, query]}
        bars |= {"marker": {"color": colour, "line": {"width": 0}}, "opacity": 1 if other == head else 0.5}
        plots.add({**bars, "hovertemplate": f"head {other}, column %{{x}}: %{{y:.3f}}<extra></extra>"})
        middle = {"x": start + (trace.d_k - 1) / 2, "y": 1.0, "yref": "paper", "yanchor": "bottom"}
        plots.note(**middle, text=f"<b>H{other}</b>" if other == head else f"H{other}", font={"color": colour})
    edges: dict[str, Any] = {"x0": head * trace.d_k - 0.5, "x1": (head + 1) * trace.d_k - 0.5, "y0": 0, "y1": 1}
    plots.frame(**edges, yref="paper", line=head_line(theme, head), fillcolor=head_colour(theme, head), opacity=0.12)
    ticks = [h * trace.d_k for h in range(trace.heads + 1)]
    plots.x(tickvals=ticks, title={"text": "column of the concatenation"})
    plots.y(gridcolor=grid_colour(theme), zerolinecolor=theme.muted, nticks=6)
    plots.layout(bargap=0)
    return finished(plots, theme, 300, top=34, left=45)


def mixing(trace: Trace, head: int, theme: Theme) -> go.Figure:
    """W_O complete, with the rows for this head's output framed, and these rows number by number."""
    rows = trace.w_o_of(head)
    cells, per_head = pooled(trace.parameters.w_o.T, trace.heads)  # by columns: the rows of W_O belong to heads
    wide, high = trace.parameters.w_o.shape[::-1]
    names = [f"W<sub>O</sub>  {high} × {wide}", f"its rows for head {head}  {trace.d_k} × {wide}"]
    plots = Plots(1, 2, names, widths=(0.36, 0.64), across=0.06)
    plots.add(sized_cells(cells.T, theme), (1, 1))
    plots.add(signed_cells(rows, colour_limit(rows), theme, bar=True), (1, 2))
    edges = {"y0": head * per_head - 0.5, "y1": (head + 1) * per_head - 0.5, "x0": -0.5, "x1": len(cells) - 0.5}
    plots.frame((1, 1), **edges, line=head_line(theme, head))
    plots.x(visible=False)
    plots.y(visible=False, autorange="reversed")
    plots.y((1, 1), **head_axis(trace.heads, per_head), visible=True)
    return finished(plots, theme, 330, top=34, left=40)


def contributions(trace: Trace, head: int, query: int, theme: Theme) -> go.Figure:
    """The contribution of each head to the output of one token, the bias, and the sum of all; lengths on the right."""
    rows = [trace.context[other, query] @ trace.w_o_of(other) for other in range(trace.heads)]
    table = np.stack([*rows, trace.parameters.b_o, trace.output[query]])
    names = [f"H{other}" for other in range(trace.heads)] + ["bias", "sum"]
    lengths = np.linalg.norm(table, axis=1)
    titles = [f"the {trace.d_model} numbers that each adds", "length of each"]
    plots = Plots(1, 2, titles, widths=(0.74, 0.26), across=0.02)
    plots.add(signed_cells(table, colour_limit(table), theme), (1, 1))
    colours = [head_colour(theme, other) for other in range(trace.heads)] + [theme.muted, theme.ink]
    plots.add(bars_rightward(lengths, colours, [f"{length:.2f}" for length in lengths], digits=3), (1, 2))
    plots.x(visible=False)
    plots.x((1, 2), range=[0, float(lengths.max()) * 1.25])
    bold = [f"<b>{name}</b>" if i == head else name for i, name in enumerate(names)]
    plots.y((1, 1), tickvals=list(range(len(names))), ticktext=bold, showgrid=False)
    plots.y(range=[len(names) - 0.5, -0.5])
    plots.y((1, 2), visible=False)
    line = {"color": theme.paper, "width": 3}
    plots.frame((1, 1), type="line", x0=0, x1=1, xref="x domain", y0=trace.heads - 0.5, y1=trace.heads - 0.5, line=line)
    return finished(plots, theme, 80 + 20 * len(names), top=34, left=50)


def weights_and_norms(trace: Trace, head: int, query: int, tokens: Sequence[int], key: int, theme: Theme) -> go.Figure:
    """The weights of one query, and the lengths of the weighted values (Kobayashi et al. 2020)."""
    at = list(tokens)
    rows = {
        "weight": (trace.weights[head, query, at], theme.heads[0]),
        "length of weight × v × W<sub>O</sub>": (trace.norm_weighted(head)[query, at], theme.heads[4]),
    }
    plots = Plots(2, 1, list(rows), shared_x=True, down=0.16)
    named = [token_name(trace, token) for token in tokens]
    for row, (numbers, colour) in enumerate(rows.values(), 1):
        bars = {"type": "bar", "x": list(range(len(at))), "y": numbers, "marker": {"color": colour}}
        plots.add({**bars, "customdata": named, "hovertemplate": "%{customdata}: %{y:.3f}<extra></extra>"}, (row, 1))
    plots.x(**token_axis(trace, tokens, (query, key)))
    plots.y(gridcolor=grid_colour(theme), nticks=4, rangemode="tozero")
    along(plots, tokens, "x", "x2")
    plots.notes(x=0, xanchor="left")  # visible on a phone, where the chart scrolls
    return finished(plots, theme, 360, top=34, left=45)


# ---- Parts ------------------------------------------------------------------------------------------------


def _scaling(trace: Trace) -> str:
    return f"q · k / √{trace.d_k}" if trace.divides else f"q · k × {trace.scaling:.3g}"
