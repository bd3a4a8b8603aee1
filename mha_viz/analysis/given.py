"""The roles of models that come with the app, as its shipped profiles state them; read without their tables."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from mha_viz.analysis.findings import Finding
from mha_viz.analysis.profile import read_findings
from mha_viz.files.assets import asset

# Shipped profiles, in the order in which a table is looked for in them.
GIVEN = ("ewt", "gum", "gap", "grammar", "repeats")


@cache
def given_roles(name: str) -> tuple[Finding, ...]:
    """The roles of a model that comes with the app; none for other models."""
    return united(read_findings(folder) for folder in given_folders(name))


@cache
def given_corpora(name: str) -> tuple[str, ...]:
    """The corpora that the shipped profile of a model was measured on."""
    files = [folder / "profile.json" for folder in given_folders(name)]
    return tuple(json.loads(file.read_text("utf-8"))["corpus"] for file in files if file.is_file())


def given_folders(name: str) -> list[Path]:
    """The shipped profiles of a model."""
    above = asset("profiles")
    folder = next((f for f in (above.iterdir() if above.is_dir() else ()) if f.is_dir() and f.name == name), None)
    return [folder / one for one in GIVEN if (folder / one).is_dir()] if folder else []


def united(profiles: Iterable[tuple[Finding, ...]]) -> tuple[Finding, ...]:
    """The roles of the first profile, and the coreference roles of the others: a treebank without coreference chains
    suggests none."""
    first, *others = [*profiles] or [()]
    return (*first, *(f for findings in others for f in findings if f.role == "coreference"))
