"""Show an experiment with several seeds side by side, to distinguish effects from chance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from mha_viz.app.lab import settings, stage, trainings
from mha_viz.app.widgets.parts import report_errors
from mha_viz.app.widgets.url_controls import UrlChanges, bind_control, read_option
from mha_viz.lab.lab import EXPERIMENTS, MAX_SEED
from mha_viz.lab.record import Result, Settings

PARAMETER = "beside"  # the number of further seeds
SEED_CHOICES = ("1", "2", "3")


def list_other_seeds(result: Result) -> list[Settings]:
    """Return copies of the settings with the next seeds, as many as the URL asks for.

    Empty if the experiment has no seed, or while numbers are hidden.
    """
    has_seeds = "seed" in EXPERIMENTS[result.settings.experiment].setting_names
    count = int(read_option(PARAMETER, ("0", *SEED_CHOICES) if has_seeds else (), ".+") or 0)
    return _list_next_seeds(result, count if stage.has_numbers() else 0)


def _list_next_seeds(result: Result, count: int) -> list[Settings]:
    seed = result.settings.seed
    return [replace(result.settings, seed=(seed + offset) % (MAX_SEED + 1)) for offset in range(1, count + 1)]


def show_side_by_side(result: Result, seeds: list[Settings], play: Callable[[Result, str], None]) -> None:
    """Show results with several seeds side by side; on a phone, one below the other.

    ``play`` draws a result under a separate key. A seed that is being trained shows its progress instead.
    """
    is_training = any(trainings.find_running(variant) is not None for variant in seeds)  # one training per visitor
    columns = st.columns(len(seeds) + 1)
    for number, (column, variant) in enumerate(zip(columns, (result.settings, *seeds), strict=True)):
        finished_result = result if number == 0 else trainings.find_result(variant)
        training = trainings.find_running(variant)
        with column:
            st.markdown(f"**Seed {variant.seed}**")
            if finished_result is not None:
                play(finished_result, f"lab_beside_{number}" if number else "")
            elif training is not None:
                settings.show_progress(training)
            else:
                st.button(
                    f"Train seed {variant.seed}",
                    key=f"lab_train_{number}",
                    disabled=is_training,
                    on_click=report_errors()(_train),
                    args=(variant,),
                )


def choose_seeds(result: Result, seeds: list[Settings]) -> None:
    """Show the control for the number of seeds; start training the first seed that has no result yet."""
    if "seed" not in EXPERIMENTS[result.settings.experiment].setting_names:
        return

    def change(count: str) -> UrlChanges:
        missing_seeds = [s for s in _list_next_seeds(result, int(count)) if trainings.find_result(s) is None]
        if missing_seeds:
            _train(missing_seeds[0])
        return {PARAMETER: count if count != "0" else None}

    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown("Seeds side by side", width="content")
        bind_control(
            st.segmented_control, "Seeds side by side", PARAMETER, str(len(seeds)), ["0", *SEED_CHOICES], change=change,
            required=True, key="lab_beside", format_func=lambda extra: str(int(extra) + 1),
            label_visibility="collapsed",
        )  # fmt: skip


def _train(seed_settings: Settings) -> None:
    if trainings.find_result(seed_settings) is None and trainings.find_running(seed_settings) is None:
        trainings.start(seed_settings)
