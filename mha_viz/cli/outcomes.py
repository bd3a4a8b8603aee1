"""Whether roles hold on another corpus, as lines for a terminal: a table with columns for each corpus, and a count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from mha_viz.analysis.intervals import FEW
from mha_viz.analysis.paired import PairedDifferences
from mha_viz.analysis.profile import Profile
from mha_viz.analysis.replication import HOLDS, OUTCOMES, Replication, RoleScore
from mha_viz.cli.terminal import one_line
from mha_viz.figures.layout.caption import both
from mha_viz.figures.words.glosses import link, linked
from mha_viz.figures.words.role_words import FEW_DOCUMENTS, OLDER_RULE, RULES, is_older, linked_words
from mha_viz.numerals import counted
from mha_viz.quotes import shortened

if TYPE_CHECKING:
    import pandas as pd

HEADINGS = ("head", "role", "rule", *("score", "baseline", "cases") * 2, "outcome")
GROUPS = (3, 6)  # the columns in which the numbers of each corpus begin
BY_THRESHOLD = ("position", "delimiter")  # roles whose baseline is uniform attention
MOST_OF_NAME = 26  # characters of a corpus name above its columns
LEGEND = "Position and delimiter heads have a threshold; their baseline is evenly spread attention."
OF_RULE = "rule: what the head does to {rule} on the profile's corpora{older}."
GAP = "  "


def lines(replications: Sequence[Replication], there: Profile, here: Profile) -> list[str]:
    """The table with its headings, an explanation of its marks and of some baselines, and the number of roles that
    hold."""
    rows = [HEADINGS, *(_cells(replication) for replication in replications)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(HEADINGS))]
    names = [one_line(shortened(profile.corpus, MOST_OF_NAME)) for profile in (there, here)]
    corpora = ""  # each name above its numbers; it can be as wide as the three columns below it
    for name, first in zip(names, GROUPS, strict=True):
        corpora = f"{corpora:<{sum(widths[:first]) + first * len(GAP)}}{name}"
        room = sum(widths[first : first + 3]) + 2 * len(GAP)
        widths[first + 2] += max(0, len(name) - room)
    table = [corpora, *(GAP.join(map(str.ljust, row, widths)).rstrip() for row in rows)]
    legend = [LEGEND] if any(replication.finding.role in BY_THRESHOLD for replication in replications) else []
    findings = [replication.finding for replication in replications]
    rules = [RULES[role] for role in RULES if any(f.state and f.role == role for f in findings)]
    older = f", {OLDER_RULE}" if is_older(findings) else ""
    legend += [OF_RULE.format(rule=" or ".join(rules), older=older)] if rules else []
    measured = [replication.here for replication in replications if replication.here is not None]
    legend += _over({one.documents for one in measured if one.documents is not None}, names[1])
    outcomes = Counter(replication.outcome for replication in replications)
    held = f"{outcomes[HOLDS]:,} of {counted(len(replications), 'role')} of {names[0]} hold on {names[1]}."
    others = [outcome for outcome in OUTCOMES if outcome != HOLDS and outcomes[outcome]]
    count = " ".join([held, *(f"{outcomes[other]:,}: {other.removesuffix(' here')}." for other in others)])
    return [*table, *legend, f"{there.model}: {count}"]


def paired_lines(pairs: PairedDifferences, corpus: str) -> list[str]:
    """Two heads on one relation in each line, with the difference and its interval in points."""
    rows = [("head", "role", "cases", "score", "beside", "score", "points", "95% interval")]
    for pair in pairs:
        difference, low, high = (f"{100 * value:+.1f}" for value in (pair.difference, *pair.interval))
        role = one_line(linked(f"{pair.relation} {pair.direction}"))
        scores = f"{pair.n:,}", _share(pair.accuracy), both(pair.other.head), _share(pair.other_accuracy)
        rows.append((both(pair.one.head), role, *scores, difference, f"{low} to {high}"))
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    table = [GAP.join(map(str.ljust, row, widths)).rstrip() for row in rows]
    over = _over({pair.documents for pair in pairs}, one_line(shortened(corpus, MOST_OF_NAME)))
    apart = sum(pair.interval.low > 0 or pair.interval.high < 0 for pair in pairs)
    models = " beside ".join(dict.fromkeys((pairs[0].one.model, pairs[0].other.model)))
    return [*table, *over, f"{models}: the interval excludes 0 for {apart:,} of {counted(len(pairs), 'role')}."]


def run_lines(table: pd.DataFrame) -> list[str]:
    """Each role of :func:`mha_viz.roles.in_runs` with the runs that have it, and its heads in each."""
    rows, every = [("role", "runs", "heads, by run")], cast("Any", table.itertuples(index=False))
    for row in every:
        role = linked(row.detail) if " " in row.detail else link(row.detail) or row.detail
        rows.append((one_line(role), f"{row.runs:,} of {row.of:,}", row.heads))
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = [GAP.join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return [*lines, f"{(table['runs'] == table['of']).sum():,} of {counted(len(table), 'role')} in all runs."]


def _over(documents: Iterable[int], name: str) -> list[str]:
    counts = sorted(documents)
    if not counts:
        return []
    few = f"; {FEW_DOCUMENTS}" if counts[0] < FEW else ""
    between = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
    plural = "document, or none named" if counts == [1] else "documents, or blocks of them"
    return [f"The 95% intervals on {name} are over {between} {plural}{few}."]


def _cells(replication: Replication) -> tuple[str, ...]:
    finding, here, outcome = replication
    there = RoleScore(finding.score, finding.baseline, finding.n)
    numbers = (*_numbers(there), *_numbers(here))
    return (
        both(finding.head),
        one_line(linked_words(finding)),
        finding.state or "–",
        *numbers,
        outcome.removesuffix(" here"),
    )


def _numbers(measured: RoleScore | None) -> tuple[str, str, str]:
    """Score, baseline and number of cases on one corpus."""
    if measured is None:
        return "–", "–", "0"
    return _share(measured.score), _share(measured.baseline), f"{measured.n:,}"


def _share(value: float) -> str:
    return "–" if value != value else f"{value:.3f}"  # NaN is not equal to itself
