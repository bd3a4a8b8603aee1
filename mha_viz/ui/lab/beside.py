"""The same experiment with another seed, below the one on the stage: what is chance, and what is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from mha_viz.training.lab import EXPERIMENTS, MOST_SEED
from mha_viz.training.record import Result, Settings
from mha_viz.ui import address
from mha_viz.ui.bound import Changes, bound
from mha_viz.ui.lab import settings, trainings
from mha_viz.ui.parts import guarded

PARAMETER = "beside"


def is_beside(result: Result) -> bool:
    """Whether the link asks for another seed, and the experiment has seeds."""
    return "seed" in EXPERIMENTS[result.settings.experiment].asks and address.now().get(PARAMETER) == "1"


def show_beside(result: Result, play: Callable[[Result], None]) -> None:
    """Show the switch for another seed and, if it is on, what ``play`` draws of it, or how far its training is."""
    if "seed" not in EXPERIMENTS[result.settings.experiment].asks:
        return
    other = replace(result.settings, seed=(result.settings.seed + 1) % (MOST_SEED + 1))

    def change(is_on: bool) -> Changes:
        if is_on:
            _train(other)
        return {PARAMETER: "1" if is_on else None}

    if not bound(st.toggle, "Another seed below", PARAMETER, is_beside(result), change=change, key="lab_beside"):
        return
    second, training = trainings.result(other), trainings.under_way(other)
    if second is not None:
        st.markdown(f"**Seed {other.seed}**, in place of {result.settings.seed}")
        play(second)
    elif training is not None:
        settings.show_progress(training)
    else:
        st.button(f"Train seed {other.seed}", key="lab_train_beside", on_click=guarded()(_train), args=(other,))


def _train(other: Settings) -> None:
    if trainings.result(other) is None:
        trainings.start(other)
