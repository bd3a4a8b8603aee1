"""How many heads can be removed before the answer changes, and which few heads make another word the answer."""

from __future__ import annotations

from functools import partial

import numpy as np
import streamlit as st

from mha_viz.analysis.effects import Effects
from mha_viz.analysis.removal import ORDERS, Removal, Switch, order_of, removal, switch
from mha_viz.attention import Attention, Head
from mha_viz.drawing.table import Table
from mha_viz.figures import answers as charts
from mha_viz.figures.caption import both, reading
from mha_viz.figures.head_map import CONFIG
from mha_viz.heads import in_link
from mha_viz.numerals import decimal
from mha_viz.reader import verbs
from mha_viz.request import COSINE, Question, Request
from mha_viz.ui import address, inference
from mha_viz.ui.address import Address
from mha_viz.ui.bound import bound
from mha_viz.ui.caches import model_service
from mha_viz.ui.classroom import legible
from mha_viz.ui.download_panel import PageChart
from mha_viz.ui.parts import plain, theme
from mha_viz.ui.switch_off.answering import answer_of, in_which, measured, unit

LABELS = {"least": "least effect first", "most": "most effect first", "random": "at random"}


def show_removal(attention: Attention, request: Request, effects: Effects, where: Address) -> list[PageChart]:
    """Show the curve of an answer while heads are removed one by one, once an order is chosen. Returns the curve as a
    chart."""
    question = request.question
    effect = "sentence" if question is None else where.effect
    st.subheader("How many can go?")
    st.markdown("Heads go one after another and stay off.")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        bound(
            st.segmented_control, "Order", "order", where.order or None, ORDERS,
            format_func=LABELS.__getitem__, label_visibility="collapsed", wrap=True,
        )  # fmt: skip
        if where.order == "random":
            st.button("Another order", key="reshuffle", on_click=address.go, kwargs={"seed": str(where.seed + 1)})
    if not where.order:
        return []
    order = order_of(effects, where.order, effect, where.seed)
    curve = _curve(attention, request, order)
    st.markdown(_sentence(curve, question))
    draw = partial(charts.removal_curve, curve, effect, unit(question, effect))
    about = f"Heads are off one after the other ({request.manner}{in_which(question)}); {reading(attention)}."
    alt = "Effect while heads are removed one by one"
    st.plotly_chart(legible(draw(theme())), key="removal", theme=None, config=CONFIG, alt=f"{alt}.")
    return [PageChart(f"{alt}, {LABELS[where.order]}", "removal", draw, about, lambda: _table(curve, about))]


def _table(curve: Removal, about: str) -> Table:
    """A row for each number of removed heads."""
    last, answer = [None, *map(str, curve.order)], [None if np.isnan(one) else float(one) for one in curve.answer]
    rows = zip(range(len(last)), last, answer, curve.sentence.tolist(), strict=True)
    return Table(("heads_off", "last_head", "effect_on_answer", "effect_on_sentence"), tuple(rows), {"caption": about})


def _sentence(curve: Removal, question: Question | None) -> str:
    heads = len(curve.order)
    if question is None or question.kind == COSINE:
        changes, of = (curve.sentence, "sentence vector") if question is None else (curve.answer, "cosine")
        half = int(np.argmax(changes >= changes[-1] / 2))
        return f"Half of the change of the {of} without all {heads} heads is reached with {half} of them off."
    if curve.first_change is None:
        return f"The most probable word stays the same, even with all {heads} heads off."
    first = both(curve.order[curve.first_change - 1])
    return (
        f"With {curve.first_change} of {heads} heads off, {first} the last of them, another word is the most probable."
    )


def _curve(attention: Attention, request: Request, order: tuple[Head, ...]) -> Removal:
    """The curve of the answer. Raises what the model raises, Busy, and Cancelled."""
    steps = partial(
        removal,
        order,
        len(attention.text),
        lambda variants: model_service().ask(verbs.lost_each, request, variants).result(),
    )
    return measured("removal", attention, request, "Removing heads", steps, order)


# ---- Another answer -----------------------------------------------------------------------------------------


def show_switch(attention: Attention, request: Request, where: Address) -> None:
    """Show which few heads make another word the answer, once a word is chosen."""
    question = request.question
    if question is None or question.kind == COSINE:
        return
    st.subheader("Which heads keep another word from being the answer?")
    answer = answer_of(request)
    others = [word for word in answer.words if word != answer.best[0]]
    wanted = where.want if where.want in others else None
    bound(st.selectbox, "Word", "want", wanted, others, index=None, placeholder="Choose a word", width=240)
    if wanted is None:
        return
    place = question.place if question.places else None
    of_word = Request(request.model, *request.texts, place=place, word=wanted, prefix=request.prefix)
    asking = model_service().cached(verbs.question, of_word)
    other = inference.wait(asking, "Asking the model…")
    about = request.about(other)
    steps = partial(
        switch,
        attention.every_head(),
        len(attention.text),
        lambda variants: model_service().ask(verbs.margins, about, variants).result(),
    )
    _say_switch(measured("removal", attention, about, "Looking for heads", steps, "switch"), wanted)


def _say_switch(switched: Switch, wanted: str) -> None:
    word, names = plain(wanted), ", ".join(map(both, switched.heads))
    margin = decimal(abs(switched.margins[-1]), 2)
    if switched.is_answer:
        st.markdown(
            f"Without {names} the answer is **{word}**: it lies {margin} in log p above the next best word. They "
            "were found one after the other: a smaller set may exist."
        )
    elif switched.heads:
        nearest = f"Without {names} it comes nearest, {margin} in log p below the most probable word."
        st.markdown(f"**{word}** does not become the answer. {nearest}")
    else:
        st.markdown(f"**{word}** does not become the answer: no head alone brings it nearer.")
    if switched.heads:
        off = in_link(switched.heads)
        st.button("Switch these off", key="switch_these", on_click=address.go, kwargs={"off": off})
