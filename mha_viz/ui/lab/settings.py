"""The settings of a run: the controls with an error message beside each, the estimate, Run, Stop and progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from mha_viz.analysis.costs import divisors
from mha_viz.attention import is_number
from mha_viz.errors import MhaVizError, SettingError
from mha_viz.numerals import counted, done, duration
from mha_viz.training import lab
from mha_viz.training.lab import EXPERIMENTS, MOST_HEADS, WIDTHS, Field, limits
from mha_viz.training.record import Settings
from mha_viz.ui import address
from mha_viz.ui.jobs import Job, queue_of
from mha_viz.ui.lab import trainings
from mha_viz.ui.lab.link import read, written
from mha_viz.ui.parts import complain, complain_later, formulas, guarded, remark

LABELS: Mapping[Field, tuple[str, str]] = {
    "weight": ("λ", "The weight of the penalty."),
    "heads": ("Heads, h", "The number of heads must divide d_model: d_k = d_model / h."),
    "d_model": ("d_model", "How many numbers the vector of a word has."),
    "steps": ("Steps", "Updates by Adam, each on 32 new sentences."),
    "seed": ("Seed", "Determines the starting weights and the sentences; the same seed gives the same run."),
}
OF_THIS_RUN = ("run", "step", "removed", "arm")


def show_settings(experiment: str, linked_settings: Settings) -> None:
    """Show the settings with an error message beside each, and the button that runs them."""
    running = trainings.under_way(linked_settings)
    asks = EXPERIMENTS[experiment].asks
    _follow(experiment, linked_settings)
    choices = _choices(experiment)
    with st.container(border=True, key="lab_settings"):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            values: dict[str, Any] = {name: _control(experiment, name, choices) for name in asks}
            faults = _faults(experiment, values)
            if running is None:
                st.button(
                    "Run", type="primary", key="lab_run", disabled=bool(faults), on_click=_start, args=(experiment,),
                    help=None if faults else "Trains on this server.", width=92,
                )  # fmt: skip
        for error in (_misfits(linked_settings) | faults).values():
            complain(error)
        if not faults:
            _foretell(replace(linked_settings, **values), linked_settings)
        if running is not None:
            _progress(running)


def _follow(experiment: str, linked_settings: Settings) -> None:
    """Put the settings of the URL into the controls if the URL has changed; otherwise the controls keep their
    values."""
    stamp = (experiment, address.now().get("run"))
    followed = st.session_state.get("lab_followed") == stamp
    st.session_state["lab_followed"] = stamp
    for name in EXPERIMENTS[experiment].asks:
        key = _key(experiment, name)
        if not followed or key not in st.session_state:
            st.session_state[key] = getattr(linked_settings, name)


def _choices(experiment: str) -> Mapping[Field, Sequence[int]]:
    """The values that d_model and the number of heads can have; a control with another value is set to the nearest
    one."""
    widths = f"lab_{experiment}_d_model"
    st.session_state[widths] = _nearest(WIDTHS, st.session_state[widths])
    choices: dict[Field, Sequence[int]] = {"d_model": WIDTHS}
    if "heads" in EXPERIMENTS[experiment].asks:
        heads = _key(experiment, "heads")
        choices["heads"] = divisors(st.session_state[widths], 2, MOST_HEADS)
        st.session_state[heads] = _nearest(choices["heads"], st.session_state[heads])
    return choices


def _nearest(choices: Sequence[int], value: object) -> int:
    number = int(value) if is_number(value) else 0  # a forged message can contain anything
    return min(choices, key=lambda choice: abs(choice - number))


def _control(experiment: str, name: Field, choices: Mapping[Field, Sequence[int]]) -> float:
    label, explanation = LABELS[name]
    place: dict[str, Any] = {"key": _key(experiment, name), "help": formulas(explanation), "width": 92}
    if name in choices:
        chosen: int = st.selectbox(formulas(label), choices[name], **place)
        return chosen
    step: dict[str, Any] = (
        {"step": 0.1, "format": "%g"} if name == "weight" else {"step": 100 if name == "steps" else 1}
    )
    entered: float = st.number_input(formulas(label), **place, **step)
    return entered


def _misfits(linked_settings: Settings) -> dict[Field, SettingError]:
    """The settings in a link that are not among the choices."""
    return {name: error for name, error in lab.faults(linked_settings).items() if name in ("heads", "d_model")}


def _foretell(typed: Settings, linked_settings: Settings) -> None:
    """Say how long the run will take, and why it could not show what it is meant to show, if so."""
    if _is_saved(typed):
        st.caption("Saved run. Change a number to train your own.")
    else:
        st.caption(f"Takes {duration(trainings.seconds(typed))} on this server.")
    if typed != linked_settings:  # otherwise the result on the page states them
        for note in limits(typed):
            remark(note)


def _is_saved(settings: Settings) -> bool:
    """Whether the run comes with the app, or this server has just done it: equal settings give equal numbers."""
    return settings == EXPERIMENTS[settings.experiment].default or trainings.result(settings) is not None


def _key(experiment: str, name: Field) -> str:
    return f"lab_{experiment}_{name}"


def _faults(experiment: str, values: Mapping[str, Any]) -> dict[Field, SettingError]:
    return lab.faults(replace(EXPERIMENTS[experiment].default, **values))


@guarded()
def _start(experiment: str) -> None:
    """Run the settings of the controls unless that run is saved, and write them into the URL."""
    asks = EXPERIMENTS[experiment].asks
    chosen = {name: st.session_state[_key(experiment, name)] for name in asks}
    settings = read(experiment, written(replace(EXPERIMENTS[experiment].default, **chosen)))  # rounded as in a link
    try:
        if _is_saved(settings):
            st.toast("This run is saved and is shown. Change the seed to train a new one.")
        else:
            trainings.start(settings)
        address.go(**{**dict.fromkeys(OF_THIS_RUN), "experiment": experiment, "run": written(settings) or "default"})
    except MhaVizError as error:
        complain_later(error)


@st.fragment(run_every=0.5)
@guarded(complain)
def _progress(training: Job) -> None:
    if training.finished or training.left:
        if training.error is not None and not training.left:
            complain_later(training.error)
        st.rerun()
    training.look()
    left, right = st.columns([3, 1], vertical_alignment="center")
    left.progress(training.fraction, text=_standing(training))
    right.button("Stop", key="lab_stop", on_click=training.let_go, width="stretch")


def _standing(training: Job) -> str:
    first = queue_of(trainings.KIND).before(training)
    if first:
        return f"Waiting for {counted(first, 'training')} of other visitors"
    return f"Training: {done(training.fraction)}" if training.fraction else "Training is starting"
