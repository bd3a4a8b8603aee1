"""The steps inside a head, one function each: what happens in plain words, and its numbers drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from mha_viz.analysis.distance import entropy
from mha_viz.figures import inside as draw
from mha_viz.figures.head_map import CONFIG
from mha_viz.figures.theme import Theme
from mha_viz.numerals import decimal, percent, small
from mha_viz.trace import Trace
from mha_viz.ui import address
from mha_viz.ui.inside.by_hand import softmax_table
from mha_viz.ui.parts import guarded, plain, remark

ONE_HEAD = "[Vaswani et al. 2017, section 3.2.1](https://arxiv.org/abs/1706.03762)"  # scaled dot-product attention
ALL_HEADS = "[Vaswani et al. 2017, section 3.2.2](https://arxiv.org/abs/1706.03762)"  # multi-head attention
KOBAYASHI = "[Kobayashi et al. 2020](https://arxiv.org/abs/2004.10102)"


@dataclass(frozen=True)
class Opened:
    """What the page is open at. ``tokens``: those that charts show; ``divided``: False leaves √d_k out."""

    trace: Trace
    head: int
    query: int
    key: int
    tokens: Sequence[int]
    divided: bool
    theme: Theme

    def word(self, token: int) -> str:
        """A token in quotation marks, for Markdown."""
        return f"“{plain(self.trace.text.tokens[token].text[:30])}”"


class Step(NamedTuple):
    """One step: its name on the map, the shape of what it makes, whether each head does it, and its page, which leaves
    the column of its text for what follows.
    """

    label: str
    shape: Callable[[Trace], str]
    inside: bool
    show: Callable[[Opened], Any]


def _vectors(o: Opened) -> Any:
    t = o.trace
    tokens = draw.from_the_start(t, o.query, o.key)
    normed = (
        f" The layers of this model **normalise first** (layer norm): x is the normalised form of what enters, again "
        f"{t.d_model} numbers."
        if t.pre_norm
        else ""
    )
    text, charts = _halves()
    with text:
        st.markdown(
            f"""### Every head gets the same x
A token enters the layer as {t.d_model} numbers.{normed} All {t.heads} heads get **this same x**, whole: no head
gets only a part of the sentence or of the vector. Choose another head above: nothing here changes.

x of {o.word(o.query)} begins with {_some(t.x[o.query])}.
"""
        )
        _shapes(f"x {t.n} × {t.d_model}")
        if len(tokens) < t.n:
            remark(f"Only the first {draw.DRAWN} of {t.n} tokens are drawn, plus the query and the key.")
    alt = f"x, {len(tokens)} tokens by {t.d_model} numbers"
    _chart(charts, draw.vectors(t, tokens, o.query, o.key, o.theme), "x", alt)
    return text


def _linear(o: Opened) -> Any:
    t, p = o.trace, o.trace.parameters
    first = o.head * t.d_k
    product = float(t.x[o.query] @ p.w_q[:, first])
    text, charts = _halves()
    with text:
        st.markdown(
            rf"""### The vector is projected in full, not cut
Each head has matrices of its own, $W_Q$, $W_K$ and $W_V$, and multiplies **the whole** of x by them. Models store those
of all heads side by side as one {t.d_model} × {t.heads * t.d_k} matrix; head {o.head} owns the framed columns, {first}
to {first + t.d_k - 1}. What is split is the *result* of one product, into {t.heads} heads of $d_k$ = {t.d_k}
numbers: all {t.d_model} numbers of x enter each of them.

$$q = x W_Q \qquad k = x W_K \qquad v = x W_V$$

{ALL_HEADS}; models add a bias. The first number of q of {o.word(o.query)}: {t.d_model} products that sum to
{decimal(product, 3)}, plus the bias {decimal(p.b_q[first], 3)}, is **{decimal(t.q[o.head, o.query, 0], 3)}**.
"""
        )
        every = t.heads * t.d_k
        _shapes(
            f"x {t.n} × {t.d_model}",
            f"x W {t.n} × {every}",
            f"q, k, v {t.heads} heads × {t.n} × {t.d_k}",
        )
        _together(t)
        remark(
            "In the whole matrices each cell stands for a block of numbers: the stronger its colour, the larger they "
            "are; each matrix has its own scale. The matrices of this head show every number on one scale: orange is "
            "above zero, blue below."
        )
    _chart(charts, draw.stacked(t, o.head, o.theme), "stacked", "W_Q, W_K and W_V with the head’s columns framed")
    _chart(charts, draw.slices(t, o.head, o.theme), "slices", f"The three matrices of head {o.head}")
    return text


def _together(t: Trace) -> None:
    different = t.loop_difference
    st.markdown(
        f"**One operation, not {t.heads}.** Just now both were run on this text: all heads at once, as products of "
        f"whole matrices, and a loop over the {t.heads} heads, each with its own columns. The largest difference "
        f"between the two results is **{small(different)}**{'' if different else ': bit for bit the same'}"
        f"{'; float32 keeps about seven digits' if different else ''}. Each head has its own "
        "numbers, yet one matrix product computes them all."
    )


def _products(o: Opened) -> Any:
    t = o.trace
    text, charts = _halves()
    score = float(t.scores[o.head, o.query, o.key])
    parts = t.q[o.head, o.query] * t.k[o.head, o.key]
    largest = int(np.abs(parts).argmax())
    with text:
        st.markdown(
            rf"""### How well a query and a key agree
The query of {o.word(o.query)} says what this head looks for there; the key of {o.word(o.key)} says what it finds here.
Number by number they are multiplied, and the {t.d_k} products are summed:

$$q \cdot k = \sum_{{i=0}}^{{{t.d_k - 1}}} q_i k_i = {score:.2f}$$

Where both have the same sign the product is above zero (orange) and counts for the pair; opposite signs (blue) count
against it. The largest is number {largest}:
{decimal(t.q[o.head, o.query, largest])} × {decimal(t.k[o.head, o.key, largest])} = {decimal(parts[largest])}.
Nothing here knows about grammar: what q and k mean was learned with $W_Q$ and $W_K$.
"""
        )
        _shapes(f"q, k {t.d_k} numbers each", "q · k 1 number")
    alt = f"q, k and their products; the sum is {decimal(score)}"
    _chart(charts, draw.products(t, o.head, o.query, o.key, o.theme), "products", alt)
    return text


def _scale(o: Opened) -> Any:
    t = o.trace
    text, charts = _halves()
    with text:
        st.markdown("### Divided, so that softmax stays soft" if t.divides else "### Scaled before softmax")
        if not t.divides:
            remark(f"This model does not divide by √d_k: it multiplies by {t.scaling:.4g}.")
        st.markdown(
            rf"""A sum of {t.d_k} products grows with their number: for numbers of mean 0 and variance 1 its standard
deviation is $\sqrt{{d_k}}$ = {math.sqrt(t.d_k):.2f}. Softmax of large scores **saturates**: one weight takes nearly
all, the gradient nearly vanishes, and the head stops learning. This is why the scores are divided ({ONE_HEAD}, with its
footnote on variance).

{_saturation(o)}
"""
        )
        _switch(o)
        _shapes(f"scores {t.heads} heads × {t.n} × {t.n}")
        _left_out(o)
    figure = draw.both_softmaxes(t, o.head, o.query, o.tokens, o.key, o.theme, o.divided)
    _chart(charts, figure, "scale", "Scores and weights of one query with and without the division")
    return text


def _saturation(o: Opened) -> str:
    """The row's entropy and largest weight, both ways."""
    t = o.trace
    row, other = t.weights[o.head, o.query], t.undivided(o.head)[o.query]
    allowed = int((~t.mask[o.query]).sum())
    return (
        f"The row of {o.word(o.query)}: largest weight **{percent(row.max())}**, entropy **{entropy(row):.2f}** nats "
        f"of at most ln {allowed} = {math.log(allowed):.2f}. Without the division: **{percent(other.max())}**, "
        f"**{entropy(other):.2f}** nats."
    )


def _switch(o: Opened) -> None:
    st.session_state["inside_undivided"] = not o.divided
    st.toggle(r"Without the division by $\sqrt{d_k}$", key="inside_undivided", on_change=_on_switch)


@guarded()
def _on_switch() -> None:
    address.go(divide="no" if st.session_state["inside_undivided"] else None)


def _mask(o: Opened) -> Any:
    t = o.trace
    text, charts = _halves()
    hidden = int(t.mask.sum())
    sentence = (
        f"This model reads left to right, so no token may look at a later one: **{hidden} of the {t.n * t.n}** cells "
        "are masked. Their scores become −∞ before the softmax, which makes their weights exactly 0."
        if t.masked
        else "This model reads in both directions, and one text stands here alone, without padding: **nothing is "
        "masked**, every token may look at every token. A model that reads left to right, such as GPT-2, masks the "
        "upper triangle; padding in a batch masks whole columns."
    )
    with text:
        st.markdown(f"### Who may look at whom\n{sentence} The mask is the same for all heads.")
        _shapes(f"mask {t.n} × {t.n}")
        _left_out(o)
    figure = draw.mask(t, o.tokens, o.query, o.key, o.theme)
    _chart(charts, figure, "mask", f"Which keys each query may look at; {hidden} cells are masked")
    return text


def _softmax(o: Opened) -> Any:
    t = o.trace
    weights = t.weights[o.head] if o.divided else t.undivided(o.head)
    computed, real = (float(matrix[o.query, o.key]) for matrix in (weights, t.weights[o.head]))
    text, charts = _halves()
    with text:
        if o.divided:
            st.markdown(
                rf"""### Scores become shares
Every scaled score s becomes $e^s$ and is divided by the sum of its row, so that each row sums to 1:

$$A = \mathrm{{softmax}}\left({_scaled(t)}\right)$$

({ONE_HEAD}.) {o.word(o.query)} gives **{percent(computed)}** of its attention to {o.word(o.key)}. This is the matrix
that Explore draws; the model's own differs from what is computed here by at most {small(t.agreement.weights)}.
"""
            )
        else:
            st.markdown(
                rf"""### Scores become shares, here without the division
Every score s, as it is, becomes $e^s$ and is divided by the sum of its row, so that each row sums to 1:

$$\mathrm{{softmax}}\left(q k^\top\right) \qquad \text{{in place of}} \qquad
\mathrm{{softmax}}\left({_scaled(t)}\right)$$

The paper divides ({ONE_HEAD}). {o.word(o.query)} would give **{percent(computed)}** of its attention to
{o.word(o.key)}; in the model it gives {percent(real)}.
"""
            )
        _switch(o)
        if not o.divided:
            remark("The map shows what this head would do. Explore, and the steps after this, show the model itself.")
        _shapes(f"A {t.heads} heads × {t.n} × {t.n}")
        _left_out(o)
    with charts, st.container(key="wide_inside_by_hand"):
        st.markdown(
            f"**The row of {o.word(o.query)} by hand**: each score s becomes $e^s$; its part of their sum is the share."
        )
        st.markdown(softmax_table(t, o.head, o.query, o.key, o.tokens, o.divided))
    alt = f"Weights of head {o.head}, queries by keys{'' if o.divided else ', without the division'}"
    _chart(charts, draw.square(t, weights, o.tokens, o.query, o.key, o.theme), "softmax", alt)
    return text


def _values(o: Opened) -> Any:
    t = o.trace
    text, charts = _halves()
    row = t.weights[o.head, o.query]
    top = int(row.argmax())
    with text:
        st.markdown(
            rf"""### The weights mix the values
What a token hands over is not its x but its value, v = $x W_V$. Each value is multiplied by the weight that
{o.word(o.query)} gives it, and the rows are added up:

$$\mathrm{{head}} = A\,v$$

The result is {t.d_k} numbers: a weighted mean of the values. Most of it here comes from {o.word(top)}
({percent(row[top])}). Queries and keys decide *where* a head looks, values decide *what* it takes from there.
"""
        )
        _shapes(f"A {t.n} × {t.n}", f"v {t.n} × {t.d_k}", f"A v {t.n} × {t.d_k}")
        _left_out(o)
        remark("Orange is above zero, blue below. Weight × v and the sum share one scale, v has its own.")
    _chart(
        charts,
        draw.values(t, o.head, o.query, o.tokens, o.theme, o.key),
        "values",
        "Weights, values, and weight times value",
    )
    return text


def _concat(o: Opened) -> Any:
    t = o.trace
    text, charts = _halves()
    first = o.head * t.d_k
    with text:
        st.markdown(
            f"""### The heads side by side
Each of the {t.heads} heads has computed {t.d_k} numbers for {o.word(o.query)}. They are placed side by side:
{t.heads} × {t.d_k} = {t.heads * t.d_k} numbers, as wide as x was. Columns {first} to {first + t.d_k - 1} are head
{o.head}'s. Nothing is mixed yet: each colour is one head.

This is also where training tells the heads apart: the gradient of a head comes back through its own columns
and the rows of $W_O$ that multiply them.
"""
        )
        _shapes(f"{t.heads} heads × {t.n} × {t.d_k}", f"concatenation {t.n} × {t.heads * t.d_k}")
    alt = f"The outputs of {t.heads} heads side by side"
    _chart(charts, draw.concatenation(t, o.head, o.query, o.theme), "concat", alt)
    return text


def _output(o: Opened) -> Any:
    t = o.trace
    length = float(np.linalg.norm(t.contribution(o.head)[o.query]))
    entered = "not x, but what x was before it was normalised" if t.pre_norm else "in this model that is x"
    text, charts = _halves()
    with text:
        st.markdown(
            rf"""### $W_O$ mixes the outputs of the heads
The concatenation is multiplied by one last matrix:

$$\mathrm{{Concat}}(\mathrm{{head}}_1, \ldots, \mathrm{{head}}_h)\,W_O = \sum_i \mathrm{{head}}_i W_O^{{(i)}}$$

({ALL_HEADS}.) Head {o.head} is multiplied only by its own {t.d_k} rows of $W_O$, so **the output is a sum with one
term for each head**. For {o.word(o.query)} head {o.head} adds a vector of length {length:.2f}.

All {t.heads} terms and the bias together differ from the output of the model itself by at most
**{small(t.agreement.output)}**. Then what entered the layer is added (the residual connection): {entered}.
"""
        )
        _shapes(
            f"concatenation {t.n} × {t.heads * t.d_k}",
            f"W<sub>O</sub> {t.heads * t.d_k} × {t.d_model}",
            f"out {t.n} × {t.d_model}",
        )
        st.markdown(
            f"**A weight is not an effect.** A head may attend strongly to a token whose value vector is short. "
            f"{KOBAYASHI} "
            f"therefore measure the length of weight × v × $W_O$, the last chart. {_disagreement(o)}"
        )
        _left_out(o)
    _chart(charts, draw.mixing(t, o.head, o.theme), "mixing", "W_O with the head’s rows framed")
    _chart(
        charts, draw.contributions(t, o.head, o.query, o.theme), "contributions", "What each head adds to the output"
    )
    figure = draw.weights_and_norms(t, o.head, o.query, o.tokens, o.key, o.theme)
    _chart(charts, figure, "norms", "Weights, and lengths of the weighted values")
    return text


def _disagreement(o: Opened) -> str:
    """Whether weight and length name the same token, in this row."""
    weights, lengths = o.trace.weights[o.head, o.query], o.trace.norm_weighted(o.head)[o.query]
    most, longest = int(weights.argmax()), int(lengths.argmax())
    if most == longest:
        return f"Both measures pick {o.word(most)} here."
    return f"Here the largest weight is on {o.word(most)}, but the longest contribution comes from {o.word(longest)}."


# ---- Parts ------------------------------------------------------------------------------------------------


def _halves() -> tuple[Any, Any]:
    left, right = st.columns([4, 7], gap="large")
    return left, right


def _chart(where: Any, figure: Any, name: str, alt: str) -> None:
    with where, st.container(key=f"wide_inside_{name}"):
        st.plotly_chart(
            figure,
            key=f"inside_{name}",
            theme=None,
            config={**CONFIG, "displayModeBar": False},
            width="content" if figure.layout.width else "stretch",
            alt=alt,
        )


def _shapes(*shapes: str) -> None:
    """The shapes that lead to each other, as one line of type."""
    st.html(f'<p class="inside-shapes">{" → ".join(f"<span>{shape}</span>" for shape in shapes)}</p>')


def _some(numbers: Any) -> str:
    return "(" + ", ".join(decimal(number) for number in numbers[:5]) + ", …)"


def _left_out(o: Opened) -> None:
    if len(o.tokens) < o.trace.n:
        remark(
            f"Only {len(o.tokens)} of {o.trace.n} tokens are drawn: the query, the key, and those to which the query "
            "gives most attention in this head."
        )


def _scaled(t: Trace) -> str:
    """What softmax is given, in TeX."""
    return r"\frac{q k^\top}{\sqrt{d_k}}" if t.divides else rf"{t.scaling:.4g} \cdot q k^\top"


def _wide(t: Trace) -> str:
    return f"{t.n} × {t.heads * t.d_k}"


STEPS: Mapping[str, Step] = MappingProxyType(
    {
        "x": Step("x", lambda t: f"{t.n} × {t.d_model}", False, _vectors),
        "linear": Step("Linear", lambda t: "W_Q  W_K  W_V", False, _linear),
        "products": Step("q · k", lambda t: f"{t.d_k} products", True, _products),
        "scale": Step("÷ √d_k", lambda t: f"√{t.d_k}" if t.divides else f"× {t.scaling:.2g}", True, _scale),
        "mask": Step("Mask", lambda t: "left to right" if t.masked else "none here", True, _mask),
        "softmax": Step("Softmax", lambda t: f"{t.n} × {t.n}", True, _softmax),
        "values": Step("× v", lambda t: f"{t.n} × {t.d_k}", True, _values),
        "concat": Step("Concat", _wide, False, _concat),
        "output": Step("Linear", lambda t: "W_O", False, _output),
    }
)
