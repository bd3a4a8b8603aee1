"""How many roles chance would name: what became of a study with the trees, or chains, of other sentences, or with other
words of the same kind in the place of those that are right."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mha_viz.analysis.findings import CORPORA, NULL
from mha_viz.analysis.profile import HEADINGS, Profile

if TYPE_CHECKING:
    import pandas as pd

CHANCE = "chance"  # the table of a profile
SYNTAX, COREFERENCE = "syntax", "coreference"  # roles whose annotation is drawn
PERMUTATION, KIND = "permutation", "kind"  # how it is drawn; older tables know the first alone


@dataclass(frozen=True)
class ChanceRoles:
    """How many roles of syntax, or of coreference, a study names (``observed``), and how many it names for each draw
    (``drawn``) of the ``null``: with the trees of other sentences, or with chains turned along their documents, or with
    other words of the same kind in the place of those that are right. ``corpora``: what the study is of; if two, both
    establish the roles. ``p``: the share of all these draws, the observed one among them, that name as
    many as it or more (Phipson & Smyth 2010, Stat. Appl. Genet. Mol. Biol. 9, art. 39)."""

    observed: int
    drawn: tuple[int, ...]
    corpora: tuple[str, ...] = ()
    role: str = SYNTAX
    null: str = PERMUTATION

    @property
    def p(self) -> float:
        """The share of draws, the observed one among them, with as many roles or more."""
        return (1 + sum(count >= self.observed for count in self.drawn)) / (1 + len(self.drawn))

    def table(self) -> pd.DataFrame:
        """One row per study, the first of them (draw 0) with the annotation as it is: ``role``, ``corpora``, ``draw``,
        how many ``roles`` it names, and the ``null``."""
        import pandas as pd

        counts = enumerate((self.observed, *self.drawn))
        rows = [(self.role, CORPORA.join(self.corpora), *row, self.null) for row in counts]
        return pd.DataFrame(rows, columns=list(HEADINGS[CHANCE]))

    def stored_in(self, profile: Profile) -> Profile:
        """The profile with :meth:`table` among its tables, beside what is stored of other roles and nulls."""
        import pandas as pd

        tables = [self.table()]
        before = profile.tables.get(CHANCE)
        if before is not None:
            tables.insert(0, before[~_is_of(before, self.role, self.null)])
        return dataclasses.replace(profile, tables={**profile.tables, CHANCE: pd.concat(tables, ignore_index=True)})


def _is_of(table: pd.DataFrame, role: str, null: str) -> pd.Series[bool]:
    is_null = (table[NULL] == null) | (table[NULL].isna() & (null == PERMUTATION))
    return (table["role"] == role) & is_null


def by_chance(profile: Profile, role: str = SYNTAX, null: str = PERMUTATION) -> ChanceRoles | None:
    """What was stored in a profile about the roles that it has; None if nothing was, or of other corpora than those
    that show these roles now."""
    table = profile.tables.get(CHANCE)
    roles = [finding for finding in profile.findings() if finding.role == role]
    table = None if table is None else table[_is_of(table, role, null)]
    if table is None or not len(table) or not roles:
        return None
    corpora = tuple(str(table["corpora"].iloc[0]).split(CORPORA))
    observed, *drawn = table.sort_values("draw")["roles"].astype(int)
    if {*corpora} != {*roles[0].corpora} or observed != len(roles):
        return None
    return ChanceRoles(observed, tuple(drawn), corpora, role, null)
