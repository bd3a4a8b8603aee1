"""Charts of the steps inside a head: its input, matrices, scores, weights, values and output, and rotary positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any, NamedTuple

import numpy as np

from mha_viz import numerals
from mha_viz.analysis.distance import entropy
from mha_viz.attention.rotary import Rotation, rotate
from mha_viz.attention.trace import Floats, Trace, split_heads
from mha_viz.figures.charts.chart import (
    Axis,
    Bars,
    Cells,
    Chart,
    Frame,
    Legend,
    Margin,
    Plot,
    Remark,
    Series,
    SeriesTexts,
    divide_height,
    divide_width,
)
from mha_viz.figures.drawing.theme import Theme

MAX_BLOCKS = 96  # maximum number of rows and of columns of a pooled matrix
MAX_CHARACTERS = 12  # maximum number of characters of a token's label


def token_name(trace: Trace, token: int) -> str:
    """Return a token for a hover text, escaped because Plotly reads labels as HTML."""
    return f"“{_token_label(trace, token)}” ({token})"


def _token_label(trace: Trace, token: int) -> str:
    text = trace.text.tokens[token].drawn
    return escape(text if len(text) <= MAX_CHARACTERS else text[: MAX_CHARACTERS - 1] + "…")


def token_axis(trace: Trace, tokens: Sequence[int], bold_tokens: Sequence[int], **properties: Any) -> Axis:
    """Return an axis with ticks by position, so that repeated tokens stay separate.

    The names of ``bold_tokens`` are bold.
    """
    names = [f"<b>{_token_label(trace, t)}</b>" if t in bold_tokens else _token_label(trace, t) for t in tokens]
    return Axis(
        positions=list(range(len(names))),
        names=names,
        tokens=tokens,
        **{"grid": False, "zero_colour": "", **properties},
    )


def number_axis(theme: Theme, max_ticks: int, **properties: Any) -> Axis:
    """Return a vertical axis with lines at numbers; the line at 0 is the strongest."""
    return Axis(grid=True, zero_colour=theme.muted, max_ticks=max_ticks, **properties)


def head_axis(heads: int, per_head: int, shared: int = 1, **properties: Any) -> Axis:
    """Return an axis with at most eight heads by name, each in the middle of its ``per_head`` columns.

    If ``shared`` heads have the same columns, the label names the first and the last head: "H0–H3".
    """
    labelled_heads = range(0, heads, -(-heads // 8))
    names = [f"H{h}" if shared == 1 else f"H{h * shared}–H{(h + 1) * shared - 1}" for h in labelled_heads]
    middles = [h * per_head + (per_head - 1) / 2 for h in labelled_heads]
    return Axis(positions=middles, names=names, grid=False, zero_colour="", angle=0, **properties)


def pool_blocks(matrix: Floats, heads: int) -> tuple[Floats, int]:
    """Reduce a matrix [rows, h · d_k] to root mean squares of blocks; also return the number of columns per head.

    No block contains columns of two heads.
    """
    d_k = matrix.shape[1] // heads
    block_width = next(w for w in range(1, d_k + 1) if d_k % w == 0 and (heads * d_k // w <= MAX_BLOCKS or w == d_k))
    block_height = -(-len(matrix) // MAX_BLOCKS)
    squares = np.add.reduceat(matrix.astype(np.float64) ** 2, np.arange(0, len(matrix), block_height), axis=0)
    squares = np.add.reduceat(squares, np.arange(0, matrix.shape[1], block_width), axis=1)
    sizes = np.minimum(block_height, len(matrix) - np.arange(0, len(matrix), block_height))[:, None] * block_width
    return np.sqrt(squares / sizes).astype(np.float32), d_k // block_width


def colour_limit(numbers: Floats) -> float:
    """Return the end of the colour scale: the 99th percentile.

    A few outliers would otherwise hide all other numbers.
    """
    return max(1e-6, float(np.percentile(np.abs(numbers), 99)))


def signed_cells(numbers: Floats, limit: float, theme: Theme, with_scale: bool = False, **properties: Any) -> Cells:
    """Return numbers as cells, blue below zero and orange above, strongest at ``limit``."""
    all_properties = {"hover": "row %{y}, column %{x}: %{z:.3f}", **properties}
    return Cells(numbers, -limit, limit, theme.signed, scale_at="right" if with_scale else "", **all_properties)


def signed_bars(numbers: Floats, theme: Theme, plot: int) -> Bars:
    """Return a bar for each number of a vector, blue below zero and orange above."""
    colours = [theme.signed[5] if number > 0 else theme.signed[1] for number in numbers]
    return Bars(range(len(numbers)), numbers, colours, hover="number %{x}: %{y:.3f}", plot=plot)


def stack_vectors(
    trace: Trace, rows: Mapping[str, Floats], theme: Theme, height: int, gap: float, limits: Sequence[float] = ()
) -> Chart:
    """Draw vectors of d_k numbers under their titles, with one horizontal axis.

    ``limits``: the ends of the vertical axes; by default, every vector has its own.
    """
    last_row, plots = len(rows) - 1, list[Plot]()
    for row, (title, y_span) in enumerate(zip(rows, divide_height(len(rows), gap), strict=True)):
        x = (
            Axis(same_x_as=last_row, has_labels=False)
            if row < last_row
            else Axis(title=f"i, from 0 to {trace.d_k - 1}")
        )
        ends = (-limits[row], limits[row]) if limits else None
        plots.append(Plot(x, number_axis(theme, 4, range=ends), title, y_span=y_span))
    series = [signed_bars(numbers, theme, row) for row, numbers in enumerate(rows.values())]
    return build_chart(theme, series, plots, height, top=34, left=45, titles_left=True)


def build_size_cells(cells: Floats, theme: Theme, plot: int = 0) -> Cells:
    """Return sizes, which start at 0, as cells of one hue."""
    return Cells(cells, 0, float(np.percentile(cells, 99.5)), theme.ramp, hover="", plot=plot)


def horizontal_bars(
    numbers: Floats, colours: str | Sequence[str], texts: Sequence[str], digits: int, plot: int = 0
) -> Bars:
    """Return horizontal bars, one below another, with their texts at their ends."""
    positions, hover = list(range(len(numbers))), f"%{{x:.{digits}f}}"
    return Bars(positions, numbers, colours, is_horizontal=True, texts=texts, hover=hover, plot=plot)


def head_colour(theme: Theme, head: int) -> str:
    """Return the colour that a head has on every page."""
    return theme.heads[head % len(theme.heads)]


def build_chart(
    theme: Theme,
    series: Sequence[Series],
    plots: Sequence[Plot],
    height: int,
    top: int = 10,
    left: int = 10,
    **properties: Any,
) -> Chart:
    """Build a chart of the page Inside a head, with its margins and font sizes."""
    margin = Margin(left, 10, top, 40)
    return Chart(theme, series, plots, height, margin, label_font_size=12, title_font_size=13, **properties)


MAX_TOKENS = 32  # maximum number of tokens in a chart
MATRIX_NAMES = ("W<sub>Q</sub>", "W<sub>K</sub>", "W<sub>V</sub>")
UNSCALED = "q · k unscaled"
NO_AXIS = Axis(is_shown=False)
HIDDEN_ROWS = Axis(is_shown=False, is_reversed=True)  # the first row at the top


def choose_tokens(trace: Trace, head: int, query: int, key: int) -> list[int]:
    """Return the tokens that charts show, in the order of the text.

    These are all tokens, or query, key and the tokens with the largest weights.
    """
    if trace.n <= MAX_TOKENS:
        return list(range(trace.n))
    row = trace.weights[head, query].copy()
    row[[query, key]] = 2
    return sorted(int(token) for token in np.argsort(-row, kind="stable")[:MAX_TOKENS])


def choose_first_tokens(trace: Trace, query: int, key: int) -> list[int]:
    """Return the first tokens of the text, with query and key: the same tokens for every head."""
    return sorted({*range(min(trace.n, MAX_TOKENS)), query, key})


# ---- x and the matrices -----------------------------------------------------------------------------------


def draw_inputs(trace: Trace, tokens: Sequence[int], query: int, key: int, theme: Theme) -> Chart:
    """Draw x, the input of every head: one row per token."""
    return _draw_rows(trace, trace.x, "numbers of x", tokens, (query, key), theme)


def draw_unnormalised_inputs(trace: Trace, tokens: Sequence[int], query: int, key: int, theme: Theme) -> Chart:
    """Draw the input of a layer before its normalisation, one row per token.

    Raises ValueError for layers whose input is not normalised first.
    """
    if trace.layer_input is None:
        raise ValueError("this layer does not normalise its input")
    title = "numbers of a token, before the norm"
    return _draw_rows(trace, trace.layer_input, title, tokens, (query, key), theme)


def _draw_rows(
    trace: Trace, numbers: Floats, title: str, tokens: Sequence[int], bold_tokens: Sequence[int], theme: Theme
) -> Chart:
    values = numbers[list(tokens)]
    cells = signed_cells(values, colour_limit(values), theme, with_scale=True, hover="number %{x}: %{z:.3f}")
    plot = Plot(
        Axis(title=title, positions=(0, trace.d_model - 1)), token_axis(trace, tokens, bold_tokens, is_reversed=True)
    )
    return build_chart(theme, [cells], [plot], 74 + 17 * len(tokens), left=95)


def draw_all_matrices(trace: Trace, head: int, theme: Theme) -> Chart:
    """Draw all of W_Q, W_K and W_V, with the columns of one head framed.

    A cell shows the root mean square of a block of numbers.
    """
    p = trace.parameters
    matrices = dict(zip(MATRIX_NAMES, (p.w_q, p.w_k, p.w_v), strict=True))
    names = [f"{name}  {trace.d_model} × {matrix.shape[1]}" for name, matrix in matrices.items()]
    series, plots, frames = list[Series](), list[Plot](), list[Frame]()
    for number, matrix in enumerate(matrices.values()):
        heads = matrix.shape[1] // trace.d_k
        block = head * heads // trace.heads  # heads that share a key share its columns
        cells, per_head = pool_blocks(matrix, heads)
        series.append(build_size_cells(cells, theme, number))
        x = head_axis(heads, per_head, trace.heads // heads)
        plots.append(Plot(x, HIDDEN_ROWS, names[number], x_span=divide_width((1, 1, 1), 0.04)[number]))
        columns, rows = (block * per_head - 0.5, (block + 1) * per_head - 0.5), (-0.5, len(cells) - 0.5)
        frames.append(Frame(columns, rows, head_colour(theme, head), 3, plot=number))
    return build_chart(theme, series, plots, 300, top=34, frames=frames)


def draw_head_matrices(trace: Trace, head: int, theme: Theme) -> Chart:
    """Draw the three matrices of one head, [d_model, d_k] each, number by number."""
    p = trace.parameters
    counts = [matrix.shape[1] // trace.d_k for matrix in (p.w_q, p.w_k, p.w_v)]
    parts = [
        split_heads(matrix, count)[head * count // trace.heads]
        for matrix, count in zip((p.w_q, p.w_k, p.w_v), counts, strict=True)
    ]
    limit = max(colour_limit(matrix) for matrix in parts)
    hover = "row %{y}, column %{x}: %{z:.4f}"
    series = [
        signed_cells(matrix, limit, theme, with_scale=number == 2, hover=hover, plot=number)
        for number, matrix in enumerate(parts)
    ]
    plots = [
        Plot(NO_AXIS, HIDDEN_ROWS, f"{name} of H{head}", x_span)
        for name, x_span in zip(MATRIX_NAMES, divide_width((1, 1, 1), 0.04), strict=True)
    ]
    return build_chart(theme, series, plots, 340, top=34)


# ---- q · k ------------------------------------------------------------------------------------------------


def draw_products(trace: Trace, head: int, query: int, key: int, theme: Theme) -> Chart:
    """Draw q of one token, k of another, and the d_k products whose sum is their score."""
    q, k = trace.q[head, query], trace.k[head, key]
    rows = {
        f"q of {token_name(trace, query)}": q,
        f"k of {token_name(trace, key)}": k,
        f"q<sub>i</sub> · k<sub>i</sub>, which sum to <b>{numerals.decimal(trace.scores[head, query, key])}</b>": q * k,
    }
    return stack_vectors(trace, rows, theme, 350, 0.13)


def draw_softmaxes(
    trace: Trace, head: int, query: int, tokens: Sequence[int], key: int, theme: Theme, is_scaled: bool = True
) -> Chart:
    """Draw the scores of one query with and without the scaling, and the weights that softmax computes from each.

    The version that ``is_scaled`` does not select is faint.
    """
    indices, is_masked = list(tokens), trace.mask[query, list(tokens)]
    scores = np.where(is_masked, np.nan, trace.scores[head, query, indices])
    scaled_weights, unscaled_weights = trace.weights[head, query], trace.undivided(head)[query]
    numbers_by_name = {
        _describe_scaling(trace): (scores * np.float32(trace.scaling), scaled_weights, theme.heads[0]),
        UNSCALED: (scores, unscaled_weights, theme.heads[1]),
    }
    series, token_names = list[Series](), [token_name(trace, token) for token in tokens]
    for name, (score, weights, colour) in numbers_by_name.items():
        opacity = 1 if is_scaled is (name != UNSCALED) else 0.35
        for plot, numbers in enumerate((score, weights[indices])):
            texts: SeriesTexts = {"labels": token_names, "hover": f"%{{customdata}}: %{{y:.3f}}<extra>{name}</extra>"}
            texts |= {"name": f"{name}: entropy {entropy(weights):.2f} nats", "in_legend": False if plot else None}
            series.append(Bars(range(len(indices)), numbers, colour, opacity=opacity, group=name, plot=plot, **texts))
    x, y = token_axis(trace, tokens, (query, key)), number_axis(theme, 5)
    upper_span, lower_span = divide_height(2, 0.2)
    plots = [
        Plot(replace(x, same_x_as=1, has_labels=False), y, "Scores", y_span=upper_span),
        Plot(x, replace(y, range=(0, 1)), "Softmax of the scores", y_span=lower_span),
    ]
    legend = Legend(y=1.09, clicks="double")
    return build_chart(theme, series, plots, 350, top=62, left=45, titles_left=True, legend=legend, bar_gap=0.25)


# ---- Token matrices ---------------------------------------------------------------------------------------


def draw_mask(trace: Trace, tokens: Sequence[int], query: int, key: int, theme: Theme) -> Chart:
    """Draw which keys each query may attend to: masked cells are grey."""
    states = np.where(trace.mask[np.ix_(list(tokens), list(tokens))], "masked", "open")
    properties = {"scale": (theme.ramp[1], theme.muted), "scale_at": "", "hints": states, "gap": 1}
    properties["hover"] = "%{customdata}: %{hovertext}"
    return draw_token_matrix(trace, trace.mask.astype(np.float32), tokens, query, key, theme, **properties)


def draw_token_matrix(
    trace: Trace, matrix: Floats, tokens: Sequence[int], query: int, key: int, theme: Theme, **properties: Any
) -> Chart:
    """Draw a matrix of queries by keys, 0 to 1; the row of the query and the cell of the pair are framed.

    ``properties``: properties of the cells.
    """
    indices = list(tokens)
    names = [token_name(trace, t) for t in indices]
    labels = np.array([[f"{a} to {b}" for b in names] for a in names])
    defaults = {"scale": theme.ramp, "scale_at": "right", "labels": labels, "hover": "%{customdata}: %{z:.3f}"}
    cells = Cells(matrix[np.ix_(indices, indices)], 0, 1, **(defaults | properties))
    row, column = ((indices.index(token) - 0.5, indices.index(token) + 0.5) for token in (query, key))
    colour, side = theme.heads[1], max(150, 26 * len(indices))
    x = token_axis(trace, tokens, (query, key), title="key", is_above=True, angle=-60, anchor_side="")
    y = token_axis(trace, tokens, (query, key), title="query", is_reversed=True, has_equal_units=True, anchor_side="")
    frames = [Frame((-0.5, len(indices) - 0.5), row, colour, 1), Frame(column, row, colour, 3)]
    plots, width = [Plot(x, y)], side + 190  # cells are squares
    return build_chart(theme, [cells], plots, side + 130, top=110, left=110, width=width, frames=frames)


# ---- Values and output ------------------------------------------------------------------------------------


def draw_values(
    trace: Trace, head: int, query: int, tokens: Sequence[int], theme: Theme, key: int | None = None
) -> Chart:
    """Draw the weights of one query, the values of all tokens, each value times its weight, and their sum.

    The names of the query and the ``key`` are bold.
    """
    indices = list(tokens)
    weights, v = trace.weights[head, query, indices], trace.v[head, indices]
    texts = [f"{w:.2f}" if w >= 0.005 else "" for w in weights]
    context = trace.context[head, query][None]
    limit, bold_tokens = colour_limit(context), (query,) if key is None else (query, key)
    series = [
        horizontal_bars(weights, theme.heads[0], texts, digits=4),
        signed_cells(v, colour_limit(v), theme, plot=1),
        signed_cells(weights[:, None] * v, limit, theme, plot=2),
        signed_cells(context, limit, theme, plot=3),
    ]
    left_span, middle_span, right_span = divide_width((0.2, 0.4, 0.4), 0.03)
    lower_span, upper_span = divide_width((0.14, 0.86), 0.14)
    ends = (len(indices) - 0.5, -0.5)
    rows = Axis(is_shown=False, range=ends, tokens=tokens)
    plots = [
        Plot(Axis(is_shown=False, range=(0, max(0.2, float(weights.max()) * 2))),
             token_axis(trace, tokens, bold_tokens, range=ends), "weight", left_span, upper_span),
        Plot(NO_AXIS, rows, f"v  {len(indices)} × {trace.d_k}", middle_span, upper_span),
        Plot(NO_AXIS, rows, "weight × v", right_span, upper_span),
        Plot(NO_AXIS, NO_AXIS, "their sum", right_span, lower_span),
    ]  # fmt: skip
    return build_chart(theme, series, plots, 94 + 16 * len(indices), top=34, left=95)


def draw_concatenation(trace: Trace, head: int, query: int, theme: Theme) -> Chart:
    """Draw the outputs of all heads for one token, side by side, to show which numbers come from which head."""
    series, remarks = list[Series](), list[Remark]()
    for other in range(trace.heads):
        start, colour = other * trace.d_k, head_colour(theme, other)
        opacity, hover = 1 if other == head else 0.5, f"head {other}, column %{{x}}: %{{y:.3f}}"
        columns = range(start, start + trace.d_k)
        series.append(Bars(columns, trace.context[other, query], colour, opacity=opacity, hover=hover))
        name = f"<b>H{other}</b>" if other == head else f"H{other}"
        remarks.append(Remark(name, start + (trace.d_k - 1) / 2, colour))
    ends, colour = (head * trace.d_k - 0.5, (head + 1) * trace.d_k - 0.5), head_colour(theme, head)
    frames = [Frame(ends, None, colour, 3, fill=colour, opacity=0.12)]
    x = Axis(positions=[h * trace.d_k for h in range(trace.heads + 1)], title="column of the concatenation")
    properties: dict[str, Any] = {"frames": frames, "remarks": remarks, "bar_gap": 0}
    return build_chart(theme, series, [Plot(x, number_axis(theme, 6))], 300, top=34, left=45, **properties)


def draw_output_matrix(trace: Trace, head: int, theme: Theme) -> Chart:
    """Draw all of W_O, with the rows for this head's output framed, and these rows number by number."""
    rows = trace.slice_w_o(head)
    cells, per_head = pool_blocks(trace.parameters.w_o.T, trace.heads)  # by columns: the rows of W_O belong to heads
    width, height = trace.parameters.w_o.shape[::-1]
    left_span, right_span = divide_width((0.36, 0.64), 0.06)
    plots = [
        Plot(
            NO_AXIS, head_axis(trace.heads, per_head, is_reversed=True), f"W<sub>O</sub>  {height} × {width}", left_span
        ),
        Plot(NO_AXIS, HIDDEN_ROWS, f"its rows for head {head}  {trace.d_k} × {width}", right_span),
    ]
    series = [build_size_cells(cells.T, theme), signed_cells(rows, colour_limit(rows), theme, with_scale=True, plot=1)]
    ends = (head * per_head - 0.5, (head + 1) * per_head - 0.5)
    frames = [Frame((-0.5, len(cells) - 0.5), ends, head_colour(theme, head), 3)]
    return build_chart(theme, series, plots, 330, top=34, left=40, frames=frames)


def draw_contributions(trace: Trace, head: int, query: int, theme: Theme) -> Chart:
    """Draw the contribution of each head to the output of one token, the bias, and the sum of all.

    Their lengths are on the right.
    """
    rows = [trace.context[other, query] @ trace.slice_w_o(other) for other in range(trace.heads)]
    table = np.stack([*rows, trace.parameters.b_o, trace.output[query]])
    names = [f"H{other}" for other in range(trace.heads)] + ["bias", "sum"]
    lengths = np.linalg.norm(table, axis=1)
    colours = [head_colour(theme, other) for other in range(trace.heads)] + [theme.muted, theme.ink]
    series = [
        signed_cells(table, colour_limit(table), theme),
        horizontal_bars(lengths, colours, [f"{length:.2f}" for length in lengths], digits=3, plot=1),
    ]
    labels = [f"<b>{name}</b>" if i == head else name for i, name in enumerate(names)]
    left_span, right_span = divide_width((0.74, 0.26), 0.02)
    ends = (len(names) - 0.5, -0.5)
    rows_axis = Axis(positions=list(range(len(names))), names=labels, grid=False, range=ends)
    lengths_axis = Axis(is_shown=False, range=(0, float(lengths.max()) * 1.25))
    plots = [
        Plot(NO_AXIS, rows_axis, f"the {trace.d_model} numbers that each adds", left_span),
        Plot(lengths_axis, Axis(is_shown=False, range=ends), "length of each", right_span),
    ]
    above_bias = (trace.heads - 0.5, trace.heads - 0.5)
    frames = [Frame(None, above_bias, theme.paper, 3)]
    return build_chart(theme, series, plots, 80 + 20 * len(names), top=34, left=50, frames=frames)


def draw_weights_and_norms(trace: Trace, head: int, query: int, tokens: Sequence[int], key: int, theme: Theme) -> Chart:
    """Draw the weights of one query, and the lengths of the weighted values (Kobayashi et al. 2020)."""
    indices = list(tokens)
    numbers = (trace.weights[head, query, indices], trace.norm_weighted(head)[query, indices])
    texts: SeriesTexts = {"labels": [token_name(trace, token) for token in tokens], "hover": "%{customdata}: %{y:.3f}"}
    series = [
        Bars(range(len(indices)), lengths, theme.heads[4 * plot], plot=plot, **texts)
        for plot, lengths in enumerate(numbers)
    ]
    x, y = token_axis(trace, tokens, (query, key)), Axis(grid=True, max_ticks=4, from_zero=True)
    upper_span, lower_span = divide_height(2, 0.16)
    plots = [
        Plot(replace(x, same_x_as=1, has_labels=False), y, "weight", y_span=upper_span),
        Plot(x, y, "length of weight × v × W<sub>O</sub>", y_span=lower_span),
    ]
    return build_chart(theme, series, plots, 360, top=34, left=45, titles_left=True)


def _describe_scaling(trace: Trace) -> str:
    return f"q · k / √{trace.d_k}" if trace.has_standard_scaling else f"q · k × {trace.scaling:.3g}"


# ---- Rotary positions -------------------------------------------------------------------------------------
class DistanceScores(NamedTuple):
    """The score that a query and a key would have at other distances.

    ``distances``: the distances from key to query; ``scores``: the score at each distance.
    """

    distances: list[int]
    scores: Floats


def draw_rotation(trace: Trace, head: int, query: int, key: int, theme: Theme) -> Chart:
    """Draw q of one token and k of another, number by number, before and after the rotation by their positions."""
    q, k = trace.before_turn
    rows = {
        f"q of {token_name(trace, query)}, before": q[head, query],
        f"q at position {query}": trace.q[head, query],
        f"k of {token_name(trace, key)}, before": k[head, key],
        f"k at position {key}": trace.k[head, key],
    }
    maxima = [max(1e-6, float(np.abs(numbers).max())) for numbers in rows.values()]
    limits = [1.08 * max(pair) for pair in (maxima[:2], maxima[2:]) for _ in pair]  # before and after share one scale
    return stack_vectors(trace, rows, theme, 560, 0.08, limits)


def score_by_distance(trace: Trace, rotation: Rotation, head: int, query: int, key: int) -> DistanceScores:
    """Compute q · k of a query and a key at every distance within the text.

    Only the positions are changed: the product of rotated vectors depends on their positions only through the distance.
    """
    q, k = (vectors[head, token] for vectors, token in zip(trace.before_turn, (query, key), strict=True))
    first = 0 if trace.causal else 1 - trace.n
    distances = list(range(first, trace.n))
    query_positions, key_positions = (np.maximum(0, np.array(distances) * sign) for sign in (1, -1))
    rotated_q = rotate(np.tile(q, (len(distances), 1)), rotation.cos[query_positions], rotation.sin[query_positions])
    rotated_k = rotate(np.tile(k, (len(distances), 1)), rotation.cos[key_positions], rotation.sin[key_positions])
    return DistanceScores(distances, (rotated_q * rotated_k).sum(axis=1))


def draw_distance_scores(trace: Trace, rotation: Rotation, head: int, query: int, key: int, theme: Theme) -> Chart:
    """Draw the score of a query and a key at every distance; the bar of their actual distance is highlighted."""
    by_distance = score_by_distance(trace, rotation, head, query, key)
    colours = [theme.heads[1] if distance == query - key else theme.muted for distance in by_distance.distances]
    bars = Bars(by_distance.distances, by_distance.scores, colours, hover="%{x} tokens apart: %{y:.2f}")
    plot = Plot(Axis(title="distance from key to query, tokens"), number_axis(theme, 5, title="q · k"))
    return build_chart(theme, [bars], [plot], 260, left=55)
