"""Switching heads off on Explore: the model's answer without them, and how much each head alone changes it."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st

from mha_viz.analysis.distance import compute_head_divergences
from mha_viz.analysis.effects import Effects, measure_all_effects
from mha_viz.app.service.caches import get_model_service
from mha_viz.app.service.jobs import Task
from mha_viz.app.service.reader import verbs
from mha_viz.app.switch_off import answering
from mha_viz.app.switch_off.answering import describe_off_texts, name_heads
from mha_viz.app.switch_off.controls import MODE_PARAMETERS, SWITCH_ALL_ON, ask_other_text, show_controls
from mha_viz.app.url import address
from mha_viz.app.url.address import Address, Url
from mha_viz.app.widgets import asking, inference
from mha_viz.app.widgets.components import apply_style
from mha_viz.app.widgets.download_panel import PageChart
from mha_viz.app.widgets.inference import PageReading
from mha_viz.app.widgets.parts import report_errors, show_error
from mha_viz.app.widgets.request import report_encoder_decoder
from mha_viz.app.widgets.study_progress import load_result
from mha_viz.attention import Attention, Head
from mha_viz.errors import MhaVizError
from mha_viz.figures.charts import effects as charts
from mha_viz.figures.drawing.table import Table
from mha_viz.figures.layout.caption import describe_reading, format_head
from mha_viz.heads import NONE
from mha_viz.numerals import percent
from mha_viz.request import TEXT, Question, Request
from mha_viz.view.quantities import QUANTITIES

SMALL_SHARE = 0.1  # an effect below this share of the largest is followed by ``PATTERN_NOTE``
LARGE_RATIO = 10.0  # from this multiple of the largest effect on, write “far more” instead of a percentage
PATTERN_NOTE = "A clear pattern is not an effect."
CAUTION = "A small effect does not make a head useless: other heads may do the same."
# A masked word that the bundled toy model can predict.
TOY_EXAMPLE = {
    "model": "toy",
    "text": "the dog [MASK] the girl .",
}
OTHER_TEXT_PARAMETERS = dict.fromkeys(("head", "on", "pair", *address.TEXT_PARAMETERS))


def make_mode(page: PageReading) -> SwitchOffMode | None:
    """Return the mode for the page; None if heads cannot be switched off.

    Heads cannot be switched off in an encoder–decoder, or while another model stands in for the requested one. Pasted
    CoNLL-U is read as the sentence that it contains.
    """
    if report_encoder_decoder(page.url.location, "heads are switched off") or not page.is_requested:
        return None
    whole_model = inference.read_whole_model(Url({**page.url.parameters, "text": page.url.sentence}))
    return None if whole_model is None else SwitchOffMode(page, whole_model.attention)


class SwitchOffMode:
    """The mode in which heads are switched off: the changes in the drawing, and the model's answer."""

    def __init__(self, page: PageReading, whole_attention: Attention) -> None:
        location, self.model = page.url.location, page.model
        self.location, self.whole_attention, self.attention = location, whole_attention, page.attention
        existing_heads = set(whole_attention.every_head())
        # The page has reported the other heads.
        self.off = tuple(head for head in location.request.off if head in existing_heads)
        self.question = _load_question(whole_attention, location)
        text = whole_attention.text
        request = Request(
            whole_attention.model, text.text, text.pair, question=self.question, prefix=location.request.prefix
        )
        single_request = replace(request, **location.get_method_fields(text.text))
        self.head_request, self.request = single_request, replace(single_request, off=self.off)

    @property
    def drawing_json(self) -> str:
        """The mode's part of the drawing, as JSON for the explorer.

        Keys:
            "off": the indices of the heads that are off, among all heads.
            "moved": the change of each head's attention, as a share of the largest divergence; None for heads that
                cannot have changed.
        """
        off = () if inference.lacks_source(self.location) else self.off
        indices, divergence = [head.place(self.whole_attention.heads) for head in off], np.array([])
        if off and self.attention.quantity == self.whole_attention.quantity:
            divergence = compute_head_divergences(self.whole_attention, self.attention)
            divergence[: off[0].layer + 1] = np.nan
        max_divergence = np.nanmax(divergence, initial=0) or 1
        shares = [None if np.isnan(value) else round(float(value / max_divergence), 3) for value in divergence.ravel()]
        return json.dumps({"off": indices, "moved": shares})

    def show(self, open_head: Head) -> list[PageChart]:
        """Say what the model answers and which head changes the answer most, and show the controls for the heads.

        ``open_head`` is the head whose switch the drawing shows. Return the charts of the answer and of the effects of
        all heads.
        """
        apply_style("switch_off")
        page_charts: list[PageChart] = []
        if self.head_request.method == TEXT:
            ask_other_text(self.head_request.source)
        if inference.lacks_source(self.location):
            st.button(SWITCH_ALL_ON, key="ended", type="tertiary", on_click=address.go, kwargs=MODE_PARAMETERS)
            return page_charts
        if self.question is None:
            answer = effect = st.container(horizontal=True, vertical_alignment="center")
        else:
            answer, effect = st.columns([3, 2], gap="large")
        with effect:  # a separate container, so that the popover beside it stays open while the text changes
            sentence_container = st.container(width="content")
            links_row = st.container(horizontal=True, width="content")
        with report_errors(show_error):
            if self.question is not None:
                with answer:
                    page_charts = answering.show_answer(
                        self.whole_attention, self.request, self._describe_charts(self.off)
                    )
            with sentence_container:
                effects = _measure_effects(self.whole_attention, self.head_request)
                st.markdown(self._write_sentence(effects), width="content")
            page_charts.append(self._make_effects_chart(effects))
        with links_row:
            if not address.is_class_view():
                self._show_choice_popover()  # first, so that it does not move
            self._show_switch_on_button(open_head)
            if self.question is None:
                label = ":primary[Watch a prediction change (toy model)]"  # opens another text
                st.button(label, key="guess", type="tertiary", on_click=_open_toy_example)
        return page_charts

    def _show_choice_popover(self) -> None:
        """Show a popover to choose the heads that are off, what replaces them, and the answer to follow."""
        with st.popover(":primary[Choose heads]", type="tertiary", width="content"):
            show_controls(self.whole_attention, self.off, self.head_request)
            if not QUANTITIES[
                self.location.request.quantity
            ].of_answer:  # for gradients, the question is already above the drawing
                asking.show_question(self.model, self.whole_attention, self.location)
            st.caption(CAUTION)

    def _show_switch_on_button(self, open_head: Head) -> None:
        """Show a button that switches all heads on, unless the switch of ``open_head`` does the same."""
        if self.off in ((), (open_head,)):
            return
        label = SWITCH_ALL_ON if len(self.off) > 1 else f"Switch {self.off[0]} on"
        st.button(f":primary[{label}]", key="switch_on", type="tertiary", on_click=address.go, kwargs=MODE_PARAMETERS)

    def _write_sentence(self, effects: Effects) -> str:
        """Say which heads change the vector or the prediction most and least when they are switched off.

        If heads are off, compare them with the head that changes it most. Raises the model's errors, and Busy.
        """
        target = "sentence" if self.question is None else "answer"
        changes = f"changes {answering.name_effect_target(self.question)}"
        ranked_heads, values = effects.ranked(target), effects.on(target)
        largest_effect = f"Removing **{format_head(ranked_heads[0])}** {changes} most here"
        if not self.off:
            return f"{largest_effect}; removing **{format_head(ranked_heads[-1])}**, least."
        max_effect = max(values[ranked_heads[0]], 1e-12)
        if len(self.off) > 1:
            future = get_model_service().ask_cached(verbs.measure_losses, self.request, (self.off,))
            loss = inference.wait_for_result(future, "Running the model without these heads…")
            share = float((loss.sentence if target == "sentence" else loss.answer)[0]) / max_effect
            comparison = f"{percent(share, 0)} as much as" if share < LARGE_RATIO else "far more than"
            largest_alone = f"removing **{ranked_heads[0]}**, the head that alone changes it most"
            return f"Removing **{name_heads(self.off)}** together {changes} {comparison} {largest_alone}."
        if self.off[0] == ranked_heads[0]:
            return f"{largest_effect}."
        share = values[self.off[0]] / max_effect
        caution = f" {PATTERN_NOTE}" if share < SMALL_SHARE else ""
        return f"{largest_effect}; removing **{self.off[0]}**, {percent(share, 0)} as much.{caution}"

    def _make_effects_chart(self, effects: Effects) -> PageChart:
        """Return the effects of all heads, each switched off alone, as a chart with a table, for the downloads."""
        target = "sentence" if self.question is None else "answer"
        label, description = f"Effect of each head on {answering.EFFECT_TARGETS[target]}", self._describe_charts(())
        values, unit = effects.on(target), answering.name_unit(self.question)
        targets = [name for name in answering.EFFECT_TARGETS if name == "sentence" or self.question is not None]
        columns = ("head", *(f"effect_on_{name}" for name in targets))
        draw = partial(charts.draw_head_grid, values, unit, self.off)

        def make_table() -> Table:
            heads = self.whole_attention.every_head()
            values = [[float(effects.on(target)[head]) for head in heads] for target in targets]
            return Table(columns, tuple(zip(map(str, heads), *values, strict=True)), {"caption": description})

        return PageChart(label, "effects", draw, description, make_table, text=self.request.text)

    def _describe_charts(self, off: tuple[Head, ...]) -> str:
        """Describe what the charts show, for their captions."""
        subject = f"Without {', '.join(map(format_head, off))}" if off else "Each head switched off alone"
        return (
            f"{subject} ({self.head_request.manner}{describe_off_texts(self.question)}); "
            f"{describe_reading(self.whole_attention)}."
        )


@report_errors()
def _open_toy_example() -> None:
    address.go(**OTHER_TEXT_PARAMETERS, **TOY_EXAMPLE, off=NONE)


def _load_question(attention: Attention, location: Address) -> Question | None:
    """Return the question in the URL, or else about the model's own answer; None if nothing can be asked."""
    request = Request(attention.model, attention.text.text, location.request.pair, prefix=location.request.prefix)
    for candidate in (location, location.with_request(word="")):
        with suppress(MhaVizError):
            return inference.load_question(request, candidate)
    return None


def _measure_effects(attention: Attention, request: Request) -> Effects:
    """Measure the effect of each head on the text in steps that can be stopped, unless the result is cached.

    Raises the model's errors, Busy, and Cancelled.
    """

    def measure_part(layer: int, heads: range) -> Effects:
        return get_model_service().ask(verbs.measure_effects, request, layer, heads).result()

    steps = partial(measure_all_effects, attention.layers, attention.heads, len(attention.text), measure_part)
    label = "Switching off each head in turn"
    task = Task("each_head", (attention.key, request), request.text[:40], label, steps)
    if task.find_result() is None:
        inference.measure_means(request)
    return load_result(task, "each_head")
