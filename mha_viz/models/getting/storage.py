"""Locate the files of a model in the Hugging Face cache, without importing huggingface_hub, which takes longer.

This module only computes paths and checks whether files exist; ``folder.check_folder`` checks their content.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

MAIN_BRANCH = "main"  # the branch used when no revision is given
WEIGHTS_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
COMMIT = re.compile(r"[0-9a-f]{40}")


def find_cache_root() -> Path:
    """Return the folder of the cache, which follows from the environment as in huggingface_hub."""
    environment = os.environ
    home = environment.get("HF_HOME") or f"{environment.get('XDG_CACHE_HOME') or '~/.cache'}/huggingface"
    folder = environment.get("HF_HUB_CACHE") or environment.get("HUGGINGFACE_HUB_CACHE") or f"{home}/hub"
    path = Path(os.path.expandvars(folder))
    try:
        return path.expanduser()
    except RuntimeError:  # for an account without a home directory, a folder called "~", as in huggingface_hub
        return path


def find_model_storage(hub_id: str) -> Path:
    """Return the folder of a model in the cache: blobs/, refs/<branch or tag> and snapshots/<commit>/."""
    return find_cache_root() / f"models--{hub_id.replace('/', '--')}"


def find_snapshot(hub_id: str, revision: str = "") -> Path | None:
    """Return the folder of the model's files at a commit; None unless config and weights exist.

    ``revision`` is the commit itself, or a branch or tag that refers to it, main by default.

    Downloads by this app write config.json and the reference last, so a folder with both is complete, unless it was
    damaged later.
    """
    model_folder = find_model_storage(hub_id)
    try:
        is_commit = COMMIT.fullmatch(revision) is not None
        reference = model_folder / "refs" / (revision or MAIN_BRANCH)
        commit = revision if is_commit else reference.read_text(encoding="ascii").strip()
        if COMMIT.fullmatch(commit) is None:
            return None
        folder = model_folder / "snapshots" / commit
        is_complete = (folder / "config.json").is_file() and any(
            (folder / name).is_file() for name in (WEIGHTS_FILE, INDEX_FILE)
        )
        return folder if is_complete else None
    except (OSError, ValueError):
        return None
