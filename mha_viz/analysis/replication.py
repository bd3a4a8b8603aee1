"""Test whether the roles of a profile hold on another corpus.

The *previous* score of a head is the lowest of its accuracies on the corpora of the profile. The outcomes for a role
are:

* it *holds* if the gain over the baseline of the other corpus is five points or more; it *holds, but weaker* if the
  head then has less than three quarters of its previous score;
* with a smaller gain, a simple rule does as well there if the upper end of the head's interval reaches its previous
  score;
* otherwise the head does it less, or, if it is no better than the baseline and below half of its previous score, does
  not do it.

Roles with a threshold hold, or hold but weaker, if the threshold is met. Otherwise the head does it less as long as it
scores five points above the baseline (the previous one if there is none here) or half of its previous score.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mha_viz.analysis.coreference import AGREEMENT, BASELINES
from mha_viz.analysis.findings import DOCUMENTS, Finding, parse_whole_number
from mha_viz.analysis.metrics import POSITIONS
from mha_viz.analysis.profile import Profile
from mha_viz.analysis.roles import (
    BROAD_THRESHOLD,
    DELIMITER_THRESHOLD,
    MASS_THRESHOLD,
    MAXIMA_THRESHOLD,
    MIN_CASES,
    ROUNDING,
)
from mha_viz.errors import PROFILE_KIND, SettingError, check_kind
from mha_viz.model_names import shorten_name
from mha_viz.numerals import counted

if TYPE_CHECKING:
    import pandas as pd

MIN_GAIN = 0.05
WEAKER, GONE = 3 / 4, 1 / 2  # of the previous score: below the first, a role is weaker; below the second, it is gone
# Roles with a threshold → the table that has their scores.
THRESHOLD_TABLES = {"position": "position", "delimiter": "delimiter", "broad": "entropy"}
MAX_ROWS = 60  # maximum number of rows that Jupyter shows of a table
THREE_DECIMALS = "{:.3f}".format
HOLDS, WEAK, RULE = "holds", "holds, but weaker", "a simple rule does as well here"
LESS, FAILS = "the head does it less here", "the head does not do it here"
FEW, ABSENT = f"fewer than {MIN_CASES} cases here", "not annotated here"
OUTCOMES = (HOLDS, WEAK, RULE, LESS, FAILS, FEW, ABSENT)
HEADING = (
    *("layer", "head", "role", "detail", "status", "outcome"),
    *("score", "baseline", "n", "score_here", "baseline_here", "n_here", "ci_low_here", "ci_high_here"),
    "documents_here",
    *("upos_rule", "upos_baseline", "state", "upos_baseline_here"),
)


class RoleScore(NamedTuple):
    """The score of a head on a corpus.

    Attributes:
        low, high: the interval; NaN if the score is not a share of cases.
        upos: the score of the simple rule by part of speech or, for pronouns, of agreement; NaN for other roles.
        documents: the number of documents behind the interval.
        is_met: whether a role with a threshold meets it.
    """

    score: float
    baseline: float
    n: int
    low: float = math.nan
    high: float = math.nan
    upos: float = math.nan
    documents: int | None = None
    is_met: bool = False


class Replication(NamedTuple):
    """A role, its score on another corpus, and the outcome.

    ``here`` is None if the other corpus lacks the annotation; ``outcome`` is one of OUTCOMES.
    """

    finding: Finding
    here: RoleScore | None
    outcome: str


class Replications(tuple[Replication, ...]):
    """A tuple of :class:`Replication`, one per role, in the order of the roles.

    Printed or shown in Jupyter, it gives the number of roles with each outcome and :attr:`table`.
    """

    @property
    def table(self) -> pd.DataFrame:
        """A table with one row per role.

        The columns are its head (layers and heads counted from 0), the role, the outcome, and accuracy (the share for
        roles with a threshold), baseline and number of cases on both corpora, with the interval on this one; for syntax
        also the best rule by part of speech, and whether the head does better on the corpora of the profile.
        """
        import pandas as pd

        rows: list[tuple[Any, ...]] = []
        for finding, score, outcome in self:
            previous_values = (finding.score, finding.baseline, finding.n)
            shown_score = score or RoleScore(np.nan, np.nan, 0)
            documents = "" if shown_score.documents is None else shown_score.documents
            numbers = (*previous_values, *shown_score[:5], documents)
            rule_columns = (finding.upos_rule, finding.upos, finding.state, shown_score.upos)
            rows.append((*finding.head, finding.role, finding.detail, finding.status, outcome, *numbers, *rule_columns))
        return pd.DataFrame(rows, columns=list(HEADING))

    @property
    def summary(self) -> str:
        """The number of roles with each outcome: "45 roles: 40 × holds, 5 × a simple rule does as well here"."""
        outcomes = Counter(replication.outcome for replication in self)
        parts = ", ".join(f"{outcomes[outcome]} × {outcome}" for outcome in OUTCOMES if outcomes[outcome])
        return f"{counted(len(self), 'role')}{': ' * bool(parts)}{parts}"

    def __repr__(self) -> str:
        return f"{self.summary}\n{self.table}"

    def _repr_html_(self) -> str:
        return f"<p>{self.summary}</p>{self.table.to_html(max_rows=MAX_ROWS, float_format=THREE_DECIMALS)}"


def replicate(findings: Iterable[Finding], here: Profile) -> Replications:
    """Compare every role with its head's score in ``here``, a profile of the same model on another corpus.

    ``findings`` are the roles, as returned by :meth:`mha_viz.Profile.findings`. Raises SettingError for a head that
    ``here`` lacks.
    """
    check_kind(here, Profile, *PROFILE_KIND)
    score_tables, heads = _ScoreTables(here), here.heads()
    replications = []
    for finding in findings:
        if finding.head not in heads:
            problem = f"{shorten_name(here.model)} has no head {finding.head}."
            raise SettingError(problem, "Give a profile of the same model on another corpus.")
        score = score_tables.find_score(finding)
        outcome = ABSENT if score is None else FEW if score.n < MIN_CASES else _find_outcome(finding, score)
        replications.append(Replication(finding, score, outcome))
    return Replications(replications)


def _find_outcome(finding: Finding, score: RoleScore) -> str:
    """Return the outcome for a role whose score on the other corpus is ``score``."""
    previous_score = finding.score if math.isnan(finding.lowest) else finding.lowest
    baseline = finding.baseline if math.isnan(score.baseline) else score.baseline
    has_gain = score.score - baseline >= MIN_GAIN - ROUNDING
    if score.is_met if finding.role in THRESHOLD_TABLES else has_gain:
        return HOLDS if score.score >= WEAKER * previous_score - ROUNDING else WEAK
    if finding.role in THRESHOLD_TABLES:
        return LESS if has_gain or score.score >= GONE * previous_score - ROUNDING else FAILS
    if score.high >= previous_score:
        return RULE
    return FAILS if score.score <= score.baseline and score.score < GONE * previous_score else LESS


class _ScoreTables:
    """The scores of heads in the tables of a profile."""

    def __init__(self, profile: Profile) -> None:
        self._tables = profile.tables
        self._token_count = int(profile.facts["counts"].get("pieces", 0))
        self._index: dict[str, Any] = {}
        self._uniform: dict[tuple[str, str, bool], tuple[int, float]] = {}

    def find_score(self, finding: Finding) -> RoleScore | None:
        """Return the score of a role's head; None if the corpus lacks the annotation for the role."""
        if finding.role == "syntax":
            return self._score_syntax(finding)
        if finding.role == "coreference":
            return self._score_coreference(finding)
        if (table := THRESHOLD_TABLES[finding.role]) not in self._tables:
            return None
        key = (finding.role, finding.detail, math.isnan(finding.low))
        if key not in self._uniform:  # computed once, because it is equal for all heads with this role
            self._uniform[key] = self._find_uniform_score(*key)
        n, baseline = self._uniform[key]
        if finding.role == "position":
            offset = next(offset for offset, detail in POSITIONS.items() if detail == finding.detail)
            line = self._find_row(table, ["layer", "head", "offset"], (*finding.head, offset))
            score = float(line["mass" if math.isnan(finding.low) else "share_of_maxima"])
            is_met = line["mass"] > MASS_THRESHOLD or line["share_of_maxima"] >= MAXIMA_THRESHOLD
        elif finding.role == "delimiter":
            score = float(self._find_row(table, ["layer", "head"], finding.head)[finding.detail])
            is_met = score > DELIMITER_THRESHOLD
        else:
            score = float(self._find_row(table, ["layer", "head"], finding.head)["normalised"])
            is_met, baseline = score >= BROAD_THRESHOLD, float(self._tables[table]["normalised"].mean())
        return RoleScore(score, baseline, n, is_met=bool(is_met))

    def _find_uniform_score(self, role: str, detail: str, has_no_interval: bool) -> tuple[int, float]:
        """Return the number of cases of a role with a threshold, and the score of uniform attention.

        Both are the same for all heads and known if a head meets the threshold. Otherwise, return the number of tokens
        and NaN.
        """
        roles = self._tables.get("candidates", self._tables.get("roles"))
        if roles is not None:
            role_rows = roles[(roles["role"] == role) & (roles["detail"] == detail)]
            role_rows = role_rows[role_rows["ci_low"].isna() == has_no_interval]
            if len(role_rows):
                return int(role_rows["n"].iloc[0]), float(role_rows["baseline"].iloc[0])
        return self._token_count, math.nan

    def _score_syntax(self, finding: Finding) -> RoleScore | None:
        """Return the score of a syntax role; None without trees."""
        if "syntax" not in self._tables:
            return None
        relation, direction = finding.detail.split(" ")
        level = "full" if ":" in relation else "base"
        columns = ["level", "relation", "direction"]
        row = self._find_row("syntax", [*columns, "layer", "head"], (level, relation, direction, *finding.head))
        if row is None:
            return RoleScore(math.nan, math.nan, 0)
        offset, upos = (
            self._find_row("syntax_baselines", [*columns, "baseline"], (level, relation, direction, baseline))
            for baseline in ("offset", "pos")
        )
        score = _make_score(row, float(offset["accuracy"]))
        return score if upos is None else score._replace(upos=float(upos["accuracy"]))

    def _score_coreference(self, finding: Finding) -> RoleScore | None:
        """Return the score of a coreference role; None without chains."""
        if "coreference" not in self._tables:
            return None
        row = self._find_row("coreference", ["mention_type", "layer", "head"], (finding.detail, *finding.head))
        rules = self._tables["coreference_baselines"]
        rules = rules[rules["mention_type"] == finding.detail]
        scores = dict(zip(rules["baseline"], rules["accuracy"].astype(float), strict=True))
        score = _make_score(row, max(scores[name] for name in BASELINES))
        return score._replace(upos=scores.get(AGREEMENT, math.nan))

    def _find_row(self, table: str, columns: list[str], values: tuple[Any, ...]) -> Any:
        """Return the row of a table with these values; None if there is none."""
        if table not in self._index:
            rows: pd.DataFrame = self._tables[table]
            self._index[table] = {
                key: number for number, key in enumerate(zip(*(rows[c] for c in columns), strict=True))
            }
        number = self._index[table].get(values)
        return None if number is None else self._tables[table].iloc[number]


def _make_score(line: Any, baseline: float) -> RoleScore:
    """Return the score in a row of a table with counts of cases."""
    score, low, high = (float(line[name]) for name in ("accuracy", "role_low", "role_high"))
    documents = parse_whole_number(line[DOCUMENTS])
    return RoleScore(score, baseline, int(line["n"]), low, high, documents=documents)
