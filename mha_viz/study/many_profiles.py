"""Measure several corpora and several models, or one model at several training steps, in one call."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mha_viz.analysis.profile import Profile, check_folders, make_folder_path, parse_profile
from mha_viz.corpus.sources import Source
from mha_viz.errors import PROFILE_KIND, ExportError, SettingError, check_items
from mha_viz.files import make_folder, write_atomically
from mha_viz.files.tables import format_csv
from mha_viz.models.reading.loading import ModelOrName, get_name, load_one_stack
from mha_viz.process.progress import ProgressOption, as_callback, with_bar
from mha_viz.study.plan import DEFAULT_BATCH
from mha_viz.study.profiling import Engine, choose_engine, measure_profile
from mha_viz.study.run import Progress

if TYPE_CHECKING:
    import pandas as pd
    from distributed import Client

__all__ = ["compare_scores", "profile_all"]

ROLE_COLUMNS = ["layer", "head", "role", "detail"]
TABLE_FILE = "profiles.csv"


@with_bar("of the text")
def profile_all(
    corpora: Sequence[Source],
    models: Sequence[ModelOrName],
    *,
    out: str | os.PathLike[str] | None = None,
    batch: int = DEFAULT_BATCH,
    device: str = "cpu",
    progress: ProgressOption[Progress] = False,
    client: Client | None = None,
) -> list[Profile]:
    """Measure the profile of every model on every corpus.

    Args:
        corpora: a list of corpora as for :func:`mha_viz.profile`.
        models: a list of models as for :func:`mha_viz.profile`, such as snapshots of a training, "toy@400".
        out: a folder for the profiles, each in ``MODEL/CORPUS``, and for ``profiles.csv``, the table of
            :func:`compare_scores`.
        batch: as for :func:`mha_viz.profile`.
        device: as for :func:`mha_viz.load`, where a model is a name.
        progress: as for :func:`mha_viz.profile`.
        client: as for :func:`mha_viz.profile`.

    Returns the profiles: those of the first model on each corpus, then those of the next model. Raises the errors of
    :func:`mha_viz.profile`, and SettingError if a list is empty.

    >>> [p.model for p in mv.roles.profile_all(["grammar"], ["toy@0", "toy@100"])]
    ['toy@0', 'toy@100']
    """
    if any(isinstance(items, str) or not isinstance(items, Collection) or not items for items in (corpora, models)):
        raise SettingError("Corpora and models are lists.", 'Give a list of each, as in ["grammar"].')
    engine, folder = choose_engine(client, batch), None if out is None else Path(out)
    profiles = _iter_profiles(engine, corpora, models, folder, device, as_callback(progress))
    results = [parse_profile(profile.files()) for profile in profiles]
    if folder is not None:
        write_table(results, folder)
    return results


def _iter_profiles(
    engine: Engine,
    corpora: Sequence[Source],
    models: Sequence[ModelOrName],
    out: Path | None,
    device: str,
    progress: Callable[[Progress], None],
) -> Iterator[Profile]:
    """Yield the profiles of the first model on each corpus, then those of the next model."""
    opened_corpora = [engine.open(corpus) for corpus in corpora]
    names = [get_name(model) for model in models]
    check_folders(names, [corpus.name for corpus in opened_corpora])
    for model in models:
        encoder = load_one_stack(model, device)
        for corpus in opened_corpora:
            folder = None if out is None else out / make_folder_path(encoder.name, corpus.name)
            yield measure_profile(engine, encoder, corpus, folder, progress)


def write_table(profiles: Sequence[Profile], folder: Path) -> Path:
    """Write the table of several profiles to a folder and return its path. Raises ExportError."""
    make_folder(folder)
    text = format_csv(compare_scores(profiles))
    try:
        with write_atomically(folder / TABLE_FILE) as file:
            file.write(text.encode())
    except OSError as error:
        raise ExportError(
            f"{folder} cannot be written: {error.strerror or error}.", "Choose another folder."
        ) from error
    return folder / TABLE_FILE


def compare_scores(measured: Sequence[Profile]) -> pd.DataFrame:
    """Return the scores of several profiles in one table.

    There is a row for each head and role that meets its criterion in at least one profile, and a column for each
    profile, "MODEL on CORPUS"; it is empty where a profile lacks the candidate.
    """
    import pandas as pd

    check_items(measured, Profile, *PROFILE_KIND)
    if not measured:
        raise SettingError("No profile was given.", "Give two or more: mv.roles.compare_scores([first, second]).")
    columns = [
        profile.tables["candidates"].set_index(ROLE_COLUMNS)["score"].rename(f"{profile.model} on {profile.corpus}")
        for profile in measured
    ]
    return pd.concat(columns, axis=1).sort_index().reset_index()
