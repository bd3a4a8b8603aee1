"""The roles of a causal model's heads on repeated random tokens, measured without a corpus, and how the second toy
model learned them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import streamlit as st

from mha_viz.analysis.repeats import DRAWS, LENGTH, MEASURES, DecoderHeads, Numbers, chance, measured
from mha_viz.attention import Head
from mha_viz.figures.caption import both
from mha_viz.figures.effects import head_grid as grid_of_heads
from mha_viz.figures.head_map import CONFIG
from mha_viz.figures.role_map import scores
from mha_viz.figures.theme import Theme
from mha_viz.files.assets import asset
from mha_viz.models import catalog, hub
from mha_viz.models.snapshots import steps
from mha_viz.numerals import decimal
from mha_viz.reader import verbs
from mha_viz.ui import navigation
from mha_viz.ui.caches import lasting
from mha_viz.ui.classroom import legible
from mha_viz.ui.head_grid import head_grid
from mha_viz.ui.jobs import queue_of
from mha_viz.ui.model_service import model_service
from mha_viz.ui.parts import complain, guarded, theme
from mha_viz.ui.roles import filters
from mha_viz.ui.roles.learning import MODEL, play, recorded, step_in_view
from mha_viz.ui.study_progress import Task, go_on, outcome

TOY = "repeater"
LEARNED = ("previous", "induction")  # the measures that are shown over its training
MEASURE = "repeats_measure"
FIRST = "induction"  # of the measures
EXAMPLE = "dog river anna green tower king dog river anna green tower"
PREVIOUS = "L0H0.L0H3"  # the second toy model's heads that look at the previous token
SPELT = {
    "induction": "Induction",
    "duplicate": "Duplicate token",
    "previous": "Previous token",
    "sink": "Sink",
}
EXPLAINED = (
    f"No corpus is needed: {DRAWS} sequences of {LENGTH} random tokens, each of which comes twice. *Induction* is the "
    "mean weight from a token of the second half to the one after its first occurrence, which is what comes next; "
    "*duplicate token* to that first occurrence; *previous token* and *sink*, the first token of the text, are of all "
    "rows but the first (Olsson et al. 2022). A head has such a role with more than half of its weight there, and 0.1 "
    "more than any head with random weights."
)


def show_repeated(model: catalog.Model) -> None:
    """Show the section for a causal model whose files are here; nothing for other models."""
    with guarded(complain):
        facts = hub.facts(model)
        if facts is None or not facts.causal:
            return
        with st.container(key="repeated"):
            st.markdown("## On repeated random tokens")
            st.markdown(EXPLAINED, width=900)
            heads = _heads(model)
            if heads is not None:
                _roles(heads)
                _grid(heads)
        if is_toy(model):
            _learning()


def is_toy(model: catalog.Model) -> bool:
    """True for the second toy model, at any step of its training."""
    return model.name.partition("@")[0] == TOY


def measured_heads(model: catalog.Model) -> DecoderHeads | None:
    """The measurements of a model; None if it was not measured yet."""
    return _task(model).stored()


def measure_in_view() -> str:
    """The measure that the squares show."""
    return str(st.session_state.get(MEASURE) or FIRST)


def _task(model: catalog.Model) -> Task[DecoderHeads]:
    def part(some: range, untrained: bool) -> Numbers:
        return model_service().ask(verbs.repeats, model.name, some.start, some.stop, untrained).result()

    words = "Reading repeated random tokens"
    return Task("repeats", (model.name, model.path), model.label, words, lambda: measured(model.name, part))


def _heads(model: catalog.Model) -> DecoderHeads | None:
    """The measurements, from memory or from a job; None until the visitor asks for them. Raises what the model
    raises."""
    task = _task(model)
    is_asked = model.kind == "own" or queue_of(task.kind).under_way(task.key) is not None
    if task.stored() is None and (task.left or not is_asked):
        st.button("Measure these heads", key="measure_repeats", on_click=go_on, args=(task,))
        return None
    return outcome(task)


def _roles(heads: DecoderHeads) -> None:
    """Say for each measure which heads have the role or, if none has it, which head is highest."""
    roles, even = heads.roles(), chance(heads.length)
    lines = []
    for number, measure in enumerate(MEASURES):
        beside = f"best untrained head {decimal(heads.untrained[number].max())}, chance {decimal(even[number])}"
        named = [f"**{both(role.head)}** {decimal(role.score)}" for role in roles if role.measure == measure]
        none = f"no head has more than half of its weight there; the most is {decimal(heads.trained[number].max())}"
        lines.append(f"* *{SPELT[measure]}*, {MEASURES[measure]}: {', '.join(named[:8]) or none} ({beside})")
    st.markdown("\n".join(lines))


def _grid(heads: DecoderHeads) -> None:
    st.segmented_control(
        "Mean weight",
        list(MEASURES),
        default=FIRST,
        format_func=SPELT.__getitem__,
        key=MEASURE,
        required=True,
    )
    measure = measure_in_view()
    head_grid(weights_chart(heads, measure, theme()), "repeats", f"{SPELT[measure]}: mean weight of each head.")


def weights_chart(heads: DecoderHeads, measure: str, colours: Theme) -> Any:
    """The mean weight of each head in one measure."""
    return grid_of_heads(heads.trained[list(MEASURES).index(measure)], "mean weight", (), colours, decimal)


# ---- How the second toy learned ------------------------------------------------------------------------------


@cache
def _history() -> Any:
    import pandas as pd

    return pd.read_csv(asset(f"{TOY}_history.csv"))


def _learning() -> None:
    """Show a slider over the training of the second toy model, and its scores at each step."""
    st.markdown("## How it learned")
    st.markdown(
        "A causal model with two layers of attention and nothing else learned to continue sequences of random words "
        "that are repeated. Heads of the first layer learn to look at the previous token; with what these add, heads "
        "of the second find the token that comes next. Two heads of the first layer do so: without one of them the "
        "answer stays, without both it is lost.",
        width=900,
    )
    _at_a_step()
    if any(row.name == MODEL for row in catalog.offered()):
        st.button(
            "See how a masked toy model learned four questions about sentences",
            key="to_toy",
            type="tertiary",
            icon=":material/arrow_forward:",
            on_click=filters.open_model,
            args=(MODEL,),
        )


def scores_chart(measure: str, step: int, colours: Theme) -> Any:
    """One measure of every head over the training of the second toy model, with a step marked."""
    table = _history()
    return scores(table[table["task"] == measure], step, SPELT[measure], colours)


@st.fragment
@guarded(complain)
def _at_a_step() -> None:
    saved, step = steps(asset(TOY)), step_in_view(TOY)
    page, name = navigation.page, f"{TOY}@{step}" if step != saved[-1] else TOY
    st.markdown(f"**Every head at each step**; rows: from, columns: to. *{EXAMPLE}*")
    play(_recorded(theme()), TOY)
    query = {"model": name, "text": EXAMPLE}
    st.page_link(page("explore"), label=":primary[Open this step in Explore]", query_params=query)
    query = {"model": TOY, "text": EXAMPLE, "off": PREVIOUS}
    st.page_link(page("explore"), label=":primary[Switch the heads of the first layer off]", query_params=query)
    st.markdown("**Every head over training**; blue: the head that is best at the end, dotted: chance.")
    for measure, place in zip(LEARNED, st.columns(len(LEARNED), gap="medium"), strict=True):
        with place:
            chart = scores_chart(measure, step, theme())
            alt = f"{SPELT[measure]}: every head over training."
            st.plotly_chart(legible(chart), key=f"repeats_{measure}", theme=None, config=CONFIG, alt=alt)
    st.caption("Mean weight of every head on repeated random tokens.")


@lasting(2)
def _recorded(colours: Theme) -> Mapping[str, Any]:
    """The data of all steps for the browser; cached, so callers must not change it."""
    count = len(EXAMPLE.split())
    period = EXAMPLE.split().index(EXAMPLE.split()[0], 1)
    places = {
        "the token before": {word: word - 1 for word in range(1, count)},
        "what followed this word before": {word: word - period + 1 for word in range(period, count)},
    }
    return recorded(TOY, places, _best_heads, colours)


def _best_heads(step: int) -> str:
    table = _history()
    at_step = table[table["step"] == step]
    rows = [at_step.loc[at_step.loc[at_step["task"] == measure, "accuracy"].idxmax()] for measure in LEARNED]
    return ", ".join(
        f"{SPELT[measure].lower()} {Head(int(row['layer']), int(row['head']))} {decimal(row['accuracy'], 2)}"
        for measure, row in zip(LEARNED, rows, strict=True)
    )
