"""The settings of a run as a parameter of a link."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from mha_viz.training.lab import EXPERIMENTS
from mha_viz.training.record import Settings

_PARAMETERS = re.compile(r"(seed|heads|d_model|steps|weight)-(-?[0-9]{1,12}(?:\.[0-9]{1,8})?)", re.ASCII)


def read(experiment: str, run: str | None) -> Settings:
    """The settings in a link; missing or invalid values are replaced by the defaults."""
    default = EXPERIMENTS[experiment].default
    changes: dict[str, Any] = {}
    for part in (run or "").split("_and_"):
        setting = _PARAMETERS.fullmatch(part)
        if setting and (setting[1] == "weight" or "." not in setting[2]):
            changes[setting[1]] = (
                float(setting[2]) + 0.0 if setting[1] == "weight" else int(setting[2])
            )  # + 0.0 turns -0 into 0
    asks = EXPERIMENTS[experiment].asks
    return replace(default, **{name: value for name, value in changes.items() if name in asks})


def written(settings: Settings) -> str | None:
    """The parameter ``run`` of a link: the settings that differ from the default run; None if none does."""
    experiment = EXPERIMENTS[settings.experiment]
    changed = [name for name in experiment.asks if getattr(settings, name) != getattr(experiment.default, name)]
    return "_and_".join(f"{name}-{_plainly(getattr(settings, name))}" for name in changed) or None


def _plainly(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.8f}".rstrip("0").rstrip(".")
