"""The columns of a report: a table of roles for programs, with unformatted numbers, and one for print."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from mha_viz.analysis.findings import (
    COMPARISON_COLUMNS,
    CORPUS_SEPARATOR,
    RULE_Q,
    SHARED_COLUMNS,
    Finding,
    OtherCorpusScore,
    Q,
)
from mha_viz.analysis.intervals import FEW
from mha_viz.analysis.needs import PairResults
from mha_viz.analysis.replication import Replication, RoleScore
from mha_viz.analysis.roles import ESTABLISHED, MIN_CASES
from mha_viz.figures.layout.caption import format_head
from mha_viz.figures.words.glosses import describe_rule
from mha_viz.figures.words.need_words import MIN_Q, name_kinds
from mha_viz.figures.words.role_words import (
    ACCURACY,
    baseline_name,
    has_older_rule,
    label_role,
    name_measure,
)
from mha_viz.figures.words.use_words import USE, describe_use
from mha_viz.numerals import counted, percent
from mha_viz.quotes import make_printable

HEADING = (
    *("model", "revision", "corpus", "layer", "head", "name", "paper", "role", "detail", "status", "n", "documents"),
    *("measure", "score", "ci_low", "ci_high", "baseline", "upos_rule", "upos_baseline", "state"),
    *(*COMPARISON_COLUMNS, "untrained", Q, RULE_Q, "also_established_on"),
    *(*(f"other_{name}" for name in SHARED_COLUMNS), "used_more_than_neighbours"),
    *("copying", "copying_untrained", "needed", "needed_for"),
)
# For the first third corpus, the columns are replicated_1_corpus, replicated_1_outcome, …
THIRD_COLUMNS = ("corpus", "outcome", "score", "ci_low", "ci_high", "baseline", "n", "documents")
_RAGGED = r">{\raggedright\arraybackslash}"
TEXT_WIDTH, GAP_WIDTH = 0.82, 0.009  # shares of the line of a landscape page: all columns of text; gap of one column
NO_VALUE = "–"
NEEDED_BY_PAIRS = "Needed by sentence pairs"  # the heading of a column
MARKDOWN_ESCAPES = {ord(sign): f"\\{sign}" for sign in "\\`*_{}[]<>|#!$~&"}
LATEX_ESCAPES = {
    **{ord(sign): f"\\{sign}" for sign in "{}$&#%_"},
    **str.maketrans({"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}),
    **str.maketrans({"<": "$<$", ">": "$>$", "|": r"\textbar{}"}),
    **str.maketrans({"→": r"$\rightarrow$", "←": r"$\leftarrow$", "×": r"$\times$", "−": "$-$", "–": "--"}),
    **str.maketrans(
        {
            "≥": r"$\geq$",
            "≤": r"$\leq$",
            "…": r"\ldots{}",
            "‘": "`",
            "`": r"\textasciigrave{}",
            "“": "``",
            "”": "''",
            '"': "''",
            "’": "'",
        }
    ),
}


class Use(NamedTuple):
    """Whether a head is used for a role more than its neighbours, and the measure of the effect without it."""

    is_used: bool
    measure: str


class ReportedRole(NamedTuple):
    """A role with the results of its tests.

    Attributes:
        q, rule_q: q-values against the baseline and against the strongest simple rule, NaN if the role was not tested.
        outcomes: the outcome on each third corpus, None if that corpus helped to choose the role.
        use: whether the head is used, None if that was not measured.
        copying: the head's copying score, and that of random weights; NaN if they were not measured.
        need: whether minimal pairs need the head, None if that was not measured.
    """

    finding: Finding
    q: float
    rule_q: float
    outcomes: tuple[Replication | None, ...]
    use: Use | None
    copying: tuple[float, float]
    need: PairResults | None = None


class ReportSubject(NamedTuple):
    """The subject of a report: the model's name and revision, the corpus, and the third corpora."""

    model: str
    revision: str
    corpus: str
    third_corpora: tuple[str, ...]


def build_cells(subject: ReportSubject, role: ReportedRole) -> tuple[Any, ...]:
    """Return the cells of a role in the table for programs.

    Their order is that of HEADING, then THIRD_COLUMNS for each third corpus.
    """
    f = role.finding
    head_cells = (*f.head, str(f.head), f.head.paper, f.role, f.detail, f.status)
    score_cells = (f.n, "" if f.documents is None else f.documents, name_measure(f), f.score, f.low, f.high)
    baselines = (f.baseline, f.upos_rule, f.upos, f.state, *f.comparison, f.untrained)
    other = f.other_score or OtherCorpusScore("", math.nan)
    other_corpora = CORPUS_SEPARATOR.join(_list_other_corpora(f))
    others = (other_corpora, other.score, other.upos, other.upos_rule, *other.comparison)
    pairs = zip(subject.third_corpora, role.outcomes, strict=True)
    third_cells = (cell for pair in pairs for cell in _third_cells(*pair))
    need = ("", "") if role.need is None else (role.need.is_needed, "; ".join(role.need.kinds))
    use_cells = ("" if role.use is None else role.use.is_used, *role.copying, *need)
    subject_cells, q_values = (subject.model, subject.revision, subject.corpus), (role.q, role.rule_q)
    return (*subject_cells, *head_cells, *score_cells, *baselines, *q_values, *others, *use_cells, *third_cells)


def _third_cells(corpus: str, replication: Replication | None) -> tuple[Any, ...]:
    """Return the cells of THIRD_COLUMNS. They have no outcome if the corpus helped to choose the role."""
    if replication is None:
        return (corpus, "", *[math.nan] * 4, "", "")
    role_score = replication.here or RoleScore(math.nan, math.nan, 0)
    documents = "" if role_score.documents is None else role_score.documents
    scores = (role_score.score, role_score.low, role_score.high, role_score.baseline, role_score.n, documents)
    return (corpus, _shorten_outcome(replication), *scores)


def _shorten_outcome(replication: Replication) -> str:
    """Return the outcome on another corpus, for a column with its name: "holds", "fewer than 100 cases"."""
    return replication.outcome.removesuffix(" here")


def _list_other_corpora(finding: Finding) -> tuple[str, ...]:
    """Return the other corpora that establish a role: the corpus of ``other_score``, not the profile's own."""
    if finding.status != ESTABLISHED:
        return ()
    return (finding.other_score.corpus,) if finding.other_score else ()


def has_few_documents(finding: Finding) -> bool:
    """Return whether a role was measured on few documents."""
    return finding.documents is not None and finding.documents < FEW


def _format_score(finding: Finding) -> str:
    """Return "68.6%", "99.7% (mean weight)"."""
    name = name_measure(finding)
    return percent(finding.score) + (f" ({name})" if name != ACCURACY else "")


def _format_interval(finding: Finding) -> str:
    """Return "66.4%–70.7% (267 documents)"."""
    if math.isnan(finding.low):
        return NO_VALUE
    documents = "one or none named" if finding.documents == 1 else counted(finding.documents or 0, "document")
    documents = f"few documents: {documents}" if has_few_documents(finding) else documents
    remark = "" if finding.documents is None else f" ({documents})"
    return f"{percent(finding.low)}–{percent(finding.high)}{remark}"


def _format_baselines(finding: Finding) -> str:
    """Return "best fixed offset 38.6%, untrained 6.1%"."""
    scores = {baseline_name(finding): finding.baseline, "untrained": finding.untrained}
    return ", ".join(f"{name} {percent(score)}" for name, score in scores.items() if not math.isnan(score))


def _format_rule(finding: Finding) -> str:
    """Return "below: nearest noun or name to the right 69.3%; there nearest noun to the right 74.2%"."""
    if not finding.state:
        return NO_VALUE
    rule, other = describe_rule(finding.upos_rule), finding.other_score
    elsewhere = ""
    if other and other.upos_rule:
        name = "" if other.upos_rule == finding.upos_rule else f"{describe_rule(other.upos_rule)} "
        elsewhere = f"; there {name}{percent(other.upos)}"
    return f"{finding.state}: {rule} {percent(finding.upos)}{elsewhere}"


def _format_choice(finding: Finding) -> str:
    """Return "88.3%, nearest 85.8%"; a dash if there are few cases."""
    comparison = finding.comparison
    has_enough = comparison.choice_n >= MIN_CASES  # NaN where no choice was measured
    return f"{percent(comparison.choice)}, nearest {percent(comparison.nearest)}" if has_enough else NO_VALUE


def format_q(q: float) -> str:
    """Format a q-value: "0.012", "< 0.001", or a dash if there is none."""
    return NO_VALUE if math.isnan(q) else f"< {MIN_Q}" if q < MIN_Q else f"{q:.3f}"


class PrintedColumn(NamedTuple):
    """A column of the printed table.

    ``alignment``: in LaTeX, "l", "r" or, for text of several lines, "p". ``width``: the width of a "p" column as a
    share of all "p" columns.
    """

    heading: str
    alignment: str
    cell: Callable[[ReportedRole], str]
    width: float = 0


def list_printed_columns(subject: ReportSubject, roles: Sequence[ReportedRole]) -> tuple[PrintedColumn, ...]:
    """Return the columns of the printed table; a third corpus that helped to choose all roles has no column."""
    rule_heading = (
        "Simple rule (of one part of speech)"
        if has_older_rule(role.finding for role in roles)
        else "Strongest simple rule"
    )
    corpora = [(n, c) for n, c in enumerate(subject.third_corpora) if any(role.outcomes[n] for role in roles)]
    return (
        PrintedColumn("Role", "p", lambda role: label_role(role.finding), 0.12),
        PrintedColumn("Head", "l", lambda role: format_head(role.finding.head)),
        PrintedColumn("Status", "p", lambda role: role.finding.status, 0.09),
        PrintedColumn("n", "r", lambda role: f"{role.finding.n:,}"),
        PrintedColumn("Score", "p", lambda role: _format_score(role.finding), 0.08),
        PrintedColumn("95% interval", "p", lambda role: _format_interval(role.finding), 0.11),
        PrintedColumn("Also established on", "p", lambda role: _format_established(role.finding), 0.1),
        PrintedColumn("Baselines", "p", lambda role: _format_baselines(role.finding), 0.1),
        PrintedColumn(rule_heading, "p", lambda role: _format_rule(role.finding), 0.2),
        PrintedColumn("Choice", "p", lambda role: _format_choice(role.finding), 0.07),
        PrintedColumn("q (rule)", "r", lambda role: format_q(role.rule_q)),
        *(_third_column(n, corpus) for n, corpus in corpora),
        PrintedColumn(capitalise(USE), "p", lambda role: describe_use(*role.use) if role.use else NO_VALUE, 0.1),
        *[PrintedColumn(NEEDED_BY_PAIRS, "p", _format_need, 0.09)] * any(role.need for role in roles),
    )


def _format_need(role: ReportedRole) -> str:
    """Return "yes: agreement and reflexive" or "no"."""
    if role.need is None:
        return NO_VALUE
    kinds = name_kinds(role.need)
    return f"yes{f': {kinds}' if kinds else ''}" if role.need.is_needed else "no"


def _third_column(number: int, corpus: str) -> PrintedColumn:
    """Return the column of one third corpus: "67.9%: holds"."""

    def cell(role: ReportedRole) -> str:
        replication = role.outcomes[number]
        if replication is None:
            return NO_VALUE
        role_score = replication.here
        text = "" if role_score is None or math.isnan(role_score.score) else f"{percent(role_score.score)}: "
        return f"{text}{_shorten_outcome(replication)}"

    return PrintedColumn(f"Replicates on {corpus}", "p", cell, 0.1)


def _format_established(finding: Finding) -> str:
    """Return the other corpus and its score: "UD English GUM dev: 68.5%"."""
    other = finding.other_score
    return NO_VALUE if other is None else f"{other.corpus}: {percent(other.score)}"


def latex_column_spec(columns: Sequence[PrintedColumn]) -> str:
    """Return the column specification for LaTeX; columns of text share the width that the others leave."""
    total, available = sum(column.width for column in columns), TEXT_WIDTH - GAP_WIDTH * len(columns)
    widths = (f"{_RAGGED}p{{{column.width / total * available:.3f}\\linewidth}}" for column in columns)
    pairs = zip(columns, widths, strict=True)
    return "".join(width if column.alignment == "p" else column.alignment for column, width in pairs)


def capitalise(words: str) -> str:
    """Capitalise the first letter."""
    return f"{words[:1].upper()}{words[1:]}"


def escape_text(text: str, escapes: Mapping[int, str]) -> str:
    """Return a text on one line, with the special characters of a format escaped."""
    return " ".join(make_printable(text, " ").split()).translate(escapes)
