"""Roles that two corpora establish, because their rule is met on each. A role that one of the corpora cannot measure
stays suggested by the other."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mha_viz.analysis.findings import CORPORA, OF_OTHER, OLDER, STATES
from mha_viz.analysis.profile import HEADINGS, Profile
from mha_viz.analysis.roles import ESTABLISHED
from mha_viz.errors import PROFILE, CorpusError, check_each

if TYPE_CHECKING:
    import pandas as pd

ROLE = ["layer", "head", "role", "detail"]
MEASURED_IN = {  # the table that a corpus has if it can measure this kind of role
    "syntax": "uas",
    "coreference": "coreference",
    "position": "position",
    "delimiter": "delimiter",
    "broad": "entropy",
}


def establish(one: Profile, other: Profile) -> tuple[Profile, Profile]:
    """The profiles of a model on two corpora, each with its own numbers for the roles that both establish.

    A role that only one of them can measure stays suggested. Raises CorpusError if the profiles are of different models
    or of the same corpus.
    """
    check_each((one, other), Profile, *PROFILE)
    check(one.facts, other.facts)
    pairs = (one, other), (other, one)
    corpora = CORPORA.join((one.corpus, other.corpus))
    trained = [_roles(a.tables, b.tables, corpora, b.corpus) for a, b in pairs]
    untrained = [_roles(a.untrained, b.untrained, corpora, b.corpus) for a, b in pairs]
    first, second = (
        dataclasses.replace(profile, tables={**profile.tables, **roles}, untrained={**profile.untrained, **control})
        for (profile, _), roles, control in zip(pairs, trained, untrained, strict=True)
    )
    return first, second


def check(one: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    """Raise CorpusError unless these facts of profiles are of one model and two corpora."""
    for name, kind in (("model", "model"), ("revision", "revision of the model")):
        if one[name] != other[name]:
            raise CorpusError(
                f"The profile is of another {kind}: {other[name]}, not {one[name]}.",
                "Name the profile of the same model on another corpus.",
            )
    if one["sha256"] == other["sha256"]:
        raise CorpusError(f"The profile is of the same corpus, {other['corpus']}.", "Name a corpus of another origin.")


def _roles(
    tables: Mapping[str, pd.DataFrame], other_tables: Mapping[str, pd.DataFrame], corpora: str, other_corpus: str
) -> dict[str, pd.DataFrame]:
    """The table ``roles`` of a profile beside another one; empty if no untrained model was measured."""
    import pandas as pd

    if "roles" not in tables or "roles" not in other_tables:
        return {}
    shared = {role for role, table in MEASURED_IN.items() if table in tables and table in other_tables}
    beside = other_tables["candidates"][[*ROLE, *OF_OTHER, "state"]]
    both = tables["candidates"].merge(beside, on=ROLE, suffixes=("", "_there"))
    both = both[both["role"].isin(shared)]
    states = [_both(*pair) for pair in zip(both["state"], both["state_there"], strict=True)]
    established = both.assign(
        state=pd.Series(states, both.index, object),
        status=ESTABLISHED,
        corpora=corpora,
        lowest_score=both[["score", "score_there"]].min(axis=1),
        other_corpus=other_corpus,
        **{f"other_{name}": both[f"{name}_there"] for name in OF_OTHER},
    )[[*HEADINGS["roles"]]]
    suggested = tables["roles"][~tables["roles"]["role"].isin(shared)]
    parts = [part for part in (established, suggested) if len(part)] or [established]
    return {"roles": pd.concat(parts).sort_values(["layer", "head"], kind="stable").reset_index(drop=True)}


def _both(here: object, there: object) -> str | None:
    """Return the lesser of the states on two corpora; None if there is no rule."""
    states = {OLDER.get(str(state), state) for state in (here, there)}
    return next((str(state) for state in reversed(STATES) if state in states), None)
