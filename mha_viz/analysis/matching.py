"""Match heads of two runs that behave alike, and count roles over several runs.

Training with another seed gives corresponding heads different numbers. Each head is matched with a head of the other
run so that the sum of the Jensen–Shannon divergences of their rows is minimal (Kuhn 1955, Naval Research Logistics
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
from mha_viz.errors import PROFILE_KIND, SettingError, check_items
from mha_viz.numerals import counted

if TYPE_CHECKING:
    import pandas as pd

MATCH_COLUMNS = (
    *("layer", "head", "other_layer", "other_head", "js", "next_js", "mean_js", "chance_js"),
    "closer_than_chance",
)
# As a fraction of the chance divergence; heads that have hardly learned anything are within 2 % of chance.
MAX_CHANCE_RATIO = 0.9
RUN_COLUMNS = ("role", "detail", "runs", "of", "heads")


class HeadMatch(NamedTuple):
    """A head and the head of the other run that matches it.

    Attributes:
        js: the divergence of their rows, in nats.
        next_js: the divergence from the most similar other head of that run, NaN if there is none.
        mean_js: the mean divergence from all heads of that run.
        chance_js: the lower of the divergences of either head from the mean of all heads of the other run. Heads that
            have nothing in common are at least as far apart on average, because the divergence is convex.
        closer_than_chance: whether ``js`` is at least a tenth below ``chance_js``; False if a run has one head.
    """

    head: Head
    other: Head
    js: float
    next_js: float
    mean_js: float
    chance_js: float
    closer_than_chance: bool


class Divergences(NamedTuple):
    """Divergences of the heads of two runs, in nats, added over rows.

    Attributes:
        pairs: [head, head of the other run].
        means: [head], from the mean of all heads of the other run.
        other_means: [head of the other run], from the mean of all heads of the first.
    """

    pairs: FloatMatrix
    means: FloatMatrix
    other_means: FloatMatrix

    def __add__(self, other: tuple[FloatMatrix, ...]) -> Divergences:  # type: ignore[override]
        return Divergences(*(sums + other_sums for sums, other_sums in zip(self, other, strict=True)))


@dataclass(frozen=True, eq=False, repr=False)
class HeadMatches:
    """The matched heads of two models.

    Attributes:
        one, other: the names of the models.
        rows: the number of rows that were compared.
        divergences: [head, head of the other], the mean over ``rows`` in nats.
        pairs: the matches, in the order of the heads, including those that are no closer than chance. Heads are left
            out if the other model has fewer heads.
    """

    one: str
    other: str
    rows: int
    divergences: FloatMatrix
    pairs: tuple[HeadMatch, ...]

    def table(self) -> pd.DataFrame:
        """Return a table with one row per match and the columns MATCH_COLUMNS; layers and heads are counted from 0."""
        import pandas as pd

        rows = [(*pair.head, *pair.other, *pair[2:]) for pair in self.pairs]
        return pd.DataFrame(rows, columns=list(MATCH_COLUMNS))

    def __getitem__(self, head: Head) -> Head:
        """Return the head of the other run that matches a head.

        Raises SettingError if the two are no closer than chance (as unrelated heads are), and KeyError for a head
        without a match, because the other run may have fewer heads.
        """
        pair = {pair.head: pair for pair in self.pairs}[head]
        if not pair.closer_than_chance:
            problem = f"{head} of {self.one} and {pair.other} of {self.other} are no closer than chance: no match."
            raise SettingError(problem, "All pairs, with their divergences, are in pairs and in table().")
        return pair.other

    def __repr__(self) -> str:
        count = sum(pair.closer_than_chance for pair in self.pairs)
        heads = f"{count} of {counted(len(self.pairs), 'head')} closer than chance"
        return f"HeadMatches({self.one} with {self.other}, {heads}, {self.rows:,} rows)"

    def _repr_html_(self) -> str:
        return self.table().to_html()


def find_matches(
    one: str, other: str, sums: Divergences, rows: int, heads: Sequence[Head], other_heads: Sequence[Head]
) -> HeadMatches:
    """Find the matches with the least sum of divergences.

    Args:
        one, other: the names of the models.
        sums: divergences added over ``rows``.
        rows: the number of rows.
        heads, other_heads: the heads of the two models, in order.
    """
    from scipy.optimize import linear_sum_assignment

    mean = sums.pairs / rows
    pairs = []
    for row, column in zip(*linear_sum_assignment(mean), strict=True):
        js, chance = float(mean[row, column]), float(min(sums.means[row], sums.other_means[column]) / rows)
        pairs.append(
            HeadMatch(
                heads[row],
                other_heads[column],
                js,
                float(min(np.delete(mean[row], column), default=np.nan)),
                float(mean[row].mean()),
                chance,
                js < MAX_CHANCE_RATIO * chance and min(mean.shape) > 1,
            )
        )
    return HeadMatches(one, other, rows, mean, tuple(pairs))


def count_in_runs(profiles: Sequence[Profile], matched: Sequence[HeadMatches] = ()) -> pd.DataFrame:
    """Count the profiles in which a role is found on any head.

    The profiles may come from trainings with different seeds, or from the steps of one training. The table has one row
    per role, most frequent first, with the columns ``role`` and ``detail``; ``runs``, the number of profiles with the
    role; ``of``, the number of all profiles; and ``heads``, the heads with the role in each of them ("L1H1, L1H2; –;
    L0H3").

    Heads of different seeds have different numbers. With ``matched``, the results of ``match_heads(first, other)`` for
    the model of the first profile and that of each other profile, there is a row per role and head: a role counts where
    the matched heads have it, if they are closer than chance (:class:`HeadMatch`). Raises SettingError for fewer than
    two profiles, and for matches of other models.

    >>> mv.roles.count_in_runs([mv.load_profile("toy"), mv.load_profile("toy")])["runs"].unique().tolist()
    [2]
    """
    import pandas as pd

    check_items(profiles, Profile, *PROFILE_KIND)
    if len(profiles) < 2:
        raise SettingError("Counting the runs that show a role needs two or more profiles.", "Give a list of profiles.")
    # [run]: for each head that is closer than chance to its match in run 0, that match.
    matched_heads: list[dict[Head, tuple[int, Head]]] = [
        {pair.other: (0, pair.head) for pair in run_matches.pairs if pair.closer_than_chance}
        if run_matches is not None
        else {}
        for run_matches in _check_matches(profiles, matched)
    ]
    heads: dict[tuple[Any, ...], list[list[str]]] = {}
    for run, profile in enumerate(profiles):
        for finding in profile.findings():
            head = (matched_heads[run].get(finding.head, (run, finding.head)),) if matched_heads else ()
            heads_by_run = heads.setdefault((finding.role, finding.detail, *head), [[] for _ in profiles])
            heads_by_run[run].append(str(finding.head))
    rows = [
        (
            *role[:2],
            sum(map(bool, heads_by_run)),
            len(profiles),
            "; ".join(", ".join(run) or "–" for run in heads_by_run),
        )
        for role, heads_by_run in heads.items()
    ]
    table = pd.DataFrame(rows, columns=list(RUN_COLUMNS))
    return table.sort_values(
        ["runs", "role", "detail", "heads"], ascending=[False, True, True, True], ignore_index=True
    )


def _check_matches(profiles: Sequence[Profile], matched: Sequence[HeadMatches]) -> list[HeadMatches | None]:
    """Return the matches of each run, None for the first, or an empty list without matches. Raises SettingError."""
    if not matched:
        return []
    check_items(matched, HeadMatches, "a match of heads", "Give the result of mv.roles.match_heads(…).")
    expected = [(profiles[0].model, profile.model) for profile in profiles[1:]]
    if [(match.one, match.other) for match in matched] != expected:
        calls = ", ".join(f"match_heads({first!r}, {other!r})" for first, other in expected)
        raise SettingError("These matches are of other models than the profiles.", f"Give [{calls}].")
    return [None, *matched]
