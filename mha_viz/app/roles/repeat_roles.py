"""The roles of a causal model's heads on repeated random tokens, which need no corpus."""

from __future__ import annotations

from typing import Any

import streamlit as st

from mha_viz.analysis.repeats import DRAWS, LENGTH, MEASURES, DecoderHeads, Numbers, compute_chance, measure_heads
from mha_viz.app.service.caches import get_model_service
from mha_viz.app.service.jobs import Task, get_queue
from mha_viz.app.service.reader import verbs
from mha_viz.app.widgets.head_grid import show_head_grid
from mha_viz.app.widgets.parts import get_theme, report_errors, show_error
from mha_viz.app.widgets.study_progress import load_result, start_task
from mha_viz.figures.charts.effects import draw_head_grid
from mha_viz.figures.drawing.theme import Theme
from mha_viz.figures.layout.caption import format_head
from mha_viz.models.getting import catalog, hub
from mha_viz.numerals import decimal

MEASURE_KEY = "repeats_measure"
DEFAULT_MEASURE = "induction"
MAX_LISTED = 8  # maximum number of heads listed per measure
LABELS = {
    "induction": "Induction",
    "duplicate": "Duplicate token",
    "previous": "Previous token",
    "sink": "Sink",
}
EXPLANATION = (
    f"{DRAWS} sequences of {LENGTH} random tokens, each of which occurs twice. *Induction*: look at what followed this "
    "word last time (Olsson et al. 2022). A head has such a role if more than half of its weight goes there, and 0.1 "
    "more than for any head with random weights."
)


def show_repeat_roles(model: catalog.Model) -> None:
    """Show the section for a causal model whose files are on this machine; nothing for other models."""
    with report_errors(show_error):
        facts = hub.read_facts(model)
        if facts is None or not facts.causal:
            return
        with st.container(key="repeated"):
            st.markdown("## On repeated random tokens")
            st.markdown(EXPLANATION, width=900)
            heads = _measure_heads(model)
            if heads is not None:
                _list_roles(heads)
                _show_grid(heads)


def load_heads(model: catalog.Model) -> DecoderHeads | None:
    """Return the cached measurements of a model; None if there are none."""
    return _make_task(model).find_result()


def read_measure() -> str:
    """Return the measure that the grid of heads shows."""
    return str(st.session_state.get(MEASURE_KEY) or DEFAULT_MEASURE)


def _make_task(model: catalog.Model) -> Task[DecoderHeads]:
    def measure_part(draws: range, untrained: bool) -> Numbers:
        return get_model_service().ask(verbs.measure_repeats, model.name, draws.start, draws.stop, untrained).result()

    def find_revision() -> str:
        return get_model_service().ask(verbs.find_revision, model.name).result()

    label, key = "Reading repeated random tokens", (model.name, model.path)
    return Task(
        "repeats", key, model.label, label, lambda: measure_heads(model.name, measure_part, revision=find_revision)
    )


def _measure_heads(model: catalog.Model) -> DecoderHeads | None:
    """Return the measurements, from the cache or from a job; None until the visitor asks for them.

    Raises the model's errors.
    """
    task = _make_task(model)
    is_requested = model.kind == "own" or get_queue(task.kind).find_running(task.key) is not None
    if task.find_result() is None and (task.is_cancelled or not is_requested):
        st.button("Measure these heads", key="measure_repeats", on_click=start_task, args=(task,))
        return None
    was_measured, heads = task.find_result() is not None, load_result(task)
    if not was_measured:
        st.rerun()  # redraw the map above, which also shows these roles
    return heads


def _list_roles(heads: DecoderHeads) -> None:
    """List for each measure the heads that have the role or, if none has it, the highest value."""
    roles, chance = heads.roles(), compute_chance(heads.length)
    lines = []
    for number, measure in enumerate(MEASURES):
        comparison = f"best untrained head {decimal(heads.untrained[number].max())}, chance {decimal(chance[number])}"
        role_heads = [
            f"**{format_head(role.head)}** {decimal(role.score)}" for role in roles if role.measure == measure
        ]
        fallback = f"no head; the highest is {decimal(heads.trained[number].max())}"
        more = f" and {len(role_heads) - MAX_LISTED} more" if len(role_heads) > MAX_LISTED else ""
        names = f"{', '.join(role_heads[:MAX_LISTED])}{more}" or fallback
        lines.append(f"* *{LABELS[measure]}*, {MEASURES[measure]}: {names} ({comparison})")
    st.markdown("\n".join(lines))


def _show_grid(heads: DecoderHeads) -> None:
    st.segmented_control(
        "Mean weight",
        list(MEASURES),
        default=DEFAULT_MEASURE,
        format_func=LABELS.__getitem__,
        key=MEASURE_KEY,
        required=True,
    )
    measure = read_measure()
    show_head_grid(
        draw_weights(heads, measure, get_theme()), "repeats", f"{LABELS[measure]}: mean weight of each head."
    )


def draw_weights(heads: DecoderHeads, measure: str, colours: Theme) -> Any:
    """Return a chart of the mean weight of each head in one measure."""
    return draw_head_grid(heads.trained[list(MEASURES).index(measure)], "mean weight", (), colours, decimal)
