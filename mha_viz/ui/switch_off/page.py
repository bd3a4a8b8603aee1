"""The Switch off page: the effect of each head alone, and of the chosen heads together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import streamlit as st

from mha_viz.analysis.distance import per_head
from mha_viz.analysis.effects import Effects, Together, every_effect, together
from mha_viz.analysis.metrics import entropy
from mha_viz.attention import Attention, Head
from mha_viz.drawing.table import Table
from mha_viz.figures import answers as answer_charts
from mha_viz.figures import effects as charts
from mha_viz.figures.caption import both, reading
from mha_viz.figures.head_map import CONFIG
from mha_viz.models import catalog
from mha_viz.reader import verbs
from mha_viz.request import Question, Request
from mha_viz.ui import address, asking, download_panel, inference, navigation, style, two_stacks
from mha_viz.ui.address import Address, Url
from mha_viz.ui.classroom import legible
from mha_viz.ui.download_panel import PageChart
from mha_viz.ui.head_grid import head_grid
from mha_viz.ui.model_service import model_service
from mha_viz.ui.parts import complain, guarded, remark, say_complaint, theme
from mha_viz.ui.switch_off import answering, ranked, removal
from mha_viz.ui.switch_off.controls import controls, on_point, on_square

INTRODUCTION = "Click a square to switch that head off; everything after it is recomputed without it."
CAUTION = (
    "A pattern of attention shows where a head looks, not whether the model needs it. And a small effect does not mean "
    "that a head is useless: others may do the same, and this is one sentence and one measure of change."
)


def show_effects(what: Url) -> None:
    """Show the page for the request in the URL. Pasted CoNLL-U is read as the sentence it contains."""
    say_complaint()
    style.apply("switch_off")
    st.header("Switch heads off")
    st.markdown(INTRODUCTION, width=900)
    if two_stacks.refused(what.where, "heads are switched off"):
        return
    attention = inference.requested_reading(what.sentence, what.where)
    if attention is None:
        return
    inference.say_cut(attention, what.where, what.sentence)
    inference.say_unknown(attention)
    off = _existing(attention, what.where)
    model = catalog.resolve(attention.model)
    left, right = st.columns([7, 4], gap="large")  # on a phone, the left one comes first
    with right:
        controls(attention, off, what.where.how)
        question = asking.panel(model, attention, what.where)
    each = Request(model.name, attention.text.text, attention.text.pair, method=what.where.how, question=question)
    request = replace(each, off=off)
    with guarded(complain):
        with left:
            effects = _effects(attention, each)
            on = _map(effects, off, question, what.where)
        effect = _together(attention, request) if off else None
        with st.container(width=900):
            if effect is None:
                _most(effects, on, question)
            else:
                _summary(effects, effect, off, question)
        about, alone = (_about(attention, request.method, heads) for heads in (off, ()))
        drawn = [_effects_chart(effects, off, question, on, alone)]
        if question is not None:
            drawn += answering.show_answer(attention, request, about)
        if effect is not None:
            drawn += _changes(attention, request, effect, about)
        drawn.append(_looks(attention, each, effects, on, alone))
        drawn += _removed(attention, each, effects, what.where)
        drawn += ranked.show_ranking(attention, each, effects, on, alone)
        download_panel.of_charts(drawn)


def _removed(attention: Attention, request: Request, effects: Effects, where: Address) -> list[PageChart]:
    """Show the removal of heads one by one, and what each head adds to the answer. Returns the charts."""
    question = request.question
    drawn: list[PageChart] = []
    with guarded(complain):
        drawn = removal.show_removal(attention, request, effects, where)
    with guarded(complain):
        removal.show_switch(attention, request, where)
    return drawn + answering.direct(attention, request, question) if question is not None else drawn


def _existing(attention: Attention, where: Address) -> tuple[Head, ...]:
    """The heads in the URL that the model has, with a remark on the others and on what cannot be read."""
    names = ("off", "how", *address.ANSWER)
    odd = [one for one in where.complaints if one.partition("=")[0] in names]
    every = set(attention.every_head())
    odd += [str(head) for head in where.off if head not in every]
    if odd:
        remark(f"Part of this link could not be used ({', '.join(odd[:6])}).")
    return tuple(head for head in where.off if head in every)


# ---- What is known --------------------------------------------------------------------------------------


def _effects(attention: Attention, request: Request) -> Effects:
    """The effects of all heads on the text. Raises what the model raises, Busy, and Cancelled."""

    def part(layer: int, heads: range) -> Effects:
        return model_service().ask(verbs.effects_of, request, layer, heads).result()

    steps = partial(every_effect, attention.layers, attention.heads, len(attention.text), part)
    return answering.measured("each_head", attention, request, "Switching off one head after the other", steps)


def _together(attention: Attention, request: Request) -> Together:
    """The effect of the heads that are off, beside random directions. Raises what the model raises, Busy, and
    Cancelled."""
    steps = partial(
        together,
        len(attention.text),
        lambda: model_service().ask(verbs.lost_each, request, [request.off]).result(),
        lambda draws: model_service().ask(verbs.lost_at_random, request, draws).result(),
    )
    return answering.measured("together", attention, request, "Reading the text without these heads", steps)


def _map(effects: Effects, off: tuple[Head, ...], question: Question | None, where: Address) -> str:
    """Show the effect of every head alone. Returns what it is measured on: "sentence" or "answer"."""
    on = answering.effect_control(question, where.effect)
    chart = charts.head_grid(effects.on(on), answering.unit(question, on), off, theme())
    head_grid(chart, "effects", f"Effect of each head on {answering.ON[on]}.", on_square)
    st.caption(answering.explained(question, on))
    return on


def _effects_chart(
    effects: Effects, off: tuple[Head, ...], question: Question | None, on: str, about: str
) -> PageChart:
    values, unit = effects.on(on), answering.unit(question, on)
    label = f"Effect of each head on {answering.ON[on]}"
    return PageChart(label, "effects", lambda theme: charts.head_grid(values, unit, off, theme), about)


def _about(attention: Attention, method: str, off: tuple[Head, ...]) -> str:
    """What the charts of this page show, for their captions."""
    which = f"Without {', '.join(map(both, off))}" if off else "Each head alone is off"
    return f"{which} ({method}); {reading(attention)}."


def _chart(chart: Any, key: str, alt: str, on_select: Callable[[], None] | Literal["ignore"] = "ignore") -> None:
    st.plotly_chart(
        legible(chart), key=key, theme=None, config=CONFIG, alt=alt, on_select=on_select, selection_mode="points"
    )


def _most(effects: Effects, on: str, question: Question | None) -> None:
    """While no head is off, name the heads with the largest effects."""
    values, every, unit = effects.on(on), effects.ranked(on), answering.unit(question, on)
    first, last = every[0], every[-1]
    st.subheader("No head is off")
    st.markdown(
        f"Without **{both(first)}** {answering.ON[on]} changes most ({answering.thousandths(values[first])} {unit}), "
        f"without **{both(last)}** least ({answering.thousandths(values[last])} {unit}). {CAUTION}"
    )
    flips = int(np.nansum(effects.changed))
    if not np.isnan(effects.changed).any():
        st.markdown(
            f"Of {effects.changed.size} heads, {flips} change the most probable word when they are switched off alone."
        )


def _summary(effects: Effects, effect: Together, off: tuple[Head, ...], question: Question | None) -> None:
    """Say the effect in words: its rank among heads, and how it compares with removing as much at random."""
    st.subheader(f"Without {both(off[0])}" if len(off) == 1 else f"Without {len(off)} heads")
    if len(off) == 1:
        rank = effects.ranked().index(off[0]) + 1
        beside = f"Each head switched off alone, it ranks {rank} of {effects.sentence.size}."
    else:
        alone = sum(float(effects.sentence[head]) for head in off)
        beside = f"The changes that each of them makes alone add up to {_thousandths(alone)}."
    weaker = int((effect.random < effect.sentence).sum())
    st.markdown(f"The sentence vector changes by **{_thousandths(effect.sentence)}**. {beside}")
    if answering.is_all_there_is(effect.random, effect.sentence):
        st.markdown(
            "Random directions of the same number would remove the same, so there is nothing to compare it with."
        )
    else:
        st.markdown(
            f"Removing as much in random directions changes it by {answering.thousandths(effect.random.min())} to "
            f"{_thousandths(effect.random.max())}: less than that in {weaker} of {len(effect.random)} draws."
        )
    st.markdown(answering.beside_random(effects, effect, off, question))
    st.markdown(CAUTION)


def _looks(attention: Attention, request: Request, effects: Effects, on: str, about: str) -> PageChart:
    """Show how specialised each head looks against how much it matters, and what its importance is. Returns the
    chart."""
    st.subheader("Do heads that look specialised matter more?")
    st.markdown(
        "From left to right, how sharply a head attends on this text: 1 − its entropy divided by that of even "
        "attention. From bottom to top, the effect of switching it off."
    )
    looks = 1 - entropy(attention) / np.log(max(2, len(attention.text)))
    values, alt = effects.on(on), "Every head: how sharply it attends, and the effect of switching it off"
    draw = partial(
        answer_charts.looks_and_effects, looks, values, "1 − normalised entropy", answering.unit(request.question, on)
    )
    _chart(draw(theme()), "looks", f"{alt}.", on_point)
    if request.question is not None:
        answering.importance(request, request.question, effects)
    rows = tuple((str(head), float(looks[head]), float(values[head])) for head in attention.every_head())
    columns = ("head", "one_minus_normalised_entropy", f"effect_on_{on}")
    return PageChart(alt, "looks", draw, about, lambda: Table(columns, rows, {"caption": about}))


def _thousandths(value: float) -> str:
    return f"{answering.thousandths(value)} {answering.unit(None, 'sentence')}"


def _changes(attention: Attention, request: Request, effect: Together, about: str) -> list[PageChart]:
    """Show what changes in tokens and in other heads, with a link to see it on Explore. Returns the charts."""
    without = inference.read(replace(request, question=None))
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader("Which tokens change")
        st.markdown("1 − cosine of each token’s state after the last layer, in thousandths.")
        tokens = [token.text for token in attention.text.tokens]
        _chart(charts.token_bars(tokens, effect.tokens, theme()), "tokens", "Change of each token.")
    drawn = [PageChart("Change of each token", "tokens", lambda t: charts.token_bars(tokens, effect.tokens, t), about)]
    with right:
        st.subheader("Which heads attend differently")
        later, opened = _later_heads(per_head(attention, without), request.off, about)
    st.page_link(
        navigation.page("explore"),
        label=":primary[Open the attention without these heads in Explore →]",
        query_params={**address.now(), "head": str(opened)},
    )
    return [*drawn, *later]


def _later_heads(moved: npt.NDArray[np.float64], off: tuple[Head, ...], about: str) -> tuple[list[PageChart], Head]:
    """How far the attention of later heads has ``moved``, [layer, head]: the chart, and the head that moved most; if
    there is no later layer, no chart and the first head that is off."""
    if off[0].layer == len(moved) - 1:
        st.markdown("None: no head comes after the last layer.")
        return [], off[0]
    moved[: off[0].layer + 1] = np.nan  # earlier layers and their own are unaffected
    st.markdown(
        "Jensen–Shannon divergence of each later head’s attention from what it was, in thousandths of a nat; at most "
        "693."
    )
    label = "Change of each later head"
    head_grid(charts.head_grid(moved, "thousandths of a nat", off, theme()), "later_heads", f"{label}’s attention.")
    drawn = PageChart(
        label, "later-heads", lambda theme: charts.head_grid(moved, "thousandths of a nat", off, theme), about
    )
    return [drawn], Head(*map(int, np.unravel_index(np.nanargmax(moved), moved.shape)))
