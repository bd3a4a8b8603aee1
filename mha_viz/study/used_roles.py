"""Which roles of a profile are used: the effect of switching a head off on the words that depend on its role, over a
corpus."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from mha_viz.analysis.corpus_effects import CorpusEffect
from mha_viz.analysis.findings import Finding
from mha_viz.analysis.profile import HEADINGS, Profile
from mha_viz.analysis.recipe_tables import Recipes
from mha_viz.analysis.syntax import DIRECTIONS
from mha_viz.attention import Head
from mha_viz.corpus.sources import Source
from mha_viz.errors import PROFILE, CorpusError, SettingError, check_kind
from mha_viz.model_names import short_name
from mha_viz.models.loading import AnyModel, as_measured
from mha_viz.request import METHODS, Request
from mha_viz.study.corpus_effects import (
    COREFERENCE,
    FROM_CORPUS,
    MOST,
    Averages,
    EffectSettings,
    Measurement,
)
from mha_viz.study.over_corpus import measurements

if TYPE_CHECKING:
    from distributed import Client


class _Role(NamedTuple):
    """A role that several heads may have, and the relation that it is measured on."""

    role: str
    detail: str
    relation: str
    direction: str


def used_roles(
    profile: Profile,
    corpus: Source,
    model: AnyModel | None = None,
    *,
    method: str = METHODS[0],
    most: int = MOST,
    means: Source | None = None,
    recipes: Recipes | None = None,
    device: str = "cpu",
    progress: Callable[[float], None] = lambda _: None,
    client: Client | None = None,
) -> Profile:
    """The profile with a table ``used``: for each of its roles of syntax and coreference, what switching the head off
    does to the words that it attends from, compared with every other head of its layer without the role, over a corpus.

    ``model``: its encoder, if already loaded. ``method``, ``most``, ``means``, ``recipes``, ``device`` and ``client``
    are as for ``effect``; ``progress`` is called with the share that is done. A role without a case in the corpus has
    no row.

    Raises CorpusError if no role can be measured, SettingError for a model that is not the profile's, and as
    ``effect``.
    """
    import pandas as pd

    check_kind(profile, Profile, *PROFILE)
    encoder = as_measured(profile.facts, model, device)
    if encoder.name != profile.model:
        raise SettingError(
            f"The profile is of {short_name(profile.model)}, not of {short_name(encoder.name)}.",
            "Give the model of the profile.",
        )
    opened, measure = measurements(encoder, corpus, client, {profile.facts["sha256"]: profile.corpus})
    roles = _roles(profile.findings())
    rows: list[tuple[object, ...]] = []
    averages: Source | Averages | None = means
    for number, (role, heads) in enumerate(roles.items()):
        request, words = Request(off=tuple(heads), method=method), (role.relation, role.direction, ())
        run = measure(EffectSettings(request, *words, most, averages, recipes))
        for done in run.sentences():
            progress((number + done.done / done.total) / len(roles))
        averages = run.averages if method in FROM_CORPUS else None
        rows += _rows(role, run)
    if not rows:
        raise CorpusError(
            f"No role of this profile can be measured on {opened.name}.", "Give a treebank with the same relations."
        )
    table = pd.DataFrame(rows, columns=list(HEADINGS["used"])).sort_values(["layer", "head"], kind="stable")
    return dataclasses.replace(profile, tables={**profile.tables, "used": table.reset_index(drop=True)})


def _roles(findings: tuple[Finding, ...]) -> dict[_Role, list[Head]]:
    """The heads of each role that can be measured."""
    roles: dict[_Role, list[Head]] = {}
    for finding in findings:
        if finding.role == "syntax":
            roles.setdefault(_Role("syntax", finding.detail, *finding.detail.split()), []).append(finding.head)
        elif finding.role == COREFERENCE:
            role = _Role(COREFERENCE, finding.detail, COREFERENCE, DIRECTIONS[0])
            roles.setdefault(role, []).append(finding.head)
    return roles


def _rows(role: _Role, run: Measurement) -> Iterator[tuple[object, ...]]:
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
