"""Format the outcomes of replication for a terminal: a table with columns for each corpus, and a count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from mha_viz.analysis.intervals import FEW
from mha_viz.analysis.paired_accuracy import PairedDifferences
from mha_viz.analysis.profile import Profile
from mha_viz.analysis.replication import HOLDS, OUTCOMES, Replication, RoleScore
from mha_viz.cli.terminal import one_line
from mha_viz.figures.layout.caption import format_head
from mha_viz.figures.words.glosses import describe_link, label_link
from mha_viz.figures.words.role_words import FEW_DOCUMENTS, OLDER_RULE, RULES, has_older_rule, label_role
from mha_viz.numerals import counted
from mha_viz.quotes import shorten

if TYPE_CHECKING:
    import pandas as pd

HEADINGS = ("head", "role", "rule", *("score", "baseline", "cases") * 2, "outcome")
CORPUS_COLUMNS = (3, 6)  # the first column of each corpus's numbers
THRESHOLD_ROLES = ("position", "delimiter")  # roles whose baseline is uniform attention
MAX_NAME = 26  # characters of a corpus name above its columns
LEGEND = "Position and delimiter heads have a threshold; their baseline is evenly spread attention."
RULE_LEGEND = "rule: how the head compares with {rule} on the profile's corpora{older}."
GAP = "  "


def format_replications(replications: Sequence[Replication], old_profile: Profile, new_profile: Profile) -> list[str]:
    """Format the replications as a table, with notes on rules and baselines, and the number of roles that hold."""
    rows = [HEADINGS, *(_format_cells(replication) for replication in replications)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    names = [one_line(shorten(profile.corpus, MAX_NAME)) for profile in (old_profile, new_profile)]
    header = ""  # each name above its numbers; it can be as wide as the three columns below it
    for name, column_index in zip(names, CORPUS_COLUMNS, strict=True):
        header = f"{header:<{sum(widths[:column_index]) + column_index * len(GAP)}}{name}"
        width = sum(widths[column_index : column_index + 3]) + 2 * len(GAP)
        widths[column_index + 2] += max(0, len(name) - width)
    table = [header, *(GAP.join(map(str.ljust, row, widths)).rstrip() for row in rows)]
    legend = [LEGEND] if any(replication.finding.role in THRESHOLD_ROLES for replication in replications) else []
    findings = [replication.finding for replication in replications]
    rules = [RULES[role] for role in RULES if any(f.state and f.role == role for f in findings)]
    older_note = f", {OLDER_RULE}" if has_older_rule(findings) else ""
    legend += [RULE_LEGEND.format(rule=" or ".join(rules), older=older_note)] if rules else []
    scores = [replication.here for replication in replications if replication.here is not None]
    legend += _format_documents({score.documents for score in scores if score.documents is not None}, names[1])
    outcomes = Counter(replication.outcome for replication in replications)
    summary = f"{outcomes[HOLDS]:,} of {counted(len(replications), 'role')} of {names[0]} hold on {names[1]}."
    other_outcomes = [outcome for outcome in OUTCOMES if outcome != HOLDS and outcomes[outcome]]
    totals = " ".join([summary, *(f"{outcomes[o]:,}: {o.removesuffix(' here')}." for o in other_outcomes)])
    return [*table, *legend, f"{old_profile.model}: {totals}"]


def format_pairs(pairs: PairedDifferences, corpus: str) -> list[str]:
    """Format the comparison of heads in each role: both scores, and their difference in points with its interval."""
    rows = [("head", "role", "cases", "score", "other head", "score", "points", "95% interval")]
    for pair in pairs:
        difference, low, high = (f"{100 * value:+.1f}" for value in (pair.difference, *pair.interval))
        role = one_line(label_link(f"{pair.relation} {pair.direction}"))
        scores = (
            f"{pair.n:,}",
            _format_share(pair.accuracy),
            format_head(pair.other.head),
            _format_share(pair.other_accuracy),
        )
        rows.append((format_head(pair.one.head), role, *scores, difference, f"{low} to {high}"))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    table = [GAP.join(map(str.ljust, row, widths)).rstrip() for row in rows]
    legend = _format_documents({pair.documents for pair in pairs}, one_line(shorten(corpus, MAX_NAME)))
    count = sum(pair.interval.low > 0 or pair.interval.high < 0 for pair in pairs)
    models = " beside ".join(dict.fromkeys((pairs[0].one.model, pairs[0].other.model)))
    return [*table, *legend, f"{models}: the interval excludes 0 for {count:,} of {counted(len(pairs), 'role')}."]


def format_runs(table: pd.DataFrame) -> list[str]:
    """Format the table of :func:`mha_viz.roles.count_in_runs`: for each role, its runs and its heads in each."""
    rows, roles = [("role", "runs", "heads, by run")], cast("Any", table.itertuples(index=False))
    for row in roles:
        role = label_link(row.detail) if " " in row.detail else describe_link(row.detail) or row.detail
        rows.append((one_line(role), f"{row.runs:,} of {row.of:,}", row.heads))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    formatted = [GAP.join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return [*formatted, f"{(table['runs'] == table['of']).sum():,} of {counted(len(table), 'role')} in all runs."]


def _format_documents(documents: Iterable[int], name: str) -> list[str]:
    counts = sorted(documents)
    if not counts:
        return []
    warning = f"; {FEW_DOCUMENTS}" if counts[0] < FEW else ""
    range_text = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
    plural = "document, or none named" if counts == [1] else "documents, or blocks of them"
    return [f"The 95% intervals on {name} are over {range_text} {plural}{warning}."]


def _format_cells(replication: Replication) -> tuple[str, ...]:
    finding, new_score, outcome = replication
    old_score = RoleScore(finding.score, finding.baseline, finding.n)
    numbers = (*_format_scores(old_score), *_format_scores(new_score))
    return (
        format_head(finding.head),
        one_line(label_role(finding)),
        finding.state or "–",
        *numbers,
        outcome.removesuffix(" here"),
    )


def _format_scores(score: RoleScore | None) -> tuple[str, str, str]:
    """Format score, baseline and number of cases on one corpus."""
    if score is None:
        return "–", "–", "0"
    return _format_share(score.score), _format_share(score.baseline), f"{score.n:,}"


def _format_share(value: float) -> str:
    return "–" if value != value else f"{value:.3f}"  # NaN is not equal to itself
