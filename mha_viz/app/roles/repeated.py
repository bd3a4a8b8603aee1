"""The roles of a causal model's heads on repeated random tokens, which need no corpus."""

from __future__ import annotations

from typing import Any

import streamlit as st

from mha_viz.analysis.repeats import DRAWS, LENGTH, MEASURES, DecoderHeads, Numbers, chance, measured
from mha_viz.app.service.caches import model_service
from mha_viz.app.service.jobs import Task, queue_of
from mha_viz.app.service.reader import verbs
from mha_viz.app.widgets.head_grid import head_grid
from mha_viz.app.widgets.parts import complain, guarded, theme
from mha_viz.app.widgets.study_progress import go_on, outcome
from mha_viz.figures.charts.effects import head_grid as grid_of_heads
from mha_viz.figures.drawing.theme import Theme
from mha_viz.figures.layout.caption import both
from mha_viz.models.getting import catalog, hub
from mha_viz.numerals import decimal

MEASURE = "repeats_measure"
FIRST = "induction"  # of the measures
SPELT = {
    "induction": "Induction",
    "duplicate": "Duplicate token",
    "previous": "Previous token",
    "sink": "Sink",
}
EXPLAINED = (
    f"{DRAWS} sequences of {LENGTH} random tokens, each of which occurs twice. *Induction*: look at what followed this "
    "word last time (Olsson et al. 2022). A head has such a role if more than half of its weight goes there, and 0.1 "
    "more than for any head with random weights."
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


def measured_heads(model: catalog.Model) -> DecoderHeads | None:
    """Return the cached measurements of a model; None if there are none."""
    return _task(model).stored()


def measure_in_view() -> str:
    """Return the measure that the squares show."""
    return str(st.session_state.get(MEASURE) or FIRST)


def _task(model: catalog.Model) -> Task[DecoderHeads]:
    def part(draws: range, untrained: bool) -> Numbers:
        return model_service().ask(verbs.repeats, model.name, draws.start, draws.stop, untrained).result()

    def revision() -> str:
        return model_service().ask(verbs.find_revision, model.name).result()

    words, key = "Reading repeated random tokens", (model.name, model.path)
    return Task("repeats", key, model.label, words, lambda: measured(model.name, part, revision=revision))


def _heads(model: catalog.Model) -> DecoderHeads | None:
    """Return the measurements, from the cache or from a job; None until the visitor asks for them.

    Raises what the model raises.
    """
    task = _task(model)
    is_asked = model.kind == "own" or queue_of(task.kind).under_way(task.key) is not None
    if task.stored() is None and (task.left or not is_asked):
        st.button("Measure these heads", key="measure_repeats", on_click=go_on, args=(task,))
        return None
    was_measured, heads = task.stored() is not None, outcome(task)
    if not was_measured:
        st.rerun()  # the map above, drawn before, also shows these roles
    return heads


def _roles(heads: DecoderHeads) -> None:
    """Say for each measure which heads have the role or, if none has it, what the highest value is."""
    roles, even = heads.roles(), chance(heads.length)
    lines = []
    for number, measure in enumerate(MEASURES):
        comparison = f"best untrained head {decimal(heads.untrained[number].max())}, chance {decimal(even[number])}"
        role_heads = [f"**{both(role.head)}** {decimal(role.score)}" for role in roles if role.measure == measure]
        none = f"no head has more than half of its weight there; the most is {decimal(heads.trained[number].max())}"
        lines.append(f"* *{SPELT[measure]}*, {MEASURES[measure]}: {', '.join(role_heads[:8]) or none} ({comparison})")
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
    """Return a chart of the mean weight of each head in one measure."""
    return grid_of_heads(heads.trained[list(MEASURES).index(measure)], "mean weight", (), colours, decimal)
