"""Charts of what rotary positions do to the queries and keys of a head; colours as in the other steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mha_viz.attention.rotary import Rotation, rotate
from mha_viz.attention.trace import Floats, Trace
from mha_viz.figures.chart import Axis, Bars, Chart, Plot
from mha_viz.figures.inside_parts import chart_of, number_axis, token_name, vectors_one_below_another
from mha_viz.figures.theme import Theme


class Apart(NamedTuple):
    """The score that a query and a key would have at other distances: ``places``, the distances from key to query, and
    ``scores``, one for each."""

    places: list[int]
    scores: Floats


def before_and_after(trace: Trace, head: int, query: int, key: int, theme: Theme) -> Chart:
    """q of one token and k of another, number by number, before and after the rotation by their positions."""
    q, k = trace.before_turn
    rows = {
        f"q of {token_name(trace, query)}, before": q[head, query],
        f"q at place {query}": trace.q[head, query],
        f"k of {token_name(trace, key)}, before": k[head, key],
        f"k at place {key}": trace.k[head, key],
    }
    largest = [max(1e-6, float(np.abs(numbers).max())) for numbers in rows.values()]
    limits = [1.08 * max(pair) for pair in (largest[:2], largest[2:]) for _ in pair]  # before and after share one scale
    return vectors_one_below_another(trace, rows, theme, 560, 0.08, limits)


def apart(trace: Trace, rotation: Rotation, head: int, query: int, key: int) -> Apart:
    """q · k of this query and this key at every distance within the text. Only the positions are changed: the product
    of rotated vectors depends on nothing else of them but their distance."""
    q, k = (vectors[head, token] for vectors, token in zip(trace.before_turn, (query, key), strict=True))
    first = 0 if trace.causal else 1 - trace.n
    places = list(range(first, trace.n))
    of_query, of_key = (np.maximum(0, np.array(places) * sign) for sign in (1, -1))
    turned_q = rotate(np.tile(q, (len(places), 1)), rotation.cos[of_query], rotation.sin[of_query])
    turned_k = rotate(np.tile(k, (len(places), 1)), rotation.cos[of_key], rotation.sin[of_key])
    return Apart(places, (turned_q * turned_k).sum(axis=1))


def distances(trace: Trace, rotation: Rotation, head: int, query: int, key: int, theme: Theme) -> Chart:
    """The score of this pair at every distance; the point of their actual distance is filled."""
    other = apart(trace, rotation, head, query, key)
    colours = [theme.heads[1] if place == query - key else theme.muted for place in other.places]
    bars = Bars(other.places, other.scores, colours, hover="%{x} tokens apart: %{y:.2f}")
    plot = Plot(Axis(title="tokens from the key on to the query"), number_axis(theme, 5, title="q · k"))
    return chart_of(theme, [bars], [plot], 260, left=55)
