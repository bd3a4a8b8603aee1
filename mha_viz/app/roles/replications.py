"""A table that shows whether a model's roles replicate on another corpus."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import streamlit as st

from mha_viz.analysis.findings import Finding
from mha_viz.analysis.profile import Profile
from mha_viz.analysis.replication import OUTCOMES, Replication, replicate
from mha_viz.app.roles import score_rows
from mha_viz.app.roles.score_rows import ScoreRow
from mha_viz.app.service import studies
from mha_viz.app.service.caches import cache_results
from mha_viz.app.service.studies import Evidence
from mha_viz.app.widgets.parts import PERCENT, escape_markdown, report_errors, show_error, to_percentages
from mha_viz.app.widgets.url_controls import go
from mha_viz.figures.layout.caption import format_head
from mha_viz.figures.words.role_words import DIRECTIONS, describe_role_status, get_plain_name
from mha_viz.models.getting import catalog

CACHED_TABLES = 8  # maximum cached tables


def show_replications(model: catalog.Model, evidence: Evidence) -> None:
    """Show how the model's roles replicate on the page's corpus, or offer to upload another corpus."""
    reference = _load_reference(model)
    if reference is None:
        return
    page_profile = evidence.profiles[0]
    if page_profile.facts["sha256"] in {profile.facts["sha256"] for profile in reference.profiles}:
        _offer_upload()
        return
    st.markdown(f"## Do the roles found on {escape_markdown(reference.label)} hold here?")
    replications = _find_replications(reference, page_profile)
    if not replications:
        st.markdown(f"No role was found on {escape_markdown(reference.label)}, so there is none to look for here.")
        return
    outcomes = Counter(replication.outcome for replication in replications)
    outcome_counts = "; ".join(f"{outcome}: **{outcomes[outcome]}**" for outcome in OUTCOMES if outcomes[outcome])
    st.markdown(
        f"Of {len(replications)} roles, {outcome_counts}. *Holds*: five points or more above the best fixed offset of "
        "this corpus (coreference: above the better baseline; position, delimiter and broad heads: above the "
        "threshold), *but weaker* with less than three quarters of the score there. Otherwise, either the head does as "
        "well as before but a simple rule does too, or the head itself does it less, or not at all."
    )
    score_rows.draw_rows(
        "Role",
        ("baseline here", "score there"),
        map(_make_row, replications),
        second_heading="Head",
        bar_owner="score here",
    )
    number = st.column_config.NumberColumn
    shares = ("score there", "baseline there", "score here", "baseline here")
    config = {name: number(name, format=PERCENT) for name in shares}
    with st.expander("All numbers of these roles"):
        table = _tabulate(reference, page_profile)
        percentages = to_percentages(table, [name for name in shares if name in table])
        score_rows.show_all_numbers("replications", percentages, config, "head")


def _name_role(finding: Finding) -> str:
    direction = DIRECTIONS.get(finding.detail.partition(" ")[2])
    return f"{get_plain_name(finding)}, {direction}" if direction else get_plain_name(finding)


def _make_row(replication: Replication) -> ScoreRow:
    finding, measurement, outcome = replication
    scores_here = (math.nan, math.nan) if measurement is None else (measurement.score, measurement.baseline)
    return ScoreRow(f"{_name_role(finding)}: {outcome}", finding.head, scores_here[0], (scores_here[1], finding.score))


def _load_reference(model: catalog.Model) -> Evidence | None:
    """Return the profiles in which the roles of a model were found.

    None if there are none, or, with an error on the page, if they cannot be read.
    """
    with report_errors(show_error):
        return studies.load_reference_evidence(model)
    return None


def _offer_upload() -> None:
    with st.expander("Do these roles hold on another corpus?"):
        st.markdown("Measure your own treebank (CoNLL-U) to see which roles hold there.")
        st.button("Choose a file", key="replicate_file", on_click=_open_upload)


@report_errors()
def _open_upload() -> None:
    go(corpus="file")


@cache_results(CACHED_TABLES)
def _find_replications(reference: Evidence, profile: Profile) -> tuple[Replication, ...]:
    return replicate(reference.findings(), profile)


@cache_results(CACHED_TABLES)
def _tabulate(reference: Evidence, profile: Profile) -> Any:
    """Return a data frame with one row per role. Cached, so callers must not change it."""
    import pandas as pd

    rows = []
    for finding, measurement, outcome in _find_replications(reference, profile):
        row = {
            "head": format_head(finding.head),
            "role": f"{finding.role}: {_name_role(finding)}",
            "status": describe_role_status(finding),
            "outcome": outcome,
            "score there": finding.score,
            "baseline there": finding.baseline,
            "n there": finding.n,
        }
        if measurement is not None:
            row |= {"score here": measurement.score, "baseline here": measurement.baseline, "n here": measurement.n}
        rows.append(row)
    return pd.DataFrame(rows)
