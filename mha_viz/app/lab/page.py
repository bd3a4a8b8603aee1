"""The page *Why heads differ*: one stage on which small trainings are played, each to answer a question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import streamlit as st

from mha_viz.app.lab import learning, questions, result, settings, small_tasks, stage, trainings
from mha_viz.app.lab.link import list_unread_parts, read_settings
from mha_viz.app.lab.stage import NextScene
from mha_viz.app.url import address
from mha_viz.app.widgets.components import apply_style
from mha_viz.app.widgets.parts import (
    format_formulas,
    get_theme,
    report_ignored,
    show_error,
    show_pending_error,
    show_remark,
)
from mha_viz.app.widgets.url_controls import UrlChanges, bind_control, read_option
from mha_viz.errors import MhaVizError
from mha_viz.lab import lab
from mha_viz.lab.lab import EXPERIMENTS
from mha_viz.lab.record import Result, Settings


class Scene(NamedTuple):
    """A scene of the stage: its title, and a function that shows it.

    The function takes the name of the scene and the scene that follows.
    """

    title: str
    show: Callable[[str, NextScene | None], None]


def show_lab() -> None:
    """Show the page for the request in the URL."""
    apply_style("lab")
    show_pending_error()
    value = read_option("experiment", [*SCENES, *lab.EXPERIMENT_BY_NUMBER], ".+")
    name = value if value in SCENES else lab.find_experiment(value)
    bind_control(
        st.pills, "Experiment", "experiment", name, list(SCENES), change=_change_experiment, key="lab_experiment",
        format_func=lambda name: format_formulas(SCENES[name].title), label_visibility="collapsed",
    )  # fmt: skip
    with st.container():  # always one container: expanders close when their position on the page changes
        SCENES[name].show(name, _find_next_scene(name))
    questions.show_questions()


def _change_experiment(choice: str | None) -> UrlChanges | None:
    # A second click on an experiment must not deselect it.
    return None if choice is None else stage.make_scene_parameters(choice)


def _find_next_scene(name: str) -> NextScene | None:
    """Return the scene that comes after this one; None after the last."""
    later_names = [*SCENES][[*SCENES].index(name) + 1 :]
    return NextScene(SCENES[later_names[0]].title, stage.make_scene_parameters(later_names[0])) if later_names else None


def _show_experiment(name: str, next_scene: NextScene | None) -> None:
    experiment = EXPERIMENTS[name]
    linked_settings = read_settings(name, address.get_parameters().get("run"))
    report_ignored([f"run={part[:20]}" for part in list_unread_parts(name, address.get_parameters().get("run"))])
    stage.show_question(experiment.menu_name, experiment.question)
    guess = stage.ask_guess(name, experiment.prediction, experiment.options)
    if stage.has_numbers():
        settings.show_settings(name, linked_settings)
    shown_result = _load_linked_result(linked_settings)
    if shown_result is not None:
        result.show_result(shown_result, guess, get_theme(), next_scene)


SCENES: Mapping[str, Scene] = MappingProxyType(
    {name: Scene(experiment.menu_name, _show_experiment) for name, experiment in EXPERIMENTS.items()}
    | {name: Scene(toy.title, learning.show_toy) for name, toy in learning.TOYS.items()}
    | {small_tasks.SCENE: Scene("Small tasks", small_tasks.show_small_tasks)}
)


def _load_linked_result(linked_settings: Settings) -> Result | None:
    """Return the result that the URL asks for if this server has it, else the default run that comes with the app."""
    default = EXPERIMENTS[linked_settings.experiment].default
    if "run" in address.get_parameters():
        linked_result = trainings.find_result(linked_settings)
        if linked_result is not None:
            return linked_result
        is_waiting = trainings.find_running(linked_settings) is not None
        if linked_settings != default and not is_waiting and not lab.find_setting_errors(linked_settings):
            show_remark(
                f"This server has not run {result.describe_settings(linked_settings)}. The saved default run is "
                "shown below; press Run to train this one."
            )
        elif is_waiting:
            show_remark("Until the training is done, the saved default run is shown below.")
    try:
        return lab.load_stored(linked_settings.experiment)
    except MhaVizError as error:
        show_error(error)
        return None
