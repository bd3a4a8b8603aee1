"""All roles of a model: the map, the table, and the strongest role of each kind."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st

from mha_viz.analysis.findings import Finding
from mha_viz.attention import Head
from mha_viz.figures.caption import both
from mha_viz.figures.role_map import role_map
from mha_viz.figures.role_words import COLOURS, described, standing, standing_with_numbers, strongest_first
from mha_viz.figures.theme import Theme
from mha_viz.ui.caches import lasting
from mha_viz.ui.head_grid import head_grid
from mha_viz.ui.parts import guarded, picked_head, plain, theme
from mha_viz.ui.roles import filters
from mha_viz.ui.studies import Evidence

CHARTS = 24  # cached maps of roles, and tables: one per evidence, filter, open head and colour scheme
LEGEND = (
    "“+2”: two more roles. A small square in a corner: one of another kind. The stronger the colour, the larger the "
    "gain over the simple rules; the faintest do no better than one. The table below says what each name means."
)


def show_map(evidence: Evidence, chosen: Head | None) -> None:
    """Show the map, in which a click opens a head, the filter for kinds of roles, and the same as a table."""
    above = st.container()
    kinds = filters.kinds(st)
    chart = _chart(evidence, kinds, chosen, theme())
    key = f"role_map_{chosen}"  # with the head in its key: a new chart has no click recorded
    alt = "Map of roles, layers by heads; “All roles as a table” below lists the same."
    with above:
        head_grid(chart, "role_map", alt, partial(_on_cell, key), key=key, words=True)
        st.caption(LEGEND)
    with st.expander("All roles as a table"):
        _listed(evidence, kinds)


@lasting(CHARTS)
def _chart(evidence: Evidence, kinds: tuple[str, ...], chosen: Head | None, colours: Theme) -> Any:
    """The map of roles; cached, so callers must not change it."""
    return role_map(filtered(evidence, kinds), evidence.profiles[0].shape, chosen, colours)


def filtered(evidence: Evidence, kinds: tuple[str, ...]) -> tuple[Finding, ...]:
    """The roles of these kinds, or of all kinds if none is chosen."""
    return tuple(f for f in evidence.findings() if not kinds or f.role in kinds)


@guarded()
def _on_cell(key: str) -> None:
    head = picked_head(st.session_state.get(key))
    if head is not None:
        filters.go(head=str(head), on=None, pin=None, link=None)


def _listed(evidence: Evidence, kinds: tuple[str, ...]) -> None:
    st.dataframe(
        table_of_roles(evidence, kinds),
        hide_index=True,
        width="stretch",
        column_config={"gain in points": st.column_config.NumberColumn(format="%.1f")},
    )


@lasting(CHARTS)
def table_of_roles(evidence: Evidence, kinds: tuple[str, ...]) -> Any:
    """The roles as a data frame with one row per role; cached, so callers must not change it."""
    import pandas as pd

    findings = filtered(evidence, kinds)
    columns = ["head", "role", "status", "in words", "gain in points", "n"]
    rows = [(both(f.head), f.role, standing(f), standing_with_numbers(f), 100 * f.gain, f.n) for f in findings]
    return pd.DataFrame(rows, columns=columns)


def show_strongest(evidence: Evidence) -> None:
    """While no head is chosen, show the strongest role of each kind."""
    strongest: dict[str, Finding] = {}
    for finding in strongest_first(evidence.findings()):
        strongest.setdefault(finding.role, finding)
    st.markdown("**The strongest of each kind**")
    for role in COLOURS:
        if role in strongest:
            finding = strongest[role]
            st.markdown(f"**{both(finding.head)}** {plain(described(finding))}.")
