"""The page on which heads are switched off: the effect of each head alone, and of those that are chosen together."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from mha_viz.analysis.distance import per_head
from mha_viz.analysis.effects import Effects, Together
from mha_viz.attention import Attention, Head
from mha_viz.errors import MhaVizError
from mha_viz.figures import effects as charts
from mha_viz.figures.caption import both
from mha_viz.figures.head_map import CONFIG
from mha_viz.models import catalog
from mha_viz.ui import address, inference, navigation
from mha_viz.ui.address import Address
from mha_viz.ui.head_grid import head_grid
from mha_viz.ui.parts import complain, remark, say_complaint, theme
from mha_viz.ui.request import PageRequest
from mha_viz.ui.switch_off.computed import Question, at_once, each_head
from mha_viz.ui.switch_off.controls import controls, on_square

CHANGE = "1 − cosine"
INTRODUCTION = "Click a square to switch that head off; everything above it is computed again without it."
CAUTION = (
    "A pattern of attention shows where a head looks, not whether the model needs it. And a small effect does not mean "
    "that a head is useless: others may do the same, and this is one sentence and one measure of change."
)


def show(what: PageRequest) -> None:
    """The page, from what the URL asks for. CoNLL-U that was pasted is read as the sentence it holds."""
    say_complaint()
    st.header("Switch heads off")
    st.markdown(INTRODUCTION, width=900)
    attention = inference.requested_reading(what.sentence, what.where)
    if attention is None:
        return
    inference.say_cut(attention, what.where)
    off = _existing(attention, what.where)
    question = Question(catalog.resolve(attention.model), attention, what.where.how)
    left, right = st.columns([7, 4], gap="large")  # on a phone the left one comes first
    with right:
        controls(attention, off, question.way)
    try:
        _effects(question, off, left, right)
    except MhaVizError as error:
        complain(error)


def _effects(question: Question, off: tuple[Head, ...], left: Any, right: Any) -> None:
    """Each head alone in the left column, what there is to say in the right one, and what changes below both. Raises
    what the model raises."""
    with left:
        effects = each_head(question)
        if effects is not None:
            _map(effects, off)
    with right:
        effect = at_once(question._replace(off=off)) if off else None
        if effect is not None:
            _summary(effects, effect, off)
        elif effects is not None and not off:
            _most(effects)
    if effect is not None:
        _changes(question, effect, off)


def _existing(attention: Attention, where: Address) -> tuple[Head, ...]:
    """Those of the heads of the URL that the model has, with a word on others and on what cannot be read."""
    odd = [one for one in where.complaints if one.startswith(("off=", "how="))]
    every = set(attention.every_head())
    odd += [str(head) for head in where.off if head not in every]
    if odd:
        remark(f"Part of this link could not be used ({', '.join(odd[:6])}).")
    return tuple(head for head in where.off if head in every)


def _map(effects: Effects, off: tuple[Head, ...]) -> None:
    chart = charts.head_grid(effects.sentence, CHANGE, off, theme())
    head_grid(chart, "effects", "Effect of each head on the sentence vector.", on_square)
    st.caption(
        "How much the sentence vector, which is the mean of the last layer’s states, changes when that head alone is "
        "off: 1 − cosine, in thousandths."
    )


def _most(effects: Effects) -> None:
    """What there is to see while no head is off."""
    first, last = effects.ranked()[0], effects.ranked()[-1]
    st.subheader("No head is off")
    st.markdown(
        f"Without **{both(first)}** the sentence vector changes most ({_thousandths(effects.sentence[first])}), "
        f"without **{both(last)}** least ({_thousandths(effects.sentence[last])}). {CAUTION}"
    )


def _summary(effects: Effects | None, effect: Together, off: tuple[Head, ...]) -> None:
    """The effect in words: its rank among heads, where these were measured, and beside as much taken away at random."""
    st.subheader(f"Without {both(off[0])}" if len(off) == 1 else f"Without {len(off)} heads")
    change = f"The sentence vector changes by **{_thousandths(effect.sentence)}**."
    st.markdown(change if effects is None else f"{change} {_beside(effects, off)}")
    weaker = int((effect.random < effect.sentence).sum())
    st.markdown(
        f"Losing as much in random directions instead changes it by {1000 * effect.random.min():.1f} to "
        f"{_thousandths(effect.random.max())}: less than this in {weaker} of {len(effect.random)} draws."
    )
    st.markdown(CAUTION)


def _beside(effects: Effects, off: tuple[Head, ...]) -> str:
    """Of one head its rank, of several what they change one at a time."""
    if len(off) == 1:
        return f"Of {effects.sentence.size} heads, each off alone, it is number {effects.ranked().index(off[0]) + 1}."
    alone = sum(float(effects.sentence[head]) for head in off)
    return f"Switched off one at a time, their changes add up to {_thousandths(alone)}."


def _thousandths(value: float) -> str:
    return f"{1000 * value:.1f} thousandths"


def _changes(question: Question, effect: Together, off: tuple[Head, ...]) -> None:
    """What changes in tokens and in other heads, and the way to see it in Explore."""
    attention, text = question.attention, question.attention.text
    reading = inference.without(question.model, text.text, text.pair, off, question.way)
    without = inference.wait(reading, "Reading the text again…")
    moved = per_head(attention, without)
    moved[: off[0].layer + 1] = np.nan  # they read what they read before
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader("Which tokens change")
        st.markdown("1 − cosine of each token’s state after the last layer.")
        bars = charts.token_bars([token.text for token in text.tokens], effect.tokens, theme())
        with st.container(key="wide_tokens"):
            st.plotly_chart(bars, key="tokens", theme=None, config=CONFIG, alt="Change of each token.")
    with right:
        st.subheader("Which heads attend differently")
        st.markdown(
            "Jensen–Shannon divergence of each later head’s attention from what it was, in thousandths of a nat; at "
            "most 693."
        )
        chart = charts.head_grid(moved, "nats", off, theme())
        head_grid(chart, "later_heads", "Change of each later head’s attention.")
    st.page_link(
        navigation.page("explore"),
        label="Open the attention without these heads in Explore →",
        query_params={**address.now(), "head": str(_most_moved(moved, off))},
    )


def _most_moved(moved: Any, off: tuple[Head, ...]) -> Head:
    """The head whose attention changes most; where none can, the first that is off."""
    if np.isnan(moved).all():
        return off[0]
    return Head(*map(int, np.unravel_index(np.nanargmax(moved), moved.shape)))
