"""Where the Hugging Face cache stores the files of a model, without that library, whose import takes longer than the
lookup.

This module only computes paths and checks whether files exist; ``folder.check_folder`` checks their content.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

MAIN = "main"  # the branch of a model that is chosen without a revision
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
COMMIT = re.compile(r"[0-9a-f]{40}")


def root() -> Path:
    """The folder of the cache, found as huggingface_hub finds it, from the current environment."""
    environment = os.environ
    home = environment.get("HF_HOME") or f"{environment.get('XDG_CACHE_HOME') or '~/.cache'}/huggingface"
    folder = environment.get("HF_HUB_CACHE") or environment.get("HUGGINGFACE_HUB_CACHE") or f"{home}/hub"
    path = Path(os.path.expandvars(folder))
    try:
        return path.expanduser()
    except RuntimeError:  # an account without a home directory: a folder called "~", as in that library
        return path


def storage(hub_id: str) -> Path:
    """The folder of one model in the cache: blobs/, refs/<branch or tag> and snapshots/<commit>/."""
    return root() / f"models--{hub_id.replace('/', '--')}"


def snapshot(hub_id: str, revision: str = "") -> Path | None:
    """The folder of the model's files at a commit, or at the one that the reference of a branch or a tag names, main by
    default; None unless config and weights exist.

    Downloads by this app write config.json and the reference last, so a folder with both is complete, unless it was
    damaged later.
    """
    place = storage(hub_id)
    try:
        is_commit = COMMIT.fullmatch(revision) is not None
        commit = revision if is_commit else (place / "refs" / (revision or MAIN)).read_text(encoding="ascii").strip()
        if COMMIT.fullmatch(commit) is None:
            return None
        folder = place / "snapshots" / commit
        whole = (folder / "config.json").is_file() and any((folder / name).is_file() for name in (WEIGHTS, INDEX))
        return folder if whole else None
    except (OSError, ValueError):
        return None
