"""Charts of what rotary positions do to the queries and keys of a head (Plotly); colours as in the other steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mha_viz.attention.rotary import Rotation, turn
from mha_viz.attention.trace import Array, Trace
from mha_viz.figures.charts import go
from mha_viz.figures.inside_parts import finished, signed_bars, token_name
from mha_viz.figures.plots import Plots
from mha_viz.figures.theme import Theme, grid_colour


class Apart(NamedTuple):
    """The score that a query and a key would have at other distances: ``places``, the distances from key to query, and
    ``scores``, one for each."""

    places: list[int]
    scores: Array


def before_and_after(trace: Trace, head: int, query: int, key: int, theme: Theme) -> go.Figure:
    """q of one token and k of another, number by number, before and after the rotation by their positions."""
    q, k = trace.before_turn
    rows = {
        f"q of {token_name(trace, query)}, before": q[head, query],
        f"q at place {query}": trace.q[head, query],
        f"k of {token_name(trace, key)}, before": k[head, key],
        f"k at place {key}": trace.k[head, key],
    }
    plots = Plots(4, 1, list(rows), shared_x=True, down=0.08)
    for row, numbers in enumerate(rows.values(), 1):
        plots.add(signed_bars(numbers, theme), (row, 1))
        pair = list(rows.values())[(row - 1) // 2 * 2 :][:2]  # before and after share one scale
        limit = 1.08 * max(1e-6, *(float(np.abs(each).max()) for each in pair))
        plots.y((row, 1), range=[-limit, limit])
    plots.x((4, 1), title={"text": f"i, from 0 to {trace.d_k - 1}"})
    plots.y(gridcolor=grid_colour(theme), zerolinecolor=theme.muted, nticks=4)
    plots.notes(x=0, xanchor="left")  # visible on a phone, where the chart scrolls
    return finished(plots, theme, 560, top=34, left=45)


def apart(trace: Trace, rotation: Rotation, head: int, query: int, key: int) -> Apart:
    """q · k of this query and this key at every distance within the text. Only the positions are changed: the product
    of rotated vectors depends on nothing else of them but their distance."""
    q, k = (vectors[head, token] for vectors, token in zip(trace.before_turn, (query, key), strict=True))
    first = 0 if trace.causal else 1 - trace.n
    places = list(range(first, trace.n))
    of_query, of_key = (np.maximum(0, np.array(places) * sign) for sign in (1, -1))
    turned_q = turn(np.tile(q, (len(places), 1)), rotation.cos[of_query], rotation.sin[of_query])
    turned_k = turn(np.tile(k, (len(places), 1)), rotation.cos[of_key], rotation.sin[of_key])
    return Apart(places, (turned_q * turned_k).sum(axis=1))


def distances(trace: Trace, rotation: Rotation, head: int, query: int, key: int, theme: Theme) -> go.Figure:
    """The score of this pair at every distance; the point of their actual distance is filled."""
    other = apart(trace, rotation, head, query, key)
    colours = [theme.heads[1] if place == query - key else theme.muted for place in other.places]
    bars = {"type": "bar", "x": other.places, "y": other.scores, "marker": {"color": colours}}
    plots = Plots()
    plots.add({**bars, "hovertemplate": "%{x} tokens apart: %{y:.2f}<extra></extra>"})
    plots.x(title={"text": "tokens from the key on to the query"})
    plots.y(gridcolor=grid_colour(theme), zerolinecolor=theme.muted, nticks=5, title={"text": "q · k"})
    return finished(plots, theme, 260, left=55)
