"""The settings of a run: controls with error messages, an estimate of the duration, Run, Stop and progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from mha_viz.analysis.costs import list_divisors
from mha_viz.app.lab import trainings
from mha_viz.app.lab.link import DEFAULT, read_settings, write_settings
from mha_viz.app.service.jobs import Job, get_queue
from mha_viz.app.url import address
from mha_viz.app.widgets.parts import format_formulas, report_errors, show_error, show_error_later, show_remark
from mha_viz.attention import is_number
from mha_viz.errors import MhaVizError
from mha_viz.lab import lab
from mha_viz.lab.lab import EXPERIMENTS, MAX_HEADS, WIDTHS, SettingName, explain_limits
from mha_viz.lab.record import Settings
from mha_viz.numerals import counted, duration, format_done

LABELS: Mapping[SettingName, tuple[str, str]] = {
    "weight": ("λ", "The weight of the penalty."),
    "heads": ("Heads, h", "The number of heads must divide d_model: d_k = d_model / h."),
    "d_model": ("d_model", "Width of each word’s vector."),
    "steps": ("Steps", "Adam updates, each on 32 new sentences."),
    "seed": ("Seed", "Sets the initial weights and the sentences; the same seed repeats the run."),
}
RUN_PARAMETERS = ("run", "step", "removed", "arm")


def show_settings(experiment: str, linked_settings: Settings) -> None:
    """Show the settings, each with its error message, and the button that runs them."""
    running_training = trainings.find_running(linked_settings)
    choices = _list_choices(linked_settings)
    with st.container(border=True, key="lab_settings"):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            values: dict[str, Any] = {
                name: _show_control(name, linked_settings, choices) for name in EXPERIMENTS[experiment].setting_names
            }
            faults = lab.find_setting_errors(replace(EXPERIMENTS[experiment].default, **values))
            if running_training is None:
                st.button(
                    "Run", type="primary", key="lab_run", disabled=bool(faults), on_click=_start,
                    args=(linked_settings,), help=None if faults else "Trains on this server.", width=92,
                )  # fmt: skip
        # The link may hold sizes that the controls do not offer.
        linked_faults = lab.find_setting_errors(linked_settings)
        size_faults = {name: linked_faults[name] for name in linked_faults if name in ("heads", "d_model")}
        for error in (size_faults | faults).values():
            show_error(error)
        if not faults:
            _show_estimate(replace(linked_settings, **values), linked_settings)
        if running_training is not None:
            show_progress(running_training)


def _list_choices(linked_settings: Settings) -> Mapping[SettingName, Sequence[int]]:
    """Return the values that the controls for d_model and the number of heads offer.

    Set a control with any other value to the nearest of these.
    """
    choices: dict[SettingName, Sequence[int]] = {"d_model": WIDTHS}
    width = _set_nearest("d_model", linked_settings, WIDTHS)
    if "heads" in EXPERIMENTS[linked_settings.experiment].setting_names:
        choices["heads"] = list_divisors(width, 2, MAX_HEADS)
        _set_nearest("heads", linked_settings, choices["heads"])
    return choices


def _set_nearest(name: SettingName, linked_settings: Settings, choices: Sequence[int]) -> int:
    key = _make_key(name, linked_settings)
    value = st.session_state.get(key, getattr(linked_settings, name))
    number = int(value) if is_number(value) else 0  # a forged message can contain anything
    st.session_state[key] = min(choices, key=lambda choice: abs(choice - number))
    return int(st.session_state[key])


def _show_control(name: SettingName, linked_settings: Settings, choices: Mapping[SettingName, Sequence[int]]) -> float:
    label, explanation = LABELS[name]
    options: dict[str, Any] = {
        "key": _make_key(name, linked_settings),
        "help": format_formulas(explanation),
        "width": 92,
    }
    if name in choices:
        value: int = st.selectbox(format_formulas(label), choices[name], **options)
        return value
    step_options: dict[str, Any] = (
        {"step": 0.1, "format": "%g"} if name == "weight" else {"step": 100 if name == "steps" else 1}
    )
    number: float = st.number_input(
        format_formulas(label), value=getattr(linked_settings, name), **options, **step_options
    )
    return number


def _show_estimate(entered_settings: Settings, linked_settings: Settings) -> None:
    """Show the expected duration of the run, and the reasons why its settings may not show the intended effect."""
    if _is_saved(entered_settings):
        st.caption("Saved run. Change a setting to train your own.")
    else:
        st.caption(f"Takes {duration(trainings.estimate_seconds(entered_settings))} on this server.")
    if entered_settings != linked_settings:  # otherwise the result on the page shows these notes
        for note in explain_limits(entered_settings):
            show_remark(note)


def _is_saved(settings: Settings) -> bool:
    """Return whether a result with these settings is bundled with the app, or cached from an earlier run."""
    return settings == EXPERIMENTS[settings.experiment].default or trainings.find_result(settings) is not None


def _make_key(name: SettingName, linked_settings: Settings) -> str:
    """Return the key of a control.

    It contains the URL's value, so that a new value in the URL resets what was entered.
    """
    run = write_settings(linked_settings)
    return f"lab_{linked_settings.experiment}_{name}" + (f"_{run}" if run else "")


@report_errors()
def _start(linked_settings: Settings) -> None:
    """Run the entered settings unless their result exists, and write them into the URL."""
    experiment = linked_settings.experiment
    values = {
        name: st.session_state[_make_key(name, linked_settings)] for name in EXPERIMENTS[experiment].setting_names
    }
    # Round the values as a link does.
    settings = read_settings(experiment, write_settings(replace(EXPERIMENTS[experiment].default, **values)))
    try:
        if _is_saved(settings):
            st.toast("This run is saved and shown here. Change the seed to train a new one.")
        else:
            trainings.start(settings)
        address.go(
            **{**dict.fromkeys(RUN_PARAMETERS), "experiment": experiment, "run": write_settings(settings) or DEFAULT}
        )
    except MhaVizError as error:
        show_error_later(error)


@st.fragment(run_every=0.5)
@report_errors(show_error)
def show_progress(training: Job) -> None:
    """Show the progress of a training and a button that stops it; rerun the page when it has ended."""
    if training.is_finished or training.is_cancelled:
        if training.error is not None and not training.is_cancelled:
            show_error_later(training.error)
        st.rerun()
    training.heartbeat()
    left, right = st.columns([3, 1], vertical_alignment="center")
    left.progress(training.fraction, text=_describe_progress(training))
    right.button("Stop", key="lab_stop", on_click=training.cancel, width="stretch")


def _describe_progress(training: Job) -> str:
    jobs_ahead = get_queue(trainings.KIND).count_ahead(training)
    if jobs_ahead:
        return f"Waiting for {counted(jobs_ahead, 'training')} of other visitors"
    return f"Training: {format_done(training.fraction)}" if training.fraction else "Training is starting"
