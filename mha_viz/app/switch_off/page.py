"""Switching heads off on Explore: the model's answer without them, and how much each head alone changes it."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st

from mha_viz.analysis.distance import per_head
from mha_viz.analysis.effects import Effects, every_effect
from mha_viz.app.service.caches import model_service
from mha_viz.app.service.jobs import Task
from mha_viz.app.service.reader import verbs
from mha_viz.app.switch_off import answering
from mha_viz.app.switch_off.answering import in_which, of_all
from mha_viz.app.switch_off.controls import ENDED, SWITCH_ALL_ON, controls, other_text
from mha_viz.app.url import address
from mha_viz.app.url.address import Address, Url
from mha_viz.app.widgets import asking, inference
from mha_viz.app.widgets.components import apply_style
from mha_viz.app.widgets.download_panel import PageChart
from mha_viz.app.widgets.inference import PageReading
from mha_viz.app.widgets.parts import complain, guarded
from mha_viz.app.widgets.request import refused
from mha_viz.app.widgets.study_progress import outcome
from mha_viz.attention import Attention, Head
from mha_viz.errors import MhaVizError
from mha_viz.figures.charts import effects as charts
from mha_viz.figures.drawing.table import Table
from mha_viz.figures.layout.caption import both, reading
from mha_viz.heads import NONE
from mha_viz.numerals import percent
from mha_viz.request import TEXT, Question, Request
from mha_viz.view.quantities import QUANTITIES

SMALL = 0.1  # an effect below this share of the largest is followed by ``PATTERN``
MANY = 10.0  # times the largest effect; for more, a share means little
PATTERN = "A clear pattern is not an effect."
CAUTION = "A small effect does not make a head useless: other heads may do the same."
GUESSED = {"model": "toy", "text": "the dog [MASK] the girl ."}  # a masked word that the bundled toy model can predict
ALL_ON = dict.fromkeys(("off", "how", "from", "in"))
OF_ANOTHER_TEXT = dict.fromkeys(("head", "on", "pair", *address.OF_THIS_TEXT))


def begin_mode(page: PageReading) -> SwitchedOff | None:
    """Return the mode for the page; None if heads cannot be switched off.

    That is the case for an encoder–decoder, and while another model than the requested one is drawn. Pasted CoNLL-U is
    read as the sentence it contains.
    """
    if refused(page.url.where, "heads are switched off") or not page.is_requested:
        return None
    whole = inference.read_whole_model(Url({**page.url.parameters, "text": page.url.sentence}))
    return None if whole is None else SwitchedOff(page, whole.attention)


class SwitchedOff:
    """The mode in which heads are switched off: the changes in the drawing, and the model's answer."""

    def __init__(self, page: PageReading, whole: Attention) -> None:
        where, self.model = page.url.where, page.model
        self.where, self.whole, self.shown = where, whole, page.attention
        existing = set(whole.every_head())
        self.off = tuple(head for head in where.request.off if head in existing)  # the page has named the others
        self.question = _question(whole, where)
        text = whole.text
        request = Request(whole.model, text.text, text.pair, question=self.question, prefix=where.request.prefix)
        each_head = replace(request, **where.way(text.text))
        self.each, self.request = each_head, replace(each_head, off=self.off)

    @property
    def drawn(self) -> str:
        """The mode's part of the drawing, as JSON for the explorer.

        Keys:
            "off": the places of the heads that are off.
            "moved": for every head, how far its attention has changed, as a share of the largest divergence; None where
                nothing can have changed.
        """
        off = () if inference.lacks_source(self.where) else self.off
        places, divergence = [head.place(self.whole.heads) for head in off], np.array([])
        if off and self.shown.quantity == self.whole.quantity:
            divergence = per_head(self.whole, self.shown)
            divergence[: off[0].layer + 1] = np.nan
        largest = np.nanmax(divergence, initial=0) or 1
        shares = [None if np.isnan(value) else round(float(value / largest), 3) for value in divergence.ravel()]
        return json.dumps({"off": places, "moved": shares})

    def say(self, opened: Head) -> list[PageChart]:
        """Say what the model answers and which head changes the answer most, and show the controls for the heads.

        ``opened`` is the head whose switch the drawing shows. Return the charts of the answer and of the effects of all
        heads.
        """
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
        with effect:  # a container of its own, so that the box beside it stays open while the text changes
            sentence_place = st.container(width="content")
            ways = st.container(horizontal=True, width="content")
        with guarded(complain):
            if self.question is not None:
                with answer:
                    drawn = answering.show_answer(self.whole, self.request, self._about(self.off))
            with sentence_place:
                effects = _effects(self.whole, self.each)
                st.markdown(self._sentence(effects), width="content")
            drawn.append(self._of_every_head(effects))
        with ways:
            if not address.in_class():
                self._show_choice()  # first, so that it stays where it is
            self._show_way_back(opened)
            if self.question is None:
                label = ":primary[Watch a prediction change (toy model)]"  # with another text than the page's
                st.button(label, key="guess", type="tertiary", on_click=_guess)
        return drawn

    def _show_choice(self) -> None:
        """Show, on request, which heads are off, what replaces them, and which answer is followed."""
        with st.popover(":primary[Choose heads]", type="tertiary", width="content"):
            controls(self.whole, self.off, self.each)
            if not QUANTITIES[self.where.request.quantity].of_answer:  # whose question is asked above the drawing
                asking.panel(self.model, self.whole, self.where)
            st.caption(CAUTION)

    def _show_way_back(self, opened: Head) -> None:
        """Show a button that switches all heads on, unless the switch of the ``opened`` head does the same."""
        if self.off in ((), (opened,)):
            return
        label = SWITCH_ALL_ON if len(self.off) > 1 else f"Switch {self.off[0]} on"
        st.button(f":primary[{label}]", key="switch_on", type="tertiary", on_click=address.go, kwargs=ALL_ON)

    def _sentence(self, effects: Effects) -> str:
        """Say which heads change the vector or the prediction most and least when they are switched off.

        If heads are off, compare them with the head that changes it most. Raises what the model raises, and Busy.
        """
        on = "sentence" if self.question is None else "answer"
        changes = f"changes {answering.changed_thing(self.question)}"
        ranked, values = effects.ranked(on), effects.on(on)
        most = f"Removing **{both(ranked[0])}** {changes} most here"
        if not self.off:
            return f"{most}; removing **{both(ranked[-1])}**, least."
        largest = max(values[ranked[0]], 1e-12)
        if len(self.off) > 1:
            future = model_service().cached(verbs.lost_each, self.request, (self.off,))
            lost = inference.wait(future, "Running the model without these heads…")
            share = float((lost.sentence if on == "sentence" else lost.answer)[0]) / largest
            much = f"{percent(share, 0)} as much as" if share < MANY else "far more than"
            largest_alone = f"removing **{ranked[0]}**, the head that alone changes it most"
            return f"Removing **{of_all(self.off)}** together {changes} {much} {largest_alone}."
        if self.off[0] == ranked[0]:
            return f"{most}."
        share = values[self.off[0]] / largest
        caution = f" {PATTERN}" if share < SMALL else ""
        return f"{most}; removing **{self.off[0]}**, {percent(share, 0)} as much.{caution}"

    def _of_every_head(self, effects: Effects) -> PageChart:
        """Return the effects of all heads, each switched off alone, as a chart with a table, for the downloads."""
        on = "sentence" if self.question is None else "answer"
        label, about = f"Effect of each head on {answering.ON[on]}", self._about(())
        values, unit = effects.on(on), answering.unit(self.question)
        measured = [name for name in answering.ON if name == "sentence" or self.question is not None]
        columns = ("head", *(f"effect_on_{name}" for name in measured))
        draw = partial(charts.head_grid, values, unit, self.off)

        def numbers() -> Table:
            heads = self.whole.every_head()
            values = [[float(effects.on(on)[head]) for head in heads] for on in measured]
            return Table(columns, tuple(zip(map(str, heads), *values, strict=True)), {"caption": about})

        return PageChart(label, "effects", draw, about, numbers, text=self.request.text)

    def _about(self, off: tuple[Head, ...]) -> str:
        """Describe what the charts show, for their captions."""
        which = f"Without {', '.join(map(both, off))}" if off else "Each head switched off alone"
        return f"{which} ({self.each.manner}{in_which(self.question)}); {reading(self.whole)}."


@guarded()
def _guess() -> None:
    address.go(**OF_ANOTHER_TEXT, **GUESSED, off=NONE)


def _question(attention: Attention, where: Address) -> Question | None:
    """Return the question in the URL, or else the one about the model's own answer; None if nothing can be asked."""
    request = Request(attention.model, attention.text.text, where.request.pair, prefix=where.request.prefix)
    for place in (where, where.but(word="")):
        with suppress(MhaVizError):
            return inference.question_about(request, place)
    return None


def _effects(attention: Attention, request: Request) -> Effects:
    """Measure the effect of each head on the text in steps that can be stopped, unless the result is cached.

    Raises what the model raises, Busy, and Cancelled.
    """

    def part(layer: int, heads: range) -> Effects:
        return model_service().ask(verbs.effects_of, request, layer, heads).result()

    steps = partial(every_effect, attention.layers, attention.heads, len(attention.text), part)
    words = "Switching off each head in turn"
    task = Task("each_head", (attention.key, request), request.text[:40], words, steps)
    if task.stored() is None:
        inference.measure_means(request)
    return outcome(task, "each_head")
