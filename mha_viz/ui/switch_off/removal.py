"""How many heads can be removed before the answer changes, and which few heads make another word the answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import numpy as np
import streamlit as st

from mha_viz.analysis.effects import PIECES, Changes, Effects, Numbers
from mha_viz.analysis.removal import ORDERS, Removal, Switch, order_of, removed, steps, switch
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
from mha_viz.ui.cache import office
from mha_viz.ui.classroom import legible
from mha_viz.ui.jobs import Desk, Job, Rules
from mha_viz.ui.parts import plain, theme
from mha_viz.ui.shelves import Once
from mha_viz.ui.study_progress import StudyOrder, ordered
from mha_viz.ui.switch_off.answering import answer_of, unit
from mha_viz.ui.takeaway import PageChart

LABELS = {"least": "least effect first", "most": "most effect first", "random": "at random"}
REMOVALS = Rules("removal of heads", "removals of heads", one_per_tab=True)
Key = tuple[object, ...]
R = TypeVar("R", Removal, Switch)


@Once
def _desk() -> Desk[Key]:
    return Desk(REMOVALS)


def show(attention: Attention, request: Request, effects: Effects, where: Address) -> list[PageChart]:
    """Show the curve of an answer while heads are removed one by one, once an order is chosen. Returns the curve as a
    chart."""
    question = request.question
    effect = "sentence" if question is None else where.effect
    st.subheader("How many can go?")
    st.markdown(
        "Heads are switched off one after another and stay off, in the order of their individual effects or at random."
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _orders(where.order)
        if where.order == "random":
            st.button("Another order", key="reshuffle", on_click=address.go, kwargs={"seed": str(where.seed + 1)})
    if not where.order:
        return []
    order = order_of(effects, where.order, effect, where.seed)
    curve = _curve(attention, request, order)
    st.markdown(_sentence(curve, question))
    draw = partial(charts.removal_curve, curve, effect, unit(question, effect))
    about = f"Heads are off one after the other ({where.how}); {reading(attention)}."
    alt = "Effect while heads are removed one by one"
    st.plotly_chart(legible(draw(theme())), key="removal", theme=None, config=CONFIG, alt=f"{alt}.")
    return [PageChart(f"{alt}, {LABELS[where.order]}", "removal", draw, about, lambda: _table(curve, about))]


def _table(curve: Removal, about: str) -> Table:
    """A row for each number of removed heads."""
    last, answer = [None, *map(str, curve.order)], [None if np.isnan(one) else float(one) for one in curve.answer]
    rows = zip(range(len(last)), last, answer, curve.sentence.tolist(), strict=True)
    return Table(("heads_off", "last_head", "effect_on_answer", "effect_on_sentence"), tuple(rows), {"caption": about})


def _orders(chosen: str) -> None:
    bound(
        st.segmented_control, "Order", "order", chosen or None, ORDERS,
        format_func=LABELS.__getitem__, label_visibility="collapsed", wrap=True,
    )  # fmt: skip


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
        f"With {curve.first_change} of {heads} heads off, {first} being the last of them, another word becomes the "
        "most probable one."
    )


def _curve(attention: Attention, request: Request, order: tuple[Head, ...]) -> Removal:
    """The curve, from the cache or from the model. Raises what the model raises, Busy, and Cancelled."""

    def work(job: Job) -> Removal:
        parts: list[Changes] = []
        counts = steps(len(order), len(attention.text))
        for done, some in enumerate(counts, 1):
            job.check()
            parts.append(office().ask(verbs.lost_each, request, [order[:count] for count in some]).result())
            job.tell(done / len(counts))
        return removed(order, parts)

    return _ordered(Removal, (attention.key, request, order), request, work, "Removing heads")


def _ordered(kind: type[R], key: Key, request: Request, work: Callable[[Job], R], words: str) -> R:
    """The result of ``work``, from the cache or as a job that can be stopped."""

    def stored() -> R | None:
        result = office().removals.get(key)
        return result if isinstance(result, kind) else None

    result = stored()
    if result is not None:
        return result
    inference.measure_means(request)
    order = StudyOrder(key, request.text[:40], lambda job: _store(key, work(job)), f"removal_{hash(key)}")
    return ordered(_desk(), order, words, stored)


def _store(key: Key, result: Removal | Switch) -> None:
    office().removals.put(key, result)


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
    asking = office().cached(verbs.question, Request(request.model, *request.texts, place=place, word=wanted))
    other = inference.wait(asking, "Asking the model…")
    _say_switch(_switched(attention, request.about(other)), wanted)


def _switched(attention: Attention, request: Request) -> Switch:
    at_once = max(1, PIECES // len(attention.text))

    def work(job: Job) -> Switch:
        def margins_of(sets: list[tuple[Head, ...]]) -> Numbers:
            parts: list[Numbers] = []
            for first in range(0, len(sets), at_once):
                job.check()
                parts.append(office().ask(verbs.margins, request, sets[first : first + at_once]).result())
            return np.concatenate(parts)

        return switch(attention.every_head(), margins_of, progress=job.tell)

    return _ordered(Switch, (attention.key, request, "switch"), request, work, "Looking for heads")


def _say_switch(switched: Switch, wanted: str) -> None:
    word, names = plain(wanted), ", ".join(map(both, switched.heads))
    margin = decimal(abs(switched.margins[-1]), 2)
    if switched.is_answer:
        st.markdown(
            f"Without {names} the answer is **{word}**: it lies {margin} in log p above the next best word. The heads "
            "were found one after the other, so a smaller set may exist."
        )
    elif switched.heads:
        nearest = f"Without {names} it comes nearest, {margin} in log p below the most probable word."
        st.markdown(f"**{word}** does not become the answer. {nearest}")
    else:
        st.markdown(f"**{word}** does not become the answer: no head alone brings it nearer.")
    if switched.heads:
        off = in_link(switched.heads)
        st.button("Switch these off", key="switch_these", on_click=address.go, kwargs={"off": off})
