"""Heads of two runs that do the same, and what becomes of roles in several runs.

A training with another seed gives the same heads other numbers. Each head is matched with one of the other run so that
the sum of the Jensen–Shannon divergences of their rows is the least possible (Kuhn 1955, Naval Research Logistics
Quarterly 2, 83–97).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mha_viz.analysis.distance import FloatMatrix
from mha_viz.analysis.profile import Profile
from mha_viz.attention import Head
from mha_viz.errors import PROFILE, SettingError, check_each

if TYPE_CHECKING:
    import pandas as pd

MATCHED = ("layer", "head", "other_layer", "other_head", "js", "next_js", "mean_js")
IN_RUNS = ("role", "detail", "runs", "of", "heads")


class HeadMatch(NamedTuple):
    """A head and the one of the other run that it is matched with: the divergence of their rows in nats (``js``), that
    from the most similar other head of that run (``next_js``, NaN if there is none), and the mean over all of them
    (``mean_js``), which a match by chance would have."""

    head: Head
    other: Head
    js: float
    next_js: float
    mean_js: float


@dataclass(frozen=True, eq=False, repr=False)
class HeadMatches:
    """``one`` and ``other``: the names of the models; ``divergences`` [head, head of the other]: mean over ``rows``, in
    nats; ``pairs``: the matches, in the order of the heads. Heads that the other has too few of are left out."""

    one: str
    other: str
    rows: int
    divergences: FloatMatrix
    pairs: tuple[HeadMatch, ...]

    def table(self) -> pd.DataFrame:
        """One row per match, with MATCHED; layers and heads counted from 0."""
        import pandas as pd

        rows = [(*pair.head, *pair.other, *pair[2:]) for pair in self.pairs]
        return pd.DataFrame(rows, columns=list(MATCHED))

    def __getitem__(self, head: Head) -> Head:
        """The head of the other run that a head is matched with. Raises KeyError."""
        return {pair.head: pair.other for pair in self.pairs}[head]

    def __repr__(self) -> str:
        return f"HeadMatches({self.one} with {self.other}, {len(self.pairs)} heads, {self.rows:,} rows)"

    def _repr_html_(self) -> str:
        return self.table().to_html()


def matches(
    one: str, other: str, sums: FloatMatrix, rows: int, heads_per_layer: int, others_per_layer: int
) -> HeadMatches:
    """The matches with the least sum of divergences. ``sums`` [head, head of the other] are added over ``rows``."""
    from scipy.optimize import linear_sum_assignment

    mean = sums / rows
    pairs = [
        HeadMatch(
            Head(*divmod(int(at), heads_per_layer)),
            Head(*divmod(int(to), others_per_layer)),
            float(mean[at, to]),
            float(min(np.delete(mean[at], to), default=np.nan)),
            float(mean[at].mean()),
        )
        for at, to in zip(*linear_sum_assignment(mean), strict=True)
    ]
    return HeadMatches(one, other, rows, mean, tuple(pairs))


def in_runs(profiles: Sequence[Profile], matched: Sequence[HeadMatches] = ()) -> pd.DataFrame:
    """In how many of several profiles, as of a training with different seeds or of its steps, a role is found on any
    head: one row per role, with its ``role`` and ``detail``, in how many ``runs`` ``of`` all, and its ``heads`` in each
    of them ("L1H1, L1H2; –; L0H3"), the most frequent first.

    Heads of different seeds have different numbers. With ``matched``, what ``match_heads(first, other)`` returned for
    the model of the first profile and that of each other one, there is a row per role and head: a role counts where the
    matched heads have it. Raises SettingError for less than two profiles, and for other matches than these.

    >>> mv.in_runs([mv.open_profile("toy"), mv.open_profile("toy")])["runs"].unique().tolist()
    [2]
    """
    import pandas as pd

    check_each(profiles, Profile, *PROFILE)
    if len(profiles) < 2:
        raise SettingError("In how many runs a role is found takes two profiles or more.", "Give a list of them.")
    names = [_first_names(matches) for matches in _checked(profiles, matched)]
    heads: dict[tuple[Any, ...], list[list[str]]] = {}
    for run, profile in enumerate(profiles):
        for finding in profile.findings():
            head = (names[run].get(finding.head, (run, finding.head)),) if names else ()
            of_runs = heads.setdefault((finding.role, finding.detail, *head), [[] for _ in profiles])
            of_runs[run].append(str(finding.head))
    rows = [
        (*role[:2], sum(map(bool, of_runs)), len(profiles), "; ".join(", ".join(run) or "–" for run in of_runs))
        for role, of_runs in heads.items()
    ]
    table = pd.DataFrame(rows, columns=list(IN_RUNS))
    return table.sort_values(
        ["runs", "role", "detail", "heads"], ascending=[False, True, True, True], ignore_index=True
    )


def _checked(profiles: Sequence[Profile], matched: Sequence[HeadMatches]) -> list[HeadMatches | None]:
    """The matches of each run, None for the first; nothing without any. Raises SettingError."""
    if not matched:
        return []
    check_each(matched, HeadMatches, "a match of heads", "Give what mv.match_heads(…) returned.")
    pairs, expected = ([(one.one, one.other) for one in matched], [(profiles[0].model, p.model) for p in profiles[1:]])
    if pairs != expected:
        wanted = ", ".join(f"match_heads({first!r}, {other!r})" for first, other in expected)
        raise SettingError("These are the matches of other models than those of the profiles.", f"Give [{wanted}].")
    return [None, *matched]


def _first_names(matches: HeadMatches | None) -> dict[Head, tuple[int, Head]]:
    """The head of the first run, which is number 0, for each head that is matched with one."""
    return {} if matches is None else {pair.other: (0, pair.head) for pair in matches.pairs}
