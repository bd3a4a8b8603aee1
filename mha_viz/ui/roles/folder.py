"""Profiles from the folder that MHA_VIZ_PROFILES names: the output of ``mha-viz profile`` for several corpora or
models, prepared by whoever runs the server. Steps of one training get a slider."""

from __future__ import annotations

import json
import os
import re
from functools import lru_cache
from pathlib import Path

import streamlit as st

from mha_viz.analysis.profile import Profile, read_profile
from mha_viz.errors import CorpusError, MhaVizError
from mha_viz.quotes import series
from mha_viz.ui.bound import bound, go
from mha_viz.ui.parts import complain
from mha_viz.ui.studies import Evidence

SETTING = "MHA_VIZ_PROFILES"
CHOICE = "folder"  # the URL parameter
SLIDER = "training_step"
OPEN = 8  # profiles kept in memory
STEP = re.compile(r"(.*\D)(\d{1,12})")


def models() -> dict[str, list[Path]]:
    """The folders of the profiles of each model."""
    root = os.environ.get(SETTING, "").strip()
    places: dict[str, list[Path]] = {}
    for facts in sorted(Path(root).glob("*/*/profile.json")) if root else ():
        name = _model(facts, facts.stat().st_mtime_ns)
        if name:
            places.setdefault(name, []).append(facts.parent)
    return places


@lru_cache(maxsize=1024)
def _model(facts: Path, _: int) -> str:
    try:
        return str(json.loads(facts.read_text("utf-8"))["model"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""  # not a profile of this program


def evidence(model: str) -> Evidence | None:
    """The profiles of a model as evidence; None, with a remark, if one is damaged."""
    try:
        profiles = tuple(_read(place, (place / "profile.json").stat().st_mtime_ns) for place in models()[model])
    except (OSError, KeyError):
        complain(CorpusError("The profile is no longer in the folder of this server.", "Choose another model."))
        return None
    except MhaVizError as error:
        complain(error)
        return None
    return Evidence(series([profile.corpus for profile in profiles]), profiles)


@lru_cache(maxsize=OPEN)
def _read(place: Path, _: int) -> Profile:
    return read_profile(place)


def steps(model: str) -> dict[int, str]:
    """The models in the folder that are steps of the same training as this one, by step: their names differ only in the
    number at the end, like toy@0 and toy@400. Empty if there is only one."""
    training, _ = _parts(model)
    of_training = {step: name for name in models() for start, step in [_parts(name)] if start == training}
    return dict(sorted(of_training.items())) if training and len(of_training) > 1 and model in models() else {}


def _parts(name: str) -> tuple[str, int]:
    match = STEP.fullmatch(name)
    return (match[1], int(match[2])) if match else ("", 0)


def show_steps(model: str) -> None:
    """Show a slider over the steps of the training that a model belongs to, if there are several."""
    by_step = steps(model)
    if by_step:
        bound(
            st.select_slider, "Training step", "model", _parts(model)[1], [*by_step], key=SLIDER, go=go,
            change=lambda step: {"model": by_step[step], "corpus": CHOICE},  # the open head stays open
            format_func="{:,}".format,
        )  # fmt: skip
