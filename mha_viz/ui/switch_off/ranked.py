"""Every head by its effect, largest first, beside random directions, importance and direct contribution."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st

from mha_viz.analysis.effects import Effects, Numbers, each_at_random
from mha_viz.attention import Attention, Head
from mha_viz.drawing.table import Table
from mha_viz.errors import ModelUnsupported
from mha_viz.figures import effects as charts
from mha_viz.figures.caption import both
from mha_viz.figures.head_map import CLICKED
from mha_viz.reader import verbs
from mha_viz.request import COSINE, Request
from mha_viz.ui.caches import model_service
from mha_viz.ui.classroom import legible
from mha_viz.ui.download_panel import PageChart
from mha_viz.ui.parts import complain, guarded, theme
from mha_viz.ui.switch_off import answering
from mha_viz.ui.switch_off.answering import ON, is_all_there_is, unit
from mha_viz.ui.switch_off.controls import on_bar


def show_ranking(attention: Attention, request: Request, effects: Effects, on: str, about: str) -> list[PageChart]:
    """Show the ranking once it is opened. Returns its chart."""
    drawn: list[PageChart] = []
    with st.expander("All heads, ranked", key="ranked", on_change="rerun") as box:
        if box.open:
            with guarded(complain):
                drawn = _ranking(attention, request, effects, on, about)
    return drawn


def _ranking(attention: Attention, request: Request, effects: Effects, on: str, about: str) -> list[PageChart]:
    heads = effects.ranked(on)
    sentence, answer = _at_random(attention, request)
    random = np.stack([(answer if on == "answer" else sentence)[head] for head in heads])
    values = np.array([effects.on(on)[head] for head in heads])
    label = f"Heads by their effect on {ON[on]}"
    draw = partial(charts.ranked_bars, heads, values, random, unit(request.question, on))
    beyond = int((values > random.max(1)).sum())
    st.markdown(
        "As much at random is the same here: no other directions are left."
        if is_all_there_is(random, values[:, None])
        else f"**{beyond}** of {len(heads)} heads do more to {ON[on]} than as much at random, in all "
        f"{random.shape[1]} draws."
    )
    st.caption("Click a bar to switch its head off.")
    st.plotly_chart(
        legible(draw(theme())),
        key="ranking",
        theme=None,
        config=CLICKED,
        alt=f"{label}.",
        on_select=on_bar,
        selection_mode="points",
    )
    table = _table(request, effects, on, random, about)
    if st.toggle("All numbers of the ranking", key="numbers_of_ranking"):
        rows = [(row[0], both(heads[place]), *row[2:]) for place, row in enumerate(table.rows)]
        names = [name.replace("_", " ") for name in table.columns]
        st.dataframe([dict(zip(names, row, strict=True)) for row in rows], hide_index=True, width="stretch")
    return [PageChart(label, "ranking", draw, about, lambda: table)]


def _table(request: Request, effects: Effects, on: str, random: Numbers, about: str) -> Table:
    """A row per head, largest effect first: importance only if there is a question, direct contribution only where
    the model allows it."""
    heads = effects.ranked(on)
    columns: dict[str, list[int] | list[float] | list[str]] = {
        "rank": [*range(1, len(heads) + 1)],
        "head": [str(head) for head in heads],
        "effect": [float(effects.on(on)[head]) for head in heads],
        "random_smallest": random.min(1).tolist(),
        "random_median": np.median(random, axis=1).tolist(),
        "random_largest": random.max(1).tolist(),
    }
    if request.question is not None:
        importance = answering.per_head(verbs.importance, request)
        columns["importance"] = [float(importance[head]) for head in heads]
        if request.question.kind != COSINE:
            with suppress(ModelUnsupported):  # most models lack it; the section below says why
                direct = answering.per_head(verbs.direct, request)
                columns["direct_contribution"] = [float(direct[head]) for head in heads]
    return Table(tuple(columns), tuple(zip(*columns.values(), strict=True)), {"caption": about})


def _at_random(attention: Attention, request: Request) -> Numbers:
    """[2, layer, head, draw]: the effect on the sentence vector and on the answer after removing random directions in
    place of each head. Raises what the model raises, Busy, and Cancelled."""

    def at_random(head: Head, draws: range) -> Numbers:
        return model_service().ask(verbs.lost_at_random, replace(request, off=(head,)), draws).result()

    steps = partial(each_at_random, attention.every_head(), len(attention.text), at_random)
    changes = answering.measured("at_random", attention, request, "Removing random directions", steps)
    return changes.reshape(2, attention.layers, attention.heads, -1)
