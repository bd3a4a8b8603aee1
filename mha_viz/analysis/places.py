"""Folders for profiles of several models on several corpora, by their names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from mha_viz.errors import SettingError


def folder_for(model: str, corpus: str) -> Path:
    """The folder for the profile of a model on a corpus, inside the folder for all of them."""
    return Path(_folder(model), _folder(corpus))


def check_places(models: Sequence[str], corpora: Sequence[str]) -> None:
    """Raise SettingError if two of the profiles would have the same folder."""
    for names, what in ((models, "models"), (corpora, "corpora")):
        folders: dict[str, str] = {}
        for name in names:
            if _folder(name) in folders:
                raise SettingError(
                    f"Two of the {what}, {folders[_folder(name)]} and {name}, would use the same results folder.",
                    "Name each once, give files different names, or measure them one by one.",
                )
            folders[_folder(name)] = name


def _folder(name: str) -> str:
    return re.sub(r"[^\w.@+-]+", "-", name).strip("-.") or "-"
