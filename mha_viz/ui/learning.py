"""How the toy model came by its roles: a slider over its training, the scores of its heads, and their maps."""

from __future__ import annotations

import base64
from functools import cache
from typing import Any

import streamlit as st

from mha_viz import notebook, snapshots
from mha_viz.assets import asset
from mha_viz.attention import Head
from mha_viz.errors import MhaVizError
from mha_viz.figures.caption import both
from mha_viz.figures.head_map import CONFIG
from mha_viz.figures.role_map import scores
from mha_viz.figures.theme import DARK, LIGHT
from mha_viz.models import catalog
from mha_viz.ui import frame
from mha_viz.ui.annotated import built_in
from mha_viz.ui.cache import office
from mha_viz.ui.parts import complain

TASKS = {
    "previous_token": "the token before",
    "verb_subject": "from the subject to its verb",
    "pronoun_antecedent": "from a pronoun to its antecedent",
}
MODEL = "toy"
LONG = range(9, 15)  # words of the sentence that is drawn


def show() -> None:
    """The slider, what the heads can do at that step, and every head's map of one sentence."""
    st.markdown("### How it learned")
    steps = list(snapshots.steps(asset(MODEL)))
    step = int(st.select_slider("Step of training", steps, value=steps[-1], key="step", bind="query-params"))
    table = history()
    st.markdown(" ".join(_told(table[table["step"] == step], task) for task in TASKS))
    theme = DARK if st.context.theme.type == "dark" else LIGHT
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("**Scores of every head over training**; the strong lines are the heads that are best at the end.")
        for task, words in TASKS.items():
            chart = scores(table[table["task"] == task], step, f"{words[:1].upper()}{words[1:]}", theme)
            st.plotly_chart(chart, key=f"scores_{task}", theme=None, config=CONFIG)
    with right:
        _maps(step)


@cache
def history() -> Any:
    """Every head's score at every step that is kept, on sentences that the model never saw."""
    import pandas as pd

    return pd.read_csv(asset("toy_history.csv"))


def _told(at_step: Any, task: str) -> str:
    of_task = at_step[at_step["task"] == task]
    best = of_task.loc[of_task["accuracy"].idxmax()]
    head = Head(int(best["layer"]), int(best["head"]))
    return (
        f"Best for {TASKS[task]}: **{both(head)}**, right in **{best['accuracy']:.0%}** of {int(best['n']):,} "
        f"(baseline {best['baseline']:.0%})."
    )


def _maps(step: int) -> None:
    sentence = next(s for s in built_in().sentences if len(s.forms) in LONG and len(s.mentions) > 2)
    text = " ".join(sentence.forms)
    try:
        model = catalog.resolve(f"{MODEL}@{step}")
        attention = office().reading(model, text, "").result()
    except MhaVizError as error:
        complain(error)
        return
    from mha_viz.exports.preview import preview

    look = "dark" if st.context.theme.type == "dark" else "light"
    drawing = notebook.grid(attention, unit="words", special="hide", width_mm=150, look=look).drawing
    source = base64.b64encode(preview(drawing)).decode()
    st.markdown(f"**All heads after {step:,} steps** on the sentence below.")
    st.html(f'<img alt="Grid of all heads" style="width:100%" src="data:image/svg+xml;base64,{source}">')
    st.text(text)
    st.page_link(
        frame.page("explore"), label="Open this step in Explore", query_params={"model": model.name, "text": text}
    )
