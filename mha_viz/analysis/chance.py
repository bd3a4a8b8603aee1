"""Count the roles that a study would name by chance.

A null replaces the annotation: trees or chains of other sentences (a permutation), or other words of the same kind in
place of the right ones.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mha_viz.analysis.findings import CORPUS_SEPARATOR, NULL
from mha_viz.analysis.profile import HEADINGS, Profile

if TYPE_CHECKING:
    import pandas as pd

CHANCE_TABLE = "chance"  # the table of a profile
SYNTAX, COREFERENCE = "syntax", "coreference"  # roles whose annotation a null replaces
PERMUTATION, KIND = "permutation", "kind"  # the two nulls; tables of older versions have only the first


@dataclass(frozen=True)
class ChanceRoles:
    """The number of roles that a study names, and the numbers that it names under a null.

    Attributes:
        observed: roles that the study names with the annotation as it is.
        drawn: roles that it names in each draw of the null.
        corpora: corpora of the study; if there are two, both establish the roles.
        role: "syntax" or "coreference".
        null: "permutation" for trees of other sentences, or chains rotated within their documents; "kind" for other
            words of the same kind in place of the right ones.
    """

    observed: int
    drawn: tuple[int, ...]
    corpora: tuple[str, ...] = ()
    role: str = SYNTAX
    null: str = PERMUTATION

    @property
    def p(self) -> float:
        """The p-value: the share of draws, the study itself included, that name as many roles as the study or more.

        See Phipson & Smyth 2010, Stat. Appl. Genet. Mol. Biol. 9, art. 39.
        """
        return (1 + sum(count >= self.observed for count in self.drawn)) / (1 + len(self.drawn))

    def table(self) -> pd.DataFrame:
        """Return a table with one row per draw; draw 0 is the study with the annotation as it is.

        The columns are ``role``, ``corpora``, ``draw``, ``roles`` (the number named) and ``null``.
        """
        import pandas as pd

        counts = enumerate((self.observed, *self.drawn))
        rows = [(self.role, CORPUS_SEPARATOR.join(self.corpora), *row, self.null) for row in counts]
        return pd.DataFrame(rows, columns=list(HEADINGS[CHANCE_TABLE]))

    def stored_in(self, profile: Profile) -> Profile:
        """Return the profile with :meth:`table` added.

        It replaces earlier rows of the same role and null, and keeps all other rows.
        """
        import pandas as pd

        tables = [self.table()]
        old_table = profile.tables.get(CHANCE_TABLE)
        if old_table is not None:
            tables.insert(0, old_table[~_match_rows(old_table, self.role, self.null)])
        return dataclasses.replace(
            profile, tables={**profile.tables, CHANCE_TABLE: pd.concat(tables, ignore_index=True)}
        )


def _match_rows(table: pd.DataFrame, role: str, null: str) -> pd.Series[bool]:
    """Mark the rows of the table ``chance`` that belong to a role and a null."""
    is_null = (table[NULL] == null) | (table[NULL].isna() & (null == PERMUTATION))
    return (table["role"] == role) & is_null


def find_chance_roles(profile: Profile, role: str = SYNTAX, null: str = PERMUTATION) -> ChanceRoles | None:
    """Return the chance results that a profile has stored for its roles.

    Return None if there are none, or if they are of other roles or corpora than the profile shows now.
    """
    table = profile.tables.get(CHANCE_TABLE)
    roles = [finding for finding in profile.findings() if finding.role == role]
    table = None if table is None else table[_match_rows(table, role, null)]
    if table is None or not len(table) or not roles:
        return None
    corpora = tuple(str(table["corpora"].iloc[0]).split(CORPUS_SEPARATOR))
    observed, *drawn_counts = table.sort_values("draw")["roles"].astype(int)
    if {*corpora} != {*roles[0].corpora} or observed != len(roles):
        return None
    return ChanceRoles(observed, tuple(drawn_counts), corpora, role, null)
