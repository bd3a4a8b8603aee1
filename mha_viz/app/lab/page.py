"""The page *Why heads differ*: one stage on which small trainings are played, each to answer a question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import streamlit as st

from mha_viz.app.lab import learning, questions, result, settings, small_tasks, stage, trainings
from mha_viz.app.lab.link import read, unread
from mha_viz.app.lab.stage import FollowingStep
from mha_viz.app.url import address
from mha_viz.app.widgets.bound import UrlChanges, bound, in_link
from mha_viz.app.widgets.components import apply_style
from mha_viz.app.widgets.parts import complain, formulas, remark, say_complaint, say_unused, theme
from mha_viz.errors import MhaVizError
from mha_viz.lab import lab
from mha_viz.lab.lab import EXPERIMENTS
from mha_viz.lab.record import Result, Settings


class Scene(NamedTuple):
    """A scene of the stage: its title, and the function that shows it, given its name and the following step."""

    short: str
    show: Callable[[str, FollowingStep | None], None]


def show_lab() -> None:
    """Show the page for the request in the URL."""
    apply_style("lab")
    say_complaint()
    wanted = in_link("experiment", [*SCENES, *lab.NUMBERED], ".+")
    name = wanted if wanted in SCENES else lab.experiment_named(wanted)
    bound(
        st.pills, "Experiment", "experiment", name, list(SCENES), change=_experiment, key="lab_experiment",
        format_func=lambda name: formulas(SCENES[name].short), label_visibility="collapsed",
    )  # fmt: skip
    with st.container():  # always one container: expanders close when their position on the page changes
        SCENES[name].show(name, _following(name))
    questions.show_questions()


def _experiment(chosen: str | None) -> UrlChanges | None:
    return None if chosen is None else stage.another(chosen)  # a second click on the same one must not deselect it


def _following(name: str) -> FollowingStep | None:
    """Return the scene that comes after this one; None after the last."""
    later = [*SCENES][[*SCENES].index(name) + 1 :]
    return FollowingStep(SCENES[later[0]].short, stage.another(later[0])) if later else None


def _show_experiment(name: str, following: FollowingStep | None) -> None:
    row = EXPERIMENTS[name]
    linked_settings = read(name, address.now().get("run"))
    say_unused([f"run={part[:20]}" for part in unread(name, address.now().get("run"))])
    stage.ask(row.short, row.question)
    guess = stage.ask_guess(name, row.prediction, row.options)
    if stage.has_numbers():
        settings.show_settings(name, linked_settings)
    run = _wanted(linked_settings)
    if run is not None:
        result.show_result(run, guess, theme(), following)


SCENES: Mapping[str, Scene] = MappingProxyType(
    {name: Scene(row.short, _show_experiment) for name, row in EXPERIMENTS.items()}
    | {name: Scene(toy.short, learning.show_toy) for name, toy in learning.TOYS.items()}
    | {small_tasks.SCENE: Scene("Small tasks", small_tasks.show_small_tasks)}
)


def _wanted(linked_settings: Settings) -> Result | None:
    """Return the result that the URL asks for if this server has it, else the default run that comes with the app."""
    default = EXPERIMENTS[linked_settings.experiment].default
    if "run" in address.now():
        done = trainings.result(linked_settings)
        if done is not None:
            return done
        waiting = trainings.under_way(linked_settings) is not None
        if linked_settings != default and not waiting and not lab.faults(linked_settings):
            remark(
                f"This server has not run {result.in_words(linked_settings)}. The saved default run is shown below; "
                "press Run to train this one."
            )
        elif waiting:
            remark("Until the training is done, the saved default run is shown below.")
    try:
        return lab.stored(linked_settings.experiment)
    except MhaVizError as error:
        complain(error)
        return None
