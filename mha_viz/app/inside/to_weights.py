"""The parts of the stages from x to the attention weights. Each function shows an explanation and charts."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import streamlit as st

from mha_viz.analysis.distance import entropy
from mha_viz.app.inside.by_hand import format_softmax_table, make_row_table
from mha_viz.app.inside.open_stage import (
    MHA_LINK,
    SDPA_LINK,
    OpenStage,
    draw_chart,
    make_more_expander,
    report_omitted_tokens,
    show_shapes,
    split_columns,
)
from mha_viz.app.inside.score_parts import explain_score
from mha_viz.app.widgets.download_panel import PageChart
from mha_viz.app.widgets.parts import show_remark
from mha_viz.app.widgets.url_controls import bind_control
from mha_viz.attention.trace import Trace
from mha_viz.figures.charts import inside as draw
from mha_viz.numerals import decimal, format_small, percent


def show_vectors(o: OpenStage) -> None:
    """Show the input vectors x."""
    t = o.trace
    tokens = draw.choose_first_tokens(t, o.query, o.key)
    norm_note = (
        f" This layer **normalises first**: x is the normalised form of what enters, again {t.d_model} numbers."
        if t.pre_norm
        else ""
    )
    text, charts = split_columns()
    with text:
        st.markdown(
            f"""## Every head gets the same x
Each token is a vector of {t.d_model} numbers.{norm_note} All {t.heads} heads receive the **whole vector**.
"""
        )
        show_shapes(f"x {t.n} × {t.d_model}")
        if len(tokens) < t.n:
            show_remark(f"Only the first {draw.MAX_TOKENS} of {t.n} tokens are drawn, plus the query and the key.")
    alt = f"x, {len(tokens)} tokens by {t.d_model} numbers"
    if t.pre_norm:
        input_alt = f"What enters the layer, before the norm: {len(tokens)} tokens by {t.d_model} numbers"
        draw_chart(
            charts,
            o,
            "entered",
            input_alt,
            lambda theme: draw.draw_unnormalised_inputs(t, tokens, o.query, o.key, theme),
        )
    draw_chart(charts, o, "x", alt, lambda theme: draw.draw_inputs(t, tokens, o.query, o.key, theme))


def show_linear(o: OpenStage) -> None:
    """Show the projections of x to q, k and v."""
    t, p = o.trace, o.trace.parameters
    start = o.head * t.d_k
    product = float(t.x[o.query] @ p.w_q[:, start])
    text, charts = split_columns()
    with text:
        st.markdown(
            rf"""## The vector is projected in full, not cut
Head {o.head} multiplies **the whole** of x by matrices of its own, the framed columns.

$$q = x W_Q \qquad k = x W_K \qquad v = x W_V$$
"""
        )
        _show_product_shapes(t)
    with text, make_more_expander():
        st.markdown(
            f"""Models store the matrices of all heads side by side in one {t.d_model} × {t.heads * t.d_k} matrix; head
{o.head} owns columns {start} to {start + t.d_k - 1}. What is split is the *result* of one product, into {t.heads} heads
of $d_k$ = {t.d_k} numbers: all {t.d_model} numbers of x enter each of them.

{MHA_LINK}; most models add a bias. The first number of q of {o.quote_token(o.query)}: {t.d_model} products that sum to
{decimal(product, 3)}, plus the bias {decimal(p.b_q[start], 3)}, is **{decimal(product + p.b_q[start], 3)}**.
{_explain_shared_keys(o)}"""
        )
        _compare_with_loop(t)
        show_remark(
            "In the whole matrices each cell stands for a block of numbers: the stronger its colour, the larger they "
            "are; each matrix has its own scale. The matrices of this head show every number on one scale: orange is "
            "above zero, blue below."
        )
    matrices_alt = "W_Q, W_K and W_V with the head’s columns framed"
    draw_chart(charts, o, "stacked", matrices_alt, lambda theme: draw.draw_all_matrices(t, o.head, theme))
    draw_chart(
        charts,
        o,
        "slices",
        f"The three matrices of head {o.head}",
        lambda theme: draw.draw_head_matrices(t, o.head, theme),
    )


def _explain_shared_keys(o: OpenStage) -> str:
    """Explain which heads share keys and values; empty if each head has its own."""
    t = o.trace
    if t.key_heads == t.heads:
        return ""
    size = t.heads // t.key_heads
    first_head = o.head // size * size
    return (
        f"\n**Heads share keys and values here** ([Ainslie et al. 2023](https://arxiv.org/abs/2305.13245)): $W_K$ and "
        f"$W_V$ have columns for only {t.key_heads} of them. Heads {first_head} to {first_head + size - 1} share one k "
        "and v, but their queries differ.\n"
    )


def _show_product_shapes(t: Trace) -> None:
    head_shape = f"{t.n} × {t.d_k}"
    if t.key_heads == t.heads:
        products_shape, width = f"q, k, v {t.heads} heads × {head_shape}", f"{t.heads * t.d_k}"
    else:
        products_shape = f"q {t.heads} heads × {head_shape}; k, v {t.key_heads} × {head_shape}"
        width = f"{t.heads * t.d_k} or {t.key_heads * t.d_k}"
    show_shapes(f"x {t.n} × {t.d_model}", f"x W {t.n} × {width}", products_shape)


def _compare_with_loop(t: Trace) -> None:
    difference = t.loop_difference
    st.markdown(
        f"**One operation, not {t.heads}.** Just now both were run on this text: all heads at once, as products of "
        f"whole matrices, and a loop over the {t.heads} heads, each with its own columns. The largest difference "
        f"between the two results is **{format_small(difference)}**{'' if difference else ': bit for bit the same'}"
        f"{'; float32 keeps about seven digits' if difference else ''}. Each head has its own "
        "numbers, yet one matrix product computes them all."
    )


def show_products(o: OpenStage) -> None:
    """Show the product of a query and a key."""
    t = o.trace
    text, charts = split_columns()
    score = float(t.scores[o.head, o.query, o.key])
    parts = t.q[o.head, o.query] * t.k[o.head, o.key]
    largest = int(np.abs(parts).argmax())
    rotation_note = " Both are rotated by their positions." if t.rotation else ""
    with text:
        st.markdown(
            rf"""## How well a query and a key agree
The query says what this head looks for; the key says what it finds.{rotation_note}

$$q \cdot k = \sum_{{i=0}}^{{{t.d_k - 1}}} q_i k_i = {score:.2f}$$
"""
        )
        show_shapes(f"q, k {t.d_k} numbers each", "q · k 1 number")
    with text, make_more_expander():
        st.markdown(
            rf"""The query of {o.quote_token(o.query)} and the key of {o.quote_token(o.key)} are multiplied number by
number, and the {t.d_k} products are summed. Where both have the same sign the product is above zero (orange) and
counts for the pair; opposite signs (blue) count against it. The largest is number {largest}:
{decimal(t.q[o.head, o.query, largest])} × {decimal(t.k[o.head, o.key, largest])} = {decimal(parts[largest])}.
Nothing here knows about grammar: what q and k mean was learned with $W_Q$ and $W_K$.
"""
        )
    alt = f"q, k and their products; the sum is {decimal(score)}"
    draw_chart(charts, o, "products", alt, lambda theme: draw.draw_products(t, o.head, o.query, o.key, theme))


def show_scale(o: OpenStage) -> None:
    """Show the division of the scores by √d_k."""
    t = o.trace
    text, charts = split_columns()
    with text:
        st.markdown(
            "### Divided, so that softmax stays soft" if t.has_standard_scaling else "### Scaled before softmax"
        )
        if not t.has_standard_scaling:
            show_remark(f"This model does not divide by √d_k: it multiplies by {t.scaling:.4g}.")
        st.markdown("Softmax of large scores **saturates**: one weight takes nearly all.")
        _show_division_switch(o)
        show_shapes(f"scores {t.heads} heads × {t.n} × {t.n}")
    with text, make_more_expander():
        st.markdown(
            rf"""A sum of {t.d_k} products grows with their number: for numbers of mean 0 and variance 1 its standard
deviation is $\sqrt{{d_k}}$ = {math.sqrt(t.d_k):.2f}. Where softmax saturates, the gradient nearly vanishes, and the
head stops learning. This is why the scores are divided ({SDPA_LINK}, with its footnote on variance).

{_describe_saturation(o)}
"""
        )
    with text:
        report_omitted_tokens(o)
    alt = "Scores and weights of one query with and without the division"
    selection = (o.head, o.query, o.tokens, o.key)
    draw_chart(charts, o, "scale", alt, lambda theme: draw.draw_softmaxes(t, *selection, theme, o.is_divided))
    explain_score(o, charts)


def _describe_saturation(o: OpenStage) -> str:
    """Return the row's entropy and largest weight, with and without the division."""
    t = o.trace
    row, undivided_weights = t.weights[o.head, o.query], t.undivided(o.head)[o.query]
    visible_count = int((~t.mask[o.query]).sum())
    return (
        f"The row of {o.quote_token(o.query)}: largest weight **{percent(row.max())}**, entropy "
        f"**{entropy(row):.2f}** nats of at most ln {visible_count} = {math.log(visible_count):.2f}. Without the "
        f"division: **{percent(undivided_weights.max())}**, **{entropy(undivided_weights):.2f}** nats."
    )


def _show_division_switch(o: OpenStage) -> None:
    label = r"Without the division by $\sqrt{d_k}$"
    bind_control(
        st.toggle, label, "divide", not o.is_divided, change=lambda is_on: {"divide": "no" if is_on else None},
        key="inside_undivided",
    )  # fmt: skip


def show_mask(o: OpenStage) -> None:
    """Show which tokens the mask hides, as a chart if it hides any."""
    t = o.trace
    text, charts = split_columns()
    masked_count = int(t.mask.sum())
    sentence = (
        f"{_explain_mask(t)}: **{masked_count} of the {t.n * t.n}** cells are masked. Their scores become −∞ before "
        "the softmax, which makes their weights exactly 0."
        if t.masked
        else "This model reads in both directions: **nothing is masked**, every token may look at every token."
    )
    with text:
        st.markdown(f"### Who may look at whom\n{sentence}")
    with text, make_more_expander():
        st.markdown(
            "The mask is the same for all heads. A model that reads left to right, such as GPT-2, masks the upper "
            "triangle; padding in a batch masks whole columns."
        )
    if not t.masked:
        return
    alt = f"Which keys each query may look at; {masked_count} cells are masked"
    draw_chart(charts, o, "mask", alt, lambda theme: draw.draw_mask(t, o.tokens, o.query, o.key, theme))


def _explain_mask(t: Trace) -> str:
    reasons = ["This model reads left to right, so no token may look at a later one"] if t.causal else []
    reasons += ["This layer sees only a window of the text, so no token may look at distant ones"] if t.windowed else []
    return "; t".join([reasons[0], *(reason[1:] for reason in reasons[1:])])


def show_softmax(o: OpenStage) -> None:
    """Show the softmax of the scores."""
    t = o.trace
    weights = t.weights[o.head] if o.is_divided else t.undivided(o.head)
    text, charts = split_columns()
    with text:
        formula, more_text = (
            _write_softmax(o) if o.is_divided else _write_undivided_softmax(o, float(weights[o.query, o.key]))
        )
        st.markdown(formula)
        _show_division_switch(o)
        if not o.is_divided:
            show_remark(
                "Table and map show what this head would do. The picture above and Explore show the model itself."
            )
        show_shapes(f"A {t.heads} heads × {t.n} × {t.n}")
        make_more_expander().markdown(more_text)
        report_omitted_tokens(o)
    with charts, st.container(key="wide_inside_by_hand"):
        st.markdown(
            f"**The row of {o.quote_token(o.query)} by hand**: each score s becomes $e^s$, then a share of their sum."
        )
        st.markdown(format_softmax_table(t, o.head, o.query, o.key, o.tokens, o.is_divided))
    alt = f"Weights of head {o.head}, queries by keys{'' if o.is_divided else ', without the division'}"
    draw_chart(
        charts, o, "softmax", alt, lambda theme: draw.draw_token_matrix(t, weights, o.tokens, o.query, o.key, theme)
    )
    o.charts.append(_make_row_chart(o))


def _make_row_chart(o: OpenStage) -> PageChart:
    """Return the row that is computed by hand, as a chart to download with the numbers of the table."""
    label = "The row by hand: its scores, and the softmax of them"
    selection = (o.trace, o.head, o.query, o.tokens, o.key)
    numbers = partial(
        make_row_table, o.trace, o.head, o.query, o.is_divided, {"figure": label, "caption": o.description}
    )
    return o.make_chart("row", label, lambda theme: draw.draw_softmaxes(*selection, theme, o.is_divided), numbers)


def _write_softmax(o: OpenStage) -> tuple[str, str]:
    """Return the formula of the softmax, and an explanation with the numbers of this row."""
    t = o.trace
    share = percent(float(t.weights[o.head, o.query, o.key]))
    formula = rf"""## Scores become shares
$$A = \mathrm{{softmax}}\left({_write_scaled_scores(t)}\right)$$
"""
    more_text = rf"""Every scaled score s becomes $e^s$ and is divided by the sum of its row, so that each row sums to 1
({SDPA_LINK}). {o.quote_token(o.query)} gives **{share}** of its attention to {o.quote_token(o.key)}. This is the matrix
that Explore draws; the model's own differs from what is computed here by at most {format_small(t.agreement.weights)}.
"""
    return formula, more_text


def _write_undivided_softmax(o: OpenStage, share: float) -> tuple[str, str]:
    """Return the formula and an explanation without the division."""
    t, scores_tex = o.trace, _write_scaled_scores(o.trace)
    formula = rf"""## Scores become shares, here without the division
$$\mathrm{{softmax}}\left(q k^\top\right) \quad \text{{in place of}} \quad \mathrm{{softmax}}\left({scores_tex}\right)$$
"""
    more_text = rf"""Every score s, as it is, becomes $e^s$ and is divided by the sum of its row. The paper divides
({SDPA_LINK}). {o.quote_token(o.query)} would give **{percent(share)}** of its attention to
{o.quote_token(o.key)}; in the model it gives {percent(float(t.weights[o.head, o.query, o.key]))}.
"""
    return formula, more_text


def _write_scaled_scores(t: Trace) -> str:
    """Return the input of the softmax in TeX."""
    return r"\frac{q k^\top}{\sqrt{d_k}}" if t.has_standard_scaling else rf"{t.scaling:.4g} \cdot q k^\top"
