"""The training lab: choose an experiment, say what you expect, see a result, then change its settings and run it
here."""

from __future__ import annotations

import streamlit as st

from mha_viz.errors import MhaVizError
from mha_viz.models import catalog
from mha_viz.training import lab
from mha_viz.training.lab import EXPERIMENTS
from mha_viz.training.record import Result, Settings
from mha_viz.ui import address, classroom, navigation, style
from mha_viz.ui.bound import Changes, bound
from mha_viz.ui.lab import expected, result, settings, trainings
from mha_viz.ui.lab.link import read
from mha_viz.ui.parts import complain, entitle, formulas, remark, say_complaint, theme

LANGUAGE = (
    "Each experiment trains a single attention layer from scratch on a made-up language. A word is a letter with a "
    "mark, such as *k▲*. Each mark appears on exactly two words; these two are *linked*. For each word the layer must "
    "name two letters: that of **the word before** it and that of **the linked word**. It can only know them by "
    "attending to the right word. Right answers are counted on *held-out* sentences, which are never used for training."
)
TOYS = {  # by the name of the model
    "toy": "How a masked model learned four questions about sentences",
    "repeater": "How a causal model learned to continue repeated words",
}


def show_lab() -> None:
    """Show the page for the request in the URL."""
    style.apply("lab")
    say_complaint()
    experiment = lab.experiment_named(address.now().get("experiment"))
    linked_settings = read(experiment, address.now().get("run"))
    _menu(experiment)
    entitle("Why heads differ", EXPERIMENTS[experiment].short)
    left, right = st.columns([7, 4], gap="large")
    with right:
        settings.show_settings(experiment, linked_settings)
    with left:
        st.markdown(f"### {EXPERIMENTS[experiment].question}")
        expected.ask(experiment)
    if not expected.is_answered():
        return
    run = _wanted(linked_settings)
    with left:
        _answer(experiment, run)
    if run is not None:
        result.show_result(run, theme())
    _toys()


def _toys() -> None:
    """Links to the two toy models, which were saved while they learned."""
    offered = [row.name for row in catalog.offered() if row.name in TOYS]
    if offered:
        st.markdown("### From tasks made by hand to small language models")
    for name in offered:
        label = f":primary[{TOYS[name]}]"
        st.page_link(navigation.page("roles"), label=label, query_params={"model": name})


def _menu(experiment: str) -> None:
    st.markdown("## Why heads differ")
    st.markdown(LANGUAGE, width=900)
    bound(
        st.pills,
        "Experiment",
        "experiment",
        experiment,
        list(EXPERIMENTS),
        change=_experiment,
        key="lab_experiment",
        format_func=lambda name: f"{[*EXPERIMENTS].index(name) + 1} · {formulas(EXPERIMENTS[name].short)}",
        label_visibility="collapsed",
    )


def _experiment(chosen: str | None) -> Changes | None:
    if chosen is None:  # a second click on the same one must not deselect it
        return None
    return {"experiment": chosen, **dict.fromkeys((*settings.OF_THIS_RUN, expected.PARAMETER))}


def _answer(experiment: str, run: Result | None) -> None:
    row = EXPERIMENTS[experiment]
    with classroom.answer():
        if run is not None:
            expected.show_outcome(run)
        st.markdown(f"{formulas(row.answer)}  \n*Source:* {formulas(row.source)}")
    if run is not None:
        how = "Press *Play*. " if row.is_seen_in_play else ""
        st.markdown(f"**What to look at:** {how}{formulas(row.look(run))}")


def _wanted(linked_settings: Settings) -> Result | None:
    """The result that the URL asks for if this server has it, else the default run that comes with the app."""
    default = EXPERIMENTS[linked_settings.experiment].default
    if "run" in address.now():
        done = trainings.result(linked_settings)
        if done is not None:
            return done
        waiting = trainings.under_way(linked_settings) is not None
        if linked_settings != default and not waiting and not lab.faults(linked_settings):
            remark(
                f"This server has not run {result.in_words(linked_settings)}. Below is the saved default run; press "
                "Run for this one."
            )
        elif waiting:
            remark("Until the training is done, the saved default run is shown below.")
    try:
        return lab.stored(linked_settings.experiment)
    except MhaVizError as error:
        complain(error)
        return None
