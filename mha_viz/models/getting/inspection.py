"""Inspect folders of untrusted models in a child process, so that none of their files can stop a server.

A server calls :func:`use_child_processes`. The child starts without any model library, is limited in time and memory,
and returns the facts or the error of the inspection.
"""

from __future__ import annotations

import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mha_viz.errors import Failed, ModelBroken, TooLarge, TooSlow
from mha_viz.models.getting.catalog import Model
from mha_viz.models.getting.folder import Facts, inspect_folder, set_inspector
from mha_viz.process import children

BOUNDS = children.Bounds(seconds=20, megabytes=1500, subject="The check of the model’s files")
_check_slots = threading.BoundedSemaphore(2)


def use_child_processes() -> None:
    """Inspect folders only in child processes from now on."""
    set_inspector(inspect_in_child)


def inspect_in_child(folder: Path, model: Model, includes_weights: bool = True) -> Facts:
    """Inspect a folder as ``folder.inspect_folder`` does, in a child process. A folder that exceeds the limits counts
    as broken.
    """
    request = {"folder": str(folder), "model": asdict(model), "whole": includes_weights}
    try:
        with _check_slots:
            answer = children.run("mha_viz.models.getting.inspection", request, BOUNDS)
    except (TooSlow, TooLarge, Failed) as error:
        raise ModelBroken(error.problem, "Choose another model.") from error
    return Facts(**{**answer, "model": Model(**answer["model"])})


def work(order: dict[str, Any], _progress: children.ReportProgress, _stopped: children.IsCancelled) -> dict[str, Any]:
    """Return the facts of a folder. Raises ModelBroken, ModelUnsupported."""
    facts = inspect_folder(Path(order["folder"]), Model(**order["model"]), order["whole"])
    return {**facts._asdict(), "model": asdict(facts.model)}


if __name__ == "__main__":
    children.serve(work)
