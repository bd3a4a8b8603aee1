"""Find the profiles in the folders that MHA_VIZ_PROFILES lists, and explain why some cannot be opened."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from mha_viz.analysis import recipe_tables
from mha_viz.analysis.profile import FACTS_FILE
from mha_viz.errors import MhaVizError
from mha_viz.files.assets import MAX_FOLDERS, PROFILES_VARIABLE, find_files, list_profile_folders
from mha_viz.models.getting import catalog
from mha_viz.quotes import quote

MAX_PATH_LENGTH = 200  # maximum number of characters of a path in a message


def find_own_profiles() -> dict[str, list[Path]]:
    """Return the profile folders of each model, by its name; for each corpus, the folder that is found first."""
    folders: dict[str, dict[str, Path]] = {}
    for file in (file for folder in list_profile_folders() for file in find_files(folder, FACTS_FILE)):
        model, corpus = _read_identity(file, file.stat().st_mtime_ns)
        if model:
            folders.setdefault(model, {}).setdefault(corpus, file.parent)
    return {model: [*corpus_folders.values()] for model, corpus_folders in folders.items()}


def iter_open_problems() -> Iterator[str]:
    """Yield a sentence for each item in these folders that cannot be opened: which folder, of which model, and why."""
    for folder in list_profile_folders():
        name, files = quote(str(folder), MAX_PATH_LENGTH), find_files(folder, FACTS_FILE)
        if not folder.is_dir():
            yield f"{name}, which {PROFILES_VARIABLE} names, is not a folder."
        elif not files and not find_files(folder, recipe_tables.FACTS_FILE):
            problem = f"There is no profile in {name}, which {PROFILES_VARIABLE} names"
            yield f"{problem}: no {FACTS_FILE}, which a study writes last, in the first {MAX_FOLDERS:,} folders."
        for file in files:
            if not _read_identity(file, file.stat().st_mtime_ns)[0]:
                yield (
                    f"{quote(str(file), MAX_PATH_LENGTH)} does not say which model was measured, so it is not a "
                    "profile."
                )
    for model, (folder, *_) in find_own_profiles().items():
        try:
            catalog.resolve(model)
        except MhaVizError as error:
            description = f"a profile of {quote(model)}, which cannot be opened"
            yield f"{quote(str(folder), MAX_PATH_LENGTH)} is {description}: {error.problem}"


@lru_cache(maxsize=1024)
def _read_identity(file: Path, _: int) -> tuple[str, str]:
    """Return the model of a profile and the digest of its corpus; empty texts if this program did not write it."""
    try:
        facts = json.loads(file.read_text("utf-8"))
        return str(facts["model"]), str(facts.get("sha256", file.parent))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return "", ""
