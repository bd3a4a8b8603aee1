"""Measure which roles of a profile are used.

A role is used if switching its head off over a corpus affects the words that depend on the role.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mha_viz.analysis.corpus_effects import CorpusEffect
from mha_viz.analysis.findings import Finding
from mha_viz.analysis.profile import HEADINGS, Profile
from mha_viz.analysis.recipe_tables import Recipes
from mha_viz.analysis.syntax import DIRECTIONS
from mha_viz.attention import Head
from mha_viz.corpus.sources import Source
from mha_viz.errors import PROFILE_KIND, CorpusError, SettingError, check_kind
from mha_viz.model_names import shorten_name
from mha_viz.models.reading.encoder import Encoder
from mha_viz.models.reading.loading import AnyModel, load_as_measured
from mha_viz.process.progress import ProgressOption, as_callback, with_bar
from mha_viz.request import METHODS, Request
from mha_viz.study.cases import MeasurableCorpus
from mha_viz.study.corpus_effects import (
    COREFERENCE,
    CORPUS_METHODS,
    DEFAULT_SENTENCES,
    EffectSettings,
    Measurement,
    TokenChanges,
)
from mha_viz.study.readers import open_measurable

if TYPE_CHECKING:
    from distributed import Client


class _Role(NamedTuple):
    """A role that several heads may have, with the relation and direction on which it is measured."""

    role: str
    detail: str
    relation: str
    direction: str


@with_bar("of the cases")
def ablate_roles(
    profile: Profile,
    corpus: Source,
    model: AnyModel | None = None,
    *,
    method: str = METHODS[0],
    most: int = DEFAULT_SENTENCES,
    means: Source | None = None,
    recipes: Recipes | None = None,
    device: str = "cpu",
    resume: str | os.PathLike[str] | None = None,
    progress: ProgressOption[float] = False,
    client: Client | None = None,
) -> Profile:
    """Measure which roles are used: the effect of switching their heads off on the words that they attend from.

    Each head is compared with every other head of its layer without the role, over a corpus.

    Args:
        profile: the profile whose roles of syntax and coreference are measured.
        corpus: as for :func:`mha_viz.profile`.
        model: the encoder of the profile, if already loaded.
        method: as for :func:`mha_viz.corpus_ablation_effects`.
        most: as for :func:`mha_viz.corpus_ablation_effects`.
        means: another corpus to compute means over or draw sentences from, in place of this one.
        recipes: as for :func:`mha_viz.ablate`.
        device: as for :func:`mha_viz.load`, where the model is loaded.
        resume: a folder that stores the cases, so that a stopped call can resume.
        progress: True for a bar, or a function that is called with the completed fraction, 0 to 1.
        client: as for :func:`mha_viz.corpus_ablation_effects`.

    Returns the profile with a table ``used``; a role without a case in the corpus has no row. Raises CorpusError if no
    role can be measured, SettingError for a model that is not the profile's, and the errors of
    :func:`mha_viz.corpus_ablation_effects`.
    """
    import pandas as pd

    check_kind(profile, Profile, *PROFILE_KIND)
    encoder = load_as_measured(profile.facts, model, device)
    if encoder.name != profile.model:
        raise SettingError(
            f"The profile is of {shorten_name(profile.model)}, not of {shorten_name(encoder.name)}.",
            "Give the model of the profile.",
        )
    source = _apply_profile_name(open_measurable(corpus, client), profile)
    settings = EffectSettings(Request(method=method), most=most, means=means, recipes=recipes)
    roles, folder = _group_heads(profile.findings()), None if resume is None else Path(resume)
    runs = [*_iter_measurements(encoder, source, roles, settings, folder, as_callback(progress))]
    rows = [row for role, run in runs for row in _iter_role_rows(role, run)]
    if not rows:
        problem = f"No role of this profile can be measured on {source.corpus.name}."
        raise CorpusError(problem, "Give a treebank with the same relations.")
    for _, run in runs:
        run.discard_partial_results()
    table = pd.DataFrame(rows, columns=list(HEADINGS["used"])).sort_values(["layer", "head"], kind="stable")
    return dataclasses.replace(profile, tables={**profile.tables, "used": table.reset_index(drop=True)})


def _iter_measurements(
    encoder: Encoder,
    source: MeasurableCorpus,
    roles: Mapping[_Role, Sequence[Head]],
    settings: EffectSettings,
    folder: Path | None,
    progress: Callable[[float], None],
) -> Iterator[tuple[_Role, Measurement]]:
    """Yield the measurement of each role, all with the same mean outputs or random sentences."""
    states: TokenChanges = {}
    for number, (role, heads) in enumerate(roles.items()):
        request = dataclasses.replace(settings.request, off=tuple(heads))
        role_settings = settings._replace(request=request, relation=role.relation, direction=role.direction)
        run = Measurement(encoder, source, role_settings, states=states, folder=folder)
        for state in run.iter_progress():
            progress((number + state.done / state.total) / len(roles))
        if settings.request.method in CORPUS_METHODS:
            settings = settings._replace(means=run.replacements)
        yield role, run


def _apply_profile_name(source: MeasurableCorpus, profile: Profile) -> MeasurableCorpus:
    """Return the corpus under its name in the profile, if it is the profile's corpus."""
    return source.with_name(profile.corpus) if source.corpus.digest == profile.facts["sha256"] else source


def _group_heads(findings: tuple[Finding, ...]) -> dict[_Role, list[Head]]:
    """Return the heads of each role that can be measured."""
    roles: dict[_Role, list[Head]] = {}
    for finding in findings:
        if finding.role == "syntax":
            roles.setdefault(_Role("syntax", finding.detail, *finding.detail.split()), []).append(finding.head)
        elif finding.role == COREFERENCE:
            role = _Role(COREFERENCE, finding.detail, COREFERENCE, DIRECTIONS[0])
            roles.setdefault(role, []).append(finding.head)
    return roles


def _iter_role_rows(role: _Role, run: Measurement) -> Iterator[tuple[object, ...]]:
    """Yield the table rows of a role; none if the corpus has no case of it."""
    try:
        result: CorpusEffect = run.result()
    except CorpusError:  # the corpus has no case
        return
    for row in result.rows:
        if row.variant.kind == "head":
            name = (*row.variant.heads[0], role.role, role.detail)
            yield (
                *name,
                result.corpus,
                result.every,
                result.measure,
                result.method,
                result.cases,
                *row[1:7],
                row.used,
                result.documents,
            )
