"""Find the profiles in the folders that MHA_VIZ_PROFILES lists, and explain why some cannot be opened."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from mha_viz.analysis import recipe_tables
from mha_viz.analysis.profile import FACTS
from mha_viz.errors import MhaVizError
from mha_viz.files.assets import MOST_FOLDERS, PROFILES, files_below, own_folders
from mha_viz.models.getting import catalog
from mha_viz.quotes import quoted

NAMED = 200  # maximum length of a path in a sentence


def own_profiles() -> dict[str, list[Path]]:
    """Return the profile folders of each model, by its name; for each corpus, the folder that is found first."""
    places: dict[str, dict[str, Path]] = {}
    for file in (file for folder in own_folders() for file in files_below(folder, FACTS)):
        model, corpus = _measured(file, file.stat().st_mtime_ns)
        if model:
            places.setdefault(model, {}).setdefault(corpus, file.parent)
    return {model: [*by_corpus.values()] for model, by_corpus in places.items()}


def unopened() -> Iterator[str]:
    """Yield a sentence for each item in these folders that cannot be opened: which folder, of which model, and why."""
    for folder in own_folders():
        name, files = quoted(str(folder), NAMED), files_below(folder, FACTS)
        if not folder.is_dir():
            yield f"{name}, which {PROFILES} names, is not a folder."
        elif not files and not files_below(folder, recipe_tables.FACTS):
            where = f"There is no profile in {name}, which {PROFILES} names"
            yield f"{where}: no {FACTS}, which a study writes last, in the first {MOST_FOLDERS:,} folders."
        for file in files:
            if not _measured(file, file.stat().st_mtime_ns)[0]:
                yield f"{quoted(str(file), NAMED)} does not say which model was measured, so it is not a profile."
    for model, (place, *_) in own_profiles().items():
        try:
            catalog.resolve(model)
        except MhaVizError as error:
            description = f"a profile of {quoted(model)}, which cannot be opened"
            yield f"{quoted(str(place), NAMED)} is {description}: {error.problem}"


@lru_cache(maxsize=1024)
def _measured(file: Path, _: int) -> tuple[str, str]:
    """Return the model of a profile and the digest of its corpus; empty texts if this program did not write it."""
    try:
        facts = json.loads(file.read_text("utf-8"))
        return str(facts["model"]), str(facts.get("sha256", file.parent))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return "", ""
