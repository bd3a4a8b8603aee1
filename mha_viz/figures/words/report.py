"""The roles of a profile as a table for a paper, with how sure each role is, what was tested, and what to cite."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mha_viz.analysis.chance import by_chance
from mha_viz.analysis.findings import RULE_Q, STATES, Finding, Q
from mha_viz.analysis.profile import Profile, read_profile, shipped_profiles
from mha_viz.analysis.q_values import ROLE, looked_at
from mha_viz.analysis.replication import Replication, replicate
from mha_viz.analysis.roles import ESTABLISHED, SUGGESTED
from mha_viz.analysis.shipped import check
from mha_viz.analysis.syntax import DIRECTIONS
from mha_viz.corpus.limits import name_sample
from mha_viz.errors import PROFILE, CorpusError, SettingError, check_each, list_items
from mha_viz.figures.words.report_columns import (
    HEADING,
    IN_LATEX,
    IN_MARKDOWN,
    OF_THIRD,
    ReportedRole,
    ReportSubject,
    Use,
    as_text,
    capital,
    has_few,
    latex_places,
    printed,
    q_in_words,
    report_cells,
)
from mha_viz.figures.words.role_words import NULLS, OLDER_RULE, SOUGHT, STATE_WORDS, by_chance_in_words, is_older
from mha_viz.figures.words.use_words import USE, is_used, use_explained
from mha_viz.files.assets import app_root
from mha_viz.files.tables import as_csv
from mha_viz.model_names import cite_model, name_in_column
from mha_viz.numerals import counted
from mha_viz.quotes import did_you_mean, quoted, series

if TYPE_CHECKING:
    import pandas as pd

KINDS = SOUGHT
STRONGEST = (
    "Strongest simple rule: given the parts of speech, the nearest word on one side with one of a set of them "
    "(coreference: given number and subjects, what agrees). Beats: the head is right more often on each corpus (the "
    "lower end of the 95% interval of the difference is above 0); equals: the upper end is below 0 on none. Choice: of "
    "the cases in which the head points to one of several words of the right part of speech, the share it gets right; "
    "nearest: the share that the nearest such word gets right."
)


def _has_state(state: str) -> Callable[[Finding], bool]:
    return lambda finding: finding.state == state


CONDITIONS: Mapping[str, tuple[str, Callable[[Finding], bool]]] = {
    "established": ("established", lambda finding: finding.status == ESTABLISHED),
    **{
        state: (STATE_WORDS[state].replace("the rule", "the strongest simple rule"), _has_state(state))
        for state in STATES
    },
}


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """A table of roles for a paper. Printed, it is :meth:`markdown`.

    Attributes:
        caption: a description of the table.
        roles: its rows, in the order of the profile.
        notes: sentences below it, the last of which says what to cite.
        of: the model and the corpora.
    """

    caption: str
    roles: tuple[ReportedRole, ...]
    notes: tuple[str, ...]
    of: ReportSubject

    @property
    def table(self) -> pd.DataFrame:
        """One row per role, with the columns HEADING and, for each third corpus, OF_THIRD.

        Numbers are not rounded; a head is counted from 0 and, in ``paper``, from 1.
        """
        import pandas as pd

        numbers = range(1, len(self.of.thirds) + 1)
        columns = [*HEADING, *(f"replicated_{number}_{name}" for number in numbers for name in OF_THIRD)]
        return pd.DataFrame([report_cells(self.of, role) for role in self.roles], columns=columns)

    def csv(self) -> str:
        """Return :attr:`table` as CSV, without the notes."""
        return as_csv(self.table)

    def markdown(self) -> str:
        """Return the table between its caption and its notes. Content of files is escaped, whatever it contains."""
        columns = printed(self.of, self.roles)
        rows = [
            [as_text(text, IN_MARKDOWN) for text in (column.cell(role) for column in columns)] for role in self.roles
        ]
        rules = ["---:" if column.place == "r" else "---" for column in columns]
        headings = [as_text(column.heading, IN_MARKDOWN) for column in columns]
        table = [f"| {' | '.join(row)} |" for row in (headings, rules, *rows)]
        caption, *notes = (as_text(text, IN_MARKDOWN) for text in (self.caption, *self.notes))
        return "\n\n".join([caption, "\n".join(table), *notes]) + "\n"

    def latex(self) -> str:
        """Return the table for LaTeX with the packages array, booktabs and longtable.

        It may span several pages, and is made for a landscape page. Content of files is escaped, whatever it contains.
        """
        columns = printed(self.of, self.roles)
        caption, *notes = (as_text(text, IN_LATEX) for text in (self.caption, *self.notes))
        headings = " & ".join(as_text(column.heading, IN_LATEX) for column in columns)
        rows = [" & ".join(as_text(column.cell(role), IN_LATEX) for column in columns) for role in self.roles]
        head = (r"\toprule", rf"{headings} \\", r"\midrule")
        lines = [
            *(r"\begingroup", r"\footnotesize", r"\setlength{\tabcolsep}{3pt}"),
            rf"\begin{{longtable}}{{{latex_places(columns)}}}",
            *(rf"\caption{{{caption}}} \\", *head, r"\endfirsthead", *head, r"\endhead", r"\bottomrule", r"\endfoot"),
            *(*(rf"{row} \\ \addlinespace" for row in rows), r"\end{longtable}"),
            *(*(rf"\noindent {note}\par\smallskip" for note in notes), r"\endgroup"),
        ]
        return "\n".join(lines) + "\n"

    def __repr__(self) -> str:
        return self.markdown()


def report(
    profile: Profile,
    replicated: Profile | Iterable[Profile] = (),
    *,
    kinds: str | Iterable[str] = (),
    only: str | Iterable[str] = (),
) -> Report:
    """Make a table for a paper from the roles of a profile (Markdown, LaTeX, CSV).

    It has intervals, baselines, the strongest simple rule with q-values over all heads and relations that were tested,
    the accuracy on the other corpus that establishes the roles, the third corpora on which they hold, whether they are
    used, and the sentence to cite.

    ``replicated``: profiles of the same model on third corpora; a corpus that helped to choose a role replicates
    nothing. ``kinds``: the kinds of roles to show, of KINDS. ``only``: conditions that they must meet, of CONDITIONS:
    "established", and "beats", "equals" or "below" for a comparison of the head with the strongest simple rule. Both
    may be text with commas: "syntax,coreference".

    Raises CorpusError for a profile without roles and for one of another model or of the same corpus, SettingError for
    other kinds and conditions, and where no role is left.
    """
    is_list = isinstance(replicated, Iterable) and not isinstance(replicated, str)
    listed = replicated if is_list else [replicated]
    others = list_items(listed, "replicated", "Give profiles of the same model.")
    check_each((profile, *others), Profile, *PROFILE)
    all_findings = profile.findings()
    if not all_findings:
        raise CorpusError(f"The profile of {profile.corpus} has no roles.", "Take that of a treebank or of more text.")
    shown_kinds, conditions = _listed(kinds, KINDS, "kinds"), _listed(only, CONDITIONS, "only")
    findings = [f for f in all_findings if _is_shown(f, shown_kinds, conditions)]
    if not findings:
        raise SettingError(*_none_is_left(profile, all_findings, shown_kinds, conditions))
    tests = looked_at(profile.tables)
    tested = [*tests[ROLE].itertuples(index=False, name=None)]
    q, rule_q = (dict(zip(tested, tests[column], strict=True)) for column in (Q, RULE_Q))
    thirds = _on_thirds(profile, findings, others)
    use = _use(profile)
    keys = [(f.role, f.detail, *f.head) for f in findings]
    roles = tuple(
        ReportedRole(f, q.get(key, math.nan), rule_q.get(key, math.nan), outcomes, use.get(key))
        for f, key, outcomes in zip(findings, keys, thirds, strict=True)
    )
    names = (profile.corpus, tuple(other.corpus for other in others))
    subject = ReportSubject(name_in_column(profile.model), str(profile.facts["revision"]), *names)
    choice = "; ".join(filter(None, [", ".join(shown_kinds), *(CONDITIONS[name][0] for name in conditions)]))
    total = counted(len(all_findings), "role")
    count = f"{len(roles)} of {total} ({choice})" if choice else counted(len(roles), "role")
    layers, heads = profile.shape
    model = f"{cite_model(profile.model, subject.revision)}, {layers} layers × {heads} heads,"
    caption = f"What heads of {model} do on {subject.corpus}: {count}."
    return Report(caption, roles, (*_notes(profile, roles, tests, subject), f"To cite: {citation()}"), subject)


def _listed(names: str | Iterable[str], values: Collection[str], option: str) -> tuple[str, ...]:
    """Parse a list of names, or a text with commas, without duplicates. Raises SettingError for an unknown name."""
    listed = names.split(",") if isinstance(names, str) else [*names]
    stripped = [str(name).strip() for name in listed if str(name).strip()]
    for name in stripped:
        if name not in values:
            remedy = f"{did_you_mean(name, values)} Choose from {', '.join(values)}.".strip()
            raise SettingError(f"{quoted(name)} is not a value of {option}.", remedy)
    return tuple(dict.fromkeys(stripped))


def _is_shown(finding: Finding, kinds: Collection[str], conditions: Iterable[str]) -> bool:
    return (not kinds or finding.role in kinds) and all(CONDITIONS[name][1](finding) for name in conditions)


def _none_is_left(
    profile: Profile, all_findings: Sequence[Finding], kinds: Collection[str], conditions: Collection[str]
) -> tuple[str, str]:
    """Write the error for options that leave no role.

    The remedy names another bundled profile of the model that has such roles, or the kinds that this profile has.
    """
    named = [
        f"{name} {quoted(', '.join(values))}" for name, values in (("kinds", kinds), ("only", conditions)) if values
    ]
    problem = f"No role is left by {series(named)} on {profile.corpus}."
    for folder in shipped_profiles(profile.model):
        other = read_profile(folder)
        matches = [finding for finding in other.findings() if _is_shown(finding, kinds, conditions)]
        if matches and other.corpus != profile.corpus:
            statuses = series(sorted({finding.status for finding in matches}))
            where = f"The profile of {other.corpus} has {counted(len(matches), 'such role')} ({statuses})"
            return problem, f"{where}: give it, {folder}."
    if kinds and conditions:
        return problem, "Leave one of them out."
    if conditions:
        return problem, f"Leave it out to see {counted(len(all_findings), 'role')}."
    listed = [kind for kind in KINDS if any(finding.role == kind for finding in all_findings)]
    return problem, f"Choose from those that it has: {', '.join(listed)}."


def citation() -> str:
    """Return the sentence by which to cite this program, from CITATION.cff."""
    text = (app_root() / "CITATION.cff").read_text("utf-8")
    fields = dict(re.findall(r'^([\w-]+): "?(.+?)"?$', text, re.MULTILINE))
    authors = series(re.findall(r"^  - name: (.+)$", text, re.MULTILINE))
    return f"{authors}. {fields['title']}. Version {fields['version']}, {fields['date-released']}."


def _on_thirds(
    profile: Profile, findings: Sequence[Finding], others: Sequence[Profile]
) -> list[tuple[Replication | None, ...]]:
    """Return the outcome of each role on each of ``others``; None where that corpus helped to choose the role."""
    for other in others:
        check(other.facts, profile.facts)
    by_corpus = [
        [None if _chose(replication, other) else replication for replication in replicate(findings, other)]
        for other in others
    ]
    return [tuple(outcomes[i] for outcomes in by_corpus) for i in range(len(findings))]


def _chose(replication: Replication, other: Profile) -> bool:
    """Return whether a corpus is one of those that established a role.

    It is recognised by its name or, if the file was named differently, by the number of its correct cases.
    """
    finding, role_score, _ = replication
    if finding.status != ESTABLISHED or finding.elsewhere is None:
        return finding.status == ESTABLISHED and other.corpus in finding.corpora
    is_same = (
        role_score is not None
        and role_score.n > 0
        and round(role_score.n * (role_score.score - finding.elsewhere.score), 4) == 0
    )
    return other.corpus in finding.corpora or is_same


def _use(profile: Profile) -> dict[Any, Use]:
    """Return whether each measured role is used."""
    if "used" not in profile.tables:
        return {}
    table = profile.tables["used"]
    uses = [Use(is_used(cell), str(measure)) for cell, measure in zip(table["used"], table["measure"], strict=True)]
    return dict(zip(table[ROLE].itertuples(index=False, name=None), uses, strict=True))


def _notes(
    profile: Profile, roles: Sequence[ReportedRole], tests: pd.DataFrame, subject: ReportSubject
) -> Iterator[str]:
    """Yield notes on the tests, on how sure the results are, and other remarks for readers."""
    if len(tests):
        yield _looked_at(profile, tests)
        with_q = [role.rule_q for role in roles if not math.isnan(role.rule_q)]
        count = counted(len(with_q), "role")
        lowest = f" The lowest q of the {count} with one is {q_in_words(min(with_q))}." if with_q else ""
        yield (
            "q: false discovery rate by Benjamini–Hochberg over all of these, against the strongest simple rule; "
            "one-sided exact sign tests on all cases where only the head or only the rule is right, divided by the "
            "design effect of documents. The CSV also has q against the best fixed offset."
            f"{lowest}"
        )
    if is_older(role.finding for role in roles):
        yield f"The simple rule was measured {OLDER_RULE}; it has no interval and no q."
    elif any(role.finding.state for role in roles):
        yield STRONGEST
    for chance in filter(None, (by_chance(profile, *null) for null in NULLS)):
        yield f"By chance: {by_chance_in_words(chance)}, on {series(chance.corpora)}."
    findings = [role.finding for role in roles]
    if any(f.role not in ("syntax", "coreference") for f in findings):
        yield "Scores without a name are accuracies. Other roles have no q; means have no interval."
    if any(f.status == SUGGESTED and f.role == "syntax" for f in findings):
        yield (
            "Suggested roles of syntax: n, score and state are of the odd sentences, which did not choose the head; "
            "choice and q are of all."
        )
    if any(has_few(f) for f in findings):
        yield "Few documents: interval and q take cases as independent, and apply to these documents alone."
    for number, corpus in enumerate(subject.thirds):
        if all(role.thirds[number] is None for role in roles):
            yield f"{corpus} is one of the corpora that chose these roles: that they hold there replicates nothing."
    if any(role.use for role in roles):
        row = profile.tables["used"].iloc[0]
        yield (
            f"{capital(USE)}: measured on {name_sample(row['corpus'], row['every'])} "
            f"({row['measure']}, {row['method']}). {use_explained(str(row['measure']))}"
        )


def _looked_at(profile: Profile, tests: pd.DataFrame) -> str:
    """Count the tests: "Looked at on UD English EWT test: 72 heads × 48 relations × 3 directions; 10,368 tests with a
    case"."""
    layers, heads = profile.shape
    syntax = tests[tests["role"] == "syntax"]
    relations = syntax["detail"].str.rpartition(" ")[0].nunique() if len(syntax) else 0
    all_heads = counted(layers * heads, "head")
    parts = [f"{all_heads} × {counted(relations, 'relation')} × {len(DIRECTIONS)} directions"] * bool(relations)
    parts += [f"{all_heads} on third-person pronouns"] * (len(syntax) < len(tests))
    count = counted(int((tests["n"] > 0).sum()), "test")
    return f"Looked at on {profile.corpus}: {series(parts)}; {count} with a case."
