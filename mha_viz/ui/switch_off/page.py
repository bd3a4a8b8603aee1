"""Switching heads off on Explore: the effect of each head alone, and of the chosen heads together."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
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
from mha_viz.browser.quantities import QUANTITIES
from mha_viz.drawing.table import Table
from mha_viz.errors import MhaVizError
from mha_viz.figures import answers as answer_charts
from mha_viz.figures import effects as charts
from mha_viz.figures.caption import both, reading
from mha_viz.figures.head_map import CLICKED
from mha_viz.heads import NONE
from mha_viz.models import catalog
from mha_viz.numerals import percent
from mha_viz.reader import verbs
from mha_viz.request import TEXT, Question, Request
from mha_viz.ui import address, asking, inference
from mha_viz.ui.address import Address, Url
from mha_viz.ui.bound import bound
from mha_viz.ui.caches import model_service
from mha_viz.ui.classroom import legible
from mha_viz.ui.components import apply_style
from mha_viz.ui.download_panel import PageChart
from mha_viz.ui.head_grid import head_grid
from mha_viz.ui.parts import complain, guarded, plain, theme
from mha_viz.ui.request import refused
from mha_viz.ui.switch_off import answering, ranked, removal
from mha_viz.ui.switch_off.answering import in_which, of_all
from mha_viz.ui.switch_off.controls import ENDED, SWITCH_ALL_ON, controls, on_point, on_square, other_text

CAUTION = "A small effect does not make a head useless: others may do the same."
PATTERN, SMALL = "A clear pattern is not an effect.", 0.1  # said of effects below this share of the largest
GUESSED = {"model": "toy", "text": "the dog [MASK] the girl ."}  # a word that a model on every server can guess
ALL_ON = dict.fromkeys(("off", "how", "from", "in"))
OF_ANOTHER_TEXT = dict.fromkeys(("head", "on", "pair", *address.OF_THIS_TEXT))


def mode(what: Url, attention: Attention) -> SwitchedOff | None:
    """What Explore shows of the heads that are off, beside its drawing of ``attention``; None for an encoder–decoder,
    and while another model than the requested one is drawn. Pasted CoNLL-U is read as the sentence it contains."""
    if refused(what.where, "heads are switched off") or not inference.is_of_requested_model(attention, what.where):
        return None
    whole = inference.requested_reading(what.sentence, what.where)
    return None if whole is None else SwitchedOff(what.where, whole, attention)


class SwitchedOff:
    """Switching heads off: what changes in the drawing, what the model answers, and all numbers on request."""

    def __init__(self, where: Address, whole: Attention, shown: Attention) -> None:
        self.where, self.whole, self.shown = where, whole, shown
        every = set(whole.every_head())
        self.off = tuple(head for head in where.request.off if head in every)  # the page has named the others
        self.effects: Effects | None = None  # until they are said
        self.question = _question(whole, where)
        text = whole.text
        request = Request(whole.model, text.text, text.pair, question=self.question, prefix=where.request.prefix)
        each = replace(request, **where.way(text.text))
        self.each, self.request = each, replace(each, off=self.off)

    @property
    def drawn(self) -> str:
        """For the explorer, as JSON: the places of the heads that are ``off``, and how far the attention of every later
        one has ``moved``, as a share of the largest divergence; None where nothing can have changed."""
        off = () if inference.lacks_source(self.where) else self.off
        places, moved = [head.place(self.whole.heads) for head in off], np.array([])
        if off and self.shown.quantity == self.whole.quantity:
            moved = per_head(self.whole, self.shown)
            moved[: off[0].layer + 1] = np.nan
        largest = np.nanmax(moved, initial=0) or 1
        shares = [None if np.isnan(one) else round(float(one / largest), 3) for one in moved.ravel()]
        return json.dumps({"off": places, "moved": shares})

    def say(self, opened: Head) -> list[PageChart]:
        """Say what the model answers and which head changes that most, in words; ``opened``, the head whose switch the
        drawing has. Returns the chart of the answer."""
        apply_style("switch_off")
        drawn: list[PageChart] = []
        if self.each.method == TEXT:
            other_text(self.each.source)
        if inference.lacks_source(self.where):
            st.button(SWITCH_ALL_ON, key="ended", type="tertiary", on_click=address.go, kwargs=ENDED)
            return drawn
        if self.question is None:
            answer = effect = st.container(horizontal=True, vertical_alignment="center")
        else:
            answer, effect = st.columns([3, 2], gap="large")
        with guarded(complain):
            if self.question is not None:
                with answer:
                    drawn = answering.show_answer(self.whole, self.request, self._about(self.off))
            with effect:
                self.effects = _effects(self.whole, self.each)
                st.markdown(self._sentence(self.effects), width="content")
            if self.question is None:
                with effect, st.container(horizontal=True, width="content"):
                    label = f":primary[Let the toy guess: {plain(GUESSED['text'])}]"  # another text than the page's
                    st.button(label, key="guess", type="tertiary", on_click=_guess)
        with effect:
            self._show_way_back(opened)
        return drawn

    def _show_way_back(self, opened: Head) -> None:
        """Show a button that switches on the heads which the switch of the ``opened`` head does not."""
        if self.off in ((), (opened,)):
            return
        label = SWITCH_ALL_ON if len(self.off) > 1 else f"Switch {self.off[0]} on"
        st.button(f":primary[{label}]", key="switch_on", type="tertiary", on_click=address.go, kwargs=ALL_ON)

    def _sentence(self, effects: Effects) -> str:
        """Say which heads change the vector, or the prediction, most and least when they are removed; or how much those
        that are off do, beside the one that does most. Raises what the model raises, and Busy."""
        on = "sentence" if self.question is None else self.where.effect
        changes = f"changes {answering.changed_thing(self.question, on)}"
        every, values = effects.ranked(on), effects.on(on)
        most = f"Removing **{both(every[0])}** {changes} most here"
        if not self.off:
            return f"{most}; removing **{both(every[-1])}**, least."
        largest = max(values[every[0]], 1e-12)
        if len(self.off) > 1:
            future = model_service().cached(verbs.lost_each, self.request, (self.off,))
            lost = inference.wait(future, "Reading the text without these heads…")
            share = percent(float((lost.sentence if on == "sentence" else lost.answer)[0]) / largest, 0)
            largest_alone = f"removing **{every[0]}**, the head that alone changes it most"
            return f"Removing **{of_all(self.off)}** together {changes} {share} as much as {largest_alone}."
        if self.off[0] == every[0]:
            return f"{most}."
        share = values[self.off[0]] / largest
        caution = f" {PATTERN}" if share < SMALL else ""
        return f"{most}; removing **{self.off[0]}**, {percent(share, 0)} as much.{caution}"

    def show(self) -> list[PageChart]:
        """Show the effect of every head and everything around it, if asked for. Returns the charts."""
        if address.in_class() or not bound(
            st.toggle, "More: every head’s effect", "more", self.where.more,
            default=False, change=lambda is_on: {"more": "1" if is_on else None},
        ):  # fmt: skip
            return []
        left, right = st.columns([7, 4], gap="large")  # on a phone, the left one comes first
        with right:
            controls(self.whole, self.off, self.each)
            if not QUANTITIES[self.where.request.quantity].of_answer:  # whose question is asked above
                asking.panel(catalog.resolve(self.whole.model), self.whole, self.where)
        drawn: list[PageChart] = []
        if self.effects is None:
            return drawn
        with guarded(complain):
            with left:
                on = _map(self.effects, self.off, self.question, self.where)
            drawn = self._numbers(self.effects, on)
        return drawn

    def _numbers(self, effects: Effects, on: str) -> list[PageChart]:
        about, alone = self._about(self.off), self._about(())
        with st.container(width=900):
            effect = _together(self.whole, self.request) if self.off else None
            if effect is not None:
                _summary(effects, effect, self.off, self.question)
            elif not self.off:
                _most(effects)
        drawn = [_effects_chart(effects, self.off, self.question, on, alone)]
        with st.container():  # without it, what is below would be drawn anew when the first head is switched off
            if effect is not None:
                drawn += _changes(self.whole, self.request, effect, about)
        drawn.append(_looks(self.whole, self.each, effects, on, alone))
        drawn += _removed(self.whole, self.each, effects, self.where)
        return drawn + ranked.show_ranking(self.whole, self.each, effects, on, alone)

    def _about(self, off: tuple[Head, ...]) -> str:
        """What the charts show, for their captions."""
        which = f"Without {', '.join(map(both, off))}" if off else "Each head alone is off"
        return f"{which} ({self.each.manner}{in_which(self.question)}); {reading(self.whole)}."


@guarded()
def _guess() -> None:
    address.go(**OF_ANOTHER_TEXT, **GUESSED, off=NONE)


def _question(attention: Attention, where: Address) -> Question | None:
    """The question that the URL asks about the text, or about the model's own answer; None if nothing can be asked."""
    of = Request(attention.model, attention.text.text, where.request.pair, prefix=where.request.prefix)
    for place in (where, where.but(word="")):
        with suppress(MhaVizError):
            return inference.question_about(of, place)
    return None


def _removed(attention: Attention, request: Request, effects: Effects, where: Address) -> list[PageChart]:
    """Show the removal of heads one by one, and what each head adds to the answer. Returns the charts."""
    question = request.question
    drawn: list[PageChart] = []
    with guarded(complain):
        drawn = removal.show_removal(attention, request, effects, where)
    with guarded(complain):
        removal.show_switch(attention, request, where)
    with guarded(complain):
        if question is not None:
            drawn = drawn + answering.show_direct(attention, request, question)
    return drawn


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
    st.caption(answering.meaning_of_numbers(question, on))
    return on


def _effects_chart(
    effects: Effects, off: tuple[Head, ...], question: Question | None, on: str, about: str
) -> PageChart:
    values, unit = effects.on(on), answering.unit(question, on)
    label = f"Effect of each head on {answering.ON[on]}"
    return PageChart(label, "effects", lambda theme: charts.head_grid(values, unit, off, theme), about)


def _chart(chart: Any, key: str, alt: str, on_select: Callable[[], None] | Literal["ignore"] = "ignore") -> None:
    st.plotly_chart(
        legible(chart), key=key, theme=None, config=CLICKED, alt=alt, on_select=on_select, selection_mode="points"
    )


def _most(effects: Effects) -> None:
    """While no head is off, say how many alone change the answer; the map above says how much each does."""
    if not np.isnan(effects.changed).any():
        changed = int(effects.changed.sum())
        st.markdown(f"Of {effects.changed.size} heads, {changed} alone change the most probable word.")
    st.markdown(CAUTION)


def _summary(effects: Effects, effect: Together, off: tuple[Head, ...], question: Question | None) -> None:
    """Say the effect, its rank or the sum of the effects of each head alone, and what as much at random does."""
    st.subheader(f"Without {both(off[0])}" if len(off) == 1 else f"Without {len(off)} heads")
    on = {"sentence": (effect.sentence, effect.random), "answer": (effect.answer, effect.random_answer)}
    beside = "rank" if len(off) == 1 else "sum of each alone"
    lines = [f"| change of | by | {beside} | as much at random |", "|---|---|---|---|"]
    for name, (change, at_random) in on.items():
        if change == change:  # without a question, there is no answer
            by = f"**{answering.thousandths(change)}** {answering.unit(question, name)}"
            rank = f"{effects.ranked(name).index(off[0]) + 1} of {effects.sentence.size}"
            alone = answering.thousandths(sum(float(effects.on(name)[head]) for head in off))
            random = answering.beside_random(at_random, change)
            lines.append(f"| {answering.ON[name]} | {by} | {rank if len(off) == 1 else alone} | {random} |")
    st.markdown("\n".join(lines))
    st.markdown(CAUTION)


def _looks(attention: Attention, request: Request, effects: Effects, on: str, about: str) -> PageChart:
    """Show how specialised each head looks against how much it matters, and what its importance is. Returns the
    chart."""
    st.subheader("Do heads that look specialised matter more?")
    st.markdown(
        f"Right: looks at few words. Up: removing it changes {answering.changed_thing(request.question, on)} more."
    )
    looks = 1 - entropy(attention) / np.log(max(2, len(attention.text)))
    values, alt = effects.on(on), "How sharply each head attends, and its effect"
    draw = partial(
        answer_charts.looks_and_effects, looks, values, "1 − normalised entropy", answering.unit(request.question, on)
    )
    _chart(draw(theme()), "looks", f"{alt}.", on_point)
    if request.question is not None:
        answering.show_importance(request, effects)
    rows = tuple((str(head), float(looks[head]), float(values[head])) for head in attention.every_head())
    columns = ("head", "one_minus_normalised_entropy", f"effect_on_{on}")
    return PageChart(alt, "looks", draw, about, lambda: Table(columns, rows, {"caption": about}))


def _changes(attention: Attention, request: Request, effect: Together, about: str) -> list[PageChart]:
    """Show what changes in tokens and in other heads. Returns the charts."""
    without = inference.read(replace(request, question=None))
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader("Which tokens change")
        st.markdown("1 − cosine of its last state.")
        tokens = [token.text for token in attention.text.tokens]
        _chart(charts.token_bars(tokens, effect.tokens, theme()), "tokens", "Change of each token.")
    drawn = [PageChart("Change of each token", "tokens", lambda t: charts.token_bars(tokens, effect.tokens, t), about)]
    with right:
        st.subheader("Which heads attend differently")
        later = _later_heads(per_head(attention, without), request.off, about)
    return [*drawn, *later]


def _later_heads(moved: npt.NDArray[np.float64], off: tuple[Head, ...], about: str) -> list[PageChart]:
    """Show how far the attention of later heads has ``moved``, [layer, head]. Returns the chart, none without a later
    layer."""
    if off[0].layer == len(moved) - 1:
        st.markdown("None: no head comes after the last layer.")
        return []
    moved[: off[0].layer + 1] = np.nan  # earlier layers and their own are unaffected
    st.markdown("Jensen–Shannon divergence from before, in thousandths of a nat.")
    label = "Change of each later head"
    draw = partial(charts.head_grid, moved, "thousandths of a nat", off)
    head_grid(draw(theme()), "later_heads", f"{label}’s attention.")
    return [PageChart(label, "later-heads", draw, about)]
