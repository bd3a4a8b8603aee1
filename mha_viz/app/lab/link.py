"""Read and write the settings of a run as a URL parameter."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from mha_viz.lab.lab import EXPERIMENTS
from mha_viz.lab.record import Settings

DEFAULT = "default"  # the value of the parameter for the default run
_PARAMETERS = re.compile(r"(seed|heads|d_model|steps|weight)-(-?[0-9]{1,12}(?:\.[0-9]{1,8})?)", re.ASCII)


def read_settings(experiment: str, run: str | None) -> Settings:
    """Return the settings in a link; missing or invalid ones are replaced by defaults."""
    changes: dict[str, Any] = {
        name: float(value) + 0.0 if name == "weight" else int(value)  # + 0.0 turns -0 into 0
        for name, value in filter(None, _parse_parts(experiment, run).values())
    }
    return replace(EXPERIMENTS[experiment].default, **changes)


def list_unread_parts(experiment: str, run: str | None) -> list[str]:
    """Return the parts of the parameter that are not settings of the experiment."""
    return [
        part for part, setting in _parse_parts(experiment, run).items() if setting is None and part not in ("", DEFAULT)
    ]


def _parse_parts(experiment: str, run: str | None) -> dict[str, tuple[str, str] | None]:
    """Return the name and value in each part; None for a part that is not a setting of the experiment."""
    parts = {part: _PARAMETERS.fullmatch(part) for part in (run or "").split("_and_")}
    return {
        part: (match[1], match[2])
        if match and match[1] in EXPERIMENTS[experiment].setting_names and (match[1] == "weight" or "." not in match[2])
        else None
        for part, match in parts.items()
    }


def write_settings(settings: Settings) -> str | None:
    """Return the value of the parameter ``run``: the settings that differ from the default; None if none does."""
    experiment = EXPERIMENTS[settings.experiment]
    changed_names = [
        name for name in experiment.setting_names if getattr(settings, name) != getattr(experiment.default, name)
    ]
    return "_and_".join(f"{name}-{_format_number(getattr(settings, name))}" for name in changed_names) or None


def _format_number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.8f}".rstrip("0").rstrip(".")
