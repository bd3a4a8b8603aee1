"""The roles of a profile as a table for a paper, with how sure each is, what was looked at, and what to cite."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from mha_viz.analysis.chance import COREFERENCE, SYNTAX, by_chance
from mha_viz.analysis.established import check
from mha_viz.analysis.findings import Finding
from mha_viz.analysis.intervals import FEW
from mha_viz.analysis.profile import Profile
from mha_viz.analysis.q_values import ROLE, looked_at
from mha_viz.analysis.replication import replicate
from mha_viz.analysis.roles import ESTABLISHED, SUGGESTED
from mha_viz.analysis.syntax import DIRECTIONS
from mha_viz.errors import PROFILE, CorpusError, check_each, list_items
from mha_viz.figures.caption import both
from mha_viz.figures.glosses import rule_in_words
from mha_viz.figures.role_words import (
    ACCURACY,
    best_baseline,
    by_chance_in_words,
    linked_words,
    measure,
    standing,
    standing_with_corpora,
    where_matched,
)
from mha_viz.files.assets import app_root
from mha_viz.files.tables import as_csv
from mha_viz.numerals import counted, percent
from mha_viz.quotes import printable, series

if TYPE_CHECKING:
    import pandas as pd

HEADING = (
    *(
        "layer",
        "head",
        "name",
        "paper",
        "role",
        "detail",
        "status",
        "n",
        "documents",
        "measure",
        "score",
        "ci_low",
        "ci_high",
    ),
    *("baseline", "upos_rule", "upos_baseline", "rule_as_good_on", "untrained", "q", "replicates_on", "used"),
)
NONE = "–"
LEAST_Q = 0.001  # smaller ones are written as less than this
IN_MARKDOWN = {ord(sign): f"\\{sign}" for sign in "\\`*_{}[]<>|#!$~&"}
IN_LATEX = {
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


class ReportedRole(NamedTuple):
    """A role, its q-value (NaN if it was not tested), each other corpus with the outcome there, and whether it is used
    (None if that was not measured)."""

    finding: Finding
    q: float
    elsewhere: tuple[str, ...]
    used: bool | None


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """``caption``: what the table shows; ``roles``: its rows, in the order of the profile; ``notes``: sentences below
    it, the last of which says what to cite. Printed, it is :meth:`markdown`."""

    caption: str
    roles: tuple[ReportedRole, ...]
    notes: tuple[str, ...]

    @property
    def table(self) -> pd.DataFrame:
        """One row per role, with HEADING: numbers as they are, a head counted from 0 and, in ``paper``, from 1."""
        import pandas as pd

        return pd.DataFrame([_cells(*role) for role in self.roles], columns=list(HEADING))

    def csv(self) -> str:
        """:attr:`table` as CSV, without the notes."""
        return as_csv(self.table)

    def markdown(self) -> str:
        """The table between its caption and its notes. What comes from files is text, whatever it contains."""
        rows = [[_as_text(column.cell(role), IN_MARKDOWN) for column in PRINTED] for role in self.roles]
        rules = ["---:" if column.place == "r" else "---" for column in PRINTED]
        table = [f"| {' | '.join(row)} |" for row in ([column.heading for column in PRINTED], rules, *rows)]
        caption, *notes = (_as_text(text, IN_MARKDOWN) for text in (self.caption, *self.notes))
        return "\n\n".join([caption, "\n".join(table), *notes]) + "\n"

    def latex(self) -> str:
        """The same as a table for LaTeX with the packages array, booktabs and longtable, which goes on over pages; made
        for a landscape page. What comes from files is text, whatever it contains."""
        caption, *notes = (_as_text(text, IN_LATEX) for text in (self.caption, *self.notes))
        headings = " & ".join(_as_text(column.heading, IN_LATEX) for column in PRINTED)
        rows = [" & ".join(column.in_latex(role) for column in PRINTED) for role in self.roles]
        head = (r"\toprule", rf"{headings} \\", r"\midrule")
        lines = [
            *(r"\begingroup", r"\footnotesize", r"\setlength{\tabcolsep}{3pt}"),
            rf"\begin{{longtable}}{{{''.join(column.place for column in PRINTED)}}}",
            *(rf"\caption{{{caption}}} \\", *head, r"\endfirsthead", *head, r"\endhead", r"\bottomrule", r"\endfoot"),
            *(*(rf"{row} \\ \addlinespace" for row in rows), r"\end{longtable}"),
            *(*(rf"\noindent {note}\par\smallskip" for note in notes), r"\endgroup"),
        ]
        return "\n".join(lines) + "\n"

    def __repr__(self) -> str:
        return self.markdown()


def report(profile: Profile, replicated: Profile | Iterable[Profile] = ()) -> Report:
    """The roles of a profile as a table for a paper (Markdown, LaTeX, CSV), with intervals, baselines, q-values over
    all heads and relations that were looked at, on which other corpora they hold, whether they are used, and the
    sentence to cite.

    ``replicated``: profiles of the same model on further corpora. Raises CorpusError for a profile without roles and
    for one of another model or of the same corpus.
    """
    listed = [replicated] if isinstance(replicated, Profile) else replicated
    others = list_items(listed, "replicated", "Give profiles of the same model.")
    check_each((profile, *others), Profile, *PROFILE)
    findings = profile.findings()
    if not findings:
        raise CorpusError(f"The profile of {profile.corpus} has no roles.", "Take that of a treebank or of more text.")
    tests = looked_at(profile.tables)
    q = dict(zip(tests[ROLE].itertuples(index=False, name=None), tests["q"], strict=True))
    elsewhere = _elsewhere(profile, findings, others)
    used = _used(profile)
    keys = [(f.role, f.detail, *f.head) for f in findings]
    roles = tuple(
        ReportedRole(f, q.get(key, math.nan), corpora, used.get(key))
        for f, key, corpora in zip(findings, keys, elsewhere, strict=True)
    )
    layers, heads = profile.shape
    model = f"{profile.model} (revision {profile.facts['revision']}, {layers} layers × {heads} heads)"
    caption = f"What heads of {model} do on {profile.corpus}: {counted(len(roles), 'role')}."
    return Report(caption, roles, (*_notes(profile, roles, tests), f"To cite: {citation()}"))


def citation() -> str:
    """The sentence by which to cite this program, from CITATION.cff."""
    text = (app_root() / "CITATION.cff").read_text("utf-8")
    fields = dict(re.findall(r'^([\w-]+): "?(.+?)"?$', text, re.MULTILINE))
    authors = series(re.findall(r"^  - name: (.+)$", text, re.MULTILINE))
    return f"{authors}. {fields['title']}. Version {fields['version']}, {fields['date-released']}."


def _elsewhere(profile: Profile, findings: Sequence[Finding], others: Sequence[Profile]) -> list[tuple[str, ...]]:
    """For each role the further corpora that establish it, and those of ``others``, each with the outcome there."""
    for other in others:
        check(other.facts, profile.facts)
    measured = [(other.corpus, replicate(findings, other)) for other in others]
    again = {profile.corpus, *(corpus for corpus, _ in measured)}
    return [
        (
            *(f"{corpus} ({ESTABLISHED})" for corpus in f.corpora if f.status == ESTABLISHED and corpus not in again),
            *(f"{corpus} ({outcomes[at].outcome.removesuffix(' here')})" for corpus, outcomes in measured),
        )
        for at, f in enumerate(findings)
    ]


def _used(profile: Profile) -> dict[Any, bool]:
    """Whether each role that was measured is used."""
    if "used" not in profile.tables:
        return {}
    table = profile.tables["used"]
    return dict(zip(table[ROLE].itertuples(index=False, name=None), map(bool, table["used"]), strict=True))


def _notes(profile: Profile, roles: Sequence[ReportedRole], tests: pd.DataFrame) -> Iterator[str]:
    """What was looked at, how sure it is, and what else a reader needs."""
    if len(tests):
        yield _looked_at(profile, tests)
        with_q = [role.q for role in roles if not math.isnan(role.q)]
        yield (
            "q: false discovery rate by Benjamini–Hochberg over all of these; one-sided tests of the accuracy on all "
            "sentences against the best fixed offset (coreference: the better of two simple rules), with cases divided "
            "by the design effect of documents."
            + f" The highest q of the {counted(len(with_q), 'role')} with one is {_q(max(with_q, default=math.nan))}."
            * bool(with_q)
        )
    for chance in filter(None, (by_chance(profile, role) for role in (SYNTAX, COREFERENCE))):
        yield f"By chance: {by_chance_in_words(chance)}, on {series(chance.corpora)}."
    findings = [role.finding for role in roles]
    if any(f.role not in ("syntax", "coreference") for f in findings):
        yield "Scores without a name are accuracies. Other roles have no q; means have no interval."
    if any(f.status == SUGGESTED and f.role == "syntax" for f in findings):
        yield "Suggested roles of syntax: n and accuracy are of sentences that did not choose the head."
    if any(_has_few(f) for f in findings):
        yield "Few documents: interval and q take cases as independent, and apply to these documents alone."
    if len(profile.tables.get("used", ())):
        by = profile.tables["used"].iloc[0]
        yield f"Used: measured on {by['corpus']} ({by['measure']}, {by['method']})."


def _looked_at(profile: Profile, tests: pd.DataFrame) -> str:
    """ "Looked at on UD English EWT test: 72 heads × 48 relations × 3 directions; 10,368 tests with a case." """
    layers, heads = profile.shape
    syntax = tests[tests["role"] == "syntax"]
    relations = syntax["detail"].str.rpartition(" ")[0].nunique() if len(syntax) else 0
    every = counted(layers * heads, "head")
    parts = [f"{every} × {counted(relations, 'relation')} × {len(DIRECTIONS)} directions"] * bool(relations)
    parts += [f"{every} on third-person pronouns"] * (len(syntax) < len(tests))
    count = counted(int((tests["n"] > 0).sum()), "test")
    return f"Looked at on {profile.corpus}: {series(parts)}; {count} with a case."


def _cells(finding: Finding, q: float, elsewhere: tuple[str, ...], used: bool | None) -> tuple[Any, ...]:
    f = finding
    head = (*f.head, str(f.head), f.head.paper, f.role, f.detail, standing(f))
    measured = (f.n, "" if f.documents is None else f.documents, measure(f), f.score, f.low, f.high)
    as_good = where_matched(f).removeprefix(" on ") if f.beats_upos is False else ""
    baselines = (f.baseline, f.upos_rule, f.upos, as_good, f.untrained)
    return (*head, *measured, *baselines, q, "; ".join(elsewhere), "" if used is None else used)


def _has_few(finding: Finding) -> bool:
    return finding.documents is not None and finding.documents < FEW


def _score(finding: Finding) -> str:
    """ "68.6%", "99.7% (mean weight)"."""
    of = measure(finding)
    return percent(finding.score) + (f" ({of})" if of != ACCURACY else "")


def _interval(finding: Finding) -> str:
    """ "66.4%–70.7% (267 documents)"."""
    if math.isnan(finding.low):
        return NONE
    over = "one or none named" if finding.documents == 1 else counted(finding.documents or 0, "document")
    over = f"few documents: {over}" if _has_few(finding) else over
    beside = "" if finding.documents is None else f" ({over})"
    return f"{percent(finding.low)}–{percent(finding.high)}{beside}"


def _baselines(finding: Finding) -> str:
    """ "best fixed offset 38.6%, nearest noun to the right 52.5%, untrained 6.1%"."""
    name = "best fixed offset" if finding.role == "syntax" else best_baseline(finding)[0]
    scores = {name: finding.baseline, rule_in_words(finding.upos_rule): finding.upos, "untrained": finding.untrained}
    return ", ".join(f"{name} {percent(score)}" for name, score in scores.items() if not math.isnan(score))


def _q(q: float) -> str:
    return NONE if math.isnan(q) else f"< {LEAST_Q}" if q < LEAST_Q else f"{q:.3f}"


def _used_in_words(role: ReportedRole) -> str:
    return {None: NONE, True: "yes", False: "no effect found"}[role.used]


class _Column(NamedTuple):
    """A column of the printed table; ``place``: its alignment in LaTeX."""

    heading: str
    place: str
    cell: Callable[[ReportedRole], str]

    def in_latex(self, role: ReportedRole) -> str:
        return _as_text(self.cell(role), IN_LATEX)


_RAGGED = r">{\raggedright\arraybackslash}"
PRINTED = (
    _Column("Role", _RAGGED + r"p{0.13\linewidth}", lambda role: linked_words(role.finding)),
    _Column("Head", "l", lambda role: both(role.finding.head)),
    _Column("Status", _RAGGED + r"p{0.1\linewidth}", lambda role: standing_with_corpora(role.finding)),
    _Column("n", "r", lambda role: f"{role.finding.n:,}"),
    _Column("Score", _RAGGED + r"p{0.08\linewidth}", lambda role: _score(role.finding)),
    _Column("95% interval", _RAGGED + r"p{0.11\linewidth}", lambda role: _interval(role.finding)),
    _Column("Baselines", _RAGGED + r"p{0.13\linewidth}", lambda role: _baselines(role.finding)),
    _Column("q", "r", lambda role: _q(role.q)),
    _Column("Replicates on", _RAGGED + r"p{0.1\linewidth}", lambda role: "; ".join(role.elsewhere) or NONE),
    _Column("Used", _RAGGED + r"p{0.07\linewidth}", _used_in_words),
)


def _as_text(text: str, escaped: Mapping[int, str]) -> str:
    """A text in one line, with the signs that mean something in a format escaped."""
    return " ".join(printable(text, " ").split()).translate(escaped)
