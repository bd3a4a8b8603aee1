"""Profiles from the folders in MHA_VIZ_PROFILES, prepared by the owner of the server.

If several models are steps of one training, the page shows a slider over the steps.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

import streamlit as st

from mha_viz.analysis.profile import Profile, read_profile
from mha_viz.app.service.studies import Evidence
from mha_viz.app.widgets.parts import show_error, show_remark
from mha_viz.app.widgets.url_controls import bind_control, go
from mha_viz.errors import CorpusError, MhaVizError
from mha_viz.models.getting import catalog
from mha_viz.quotes import join_names
from mha_viz.study.own_profiles import find_own_profiles, iter_open_problems

CHOICE = "folder"  # the value of the URL parameter "corpus"
SLIDER_KEY = "training_step"
MAX_OPEN = 8  # maximum profiles in memory
NAME_WITH_STEP = re.compile(r"(.*\D)(\d{1,12})")


def load_evidence(model: str) -> Evidence | None:
    """Return the profiles of a model as evidence; None, with an error on the page, if one is missing or damaged."""
    try:
        profiles = tuple(
            _read_profile(folder, (folder / "profile.json").stat().st_mtime_ns) for folder in find_own_profiles()[model]
        )
    except (OSError, KeyError):
        show_error(CorpusError("This server no longer has the files of this profile.", "Choose another model."))
        return None
    except MhaVizError as error:
        show_error(error)
        return None
    return Evidence(join_names([profile.corpus for profile in profiles]), profiles)


@lru_cache(maxsize=MAX_OPEN)
def _read_profile(folder: Path, _mtime_ns: int) -> Profile:
    return read_profile(folder)


def report_unopened_profiles() -> None:
    """Report profiles that cannot be opened; do nothing on a public server, because the report names folders."""
    if not catalog.is_hosted():
        for sentence in iter_open_problems():
            show_remark(sentence)


def list_steps(model: str) -> dict[int, str]:
    """Return the models in the folders that are steps of this model's training, by step.

    Their names differ only in the number at the end, like toy@0 and toy@400. Empty if there is only one.
    """
    training, _ = _split_name(model)
    steps = {step: name for name in find_own_profiles() for prefix, step in [_split_name(name)] if prefix == training}
    return dict(sorted(steps.items())) if training and len(steps) > 1 and model in find_own_profiles() else {}


def _split_name(name: str) -> tuple[str, int]:
    match = NAME_WITH_STEP.fullmatch(name)
    return (match[1], int(match[2])) if match else ("", 0)


def show_steps(model: str) -> None:
    """Show a slider over the steps of the model's training, if there are several."""
    models_by_step = list_steps(model)
    if models_by_step:
        bind_control(
            st.select_slider, "Training step", "model", _split_name(model)[1], [*models_by_step], key=SLIDER_KEY, go=go,
            change=lambda step: {"model": models_by_step[step], "corpus": CHOICE},  # the open head stays open
            format_func="{:,}".format,
        )  # fmt: skip
