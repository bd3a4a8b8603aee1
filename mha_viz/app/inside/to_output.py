"""The parts of the stages from the attention weights to the words. Each function shows an explanation and charts."""

from __future__ import annotations

from functools import partial
from html import escape

import numpy as np
import streamlit as st

from mha_viz.app.inside.open_stage import (
    MHA_LINK,
    OpenStage,
    draw_chart,
    make_more_expander,
    report_omitted_tokens,
    show_shapes,
    split_columns,
)
from mha_viz.app.widgets.parts import show_remark
from mha_viz.attention.outputs import INPUT_EMBEDDINGS, OUTPUT_MATRIX, HeadOutput
from mha_viz.figures.charts import inside as draw
from mha_viz.figures.drawing.table import Table
from mha_viz.numerals import format_small, percent

KOBAYASHI = "[Kobayashi et al. 2020](https://arxiv.org/abs/2004.10102)"


def show_values(o: OpenStage) -> None:
    """Show how the weights mix the values."""
    t = o.trace
    text, charts = split_columns()
    row = t.weights[o.head, o.query]
    top_key = int(row.argmax())
    lengths = row * np.linalg.norm(t.v[o.head], axis=-1)
    longest_key = int(lengths.argmax())
    with text:
        st.markdown(
            r"""## The weights mix the values
Each value, v = $x W_V$, is multiplied by its weight, and the rows are added up:

$$\mathrm{head} = A\,v$$
"""
        )
        show_shapes(f"A {t.n} × {t.n}", f"v {t.n} × {t.d_k}", f"A v {t.n} × {t.d_k}")
    with text, make_more_expander():
        st.markdown(
            f"""What a token hands over is not its x but its value; {o.quote_token(o.query)} gives each its weight.
The result is {t.d_k} numbers: a weighted mean of the values. The largest weight here is on {o.quote_token(top_key)}
({percent(row[top_key])}); the longest weighted value is that of {o.quote_token(longest_key)}
({percent(lengths[longest_key] / lengths.sum())} of their lengths). Queries and keys decide *where* a head looks, values
decide *what* it takes from there.
"""
        )
        report_omitted_tokens(o)
        show_remark("Orange is above zero, blue below. Weight × v and the sum share one scale, v has its own.")
    alt = "Weights, values, and weight times value"
    draw_chart(charts, o, "values", alt, lambda theme: draw.draw_values(t, o.head, o.query, o.tokens, theme, o.key))


def show_concatenation(o: OpenStage) -> None:
    """Show the outputs of the heads side by side."""
    t = o.trace
    text, charts = split_columns()
    start = o.head * t.d_k
    width_note = ", as wide as x was" if t.heads * t.d_k == t.d_model else f"; x had {t.d_model}"
    with text:
        st.markdown(
            f"""## The heads side by side
Each head has computed {t.d_k} numbers for {o.quote_token(o.query)}. Nothing is mixed yet: each colour is one head.
"""
        )
        show_shapes(f"{t.heads} heads × {t.n} × {t.d_k}", f"concatenation {t.n} × {t.heads * t.d_k}")
    with text, make_more_expander():
        st.markdown(
            f"""{t.heads} × {t.d_k} = {t.heads * t.d_k} numbers stand side by side{width_note}. Columns {start} to
{start + t.d_k - 1} are head {o.head}'s. This is also where training makes heads differ: the gradient of a head comes
back through its own columns and the rows of $W_O$ that multiply them.
"""
        )
    alt = f"The outputs of {t.heads} heads side by side"
    draw_chart(charts, o, "concat", alt, lambda theme: draw.draw_concatenation(t, o.head, o.query, theme))


def show_output(o: OpenStage) -> None:
    """Show how W_O mixes the outputs of the heads."""
    t = o.trace
    length = float(np.linalg.norm(t.contribution(o.head)[o.query]))
    layer_input = "not x, but what x was before it was normalised" if t.pre_norm else "in this model that is x"
    text, charts = split_columns()
    with text:
        st.markdown(
            r"""### $W_O$ mixes the outputs of the heads
**The output is a sum with one term for each head.**

$$\mathrm{Concat}(\mathrm{head}_1, \ldots, \mathrm{head}_h)\,W_O = \sum_i \mathrm{head}_i W_O^{(i)}$$
"""
        )
    with text, make_more_expander():
        st.markdown(
            f"""The concatenation is multiplied by one last matrix ({MHA_LINK}). Head {o.head} is multiplied only by
its own {t.d_k} rows of $W_O$. For {o.quote_token(o.query)} head {o.head} adds a vector of length {length:.2f}.

All {t.heads} terms and the bias together differ from the output of the model itself by at most
**{format_small(t.agreement.output)}**. Then what entered the layer is added (the residual connection): {layer_input}.
"""
        )
        show_shapes(
            f"concatenation {t.n} × {t.heads * t.d_k}",
            f"W<sub>O</sub> {t.heads * t.d_k} × {t.d_model}",
            f"out {t.n} × {t.d_model}",
        )
        st.markdown(
            f"**A weight is not an effect.** A head may attend strongly to a token whose value vector is short. "
            f"{KOBAYASHI} therefore measure the length of weight × v × $W_O$, the last chart. {_compare_measures(o)}"
        )
        report_omitted_tokens(o)
    draw_chart(
        charts, o, "mixing", "W_O with the head’s rows framed", lambda theme: draw.draw_output_matrix(t, o.head, theme)
    )
    alt = "What each head adds to the output"
    draw_chart(charts, o, "contributions", alt, lambda theme: draw.draw_contributions(t, o.head, o.query, theme))
    norms_alt = "Weights, and lengths of the weighted values"
    selection = (o.head, o.query, o.tokens, o.key)
    draw_chart(charts, o, "norms", norms_alt, lambda theme: draw.draw_weights_and_norms(t, *selection, theme))


def show_words(o: OpenStage) -> None:
    """Show the words that the head writes."""
    text, charts = split_columns()
    with text:
        st.markdown(
            r"""## What the head writes
Each key's vector, $A_{ij}\,(x_j W_V + b_V)\,W_O$, moves the query towards some words and away from others.
"""
        )
    if isinstance(o.output, str):
        with text:
            show_remark(o.output)
        return
    with text, make_more_expander():
        matrix_name = {OUTPUT_MATRIX: "the model’s own output matrix", INPUT_EMBEDDINGS: "its input embeddings"}[
            o.output.matrix
        ]
        st.markdown(
            f"""Vectors are compared with words by {matrix_name}, behind the next norm, whose scale is kept as it was
([Elhage et al. 2021](https://transformer-circuits.pub/2021/framework/index.html)). A share is the projection on what
all heads and the bias add to {o.quote_token(o.query)}; all shares sum to 1.
"""
        )
        report_omitted_tokens(o)
    with charts:
        _show_word_table(o, o.output)
    selection = (o.head, o.query, o.tokens, o.key)
    draw_lengths, table = lambda theme: draw.draw_weights_and_norms(o.trace, *selection, theme), partial(_make_table, o)
    o.charts.append(o.make_chart("words", "Weights, and lengths of what each key adds", draw_lengths, table))


def _make_table(o: OpenStage) -> Table:
    """Return a table with a row for each key: its weight, norm, share, and the words."""
    assert isinstance(o.output, HeadOutput)
    table = o.output.table().reset_index()
    return Table(tuple(table.columns), tuple(table.itertuples(index=False, name=None)), {"caption": o.description})


def _show_word_table(o: OpenStage, output: HeadOutput) -> None:
    """Show a table with the words of each drawn key, the one with the largest share first."""
    rows = [
        f"<tr><th><bdi>{escape(o.trace.text.tokens[key].drawn)}</bdi></th><td>{percent(float(output.weights[key]))}</td>"
        f"<td>{percent(float(output.shares[key]))}</td>"
        + "".join(f"<td><bdi>{escape(', '.join(words))}</bdi></td>" for words in output.written[key])
        for key in sorted(o.tokens, key=lambda key: -abs(output.shares[key]))
    ]
    head = "".join(f"<th>{name}</th>" for name in ("key", "weight", "of the layer", "towards", "away from"))
    st.html(f'<table class="inside-words"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>')


def _compare_measures(o: OpenStage) -> str:
    """Say whether the largest weight and the longest contribution belong to the same token in this row."""
    weights, lengths = o.trace.weights[o.head, o.query], o.trace.norm_weighted(o.head)[o.query]
    heaviest_key, longest_key = int(weights.argmax()), int(lengths.argmax())
    if heaviest_key == longest_key:
        return f"Both measures pick {o.quote_token(heaviest_key)} here."
    return (
        f"Here the largest weight is on {o.quote_token(heaviest_key)}, but the longest contribution comes from "
        f"{o.quote_token(longest_key)}."
    )
