"""The part of *q, k, v* that shows queries and keys before and after rotary position embeddings."""

from __future__ import annotations

import numpy as np
import streamlit as st

from mha_viz.app.inside.open_stage import OpenStage, draw_chart, show_shapes, split_columns
from mha_viz.attention.rotary import Rotation
from mha_viz.attention.trace import Trace
from mha_viz.figures.charts import inside as draw
from mha_viz.numerals import decimal

ROTARY = "[Su et al. 2021, section 3.2.2](https://arxiv.org/abs/2104.09864)"


def show_rotation(o: OpenStage) -> None:
    """Show the rotation of q and k by their positions, if the model has one."""
    t, rotation = o.trace, o.trace.rotation
    if rotation is None:
        return
    text, charts = split_columns()
    with text:
        st.markdown(
            rf"""### Positions rotate q and k
So far, q and k know nothing of position. In this model it enters here: numbers i and i + {_count_pairs(t)}
of a query are taken as a point in a plane, which is **rotated about 0** by an angle that grows with the position m
of the token, faster for small i and slower for large i:

$$q'_i = q_i \cos m\theta_i - q_{{i+{_count_pairs(t)}}} \sin m\theta_i$$

$$q'_{{i+{_count_pairs(t)}}} = q_i \sin m\theta_i + q_{{i+{_count_pairs(t)}}} \cos m\theta_i$$

Keys are rotated in the same way ({ROTARY}), values are not.{_explain_partial_rotation(t, rotation)}{
                _explain_norms(rotation)
            }

{_compute_by_hand(o, rotation)}

**Only the distance between them counts.** The product of a query rotated by m and a key rotated by n depends on
m − n alone. {_compare_unrotated_score(o)} The last chart shows what this query and this key would score at other
distances.
"""
        )
        show_shapes(f"q, k {t.n} × {t.d_k}", f"q, k {t.n} × {t.d_k}, rotated")
    alt = "q and k before and after their positions rotate them"
    selection = (o.head, o.query, o.key)
    draw_chart(charts, o, "turn", alt, lambda theme: draw.draw_rotation(t, *selection, theme))
    distances_alt = "The score of this query and this key at every distance"
    draw_chart(
        charts, o, "distances", distances_alt, lambda theme: draw.draw_distance_scores(t, rotation, *selection, theme)
    )


def _count_pairs(t: Trace) -> int:
    """Return the number of rotated pairs of numbers."""
    return t.rotation.rotated_size // 2 if t.rotation else 0


def _explain_partial_rotation(t: Trace, rotation: Rotation) -> str:
    """Explain that only some of the numbers are rotated; empty if all are."""
    if rotation.rotated_size == t.d_k:
        return ""
    return (
        f" Of the {t.d_k} numbers only the first {rotation.rotated_size} are rotated; "
        "the others say nothing about positions."
    )


def _explain_norms(rotation: Rotation) -> str:
    """Explain that queries and keys are normalised before the rotation; empty if they are not."""
    if not rotation.has_norms:
        return ""
    divisor = "the root mean square of all heads’" if rotation.is_joint else "its root mean square"
    return (
        f" Before that, this model divides every query and key by {divisor} and multiplies its numbers by learned ones "
        "(RMSNorm)."
    )


def _compute_by_hand(o: OpenStage, rotation: Rotation) -> str:
    """Write out the rotation of the first pair of the query's numbers."""
    half, query_before = _count_pairs(o.trace), o.trace.before_turn[0][o.head, o.query]
    query_after, cos, sin = o.trace.q[o.head, o.query], rotation.cos[o.query, 0], rotation.sin[o.query, 0]
    return (
        f"For q of {o.quote_token(o.query)}, at position {o.query}, and i = 0, cos is {decimal(cos, 3)} and sin "
        f"{decimal(sin, 3)}: {decimal(query_before[0], 3)} × {decimal(cos, 3)} − "
        f"{_format_factor(query_before[half])} × {_format_factor(sin)} = **{decimal(query_after[0], 3)}**."
    )


def _format_factor(number: float) -> str:
    """Format a factor, in parentheses if it is negative."""
    return decimal(number, 3) if number >= 0 else f"({decimal(number, 3)})"


def _compare_unrotated_score(o: OpenStage) -> str:
    """Say what the score would be without the rotation."""
    q, k = (vectors[o.head, token] for vectors, token in zip(o.trace.before_turn, (o.query, o.key), strict=True))
    score = float(o.trace.scores[o.head, o.query, o.key])
    unrotated_score = float(np.dot(q, k))
    return f"Here q · k would be {decimal(unrotated_score)} without the rotation; with it, it is **{decimal(score)}**."
